"""How fast waveforms are stitched: the task function in this process, the same through Spark, and a plain copy.

    python benchmarks/stitch.py --mib 1024 --wave-kib 1024 --chunk-kib 64 --layout sticky --codec none

CPU seconds are of the whole process tree (a shared machine's stolen time hardly touches them); memory is private
memory (RssAnon): mapped landing pages are page cache. Spark's figures are of the last run in one session.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import tempfile
import threading
import time
import zlib
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median

import numpy as np
import pyarrow as pa

from spark_apps.assignment import write_assignment
from spark_apps.stitching import stitch_assignment
from wavestitch.contracts.assembly import ChunkFacts, assemble
from wavestitch.contracts.rows import LANDING
from wavestitch.contracts.stitch_job import StitchJob, assign_waveforms
from wavestitch.contracts.stream import Limits

PARTITIONS, SLICES, BATCH_BYTES = 4, 2, 16 << 20
START_NS = 1_700_000_000_000_000_000
TICK = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Figure:
    what: str
    wall_s: float
    cpu_s: float
    own_mib: int
    worker_mib: int
    jvm_mib: int


class Meter(threading.Thread):
    """CPU seconds and peak private memory of this process and all below it (largest worker), sampled."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self._done = threading.Event()
        self._cpu: dict[tuple[int, str], float] = {}
        self.own_kib = self.worker_kib = self.jvm_kib = 0
        self._look()
        self._zero, self._began = sum(self._cpu.values()), time.perf_counter()
        self.start()

    def run(self) -> None:
        while not self._done.wait(0.05):
            self._look()

    def figure(self, what: str) -> Figure:
        wall = time.perf_counter() - self._began
        self._done.set()
        self.join()
        self._look()
        cpu = sum(self._cpu.values()) - self._zero
        return Figure(
            what, round(wall, 2), round(cpu, 2), self.own_kib >> 10, self.worker_kib >> 10, self.jvm_kib >> 10
        )

    def _look(self) -> None:
        for pid in _tree(os.getpid()):
            try:
                stat = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
                status = Path(f"/proc/{pid}/status").read_text()
                java = os.readlink(f"/proc/{pid}/exe").endswith("java")
            except OSError:
                continue
            self._cpu[pid, stat[19]] = (int(stat[11]) + int(stat[12])) / TICK
            kib = next((int(x.split()[1]) for x in status.splitlines() if x.startswith("RssAnon")), 0)
            if java:
                self.jvm_kib = max(self.jvm_kib, kib)
            elif pid == os.getpid():
                self.own_kib = max(self.own_kib, kib)
            else:
                self.worker_kib = max(self.worker_kib, kib)


def _tree(root: int) -> Iterator[int]:
    yield root
    for task in Path(f"/proc/{root}/task").glob("*/children"):
        try:
            children = task.read_text().split()
        except OSError:
            continue
        for child in children:
            yield from _tree(int(child))


def land(folder: Path, options: argparse.Namespace) -> list[Path]:
    """Landing files of ECG-like int16 waveforms, in the layout asked for; returns them in order of their numbers."""
    size, piece = options.wave_kib << 10, options.chunk_kib << 10
    waves, count = (options.mib << 20) // size, max(1, size // piece)
    rng = np.random.default_rng(7)
    beats = [_ecg(rng, n, size // 2) for n in range(min(waves, 128))]
    rows: list[list[tuple[int, int]]] = [[] for _ in range(PARTITIONS * SLICES)]
    for w in range(waves):
        for s in range(count):
            sticky = (w % PARTITIONS) * SLICES + (w // PARTITIONS >= waves // PARTITIONS // 2)
            rows[sticky if options.layout == "sticky" else (w + s) % len(rows)].append((w, s))
    if options.layout == "round-robin":
        for r in rows:
            r.sort(key=lambda x: (x[0] // 8, x[1], x[0]))
    files = []
    for number, mine in enumerate(rows):
        path = folder / f"landing-{number}.arrow"
        files.append(path)
        with pa.ipc.new_file(str(path), LANDING) as out:
            step = max(1, BATCH_BYTES // piece)
            for i in range(0, len(mine), step):
                out.write_batch(_batch(mine[i : i + step], i, number, count, piece, beats))
    return files


def _ecg(rng: np.random.Generator, n: int, samples: int) -> bytes:
    phase = (np.arange(samples) % (350 + n)) / (350 + n)
    beat = 900 * np.exp(-(((phase - 0.3) / 0.012) ** 2)) + 150 * np.exp(-(((phase - 0.6) / 0.05) ** 2))
    walk = np.repeat(np.cumsum(rng.integers(-1, 2, samples // 64 + 1)), 64)[:samples]
    return bytes((beat + 2 * walk + rng.integers(-6, 7, samples)).astype("<i2").tobytes())


def _batch(
    mine: list[tuple[int, int]], first: int, number: int, count: int, piece: int, beats: list[bytes]
) -> pa.RecordBatch:
    ids = [f"bench/ecg/{w:08d}" for w, _ in mine]
    values = [beats[w % len(beats)][s * piece : (s + 1) * piece] for w, s in mine]
    metas = [_meta(w) for w, _ in mine]
    crcs = [
        zlib.crc32(v, zlib.crc32(f"{i}\0{s}\0{m}\0".encode()))
        for i, (_, s), m, v in zip(ids, mine, metas, values, strict=True)
    ]
    n = len(mine)
    columns = {
        "partition": [number // SLICES] * n,
        "offset": range((number % SLICES) * 10**6 + first, (number % SLICES) * 10**6 + first + n),
        "timestamp_ms": [START_NS // 10**6] * n,
        "waveform_id": ids,
        "seq": [s for _, s in mine],
        "count": [count] * n,
        "crc": crcs,
        "length": [len(v) for v in values],
        "meta": metas,
        "payload": values,
    }
    return pa.record_batch([pa.array(columns.get(f.name, [None] * n), f.type) for f in LANDING], schema=LANDING)


def _meta(w: int) -> str:
    return json.dumps(
        {
            "source": f"monitor-{w % 40}",
            "channel": "II",
            "start_time_ns": START_NS + w * 10**9,
            "sampling_rate_hz": 500.0,
            "sample_format": "i16le",
            "units": "mV",
            "adc_gain": 200.0,
            "baseline": 0.0,
        }
    )


def make_job(folder: Path, files: list[Path], output: Path, options: argparse.Namespace) -> StitchJob:
    """The driver-side step: the index only, then assignments."""
    facts = []
    for number, path in enumerate(files):
        row = 0
        reader = pa.ipc.open_file(pa.memory_map(str(path)))
        for b in range(reader.num_record_batches):
            batch = reader.get_batch(b)
            index = [
                batch.column(n).to_pylist()
                for n in ("partition", "offset", "timestamp_ms", "waveform_id", "seq", "count", "crc", "length", "meta")
            ]
            for values in zip(*index, strict=True):
                facts.append(ChunkFacts(*values, None, None, None, file=number, row=row))
                row += 1
    waves = list(assemble(facts, Limits()).values())
    tasks = assign_waveforms(waves, task_bytes=options.task_mib << 20, tasks_at_least=options.tasks)
    names = tuple(write_assignment(folder, t) for t in tasks)
    return StitchJob("0" * 32, "topic", str(folder), str(output), options.codec, tuple(map(str, files)), names)


def measure(what: str, rounds: int, act: Callable[[], object], output: Path) -> Figure:
    figures = []
    for _ in range(rounds):
        shutil.rmtree(output, ignore_errors=True)
        output.mkdir()
        meter = Meter()
        act()
        figures.append(meter.figure(what))
    warm = figures[1:] or figures
    return Figure(
        what,
        median(f.wall_s for f in warm),
        median(f.cpu_s for f in warm),
        max(f.own_mib for f in figures),
        max(f.worker_mib for f in figures),
        max(f.jvm_mib for f in figures),
    )


def spark_figure(job: StitchJob, rounds: int, output: Path) -> Figure:
    from pyspark.sql import SparkSession  # noqa: PLC0415  # only where it is asked for: it starts a JVM

    from spark_apps.reassemble import stitch_on_spark  # noqa: PLC0415

    os.environ["PYSPARK_PYTHON"] = sys.executable
    spark = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.memory", "1g")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .getOrCreate()
    )
    figure = measure("spark local[2], warm", max(2, rounds), lambda: stitch_on_spark(spark, job), output)
    spark.stop()
    return figure


def main() -> None:
    ask = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ask.add_argument("--mib", type=int, default=1024, help="payload in all")
    ask.add_argument("--wave-kib", type=int, default=1024)
    ask.add_argument("--chunk-kib", type=int, default=64)
    ask.add_argument("--layout", choices=["sticky", "round-robin"], default="sticky")
    ask.add_argument("--codec", choices=["none", "zstd"], default="none")
    ask.add_argument("--rounds", type=int, default=3)
    ask.add_argument("--tasks", type=int, default=4)
    ask.add_argument("--task-mib", type=int, default=256)
    ask.add_argument("--no-spark", action="store_true")
    ask.add_argument("--folder", type=Path, help="where the data go; a temporary folder where not given")
    options = ask.parse_args()
    with tempfile.TemporaryDirectory(dir=options.folder) as name:
        folder, output = Path(name), Path(name) / "out"
        files = land(folder, options)
        meter = Meter()
        job = make_job(folder, files, output, options)
        figures = [meter.figure("index and assignments")]
        figures.append(
            measure("plain copy", options.rounds, lambda: [shutil.copy(f, output / f.name) for f in files], output)
        )
        figures.append(
            measure("inline", options.rounds, lambda: [stitch_assignment(job, a) for a in job.assignments], output)
        )
        if not options.no_spark:
            figures.append(spark_figure(job, options.rounds, output))
    print(
        f"{options.mib} MiB, {options.wave_kib} KiB waveforms, {options.chunk_kib} KiB chunks, {options.layout}, ",
        end="",
    )
    print(f"{options.codec}, {len(job.assignments)} tasks")
    for f in figures:
        print(json.dumps(asdict(f)))


if __name__ == "__main__":
    main()
