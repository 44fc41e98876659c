"""How much room is left before retention eats unread data, and when somebody is told."""

from __future__ import annotations

from dataclasses import replace

import pytest

from wavestitch.contracts.errors import BadInput
from wavestitch.contracts.headroom import Alarm, Retention, Room, Thresholds, Unread, judge_room
from wavestitch.contracts.headroom_told import TOLD, PartitionTold, Told, numbers, say_room
from wavestitch.contracts.open_transaction import OpenTransaction, said_of_open
from wavestitch.contracts.quantities import Milliseconds, Offset, Partition

GREEN, AMBER, RED = Alarm
HOUR = Milliseconds(3_600_000)
SEEN = Unread(Partition(0), position=100, log_start=Offset(0), end=200, age_ms=Milliseconds(0))
LIMITS = Thresholds(amber=0.5, red=0.25)


HOUR_KEPT = Retention(ms=HOUR)


def colour(age_ms: int, before: Alarm = GREEN, retention: Retention = HOUR_KEPT) -> Alarm:
    seen = replace(SEEN, age_ms=Milliseconds(age_ms))
    return judge_room(
        [seen], retention=retention, mean_bytes=10.0, thresholds=LIMITS, before={Partition(0): before}
    ).alarm


@pytest.mark.parametrize(
    ("age", "before", "now"),
    [
        (0.0, GREEN, GREEN),
        (0.49, GREEN, GREEN),
        (0.51, GREEN, AMBER),
        (0.74, AMBER, AMBER),
        (0.76, GREEN, RED),
        (1.2, AMBER, RED),
        # better only with room to spare
        (0.72, RED, RED),
        (0.69, RED, AMBER),
        (0.47, AMBER, AMBER),
        (0.47, RED, AMBER),
        (0.44, AMBER, GREEN),
        (0.0, RED, GREEN),
    ],
)
def test_the_colour_is_the_share_of_retention_that_is_left_and_is_taken_back_with_room_to_spare(
    age: float, before: Alarm, now: Alarm
) -> None:
    assert colour(round(age * HOUR), before) is now
    assert colour(round(age * 60_000), before, Retention(ms=Milliseconds(60_000))) is now


@pytest.mark.parametrize(("size", "now"), [(4000, GREEN), (1990, AMBER), (1300, RED), (900, RED)])
def test_bytes_that_retention_keeps_are_judged_without_knowing_how_fast_they_come(size: int, now: Alarm) -> None:
    assert colour(0, retention=Retention(bytes=size)) is now


def test_seconds_left_are_the_least_that_time_and_bytes_leave() -> None:
    seen = replace(SEEN, age_ms=Milliseconds(600_000), per_second=10.0)

    def left(retention: Retention) -> float | None:
        return judge_room([seen], retention=retention, mean_bytes=10.0, thresholds=LIMITS).left_s

    assert left(Retention(ms=HOUR)) == 3000.0
    assert left(Retention(bytes=2000)) == 10.0, "1000 of 2000 bytes are unread, 100 come a second"
    assert left(Retention(ms=HOUR, bytes=2000)) == 10.0
    assert left(Retention()) is None
    seen = replace(seen, per_second=0.0)
    assert [left(Retention(bytes=size)) for size in (1001, 1000, 999)] == [None, 0.0, 0.0], "nothing comes any more"


def test_a_topic_that_keeps_one_byte_has_lost_that_share_of_it_that_is_beyond() -> None:
    tiny = judge_room([SEEN], retention=Retention(bytes=1), mean_bytes=10.0, thresholds=Thresholds(-998.0, -998.5))
    assert tiny.alarm is RED


def test_a_stream_is_as_far_behind_as_the_partition_that_is_furthest() -> None:
    ages = [(0, 61_000), (1, 62_000), (2, None)]
    unread = [replace(SEEN, partition=Partition(p), age_ms=None if a is None else Milliseconds(a)) for p, a in ages]
    assert judge_room(unread, retention=HOUR_KEPT, mean_bytes=10.0, thresholds=LIMITS).behind_s == 62.0


def test_what_is_read_has_all_the_room_there_is_however_old_it_is() -> None:
    read = replace(SEEN, position=200, age_ms=Milliseconds(99 * HOUR))
    room = judge_room(
        [read], retention=Retention(ms=HOUR, bytes=1), mean_bytes=10.0, thresholds=LIMITS, before={Partition(0): RED}
    )
    assert (room.alarm, room.left_s, room.behind_s, room.backlog) == (GREEN, None, None, 0)


def test_a_backlog_that_takes_longer_to_read_than_it_stays_is_red_at_once() -> None:
    old, young = replace(SEEN, age_ms=Milliseconds(600_000)), replace(SEEN, partition=Partition(1))
    room = judge_room([old, young], retention=Retention(ms=HOUR), mean_bytes=None, reading_s=3300.0, thresholds=LIMITS)
    assert [p.alarm for p in room.partitions] == [RED, GREEN]


def test_what_retention_took_unread_is_red_and_counted_and_is_no_backlog() -> None:
    gone = replace(SEEN, log_start=Offset(150))
    room = judge_room([gone], retention=Retention(), mean_bytes=None, thresholds=LIMITS)
    assert (room.alarm, room.lost, room.backlog) == (RED, 50, 50)
    assert say_room("ecg", room)[0] == "ecg: retention took 50 offsets that nobody had read"


def test_a_state_is_told_once_and_a_loss_is_another_state_than_its_danger() -> None:
    green, red, lost = (
        judge_room([seen], retention=Retention(ms=HOUR), mean_bytes=None, thresholds=LIMITS)
        for seen in (SEEN, replace(SEEN, age_ms=HOUR), replace(SEEN, age_ms=HOUR, log_start=Offset(150)))
    )
    told = Told()
    for room, new in ((green, False), (red, True), (red, False), (lost, True), (lost, False), (green, True)):
        now = told.seeing(room)
        assert now.must_be_told(told) is new
        told = now


def test_that_nothing_can_be_seen_is_told_after_the_second_look_and_that_it_can_again() -> None:
    before = Told({Partition(0): PartitionTold(RED)})
    first = before.failing()
    assert not first.must_be_told(before), "a broker that starts again"
    second = first.failing()
    assert second.must_be_told(first)
    assert not second.failing().must_be_told(second)
    red = judge_room([replace(SEEN, age_ms=HOUR)], retention=Retention(ms=HOUR), mean_bytes=None, thresholds=LIMITS)
    assert second.seeing(red).must_be_told(second), "although the colour is as it was"
    assert not first.seeing(red).must_be_told(first)


def test_what_is_told_says_first_what_happens_then_where_and_what_to_do() -> None:
    seen = [replace(SEEN, partition=Partition(p), age_ms=Milliseconds(HOUR - p * 60_000)) for p in (3, 2)]
    room = judge_room(seen, retention=Retention(ms=HOUR), mean_bytes=None, reading_s=90.0, thresholds=LIMITS)
    subject, text = say_room("ecg", room)
    assert subject == "ecg: headroom is red: retention takes unread data in 2.0 min"
    assert text == (
        "partition 2: 100 unread, 2.0 min left, partition 3: 100 unread, 3.0 min left. Reading it takes about 1.5 min "
        "as past batches went. Start a batch now (`wavestitch run ecg --catch-up`, or trigger its ingest), or lengthen "
        "the topic's retention until it has caught up."
    )


def story(*looks: list[Unread]) -> list[str]:
    """What is told of each look, after the one before it; empty where nothing is."""
    told, said = Told(), []
    for seen in looks:
        before = {p: of.alarm for p, of in told.partitions.items()}
        room = judge_room(seen, retention=HOUR_KEPT, mean_bytes=None, thresholds=LIMITS, before=before)
        new = told.seeing(room)
        notice = say_room("ecg", room, new.worse(told))
        said.append(" | ".join(notice) if new.must_be_told(told) else "")
        told = new
    return said


def near(partition: int, minutes: float) -> Unread:
    return replace(SEEN, partition=Partition(partition), age_ms=Milliseconds(round(minutes * 60_000)))


def lost(partition: int, offsets: int) -> Unread:
    return replace(SEEN, partition=Partition(partition), log_start=Offset(100 + offsets), end=100_000)


def test_a_partition_that_gets_worse_is_told_although_another_one_is_red_or_has_lost_something() -> None:
    gone, again, danger, still, second = story(
        [lost(0, 3), near(1, 1)],
        [lost(0, 3), near(1, 2)],
        [lost(0, 3), near(1, 50)],
        [lost(0, 3), near(1, 51)],
        [lost(0, 3), lost(1, 1000)],
    )
    assert gone.startswith("ecg: retention took 3 offsets that nobody had read | partition 0: 3 offsets lost, ")
    assert (again, still) == ("", "")
    assert danger.startswith(
        "ecg: headroom is red: retention takes unread data in 10.0 min | partition 1: 100 unread, 10.0 min left; "
        "as told before: partitions 0. Start a batch now"
    )
    assert second.startswith("ecg: retention took 1003 offsets that nobody had read | partition 1: 1000 offsets lost")


def test_one_notice_names_all_partitions_that_got_worse_and_says_what_to_do_about_each_kind() -> None:
    quiet, (notice) = story(
        [near(p, 1) for p in range(20)], [lost(0, 5), near(1, 1), *(near(p, 50) for p in range(2, 20))]
    )
    assert not quiet
    for said in ("partition 2: 100 unread", "and partitions 0, 10 to 19.", "`wavestitch plan ecg`", "--catch-up"):
        assert said in notice


def test_a_loss_that_grows_is_told_when_it_has_doubled_since_it_was_told() -> None:
    told = story(*([lost(0, n)] for n in range(10, 1000)))
    assert [n for n, said in enumerate(told, start=10) if said] == [10, 20, 40, 80, 160, 320, 640]
    # A loss that somebody accepted is over: the next one is a new one.
    assert all(story([lost(0, 10)], [SEEN], [lost(0, 1)]))


def test_a_stream_that_catches_up_partition_by_partition_is_told_of_once_and_what_comes_back_is_told() -> None:
    red = [near(p, 50) for p in range(3)]
    told = story(red, [SEEN, *red[1:]], [SEEN, near(1, 0), red[2]], [SEEN, near(1, 0), near(2, 0)], [near(0, 50)])
    assert [bool(said) for said in told] == [True, False, False, True, True]
    assert told[3].startswith("ecg: headroom is green again")


def test_what_waits_behind_an_open_transaction_is_said_with_every_notice_and_how_to_find_it() -> None:
    held = tuple(OpenTransaction(Partition(p), Offset(4), Offset(24), Milliseconds(HOUR * 2)) for p in range(10))
    room = replace(judge_room([near(0, 50)], retention=HOUR_KEPT, mean_bytes=None, thresholds=LIMITS), topic="waves")
    _, text = say_room("ecg", replace(room, open=held[:1]))
    assert "topic waves partition 0 (20 offsets from 4 on, open for 2.0 h): an open transaction keeps it from" in text
    assert "find-hanging" in text
    assert len(said_of_open("waves", held)) == 9
    assert said_of_open("waves", held)[-1] == "topic waves: so it is in partitions 8, 9"
    assert Room(()).remarks == ()


def test_partitions_are_numbered_with_neighbours_as_one() -> None:
    assert [numbers(map(Partition, n)) for n in ([], [3], [5, 3, 4, 9, 8])] == ["", "3", "3 to 5, 8, 9"]


def test_a_loss_that_begins_elsewhere_is_another_one_however_small() -> None:
    lost, more = (replace(SEEN, position=Offset(0), log_start=Offset(at)) for at in (100, 150))
    accepted = replace(more, position=Offset(100))
    told = [bool(said) for said in story([lost], [lost], [more], [accepted], [accepted])]
    assert told == [True, False, False, True, False]


def test_what_was_told_before_losses_had_places_is_read_and_the_loss_told_once_more() -> None:
    old = {"format": 1, "partitions": {"0": {"alarm": "red", "lost": 50}}, "sight": "clear"}
    told = TOLD.of(old)
    assert told == Told({Partition(0): PartitionTold(RED, 50)}, seen=RED)
    gone = replace(SEEN, log_start=Offset(150))
    room = judge_room([gone], retention=Retention(), mean_bytes=None, thresholds=LIMITS)
    assert told.seeing(room).must_be_told(told)


def test_what_was_written_before_what_was_seen_was_kept_is_read_as_seen_as_it_was_told() -> None:
    of = {"0": {"alarm": "amber", "lost": 0, "since": 0}, "1": {"alarm": "red", "lost": 0, "since": 0}}
    old = {"format": 4, "partitions": of, "sight": "clear", "stands": "", "stands_ms": 0, "late": False}
    assert (TOLD.of(old).seen, TOLD.of({**old, "partitions": {}}).seen) == (RED, GREEN)
    with pytest.raises(BadInput):
        TOLD.of({**old, "partitions": {"0": {"alarm": "mauve"}}})


def test_a_look_that_fails_sees_no_other_colour() -> None:
    told = Told(seen=RED).failing()
    assert (told.seen, told.failing().seen) == (RED, RED)


@pytest.mark.parametrize(
    ("now", "before", "worse"),
    [
        (PartitionTold(RED), PartitionTold(AMBER), True),
        (PartitionTold(RED), PartitionTold(RED), False),
        (PartitionTold(AMBER), PartitionTold(RED), False),
        (PartitionTold(RED, 1, 4), PartitionTold(RED), True),
        (PartitionTold(RED, 1, 4), PartitionTold(RED, 9, 3), True),
        (PartitionTold(RED, 1, 4), PartitionTold(RED, 1, 4), False),
        (PartitionTold(RED, 2, 4), PartitionTold(RED, 1, 4), True),
        (PartitionTold(RED, 5, 4), PartitionTold(RED, 3, 4), False),
        (PartitionTold(RED, 6, 4), PartitionTold(RED, 3, 4), True),
    ],
)
def test_worse_is_another_colour_a_loss_that_doubled_or_one_that_begins_elsewhere(
    now: PartitionTold, before: PartitionTold, *, worse: bool
) -> None:
    assert now.is_worse(before) is worse
