"""One batch from plan to moved offsets in this process tree: the same steps that Airflow runs, one after another."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from functools import partial
from typing import Any, Protocol

from consumers.unit_processes import UnitProcesses
from consumers.unit_reader import read_units
from wavestitch.batch.deployment import Deployment
from wavestitch.batch.deployment_edges import DeploymentEdges
from wavestitch.batch.edges import Edges
from wavestitch.batch.plan import NothingToDo, PlanRequest
from wavestitch.batch.request import Gate
from wavestitch.batch.results import BatchDone, Finished, Planned, Published
from wavestitch.batch.steps import (
    step_commit_offsets,
    step_plan,
    step_publish,
    step_read,
    step_reassemble,
    step_take_up,
    step_validate,
)


class Watcher(Protocol):
    """Somebody who waits: told what begins, what happens and how far the reading is."""

    def begin(self, step: str, total: int | None = None) -> None: ...

    def say(self, text: str) -> None: ...

    def progress(self, records: int, size: int) -> None: ...


class Silent:
    """Nobody waits."""

    def begin(self, step: str, total: int | None = None) -> None: ...

    def say(self, text: str) -> None: ...

    def progress(self, records: int, size: int) -> None: ...


STEPS = ("plan", "read", "reassemble", "validate", "publish", "commit_offsets")


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
    if options.plan_id is None:
        planned: Planned | NothingToDo | Finished = step_plan(edges, options.request)
    else:
        planned = step_take_up(edges, options.plan_id)
    if isinstance(planned, NothingToDo):
        return planned
    options.after_step("plan")
    published = planned if isinstance(planned, Finished) else _publish(edges, planned, options, watcher=watcher)
    watcher.begin("commit offsets")
    committed = step_commit_offsets(edges, planned.plan_id)
    options.after_step("commit_offsets")
    return BatchDone(planned, published, committed)


def _publish(edges: Edges, planned: Planned, options: RunOptions, *, watcher: Watcher) -> Published | Finished:
    """The steps between plan and offsets."""
    plan_id = planned.plan_id
    watcher.say(f"plan {plan_id[:16]}: {planned.records} offsets in {len(planned.units)} units")
    for remark in planned.remarks:
        watcher.say(remark)

    watcher.begin("read", total=planned.records)
    read = step_read(edges, plan_id, progress=watcher.progress)
    options.after_step("read")

    watcher.begin("reassemble")
    reassembled = step_reassemble(edges, plan_id, read, say=watcher.say)
    options.after_step("reassemble")

    watcher.begin("validate")
    validated = step_validate(edges, plan_id, reassembled, gate=options.gate, why=options.why)
    options.after_step("validate")

    watcher.begin("publish")
    published = step_publish(edges, plan_id, reassembled, validated, say=watcher.say)
    options.after_step("publish")
    return published


def catch_up(
    deployment: Deployment, stream: str, options: RunOptions, *, watcher: Watcher
) -> Iterator[BatchDone | NothingToDo]:
    """Batch after batch, until one of them takes all there is to its planning's end of the log, or nothing is left."""
    with UnitProcesses() as children:
        edges = DeploymentEdges(deployment, stream, read=partial(read_units, children=children), gate_ahead=True)
        while True:
            found = run_batch(edges, options, watcher=watcher)
            yield found
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
        **asdict(found.committed),
    }


def planned_to_json(planned: Planned | NothingToDo) -> dict[str, Any]:
    """A plan, for scripts and people."""
    if isinstance(planned, NothingToDo):
        return {"nothing": planned.why}
    return {
        **asdict(planned),
        "units": list(planned.units),
        "slices": [list(unit) for unit in planned.slices],
        "ranges": [list(r) for r in planned.ranges],
        "remarks": list(planned.remarks),
        "why": {str(p): why for p, why in planned.why.items()},
    }
