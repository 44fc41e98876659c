"""A straightforward PySpark job with Spark's own Kafka source: group by id, sort by sequence, concatenate, Parquet.

One warm session. No checksum, no check for missing chunks, nothing held: what a user would write first. `samples`:
`bytes`, or `typed` (lists of numbers: Spark's SQL has no such cast, so by Arrow in Python).
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import SparkSession

from benchmarks.children import serve

_HEAP = "6g"
_STITCHED = """
    SELECT waveform_id, meta, size(p) AS chunk_count, aggregate(p, X'', (all, x) -> concat(all, x.value)) AS samples
    FROM (SELECT waveform_id, first(meta) AS meta, array_sort(collect_list(struct(seq, value))) AS p
          FROM chunks GROUP BY waveform_id)"""
_TYPED = "waveform_id string, meta string, chunk_count int, samples array<int>"


def session() -> SparkSession:
    os.environ["PYSPARK_PYTHON"] = sys.executable
    return (
        SparkSession.builder.master("local[2]")
        .config("spark.jars", ",".join(map(str, sorted(Path(os.environ["BENCH_JARS"]).glob("*.jar")))))
        .config("spark.driver.memory", _HEAP)
        .config("spark.ui.enabled", "false")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.sql.shuffle.partitions", "8")
        .getOrCreate()
    )


def reassemble(spark: SparkSession, job: dict[str, Any]) -> dict[str, Any]:
    topic = job["topic"]
    offsets = {
        name: json.dumps({topic: {str(p): o for p, o in enumerate(job[key])}})
        for name, key in (("startingOffsets", "starts"), ("endingOffsets", "ends"))
    }
    found = (
        spark.read.format("kafka")
        .option("kafka.bootstrap.servers", job["bootstrap"])
        .option("subscribe", topic)
        .option("includeHeaders", "true")
        .options(**offsets)
        .load()
    )
    found.selectExpr(
        "cast(key AS string) AS waveform_id",
        "cast(cast(filter(headers, h -> h.key = 'ws-seq')[0].value AS string) AS int) AS seq",
        "cast(filter(headers, h -> h.key = 'ws-meta')[0].value AS string) AS meta",
        "value",
    ).createOrReplaceTempView("chunks")
    output = Path(job["output"])
    rows = spark.sql(_STITCHED)
    if job["samples"] == "typed":
        rows = rows.mapInArrow(_numbers, _TYPED)
    rows.write.option("compression", "zstd").option("parquet.compression.codec.zstd.level", "1").parquet(str(output))
    files = sorted(output.glob("*.parquet"))
    for path in (*files, output):
        fd = os.open(path, os.O_RDONLY)
        os.fsync(fd)
        os.close(fd)
    return {"files": [str(f) for f in files]}


def _numbers(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        samples = batch.column("samples")
        sent = [np.frombuffer(s.as_buffer(), "<i2") for s in samples]
        ends = np.concatenate(([0], np.cumsum([len(s) for s in sent])), dtype=np.int32)
        numbers = pa.ListArray.from_arrays(pa.array(ends), pa.array(np.concatenate(sent).astype(np.int32)))
        yield batch.set_column(3, "samples", numbers)


if __name__ == "__main__":
    held = session()
    serve(lambda job: reassemble(held, job))
