"""What it would cost to prove each kind of file with each digest: `python -m benchmarks.digest_cost`, without a broker.

Lands and stitches a sample with the product's own functions, to see how many bytes a batch digests where, and times
the digests. Decides nothing: docs/decisions/0013 does, by these figures.
"""

from __future__ import annotations

import hashlib
import json
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import xxhash

from benchmarks.figures import GIB, MIB
from benchmarks.page import FIGURES
from benchmarks.test_bed import waveforms
from consumers.landed_file import besides_payload, open_landing, read_index
from consumers.landing import LandingWriter
from consumers.unit_reader import write_receipt
from spark_apps.assignment import write_assignment
from spark_apps.stitching import stitch_assignment
from wavestitch.contracts.assembly import assemble
from wavestitch.contracts.chunk_header import Chunk, crc32, parse_chunk
from wavestitch.contracts.chunk_table import ChunkTable
from wavestitch.contracts.offset_range import OffsetRange
from wavestitch.contracts.quantities import Offset, Partition
from wavestitch.contracts.receipt import Receipt
from wavestitch.contracts.sample_kinds import Encoding
from wavestitch.contracts.stitch_job import StitchJob
from wavestitch.contracts.stream import Limits
from wavestitch.contracts.whole_waveforms import StitchTable
from wavestitch.producers.chunking import cut_recording

DIGESTS: dict[str, Callable[[bytes], Any]] = {
    "crc32": crc32,
    "xxh3_128": lambda block: xxhash.xxh3_128(block).digest(),
    "sha256": lambda block: hashlib.sha256(block).digest(),
    "blake2b": lambda block: hashlib.blake2b(block, digest_size=32).digest(),
}
_SAMPLE = 64 * MIB
_TURNS = 5
_ENCODING: Encoding = "fast"


@dataclass(frozen=True, slots=True)
class Kind:
    """What a batch digests: `part` of its payload's bytes, so many times."""

    name: str
    part: float
    passes: int


def main() -> None:
    speeds = {size: cpu_per_gib(size) for size in (1 << 10, 64 << 10, 1 << 20)}
    print(f"CPU s per GiB, best of {_TURNS} turns")
    print(f"{'':14}{''.join(f'{name:>12}' for name in DIGESTS)}")
    for size, found in speeds.items():
        print(f"{size >> 10:5} KiB each{''.join(f'{found[name]:12.3f}' for name in DIGESTS)}")
    batch = json.loads(FIGURES.read_text())["parts"]["side-by-side"]["sticky"]["ours: end to end, warm"]
    whole = batch["cpu_s"] / batch["bytes"] * GIB
    print(f"\nA batch takes {whole:.2f} CPU s a GiB ({FIGURES.name}). Of that, in %:")
    for chunk in (64 << 10, 1 << 10):
        print(f"\nchunks of {chunk >> 10} KiB{'':22}{'bytes a GiB':>14}{'passes':>8}", end="")
        print("".join(f"{name:>10}" for name in DIGESTS), "   sha256, CPU s of 256 MiB and of 1 GiB")
        for kind in sizes(chunk):
            # Files are digested in blocks; a chunk is digested by itself.
            each = speeds[chunk] if kind.name == "each chunk, in memory" else speeds[1 << 20]
            cost = {name: kind.part * kind.passes * each[name] for name in DIGESTS}
            print(f"{kind.name:36}{kind.part * GIB:14,.0f}{kind.passes:8}", end="")
            print("".join(f"{100 * cost[name] / whole:10.2f}" for name in DIGESTS), end="")
            print(f"{cost['sha256'] / 4:12.4f}{cost['sha256']:10.4f}")


def cpu_per_gib(size: int) -> dict[str, float]:
    block = np.random.default_rng(1).bytes(size)
    times = 16 * MIB // size
    found = dict.fromkeys(DIGESTS, float("inf"))
    for _ in range(_TURNS):  # in turns: what else runs on the machine hits all of them
        for name, digest in DIGESTS.items():
            began = time.process_time()
            for _ in range(times):
                digest(block)
            found[name] = min(found[name], (time.process_time() - began) * GIB / (times * size))
    return found


def sizes(chunk: int) -> list[Kind]:
    """What a batch of such chunks digests, as the product writes it. Waveforms of 16 chunks."""
    size = 16 * chunk
    with tempfile.TemporaryDirectory(prefix="wavestitch-digest-") as name:
        folder = Path(name)
        with LandingWriter(folder, OffsetRange(Partition(0), Offset(0), Offset(_SAMPLE // chunk))) as writer:
            offset = Offset(0)
            for recording in waveforms(_SAMPLE // size, size=size, prefix="wave"):
                for record in cut_recording(recording, chunk):
                    found = parse_chunk(record.key, record.headers, bytes(record.value))
                    if not isinstance(found, Chunk):
                        raise AssertionError(found.evidence)
                    writer.add_chunk(offset, recording.metadata.start_time_ns // 1_000_000, found, bytes(record.value))
                    offset = Offset(offset + 1)
            landed = writer.finish([])
        receipt = write_receipt(folder, Receipt("0" * 32, 0, [landed], 1.0))
        index = sum(besides_payload(b).size for b in open_landing(folder / str(landed.file)).to_batches())
        whole = list(assemble(ChunkTable.of_index(read_index(folder, landed), 0), Limits()).values())
        assignment = write_assignment(folder, StitchTable.of(whole))
        job = StitchJob("0" * 32, "t", name, name, "int", _ENCODING, (str(landed.file),), (assignment,))
        result = stitch_assignment(job, assignment)
        small = [receipt, folder / assignment, folder / result.stitched]
        of = {
            "receipts, jobs, rows for the gate": (sum(p.stat().st_size for p in small), 3),
            "index of the landing": (index, 3),
            "each chunk, in memory": (landed.payload_bytes, 1),
            "landing files, as they are written": (landed.file_bytes, 1),
            f"staged files ({_ENCODING})": (result.file_bytes, 2),
        }
    return [Kind(kind, total / _SAMPLE, passes) for kind, (total, passes) in of.items()]


if __name__ == "__main__":
    main()
