"""The power fails at any moment of a batch, a rewind and maintenance: whatever a disk may have then is recovered from.

`python -m tests.faults.power_loss` builds the states that `power_loss_disk` says are legal, recovers from each, and
prints how many they are: `power_loss_states`. The batch is a whole one without Kafka and Spark around it: real tables
in a SQLite catalog, real landing, index of ids and history. The log is in memory: what it was told of the group's
offsets it knows, whatever the disk forgot. Recovered means: nothing that is read is altered; the interrupted plan ends
in a way that is known; undisturbed ingests go on by themselves, publish what is whole once and as it was sent, hold the
rest, and leave the group where the head stands.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from consumers.landing import LandingWriter
from consumers.raw_message import RawMessage
from consumers.record_sink import RecordSink
from spark_apps.in_process import stitch_here
from tests.builders.published_bytes import published_bytes
from tests.builders.recordings import START_NS, cut, recordings
from tests.deployment_rig import STREAM
from tests.fakes.fake_log import FakeLog
from tests.fakes.fake_reader import read_slice, source_of
from tests.faults.fault_class import Bench, Counts, FaultClass, Need
from tests.faults.local_faults_batch import make_deployment, open_deployment, plans_of
from tests.faults.local_faults_watch import run_alone
from tests.faults.power_loss_disk import AfterState, after_states
from tests.faults.power_loss_record import TOLD, record, write_tree
from wavestitch.batch.deployment import Deployment
from wavestitch.batch.deployment_edges import DeploymentEdges
from wavestitch.batch.plan import NothingToDo
from wavestitch.batch.rewind import Target, apply_rewind, plan_rewind
from wavestitch.batch.run import RunOptions, Silent, run_batch
from wavestitch.batch.stream_state import load_state
from wavestitch.contracts.chunk_proof import ChunkProof
from wavestitch.contracts.errors import Fenced, WavestitchError
from wavestitch.contracts.offset_range import OffsetRange
from wavestitch.contracts.plan import Plan
from wavestitch.contracts.position import GroupOffset
from wavestitch.contracts.quantities import Partition
from wavestitch.contracts.receipt import LandedSlice, Receipt
from wavestitch.maintain.run import maintain_stream, raise_failures
from wavestitch.settings_sections import MaintainLimits

POWER_LOSS = "power lost at any moment"
"""Each end of a run of this class is a state of the disk that was recovered from."""
TOPIC = "waves"
_SENT = recordings(5, samples=600)
_WHOLE = {r.waveform_id: bytes(r.samples) for n, r in enumerate(_SENT) if n != 1}
_MOST_BATCHES = 8


def make_log(told: str) -> FakeLog:
    """What was sent, the same each time: four whole waveforms, one that lacks a chunk, a record that is no chunk."""
    log = FakeLog(TOPIC, 2)
    chunks = cut(_SENT, 512)
    per = len(chunks) // len(_SENT)
    for n, c in enumerate(chunks):
        if n != per:
            log.append(Partition(n // per % 2), START_NS // 10**6 + n, c.key, tuple(c.headers), bytes(c.value))
    log.append(Partition(0), START_NS // 10**6, b"junk", (), b"no chunk")
    offsets = json.loads(told or "{}")
    log.group = {Partition(int(p)): GroupOffset(at, tag) for p, (at, tag) in offsets.items()}
    return log


class Told:
    """Tells whoever records this process what the group was told: a look at a name that says it."""

    def __init__(self, folder: Path, log: FakeLog) -> None:
        self._folder, self._log = folder, log
        log.tell = self._hear  # type: ignore[method-assign]

    def _hear(self, what: str, /, **_: Any) -> None:
        if what == "projected":
            os.path.lexists(f"{self._folder}/{TOLD}{say_group(self._log)}")


def say_group(log: FakeLog) -> str:
    return json.dumps({p: (at.offset, at.metadata) for p, at in sorted(log.group.items())})


def edges_of(folder: Path, log: FakeLog) -> DeploymentEdges:
    deployment = open_deployment(folder)
    vars(deployment)["log"] = log
    return DeploymentEdges(deployment, STREAM, read=partial(land, log), submit=stitch_here)


def land(
    log: FakeLog,
    *,
    plan: Plan,
    folder: Path,
    units: Sequence[int],
    proof: ChunkProof,
    **_: Any,
) -> list[Receipt]:
    """As the product's readers do it, of a log in memory."""
    return [
        Receipt(plan.plan_id, u, [_land_slice(log, plan, wanted, folder, proof) for wanted in plan.units[u]], 0.0)
        for u in units
    ]


def _land_slice(log: FakeLog, plan: Plan, wanted: OffsetRange, folder: Path, proof: ChunkProof) -> LandedSlice:
    records, holes, written = read_slice(log, source_of(plan), wanted)
    with LandingWriter(folder, wanted) as writer:
        sink = RecordSink(writer, proof, lambda _: None, careful=True, partition=wanted.partition)
        for r in records:
            headers = [(name.encode(), value) for name, value in r.headers]
            sink.land(RawMessage(r.offset, (1, r.timestamp_ms), 0, r.key, r.value, headers), r.offset)
        return writer.finish(holes, written)


# what is interrupted


def one_batch(folder: Path, told: str) -> str:
    """What the group was told by its end."""
    log = make_log(told)
    Told(folder, log)
    run_batch(edges_of(folder, log), RunOptions(), watcher=Silent())
    return say_group(log)


def maintenance(folder: Path, told: str) -> str:
    log = make_log(told)
    Told(folder, log)
    limits = MaintainLimits.model_construct(
        finished_batches=0,
        given_up_batches=0,
        data_docs=0,
        orphan_age=0,
        snapshot_age=0,
        most_snapshots=1,
        least_snapshots=1,
        pinned_heads=3600,
        target_file=128 << 20,
        small_files=2,
        junk=10**9,
    )
    deployment: Deployment = edges_of(folder, log).deployment
    raise_failures([maintain_stream(deployment, STREAM, apply=True, limits=limits, who="a test")])
    return say_group(log)


def rewound(folder: Path, told: str) -> str:
    log = make_log(told)
    Told(folder, log)
    edges = edges_of(folder, log)
    about: dict[str, Any] = {"log": log, "tables": edges.tables}
    shown = plan_rewind(edges.stream, Target("earliest"), **about, who="a test", why="to see")
    apply_rewind(edges.stream, shown, accept_skip=True, **about)
    return say_group(log)


# what is promised


def recover(folder: Path, told: str) -> str:
    """After the power came back. How the interrupted plan ended; raises where a promise is broken."""
    log = make_log(told)
    _check_rows(open_deployment(folder))
    ended = "no plan"
    for plan_id in [p for p in plans_of(folder) if not p.startswith(".")][-1:]:
        ended = _carried_again(folder, log, plan_id)
    for _ in range(_MOST_BATCHES):
        if isinstance(run_batch(edges_of(folder, log), RunOptions(), watcher=Silent()), NothingToDo):
            break
    else:
        raise AssertionError("there is always something to do")
    deployment = open_deployment(folder)
    tables = deployment.tables(STREAM)
    assert _check_rows(deployment) == _WHOLE.keys(), "not everything that is whole is published"
    head = tables.head()
    assert head is not None
    stands = {p: at.next_offset for p, at in head.positions.items()}
    assert stands == {p: at.end for p, at in log.partitions.items()} == {p: g.offset for p, g in log.group.items()}
    held = load_state(tables, topic_id=log.topic_id).held
    assert {h.chunk.waveform_id for h in held} == {_SENT[1].waveform_id, None}, "something else is held"
    assert all(b.identity_balances for b in tables.batches() if b.partitions), "a batch does not balance"
    return ended


def _check_rows(deployment: Deployment) -> set[str]:
    rows = published_bytes(deployment.tables(STREAM)) if deployment.tables(STREAM).head() is not None else []
    assert len(dict(rows)) == len(rows), "a waveform is published twice"
    altered = [i for i, samples in rows if _WHOLE.get(i) != samples]
    assert not altered, f"published altered: {altered}"
    return {i for i, _ in rows}


def _carried_again(folder: Path, log: FakeLog, plan_id: str) -> str:
    try:
        run_batch(edges_of(folder, log), RunOptions(plan_id=plan_id), watcher=Silent())
    except Fenced:
        return "fenced"
    return "done"


# all of it


@dataclass(frozen=True)
class Scene:
    """`before`: what is done until then; `work`: what is interrupted. `most`: records a batch."""

    name: str
    before: tuple[Callable[[Path, str], str], ...]
    work: Callable[[Path, str], str]
    most: int = 14


SCENES = {
    one.name: one
    for one in (
        Scene("the first batch", (), one_batch),
        Scene("a batch that takes up what was held", (one_batch,), one_batch),
        Scene("a rewind", (one_batch,), rewound),
        Scene("maintenance", (one_batch, one_batch), maintenance),
    )
}


def no_bug() -> None:
    """The product as it is."""


class Stage:
    """A scene, recorded once: `states` are those that the disk may be left in."""

    def __init__(self, scene: Scene, folder: Path, *, plant: Callable[[], None] = no_bug) -> None:
        """`plant`: puts a bug into the process that is recorded."""
        self.folder = folder
        make_deployment(folder, bootstrap="127.0.0.1:1", topic=TOPIC, most=scene.most)
        told = ""
        for work in scene.before:
            told = run_alone(work, [folder, told])
        before, done = record(_planted, [plant, scene.work, folder, told], folder=folder)
        before.told = told
        self.done = len(done)
        self.states: list[AfterState] = list(after_states(before, done))

    def recover(self, state: AfterState) -> str:
        """How the interrupted plan ended; raises where the state breaks a promise."""
        for path in self.folder.iterdir():
            shutil.rmtree(path) if path.is_dir() else path.unlink()
        write_tree(self.folder, state.tree)
        try:
            return run_alone(recover, [self.folder, state.told])
        except (WavestitchError, RuntimeError) as error:
            raise AssertionError(f"after {state.at} of {self.done} calls, {state.how}: {error}") from error


def _planted(plant: Callable[[], None], work: Callable[[Path, str], str], folder: Path, told: str) -> str:
    plant()
    return work(folder, told)


def lose_power(bench: Bench, seed: int) -> Counts:
    """Every CASES-th state of each scene."""
    ends: list[str] = []
    for n, scene in enumerate(SCENES.values()):
        stage = Stage(scene, bench.folder / str(n))
        ends += [f"{scene.name}: {stage.recover(state)}" for state in stage.states[seed % CASES :: CASES]]
    return Counts(records=len(ends) * sum(p.end for p in make_log("").partitions.values()), ends=tuple(ends))


CASES = 60
CLASSES = (FaultClass(POWER_LOSS, (8,), Need.NOTHING, CASES, (), lose_power),)


def main(argv: Sequence[str]) -> int:
    ask = argparse.ArgumentParser(prog="python -m tests.faults.power_loss", description=__doc__)
    ask.add_argument("--count", action="store_true", help="count the states, recover none")
    ask.add_argument("--every", type=int, default=1, help="recover only every n-th")
    ask.add_argument("--since", type=int, default=0, help="from this one on")
    ask.add_argument("--seconds", type=float, default=float("inf"), help="begin none after that")
    ask.add_argument("scenes", nargs="*", default=list(SCENES))
    options = ask.parse_args(argv)
    total = recovered = wrong = 0
    began = time.monotonic()
    for name in options.scenes:
        with tempfile.TemporaryDirectory() as folder:
            stage = Stage(SCENES[name], Path(folder) / "deployment")
            total += len(stage.states)
            ends: Counter[str] = Counter()
            for state in [] if options.count else stage.states[options.since :: options.every]:
                if time.monotonic() - began > options.seconds:
                    break
                try:
                    ends[stage.recover(state)] += 1
                except AssertionError as broken:
                    wrong += 1
                    print(f"{name}: {broken}", flush=True)
            recovered += ends.total()
            print(f"{name}: {stage.done} calls, {len(stage.states)} states, {dict(ends)}", flush=True)
    print(f"power_loss_states: {total}, {recovered} of them recovered from, {wrong} not")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
