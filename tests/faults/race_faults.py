"""Two to four runs of one stream at once, started at one barrier (rows 21, 22 and 24 of the matrix).

Some plan for themselves, some carry the same plan, one may read named offsets, one may rewind. Proves I2, I6, I7: one
head a range, a loser ends finished or fenced, and nothing of it can be seen.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.builders.ranges import span
from tests.clean_processes import clean_processes
from tests.deployment_rig import STREAM, plan_on
from tests.faults.fault_class import Bench, Counts, FaultClass, Need
from tests.faults.file_faults_aftermath import settle
from tests.faults.local_faults_batch import (
    Way,
    end_of_batch,
    make_deployment,
    open_deployment,
    produce_mixture,
    quiet,
)
from wavestitch.batch.deployment_edges import DeploymentEdges
from wavestitch.batch.plan import PlanRequest
from wavestitch.batch.rewind import Target, apply_rewind, plan_rewind
from wavestitch.contracts.errors import WavestitchError
from wavestitch.contracts.plan import PlanKind

DEADLINE = 60
# How a run may end that was not the first: nothing left to do, its plan finished by another, or beaten by a sentence.
_LOSERS = ("done", "nothing", "Fenced", "Transient", "Refused")


def plan_only(folder: Path) -> str:
    """A plan that several runs will carry."""
    return plan_on(DeploymentEdges(open_deployment(folder), STREAM)).plan_id


def take_part(folder: Path, role: str, plan_id: str, seed: int, barrier: Any, said: Any, number: int) -> None:
    """One runner: waits for the others, then does its part once; says how it ended."""
    barrier.wait(DEADLINE)
    said.put((number, _play(folder, role, plan_id, random.Random(seed * 10 + number))))


def _play(folder: Path, role: str, plan_id: str, rng: random.Random) -> str:
    if role == "own plan":
        return end_of_batch(folder)
    if role == "same plan":
        return end_of_batch(folder, plan_id)
    if role == "named offsets":
        ranges = tuple(span(p, rng.randrange(4), rng.randrange(8, 16)) for p in (0, 1))
        return end_of_batch(folder, way=Way(request=PlanRequest(PlanKind.MANUAL, ranges=ranges)))
    try:
        deployment = open_deployment(folder)
        stream, tables = deployment.stream(STREAM), deployment.tables(STREAM)
        planned = plan_rewind(
            stream, Target("earliest"), log=deployment.log, tables=tables, who="a test", why="at once"
        )
        apply_rewind(stream, planned, accept_skip=False, log=deployment.log, tables=tables)
    except WavestitchError as error:
        return type(error).__name__
    return "rewound"


def cast(rng: random.Random) -> list[str]:
    """Who runs: two to four, at least two of them after the same records."""
    rivals = rng.choice((["own plan"] * 2, ["same plan"] * 2, ["own plan", "same plan"], ["same plan"] * 3))
    return [*rivals, *rng.sample(["named offsets", "rewind"], rng.randrange(2))]


def race(folder: Path, roles: Sequence[str], plan_id: str, seed: int) -> list[str]:
    """How each ended, in the order of the roles. All begin at once; whoever is not done by the deadline is an error."""
    context = clean_processes()
    barrier, said = context.Barrier(len(roles)), context.SimpleQueue()
    runners = [
        context.Process(target=take_part, args=(folder, role, plan_id, seed, barrier, said, n))
        for n, role in enumerate(roles)
    ]
    for runner in runners:
        runner.start()
    try:
        for runner in runners:
            runner.join(DEADLINE)
            assert runner.exitcode == 0, f"a runner was not done after {DEADLINE} s, or died ({runner.exitcode})"
    finally:
        for runner in runners:
            if runner.is_alive():
                runner.kill()
    return [end for _, end in sorted(said.get() for _ in runners)]


def raced(bench: Bench, seed: int) -> Counts:
    rng = random.Random(seed)
    produced = produce_mixture(bench.bootstrap, seed=seed)
    total = len(produced.records)
    folder = make_deployment(
        bench.folder / "deployment",
        bootstrap=bench.bootstrap,
        topic=produced.topic,
        most=rng.choice((total, total // 2 + 2)),
    )
    roles, plan_id = cast(rng), plan_only(folder)
    ends = race(folder, roles, plan_id, seed)
    check_ends(folder, roles, ends)
    quiet(folder)
    return settle(folder, produced, tuple(f"{r}: {e}" for r, e in zip(roles, ends, strict=True)))


def check_ends(folder: Path, roles: Sequence[str], ends: Sequence[str]) -> None:
    """One head a range, a winner, and no loser that ended in words nobody foresaw."""
    heads = open_deployment(folder).tables(STREAM).heads()
    took = [h.plan_id for h in heads if h.kind == "ingest"]
    assert len(took) == len(set(took)), f"a plan became two heads: {took}"
    starts = [_range_taken(folder, h.plan_id, h.generation) for h in heads if h.kind == "ingest"]
    assert len(starts) == len(set(starts)), f"two batches of one generation took the same range: {starts}"
    unforeseen = [(r, e) for r, e in zip(roles, ends, strict=True) if e not in (*_LOSERS, "rewound")]
    assert not unforeseen, f"a run ended in a way that none may end: {unforeseen}"
    if "rewind" not in roles:
        assert "done" in ends, f"nobody won: {list(zip(roles, ends, strict=True))}"


def _range_taken(folder: Path, plan_id: str, generation: int) -> tuple[int, tuple[tuple[int, int], ...]]:
    plan = open_deployment(folder).folder(STREAM, plan_id).plan()
    return generation, tuple((r.partition, r.start) for r in plan.ranges)


CLASSES = (FaultClass("two to four runs at once", (21, 22, 24), Need.BROKER, 200, (3, 8), raced),)
