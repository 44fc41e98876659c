"""A Spark app with nothing to do: starts what every app of ours starts, a session and Python workers, and ends."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
from pyspark.sql import SparkSession


def _unchanged(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    yield from batches


if __name__ == "__main__":
    spark = SparkSession.builder.getOrCreate()
    spark.range(0, 2, 1, 2).mapInArrow(_unchanged, "id long").collect()
    spark.stop()
