"""Whether a stream is as fresh as it declares: what is measured, when it is late, and what is told of it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.builders.chunks import make_chunk
from tests.builders.heads import make_head, make_row
from tests.builders.plans import make_plan
from tests.builders.streams import make_stream
from wavestitch.contracts.batch_row import BATCH_ROWS
from wavestitch.contracts.chunk_table import ChunkTable
from wavestitch.contracts.decided import Fates
from wavestitch.contracts.fates import ChunkFate
from wavestitch.contracts.freshness import (
    Freshness,
    Waits,
    judge_freshness,
    read_before,
    said_of_freshness,
    say_freshness,
)
from wavestitch.contracts.headroom import Retention, Room, Thresholds, Unread, judge_room
from wavestitch.contracts.headroom_told import TOLD, Told
from wavestitch.contracts.last_chunks import last_recorded, waited
from wavestitch.contracts.metrics import Counted, Seen, samples_of
from wavestitch.contracts.plain_waveforms import no_plain
from wavestitch.contracts.plan import plan_from_json
from wavestitch.contracts.position import Head, Position
from wavestitch.contracts.quantities import EpochMs, Generation, Milliseconds, Offset, Partition, Seconds
from wavestitch.contracts.reasons import Fate

NOW = EpochMs(1_767_614_400_000)
HOUR = 3_600_000
DECLARED = Seconds(15)
ON_TIME = Waits(1000, 10, DECLARED, 5.0, 15.0, 40.0)


def judged(
    *past: tuple[int, Waits], unread: dict[int, int] | None = None, told: bool = False, declared: int = DECLARED
) -> Freshness:
    """`past`: how long ago in ms; `unread`: ages in ms by partition."""
    ages = {Partition(p): Milliseconds(age) for p, age in (unread or {}).items()}
    rows = [(EpochMs(NOW - ago), waits) for ago, waits in past]
    return judge_freshness(Seconds(declared), rows, ages, now=NOW, told=told)


def test_waits_are_from_the_last_chunk_to_the_commit_and_late_is_what_took_longer_than_declared() -> None:
    recorded = NOW - np.arange(1, 101) * 200
    found = waited(recorded, until=NOW, declared=DECLARED)
    assert found == Waits(100, 25, DECLARED, 10.1, 19.802, 20.0)
    assert waited(recorded, until=NOW, declared=None) == replace(found, late=0, declared_s=None)
    assert waited(recorded[:0], until=NOW, declared=DECLARED) is None
    ahead = waited(np.array([NOW + 5000]), until=NOW, declared=DECLARED)
    assert ahead is not None
    assert ahead.p99_s == -5.0, "a clock that is ahead is seen by it"


def test_of_chunks_that_are_decided_one_by_one_the_last_counts_where_one_was_read_for_the_first_time() -> None:
    def published(waveform: str, offset: int, time_ms: int, *, carried: bool = False) -> ChunkFate:
        return ChunkFate(make_chunk(waveform, at=(0, offset), time_ms=time_ms, carried=carried), Fate.PUBLISHED)

    fates = [
        *(published("late", 3, 70, carried=True), published("late", 12, 90)),
        *(published("of another topic", 30, 70, carried=True), published("of another topic", 8, 80)),
        *(published("of no time", 13, -1), published("again", 9, 75)),
        published("late", 14, 99)._replace(fate=Fate.DUPLICATE),
    ]
    found = last_recorded(Fates(no_plain(ChunkTable.of([])), fates), read_before={Partition(0): Offset(10)})
    assert found.tolist() == [90]


@pytest.mark.parametrize(
    ("repeats", "last"),
    [
        ([(20, 95, 2)], 95),
        ([(20, 95, None), (21, 97, 2), (22, 99, 2)], 97),
        ([(20, 95, None), (21, 97, None)], 95),
        ([(5, 95, 2)], None),
        ([], None),
    ],
)
def test_where_a_repeat_made_it_whole_that_counts_and_not_those_behind_it(
    repeats: list[tuple[int, int, int | None]], last: int | None
) -> None:
    held = [make_chunk(seq=seq, count=None, at=(0, seq), time_ms=70 + seq, carried=True) for seq in (0, 1)]
    again = [make_chunk(seq=1, count=count, at=(0, at), time_ms=ms) for at, ms, count in repeats]
    fates = [*(ChunkFate(c, Fate.PUBLISHED) for c in held), *(ChunkFate(c, Fate.DUPLICATE) for c in again)]
    found = last_recorded(Fates(no_plain(ChunkTable.of([])), fates), read_before={Partition(0): Offset(10)})
    assert found.tolist() == ([] if last is None else [last])


@pytest.mark.parametrize(
    ("late", "told", "alarmed"),
    [(10, False, False), (11, False, True), (10, True, True), (9, True, False), (0, True, False)],
)
def test_it_is_late_where_more_than_one_in_a_hundred_waited_longer_and_not_any_more_with_some_room_to_spare(
    late: int, told: bool, alarmed: bool
) -> None:
    assert judged((1, replace(ON_TIME, late=late)), told=told).alarmed is alarmed


@pytest.mark.parametrize(
    ("age", "told", "alarmed"),
    [(14_900, False, False), (15_100, False, True), (14_900, True, True), (14_000, True, False)],
)
def test_it_is_late_where_what_nobody_has_read_is_older_than_declared(age: int, told: bool, alarmed: bool) -> None:
    found = judged(unread={0: 3, 1: age}, told=told)
    assert (found.alarmed, found.partition, found.unread_s) == (alarmed, 1, age / 1000)


def test_batches_count_together_for_an_hour_or_as_long_as_is_declared() -> None:
    bad, good = replace(ON_TIME, late=400), replace(ON_TIME, late=0)
    assert judged((1, good), (HOUR - 1, bad)).late == 400
    assert not judged((1, good), (HOUR + 1, bad)).alarmed
    assert judged((HOUR + 1, replace(bad, declared_s=Seconds(7200))), declared=7200).alarmed
    assert judged((1, replace(good, p99_s=2.0)), (2, bad)).p99_s == 2.0, "of the newest"


def test_what_another_declaration_promised_and_what_is_yet_to_come_by_its_clock_do_not_count() -> None:
    bad = replace(ON_TIME, late=400)
    assert judged((1, bad), declared=60) == Freshness(Seconds(60))
    assert judged((1, replace(bad, declared_s=None))) == Freshness(DECLARED)
    assert judged((-1000, bad)) == Freshness(DECLARED)


def test_what_was_read_under_an_earlier_generation_of_this_topic_was_read_before() -> None:
    def head(sequence: int, generation: int, offset: int, topic_id: str = "t") -> Head:
        at = {Partition(0): Position(Offset(offset))}
        return make_head(sequence=sequence, generation=Generation(generation), positions=at, topic_id=topic_id)

    rewound = [head(5, 3, 40), head(4, 3, 30), head(3, 2, 70), head(2, 1, 90), head(1, 1, 50)]
    assert read_before(rewound, "t") == {0: 90}
    assert read_before([head(9, 1, 40), head(8, 1, 30)], "t") == {0: 40}
    other = [head(3, 2, 5), head(2, 1, 90, "old")]
    assert read_before(other, "t") == {0: 5}
    assert read_before([], "t") == {}


def seen(alarmed: bool | None) -> Room:
    return Room((), freshness=None if alarmed is None else Freshness(DECLARED, alarmed))


def test_it_is_told_once_and_when_it_ends_and_a_look_that_fails_ends_nothing() -> None:
    kept, told = Told(), []
    for alarmed in (False, True, True, False, None, True, None):
        new = kept.seeing(seen(alarmed))
        told.append(new.must_be_told(kept))
        kept = new
    assert told == [False, True, False, True, False, True, True]
    late = Told().seeing(seen(True))
    assert late.failing().late
    assert not late.failing().must_be_told(late)
    assert late.failing().failing().must_be_told(late), "nobody sees it: that is told"
    assert not late.failing().seeing(seen(True)).must_be_told(late)


def test_a_loss_that_grew_too_little_to_be_told_is_not_taken_for_told_with_it() -> None:
    def lost(log_start: int, late: bool) -> Room:
        gone = Unread(Partition(0), 0, Offset(log_start), 200)
        room = judge_room([gone], retention=Retention(), mean_bytes=None, thresholds=Thresholds())
        return replace(room, freshness=Freshness(DECLARED, late))

    kept = Told()
    for log_start, late in ((100, False), (150, True), (200, True)):
        new = kept.seeing(lost(log_start, late))
        told = new.room_must_be_told(kept)
        kept = new
    assert told, "twice as many as were told"


LATE = Freshness(DECLARED, True, 1200, 37, 22.0, 81.0, Partition(3))


def test_what_could_not_be_looked_at_is_not_called_fresh() -> None:
    found = judge_freshness(DECLARED, [], {Partition(0): Milliseconds(1000)}, hidden={Partition(0)}, now=NOW)
    said = said_of_freshness(found)
    assert said.startswith(
        "as far as can be seen as fresh as declared: the first unread record, in partition 0, is 1.0 s"
    )
    assert "what is unread may be older than can be seen (that takes the right Read on the topic)" in said
    none = judge_freshness(DECLARED, [], {}, hidden={Partition(0)}, now=NOW)
    assert "nothing waits" not in said_of_freshness(none)
    late = judge_freshness(DECLARED, [], {Partition(0): Milliseconds(16_000)}, hidden={Partition(0)}, now=NOW)
    assert said_of_freshness(late).startswith("later than declared: ")


def test_the_oldest_of_what_nobody_has_read_is_named_and_of_equals_the_first() -> None:
    for unread, partition in (({0: 9000, 1: 5000}, 0), ({0: 5000, 1: 9000}, 1), ({2: 9000, 1: 9000}, 1), ({}, None)):
        assert judged(unread=unread).partition == partition


def test_a_time_that_is_ahead_is_called_that() -> None:
    text = say_freshness("ecg", replace(LATE, unread_s=-81.0))[1]
    assert "the first unread record, in partition 3, has a time 1.4 min ahead, by" in text


def test_what_is_told_says_what_was_seen_what_was_declared_and_what_to_do() -> None:
    subject, text = say_freshness("ecg", LATE)
    assert subject == "ecg: is later than the 15.0 s that it declares"
    assert "37 of 1200 waveforms published lately waited longer than 15.0 s" in text
    assert "(1% may; the newest batch's p99 is 22.0 s)" in text
    assert "the first unread record, in partition 3, is 1.4 min old, by the broker's clock." in text
    assert "`wavestitch run ecg --catch-up`" in text
    assert "Start a batch now" in text
    for unread_s in (None, 3.0, 15.0):
        assert "caught up" in say_freshness("ecg", replace(LATE, unread_s=unread_s))[1]
    for unread_s, age in ((59.94, "59.9 s"), (60.0, "1.0 min"), (61.0, "1.0 min")):
        assert f"is {age} old" in say_freshness("ecg", replace(LATE, unread_s=unread_s))[1]
    assert "CreateTime" in say_freshness("ecg", replace(LATE, by_broker=False))[1]
    assert "again (15.0 s)" in say_freshness("ecg", replace(LATE, alarmed=False))[0]
    assert "nothing waits to be read" in say_freshness("ecg", Freshness(DECLARED))[1]
    assert say_freshness("ecg", None)[0] == "ecg: declares no freshness any more"


def test_the_cause_is_named_where_it_is_known() -> None:
    gate = say_freshness("ecg", replace(LATE, at_gate="0123456789abcdef0123"), stands="whatever")[1]
    assert "Batch 0123456789abcdef stands at a closed gate" in gate
    assert "--catch-up" not in gate
    assert "It is not started, since no room is left. `" in say_freshness("ecg", LATE, stands="no room is left")[1]


def test_what_was_written_before_it_was_measured_is_read_and_a_plan_keeps_its_id() -> None:
    told = {"format": 3, "partitions": {}, "sight": "clear", "stands": "", "stands_ms": 0}
    assert TOLD.of(told) == Told()
    row = BATCH_ROWS.content(make_row())
    del row["waits"]
    assert BATCH_ROWS.of({**row, "format": 3}).waits is None
    measured = make_row(waits=ON_TIME)
    assert BATCH_ROWS.read(measured.to_json()) == measured
    plan = make_plan()
    before = plan.to_json().replace('"format": 3', '"format": 2').replace('  "freshness": null,\n', "")
    assert "freshness" not in before
    assert plan_from_json(before) == plan
    declared = make_plan(stream=make_stream(freshness="15s"))
    assert declared.plan_id != plan.plan_id
    assert plan_from_json(declared.to_json()) == declared


def test_metrics_say_it_of_streams_that_declare_it_and_nothing_that_is_not_known() -> None:
    def figures(of: Freshness | None) -> dict[str, float]:
        found = samples_of(Seen(up=True, room=Room((), freshness=of)), Counted(), now=NOW)
        return {s.metric.name: s.value for s in found if "freshness" in s.metric.name}

    name = "wavestitch_freshness"
    known = {f"{name}_alarm": 1.0, f"{name}_declared_seconds": 15, f"{name}_seconds": 22.0}
    assert figures(LATE) == {**known, f"{name}_unread_seconds": 81.0}
    assert figures(Freshness(DECLARED)) == {f"{name}_alarm": 0.0, f"{name}_declared_seconds": 15}
    assert figures(None) == {}
