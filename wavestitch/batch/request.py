"""What somebody asks for, as text or as an Airflow run, turned into the request of a batch or the target of a rewind.

Pure; knows neither Airflow nor the command line, and serves both. Only a request for nothing in particular moves the
positions: whoever names offsets or an interval leaves them alone.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Literal

from wavestitch.batch.plan import PlanRequest
from wavestitch.batch.rewind import TARGETS, Target
from wavestitch.contracts.errors import BadInput
from wavestitch.contracts.offset_range import OffsetRange
from wavestitch.contracts.plain_text import said_by_person
from wavestitch.contracts.plan import PlanKind, Scope

Gate = Literal["stop", "accept", "park"]
GATES: tuple[Gate, ...] = ("stop", "accept", "park")

# No other digits than these: a number that only looks like one must not become an offset.
_RANGE = re.compile(r"^([0-9]{1,9}):([0-9]{1,18})-([0-9]{1,18})$")
_OFFSETS = re.compile(r"^[0-9]{1,9}:[0-9]{1,18}( *, *[0-9]{1,9}:[0-9]{1,18})*$")
_DATE = re.compile(r"^[0-9]{4}-")
_WORD = re.compile(r"^[a-z-]+$")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def plan_request(
    run_type: str, data_interval: tuple[datetime, datetime] | None, params: Mapping[str, Any]
) -> PlanRequest:
    """The request behind a run. `run_type` and `data_interval` as Airflow names them; `params`: `offsets`, `interval`.

    A backfill owns its data interval. Any other run ingests from the head's positions, unless its params name offsets
    (`PARTITION:START-END,…`) or an interval (`START/END`).
    """
    offsets, interval = _text(params, "offsets"), _text(params, "interval")
    if run_type == "backfill":
        if offsets or interval:
            raise BadInput("a backfill takes its interval from its run; leave offsets and interval empty")
        if data_interval is None:
            raise BadInput("this backfill run has no data interval; give the stream a schedule, then backfill again")
        start, end = data_interval
        return _backfill(Scope(time_ns(start), time_ns(end)), f"{start.isoformat()}/{end.isoformat()}")
    if offsets and interval:
        raise BadInput("offsets and interval exclude each other; give one")
    if interval:
        first, _, second = interval.partition("/")
        return _backfill(Scope(parse_time(first), parse_time(second)), interval)
    if offsets:
        return PlanRequest(PlanKind.MANUAL, ranges=tuple(parse_range(part) for part in offsets.split(",")))
    return PlanRequest()


def earlier_plan(run_type: str, params: Mapping[str, Any]) -> str | None:
    """The plan that a run is to carry through again; None where it makes one of its own."""
    plan_id = _text(params, "plan_id")
    if plan_id and (run_type == "backfill" or _text(params, "offsets") or _text(params, "interval")):
        raise BadInput("an earlier plan has its own ranges; leave offsets and interval empty, and don't backfill it")
    return plan_id or None


def check_gate(gate: str, why: str | None) -> tuple[Gate, str]:
    """What a closed gate does, and the reason that is recorded with it."""
    if gate not in GATES:
        raise BadInput(f"the gate is {gate!r}; allowed are {', '.join(GATES)}")
    reason = said_by_person(why, "the reason (why)")
    if gate != "stop" and not reason:
        raise BadInput(f"gate {gate} needs a reason (why): it is recorded with the batch")
    return gate, reason


def rewind_target(to: str) -> Target:
    """Where a rewind goes: a word, a time, or `PARTITION:OFFSET,…`."""
    wanted = to.strip()
    if _OFFSETS.match(wanted):
        pairs = [part.split(":") for part in wanted.replace(" ", "").split(",")]
        offsets = {int(p): int(o) for p, o in pairs}
        if len(offsets) < len(pairs):
            raise BadInput(f"{to!r} names a partition twice; name one offset a partition")
        return Target(offsets=offsets)
    if _DATE.match(wanted):
        return Target(time_ms=parse_time(wanted) // 1_000_000)
    if not _WORD.match(wanted):
        raise BadInput(f"{to!r} is not a place to go; allowed are {TARGETS}")
    return Target(word=wanted)


def parse_range(text: str) -> OffsetRange:
    """`PARTITION:START-END`, half-open."""
    found = _RANGE.match(text.strip())
    if not found or int(found[2]) >= int(found[3]):
        raise BadInput(f"{text!r} is not PARTITION:START-END with START before END, e.g. 0:100-200")
    return OffsetRange(int(found[1]), int(found[2]), int(found[3]))


def parse_time(text: str) -> int:
    """An ISO time with its zone, in ns since the epoch."""
    try:
        found = datetime.fromisoformat(text.strip())
    except ValueError:
        raise BadInput(f"{text!r} is not a time; write it like 2026-01-31T12:00:00Z") from None
    if found.tzinfo is None:
        raise BadInput(f"{text!r} has no time zone; add Z for UTC")
    return time_ns(found)


def time_ns(moment: datetime) -> int:
    """Exact: a float has no room for nanoseconds of this century."""
    return (moment - _EPOCH) // timedelta(microseconds=1) * 1000


def _backfill(scope: Scope, shown: str) -> PlanRequest:
    if scope.end_ns <= scope.start_ns:
        raise BadInput(f"the interval {shown} does not end after it starts")
    return PlanRequest(PlanKind.BACKFILL, scope=scope)


def _text(params: Mapping[str, Any], name: str) -> str:
    return str(params.get(name) or "").strip()
