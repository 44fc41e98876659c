"""What a whole batch costs, part by part, beside a bare consume loop over the same topic.

`python -m benchmarks.whole_batch` starts a broker of its own, fills a topic (`--mib` of 64 KiB chunks, waveforms of
1 MiB) and carries it through one batch, from plan to moved offsets. Spark's start-up is what the same step takes for a
batch of a single waveform, run just before. MB/s are 10^6 bytes of payload; CPU counts this process and all it started.
"""

from __future__ import annotations

import argparse
import json
import resource
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from confluent_kafka import Consumer, TopicPartition

from consumers.client_settings import consumer_config
from wavestitch.batch.run import RunOptions, Silent, run_batch
from wavestitch.batch.site import Site
from wavestitch.local.broker import start_broker, stop_broker
from wavestitch.local.jars import KAFKA, cached_jars
from wavestitch.local.java import find_java
from wavestitch.local.stack import CACHE, make_topic, write_config
from wavestitch.producers.chunking import cut_recording
from wavestitch.producers.partitioning import Strategy
from wavestitch.producers.recording import make_recording
from wavestitch.producers.sender import send_chunks
from wavestitch.settings import load_settings

STREAM = "bench"
PARTITIONS = 4
WAVEFORM_BYTES = 1 << 20
CHUNK_BYTES = 64 << 10


@dataclass(frozen=True)
class Cost:
    """Wall and CPU seconds."""

    wall: float
    cpu: float

    def __sub__(self, other: Cost) -> Cost:
        return Cost(self.wall - other.wall, self.cpu - other.cpu)


def spent() -> Cost:
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return Cost(time.monotonic(), sum(u.ru_utime + u.ru_stime for u in used))


class Stopwatch(Silent):
    """A `Watcher` that notes what every step costs."""

    def __init__(self) -> None:
        self.costs: dict[str, Cost] = {}
        self._step = ""
        self._since = spent()

    def begin(self, step: str, total: int | None = None) -> None:
        now = spent()
        if self._step:
            self.costs[self._step] = now - self._since
        self._step, self._since = step, now


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mib", type=int, default=1024)
    parser.add_argument("--strategy", type=Strategy, default=Strategy.WAVEFORM_STICKY)
    parser.add_argument("--json", type=Path, help="write the figures there, too")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="wavestitch-bench-") as scratch, site_with_broker(Path(scratch)) as site:
        print("a batch of one waveform: what the parts cost before there is anything to do", flush=True)
        fill(site, 1, options.strategy)
        floor = carry(site)
        print(f"sending {options.mib} MiB", flush=True)
        fill(site, options.mib, options.strategy, seed=1)
        raw = consume(site)
        costs = carry(site)
        figures = report(options.mib << 20, raw, costs, floor)
        if options.json:
            options.json.write_text(json.dumps(figures, indent=1))


@contextmanager
def site_with_broker(folder: Path) -> Iterator[Site]:
    java_home = find_java(CACHE)
    jars = cached_jars(KAFKA, cache_dir=CACHE, java_home=java_home, say=print)
    broker = start_broker(folder=folder / "kafka", java_home=java_home, jars=jars)
    try:
        make_topic(broker.bootstrap, STREAM, partitions=PARTITIONS)
        streams = folder / "streams"
        streams.mkdir()
        (streams / f"{STREAM}.yaml").write_text(
            f"topic: {STREAM}\ngroup: {STREAM}\nlimits: {{max_clock_skew: 36500 d, max_batch_bytes: 64 GiB}}\n"
            "expectations:\n  - type: expect_column_values_to_be_between\n"
            "    kwargs: {column: sampling_rate_hz, min_value: 1, max_value: 100000}\n"
        )
        config = write_config(folder, bootstrap=broker.bootstrap, java_home=java_home, streams=streams)
        yield Site(load_settings({"WAVESTITCH_CONFIG": str(config)}))
    finally:
        stop_broker(folder / "kafka")


def fill(site: Site, waveforms: int, strategy: Strategy, *, seed: int = 0) -> None:
    """ECG-like noise: a random walk, so that a codec has something to do."""
    rng = np.random.default_rng(seed)
    for first in range(0, waveforms, 64):
        chunks = []
        for w in range(first, min(first + 64, waveforms)):
            walk = np.cumsum(rng.integers(-8, 9, WAVEFORM_BYTES // 2)).astype("<i2")
            recording = make_recording(
                waveform_id=f"bench-{seed}-{w:06d}",
                source="bench",
                channel="x",
                start_time_ns=time.time_ns(),
                sampling_rate_hz=1000,
                sample_format="i16le",
                units="mV",
                adc_gain=200,
                baseline=0,
                samples=walk.tobytes(),
            )
            chunks.append(cut_recording(recording, CHUNK_BYTES))
        # Round robin means neighbours interleaved, as many sensors would send.
        grouped = zip(*chunks, strict=True) if strategy is Strategy.ROUND_ROBIN else iter(chunks)
        rows = [c for group in grouped for c in group]
        send_chunks(rows, topic=STREAM, settings=site.producer_settings(), strategy=strategy)


def consume(site: Site) -> Cost:
    """A bare consume loop over what the next batch will read: key, headers and value touched, nothing kept."""
    stream, head = site.stream(STREAM), site.tables(STREAM).head()
    assert head is not None, "a batch has run"
    ends = site.log.ends(stream.topic, sorted(head.positions))
    left = {p for p, at in head.positions.items() if at.next_offset < ends[p].stable_end}
    consumer = Consumer(consumer_config(site.kafka, group=stream.group, isolation="read_committed"))
    consumer.assign([TopicPartition(stream.topic, p, head.positions[p].next_offset) for p in left])
    began, touched = spent(), 0
    while left:
        for message in consumer.consume(500, 1.0):
            if message.error() is None:
                touched += len(message.value() or b"") + len(message.key() or b"") + len(message.headers() or ())
            elif message.offset() >= ends[message.partition()].stable_end:
                left.discard(message.partition())
    cost = spent() - began
    consumer.close()
    return cost


def carry(site: Site) -> dict[str, Cost]:
    watch = Stopwatch()
    done = run_batch(site, STREAM, RunOptions(), watcher=watch)
    watch.begin("done")
    assert done["published"]["identity_balances"]
    return watch.costs


def report(size: int, raw: Cost, costs: dict[str, Cost], floor: dict[str, Cost]) -> dict[str, dict[str, float]]:
    """Print the table; the same figures as JSON."""
    whole = Cost(sum(c.wall for c in costs.values()), sum(c.cpu for c in costs.values()))
    rows = {
        "raw consume loop, 1 process": raw,
        "read + land, 2 processes": costs["read"],
        "reassemble, with Spark's start": costs["reassemble"],
        "reassemble, without": costs["reassemble"] - floor["reassemble"],
        "validate": costs["validate"],
        "publish": costs["publish"],
        "whole batch, with Spark's start": whole,
        "whole batch, without": whole - floor["reassemble"],
    }
    print(f"{'':34}{'wall s':>9}{'CPU s':>9}{'MB/s':>9}{'x raw':>8}")
    figures = {}
    for name, cost in rows.items():
        rate = size / 1e6 / max(cost.wall, 1e-3)
        figures[name] = {
            "wall_s": cost.wall,
            "cpu_s": cost.cpu,
            "mb_s": rate,
            "of_raw": raw.wall / max(cost.wall, 1e-3),
        }
        print(f"{name:34}{cost.wall:9.2f}{cost.cpu:9.2f}{rate:9.1f}{figures[name]['of_raw']:8.2f}")
    return figures


if __name__ == "__main__":
    main()
