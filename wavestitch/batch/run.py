"""One batch from plan to moved offsets in this process tree: the same steps that Airflow runs, one after another."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from functools import partial
from typing import Any

from consumers.unit_processes import UnitProcesses
from consumers.unit_reader import read_units
from wavestitch.batch.carry import NOTHING_READ, Carried, How, Silent, Watcher, carry_through
from wavestitch.batch.deployment import Deployment
from wavestitch.batch.deployment_edges import DeploymentEdges
from wavestitch.batch.edges import Edges
from wavestitch.batch.plan import NothingToDo, PlanRequest
from wavestitch.batch.request import Gate
from wavestitch.batch.results import BatchDone, Finished, OffsetsCommitted, Planned, Published
from wavestitch.batch.steps import step_plan, step_take_up
from wavestitch.contracts.batch_stages import FINISHING, kinds_of
from wavestitch.contracts.plan import PlanKind

__all__ = ["RunOptions", "Silent", "Watcher", "catch_up", "done_to_json", "planned_to_json", "run_batch"]

_LOOK_S = 1.0
"""So often is asked whether more has come."""


@dataclass(frozen=True, slots=True)
class RunOptions:
    """`plan_id`: carry an earlier plan through (again). `after_step` is called after each step: a test's kill point."""

    request: PlanRequest = field(default_factory=PlanRequest)
    plan_id: str | None = None
    gate: Gate = "stop"
    why: str = ""
    after_step: Callable[[str], None] = lambda _: None


def run_batch(edges: Edges, options: RunOptions, *, watcher: Watcher) -> BatchDone | NothingToDo:
    """Carry one batch through. A plan that was committed before is only finished: its offsets, its landing."""
    watcher.begin("plan")
    planned: Planned | NothingToDo | Finished
    planned = step_plan(edges, options.request) if options.plan_id is None else step_take_up(edges, options.plan_id)
    if isinstance(planned, NothingToDo):
        return planned
    options.after_step("plan")
    if isinstance(planned, Planned):
        watcher.say(f"plan {planned.plan_id[:16]}: {planned.records} offsets in {len(planned.units)} units")
        for said in (*(f"{told.stage}: {told.does}" for told in planned.stages), *planned.remarks):
            watcher.say(said)
    done = carry_through(
        FINISHING if isinstance(planned, Finished) else kinds_of(PlanKind(planned.kind)),
        edges,
        Carried(planned.plan_id, (NOTHING_READ, planned)),
        How(options.gate, options.why, watcher=watcher),
        total=planned.records if isinstance(planned, Planned) else None,
        after=lambda stage: options.after_step(stage.replace(" ", "_")),
    )
    last = done.results[-1]
    return BatchDone(planned, done.of(Published), last if isinstance(last, OffsetsCommitted) else None)


def catch_up(
    deployment: Deployment, stream: str, options: RunOptions, *, watcher: Watcher, seconds: float = 0
) -> Iterator[BatchDone | NothingToDo]:
    """Batch after batch, until one of them takes all there is to its planning's end of the log, or nothing is left; but
    for so many seconds what comes meanwhile, too. Each goes by the stream's definition as it is then."""
    ends = time.monotonic() + seconds
    with UnitProcesses() as children:
        read = partial(read_units, children=children)

        def one() -> BatchDone | NothingToDo:
            return run_batch(DeploymentEdges(deployment, stream, read=read, gate_ahead=True), options, watcher=watcher)

        yield from one_after_another(one, go_on=lambda: time.monotonic() < ends, wait=partial(time.sleep, _LOOK_S))


def one_after_another(
    batch: Callable[[], BatchDone | NothingToDo], *, go_on: Callable[[], bool], wait: Callable[[], object]
) -> Iterator[BatchDone | NothingToDo]:
    """`go_on`: asked before each batch, whether the next one is wanted whatever this one leaves; where it finds nothing
    then, `wait` is for more to come."""
    while True:
        goes_on = go_on()
        found = batch()
        if goes_on and isinstance(found, NothingToDo):
            wait()
            continue
        yield found
        if goes_on:
            continue
        if isinstance(found, NothingToDo) or isinstance(found.planned, Finished) or not found.planned.left:
            return


def done_to_json(found: BatchDone | NothingToDo) -> dict[str, Any]:
    """What a run did, for scripts: `{"nothing": why}` where it did nothing."""
    if isinstance(found, NothingToDo):
        return {"nothing": found.why}
    done = found.published
    again = isinstance(done, Finished)
    figures = done.published if isinstance(done, Finished) else done
    return {
        "plan": planned_to_json(found.planned) if isinstance(found.planned, Planned) else asdict(found.planned),
        "published": {"again": again, **asdict(figures)},
        **({} if found.committed is None else asdict(found.committed)),
    }


def planned_to_json(planned: Planned | NothingToDo) -> dict[str, Any]:
    """A plan, for scripts and people."""
    if isinstance(planned, NothingToDo):
        return {"nothing": planned.why, "stages": [asdict(told) for told in planned.stages]}
    return {
        **asdict(planned),
        "units": list(planned.units),
        "slices": [list(unit) for unit in planned.slices],
        "ranges": [list(r) for r in planned.ranges],
        "remarks": list(planned.remarks),
        "stages": [asdict(told) for told in planned.stages],
        "why": {str(p): why for p, why in planned.why.items()},
    }
