"""A million chunks through batches that are killed at each of the eight kill points: `python -m tests.faults.volume`.

Real broker, real Spark, one stream. Each batch is killed once, at the next point, and carried through again; then
batches go on until nothing is left, and what is published is compared with what was produced, byte for byte. Goes on
where it stopped (`.wavestitch/faults/volume`). Rows 3, 4, 6 and 7 of the matrix.
"""

from __future__ import annotations

import argparse
import json
import shutil
import signal
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from tests.builders.published_bytes import rows_with_bytes
from tests.builders.recordings import START_NS
from tests.conftest import CACHE, ROOT
from tests.deployment_rig import STREAM, eventually
from tests.faults.fault_class import Bench, Counts, FaultClass, Need
from tests.faults.killed_batch import POINTS, run_killed
from tests.faults.local_faults_batch import make_deployment, make_ledger, rig_at
from wavestitch.batch.stream_state import load_state
from wavestitch.contracts.errors import Transient
from wavestitch.contracts.quantities import Partition
from wavestitch.kafka.client_settings import KafkaSettings
from wavestitch.local.broker import start_broker, stop_broker
from wavestitch.local.jars import KAFKA, cached_jars
from wavestitch.local.java import find_java
from wavestitch.producers.chunking import ChunkRecord, cut_recording
from wavestitch.producers.recording import Recording, make_recording
from wavestitch.producers.sender import send_chunks
from wavestitch.tables.read_waveforms import read_waveforms

CHUNKS = 1_000_000
PER_WAVEFORM = 50
PARTITIONS = 4
EVERY_PARTITION = tuple(map(Partition, range(PARTITIONS)))
_STATE = ROOT / ".wavestitch" / "faults" / "volume"
_SENT_AT_ONCE = 1000
_CASE_CHUNKS = 125_000
_KILL_SECONDS = 200


@dataclass(frozen=True)
class Load:
    """What is produced, from a seed; never kept: it can be made again."""

    chunks: int
    seed: int

    @property
    def waveforms(self) -> int:
        return self.chunks // PER_WAVEFORM

    def recording(self, number: int) -> Recording:
        """Chunks of 64 bytes to 1 KiB, of 50 per waveform."""
        rng = np.random.default_rng((self.seed, number))
        samples = rng.integers(-2000, 2000, PER_WAVEFORM * self.chunk_bytes(number) // 2, dtype="<i2")
        return make_recording(
            waveform_id=f"v-{number:06d}",
            source="volume",
            channel="x",
            start_time_ns=START_NS + number * 1_000_000,
            sampling_rate_hz=1000,
            sample_format="i16le",
            units="mV",
            adc_gain=200,
            baseline=0,
            samples=samples.tobytes(),
        )

    def chunk_bytes(self, number: int) -> int:
        return 64 << number % 5

    def letters(self, start: int) -> Iterator[list[ChunkRecord]]:
        """From waveform `start` on, many at a time; the chunks of two neighbours take turns."""
        for first in range(start, self.waveforms, _SENT_AT_ONCE):
            cut = [
                cut_recording(self.recording(n), self.chunk_bytes(n))
                for n in range(first, min(first + _SENT_AT_ONCE, self.waveforms))
            ]
            pairs = zip(cut[::2], cut[1::2], strict=True)
            yield [chunk for pair in pairs for both in zip(*pair, strict=True) for chunk in both]


@dataclass
class State:
    """How far it is. `points`: kill points that are behind it."""

    topic: str = ""
    sent: int = 0
    points: int = 0
    seconds: float = 0.0

    def keep(self, folder: Path) -> None:
        (folder / "state.new").write_text(json.dumps(asdict(self)))
        (folder / "state.new").replace(folder / "state.json")


def load_progress(folder: Path) -> State:
    found = folder / "state.json"
    return State(**json.loads(found.read_text())) if found.exists() else State()


def produce(state: State, load: Load, folder: Path, bootstrap: str) -> None:
    """What is not sent yet. A piece that was sent when the process died is sent again: those chunks are repeats."""
    if not state.topic:
        state.topic = make_ledger(bootstrap, PARTITIONS).topic
        state.keep(folder)
    for letters in load.letters(state.sent):
        send_chunks(letters, topic=state.topic, settings=KafkaSettings(bootstrap), deadline_seconds=120)
        state.sent += len(letters) // PER_WAVEFORM
        state.keep(folder)
        _say(f"produced {state.sent * PER_WAVEFORM} of {load.chunks} chunks")


def kill_and_go_on(state: State, folder: Path, points: Sequence[str]) -> None:
    """A batch killed at each point, and carried through again."""
    for point in points[state.points :]:
        whole = rig_at(folder / "deployment")
        before = {p.name for p in (folder / "deployment" / "landing" / STREAM).glob("*")}
        run_killed(folder / "deployment" / "wavestitch.toml", point, seconds=_KILL_SECONDS)
        (plan_id,) = {p.name for p in (folder / "deployment" / "landing" / STREAM).glob("*")} - before
        found = whole.run(plan_id=plan_id)
        state.points += 1
        state.keep(folder)
        _say(f"killed {point}; carried through again: {found['offsets']}")


def go_to_the_end(folder: Path) -> int:
    """Undisturbed batches until nothing is left."""
    batches = 0
    while "nothing" not in rig_at(folder / "deployment").run():
        batches += 1
        _say(f"batch {batches} without a fault")
    return batches


def compare(folder: Path, load: Load, state: State) -> Counts:
    """Everything published, read in pieces, against what the seed gives."""
    whole = rig_at(folder / "deployment")
    tables = whole.deployment.tables(STREAM)
    seen: Counter[str] = Counter()
    altered = 0
    ids = [f"v-{n:06d}" for n in range(load.waveforms)]
    for first in range(0, load.waveforms, 2000):
        columns = ["waveform_id", "sample_format", "samples"]
        for row in rows_with_bytes(read_waveforms(tables, ids=ids[first : first + 2000], columns=columns)):
            seen[row["waveform_id"]] += 1
            altered += bytes(load.recording(int(row["waveform_id"][2:])).samples) != row["samples"]
    published = read_waveforms(tables, columns=["waveform_id"]).num_rows
    assert published == seen.total(), f"{published - seen.total()} published waveforms were never produced"
    now = load_state(tables, topic_id="")
    assert not now.held, f"{len(now.held)} chunks are still held"
    ends = whole.deployment.log.ends(state.topic, EVERY_PARTITION)
    covered = sum(b.counts["read"] for b in tables.batches() if b.partitions)
    assert all(b.identity_balances for b in tables.batches() if b.partitions)
    gaps = sum(e.stable_end - now.head.positions[p].next_offset for p, e in ends.items())
    gaps += abs(sum(e.stable_end for e in ends.values()) - covered)
    return Counts(
        records=load.chunks,
        lost=load.waveforms - len(seen),
        duplicated=seen.total() - len(seen),
        altered=altered,
        unexplained_gaps=gaps,
    )


def run_volume(folder: Path, bootstrap: str, load: Load, points: Sequence[str], java_home: Path) -> Counts:
    """Produce, kill, go on, compare; whatever was done before is not done again."""
    folder.mkdir(parents=True, exist_ok=True)
    state, began = load_progress(folder), time.monotonic()
    produce(state, load, folder, bootstrap)
    if not (folder / "deployment" / "wavestitch.toml").exists():
        most = -(-load.chunks // len(points))
        shutil.rmtree(folder / "deployment", ignore_errors=True)
        make_deployment(folder / "deployment", bootstrap=bootstrap, topic=state.topic, most=most, java_home=java_home)
    eventually(lambda: _answers(folder / "deployment"), seconds=60)
    kill_and_go_on(state, folder, points)
    batches = go_to_the_end(folder)
    counts = compare(folder, load, state)
    state.seconds += time.monotonic() - began
    state.keep(folder)
    killed = tuple(f"killed {p}, then done" for p in points)
    return Counts(**{**asdict(counts), "ends": (*killed, *("done",) * batches)})


def _answers(folder: Path) -> bool:
    """Whether the broker answers for groups: a young one loads them while the first one asks."""
    whole = rig_at(folder)
    try:
        whole.deployment.log.members(whole.group)
        whole.deployment.log.group_offsets(whole.group, whole.topic, EVERY_PARTITION)
    except Transient:
        return False
    return True


def one_point(bench: Bench, seed: int) -> Counts:
    """An eighth of the million, its batch killed at the seed's point."""
    point = POINTS[seed % len(POINTS)]
    return run_volume(bench.folder, bench.bootstrap, Load(_CASE_CHUNKS, seed), [point], bench.java_home)


CLASSES = (FaultClass("volume, killed at each point", (3, 4, 6, 7), Need.BROKER, len(POINTS), (), one_point),)


def _say(text: str) -> None:
    print(time.strftime("%H:%M:%S"), text, file=sys.stderr, flush=True)


def main(argv: Sequence[str]) -> int:
    ask = argparse.ArgumentParser(prog="python -m tests.faults.volume", description=__doc__)
    ask.add_argument("--chunks", type=int, default=CHUNKS)
    ask.add_argument("--afresh", action="store_true", help="forget what was done before")
    options = ask.parse_args(argv)
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # whoever ends it early still wants the broker stopped
    if options.afresh:
        stop_broker(_STATE / "kafka")
        shutil.rmtree(_STATE, ignore_errors=True)
    java_home = find_java(CACHE)
    jars = cached_jars(KAFKA, cache_dir=CACHE, java_home=java_home, say=_say)
    began = time.monotonic()
    try:
        broker = start_broker(folder=_STATE / "kafka", java_home=java_home, jars=jars, say=_say)
        counts = run_volume(_STATE, broker.bootstrap, Load(options.chunks, 1), POINTS, java_home)
    finally:
        stop_broker(_STATE / "kafka")
    print(
        f"{counts.records} chunks, {len(POINTS)} kill points, {len(counts.ends)} batches: {counts.lost} lost, "
        f"{counts.duplicated} duplicated, {counts.altered} altered, {counts.unexplained_gaps} unexplained gaps; "
        f"{time.monotonic() - began:.0f} s"
    )
    return 0 if counts.clean else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
