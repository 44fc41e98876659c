"""The deployment, as the API server has it: as a guest. The one place where pages get one."""

from __future__ import annotations

from wavestitch.batch.deployment import Deployment, leave_no_core_file


def guest_deployment() -> Deployment:
    """The server is Airflow's, and other plugins have catalogs of their own. But it has our passwords."""
    leave_no_core_file()
    return Deployment(guest=True)
