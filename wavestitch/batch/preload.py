"""Imports what the tasks of a batch import, once, for Airflow's scheduler: its LocalExecutor forks their processes.

A task then begins with its work; otherwise it imports for one to four seconds first. What is made at the first use of
it (checks of records, pages' templates) is made here, too. Decides nothing. What was loaded is what runs, until the
scheduler is started again.
"""

from __future__ import annotations

from typing import Any

from consumers import batch_scan
from spark_apps import remote_task
from spark_apps.remote import load_client
from wavestitch.batch import carry, deployment_edges, results_told, rewind, steps
from wavestitch.batch.deployment import code_version
from wavestitch.batch.results import RESULTS
from wavestitch.contracts.batch_row import BATCH_ROWS
from wavestitch.contracts.plan import PLANS
from wavestitch.contracts.position import HEADS
from wavestitch.contracts.receipt import RECEIPTS
from wavestitch.contracts.stitch_job import STITCH_JOBS, STITCH_REPORTS
from wavestitch.contracts.verdict import VERDICTS
from wavestitch.contracts.versioned import Versioned
from wavestitch.kafka import raw_log
from wavestitch.tables.catalog import map_rows
from wavestitch.validation.gate import load_pages

KEPT: tuple[Versioned[Any], ...] = (
    *(PLANS, HEADS, RECEIPTS, STITCH_JOBS, STITCH_REPORTS, VERDICTS, BATCH_ROWS),
    *RESULTS.values(),
)
"""What a batch's steps write and read."""
__all__ = [
    "batch_scan",
    "carry",
    "deployment_edges",
    "preload",
    "raw_log",
    "remote_task",
    "results_told",
    "rewind",
    "steps",
]


def preload() -> None:
    """Call it where the process has no thread yet, e.g. in `airflow_local_settings.py`."""
    load_pages()
    load_client()  # of a Spark that is there; what it says of our code is what is loaded now
    map_rows()
    for kind in KEPT:
        kind.prepare()
    code_version()  # of what is loaded now, whatever is checked out later
