"""Carries a plan through its stages: the one evaluator of batches and of decisions about what is held.

The command line, Airflow (a task for each stage), the state machine and the histories hand it the same stages, over
edges of their own. Which stages there are, and in which order, is not said here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import Protocol, TypeVar

from wavestitch.batch.edges import Edges
from wavestitch.batch.request import Gate
from wavestitch.batch.results import Finished, Read, Reassembled, Result, Validated
from wavestitch.batch.steps import step_commit_offsets, step_publish, step_read, step_reassemble, step_validate
from wavestitch.contracts.batch_stages import CommitOffsets, OfPlan, Publish, ReadUnits, Reassemble, Validate
from wavestitch.contracts.errors import Transient

R = TypeVar("R")
NOTHING_READ = Read((), 0, 0, 0.0)


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


@dataclass(frozen=True, slots=True)
class Said(Silent):
    """Somebody who reads afterwards what happened."""

    to: Callable[[str], None]

    def say(self, text: str) -> None:
        self.to(text)


@dataclass(frozen=True, slots=True)
class How:
    """What an operator says to a closed gate, and who looks on. `units`: of work, to be read here; None: all."""

    gate: Gate = "stop"
    why: str = ""
    units: tuple[int, ...] | None = None
    watcher: Watcher = field(default_factory=Silent)


@dataclass(frozen=True, slots=True)
class Carried:
    """A plan, and what its stages have left so far for those after them."""

    plan_id: str
    results: tuple[Result, ...] = (NOTHING_READ,)

    def of(self, kind: type[R]) -> R | Finished:
        """The newest result of this kind, or that the plan was finished when it was asked for."""
        for result in reversed(self.results):
            if isinstance(result, kind | Finished):
                return result
        raise AssertionError(f"plan {self.plan_id}: no stage before this one has left a {kind.__name__}")


Act = Callable[[Edges, Carried, How], Result]

ACTS: dict[type[OfPlan], Act] = {
    ReadUnits: lambda edges, so, how: step_read(edges, so.plan_id, how.units, progress=how.watcher.progress),
    Reassemble: lambda edges, so, how: step_reassemble(edges, so.plan_id, so.of(Read), say=how.watcher.say),
    Validate: lambda edges, so, how: step_validate(edges, so.plan_id, so.of(Reassembled), gate=how.gate, why=how.why),
    Publish: lambda edges, so, how: step_publish(
        edges, so.plan_id, so.of(Reassembled), so.of(Validated), say=how.watcher.say
    ),
    CommitOffsets: lambda edges, so, how: step_commit_offsets(edges, so.plan_id),
}


def carry_out(stage: type[OfPlan], edges: Edges, so_far: Carried, how: How) -> Carried:
    """One stage, and what it left beside what the others did. Too little memory is an error of the tree, too."""
    try:
        carried = replace(so_far, results=(*so_far.results, ACTS[stage](edges, so_far, how)))
    except MemoryError as error:
        raise Transient(
            f"{stage.name}: batch {so_far.plan_id[:16]} of stream {edges.name} found no room in memory. Give the "
            "process more and run the step again, which finds what is done already; or lower limits.max_batch_records "
            "and limits.max_batch_bytes of the stream and plan again, which leaves this batch behind",
            plan_id=so_far.plan_id,
        ) from error
    if stage is Publish:
        edges.tell_metrics()
    return carried


def carry_through(
    stages: Iterable[type[OfPlan]],
    edges: Edges,
    so_far: Carried,
    how: How,
    *,
    total: int | None = None,
    after: Callable[[str], None] = lambda _: None,
) -> Carried:
    """Stage after stage. `total`: offsets to read. `after` is told the name of each that is done."""
    for stage in stages:
        how.watcher.begin(stage.name, total if stage is ReadUnits else None)
        so_far = carry_out(stage, edges, so_far, how)
        after(stage.name)
    return so_far
