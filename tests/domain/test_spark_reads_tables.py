"""Spark SQL over the same catalog: an independent reader of what was published, and its maintenance beside ours."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from base64 import b64decode
from pathlib import Path

from tests.builders.table_rows import first_head, published_row, stage
from wavestitch.tables.catalog import CatalogSettings
from wavestitch.tables.stream_tables import StreamTables

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
rows = ask("SELECT waveform_id, hex(samples) AS samples, start_time_ns, chunks, first_record_time, last_record_time "
           "FROM local.ecg.waveforms ORDER BY waveform_id")
by_time = ask("SELECT waveform_id FROM local.ecg.waveforms WHERE last_record_time > first_record_time "
              "AND last_record_time >= TIMESTAMP '2026-01-05 12:00:00.001' AND start_time >= DATE '2026-01-05'")
snapshots = ask("SELECT snapshot_id, summary['wavestitch.sequence'] AS sequence FROM local.ecg.waveforms.snapshots "
                "ORDER BY committed_at")
partitions = ask("SELECT partition.start_time_day AS day, record_count FROM local.ecg.waveforms.partitions")
spark.sql("CALL local.system.rewrite_data_files(table => 'ecg.waveforms', options => map('rewrite-all', 'true'))")
spark.stop()
print(json.dumps([rows, by_time, snapshots, partitions]))
"""


def test_spark_reads_what_was_published_and_its_maintenance_leaves_the_head(tmp_path, java_home, spark_table_jars):
    settings = CatalogSettings("local", f"sqlite:///{tmp_path}/catalog.db", f"file://{tmp_path}/warehouse")
    tables = StreamTables(settings, "ecg")
    one = tables.commit(None, first_head(), [])
    expected = [published_row("a"), published_row("b")]
    files = [stage(tables.data_folder(), r["waveform_id"], [r]) for r in expected]
    two = tables.commit(one, one.next(), files)

    rows, by_time, snapshots, partitions = ask_spark(tmp_path, java_home, spark_table_jars)

    assert [r["waveform_id"] for r in rows] == ["a", "b"]
    for row, wanted in zip(rows, expected, strict=True):
        assert bytes.fromhex(row["samples"]) == wanted["samples"]
        assert row["start_time_ns"] == wanted["start_time_ns"]
        assert [c | {"piece": b64decode(c["piece"])} for c in row["chunks"]] == wanted["chunks"]
        assert row["last_record_time"] == "2026-01-05T12:00:00.001Z"
    assert [r["waveform_id"] for r in by_time] == ["a", "b"]
    assert snapshots == [
        {"snapshot_id": one.snapshot_id, "sequence": "1"},
        {"snapshot_id": two.snapshot_id, "sequence": "2"},
    ]
    assert partitions == [{"day": "2026-01-05", "record_count": 2}]

    # Spark has compacted the table meanwhile: a snapshot that is no head, on which the next commit stands.
    assert tables.waveforms().metadata.current_snapshot_id != two.snapshot_id
    assert tables.head().snapshot_id == two.snapshot_id
    assert set(tables.published(["a", "b"])) == {"a", "b"}
    three = tables.commit(two, two.next(), [])
    assert tables.heads() == [three, two, one]


def ask_spark(folder: Path, java_home: Path, jars: list[Path]) -> list[list[dict]]:
    argv = [sys.executable, "-c", SPARK, ",".join(map(str, jars)), f"{folder}/catalog.db", f"file://{folder}/warehouse"]
    environment = {**os.environ, "JAVA_HOME": str(java_home), "SPARK_LOCAL_IP": "127.0.0.1"}
    done = subprocess.run(argv, capture_output=True, text=True, timeout=300, env=environment, cwd=ROOT, check=False)
    assert done.returncode == 0, done.stderr[-4000:]
    return json.loads(done.stdout.splitlines()[-1])
