"""What a consumer run says about a unit it has read: files, counts, explained holes. JSON in a write-once file."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass

from wavestitch.contracts.errors import BadInput, DataLost
from wavestitch.contracts.offset_range import OffsetRange
from wavestitch.contracts.plan import Plan

RECEIPT_FORMAT = 1


@dataclass(frozen=True, slots=True)
class LandedSlice:
    """One slice as it lies on disk. `file` is a name in the plan's folder, `digest` XXH3-128 of it; None where the
    slice had no record. `holes`: half-open offset intervals without a record, explained as `transaction (inferred)`.
    `seen_ms`: record time of the last record. `payload_bytes`: of all records."""

    partition: int
    start: int
    end: int
    file: str | None
    file_bytes: int
    digest: str
    records: int
    payload_bytes: int
    seen_ms: int | None
    holes: list[list[int]]


@dataclass(frozen=True, slots=True)
class Receipt:
    plan_id: str
    unit: int
    slices: list[LandedSlice]
    seconds: float

    def to_json(self) -> str:
        return json.dumps({"format": RECEIPT_FORMAT, **asdict(self)}, indent=1, sort_keys=True)


def receipt_from_json(text: str) -> Receipt:
    found = json.loads(text)
    if found.pop("format", None) != RECEIPT_FORMAT:
        raise BadInput(f"a receipt has an unknown format; this version reads {RECEIPT_FORMAT}: run the batch again")
    return Receipt(**{**found, "slices": [LandedSlice(**s) for s in found["slices"]]})


def check_coverage(plan: Plan, receipts: Sequence[Receipt]) -> None:
    """Every planned offset is a record that was read or an explained hole, once. Raises `DataLost` by name (I1, I8)."""
    done = sorted((s.partition, s.start, s.end) for r in receipts for s in r.slices)
    planned = sorted(tuple(s) for unit in plan.units for s in unit)
    if done != planned:
        missing = [str(OffsetRange(*s)) for s in planned if s not in done]
        raise DataLost(
            f"batch {plan.plan_id[:16]}: {len(missing)} of {len(planned)} planned slices have no receipt or more than "
            f"one: {', '.join(missing[:4])}; run its read step again"
        )
    for r in receipts:
        for s in r.slices:
            explained = sum(b - a for a, b in s.holes)
            if s.records + explained != s.end - s.start:
                raise DataLost(
                    f"batch {plan.plan_id[:16]}: {OffsetRange(s.partition, s.start, s.end)} of {plan.stream.topic} has "
                    f"{s.end - s.start} offsets, {s.records} records and {explained} explained holes; nothing was "
                    "published, run the batch again",
                    partition=s.partition,
                )
