"""What an Airflow run or a person asks for, and what they may not ask for."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.builders.ranges import span
from wavestitch.batch.plan import PlanRequest
from wavestitch.batch.request import (
    check_gate,
    earlier_plan,
    parse_duration,
    parse_range,
    plan_request,
    rewind_target,
)
from wavestitch.batch.rewind import Target
from wavestitch.contracts.errors import BadInput
from wavestitch.contracts.plan import PlanKind, Scope
from wavestitch.contracts.quantities import EpochMs, Offset, Partition

DAY = (datetime(2026, 1, 30, tzinfo=UTC), datetime(2026, 1, 31, tzinfo=UTC))
EMPTY: dict[str, Any] = {"offsets": None, "interval": None, "plan_id": None}
SECOND = 1_000_000_000


@pytest.mark.parametrize("run_type", ["scheduled", "manual", "asset_triggered", "operator_triggered"])
@pytest.mark.parametrize("interval", [DAY, None])
def test_a_run_that_names_nothing_ingests_whatever_its_data_interval_is(run_type: str, interval: Any) -> None:
    assert plan_request(run_type, interval, EMPTY) == PlanRequest(PlanKind.INGEST)


def test_params_that_a_form_leaves_blank_are_as_good_as_none() -> None:
    assert plan_request("manual", None, {"offsets": " ", "interval": ""}) == PlanRequest()
    assert plan_request("manual", None, {}) == PlanRequest()


def test_a_backfill_owns_its_data_interval_to_the_nanosecond() -> None:
    start = datetime(2026, 1, 30, 3, 0, 0, 123457, tzinfo=UTC)
    found = plan_request("backfill", (start, DAY[1]), EMPTY)
    assert found.kind is PlanKind.BACKFILL
    assert found.scope == Scope(1_769_742_000_123_457_000, 1_769_817_600_000_000_000)
    assert not found.ranges


def test_a_data_interval_in_another_zone_is_the_same_interval() -> None:
    zone = timezone(timedelta(hours=5, minutes=30))
    there = (DAY[0].astimezone(zone), DAY[1].astimezone(zone))
    assert plan_request("backfill", there, EMPTY) == plan_request("backfill", DAY, EMPTY)


@pytest.mark.parametrize(
    ("interval", "params", "words"),
    [
        (None, EMPTY, "no data interval"),
        ((DAY[0], DAY[0]), EMPTY, "does not end after it starts"),
        (DAY, {"offsets": "0:1-2"}, "leave offsets and interval empty"),
        (DAY, {"interval": "2026-01-30T00:00:00Z/2026-01-31T00:00:00Z"}, "leave offsets and interval empty"),
    ],
)
def test_a_backfill_without_a_clear_interval_of_its_own_is_refused(interval: Any, params: Any, words: str) -> None:
    with pytest.raises(BadInput, match=words):
        plan_request("backfill", interval, params)


def test_a_manual_run_that_names_offsets_reads_those() -> None:
    found = plan_request("manual", DAY, {"offsets": "0:100-200, 3:0-7"})
    assert found == PlanRequest(PlanKind.MANUAL, ranges=(span(0, 100, 200), span(3, 0, 7)))


def test_a_manual_run_that_names_an_interval_backfills_it() -> None:
    found = plan_request("manual", DAY, {"interval": "1970-01-01T00:00:01Z/1970-01-01T01:00:02+01:00"})
    assert found == PlanRequest(PlanKind.BACKFILL, scope=Scope(SECOND, 2 * SECOND))


@pytest.mark.parametrize(
    ("params", "words"),
    [
        ({"offsets": "0:1-2", "interval": "a/b"}, "exclude each other"),
        ({"interval": "2026-01-30T00:00:00Z"}, "'' is not a time"),
        ({"interval": "2026-01-30T00:00:00/2026-01-31T00:00:00"}, "add Z for UTC"),
        ({"interval": "yesterday/today"}, "is not a time; write it like"),
        ({"interval": "2026-01-31T00:00:00Z/2026-01-30T00:00:00Z"}, "does not end after it starts"),
        ({"offsets": "0:5"}, "PARTITION:START-END"),
        ({"offsets": "0:7-7"}, "START before END"),
        ({"offsets": "0:-1-7"}, "PARTITION:START-END"),
        ({"offsets": "0:1-2,"}, "PARTITION:START-END"),
        ({"offsets": "٣:1-2"}, "PARTITION:START-END"),
        ({"offsets": "0:1_0-20"}, "PARTITION:START-END"),
    ],
)
def test_what_cannot_be_understood_is_refused_with_what_to_write(params: dict[str, str], words: str) -> None:
    with pytest.raises(BadInput, match=words):
        plan_request("manual", None, params)


@given(st.integers(0, 10**9 - 1), st.integers(0, 10**17), st.integers(1, 10**17))
def test_any_range_is_read_back_as_it_was_written(partition: int, start: int, size: int) -> None:
    assert parse_range(f"{partition}:{start}-{start + size}") == span(partition, start, start + size)


@given(st.text())
def test_no_text_whatever_is_more_than_refused(text: str) -> None:
    for read in (
        lambda: plan_request("manual", None, {"offsets": text}),
        lambda: plan_request("manual", None, {"interval": text}),
        lambda: rewind_target(text),
    ):
        try:
            read()
        except BadInput as error:
            assert error.message  # noqa: PT017 - either it is understood or it is refused


def test_an_earlier_plan_comes_with_its_own_ranges() -> None:
    assert earlier_plan("manual", {"plan_id": " a" * 16}) == ("a " * 16).strip()
    assert earlier_plan("scheduled", EMPTY) is None
    for run_type, params in (("manual", {"offsets": "0:1-2"}), ("manual", {"interval": "x"}), ("backfill", {})):
        with pytest.raises(BadInput, match="an earlier plan has its own ranges"):
            earlier_plan(run_type, {"plan_id": "a" * 32, **params})


def test_a_gate_is_only_opened_with_a_reason() -> None:
    assert check_gate("stop", None) == ("stop", "")
    assert check_gate("park", " sensor 7 was replaced ") == ("park", "sensor 7 was replaced")
    for gate in ("accept", "park"):
        with pytest.raises(BadInput, match=f"gate {gate} needs a reason"):
            check_gate(gate, " ")
    with pytest.raises(BadInput, match="allowed are stop, accept, park"):
        check_gate("open", "because")


@pytest.mark.parametrize(
    ("to", "target"),
    [
        ("earliest", Target(word="earliest")),
        (" new-topic ", Target(word="new-topic")),
        ("0:100,1:250", Target(offsets={Partition(0): Offset(100), Partition(1): Offset(250)})),
        ("2026-01-31T12:00:00Z", Target(time_ms=EpochMs(1_769_860_800_000))),
        ("2026-01-31 12:00:00Z", Target(time_ms=EpochMs(1_769_860_800_000))),
    ],
)
def test_a_rewind_goes_to_a_word_a_time_or_offsets(to: str, target: Target) -> None:
    assert rewind_target(to) == target


@pytest.mark.parametrize("to", ["", "0:1,0:2", "0:x", "0:new-topic", "0:1,earliest", "2026-01-31", "12", "../earliest"])
def test_a_place_that_nobody_can_go_to_is_refused(to: str) -> None:
    with pytest.raises(BadInput):
        rewind_target(to)


@pytest.mark.parametrize(("text", "seconds"), [(None, 0), ("90s", 90), ("55m", 3300), ("1 h", 3600)])
def test_a_length_of_time(text: str | None, seconds: int) -> None:
    assert parse_duration(text) == seconds


@pytest.mark.parametrize("text", ["", "5", "0m", "-1m", "1.5h", "5m\n", "soon"])
def test_what_is_no_length_of_time_is_refused(text: str) -> None:
    with pytest.raises(BadInput, match=r"is not a length of time; write a whole number with s, m, h or d, e\.g\. 55m"):
        parse_duration(text)
