"""Kafka Connect with Iceberg's own sink: chunks to a table as they come, a row each, nothing stitched.

One standalone worker that stays; each job is a connector of two tasks, which is deleted when its table has all rows. A
row is a chunk's bytes, its partition, its offset and its time: Connect's own transforms bring neither the key nor a
header into a row, so it does less than somebody would need who wants to stitch later. It commits every second.
"""

from __future__ import annotations

import os
import socket
import subprocess
import time
import uuid
from collections.abc import Callable
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import httpx
from confluent_kafka.admin import AdminClient, NewTopic
from pyiceberg.table import StaticTable

from benchmarks.children import serve

_COMMIT_MS = 1000
_READY_S = 120.0
_DONE_S = 120.0
_LOOK_S = 0.05
_STATUS_S = 2.0
_LOGGING = """\
rootLogger.level = WARN
rootLogger.appenderRef.out.ref = out
appender.out.type = Console
appender.out.name = out
appender.out.layout.type = PatternLayout
appender.out.layout.pattern = %d{ISO8601} %p %c{1} %m%n
"""


class Worker:
    """A worker of Kafka Connect on loopback, started with the first job, which names the broker."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._client = httpx.Client(timeout=30, trust_env=False)

    def store(self, job: dict[str, Any]) -> dict[str, Any]:
        """`records`: how many rows the table is to have; `output`: a folder for it."""
        folder = Path(job["output"])
        folder.mkdir(parents=True)
        if self._process is None or self._process.poll() is not None:
            self._start(job["bootstrap"], folder.with_name("connect-worker"))
        name = f"sink-{uuid.uuid4().hex[:8]}"
        control = f"{name}-control"
        admin = AdminClient({"bootstrap.servers": job["bootstrap"]})
        admin.create_topics([NewTopic(control, 1, 1)], operation_timeout=30)[control].result(30)
        self._ask("PUT", f"/connectors/{name}/config", _connector(job, control=control))
        try:
            return self._stored(name, folder / "bench" / "chunks", job["records"])
        finally:
            self._ask("DELETE", f"/connectors/{name}")
            admin.delete_topics([control], operation_timeout=30)[control].result(30)

    def _start(self, bootstrap: str, folder: Path) -> None:
        folder.mkdir(exist_ok=True)
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        address = f"http://127.0.0.1:{port}"
        self._client.base_url = httpx.URL(address)
        settings = {
            "bootstrap.servers": bootstrap,
            "listeners": address,
            "offset.storage.file.filename": str(folder / "offsets"),
            "key.converter": "org.apache.kafka.connect.converters.ByteArrayConverter",
            "value.converter": "org.apache.kafka.connect.converters.ByteArrayConverter",
            "plugin.discovery": "service_load",
            "consumer.auto.offset.reset": "earliest",
            "consumer.max.partition.fetch.bytes": str(8 << 20),
            "offset.flush.interval.ms": "1000",
        }
        properties = folder / "worker.properties"
        properties.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
        logging = folder / "log4j2.properties"
        logging.write_text(_LOGGING)
        spark = find_spec("pyspark")
        shaded = Path(str(spark and spark.origin)).parent / "jars"
        # Hadoop's client, which Iceberg's writer of Parquet wants, is in PySpark's jars: shaded, one piece.
        classes = [f"{os.environ['BENCH_JARS']}/*", *map(str, shaded.glob("hadoop-client-*.jar"))]
        self._process = subprocess.Popen(
            [
                f"{os.environ['JAVA_HOME']}/bin/java",
                "-Xmx2g",
                f"-Dlog4j2.configurationFile={logging}",
                *("-cp", os.pathsep.join(classes)),
                "org.apache.kafka.connect.cli.ConnectStandalone",
                str(properties),
            ],
            stdin=subprocess.DEVNULL,
        )
        self._until(self._answers, _READY_S, "answer")

    def _answers(self) -> bool:
        try:
            return self._client.get("/connectors").is_success
        except httpx.TransportError:
            return False

    def _stored(self, name: str, table: Path, records: int) -> dict[str, Any]:
        """Seconds from the first file that was committed to the commit of the last row. Before it lie files of a task
        that read everything until the other one had joined: they are of no snapshot, and are given to it."""
        begun: dict[str, float] = {}

        def complete() -> bool:
            for file in (table / "data").rglob("*.parquet"):
                begun.setdefault(str(file), time.monotonic())
            return _newest(table / "metadata") >= records

        self._until(complete, _DONE_S, f"commit {records} rows", lambda: self._refuse_failed(name))
        ended = time.monotonic()
        found = _newest(table / "metadata")
        if found != records:
            raise RuntimeError(f"{found} rows were stored, {records} records are there")
        scan = StaticTable.from_metadata(str(_version(table / "metadata"))).scan()
        files = [each.file.file_path.removeprefix("file:").replace("//", "/") for each in scan.plan_files()]
        return {"seconds": ended - min(begun[file] for file in files), "files": files}

    def _refuse_failed(self, name: str) -> None:
        for task in self._ask("GET", f"/connectors/{name}/status")["tasks"]:
            if task["state"] == "FAILED":
                raise RuntimeError(task["trace"][:1500])

    def _until(
        self, there: Callable[[], bool], seconds: float, what: str, look: Callable[[], None] = lambda: None
    ) -> None:
        end, looked = time.monotonic() + seconds, time.monotonic()
        while not there():
            if self._process is None or self._process.poll() is not None:
                raise RuntimeError("the worker of Kafka Connect has ended; its log says why")
            if time.monotonic() > end:
                raise RuntimeError(f"Kafka Connect did not {what} in {seconds:g} s")
            if time.monotonic() > looked + _STATUS_S:
                look()
                looked = time.monotonic()
            time.sleep(_LOOK_S)

    def _ask(self, method: str, path: str, body: dict[str, str] | None = None) -> Any:
        said = self._client.request(method, path, json=body)
        if said.is_error:
            raise RuntimeError(f"{method} {path}: {said.text[:800]}")
        return said.json() if said.content else {}

    def end(self) -> None:
        if self._process is not None:
            self._process.terminate()
            try:
                self._process.wait(10)
            except subprocess.TimeoutExpired:
                self._process.kill()


def _version(metadata: Path) -> Path | None:
    hint = metadata / "version-hint.text"
    return metadata / f"v{hint.read_text().strip()}.metadata.json" if hint.exists() else None


def _newest(metadata: Path) -> int:
    """How many rows whoever queries the table finds now."""
    version = _version(metadata)
    return 0 if version is None else _rows(version)


@lru_cache
def _rows(version: Path) -> int:
    """Read once: what looks is not to cost the contender more than it must."""
    found = StaticTable.from_metadata(str(version)).current_snapshot()
    return 0 if found is None or found.summary is None else int(found.summary["total-records"] or 0)


def _connector(job: dict[str, Any], *, control: str) -> dict[str, str]:
    transforms = "org.apache.kafka.connect.transforms"
    return {
        "connector.class": "org.apache.iceberg.connect.IcebergSinkConnector",
        "tasks.max": "2",
        "topics": job["topic"],
        "transforms": "row,place",
        "transforms.row.type": f"{transforms}.HoistField$Value",
        "transforms.row.field": "payload",
        "transforms.place.type": f"{transforms}.InsertField$Value",
        "transforms.place.partition.field": "partition",
        "transforms.place.offset.field": "offset",
        "transforms.place.timestamp.field": "time",
        "iceberg.tables": "bench.chunks",
        "iceberg.tables.auto-create-enabled": "true",
        "iceberg.tables.write-props.write.parquet.compression-codec": "zstd",
        "iceberg.tables.write-props.write.parquet.compression-level": "1",
        "iceberg.catalog.type": "hadoop",
        "iceberg.catalog.warehouse": f"file://{job['output']}",
        "iceberg.control.topic": control,
        "iceberg.control.commit.interval-ms": str(_COMMIT_MS),
        "iceberg.kafka.bootstrap.servers": job["bootstrap"],
    }


if __name__ == "__main__":
    worker = Worker()
    try:
        serve(worker.store)
    finally:
        worker.end()
