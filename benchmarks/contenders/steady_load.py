"""Devices that send all the time, to loopback: `python -m benchmarks.contenders.steady_load JOB`; ends by itself.

Chunks of 64 KiB of `_SOURCES` waveforms of a MiB that are under way at once, at an even pace. Writes down when the last
chunk of each was acknowledged, and prints what it sent.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from confluent_kafka import Producer

from benchmarks.test_bed import waveforms
from wavestitch.producers.chunking import ChunkRecord, cut_recording

_SOURCES = 20
_WAVEFORM, _CHUNK = 1 << 20, 64 << 10


def main(job: dict[str, Any]) -> None:
    """`mb_s`, `seconds`, `partitions`, `topic`, `bootstrap`; `acknowledged`: a file, of id to seconds since 1970."""
    producer = Producer({"bootstrap.servers": job["bootstrap"], "enable.idempotence": True, "linger.ms": 20})
    acknowledged: dict[str, float] = {}
    failed: list[str] = []

    def note(error: Any, chunk: ChunkRecord, *, last: bool) -> None:
        if error is not None:
            failed.append(str(error))
        elif last:
            acknowledged[chunk.waveform_id] = time.time()

    began, sent = time.monotonic(), 0
    for partition, chunk, last in _chunks(job["partitions"], until=began + job["seconds"]):
        while (early := sent / (job["mb_s"] * 1e6) - (time.monotonic() - began)) > 0:
            producer.poll(min(early, 0.05))
        producer.produce(
            job["topic"],
            value=bytes(chunk.value),
            key=chunk.key,
            headers=list(chunk.headers),
            partition=partition,
            on_delivery=lambda error, _, chunk=chunk, last=last: note(error, chunk, last=last),
        )
        sent += len(chunk.value)
    producer.flush(60)
    took = time.monotonic() - began
    if failed or len(producer):
        raise RuntimeError(f"{len(failed) + len(producer)} chunks were not acknowledged: {failed[:1]}")
    Path(job["acknowledged"]).write_text(json.dumps(acknowledged))
    print(json.dumps({"bytes": sent, "seconds": took}))


def _chunks(partitions: int, *, until: float) -> Iterator[tuple[int, ChunkRecord, bool]]:
    """In turns of all sources, of which each has begun a little later; what has begun is ended."""
    rounds = _WAVEFORM // _CHUNK
    under_way: list[list[ChunkRecord]] = [[] for _ in range(_SOURCES)]
    placed = [0] * _SOURCES
    number = turn = 0
    while time.monotonic() < until or any(under_way):
        for source in range(_SOURCES):
            left = under_way[source]
            if not left and (turn < source * rounds // _SOURCES or time.monotonic() >= until):
                continue
            if not left:
                (recording,) = waveforms(1, size=_WAVEFORM, prefix="fresh", first=number)
                left.extend(reversed(cut_recording(recording, _CHUNK)))
                placed[source] = number % partitions
                number += 1
            chunk = left.pop()
            yield placed[source], chunk, not left
        turn += 1


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
