"""Why a reading failed, and the way out of it: one that fits what was planned, in commands that can be given."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
from confluent_kafka import KafkaError

from consumers.failed_reading import explain_failure
from consumers.range_scan import ScanFailed, Source
from tests.builders.ranges import span
from tests.builders.records import letter, metadata
from tests.domain import backfill_rig as rig
from tests.fakes.batch import Bench, Carrying, carry_through
from tests.fakes.fake_log import FakeLog
from tests.fakes.way_out import GoTo, named_then, way_out
from wavestitch.batch.plan import PlanRequest
from wavestitch.batch.request import parse_range, parse_until, rewind_target
from wavestitch.batch.results import Planned
from wavestitch.batch.rewind import Target, apply_rewind, plan_rewind
from wavestitch.batch.steps import step_plan
from wavestitch.contracts.errors import DataLost, Fenced, Refused, Transient
from wavestitch.contracts.plan import PlanKind
from wavestitch.contracts.quantities import Offset, Partition
from wavestitch.contracts.stop_rule import Why

SLICE = span(1, 2, 8)
READING = (PlanKind.INGEST, PlanKind.BACKFILL, PlanKind.MANUAL)
CLOCK_MS = 1_700_000_000_000


BREAKS: dict[str, tuple[Callable[[FakeLog], object], ScanFailed]] = {
    "retention": (lambda log: log.retain_from(Partition(1), Offset(5)), ScanFailed(Why.LOG_ERROR, 2, None)),
    "cut end": (lambda log: log.truncate(Partition(1), Offset(6)), ScanFailed(Why.LOG_ERROR, 6, None)),
    "exchanged": (lambda log: None, ScanFailed(Why.LOG_ERROR, 2, KafkaError(KafkaError._LOG_TRUNCATION))),
    "recreated": (lambda log: log.recreate(2), ScanFailed(Why.LOG_ERROR, 2, None)),
}
REWIND = {
    "retention": "`wavestitch rewind waves --to 1:5 --accept-skip 1:2-5 --apply`",
    "cut end": "",
    "exchanged": "`wavestitch rewind waves --to 1:earliest --apply`",
    "recreated": "`wavestitch rewind waves --to new-topic --apply`",
}


def advice(cause: str, kind: PlanKind) -> str:
    log = FakeLog(partitions=2)
    for n in range(10):
        log.append(Partition(1), CLOCK_MS, *letter("w", n, b"ab", meta=metadata(CLOCK_MS), count=10))
    source = Source("waves", "waves", log.topic("waves").topic_id, "waves-batches", 1, kind)
    break_it, failed = BREAKS[cause]
    break_it(log)
    try:
        return explain_failure(log, source, SLICE, failed).message
    except Exception as error:  # the topic is another one: nothing else is asked
        return str(error)


@pytest.mark.parametrize("code", [KafkaError.OFFSET_OUT_OF_RANGE, KafkaError._AUTO_OFFSET_RESET])
def test_a_log_that_was_cut_off_under_the_reading_and_grew_again_is_read_again(code: int) -> None:
    """By the time that the broker is asked the offset is there."""
    log = FakeLog(partitions=2)
    for n in range(10):
        log.append(Partition(1), CLOCK_MS, *letter("w", n, b"ab", meta=metadata(CLOCK_MS), count=10))
    source = Source("waves", "waves", log.topic("waves").topic_id, "waves-batches", 1, PlanKind.INGEST)
    found = explain_failure(log, source, SLICE, ScanFailed(Why.LOG_ERROR, 4, KafkaError(code)))
    assert isinstance(found, Transient)
    assert "offset 4 was not in the log when it was asked for" in found.message


@pytest.mark.parametrize("code", [KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_PARTITION])
def test_a_partition_that_a_broker_has_not_heard_of_yet_is_read_again(code: int) -> None:
    """The topic was looked up right before."""
    log = FakeLog(partitions=2)
    log.append(Partition(1), CLOCK_MS, *letter("w", 0, b"ab", meta=metadata(CLOCK_MS), count=1))
    slice_ = span(1, 0, 1)
    source = Source("waves", "waves", log.topic("waves").topic_id, "waves-batches", 1, PlanKind.INGEST)
    found = explain_failure(log, source, slice_, ScanFailed(Why.LOG_ERROR, 0, KafkaError(code)))
    assert isinstance(found, Transient)
    assert "is gone since or not known to this broker yet; try again" in found.message


@pytest.mark.parametrize("kind", READING)
def test_a_log_that_was_cut_off_below_what_was_read_of_a_slice_is_read_again(kind: PlanKind) -> None:
    """Where it was cut off is not looked for: the next attempt holds the start of the slice against the log."""
    log = FakeLog(partitions=2)
    for n in range(10):
        log.append(Partition(1), CLOCK_MS, *letter("w", n, b"ab", meta=metadata(CLOCK_MS), count=10))
    source = Source("waves", "waves", log.topic("waves").topic_id, "waves-batches", 1, kind)
    cut = ScanFailed(Why.LOG_ERROR, 4, KafkaError(KafkaError._LOG_TRUNCATION))
    found = explain_failure(log, source, SLICE, cut)
    assert isinstance(found, Transient)
    assert "cut off before offset 4 after it had been read up to there, while it was read" in found.message
    assert "Nothing was kept; try again" in found.message


@pytest.mark.parametrize("cause", BREAKS)
def test_an_ingest_is_led_past_by_a_rewind_of_the_one_partition_that_is_in_its_way(cause: str) -> None:
    said = advice(cause, PlanKind.INGEST)
    assert REWIND[cause] in said, said
    assert ("wavestitch rewind" in said) is bool(REWIND[cause]), said


@pytest.mark.parametrize("cause", sorted(BREAKS.keys() - {"recreated"}))
@pytest.mark.parametrize("kind", [PlanKind.BACKFILL, PlanKind.MANUAL])
def test_a_plan_that_leaves_the_positions_alone_is_not_sent_to_a_rewind(cause: str, kind: PlanKind) -> None:
    said = advice(cause, kind)
    assert "wavestitch rewind" not in said, said
    assert "--until" not in said, said
    assert "A rewind does not help" in said, said


def test_named_offsets_that_are_left_are_named() -> None:
    assert "`wavestitch run waves --offsets 1:5-8`" in advice("retention", PlanKind.MANUAL)
    assert "`wavestitch run waves --offsets 1:2-6`" in advice("cut end", PlanKind.MANUAL)


@pytest.mark.parametrize("cause", BREAKS)
@pytest.mark.parametrize("kind", READING)
def test_every_command_that_is_named_can_be_given_and_names_the_stream(cause: str, kind: PlanKind) -> None:
    said = advice(cause, kind)
    for command, stream, more in re.findall(r"`wavestitch (\S+) (\S+)((?: [^`]*)?)`", said):
        assert stream == "waves", said
        options = dict(re.findall(r"--(\w+) ([^ `-][^ `]*)", more))
        if command == "rewind":
            rewind_target(options["to"])
        elif "offsets" in options:
            parse_range(options["offsets"])
        else:
            parse_until(options.get("until"))


def test_whose_plan_a_rewind_has_overtaken_is_told_that_and_no_way_past_what_is_gone() -> None:
    """It would lead over what somebody has gone back for."""
    bench, planned = plan_of_what_is_gone()
    with pytest.raises(DataLost, match=r"rewind ecg --to 0:2 --accept-skip 0:1-2 --apply"):
        carry_through(bench, bench.plans[planned.plan_id], Carrying())
    go_back(bench)
    with pytest.raises(Fenced, match="somebody rewound"):
        carry_through(bench, bench.plans[planned.plan_id], Carrying())


def test_a_way_past_that_was_named_before_somebody_went_back_skips_nothing_of_what_that_was_for() -> None:
    """Whoever goes it, however late, is told what it would skip now."""
    bench, planned = plan_of_what_is_gone()
    with pytest.raises(DataLost) as lost:
        carry_through(bench, bench.plans[planned.plan_id], Carrying())
    way = way_out(str(lost.value))
    assert way is not None
    go_back(bench)
    with pytest.raises(Refused, match=r"would skip partition 0 \[0, 1\).*Say --accept-skip 0:0-2, or") as refused:
        go_to(bench, way)
    go_to(bench, GoTo(way.target, named_then(refused.value)))
    assert bench.tables.snapshots[-1].skipped == (span(0, 0, 2),)


def go_to(bench: Bench, way: GoTo) -> None:
    where: Any = {"log": bench.log, "tables": bench.tables}
    found = plan_rewind(rig.ARCHIVE, way.target, **where, who="ops", why="on")
    apply_rewind(rig.ARCHIVE, found, accept_skip=way.accepts, **where)


def plan_of_what_is_gone() -> tuple[Bench, Planned]:
    bench = Bench(FakeLog("waves", 1))
    rig.send(bench, "read", day=1)
    rig.ingest(bench)
    rig.send(bench, "lost", day=1)
    planned = step_plan(rig.edges(bench, rig.ARCHIVE), PlanRequest())
    assert isinstance(planned, Planned)
    bench.log.lose(Partition(0), Offset(1))
    return bench, planned


def go_back(bench: Bench) -> None:
    go_to(bench, GoTo(Target("earliest"), False))
