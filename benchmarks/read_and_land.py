"""How fast slices are read and landed, against a bare consume loop over the same topic.

`python -m benchmarks.read_and_land` starts a broker of its own (or takes `--bootstrap`), fills a topic and reads it
with one and two processes, each way in turn. Times are of the readers alone, without process start; the landing is
fsynced.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from consumers.client_settings import KafkaSettings, consumer_config, producer_config
from consumers.log_view import KafkaLog
from consumers.unit_reader import read_unit
from wavestitch.contracts.chunk_header import encode_headers
from wavestitch.contracts.offset_range import OffsetRange
from wavestitch.contracts.plan import Plan, PlanKind, plan_from_json
from wavestitch.contracts.stream import Stream
from wavestitch.local.broker import start_broker, stop_broker
from wavestitch.local.jars import KAFKA, cached_jars
from wavestitch.local.java import find_java

MIB = 1 << 20
META = (
    '{"source":"bench","channel":"c","start_time_ns":0,"sampling_rate_hz":1000.0,"sample_format":"i16le","units":"mV",'
    '"adc_gain":1.0,"baseline":0.0}'
)


@dataclass(frozen=True)
class Measured:
    """One reader process: `began` and `ended` on the machine's monotonic clock, CPU of the process, peak RssAnon."""

    began: float
    ended: float
    cpu: float
    peak_bytes: int
    read_bytes: int


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bootstrap", help="an existing broker; without it one is started for this run")
    parser.add_argument("--mib", type=int, default=512, help="payload in the topic")
    parser.add_argument("--chunk-kib", type=int, default=64)
    parser.add_argument("--partitions", type=int, default=4)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--child", choices=("raw", "land"), help=argparse.SUPPRESS)
    options = parser.parse_args(argv)
    if options.child:
        _child(options.child)
        return
    with (
        tempfile.TemporaryDirectory(prefix="wavestitch-bench-") as scratch,
        _broker(Path(scratch), options.bootstrap) as bootstrap,
    ):
        _measure(options, bootstrap, Path(scratch))


@contextmanager
def _broker(scratch: Path, given: str | None) -> Iterator[str]:
    if given:
        yield given
        return
    cache = Path(__file__).resolve().parents[1] / ".wavestitch" / "cache"
    java = find_java(cache)
    jars = cached_jars(KAFKA, cache_dir=cache, java_home=java, say=print)
    try:
        yield start_broker(folder=scratch / "kafka", java_home=java, jars=jars, say=print).bootstrap
    finally:
        stop_broker(scratch / "kafka")


def _measure(options: argparse.Namespace, bootstrap: str, scratch: Path) -> None:
    kafka = KafkaSettings(bootstrap)
    topic = f"bench-{uuid.uuid4().hex[:8]}"
    admin = AdminClient({"bootstrap.servers": bootstrap})
    config = {"max.message.bytes": str(options.chunk_kib * 1024 + 64 * 1024)}
    admin.create_topics([NewTopic(topic, options.partitions, 1, config=config)], operation_timeout=30)[topic].result(30)
    records = options.mib * MIB // (options.chunk_kib * 1024) // options.partitions
    _fill(kafka, topic, partitions=options.partitions, records=records, size=options.chunk_kib * 1024)
    print(f"{topic}: {options.partitions} partitions of {records} chunks of {options.chunk_kib} KiB")
    topic_id = KafkaLog(kafka).topic(topic).topic_id
    figures: dict[tuple[str, int], list[dict[str, float]]] = {}
    for round_ in range(options.rounds):
        for way in ("raw", "land"):
            for processes in (1, 2):
                plan = _plan(topic, topic_id, options.partitions, records, processes)
                folder = scratch / f"{way}-{processes}-{round_}"
                figures.setdefault((way, processes), []).append(_run(way, plan, kafka, folder))
                shutil.rmtree(folder, ignore_errors=True)
    admin.delete_topics([topic])[topic].result(30)
    _print(figures)


def _print(figures: dict[tuple[str, int], list[dict[str, float]]]) -> None:
    print(f"{'way':<6}{'processes':>10}{'MB/s (median; best)':>24}{'CPU s':>8}{'peak private MiB each':>24}")
    speeds = {}
    for (way, processes), runs in figures.items():
        speed = speeds[way, processes] = statistics.median(r["speed"] for r in runs)
        best = max(r["speed"] for r in runs)
        cpu = statistics.median(r["cpu"] for r in runs)
        peak = max(r["peak"] for r in runs) / MIB
        print(f"{way:<6}{processes:>10}{f'{speed:.0f}; {best:.0f}':>24}{cpu:>8.2f}{peak:>24.0f}")
    for processes in (1, 2):
        ratio = speeds["land", processes] / speeds["raw", processes]
        print(f"read and land / raw loop, {processes} processes: {ratio:.2f}")


def _fill(kafka: KafkaSettings, topic: str, *, partitions: int, records: int, size: int) -> None:
    config = {**producer_config(kafka), "linger.ms": 20, "batch.size": 1_000_000, "message.max.bytes": size + 65536}
    producer = Producer(config)
    pool = [random.Random(seed).randbytes(size) for seed in range(16)]  # noqa: S311
    for partition in range(partitions):
        for i in range(records):
            waveform, seq = divmod(i, 64)
            name, value = f"p{partition}-w{waveform}", pool[i % len(pool)]
            headers = encode_headers(waveform_id=name, seq=seq, count=None, meta=META, value=value, digest=None)
            while True:
                try:
                    producer.produce(topic, value, name, partition=partition, headers=headers)
                    break
                except BufferError:
                    producer.poll(0.05)
            producer.poll(0)
    if producer.flush(120):
        raise SystemExit("the topic could not be filled within two minutes")


def _plan(topic: str, topic_id: str, partitions: int, records: int, processes: int) -> Plan:
    stream = Stream.model_validate({"name": "bench", "topic": topic, "group": f"g-{topic}"})
    slices = [OffsetRange(p, 0, records) for p in range(partitions)]
    return Plan(
        plan_id="",
        kind=PlanKind.MANUAL,
        stream=stream,
        topic_id=topic_id,
        partitions=partitions,
        ranges=tuple(slices),
        units=tuple(tuple(slices[n::processes]) for n in range(processes)),
        positions={},
        ends={},
        generation=1,
        base_sequence=0,
        base_snapshot=0,
        held_snapshot=None,
        watermark_ms=0,
        clock_ms=0,
        scope=None,
        why={},
        mean_record_bytes=0.0,
        code_version="bench",
        nonce="",
    ).sealed()


def _run(way: str, plan: Plan, kafka: KafkaSettings, folder: Path) -> dict[str, float]:
    folder.mkdir()
    argv = [sys.executable, "-m", "benchmarks.read_and_land", "--child", way]
    children = []
    for unit in range(len(plan.units)):
        child = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        children.append(child)
        job = {"plan": plan.to_json(), "unit": unit, "bootstrap": kafka.bootstrap, "folder": str(folder)}
        if child.stdin is not None:
            child.stdin.write(json.dumps(job) + "\n")
            child.stdin.flush()
    # All begin together: each says that it is ready, and waits for the word.
    for child in children:
        if child.stdout is not None:
            child.stdout.readline()
    measured = []
    for child in children:
        if child.stdin is not None:
            child.stdin.write("go\n")
            child.stdin.flush()
    for child in children:
        out, _ = child.communicate()
        if child.returncode:
            raise SystemExit("a reader failed; its words are above")
        measured.append(Measured(**json.loads(out)))
    seconds = max(m.ended for m in measured) - min(m.began for m in measured)
    return {
        "speed": sum(m.read_bytes for m in measured) / 1e6 / seconds,
        "cpu": sum(m.cpu for m in measured),
        "peak": max(m.peak_bytes for m in measured),
    }


def _child(way: str) -> None:
    job = json.loads(sys.stdin.readline())
    plan, kafka = plan_from_json(job["plan"]), KafkaSettings(job["bootstrap"])
    peak = [0]
    threading.Thread(target=_watch_memory, args=(peak,), daemon=True).start()
    print("ready", flush=True)
    sys.stdin.readline()
    began, cpu = time.monotonic(), _cpu()
    if way == "land":
        receipt = read_unit(plan=plan, unit=job["unit"], kafka=kafka, folder=Path(job["folder"]))
        read = sum(s.payload_bytes for s in receipt.slices)
    else:
        read = _consume(plan, job["unit"], kafka)
    measured = Measured(began, time.monotonic(), _cpu() - cpu, peak[0], read)
    print(json.dumps(measured.__dict__), flush=True)


def _consume(plan: Plan, unit: int, kafka: KafkaSettings) -> int:
    """The bare loop: all partitions at once, key, value and headers touched, nothing kept."""
    consumer = Consumer(consumer_config(kafka, group="raw", isolation="read_committed"))
    left = sum(s.size for s in plan.units[unit])
    consumer.assign([TopicPartition(plan.stream.topic, s.partition, s.start) for s in plan.units[unit]])
    read = 0
    while left:
        for message in consumer.consume(min(500, left), 0.1):
            if message.error() is None:
                left -= 1
                read += len(message.value())
                message.key()
                message.headers()
    consumer.close()
    return read


def _cpu() -> float:
    used: Any = resource.getrusage(resource.RUSAGE_SELF)
    return float(used.ru_utime + used.ru_stime)


def _watch_memory(peak: list[int]) -> None:
    while True:
        for line in Path("/proc/self/status").read_text().splitlines():
            if line.startswith("RssAnon:"):
                peak[0] = max(peak[0], int(line.split()[1]) * 1024)
        time.sleep(0.01)


if __name__ == "__main__":
    os.environ.setdefault("PYTHONUNBUFFERED", "1")
    main()
