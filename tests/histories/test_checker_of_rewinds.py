"""What the checker asks of a head that was moved on purpose: it goes where it was asked to, and forgets nothing."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.histories.anomaly import Kind
from tests.histories.by_hand import NEW, NOW, T, a_rewind, before_quiet, head, produced
from tests.histories.checker import analyse
from tests.histories.events import (
    Ended,
    Event,
    Looked,
    LostOffset,
    Reset,
    Retained,
    Rewound,
    Settled,
    Started,
    TopicMade,
    Truncated,
)
from tests.histories.history import History
from tests.histories.table_events import Forgotten

SENT = [produced(n, NEW) for n in (6, 7, 8)]


def goes(to: int, asked: Rewound, *between: Event, skipped: tuple[tuple[int, int, int], ...] = ()) -> list[str]:
    made = replace(head(3, to), run="run-5", kind="rewind", generation=2, skipped=skipped)
    told: list[Event] = [asked, Started("run-5", "rewind", 9), Looked("run-5", "topic"), Looked("run-5", "group")]
    found = analyse(History(before_quiet(*SENT, *told, *between, made)))
    return [a.what for a in found if a.kind is Kind.STALE_WRITER and "asked" in a.what]


@pytest.mark.parametrize(
    ("asked", "between", "right", "wrong"),
    [
        (Rewound("run-5", "offsets", True, (0,), ((0, 5),)), (), {5}, {4, 6, 7}),
        (Rewound("run-5", "offsets", True, None, ((1, 4),)), (), {4, 5, 6}, set()),
        (Rewound("run-5", "earliest", True), (), {0}, {1, 6}),
        (Rewound("run-5", "earliest", True), (Retained(T, 0, 4),), {0, 3, 4}, {5}),
        (Rewound("run-5", "earliest", True, (1,)), (), {4, 5}, set()),
        (Rewound("run-5", "new-topic", True), (), {0}, {1, 6}),
        (Rewound("run-5", "latest", True), (), {9}, {5, 6, 8}),
        (Rewound("run-5", "latest", True), (produced(9, NEW),), {9, 10}, {8}),
        (Rewound("run-5", "latest", True), (Truncated(T, 0, 8),), {5, 8, 9}, set()),
        (Rewound("run-5", "latest", True), (TopicMade("topic-2"),), {5, 8, 9}, set()),
        (Rewound("run-5", "latest", True, (1,)), (), {5, 6, 9}, set()),
        (Rewound("run-5", "head", True), (), {6}, {5, 9}),
        (Rewound("run-5", "group", True), (), {6}, {5, 0}),
        (Rewound("run-5", "group", True), (Reset(T, 0, 4),), {6}, {4}),
        (Rewound("run-5", "group", True), (Reset(T, 0, 4), Looked("run-5", "group")), {4, 6}, {5}),
        (Rewound("run-5", "group", True), (Reset(T, 0, None), Looked("run-5", "group")), {6}, {5}),
        (Rewound("run-5", "previous", True), (), {0}, {5, 6}),
        (Rewound("run-5", "a time", True, None, (), (), NOW), (), {0}, {1, 6}),
        (Rewound("run-5", "a time", True, None, (), (), NOW + 1), (), {9}, {0, 8}),
        (Rewound("run-5", "a time", True, None, (), (), NOW), (Retained(T, 0, 3),), {0, 3}, {4}),
        (Rewound("run-5", "parts", True, (0,), (), ((0, "latest"),)), (), {9}, {6, 0}),
        (Rewound("run-5", "parts", True, (0,), ((0, 4),)), (), {4}, {6, 9}),
        (Rewound("run-5", "parts", True), (), {4, 6, 9}, set()),
    ],
)
def test_a_rewind_goes_where_it_was_asked_to_as_that_was_at_some_time_since(
    asked: Rewound, between: tuple[Event, ...], right: set[int], wrong: set[int]
) -> None:
    skips = {to: ((0, 6, to),) if to > 6 else () for to in right | wrong}
    assert {to for to in right | wrong if goes(to, asked, *between, skipped=skips[to])} == wrong


def test_the_end_of_a_log_is_before_what_is_open() -> None:
    begun = replace(produced(7, NEW), seen="open")
    asked = Rewound("run-5", "latest", True)
    looks: list[Event] = [Started("run-5", "rewind", 9), Looked("run-5", "topic"), Looked("run-5", "group")]

    def told(to: int, *between: Event) -> bool:
        made = replace(head(3, to), run="run-5", kind="rewind", generation=2, skipped=((0, 6, to),))
        found = analyse(History(before_quiet(SENT[0], begun, SENT[2], asked, *looks, *between, made)))
        return any("asked" in a.what for a in found)

    assert [to for to in (6, 7, 8, 9) if told(to)] == [6, 8, 9]
    assert [to for to in (6, 7, 8, 9) if told(to, Settled(T, 0, (7,), "committed"))] == [6]
    assert [to for to in (6, 7, 8, 9) if told(to, LostOffset(T, 0, 7))] == [6], "nothing waits for what is lost"


@pytest.mark.parametrize(
    ("gone", "between", "right"),
    [
        ((), (), {5}),
        ((3,), (), {6}),
        ((2, 3), (), {0}),
        ((1, 2, 3), (), set()),
        ((), (Forgotten(3, ""),), {5, 6}),
    ],
)
def test_where_a_stream_stood_before_is_said_by_the_newest_head_that_is_there(
    gone: tuple[int, ...], between: tuple[Event, ...], right: set[int]
) -> None:
    stood = [replace(head(n, at), run="run-4", kind="rewind", generation=n - 1) for n, at in ((3, 5), (4, 4))]
    asked: list[Event] = [*(Forgotten(n, "") for n in gone), Rewound("run-5", "previous", True), *between]

    def told(to: int) -> bool:
        made = replace(head(5, to), run="run-5", kind="rewind", generation=4)
        found = analyse(History(before_quiet(*stood, *asked, made)))
        return any("asked" in a.what for a in found)

    assert {to for to in (0, 4, 5, 6) if not told(to)} == right


@pytest.mark.parametrize(("to", "told"), [(2, False), (5, True), (1, True)])
def test_a_reset_is_taken_over_where_the_group_stood(to: int, told: bool) -> None:
    made = replace(head(3, to), run="run-5", kind="adopted", generation=2)
    looks: list[Event] = [Started("run-5", "ingest", 9), Looked("run-5", "topic"), Looked("run-5", "group")]
    found = analyse(History(before_quiet(Reset(T, 0, 2), *looks, made)))
    assert any("where the group did not stand" in a.what for a in found) is told


@pytest.mark.parametrize(
    ("skipped", "to", "forgotten"),
    [(((0, 6, 9),), 9, set()), ((), 9, {6, 7, 8}), (((0, 6, 8),), 9, {8}), ((), 6, set()), (((0, 6, 7),), 7, set())],
)
def test_what_was_given_up_by_name_stays_named_behind_the_position(
    skipped: tuple[tuple[int, int, int], ...], to: int, forgotten: set[int]
) -> None:
    over = a_rewind(9, skipped=((0, 6, 9),))[3:]
    made = replace(head(4, to), run="run-6", kind="rewind", generation=3, skipped=skipped)
    found = analyse(History(before_quiet(*SENT, *over, Rewound("run-6", "offsets", True), made)))
    assert {o for a in found if "given up behind it" in a.what for _, _, o in a.coordinates} == forgotten


AHEAD = "`wavestitch rewind ecg --to {} --accept-skip {} --apply`"
GOOD = "Take in what is good before them with `wavestitch run ecg --partitions 0 --until 0:8`, then "


@pytest.mark.parametrize(
    ("said", "between", "passed"),
    [
        (AHEAD.format("0:7", "0:6-7"), (Retained(T, 0, 7),), set()),
        (AHEAD.format("0:8", "0:6-8"), (Retained(T, 0, 7),), {7}),
        (AHEAD.format("0:9", "0:6-9"), (), {6, 7, 8}),
        (GOOD + AHEAD.format("0:9", "0:8-9"), (), {8}),
        (GOOD + AHEAD.format("0:9", "0:8-9"), (Truncated(T, 0, 8),), set()),
        (AHEAD.format("0:earliest", "0:6-7"), (Retained(T, 0, 7),), set()),
        (AHEAD.format("latest", "all"), (Retained(T, 0, 7),), {7, 8}),
        (AHEAD.format("0:latest,1:earliest", "1:0-3,0:6-9"), (Retained(T, 0, 7),), {7, 8}),
        (AHEAD.format("1:9", "1:6-9"), (), set()),
        ("`wavestitch rewind ecg --to 0:9 --apply`", (), set()),
    ],
)
def test_what_is_given_up_on_the_way_past_what_is_gone_is_not_there(
    said: str, between: tuple[Event, ...], passed: set[int]
) -> None:
    told: list[Event] = [*SENT, Started("run-2", "ingest", 9), *between, Ended("run-2", "DataLost", 1, said)]
    found = analyse(History(before_quiet(*told)))
    assert {o for a in found if "leaves out" in a.what for _, _, o in a.coordinates} == passed


@pytest.mark.parametrize(
    ("accepts", "silent"), [(None, set()), (((0, 6, 9),), set()), (((0, 6, 7),), {7, 8}), (((1, 6, 9),), {6, 7, 8})]
)
def test_of_what_a_rewind_skips_each_offset_was_accepted(
    accepts: tuple[tuple[int, int, int], ...] | None, silent: set[int]
) -> None:
    over = [replace(e, accepts=accepts) if isinstance(e, Rewound) else e for e in a_rewind(9, skipped=((0, 6, 9),))[3:]]
    found = analyse(History(before_quiet(*SENT, *over)))
    assert {o for a in found if "nobody gave up" in a.what for _, _, o in a.coordinates} == silent
