"""The deployment, as the API server has it: as a guest. The one place where pages get one."""

from __future__ import annotations

from wavestitch.batch.deployment import Deployment, leave_no_core_file
from wavestitch.tables.access.own_settings import be_guest

be_guest()  # from the start: others' catalogs must not wait for the first who looks at a page of ours


def guest_deployment() -> Deployment:
    """The server is Airflow's, and other plugins have catalogs of their own. But it has our passwords."""
    leave_no_core_file()
    return Deployment(guest=True)
