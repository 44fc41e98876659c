"""Records that outlive their code: an older one is read, a newer one is refused by a sentence, anything else, too."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.builders.heads import make_row
from tests.builders.plans import make_plan, make_receipt, make_slice
from tests.domain.effort import effort
from tests.hostile.refusing import value_or_refusal
from tests.unit.test_position import HEAD
from wavestitch.batch.results import Finished, Published, Read, Reassembled, result_from_json, result_to_json
from wavestitch.contracts.batch_row import BATCH_ROWS
from wavestitch.contracts.errors import BadInput
from wavestitch.contracts.payload_apart import PayloadPlace
from wavestitch.contracts.plan import PLANS
from wavestitch.contracts.position import HEADS
from wavestitch.contracts.receipt import RECEIPTS
from wavestitch.contracts.stitch_job import STITCH_JOBS, STITCH_REPORTS, StitchJob, StitchReport
from wavestitch.contracts.verdict import CLOSED_GATES, VERDICTS, ClosedGate, Verdict
from wavestitch.contracts.versioned import Versioned
from wavestitch.local.broker import PORTS, BrokerPorts

KINDS: dict[str, tuple[Versioned[Any], Any]] = {
    "plan": (PLANS, make_plan()),
    "receipt": (RECEIPTS, make_receipt(make_slice(5, 7))),
    "verdict": (VERDICTS, Verdict({"w": ("no",)}, (), ("x",), 1, 2)),
    "closed gate": (CLOSED_GATES, ClosedGate("p", "report-1.json", "verdict-1.json")),
    "head": (HEADS, HEAD),
    "ports": (PORTS, BrokerPorts(9092, 9093)),
    "stitch job": (STITCH_JOBS, StitchJob("p", "t", "/l", "/o", "int", "fast", ("a",), ("b",))),
    "stitch job, payload apart": (
        STITCH_JOBS,
        StitchJob(
            "p", "t", "/l", "/o", "int", "fast", (), (), PayloadPlace("s3://b/p", {"s3.region": "r"}, 1.0, 2.0, 3)
        ),
    ),
    "stitch report": (STITCH_REPORTS, StitchReport("p", ())),
    "row of the history": (
        BATCH_ROWS,
        make_row(generation=2, partitions={"0": {"planned": 0}}, reading={"0": [1, 0.5]}),
    ),
}
anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)
every_kind = pytest.mark.parametrize("name", KINDS)


@every_kind
def test_what_is_written_is_read_back(name: str) -> None:
    kind, record = KINDS[name]
    assert kind.read(kind.text(record)) == record
    assert kind.text(kind.read(kind.text(record))) == kind.text(record)


@every_kind
def test_a_record_of_a_newer_wavestitch_is_refused_by_that_sentence(name: str) -> None:
    kind, record = KINDS[name]
    newer = {**kind.content(record), "format": kind.format + 1, "field of the future": 1}
    with pytest.raises(
        BadInput, match=r"was written by a newer Wavestitch \(format \d+; this version reads up to \d+\)"
    ):
        kind.of(newer)


@every_kind
@given(text=st.text(max_size=40) | anything.map(json.dumps))
@effort(60)
def test_anything_that_is_json_or_not_is_refused_and_never_crashes(name: str, text: str) -> None:
    with pytest.raises(BadInput):
        KINDS[name][0].read(text)


@every_kind
@given(data=st.data())
@effort(100)
def test_whatever_one_field_says_the_record_is_read_or_refused(name: str, data: st.DataObject) -> None:
    kind, record = KINDS[name]
    content = kind.content(record)
    field = data.draw(st.sampled_from(sorted(content)))
    content[field] = data.draw(anything)
    found = value_or_refusal(lambda: kind.of(content), allowed=BadInput)
    assert len(found.message) < 1000 if isinstance(found, BadInput) else kind.read(kind.text(found)) == found


@every_kind
def test_a_field_too_many_is_refused_by_its_name(name: str) -> None:
    kind, record = KINDS[name]
    with pytest.raises(BadInput, match="an unknown field: surprise"):
        kind.of({**kind.content(record), "surprise": 1})


@dataclass(frozen=True, slots=True)
class Dog:
    name: str
    legs: int
    tail_cm: float


def _legs(old: dict[str, Any]) -> dict[str, Any]:
    return {**old, "legs": 4}


def _tail(old: dict[str, Any]) -> dict[str, Any]:
    tail = old.pop("tail")
    return {**old, "tail_cm": tail * 2.54}


DOGS = Versioned(Dog, "the dog", "get another", format=3, upgrades={1: _legs, 2: _tail})


@pytest.mark.parametrize(
    "older",
    [
        {"format": 1, "name": "Rex", "tail": 10},
        {"format": 2, "name": "Rex", "tail": 10, "legs": 4},
        {"format": 3, "name": "Rex", "tail_cm": 25.4, "legs": 4},
    ],
)
def test_a_record_of_any_older_format_is_read(older: dict[str, Any]) -> None:
    assert DOGS.of(older) == Dog("Rex", 4, 25.4)


@pytest.mark.parametrize(
    "older", [{"format": 1, "name": "Rex"}, {"format": 2, "tail": "long"}, {"format": 1, "tail": None}, {"format": 2}]
)
def test_an_older_one_that_lacks_its_fields_is_refused_by_a_sentence(older: dict[str, Any]) -> None:
    with pytest.raises(BadInput, match=r"the dog .*; get another"):
        DOGS.of(older)


@pytest.mark.parametrize("seen", [None, True, 0, -1, "1", 1.0, [], {}])
def test_a_format_that_is_none_is_named(seen: object) -> None:
    with pytest.raises(BadInput, match="which is none; get another"):
        DOGS.of({"format": seen, "name": "Rex", "legs": 4, "tail_cm": 1.0})


def test_a_format_that_nobody_can_upgrade_is_refused() -> None:
    puppies = Versioned(Dog, "the dog", "get another", format=2)
    with pytest.raises(BadInput, match="format 1, which was never released"):
        puppies.of({"format": 1, "name": "Rex", "legs": 4, "tail_cm": 1.0})


@pytest.mark.parametrize(
    "result",
    [
        Read(("receipt-u000-" + "0" * 32 + ".json",), 3, 4, 0.5),
        Reassembled(None, (), 0, 0.0),
        Finished("p", Published("p", 1, {"published": 1}, {}, {}, True)),
    ],
)
def test_a_result_goes_through_xcom_and_back(result: Any) -> None:
    through = json.loads(json.dumps(result_to_json(result)))
    assert result_from_json(through, type(result)) == result


@pytest.mark.parametrize(
    "change",
    [
        lambda _: None,
        lambda _: [],
        lambda f: {**f, "result": "Plan"},
        lambda f: {**f, "result": ["Read"]},
        lambda f: {**f, "receipts": "receipt"},
        lambda f: {**f, "more": 1},
        lambda f: {**f, "format": 2},
        lambda f: {k: v for k, v in f.items() if k != "bytes"},
    ],
)
def test_an_xcom_that_no_step_left_is_refused(change: Callable[[Any], Any]) -> None:
    with pytest.raises(BadInput):
        result_from_json(change(result_to_json(Read((), 0, 0, 0.0))), Read)


@dataclass(frozen=True, slots=True)
class Kennel:
    dogs: dict[int, tuple[Dog, ...]]
    spot: tuple[int, int] = (0, 0)
    note: str = ""


KENNELS = Versioned(Kennel, "the kennel", "count again")


@pytest.mark.parametrize(
    "lacks",
    [
        {"format": 1, "dogs": {}, "spot": [0, 0]},
        {"format": 1, "dogs": {}, "note": ""},
        {"format": 1, "dogs": {"00": []}, "spot": [0, 0], "note": ""},
    ],
)
def test_a_field_with_a_default_must_be_there_nevertheless(lacks: dict[str, Any]) -> None:
    with pytest.raises(BadInput, match=r"the kennel lacks a field: (note|spot|0); count again"):
        KENNELS.of(lacks)


@every_kind
def test_no_field_is_ever_filled_in(name: str) -> None:
    kind, record = KINDS[name]
    for lost in kind.content(record):
        with pytest.raises(BadInput):
            kind.of({key: value for key, value in kind.content(record).items() if key != lost})
