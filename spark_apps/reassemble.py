"""The Spark app of the reassembly, for spark-submit: `reassemble.py --job PATH --result PATH`.

Spark deals out assignment names and collects counters; payload goes from file to Python task to file and never enters
the JVM. Leaves the report in RESULT, or its error in RESULT.error.json for the step that submitted it, and exit code 1.
"""

from __future__ import annotations

import argparse
import resource
import sys
from collections.abc import Sequence
from pathlib import Path

from py4j.protocol import Py4JError, Py4JNetworkError
from pyspark import SparkContext
from pyspark.errors import PySparkException

from spark_apps.leave_error import leave_error
from spark_apps.outcome import disk_trouble, read_outcomes, run_task
from spark_apps.spark_errors import brief
from spark_apps.without_pandas import go_without_pandas
from wavestitch.contracts.errors import Transient, WavestitchError
from wavestitch.contracts.stitch_job import StitchJob, StitchReport, stitch_job_from_json
from wavestitch.plain_files import plain_text
from wavestitch.write_once import write_first


def stitch_on_spark(spark: SparkContext, job: StitchJob) -> StitchReport:
    """One Spark task per assignment.

    An RDD, because nothing here is a query: a session of Spark SQL with its planner and its generated code takes
    longer to start than all the rest of a small batch.
    """
    tasks = len(job.assignments)

    def run(number: int) -> str:
        # In the worker: it has payload in memory, which has no place in a core file.
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        go_without_pandas()
        return run_task(job, job.assignments[number])

    outcomes = spark.parallelize(range(tasks), tasks).map(run).collect() if tasks else []
    return StitchReport(job.plan_id, read_outcomes(outcomes))


def main(argv: Sequence[str]) -> int:
    ask = argparse.ArgumentParser(prog="reassemble.py", description="Stitch the waveforms of one batch.")
    ask.add_argument("--job", type=Path, required=True, help="the stitch job, JSON")
    ask.add_argument("--result", type=Path, required=True, help="where the report goes; what is there already stands")
    options = ask.parse_args(argv)
    try:
        job = stitch_job_from_json(plain_text(options.job))
        spark = SparkContext.getOrCreate()
        write_first(options.result, stitch_on_spark(spark, job).to_json())
        spark.stop()
    except WavestitchError as error:
        return leave_error(options.result, error)
    except (ConnectionError, EOFError, Py4JNetworkError) as error:
        return leave_error(
            options.result, Transient(f"the Spark driver's JVM died, probably out of memory ({brief(error)})")
        )
    except (PySparkException, Py4JError) as error:
        return leave_error(options.result, Transient(f"Spark gave the job up: {brief(error)}"))
    except OSError as error:
        return leave_error(options.result, disk_trouble(error, "reassembling"))
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
