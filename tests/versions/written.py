"""A deployment as a version left it: in its second batch, right before the commit. Written once, and read by every
version after it.

`python -m tests.versions.written` writes `VERSION.tar.gz` beside this, with what the code of today makes: do that for a
version that is tagged, and for no other. In it: plan, landing, receipts, report, verdict, decision and what the steps
handed on of the second batch, its held rows staged; head, published and held rows, history, index of ids and group of
the first. Tables name their files by their whole path, so that it has to lie where it was written.
"""

from __future__ import annotations

import fcntl
import io
import json
import os
import shutil
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

from tests.builders.recordings import START_NS, cut, recordings
from tests.fakes.fake_log import FakeLog
from tests.faults.local_faults_batch import make_deployment
from tests.faults.local_faults_watch import run_alone
from tests.faults.power_loss import edges_of, say_group
from wavestitch.batch.plan import PlanRequest
from wavestitch.batch.results import result_to_json
from wavestitch.batch.run import RunOptions, Silent, run_batch
from wavestitch.batch.steps import step_plan, step_publish, step_read, step_reassemble, step_validate
from wavestitch.contracts.position import GroupOffset
from wavestitch.contracts.quantities import Partition
from wavestitch.producers.chunking import ChunkRecord
from wavestitch.tables.stream_tables import StreamTables

HERE = Path(__file__).parent
VERSION = "0.1.0"
TOPIC = "waves"
LEFT = "left.json"
"""Beside the deployment: the log, what was sent, what the group was told, and what the steps returned."""


def place_of(version: str) -> Path:
    return Path("/tmp") / f"wavestitch-{version}"


@contextmanager
def alone_at(version: str) -> Iterator[Path]:
    """Its place, empty before and after, for one process at a time."""
    place = place_of(version)
    handle = os.open(f"{place}.lock", os.O_CREAT | os.O_RDWR, 0o600)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        shutil.rmtree(place, ignore_errors=True)
        yield place
    finally:
        shutil.rmtree(place, ignore_errors=True)
        os.close(handle)


@contextmanager
def unpacked(version: str) -> Iterator[Path]:
    with alone_at(version) as place, tarfile.open(HERE / f"{version}.tar.gz") as kept:
        kept.extractall(place.parent, filter="data")
        yield place


def load_log(left: dict[str, Any]) -> FakeLog:
    log = FakeLog(TOPIC, 2)
    for partition, time_ms, key, headers, value in left["records"]:
        named = tuple((name, bytes.fromhex(said)) for name, said in headers)
        log.append(partition, time_ms, bytes.fromhex(key), named, bytes.fromhex(value))
    log.group = {Partition(int(p)): GroupOffset(at, tag) for p, (at, tag) in json.loads(left["group"]).items()}
    return log


def _said(chunk: ChunkRecord, number: int, partition: int) -> tuple[Any, ...]:
    headers = [(name, value.hex()) for name, value in chunk.headers]
    return partition, START_NS // 10**6 + number, bytes(chunk.key or b"").hex(), headers, bytes(chunk.value).hex()


class Stopped(BaseException):
    """Right before the commit."""


def write(place: Path) -> dict[str, Any]:
    """What the version leaves, besides its files."""
    sent = recordings(5, samples=300)
    chunks = cut(sent, 256)
    per = len(chunks) // len(sent)
    # Of one waveform a chunk is missing, of another one it comes last.
    records = [_said(c, n, n // per % 2) for n, c in enumerate(chunks) if n not in (per, 4 * per)]
    junk = 0, START_NS // 10**6, b"junk".hex(), list[Any](), b"no chunk".hex()
    left: dict[str, Any] = {"records": [junk, *records, _said(chunks[4 * per], 0, 0)], "group": "{}"}
    left["whole"] = {r.waveform_id: bytes(r.samples).hex() for n, r in enumerate(sent) if n != 1}
    left["held"] = [sent[1].waveform_id]
    log = load_log(left)
    run_batch(edges_of(place, log), RunOptions(), watcher=Silent())
    left["group"] = say_group(log)
    edges = edges_of(place, log)
    planned = step_plan(edges, PlanRequest())
    plan_id: str = planned.plan_id  # type: ignore[union-attr]
    read = step_read(edges, plan_id)
    made = step_reassemble(edges, plan_id, read)
    checked = step_validate(edges, plan_id, made)
    with mock.patch.object(StreamTables, "commit", side_effect=Stopped):
        try:
            step_publish(edges, plan_id, made, checked)
        except Stopped:
            pass
        else:
            raise AssertionError("it was to stop before the commit")
    results = {"read": read, "reassemble": made, "validate": checked}
    left["plan"] = plan_id
    left["results"] = {name: result_to_json(result) for name, result in results.items()}
    return left


def main() -> None:
    with alone_at(VERSION) as place:
        make_deployment(place, bootstrap="127.0.0.1:1", topic=TOPIC, most=10)
        text = json.dumps(run_alone(write, [place])).encode()
        with tarfile.open(HERE / f"{VERSION}.tar.gz", "w:gz") as kept:
            kept.add(place, arcname=place.name)
            about = tarfile.TarInfo(f"{place.name}/{LEFT}")
            about.size, about.mode = len(text), 0o640
            kept.addfile(about, io.BytesIO(text))


if __name__ == "__main__":
    main()
