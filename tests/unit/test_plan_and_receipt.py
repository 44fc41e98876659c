"""A plan is sealed by its content; receipts must cover it exactly (I1, I6)."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from wavestitch.contracts.errors import BadInput, DataLost
from wavestitch.contracts.holes import Hole, Proof
from wavestitch.contracts.offset_range import OffsetRange
from wavestitch.contracts.plan import Plan, PlanKind, Scope, plan_from_json
from wavestitch.contracts.position import Position
from wavestitch.contracts.quantities import EpochMs
from wavestitch.contracts.receipt import LandedSlice, Receipt, check_coverage, receipt_from_json
from wavestitch.contracts.stream import parse_stream

DIGEST = "0123456789abcdef" * 2


def make_plan(**changes: object) -> Plan:
    plan = Plan(
        plan_id="",
        kind=PlanKind.BACKFILL,
        stream=parse_stream(
            "topic: t\ngroup: g\nexpectations: [{type: expect_table_row_count_to_equal, kwargs: {value: 1}}]", name="x"
        ),
        topic_id="T",
        partitions=2,
        ranges=(OffsetRange(0, 5, 9),),
        units=((OffsetRange(0, 5, 7),), (OffsetRange(0, 7, 9),)),
        positions={0: Position(5, EpochMs(7), None), 1: Position(0)},
        ends={0: Position(9), 1: Position(0)},
        generation=3,
        base_sequence=8,
        base_snapshot=123456789012345678,
        held_snapshot=None,
        watermark_ms=EpochMs(5),
        clock_ms=EpochMs(9),
        scope=Scope(1, 2),
        why={0: "because"},
        mean_record_bytes=1.5,
        code_version="0",
        nonce="n",
    )
    return replace(plan, **changes).sealed()  # type: ignore[arg-type]


def landed(start: int, end: int, **changes: object) -> LandedSlice:
    found = LandedSlice(
        0, start, end, f"slice-p0-{start}-{end}-{DIGEST}.arrow", 10, DIGEST, DIGEST, end - start, 8, EpochMs(1), []
    )
    return replace(found, **changes)  # type: ignore[arg-type]


def receipts(*slices: LandedSlice) -> list[Receipt]:
    return [Receipt(make_plan().plan_id, 0, list(slices), 1.0)]


def test_a_plan_survives_its_file() -> None:
    assert plan_from_json(make_plan().to_json()) == make_plan()


def test_a_changed_plan_is_refused() -> None:
    found = json.loads(make_plan().to_json())
    found["ranges"] = [[0, 5, 8]]
    with pytest.raises(BadInput, match="was changed after it was made"):
        plan_from_json(json.dumps(found))


def test_an_unknown_plan_format_is_refused() -> None:
    with pytest.raises(BadInput, match="format 99"):
        plan_from_json(json.dumps({**json.loads(make_plan().to_json()), "format": 99}))


def test_every_execution_of_planning_makes_another_plan() -> None:
    assert make_plan(nonce="a").plan_id != make_plan(nonce="b").plan_id


def test_a_receipt_survives_its_file() -> None:
    one = receipts(landed(5, 7, holes=[Hole(6, 7, Proof.CONTROL)], records=1))[0]
    assert receipt_from_json(one.to_json()) == one


def test_full_coverage_passes() -> None:
    check_coverage(
        make_plan(), receipts(landed(5, 7), landed(7, 9, records=1, holes=[Hole(8, 9, Proof.COMMIT_MARKER)]))
    )


@pytest.mark.parametrize(
    "slices",
    [
        [landed(5, 7)],
        [landed(5, 7), landed(7, 9), landed(7, 9)],
        [landed(5, 7), landed(7, 8)],
        [landed(5, 7), landed(7, 9, records=1)],
        [landed(5, 7), landed(7, 9, holes=[Hole(8, 9, Proof.COMMIT_MARKER)])],
    ],
    ids=["slice missing", "slice twice", "slice short", "record missing", "record too many"],
)
def test_anything_else_fails_the_batch_by_name(slices: list[LandedSlice]) -> None:
    with pytest.raises(DataLost, match=r"partition 0|slices have no receipt"):
        check_coverage(make_plan(), receipts(*slices))
