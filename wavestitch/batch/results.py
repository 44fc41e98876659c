"""What the steps of a batch return: frozen values, handed from step to step. JSON only at XCom and at the command line.

A step of a plan that was committed before returns `Finished`, whatever else is gone, and so do all steps after it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from wavestitch.batch.plan import NothingToDo
from wavestitch.contracts.batch_row import BatchRow
from wavestitch.contracts.batch_size import worth_starting
from wavestitch.contracts.batch_stages import stages_of
from wavestitch.contracts.errors import BadInput, Fenced
from wavestitch.contracts.held_quota import said_of_places
from wavestitch.contracts.past_cost import Forecast
from wavestitch.contracts.plan import Plan
from wavestitch.contracts.quantities import Partition
from wavestitch.contracts.stages import Stage, Told, explain
from wavestitch.contracts.versioned import Versioned

R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class Planned:
    """A plan, as people and later steps want to know it. `slices`: by unit of work. `why`: per partition.
    `remarks`: sentences that stop nothing. `stages`: all that is done for it, planning included."""

    plan_id: str
    kind: str
    stream: str
    generation: int
    slices: tuple[tuple[str, ...], ...]
    records: int
    estimated_bytes: int
    ranges: tuple[tuple[int, int, int], ...]
    why: dict[Partition, str]
    left: int
    forecast: Forecast | None = None
    remarks: tuple[str, ...] = ()
    stages: tuple[Told, ...] = ()

    @property
    def units(self) -> range:
        return range(len(self.slices))


@dataclass(frozen=True, slots=True)
class Read:
    """Units of work that were read. `receipts`: files in the plan's folder."""

    receipts: tuple[str, ...]
    records: int
    bytes: int
    seconds: float


@dataclass(frozen=True, slots=True)
class Reassembled:
    """`report`: the file that says what was stitched, None where nothing was whole. `waveforms`: that were tried."""

    report: str | None
    receipts: tuple[str, ...]
    waveforms: int
    seconds: float


@dataclass(frozen=True, slots=True)
class Validated:
    """`verdict`: the file that has it. `park`: hold the whole batch. `answered`: an operator accepted or parked it.
    `note`: what was decided, and why."""

    verdict: str
    park: bool
    answered: bool
    note: str
    failed: int
    reported: tuple[str, ...]
    seconds: float


@dataclass(frozen=True, slots=True)
class Published:
    """A commit, in figures; see `BatchRow`. `remarks`: sentences that stop nothing."""

    plan_id: str
    sequence: int
    waveforms: dict[str, int]
    counts: dict[str, int]
    reasons: dict[str, int]
    identity_balances: bool
    remarks: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Finished:
    """The plan was committed before. `published`: by which figures, as far as the history knows them."""

    plan_id: str
    published: Published


@dataclass(frozen=True, slots=True)
class OffsetsCommitted:
    """`offsets`: a sentence that says what was done. `freed_bytes`: of the batch's landing."""

    offsets: str
    freed_bytes: int


@dataclass(frozen=True, slots=True)
class BatchDone:
    """A batch from plan to offsets. `planned` is `Finished` where an earlier plan was asked for that is committed;
    `committed` None where the positions are none of its business."""

    planned: Planned | Finished
    published: Published | Finished
    committed: OffsetsCommitted | None


Result = NothingToDo | Planned | Read | Reassembled | Validated | Published | Finished | OffsetsCommitted

_AGAIN = "run the step before this one again"
RESULTS: dict[str, Versioned[Any]] = {
    kind.__name__: Versioned(kind, f"the result {kind.__name__}", _AGAIN)
    for kind in (NothingToDo, Planned, Read, Reassembled, Validated, Published, Finished, OffsetsCommitted)
}


def result_to_json(result: Result) -> dict[str, Any]:
    """A result as it goes through XCom."""
    name = type(result).__name__
    return {"result": name, **RESULTS[name].content(result)}


def result_from_json(found: object, kind: type[R]) -> R | Finished:
    """The result that came through XCom: one of this kind, or `Finished`. Raises `BadInput` for anything else."""
    name = found.get("result") if isinstance(found, dict) else None
    if not isinstance(found, dict) or name not in (kind.__name__, Finished.__name__):
        raise BadInput(f"{ascii(name)[:80]} came where the result {kind.__name__} was expected; {_AGAIN}")
    result: R | Finished = RESULTS[name].of({key: value for key, value in found.items() if key != "result"})
    return result


def describe_plan(plan: Plan, forecast: Forecast | None = None, *, before: Sequence[Stage] = ()) -> Planned:
    """`before`: what planning itself did, or would do."""
    return Planned(
        plan_id=plan.plan_id,
        kind=plan.kind.value,
        stream=plan.stream.name,
        generation=plan.generation,
        slices=tuple(tuple(str(s) for s in unit) for unit in plan.units),
        records=plan.records,
        estimated_bytes=plan.estimated_bytes,
        ranges=tuple((r.partition, r.start, r.end) for r in plan.ranges),
        why=dict(sorted(plan.why.items())),
        left=plan.left,
        forecast=forecast,
        remarks=plan.remarks,
        stages=explain((*before, *stages_of(plan))),
    )


def describe_published(row: BatchRow) -> Published:
    return Published(
        plan_id=row.plan_id,
        sequence=row.sequence,
        waveforms=row.waveforms,
        counts=row.counts,
        reasons=row.reasons,
        identity_balances=row.identity_balances,
        remarks=(said,) if (said := said_of_places(row.without_bytes)) else (),
    )


def read_tasks(planned: Planned | Finished) -> list[dict[str, Any]]:
    """What the read step is mapped over: a reader each, of one unit or of several that are not worth more readers.
    Never empty, since that would be taken for nothing to do: a batch that only expires what has waited too long reads
    nothing, and a finished one only looks after its offsets."""
    if isinstance(planned, Finished) or not planned.units:
        return [{"units": [], "slices": "nothing to read"}]
    readers = min(len(planned.units), worth_starting(planned.records, planned.estimated_bytes))
    dealt = [planned.units[n::readers] for n in range(readers)]
    return [{"units": list(units), "slices": "; ".join(", ".join(planned.slices[n]) for n in units)} for units in dealt]


def together(reads: Sequence[Read | Finished]) -> Read | Finished:
    """What several executions of the read step have read, as one."""
    found: list[Read] = []
    for one in reads:
        if isinstance(one, Finished):
            return one
        found.append(one)
    return Read(
        receipts=tuple(name for r in found for name in r.receipts),
        records=sum(r.records for r in found),
        bytes=sum(r.bytes for r in found),
        seconds=max((r.seconds for r in found), default=0.0),
    )


def needed(found: R | Finished, plan_id: str) -> R:
    """The result of an earlier step, for one that is not finished."""
    if isinstance(found, Finished):
        raise Fenced(
            f"batch {plan_id[:16]} was committed when an earlier step looked, and is not any more: the table was put "
            "back meanwhile; plan again",
            plan_id=plan_id,
        )
    return found
