"""What a batch costs with its payload in an object store, beside a folder: `python -m benchmarks.parts.landing_in_s3`.

The same records are landed both ways in turns, by the readers' own writer, and stitched by Spark's own task. The store
is whatever `--endpoint` names, its login in the variables that Amazon's programs know; without it, moto's server
on loopback, in a process of its own, which has all in memory and is written in Python: it says what our side costs in
CPU, and of wall only a bound.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from statistics import median

from pyarrow.fs import S3FileSystem

from benchmarks.figures import MIB, Cost
from benchmarks.test_bed import waveforms
from consumers.landed_file import read_index
from consumers.landing import LandingWriter
from spark_apps.assignment import write_assignment
from spark_apps.stitching import stitch_assignment
from wavestitch.contracts.assembly import assemble
from wavestitch.contracts.chunk_header import Chunk, parse_chunk
from wavestitch.contracts.chunk_table import ChunkTable
from wavestitch.contracts.offset_range import OffsetRange
from wavestitch.contracts.payload_apart import PayloadPlace
from wavestitch.contracts.quantities import Offset, Partition
from wavestitch.contracts.receipt import LandedSlice
from wavestitch.contracts.stitch_job import StitchJob
from wavestitch.contracts.stream import Limits
from wavestitch.contracts.whole_waveforms import StitchTable
from wavestitch.local.loopback_port import free_ports
from wavestitch.payload_store import open_payload_store
from wavestitch.producers.chunking import cut_recording

_CHUNK, _WAVEFORM = 64 << 10, 4 * MIB
Records = Sequence[tuple[Chunk, bytes]]


def main(argv: Sequence[str]) -> None:
    ask = argparse.ArgumentParser(description=__doc__)
    ask.add_argument("--endpoint", help="of a store; else moto's, started here")
    ask.add_argument("--mib", type=int, default=256)
    ask.add_argument("--rounds", type=int, default=3)
    options = ask.parse_args(argv)
    found = [
        (chunk, bytes(record.value))
        for recording in waveforms(options.mib * MIB // _WAVEFORM, size=_WAVEFORM, prefix="wave")
        for record in cut_recording(recording, _CHUNK)
        if isinstance(chunk := parse_chunk(record.key, record.headers, bytes(record.value)), Chunk)
    ]
    with store_at(options.endpoint) as place, tempfile.TemporaryDirectory(prefix="wavestitch-s3-") as name:
        runs: dict[str, list[tuple[Cost, Cost]]] = {"folder": [], "store": []}
        for n in range(options.rounds + 1):  # the first is not counted
            for kind, mine in runs.items():
                folder = Path(name) / "rig" / uuid.uuid4().hex
                cost = measure(folder, found, place if kind == "store" else None)
                shutil.rmtree(folder)
                if n:
                    mine.append(cost)
    print(f"{options.mib} MiB in chunks of {_CHUNK >> 10} KiB, median of {options.rounds} turns")
    print(f"{'':18}{'folder, s':>12}{'store, s':>12}{'ratio':>8}")
    for step, at in (("land", 0), ("stitch", 1)):
        for what in ("wall", "cpu"):
            here, there = (median(getattr(run[at], what) for run in runs[kind]) for kind in runs)
            print(f"{step + ', ' + what:18}{here:12.2f}{there:12.2f}{there / here:8.2f}")


def measure(folder: Path, records: Records, place: PayloadPlace | None) -> tuple[Cost, Cost]:
    """What landing and stitching took of this process."""
    began = now()
    landed = land(folder, records, place)
    between = now()
    index = ChunkTable.of_index(read_index(folder, landed), 0)
    whole = list(assemble(index, Limits()).values())
    assignment = write_assignment(folder, StitchTable.of(whole))
    text = str(folder)
    job = StitchJob(folder.name, "t", text, text, "int", "fast", (str(landed.file),), (assignment,), place)
    if stitch_assignment(job, assignment).payload_bytes != landed.payload_bytes:
        raise AssertionError("not all of it was stitched")
    end = now()
    if place is not None:
        open_payload_store(place).of(folder).remove()
    return between - began, end - between


def land(folder: Path, records: Records, place: PayloadPlace | None) -> LandedSlice:
    payload = None if place is None else open_payload_store(place).of(folder)
    folder.mkdir(parents=True)
    clock_ms = time.time_ns() // 1_000_000
    slice_ = OffsetRange(Partition(0), Offset(0), Offset(len(records)))
    with LandingWriter(folder, slice_, payload=payload) as writer:
        for n, (chunk, value) in enumerate(records):
            writer.add_chunk(Offset(n), clock_ms, chunk, value)
        return writer.finish([])


def now() -> Cost:
    return Cost(time.monotonic(), time.process_time())


@contextmanager
def store_at(endpoint: str | None) -> Iterator[PayloadPlace]:
    """A bucket of its own there, or in moto's server."""
    with moto() if endpoint is None else using(endpoint) as (address, login):
        bucket = f"wavestitch-{uuid.uuid4().hex[:12]}"
        files = S3FileSystem(
            access_key=login.get("s3.access-key-id"),
            secret_key=login.get("s3.secret-access-key"),
            region="us-east-1",
            endpoint_override=address,
            allow_bucket_creation=True,
        )
        files.create_dir(bucket)
        said = {"s3.endpoint": address, "s3.region": "us-east-1", **login}
        yield PayloadPlace(f"s3://{bucket}/payload", said, 10.0, 60.0, 5)


@contextmanager
def using(endpoint: str) -> Iterator[tuple[str, dict[str, str]]]:
    yield endpoint, {}


@contextmanager
def moto() -> Iterator[tuple[str, dict[str, str]]]:
    (port,) = free_ports(1)
    argv = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
    with tempfile.TemporaryFile() as said:
        server = subprocess.Popen(argv, stdout=said, stderr=said, env={**os.environ, "PYTHONWARNINGS": "ignore"})
        try:
            yield f"http://127.0.0.1:{port}", {"s3.access-key-id": "k", "s3.secret-access-key": "s"}
        finally:
            server.terminate()
            server.wait()


if __name__ == "__main__":
    main(sys.argv[1:])
