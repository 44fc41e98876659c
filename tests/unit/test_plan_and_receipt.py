"""A plan is sealed by its content; receipts must cover it exactly (I1, I6)."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from typing import Any

import pytest

from tests.builders.plans import make_plan, make_receipt, make_slice
from tests.builders.ranges import span
from wavestitch.contracts.errors import BadInput, DataLost
from wavestitch.contracts.holes import Hole, Proof
from wavestitch.contracts.plan import PlanKind, Scope, plan_from_json
from wavestitch.contracts.position import LastBatch, Position
from wavestitch.contracts.quantities import LeaderEpoch, Offset
from wavestitch.contracts.receipt import LandedSlice, check_coverage, receipt_from_json
from wavestitch.contracts.written import Written


def test_a_plan_survives_its_file() -> None:
    for plan in (make_plan(), make_plan(kind=PlanKind.BACKFILL, scope=Scope(1, 2), base_snapshot=1 << 62)):
        assert plan_from_json(plan.to_json()) == plan


def test_a_changed_plan_is_refused() -> None:
    found = json.loads(make_plan().to_json())
    found["ranges"] = [[0, 5, 8]]
    with pytest.raises(BadInput, match="was changed after it was made"):
        plan_from_json(json.dumps(found))


@pytest.mark.parametrize("older", [1, 2])
def test_a_plan_of_an_older_format_keeps_its_id_read_and_written_again(older: int) -> None:
    last = None if older == 1 else LastBatch(LeaderEpoch(0), "ab" * 16)
    plan = make_plan(ends={0: Position(Offset(9), last_batch=last), 1: Position(Offset(0))})
    said = json.loads(plan.to_json())
    del said["stream"]["freshness"]
    if older == 1:
        said |= {k: {p: at[:3] for p, at in said[k].items()} for k in ("positions", "ends")}
    content = {**said, "format": older}
    found = plan_from_json(json.dumps(content))
    assert found == plan
    assert plan_from_json(found.to_json()) == plan
    del content["plan_id"]
    sealed = json.dumps(content, sort_keys=True, separators=(",", ":"))
    assert plan.plan_id == hashlib.sha256(sealed.encode()).hexdigest()[:32]


def test_what_a_plan_says_of_the_log_is_sealed_with_it() -> None:
    last = Position(Offset(9), last_batch=LastBatch(LeaderEpoch(0), "ab" * 16))
    plan = make_plan(ends={0: last, 1: Position(Offset(0))})
    assert plan_from_json(plan.to_json()) == plan
    assert plan.plan_id != make_plan().plan_id
    with pytest.raises(BadInput, match="was changed after it was made"):
        plan_from_json(plan.to_json().replace("ab" * 16, "ac" * 16))


def test_an_unknown_plan_format_is_refused() -> None:
    with pytest.raises(BadInput, match="format 99"):
        plan_from_json(json.dumps({**json.loads(make_plan().to_json()), "format": 99}))


def test_every_execution_of_planning_makes_another_plan() -> None:
    assert make_plan(nonce="a").plan_id != make_plan(nonce="b").plan_id


def test_a_receipt_survives_its_file() -> None:
    one = make_receipt(make_slice(5, 7, holes=[Hole(Offset(6), Offset(7), Proof.CONTROL)], records=1))
    assert receipt_from_json(one.to_json()) == one


def test_full_coverage_passes() -> None:
    rest = make_slice(7, 9, records=1, holes=[Hole(Offset(8), Offset(9), Proof.COMMIT_MARKER)])
    check_coverage(make_plan(), [make_receipt(make_slice(5, 7), rest)])


@pytest.mark.parametrize(
    "slices",
    [
        [make_slice(5, 7)],
        [make_slice(5, 7), make_slice(7, 9), make_slice(7, 9)],
        [make_slice(5, 7), make_slice(7, 8)],
        [make_slice(5, 7), make_slice(7, 9, records=1)],
        [make_slice(5, 7), make_slice(7, 9, holes=[Hole(Offset(8), Offset(9), Proof.COMMIT_MARKER)])],
    ],
    ids=["slice missing", "slice twice", "slice short", "record missing", "record too many"],
)
def test_anything_else_fails_the_batch_by_name(slices: list[LandedSlice]) -> None:
    with pytest.raises(DataLost, match=r"partition 0|slices have no receipt"):
        check_coverage(make_plan(), [make_receipt(*slices)])


EMPTY = {"records": 0, "file": None, "file_bytes": 0, "payload_bytes": 0, "seen_ms": None}
OTHER = make_plan(units=((span(0, 7, 9),), (span(0, 5, 7),)))
"""The same slices, the other way round."""
GAP = [Hole(Offset(5), Offset(7), Proof.CONTROL)]


def hole(start: int, end: int) -> Hole:
    return Hole(Offset(start), Offset(end), Proof.CONTROL)


def run(start: int, epoch: int) -> Written:
    return Written(Offset(start), LeaderEpoch(epoch))


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {**EMPTY, "holes": GAP},
        {"file_bytes": 0, "payload_bytes": 0, "seconds": 0.0},
        {"holes": [hole(5, 6), hole(6, 7)]},
        {"written": [run(5, 3), run(6, 4)]},
        {"written": [run(6, 4)]},
    ],
)
def test_a_slice_that_a_reader_may_write_is_read(changes: dict[str, Any]) -> None:
    one = make_receipt(make_slice(5, 7, **changes))
    assert receipt_from_json(one.to_json()) == one
    assert receipt_from_json(replace(one, unit=1, seconds=0.0).to_json()).unit == 1


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        *(({name: -1}, "a number of a slice is less than 0") for name in ("file_bytes", "records", "payload_bytes")),
        ({"partition": -1}, "a number of a slice is less than 0"),
        ({"start": -1}, "a number of a slice is less than 0"),
        ({"end": -1}, "a number of a slice is less than 0"),
        ({"seconds": -0.5}, "a number of a slice is less than 0"),
        ({"file": None}, "is None, which is not the name of its landing file"),
        ({**EMPTY, "records": 1}, "is None, which is not the name of its landing file"),
        ({"file": "../x.arrow"}, "is '../x.arrow', which is not the name"),
        ({"digest": "../x", "file": "slice-p0-5-7-../x.arrow"}, "which is not the name"),
        ({"partition": 1}, "which is not the name"),
        ({"start": 6}, "which is not the name"),
        ({"digest": "f" * 32}, "which is not the name"),
        *(
            ({"holes": holes}, "the holes of .* are not in it, in order")
            for holes in (
                *([hole(4, 6)], [hole(6, 8)], [hole(6, 6)], [hole(6, 5)], [hole(7, 7)]),
                *([hole(6, 7), hole(5, 6)], [hole(5, 7), hole(6, 7)]),
            )
        ),
        *(
            ({"written": runs}, "the runs of leader epochs of .* are not in it, in order")
            for runs in ([run(4, 3)], [run(7, 3)], [run(6, 3), run(5, 4)], [run(5, 3), run(6, 3)])
        ),
    ],
)
def test_a_slice_that_no_reader_writes_is_none(changes: dict[str, Any], says: str) -> None:
    one = make_receipt(make_slice(5, 7), replace(make_slice(5, 7), **changes))
    with pytest.raises(BadInput, match=says):
        receipt_from_json(one.to_json())


@pytest.mark.parametrize("changes", [{"unit": -1}, {"seconds": -0.5}])
def test_a_receipt_with_a_number_that_cannot_be_is_none(changes: dict[str, Any]) -> None:
    with pytest.raises(BadInput, match="a number of it is less than 0"):
        receipt_from_json(replace(make_receipt(make_slice(5, 7)), **changes).to_json())


def test_a_receipt_of_the_format_before_says_nothing_of_leader_epochs() -> None:
    one = make_receipt(make_slice(5, 7), make_slice(7, 9))
    said = json.loads(one.to_json())
    assert said["format"] == 4
    for s in said["slices"]:
        assert (s.pop("written"), s["seconds"]) == ([], 0.0)
    assert receipt_from_json(json.dumps({**said, "format": 3})) == one
    for format_, says in ((2, "format 2, which was never released"), (5, "format 5"), (4, "lacks a field: .*written")):
        with pytest.raises(BadInput, match=says):
            receipt_from_json(json.dumps({**said, "format": format_}))


def test_slices_cover_a_plan_in_whatever_order_and_receipt_they_come() -> None:
    parts = [make_receipt(make_slice(7, 9)), make_receipt(make_slice(5, 7))]
    check_coverage(make_plan(), parts)
    check_coverage(OTHER, [replace(r, plan_id=OTHER.plan_id) for r in parts])


def test_a_receipt_of_another_plan_covers_nothing() -> None:
    with pytest.raises(BadInput, match=f"a receipt of unit 0 is of plan '{OTHER.plan_id[:16]}', the batch's plan is"):
        check_coverage(make_plan(), [replace(make_receipt(make_slice(5, 7), make_slice(7, 9)), plan_id=OTHER.plan_id)])


def test_the_slices_without_a_receipt_are_named() -> None:
    with pytest.raises(DataLost, match=r"1 of 2 planned slices .* than one: partition 0 \[7, 9\); run its read step"):
        check_coverage(make_plan(), [make_receipt(make_slice(5, 7))])
