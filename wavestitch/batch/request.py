"""What somebody asks for, as text or as an Airflow run, turned into the request of a batch or the target of a rewind.

Pure; knows neither Airflow nor the command line, and serves both. Only a request for nothing in particular moves the
positions: whoever names offsets or an interval leaves them alone.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any, Literal

from pydantic import TypeAdapter

from wavestitch.batch.plan import PlanRequest
from wavestitch.batch.rewind_target import OF_A_PARTITION, TARGETS, Target
from wavestitch.contracts.accepted_skip import ALL, AcceptedSkip
from wavestitch.contracts.errors import BadInput
from wavestitch.contracts.instant import parse_time
from wavestitch.contracts.offset_range import OffsetRange
from wavestitch.contracts.plain_text import said_by_person
from wavestitch.contracts.plan import PlanKind, Scope
from wavestitch.contracts.quantities import Offset, Partition, Seconds, epoch_ms, time_ns
from wavestitch.contracts.stream import Span

Gate = Literal["stop", "accept", "park"]
GATES: tuple[Gate, ...] = ("stop", "accept", "park")
HOLDS_NOTHING = (
    "a backfill, or a batch of named offsets, holds nothing; an ingest holds what it parks, and reads these offsets "
    "after a rewind to before them"
)

# No other digits than these: a number that only looks like one must not become an offset.
_RANGE = re.compile(r"^([0-9]{1,9}):([0-9]{1,18})-([0-9]{1,18})$")
_OFFSETS = re.compile(r"[0-9]{1,9}:[0-9]{1,18}(,[0-9]{1,9}:[0-9]{1,18})*")
_OFFSET = re.compile(r"^[0-9]{1,18}$")
_PART = re.compile(r"^[0-9]{1,9}:[^,]+")
_PARTITIONS = re.compile(r"[0-9]{1,9}(,[0-9]{1,9})*")
_DURATION = TypeAdapter[Seconds](Span)
_DATE = re.compile(r"^[0-9]{4}-")
_WORD = re.compile(r"^[a-z-]+$")
_ARGUED = re.compile(r"(before):([0-9a-f]{4,32})|(shift):(-?[0-9]{1,18})|(undo):([0-9]{1,18})")


def plan_request(
    run_type: str, data_interval: tuple[datetime, datetime] | None, params: Mapping[str, Any]
) -> PlanRequest:
    """The request behind a run. `run_type` and `data_interval` as Airflow names them; `params`: `offsets`, `interval`,
    `partitions`, `until`.

    A backfill owns its data interval. Any other run ingests from the head's positions, unless its params name offsets
    (`PARTITION:START-END,…`) or an interval (`START/END`). An ingest may be of some `partitions` only (`0,2`), and end
    at named offsets (`until`: `PARTITION:OFFSET,…`).
    """
    offsets, interval = _text(params, "offsets"), _text(params, "interval")
    only, until = parse_partitions(_text(params, "partitions")), parse_until(_text(params, "until"))
    if (only or until) and (offsets or interval or run_type == "backfill"):
        raise BadInput("partitions and until are about an ingest; offsets, an interval and a backfill exclude them")
    if only is not None and not until.keys() <= only:
        raise BadInput(f"until names partition {min(until.keys() - only)}, which is not among the partitions named")
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
    return PlanRequest(only=only, until=until)


def earlier_plan(run_type: str, params: Mapping[str, Any]) -> str | None:
    """The plan that a run is to carry through again; None where it makes one of its own."""
    plan_id = _text(params, "plan_id")
    others = [n for n in ("offsets", "interval", "partitions", "until") if _text(params, n)]
    if plan_id and (run_type == "backfill" or others):
        raise BadInput("an earlier plan has its own ranges; leave offsets and interval empty, and don't backfill it")
    return plan_id or None


def check_gate(gate: str, why: str | None, request: PlanRequest | None = None) -> tuple[Gate, str]:
    """What a closed gate does, and the reason that is recorded with it. `request`: the batch that is to be planned."""
    if gate not in GATES:
        raise BadInput(f"the gate is {gate!r}; allowed are {', '.join(GATES)}")
    reason = said_by_person(why, "the reason (why)")
    if gate != "stop" and not reason:
        raise BadInput(f"gate {gate} needs a reason (why): it is recorded with the batch")
    if gate == "park" and request is not None and not request.kind.holds:
        raise BadInput(f"gate park is not for this batch: {HOLDS_NOTHING}. Allowed are stop and accept")
    return gate, reason


def rewind_target(to: str, partitions: str | None = None) -> Target:
    """Where a rewind goes: a word, a time, or `PARTITION:WHERE,…`, where WHERE is an offset, a word or a time.

    `partitions`: `0,2`, of a word or a time these only.
    """
    wanted, only = to.strip(), parse_partitions(partitions)
    if not _PART.match(wanted):
        return replace(_place(wanted), only=only)
    if only is not None:
        raise BadInput(f"{to!r} names its partitions itself; leave --partitions out")
    pairs = [part.strip().partition(":") for part in wanted.split(",")]
    if any(not _PART.match(f"{p}:{where}") for p, _, where in pairs):
        raise BadInput(f"{to!r} is not PARTITION:WHERE,…; write it like 2:earliest,3:12345")
    if len({int(p) for p, _, _ in pairs}) < len(pairs):
        raise BadInput(f"{to!r} names a partition twice; name one place a partition")
    offsets = {Partition(int(p)): Offset(int(where)) for p, _, where in pairs if _OFFSET.match(where)}
    if len(offsets) == len(pairs):
        return Target(offsets=offsets)
    return Target(
        parts={
            p: Target(offsets={p: offsets[p]}) if p in offsets else _part(where)
            for p, where in ((Partition(int(p)), where) for p, _, where in pairs)
        }
    )


def _part(where: str) -> Target:
    found = _place(where)
    if found.word and found.word not in OF_A_PARTITION:
        raise BadInput(f"{where!r} is no place for one partition; allowed are {', '.join(OF_A_PARTITION)}")
    return found


def _place(where: str) -> Target:
    if _DATE.match(where):
        return Target(time_ms=epoch_ms(parse_time(where)))
    if found := _ARGUED.fullmatch(where):
        word, argument = (part for part in found.groups() if part is not None)
        return Target(word=word, argument=argument)
    if not _WORD.match(where):
        raise BadInput(f"{where!r} is not a place to go; allowed are {TARGETS}")
    return Target(word=where)


def parse_partitions(text: str | None) -> frozenset[Partition] | None:
    """`0,2`; None where nothing was named."""
    named = (text or "").replace(" ", "")
    if not named:
        return None
    if not _PARTITIONS.fullmatch(named):
        raise BadInput(f"{text!r} is not a list of partitions; write it like 0,2")
    return frozenset(Partition(int(p)) for p in named.split(","))


def parse_until(text: str | None) -> dict[Partition, Offset]:
    """`PARTITION:OFFSET,…`: the offset named is the first one that is not read."""
    named = (text or "").replace(" ", "")
    if not named:
        return {}
    if not _OFFSETS.fullmatch(named):
        raise BadInput(f"{text!r} is not PARTITION:OFFSET,…; write it like 0:1200,1:800")
    pairs = [part.split(":") for part in named.split(",")]
    if len({int(p) for p, _ in pairs}) < len(pairs):
        raise BadInput(f"{text!r} names a partition twice; name one offset a partition")
    return {Partition(int(p)): Offset(int(o)) for p, o in pairs}


def parse_duration(text: str | None) -> Seconds:
    """None is none at all."""
    if text is None:
        return Seconds(0)
    try:
        return _DURATION.validate_python(text)
    except ValueError:
        raise BadInput(
            f"{ascii(text)[:80]} is not a length of time; write a whole number with s, m, h or d, e.g. 55m"
        ) from None


def parse_range(text: str) -> OffsetRange:
    """`PARTITION:START-END`, half-open."""
    found = _RANGE.match(text.strip())
    if not found or int(found[2]) >= int(found[3]):
        raise BadInput(f"{text!r} is not PARTITION:START-END with START before END, e.g. 0:100-200")
    return OffsetRange(Partition(int(found[1])), Offset(int(found[2])), Offset(int(found[3])))


def parse_accepted(text: str) -> AcceptedSkip:
    """`--accept-skip`: ranges between commas, or `all`; empty: nothing. Raises `BadInput`."""
    if text.strip() == ALL:
        return True
    return tuple(parse_range(part) for part in text.split(",")) if text.strip() else False


def _backfill(scope: Scope, shown: str) -> PlanRequest:
    if scope.end_ns <= scope.start_ns:
        raise BadInput(f"the interval {shown} does not end after it starts")
    return PlanRequest(PlanKind.BACKFILL, scope=scope)


def _text(params: Mapping[str, Any], name: str) -> str:
    return str(params.get(name) or "").strip()
