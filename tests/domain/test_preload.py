"""What the scheduler imports for the tasks that are forked from it."""

from __future__ import annotations

import subprocess
import sys

WHAT_A_BATCH_USES = (
    *("confluent_kafka", "kafka.protocol", "pyarrow", "pyiceberg", "great_expectations"),
    *("wavestitch.batch.steps", "wavestitch.batch.deployment_edges", "consumers.unit_reader"),
    *("wavestitch.batch.carry", "wavestitch.batch.results_told", "spark_apps.remote_task"),
)
SCRIPT = f"""
import sys, threading
from wavestitch.batch.preload import preload
preload()
missing = [m for m in {WHAT_A_BATCH_USES!r} if m not in sys.modules]
print(missing, [t.name for t in threading.enumerate()], "airflow" in sys.modules, "pyspark.sql" in sys.modules)
"""


MAPPED = """
from wavestitch.batch.preload import preload
preload()
from pyiceberg.catalog.sql import IcebergTables
print(IcebergTables.__mapper__.configured)
"""


def test_how_rows_of_a_catalog_are_mapped_is_known_before_a_task_asks_one() -> None:
    done = subprocess.run([sys.executable, "-c", MAPPED], capture_output=True, text=True, timeout=120, check=False)
    assert done.stdout == "True\n", done.stdout + done.stderr


PREPARED = """
import pydantic, sys
from wavestitch.batch.deployment import code_version
from wavestitch.batch.preload import KEPT, preload
preload()
pydantic.TypeAdapter = None
for kind in KEPT:
    kind.prepare()
print(len(KEPT) > 7, code_version.cache_info().currsize, "pyspark.sql.connect.session" in sys.modules)
"""


def test_what_checks_records_the_version_of_the_code_and_what_speaks_to_a_spark_are_there_before_a_task_asks() -> None:
    done = subprocess.run([sys.executable, "-c", PREPARED], capture_output=True, text=True, timeout=120, check=False)
    assert done.stdout == "True 1 True\n", done.stdout + done.stderr


def test_all_that_takes_long_is_imported_and_no_thread_is_left_that_a_fork_would_lose() -> None:
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, timeout=120, check=False)
    assert done.stdout.split("\n")[0].startswith("[] ['MainThread'] False"), done.stdout + done.stderr


SPARED = """
import gc, sys
from wavestitch.validation.gate import load_gate
load_gate()
named = ("scipy.stats", "scipy.sparse", "altair", "pyspark", "jsonschema", "boto3", "botocore")
print([m for m in named if m in sys.modules], gc.isenabled())
from great_expectations.compatibility import pyspark as without
from great_expectations.expectations.core import expect_column_kl_divergence_to_be_less_than as drawn
print(bool(without.DataFrame), drawn.stats.norm.cdf(0.0), drawn.alt.Chart.__name__)
from great_expectations.expectations.metrics.column_map_metrics import column_values_match_json_schema as of_json
print(of_json.jsonschema.validate({}, {}), of_json.jsonschema.SchemaError.__name__)
import altair, boto3, pyspark.sql, scipy.stats
print(scipy.stats.norm.cdf(0.0), altair.Chart is drawn.alt.Chart, pyspark.sql.DataFrame.__name__)
"""


def test_the_gate_is_there_without_what_no_stream_may_ask_for_until_somebody_does() -> None:
    done = subprocess.run([sys.executable, "-c", SPARED], capture_output=True, text=True, timeout=120, check=False)
    assert done.stdout == "[] True\nFalse 0.5 Chart\nNone SchemaError\n0.5 True DataFrame\n", done.stdout + done.stderr
