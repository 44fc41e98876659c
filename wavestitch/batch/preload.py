"""Imports what the tasks of a batch import, once, for Airflow's scheduler: its LocalExecutor forks their processes.

A task then begins with its work; otherwise it imports for one to four seconds first. Decides nothing. What was loaded
is what runs, until the scheduler is started again.
"""

from __future__ import annotations

from spark_apps.remote import load_client
from wavestitch.batch import rewind, steps
from wavestitch.batch.deployment import code_version
from wavestitch.validation.gate import load_gate

__all__ = ["preload", "rewind", "steps"]


def preload() -> None:
    """Call it where the process has no thread yet, e.g. in `airflow_local_settings.py`."""
    load_gate()
    load_client()  # of a Spark that is there; what it says of our code is what is loaded now
    code_version()  # of what is loaded now, whatever is checked out later
