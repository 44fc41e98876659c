"""SIGKILL at the eight kill points, in the middle of a slice and at any call on a file; and a rewind right after it.

Rows 3, 6, 7 and 23 of the matrix. A case brings its own records. Killed, carried through again and let run until there
is nothing to do, the tables must be those of an undisturbed run; after a rewind the killed plan must not publish.
"""

from __future__ import annotations

import os
import random
import signal
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from tests.deployment_rig import STREAM
from tests.faults.fault_class import Bench, Counts, FaultClass, Need
from tests.faults.file_faults_aftermath import check_files, settle
from tests.faults.killed_batch import AFTER_STEP, POINTS, die_around_the_commit, die_at_record
from tests.faults.local_faults_batch import (
    Produced,
    Way,
    carry,
    end_of_batch,
    make_deployment,
    open_deployment,
    plans_of,
    produce_mixture,
    quiet,
)
from tests.faults.local_faults_watch import Fault, How, Where, run_watched
from wavestitch.batch.rewind import Target, apply_rewind, plan_rewind
from wavestitch.contracts.quantities import Offset

_STEP_AFTER = {"plan": "read", "read": "reassemble", "commit_offsets": "after offsets"}
_DATA = f"warehouse/{STREAM}/waveforms/data/.*.tmp"
_TRIES = 12


@dataclass(frozen=True)
class Scene:
    """A deployment, what was produced for it, and the dice of the case."""

    folder: Path
    produced: Produced
    rng: random.Random

    def kill(self, fault: Fault | None, work: Callable[[Path], object]) -> bool:
        """Run a batch that is to be killed; whether it was."""
        found = run_watched(work, [self.folder], folder=self.folder, fault=fault)
        assert found.exit_code in (0, -signal.SIGKILL), found.exit_code
        return found.exit_code == -signal.SIGKILL


def set_scene(bench: Bench, seed: int) -> Scene:
    """Records of the seed's own, and a deployment that takes them in one to three batches."""
    rng = random.Random(seed)
    produced = produce_mixture(bench.bootstrap, seed=seed)
    total = len(produced.records)
    most = rng.choice((total, total * 2 // 3, total // 2 + 1))
    folder = make_deployment(bench.folder / "deployment", bootstrap=bench.bootstrap, topic=produced.topic, most=most)
    if most < total and rng.random() < 0.5:
        carry(folder)  # what is killed is then a batch that takes up what the one before it held
    return Scene(folder, produced, rng)


def run_to_point(folder: Path, point: str, record: int) -> object:
    """A batch that kills its process at the point."""
    step = _STEP_AFTER.get(AFTER_STEP.get(point, ""))

    def die() -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    if point == "mid-read":
        die_at_record(record, die)
    die_around_the_commit(point, die)
    return carry(folder, Way(before=lambda begun: die() if begun == step else None))


def kill_at_point(scene: Scene, point: str) -> None:
    if point == "mid-write in Spark":  # the same task, without Spark around it
        fault = Fault(Where("reassemble", "write", _DATA), scene.rng.randrange(3), How.KILL)
        assert scene.kill(fault, carry), "the stitching wrote nothing"
        return
    record = scene.rng.randrange(10)
    assert scene.kill(None, partial(run_to_point, point=point, record=record)), f"it was to die {point}"


def kill_anywhere(scene: Scene) -> None:
    """At any call on a file, whatever comes first; a batch that makes fewer calls is over, and another number drawn."""
    for reach in (2500, 1200, 600, *[250] * _TRIES):
        if scene.kill(Fault(None, scene.rng.randrange(reach), How.KILL), carry):
            return
    raise AssertionError("no batch was killed")


def conclude(scene: Scene, ends: tuple[str, ...]) -> Counts:
    """Nothing torn to be seen; the killed plans again, twice; quiet batches; the judgement."""
    check_files(scene.folder, scene.produced, tidy=False)
    again: list[str] = []
    for plan_id in plans_of(scene.folder)[-1:] * 2:
        again.append(end_of_batch(scene.folder, plan_id))
        assert again[-1] == "done", f"carried through again it ended with {again[-1]}"
    quiet(scene.folder)
    return settle(scene.folder, scene.produced, (*ends, *again))


def killed_at_point(bench: Bench, seed: int) -> Counts:
    scene, point = set_scene(bench, seed), POINTS[seed % len(POINTS)]
    kill_at_point(scene, point)
    return conclude(scene, (f"killed {point}",))


def killed_in_slice(bench: Bench, seed: int) -> Counts:
    scene = set_scene(bench, seed)
    record = scene.rng.randrange(1, len(scene.produced.records) // 3)
    assert scene.kill(None, partial(run_to_point, point="mid-read", record=record)), "it was to die while reading"
    return conclude(scene, ("killed mid-read",))


def killed_anywhere(bench: Bench, seed: int) -> Counts:
    scene = set_scene(bench, seed)
    kill_anywhere(scene)
    return conclude(scene, ("killed",))


def rewound(bench: Bench, seed: int) -> Counts:
    """Killed, then rewound: the killed plan is fenced, or finished where it had been committed; nothing comes twice."""
    scene, point = set_scene(bench, seed), POINTS[seed % len(POINTS)]
    kill_at_point(scene, point)
    deployment = open_deployment(scene.folder)
    stream, tables = deployment.stream(STREAM), deployment.tables(STREAM)
    before = tables.head()
    assert before is not None
    back = {p: Offset(scene.rng.randint(0, max(0, at.next_offset - 1))) for p, at in before.positions.items()}
    targets = [scene.rng.choice((Target("earliest"), Target(offsets=back)))]
    if not any(at.next_offset for at in before.positions.values()):
        targets = [Target("latest"), Target("earliest")]  # one that moves nothing is refused
    for target in targets:
        planned = plan_rewind(stream, target, log=deployment.log, tables=tables, who="a test", why="in case")
        head = apply_rewind(stream, planned, accept_skip=True, log=deployment.log, tables=tables)
    stale = plans_of(scene.folder)[-1]
    committed = stale in {h.plan_id for h in tables.heads()}
    ended = end_of_batch(scene.folder, stale)
    assert ended == ("done" if committed else "Fenced"), f"a plan from before the rewind ended with {ended}"
    assert tables.head() == head, "a plan from before the rewind moved the head"
    quiet(scene.folder)
    return settle(scene.folder, scene.produced, (f"killed {point}", ended))


CLASSES = (
    FaultClass("killed at a kill point", (3, 6, 7), Need.BROKER, 48, (4,), killed_at_point),
    FaultClass("killed in the middle of a slice", (3,), Need.BROKER, 16, (1,), killed_in_slice),
    FaultClass("killed at any call on a file", (3, 6, 8), Need.BROKER, 40, (1,), killed_anywhere),
    FaultClass("rewound after a kill", (23,), Need.BROKER, 24, (2,), rewound),
)
