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


STATISTICS = """
import sys
from wavestitch.validation.gate import load_gate
load_gate()
loaded = [m for m in sys.modules if m.startswith("scipy.stats.")]
import scipy.stats
print(loaded, scipy.stats.norm.cdf(0.0), len([m for m in sys.modules if m.startswith("scipy.stats.")]) > 10)
"""


def test_the_gate_is_there_without_statistics_that_no_stream_may_ask_for_until_somebody_does() -> None:
    done = subprocess.run([sys.executable, "-c", STATISTICS], capture_output=True, text=True, timeout=120, check=False)
    assert done.stdout == "[] 0.5 True\n", done.stdout + done.stderr
