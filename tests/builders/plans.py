"""Plans of tests and what was read for them: offsets [5, 9) of partition 0, and what a test changes about it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tests.builders.ranges import span
from tests.builders.streams import make_stream
from wavestitch.contracts.plan import Plan, PlanKind
from wavestitch.contracts.position import Position
from wavestitch.contracts.quantities import EpochMs, Offset, Partition
from wavestitch.contracts.receipt import LandedSlice, Receipt

DIGEST = "0123456789abcdef" * 2


def make_plan(**changes: Any) -> Plan:
    """Sealed, as every plan is: its id follows from what is in it."""
    known: dict[str, Any] = {
        "plan_id": "",
        "kind": PlanKind.INGEST,
        "stream": make_stream(),
        "topic_id": "topic",
        "partitions": 2,
        "ranges": (span(0, 5, 9),),
        "units": ((span(0, 5, 7),), (span(0, 7, 9),)),
        "positions": {0: Position(Offset(5), EpochMs(7), None), 1: Position(Offset(0))},
        "ends": {0: Position(Offset(9)), 1: Position(Offset(0))},
        "generation": 1,
        "base_sequence": 1,
        "base_snapshot": 123456789012345678,
        "held_snapshot": None,
        "watermark_ms": 5,
        "clock_ms": 9,
        "scope": None,
        "why": {0: "because"},
        "mean_record_bytes": 1.5,
        "code_version": "test",
        "nonce": "n",
    }
    return Plan(**{**known, **changes}).sealed()


def make_slice(start: int, end: int, **changes: Any) -> LandedSlice:
    """A landed slice of partition 0, with a record at every offset."""
    name = f"slice-p0-{start}-{end}-{DIGEST}.arrow"
    found = LandedSlice(
        Partition(0), Offset(start), Offset(end), name, 10, DIGEST, DIGEST, end - start, 8, EpochMs(1), []
    )
    return replace(found, **changes)


def make_receipt(*slices: LandedSlice, plan: Plan | None = None) -> Receipt:
    return Receipt((plan or make_plan()).plan_id, 0, list(slices), 1.0)
