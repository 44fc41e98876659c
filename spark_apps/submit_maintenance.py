"""Runs the compaction app through spark-submit. Never imports pyspark; decides nothing about what is compacted."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from spark_apps.submit import submit_app
from wavestitch.contracts.compaction import Compacted, compacted_from_json

APPLICATION = Path(__file__).with_name("maintain.py")

_DEFAULTS = {
    "spark.app.name": "wavestitch maintain",
    "spark.driver.memory": "2g",
    "spark.sql.extensions": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
    # A row can be as large as a small file: a batch of five thousand of them fits no memory.
    "spark.sql.iceberg.vectorization.enabled": "false",
}


def submit_compaction(
    *,
    job_path: Path,
    result_path: Path,
    master: str,
    conf: Mapping[str, str],
    java_home: Path | None,
    say: Callable[[str], None],
    environment: Sequence[str] = (),
) -> list[Compacted]:
    """Run the job and return what was done to each table. Raises the error that the app left."""
    submit_app(
        APPLICATION,
        job_path=job_path,
        result_path=result_path,
        master=master,
        conf={**_DEFAULTS, **conf},
        java_home=java_home,
        progress=lambda: "putting small files together",
        say=say,
        environment=environment,
    )
    return compacted_from_json(result_path.read_text(encoding="utf-8"))
