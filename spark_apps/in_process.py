"""The stitching of a job in this process, one task after another: without a Spark, which only deals out names.

For whoever has hours, and is to take no Spark's place (docs/decisions/0047-a-comparison-takes-no-spark.md). The tasks
are those that Spark runs, and leave the same files. Takes one processor, and of memory what one task takes.
"""

from __future__ import annotations

from pathlib import Path

from spark_apps.outcome import read_outcomes, run_task
from wavestitch.contracts.stitch_job import StitchReport, stitch_job_from_json
from wavestitch.plain_files import plain_text
from wavestitch.write_once import disk_errors, write_first


def stitch_here(job_path: Path, result_path: Path) -> None:
    """Run the job and leave its report; one that an earlier run left stands. Raises the error of a task, the first
    terminal one of them, or `Transient` where the disk does not take what is written."""
    with disk_errors("stitching"):
        job = stitch_job_from_json(plain_text(job_path))
        outcomes = [run_task(job, assignment) for assignment in job.assignments]
        write_first(result_path, StitchReport(job.plan_id, read_outcomes(outcomes)).to_json())
