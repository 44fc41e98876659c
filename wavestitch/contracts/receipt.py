"""What a consumer run says about a unit it has read: files, counts, explained holes. JSON in a write-once file."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from wavestitch.contracts.errors import BadInput, DataLost
from wavestitch.contracts.holes import Hole
from wavestitch.contracts.offset_range import OffsetRange
from wavestitch.contracts.plan import Plan
from wavestitch.contracts.quantities import EpochMs, Offset, Partition
from wavestitch.contracts.versioned import Versioned
from wavestitch.contracts.written import Written, runs_of

RECEIPT_FORMAT = 4
_FILE = re.compile(r"slice-p[0-9]+-[0-9]+-[0-9]+-[0-9a-f]{32}\.arrow")


@dataclass(frozen=True, slots=True)
class LandedSlice:
    """One slice as it lies on disk. `file` is a name in the plan's folder, None where the slice had no record.
    `digest`: XXH3-128 of it; `index_digest`: SHA-256 of all that it says of its records, that of each payload included.
    `holes`: offsets without a record, each with its proof. `seen_ms`: record time
    of the last record. `payload_bytes`: of all records. `seconds`: what reading it took. `written`: in which
    leader epochs what lay there was, records and what proves the holes; none of a version that kept none."""

    partition: Partition
    start: Offset
    end: Offset
    file: str | None
    file_bytes: int
    digest: str
    index_digest: str
    records: int
    payload_bytes: int
    seen_ms: EpochMs | None
    holes: list[Hole]
    seconds: float = 0.0
    written: list[Written] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Receipt:
    plan_id: str
    unit: int
    slices: list[LandedSlice]
    seconds: float

    def to_json(self) -> str:
        return RECEIPTS.text(self)


def receipt_from_json(text: str) -> Receipt:
    """Refused with `BadInput` where it is no receipt, or says what cannot be."""
    return RECEIPTS.read(text)


def _impossible(receipt: Receipt) -> str | None:
    """What is wrong with a receipt that no reader would write, or None."""
    if receipt.unit < 0 or receipt.seconds < 0:
        return "a number of it is less than 0"
    return next((wrong for s in receipt.slices if (wrong := _impossible_slice(s))), None)


def _impossible_slice(s: LandedSlice) -> str | None:
    """What is wrong with a slice that no reader would write, or None. A file is a plain name: never a path."""
    if min(s.partition, s.start, s.end, s.file_bytes, s.records, s.payload_bytes, s.seconds) < 0:
        return "a number of a slice is less than 0"
    where = OffsetRange(s.partition, s.start, s.end)
    if s.file is None:
        named = s.records == 0
    else:
        named = s.file == f"slice-p{s.partition}-{s.start}-{s.end}-{s.digest}.arrow" and bool(_FILE.fullmatch(s.file))
    if not named:
        return f"the file of {where} is {ascii(s.file)[:120]}, which is not the name of its landing file"
    reached = s.start
    for begin, end, _ in s.holes:
        if not reached <= begin < end <= s.end:
            return f"the holes of {where} are not in it, in order"
        reached = Offset(end)
    if any(not s.start <= run.start < s.end for run in s.written) or s.written != runs_of(sorted(s.written)):
        return f"the runs of leader epochs of {where} are not in it, in order"
    return None


RECEIPTS = Versioned(
    Receipt,
    "a receipt",
    "run the batch's read step again",
    format=RECEIPT_FORMAT,
    upgrades={3: lambda fields: {**fields, "slices": [{**s, "written": []} for s in fields["slices"]]}},
    wrong=_impossible,
)


def check_coverage(plan: Plan, receipts: Sequence[Receipt]) -> None:
    """Every planned offset is a record that was read or an explained hole, once. Raises `DataLost` by name (I1, I8)."""
    for r in receipts:
        if r.plan_id != plan.plan_id:
            raise BadInput(
                f"a receipt of unit {r.unit} is of plan {r.plan_id[:16]!r}, the batch's plan is {plan.plan_id[:16]}; "
                "run the batch's read step again"
            )
    done = sorted(OffsetRange(s.partition, s.start, s.end) for r in receipts for s in r.slices)
    planned = sorted(s for unit in plan.units for s in unit)
    if done != planned:
        missing = [str(s) for s in planned if s not in done]
        raise DataLost(
            f"batch {plan.plan_id[:16]}: {len(missing)} of {len(planned)} planned slices have no receipt or more than "
            f"one: {', '.join(missing[:4])}; run its read step again"
        )
    for r in receipts:
        for s in r.slices:
            explained = sum(hole.end - hole.start for hole in s.holes)
            if s.records + explained != s.end - s.start:
                raise DataLost(
                    f"batch {plan.plan_id[:16]}: {OffsetRange(s.partition, s.start, s.end)} of {plan.stream.topic} has "
                    f"{s.end - s.start} offsets, {s.records} records and {explained} explained holes; nothing was "
                    "published, run the batch again",
                    partition=s.partition,
                )
