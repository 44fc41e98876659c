"""What is measured on: a broker of its own, topics filled with known waveforms, and a deployment.

A topic begins with one small waveform a partition, so that the batch that is measured is never a stream's first.
"""

from __future__ import annotations

import json
import os
import shutil
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import xxhash
from confluent_kafka.admin import AdminClient, NewTopic

from spark_apps.start_archive import archived_start
from wavestitch.batch.deployment import Deployment
from wavestitch.contracts.quantities import Partition
from wavestitch.local.broker import start_broker, stop_broker
from wavestitch.local.folders import CACHE
from wavestitch.local.jars import KAFKA, cached_jars
from wavestitch.local.java import find_java
from wavestitch.local.stack import write_config
from wavestitch.producers.chunking import ChunkRecord, cut_recording
from wavestitch.producers.partitioning import Strategy
from wavestitch.producers.recording import make_recording
from wavestitch.producers.sender import send_chunks
from wavestitch.settings import load_settings

Say = Callable[[str], None]
STRATEGIES = {"sticky": Strategy.WAVEFORM_STICKY, "round-robin": Strategy.ROUND_ROBIN}
_AT_ONCE = 64 << 20
_POOL = 16 << 20
_DAY_NS = 86_400 * 10**9


@dataclass(frozen=True, slots=True)
class Topic:
    """A filled topic. `starts` and `ends` per partition are what is measured; what lies before is the prelude.
    `prelude`: offsets of it, over all partitions. `digests`: a JSON file, id to XXH3-128 of each measured waveform."""

    name: str
    starts: list[int]
    ends: list[int]
    prelude: int
    bytes: int
    waveforms: int
    digests: str

    @property
    def records(self) -> int:
        return sum(self.ends) - sum(self.starts)

    def ranges(self) -> list[list[int]]:
        """[partition, start, end] of what is measured."""
        return [[p, a, b] for p, (a, b) in enumerate(zip(self.starts, self.ends, strict=True))]


@dataclass(frozen=True)
class TestBed:
    """A running broker and a folder for everything else."""

    folder: Path
    bootstrap: str
    broker_pid: int
    java_home: Path
    topics: dict[str, Topic] = field(default_factory=dict)

    def config(self) -> dict[str, str]:
        """The environment of a deployment."""
        return {"WAVESTITCH_CONFIG": str(self.folder / "wavestitch.toml")}

    def deployment(self) -> Deployment:
        return Deployment(load_settings(self.config()))

    def declare(self, stream: str, topic: str, *, most: int = 100_000_000, limits: str = "", more: str = "") -> None:
        """Write `streams/STREAM.yaml`, over what was there: the next plan goes by it. `most`: offsets a batch."""
        path = self.folder / "streams" / f"{stream}.yaml"
        path.write_text(
            f"topic: {topic}\ngroup: {stream}\n"
            f"limits: {{max_clock_skew: 36500 d, max_batch_bytes: 1024 TiB, max_batch_records: {most}{limits}}}\n"
            "expectations:\n  - type: expect_column_values_to_be_between\n"
            "    kwargs: {column: sampling_rate_hz, min_value: 1, max_value: 100000}\n" + more
        )
        # One that was just written would be waited for, by nobody whose streams stand.
        old = path.stat().st_mtime - 60
        os.utime(path, (old, old))

    def topic(self, **wanted: Any) -> Topic:
        """A topic as `fill` makes it; made once and kept for the parts that follow."""
        key = json.dumps({k: v for k, v in wanted.items() if k != "say"}, sort_keys=True)
        if key not in self.topics:
            self.topics[key] = fill(self, **wanted)
        return self.topics[key]

    def need(self, size: int, what: str) -> None:
        """Raises `RuntimeError` unless there is room for this many bytes."""
        free = shutil.disk_usage(self.folder).free
        if free < size:
            raise RuntimeError(
                f"{what} needs {size >> 30} GiB in {self.folder}, {free >> 30} GiB are free; use --folder"
            )

    def forget(self, stream: str) -> None:
        """Remove what a stream's batches left on disk; its tables are not used again."""
        for path in (self.folder / "warehouse" / stream, self.folder / "landing" / stream, self.folder / "data-docs"):
            shutil.rmtree(path, ignore_errors=True)
        (self.folder / "streams" / f"{stream}.yaml").unlink(missing_ok=True)


@contextmanager
def open_test_bed(folder: Path, say: Say) -> Iterator[TestBed]:
    java_home = find_java(CACHE)
    jars = cached_jars(KAFKA, cache_dir=CACHE, java_home=java_home, say=say)
    try:
        broker = start_broker(folder=folder / "kafka", java_home=java_home, jars=jars)
        streams = folder / "streams"
        streams.mkdir()
        # As `wavestitch up` writes it.
        spark_conf = archived_start(cache=CACHE, java_home=java_home, say=say)
        write_config(folder, bootstrap=broker.bootstrap, java_home=java_home, streams=streams, spark_conf=spark_conf)
        yield TestBed(folder, broker.bootstrap, broker.pid, java_home)
    finally:
        stop_broker(folder / "kafka")


def make_topic(
    bed: TestBed, *, partitions: int, prefix: str = "bench", config: Mapping[str, str] = MappingProxyType({})
) -> str:
    name = f"{prefix}-{uuid.uuid4().hex[:8]}"
    admin = AdminClient({"bootstrap.servers": bed.bootstrap})
    new = NewTopic(name, partitions, 1, config=dict(config))
    admin.create_topics([new], operation_timeout=30)[name].result(30)
    return name


def drop_topic(bed: TestBed, name: str) -> None:
    """The broker deletes its files a minute later."""
    AdminClient({"bootstrap.servers": bed.bootstrap}).delete_topics([name], operation_timeout=30)[name].result(30)


def fill(
    bed: TestBed,
    *,
    mib: int,
    layout: str = "sticky",
    partitions: int = 4,
    waveform_kib: int = 1024,
    chunk_bytes: int = 64 << 10,
    say: Say = lambda _: None,
) -> Topic:
    """A topic with a prelude and `mib` MiB of waveforms."""
    topic = make_topic(bed, partitions=partitions)
    began = time.monotonic()
    # As many chunks a waveform as partitions: whole in the same part of the log, whatever the layout.
    prelude = waveforms(partitions, size=partitions << 10, prefix="prelude", seed=99)
    send(bed, topic, [prelude], chunk=1 << 10, layout=layout)
    starts = _ends(bed, topic, partitions)
    size, count = waveform_kib << 10, max(1, (mib << 20) // (waveform_kib << 10))
    digests: dict[str, str] = {}
    step = max(1, _AT_ONCE // size)
    parts = (
        waveforms(min(step, count - first), size=size, prefix="wave", first=first, seed=first // step % 4)
        for first in range(0, count, step)
    )
    send(bed, topic, parts, chunk=chunk_bytes, layout=layout, digests=digests)
    path = bed.folder / f"{topic}-digests.json"
    path.write_text(json.dumps(digests))
    seconds = time.monotonic() - began
    say(f"{topic}: {count} waveforms of {waveform_kib} KiB, {layout}, {partitions} partitions, sent in {seconds:.0f} s")
    ends = _ends(bed, topic, partitions)
    return Topic(topic, starts, ends, sum(starts), count * size, count, str(path))


def waveforms(count: int, *, size: int, prefix: str, first: int = 0, seed: int = 0) -> list[Any]:
    """Recordings of ECG-like noise (a random walk of int16), so that a codec has something to do. All of one day."""
    pool = _pool(max(size, _POOL), seed)
    now = time.time_ns()
    day = now - now % _DAY_NS
    found = []
    for w in range(first, first + count):
        # Each at another place of the pool: no two waveforms have the same bytes.
        at = (w * 65_538) % (len(pool) - size + 2) & ~1
        body = bytearray(pool[at : at + size])
        body[:8] = (w % (1 << 62)).to_bytes(8, "little")
        found.append(
            make_recording(
                waveform_id=f"{prefix}-{w:08d}",
                source=f"monitor-{w % 40}",
                channel="II",
                start_time_ns=day + w % 80_000 * 10**9,
                sampling_rate_hz=1000,
                sample_format="i16le",
                units="mV",
                adc_gain=200,
                baseline=0,
                samples=bytes(body),
            )
        )
    return found


@lru_cache(maxsize=4)
def _pool(size: int, seed: int) -> bytes:
    return np.cumsum(np.random.default_rng(seed).integers(-8, 9, size // 2)).astype("<i2").tobytes()


def send(
    bed: TestBed,
    topic: str,
    parts: Any,
    *,
    chunk: int,
    layout: str = "sticky",
    digests: dict[str, str] | None = None,
) -> None:
    """Cut and send; round robin means neighbours interleaved, as many sensors would send."""
    settings = bed.deployment().kafka
    for part in parts:
        cut = [cut_recording(r, chunk) for r in part]
        groups = zip(*cut, strict=True) if layout == "round-robin" else iter(cut)
        rows: list[ChunkRecord] = [c for group in groups for c in group]
        send_chunks(rows, topic=topic, settings=settings, strategy=STRATEGIES[layout], deadline_seconds=300)
        if digests is not None:
            digests.update({r.waveform_id: xxhash.xxh3_128_hexdigest(r.samples) for r in part})


def _ends(bed: TestBed, topic: str, partitions: int) -> list[int]:
    ends = bed.deployment().log.ends(topic, list(map(Partition, range(partitions))))
    return [ends[p].stable_end for p in sorted(ends)]


def _as_sent(samples: Any) -> Any:
    """The bytes of 16-bit samples that somebody has stored: as they were, or as a list of numbers."""
    return samples.values.to_numpy().astype("<i2") if hasattr(samples, "values") else samples.as_buffer()


def check_samples(files: Sequence[Path], expected: str, *, id_column: str = "waveform_id") -> int:
    """Compare every published waveform with what was produced: each id once, every byte. Returns how many."""
    import pyarrow.parquet as pq  # noqa: PLC0415 - only after the clock has stopped

    wanted = json.loads(Path(expected).read_text())
    seen: set[str] = set()
    for file in files:
        with pq.ParquetFile(file) as parquet:
            for n in range(parquet.num_row_groups):
                rows = parquet.read_row_group(n, columns=[id_column, "samples"])
                for name, samples in zip(rows[id_column], rows["samples"], strict=True):
                    key = name.as_py()
                    if key in seen or wanted.get(key) != xxhash.xxh3_128_hexdigest(_as_sent(samples)):
                        raise RuntimeError(f"waveform {key} is there twice, unknown, or not as it was produced")
                    seen.add(key)
    if len(seen) != len(wanted):
        raise RuntimeError(f"{len(seen)} waveforms came out, {len(wanted)} were produced")
    return len(seen)
