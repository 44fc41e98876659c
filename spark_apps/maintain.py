"""The Spark app that compacts tables, for spark-submit: `maintain.py --job PATH --result PATH`.

Iceberg's own `rewrite_data_files` puts small files together; which tables and with what options stands in the job. A
batch that commits at the same moment wins: the rewriting is then made again on what is there. Leaves what was done in
RESULT, or its error in RESULT.error.json, and exit code 1.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from spark_apps.leave_error import leave_error
from wavestitch.contracts.compaction import SORT_ORDER, Compacted, compacted_to_json, compaction_job_from_json
from wavestitch.contracts.errors import Transient, WavestitchError
from wavestitch.write_once import write_first

_TRIES = 5
_SHOWN = 400
_CONFLICTS = ("CommitFailedException", "ValidationException", "SQLITE_BUSY")


def compact(spark: SparkSession, catalog: str, table: str, options: Mapping[str, str]) -> Compacted:
    """Rewrite one table's small files, sorted where the options say how. Raises `Transient` where others' commits won
    each time."""
    pairs = ", ".join(f"{_quoted(k)}, {_quoted(v)}" for k, v in sorted(options.items()) if k != SORT_ORDER)
    order = options.get(SORT_ORDER)
    how = f", strategy => 'sort', sort_order => {_quoted(order)}" if order else ""
    call = f"CALL {catalog}.system.rewrite_data_files(table => {_quoted(table)}{how}, options => map({pairs}))"
    for conflicts in range(_TRIES):
        try:
            row = spark.sql(call).collect()[0]
        except (PySparkException, Py4JError) as error:
            if not any(word in str(error) for word in _CONFLICTS):
                raise
            # The tables ask for no retries of Iceberg's own; here it is safe: the whole rewriting is made again.
            spark.sql(f"REFRESH TABLE {catalog}.{table}")
            continue
        return Compacted(
            table=table,
            rewritten=row.rewritten_data_files_count,
            added=row.added_data_files_count,
            bytes=row.rewritten_bytes_count,
            conflicts=conflicts,
        )
    raise Transient(f"{_TRIES} times others committed to table {table} first; run maintenance again")


def main(argv: Sequence[str]) -> int:
    ask = argparse.ArgumentParser(prog="maintain.py", description="Compact tables.")
    ask.add_argument("--job", type=Path, required=True, help="the compaction job, JSON")
    ask.add_argument("--result", type=Path, required=True, help="where the answer goes")
    options = ask.parse_args(argv)
    try:
        job = compaction_job_from_json(options.job.read_text(encoding="utf-8"))
        spark = SparkSession.builder.getOrCreate()
        done = [compact(spark, job.catalog, table, how) for table, how in sorted(job.tables.items())]
        write_first(options.result, compacted_to_json(done))
        spark.stop()
    except WavestitchError as error:
        return leave_error(options.result, error)
    except (PySparkException, Py4JError, ConnectionError, EOFError, OSError) as error:
        lines = [x.strip() for x in str(error).splitlines() if x.strip()]
        said = f"{type(error).__name__}: {' … '.join(lines[:1] + [x for x in lines[1:] if 'Caused by' in x][:2])}"
        return leave_error(options.result, Transient(f"Spark gave the compaction up: {said[:_SHOWN]}"))
    return 0


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
