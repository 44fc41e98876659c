"""What the scheduler imports for the tasks that are forked from it."""

from __future__ import annotations

import subprocess
import sys

WHAT_A_BATCH_USES = ("confluent_kafka", "pyarrow", "pyiceberg", "great_expectations", "wavestitch.batch.steps")
SCRIPT = f"""
import sys, threading
from wavestitch.batch.preload import preload
preload()
missing = [m for m in {WHAT_A_BATCH_USES!r} if m not in sys.modules]
print(missing, [t.name for t in threading.enumerate()], "airflow" in sys.modules, "pyspark.sql" in sys.modules)
"""


def test_all_that_takes_long_is_imported_and_no_thread_is_left_that_a_fork_would_lose() -> None:
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, timeout=120, check=False)
    assert done.stdout.split("\n")[0].startswith("[] ['MainThread'] False"), done.stdout + done.stderr
