"""Spark SQL over the same catalog: an independent reader of what was published, and its maintenance beside ours."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from base64 import b64decode
from pathlib import Path

import numpy as np

from tests.builders.table_rows import first_head, published_row, stage
from wavestitch.contracts.sample_kinds import Encoding
from wavestitch.tables.catalog import CatalogSettings
from wavestitch.tables.stream_tables import StreamTables

ENCODINGS: tuple[Encoding, ...] = ("fast", "small")
ROOT = Path(__file__).resolve().parents[2]

# In a process of its own: a JVM of this session may have been started without the jars.
SPARK = """
import json, sys
from pyspark.sql import SparkSession
jars, database, warehouse = sys.argv[1:]
builder = SparkSession.builder.master("local[1]").config("spark.jars", jars).config("spark.ui.enabled", "false")
for key, value in {
    "": "org.apache.iceberg.spark.SparkCatalog",
    ".catalog-impl": "org.apache.iceberg.jdbc.JdbcCatalog",
    ".uri": f"jdbc:sqlite:{database}",
    ".warehouse": warehouse,
}.items():
    builder = builder.config("spark.sql.catalog.local" + key, value)
spark = builder.config("spark.sql.session.timeZone", "UTC").config(
    "spark.sql.extensions", "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions"
).getOrCreate()
def ask(sql):
    return [json.loads(row) for row in spark.sql(sql).toJSON().collect()]
mean = "aggregate(samples, 0D, (sum, x) -> sum + x) / size(samples) AS mean, md5(array_join(samples, ',')) AS all"
rows = ask(f"SELECT waveform_id, source, {mean}, start_time_ns, chunks, first_record_time, last_record_time "
           "FROM local.ecg.waveforms ORDER BY waveform_id")
def by_path(name):
    found = spark.read.parquet(f"{warehouse}/ecg/waveforms/data/{name}.parquet")
    found.createOrReplaceTempView("file")
    return ask(f"SELECT waveform_id, source, {mean} FROM file ORDER BY waveform_id")
small = by_path("small")
# Its own reader of nested columns does not know how bytes are split.
spark.conf.set("spark.sql.parquet.enableNestedColumnVectorizedReader", "false")
fast = by_path("fast")
by_time = ask("SELECT waveform_id FROM local.ecg.waveforms WHERE last_record_time > first_record_time "
              "AND last_record_time >= TIMESTAMP '2026-01-05 12:00:00.001' AND start_time >= DATE '2026-01-05'")
snapshots = ask("SELECT snapshot_id, summary['wavestitch.sequence'] AS sequence FROM local.ecg.waveforms.snapshots "
                "ORDER BY committed_at")
partitions = ask("SELECT partition.start_time_day AS day, record_count FROM local.ecg.waveforms.partitions")
spark.sql("CALL local.system.rewrite_data_files(table => 'ecg.waveforms', options => map('rewrite-all', 'true'))")
spark.stop()
print(json.dumps([rows, fast, small, by_time, snapshots, partitions]))
"""


def test_spark_reads_what_was_published_and_its_maintenance_leaves_the_head(tmp_path, java_home, spark_table_jars):
    settings = CatalogSettings("local", f"sqlite:///{tmp_path}/catalog.db", f"file://{tmp_path}/warehouse")
    tables = StreamTables(settings, "ecg")
    one = tables.commit(None, first_head(), [])
    # Of some a page holds many, of one it holds a part.
    expected = [published_row("a", size=1_500_000), *(published_row(f"b{n}", size=20 + 2 * n) for n in range(20))]
    files = [stage(tables.data_folder(), e, expected[i::2], encoding=e) for i, e in enumerate(ENCODINGS)]
    two = tables.commit(one, one.next(), files)

    rows, fast, small, by_time, snapshots, partitions = ask_spark(tmp_path, java_home, spark_table_jars)

    expected.sort(key=lambda r: r["waveform_id"])
    ids = [r["waveform_id"] for r in expected]
    assert [r["waveform_id"] for r in rows] == ids
    by_path = {r["waveform_id"]: r for r in (*fast, *small)}
    assert sorted(by_path) == sorted(ids)
    for row, wanted in zip(rows, expected, strict=True):
        said = {
            "source": "bench",
            "mean": np.mean(wanted["samples"]),
            "all": hashlib.md5(",".join(map(str, wanted["samples"])).encode()).hexdigest(),
        }
        for found in (row, by_path[row["waveform_id"]]):
            assert {n: found[n] for n in said} == said
        assert row["start_time_ns"] == wanted["start_time_ns"]
        assert [c | {"piece": b64decode(c["piece"])} for c in row["chunks"]] == wanted["chunks"]
        assert row["last_record_time"] == "2026-01-05T12:00:00.001Z"
    assert sorted(r["waveform_id"] for r in by_time) == ids
    assert snapshots == [
        {"snapshot_id": one.snapshot_id, "sequence": "1"},
        {"snapshot_id": two.snapshot_id, "sequence": "2"},
    ]
    assert partitions == [{"day": "2026-01-05", "record_count": 21}]

    # Spark has compacted the table meanwhile: a snapshot that is no head, on which the next commit stands.
    assert tables.waveforms().metadata.current_snapshot_id != two.snapshot_id
    assert tables.head().snapshot_id == two.snapshot_id
    assert set(tables.published(ids)) == set(ids)
    three = tables.commit(two, two.next(), [])
    assert tables.heads() == [three, two, one]


def ask_spark(folder: Path, java_home: Path, jars: list[Path]) -> list[list[dict]]:
    argv = [sys.executable, "-c", SPARK, ",".join(map(str, jars)), f"{folder}/catalog.db", f"file://{folder}/warehouse"]
    environment = {**os.environ, "JAVA_HOME": str(java_home), "SPARK_LOCAL_IP": "127.0.0.1"}
    done = subprocess.run(argv, capture_output=True, text=True, timeout=300, env=environment, cwd=ROOT, check=False)
    assert done.returncode == 0, done.stderr[-4000:]
    return json.loads(done.stdout.splitlines()[-1])
