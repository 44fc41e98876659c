"""What a step of a batch did, as one sentence: the first that somebody reads in its log. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import assert_never

from wavestitch.batch.plan import NothingToDo
from wavestitch.batch.results import (
    Finished,
    OffsetsCommitted,
    Planned,
    Published,
    Read,
    Reassembled,
    Result,
    Validated,
)


def said_of_result(result: Result) -> str:
    """What came of it, and what it means for whoever wonders whether anything is lost."""
    match result:
        case NothingToDo():
            return f"nothing is to be done: {result.why}"
        case Planned():
            return _planned(result)
        case Read():
            return f"read {result.records} records, {result.bytes} bytes of payload; nothing counts before the commit"
        case Reassembled():
            return f"{result.waveforms} waveforms are whole and stitched; nothing counts before the commit"
        case Validated():
            return _validated(result)
        case Published():
            return _published(result)
        case Finished():
            return f"batch {result.plan_id[:16]} was committed before, and nothing is done twice"
        case OffsetsCommitted():
            return f"{result.offsets}; {result.freed_bytes} bytes of the landing were given back"
        case _:
            assert_never(result)


def _planned(plan: Planned) -> str:
    partitions = len({partition for partition, _, _ in plan.ranges})
    left = f"; {plan.left} more are left to the next batch" if plan.left else ""
    return (
        f"batch {plan.plan_id[:16]} reads {plan.records} offsets of {partitions} partitions, about "
        f"{plan.estimated_bytes} bytes, in {len(plan.slices)} units{left}"
    )


def _validated(found: Validated) -> str:
    if found.park:
        return f"the whole batch is held, by somebody's word: {found.note}"
    said = f"the gate is passed by somebody's word: {found.note}" if found.answered else "the gate is open"
    failed = f"; {found.failed} waveforms fail an expectation about them, and are held" if found.failed else ""
    reported = f"; reported, which holds nothing: {', '.join(found.reported)}" if found.reported else ""
    return f"{said}{failed}{reported}"


def _published(found: Published) -> str:
    balance = "every chunk is accounted for" if found.identity_balances else "the audit identity does not balance"
    return (
        f"committed as head {found.sequence}; waveforms: {_counted(found.waveforms)}; chunks: "
        f"{_counted(found.counts)}; {balance}"
    )


def _counted(found: Mapping[str, int]) -> str:
    return ", ".join(f"{n} {what.replace('_', ' ')}" for what, n in found.items() if n) or "none"
