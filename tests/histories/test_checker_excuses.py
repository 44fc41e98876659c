"""What the checker excuses, and nothing beyond it: who could not know, what a head names, what an election hides."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.builders.records import cut, letter, metadata
from tests.histories.anomaly import Anomaly, Kind
from tests.histories.by_hand import (
    LATER,
    NEW,
    NOW,
    OPEN,
    WAVE,
    T,
    a_decision,
    a_rewind,
    after,
    before_quiet,
    head,
    held,
    kinds,
    parked,
    planned,
    produced,
    projected,
    proof_of,
    sound,
    swap,
    swap_type,
    then,
)
from tests.histories.checker import analyse
from tests.histories.events import (
    Abandoned,
    Asks,
    Committed,
    Ended,
    Event,
    Held,
    Looked,
    Planned,
    Produced,
    Published,
    Quiet,
    Read,
    Reset,
    Rewound,
    Shared,
    Started,
    Truncated,
)
from tests.histories.history import History
from tests.histories.late_events import GivenUp, Landed, Lands
from tests.histories.table_events import CatalogSetBack
from tests.histories.verify_events import Verified


def test_a_reset_after_the_last_look_can_be_fenced_by_nobody() -> None:
    events = after(Looked, Reset(T, 0, 0), nth=2)
    assert kinds(events) == []


def test_a_request_that_lands_late_knows_what_its_run_knew_when_it_was_sent() -> None:
    """Whatever that has seen, and done, since; and whoever could see the reset before it sent anything could, late or
    not."""
    reset, looked, sent = Reset(T, 0, 2), Looked("run-2", "group"), GivenUp("run-2", 7, "log.commit_group")
    lands: list[Event] = [Lands("run-2", 7), projected(6, 2, run="run-2"), Landed("run-2", 7)]
    ended: list[Event] = [Ended("run-2", "Transient", 9), Looked("run-3", "group"), projected(6, 2, run="run-3")]

    def writers(*events: Event) -> list[Kind]:
        found = kinds(before_quiet(Started("run-2", "ingest", 100), looked, *events, *ended))
        return [kind for kind in found if kind is Kind.STALE_WRITER]

    assert writers(sent, reset, looked, *lands, reset, *lands) == []
    assert writers(reset, looked, sent, *lands) == [Kind.STALE_WRITER]


def test_what_a_head_publishes_is_no_act_beside_it_and_whatever_else_is_done_after_the_look_is_one() -> None:
    """A decision on whose catalog a copy goes on while its commit is on the way can be fenced by nobody."""
    copied, looked, sent = Shared(T, 0, 6, False, 2, 3), Looked("run-2", "group"), GivenUp("run-2", 7, "tables.commit")
    staged = replace(held(5, OPEN[0], "d2"), run="run-2", sequence=3)
    lands: list[Event] = [Lands("run-2", 7), LATER, replace(head(3, 6), run="run-2", kind="held", plan_id="p2")]

    def said(*events: Event) -> list[str]:
        mine = planned("p2", run="run-2", kind="held", action="redrive", ids=("w1",))
        history = then(parked(), Started("run-2", "held", 100), mine, *events, Ended("run-2", "Transient", 9))
        return [a.what for a in analyse(History(history[:-1])) if a.kind is Kind.STALE_WRITER]

    two = ["head 3 (held) comes after (1, 2), and the group shows another catalog"]
    assert said(looked, copied, *lands[1:]) == []
    assert said(looked, sent, copied, *lands, Landed("run-2", 7)) == []
    assert said(looked, sent, copied, looked, *lands, Landed("run-2", 7)) == [], "looked again after it was sent"
    assert said(copied, *lands[1:]) == two, "who never looks has no excuse"
    assert said(copied, looked, *lands[1:]) == two
    assert said(copied, looked, sent, *lands, Landed("run-2", 7)) == two
    assert said(looked, staged, copied, *lands[1:]) == two, "between its look and its commit lies nothing else"
    assert said(looked, copied, staged, sent, *lands, Landed("run-2", 7)) == two


def test_who_committed_since_its_last_look_at_the_group_has_no_excuse_for_writing_over_a_reset() -> None:
    """As a rewind that looks, commits, and writes without looking again."""
    seen: list[Event] = [Started("run-2", "rewind", 100), Looked("run-2", "topic"), Looked("run-2", "group")]
    rewind = replace(head(3, 0), run="run-2", generation=2, kind="rewind")
    told: list[Event] = [projected(0, 3, 2, run="run-2"), Ended("run-2", "done", 30)]
    written_over = before_quiet(*seen, rewind, Reset(T, 0, 2), *told)
    assert [a.what for a in analyse(History(written_over)) if a.kind is Kind.STALE_WRITER] == [
        "a reset of the group on partition 0 was written over and never taken over"
    ]
    at_the_last_moment = before_quiet(*seen, rewind, Looked("run-2", "group"), Reset(T, 0, 2), *told)
    assert not [a for a in analyse(History(at_the_last_moment)) if a.kind is Kind.STALE_WRITER]


def test_a_reset_to_where_somebody_had_reset_the_group_before_is_seen_by_nobody() -> None:
    seen: list[Event] = [Started("run-2", "rewind", 100), Looked("run-2", "topic"), Looked("run-2", "group")]
    rewind = replace(head(3, 0), run="run-2", generation=2, kind="rewind")
    again: list[Event] = [Looked("run-2", "group"), projected(0, 3, 2, run="run-2"), Ended("run-2", "done", 30)]

    def writers(*since: Event) -> list[Anomaly]:
        events = before_quiet(Reset(T, 0, 2), *seen, rewind, *since, *again)
        return [a for a in analyse(History(events)) if a.kind is Kind.STALE_WRITER]

    assert not writers(Reset(T, 0, 2))
    assert not writers(Reset(T, 0, 1), Reset(T, 0, 2)), "and elsewhere in between"
    assert writers(Reset(T, 0, 2), Reset(T, 0, 1))


def test_a_first_head_after_a_lost_catalog_that_skips_the_log_is_an_unexplained_gap() -> None:
    fresh = replace(head(1, 6), run="run-2"), projected(6, 1, run="run-2")
    lost, looked, there, on = CatalogSetBack(0), Looked("run-2", "group"), Reset(T, 0, 6), Reset(T, 0, 7)

    def says(*events: Event) -> bool:
        return Kind.UNEXPLAINED_GAP in kinds(before_quiet(lost, *events, *fresh))

    assert says()
    assert not says(there, looked)
    assert not says(there, looked, on), "it was there when it looked"
    assert says(on, looked, there), "and not only since"


def test_a_catalog_that_was_set_back_owes_again_what_it_has_not_seen() -> None:
    """Whatever was passed and published since is not passed any more; what nobody reads again is lost."""
    assert Kind.LOST in kinds(before_quiet(CatalogSetBack(1), projected(0, 1)))


def test_an_older_head_that_is_shown_over_a_newer_one_is_a_stale_writer() -> None:
    """As by a plan on a catalog that was set back, which takes the newer tag for an old one."""
    over: list[Event] = [CatalogSetBack(1), Looked("run-2", "group"), projected(0, 1, run="run-2")]
    assert Kind.STALE_WRITER in kinds(before_quiet(*over))
    events = before_quiet(over[0], over[2])
    events.insert(events.index(projected(6, 2)), over[1])
    zombie = analyse(History(events))
    assert not [a for a in zombie if "was shown over" in a.what], "who looked before cannot know"


def test_a_rewind_that_moves_a_partition_that_was_not_named_is_a_stale_writer() -> None:
    events = [replace(e, only=(1,)) if isinstance(e, Rewound) else e for e in a_rewind(3)]
    assert Kind.STALE_WRITER in kinds(before_quiet(*events))


# what is given up


def back_to(position: int, sequence: int = 4, **more: Any) -> Committed:
    return replace(head(sequence, position), run="run-3", kind="rewind", generation=sequence - 1, **more)


def test_what_somebody_went_back_for_is_given_up_no_longer() -> None:
    """Nothing is said before the quiet runs are through: it is only waiting to be read again."""
    over = a_rewind(9, skipped=((0, 6, 9),))
    events = before_quiet(*over, back_to(6), projected(6, 4, 3, "run-3"))
    assert kinds(events[:-1]) == []
    assert kinds(events) == [Kind.LOST]


def test_a_head_that_goes_on_naming_what_is_read_again_is_an_unexplained_gap() -> None:
    over, still = a_rewind(9, skipped=((0, 6, 9),)), back_to(7, skipped=((0, 6, 9),))
    found = analyse(History(before_quiet(*over, still, projected(7, 4, 3, "run-3"))[:-1]))
    assert [(a.kind, a.what) for a in found] == [
        (Kind.UNEXPLAINED_GAP, "head 4 (rewind) names [(0, 6, 9)] as given up, and has not gone past that")
    ]


def test_only_who_moves_a_head_on_purpose_changes_what_is_given_up() -> None:
    ingest = replace(head(3, 6), run="run-2", kind="ingest", plan_id="p2", skipped=((0, 0, 1),))
    assert kinds(before_quiet(planned("p2"), ingest, projected(6, 3, run="run-2"))) == [Kind.UNEXPLAINED_GAP]


def test_what_a_head_took_back_that_is_in_no_table_any_more_is_given_up_again() -> None:
    over = a_rewind(9, skipped=((0, 6, 9),))
    assert kinds(before_quiet(*over, back_to(6), CatalogSetBack(3))) == []
    again: list[Event] = [Rewound("run-3", "offsets", True), back_to(9, 5, skipped=((0, 6, 9),))]
    assert kinds(before_quiet(*over, back_to(6), *again, back_to(6, 6), CatalogSetBack(3))) == [], (
        "since the first time"
    )
    assert Kind.LOST in kinds(before_quiet(*over, back_to(6), *again, back_to(6, 6), CatalogSetBack(2)))


# what is held


@pytest.mark.parametrize("seq", [0, 2])
@pytest.mark.parametrize(("at_ms", "excused"), [(NOW, True), (1, False)])
def test_a_picked_copy_is_of_its_time_by_what_repeats_it_and_by_nothing_else(
    seq: int, at_ms: int, excused: bool
) -> None:
    """Whatever the repeat says of the whole, the same or nothing."""
    other = cut("w1", [b"\x09\x00", b"\x02\x00", b"\x09\x00"], meta=metadata(NOW))[seq]
    early = [replace(e, timestamp_ms=1) if isinstance(e, Produced) else e for e in parked("conflict")]

    def invented(repeat: Any) -> bool:
        sent = replace(produced(6, repeat), timestamp_ms=at_ms)
        at = next(n for n, e in enumerate(early) if isinstance(e, Held))
        conflict = produced(7, cut("w1", [b"\x08\x00"], meta=metadata(NOW))[0])
        reads = Read("run-1", "p1", T, 0, 6, 8, (6, 7))
        events = [*early[:at], sent, conflict, reads, held(6, repeat, "d1", "conflict"), *early[at:]]
        return Kind.INVENTED in kinds(then(events, *a_decision("pick", LATER)))

    assert invented(WAVE[seq]) is not excused
    assert invented(other), "a copy that says something else"


@pytest.mark.parametrize(("count", "found"), [(2, []), (3, [Kind.LOST])])
def test_a_repeat_is_held_by_what_says_the_same_of_the_whole_whatever_is_asked_of_both_since(
    count: int, found: list[Kind]
) -> None:
    """Neither is proven, which nobody had asked for when they were read. One that says something else is lost."""
    repeat = cut("w2", [b"\x07\x00"] * count, meta=metadata(NOW))[0]
    first = [replace(e, proven=False) if isinstance(e, Produced) and e.offset == 5 else e for e in sound()]
    first = [replace(e, asked=False) if isinstance(e, Held) else e for e in first]
    read: list[Event] = [
        replace(produced(6, repeat), proven=False),
        replace(planned("p2", run="run-2"), ranges=((0, 6, 7),), asks=False),
        Read("run-2", "p2", T, 0, 6, 7, (6,)),
        head(3, 7, run="run-2", kind="ingest", plan_id="p2"),
        projected(7, 3, run="run-2"),
    ]
    events = [first[0], Asks(False), *first[1:-1], *read, Asks(True)]
    assert [kind for kind in kinds([*events, Quiet()]) if kind is Kind.LOST] == found


@pytest.mark.parametrize(
    ("skipped", "said", "right"),
    [
        (True, "held", True),
        (True, "missing in the table", True),
        (True, "skipped", False),
        (True, "discarded", False),
        (False, "held", False),
        (False, "missing in the table", True),
    ],
)
def test_a_chunk_that_went_with_its_deleted_row_is_told_by_what_is_held_of_it_only_where_it_is_skipped(
    skipped: bool, said: str, right: bool
) -> None:
    """Of two chunks one had been held before they were published, the other one was not."""
    last = cut("w2", [b"\x07\x00", b"\x08\x00"], meta=metadata(NOW))[1]
    chunks = ((T, 0, 5, 2, proof_of(OPEN[0])), (T, 0, 6, 2, proof_of(last)))
    back, over = head(4, 6, run="run-3", kind="rewind", generation=2), ((0, 6, 7),)
    ahead = head(5, 7, run="run-3", kind="rewind", generation=3, skipped=over)
    rewound: list[Event] = [Rewound("run-3", "offsets", True), back, ahead]
    events = before_quiet(
        produced(6, last),
        planned("p2", run="run-2", ranges=((0, 6, 7),)),
        Read("run-2", "p2", T, 0, 6, 7, (6,)),
        Published("run-2", "p2", 3, "w2", b"\x07\x00\x08\x00", chunks),
        head(3, 7, run="run-2", kind="ingest", plan_id="p2"),
        *(rewound if skipped else []),
        Started("run-4", "verify", 100),
        Verified("run-4", ((0, 5, 7),), ((0, 5, 7),), (("w2", said),), deleted=("w2",)),
    )
    assert (Kind.UNTRUE not in kinds(events[:-1])) is right


# elections


ANEW: list[Event] = [Truncated(T, 0, 1), *(produced(n, one) for n, one in enumerate((*WAVE, *WAVE, *WAVE), start=1))]
"""The log was cut off at 1, below the head, and written anew to 10, beyond it."""


@pytest.mark.parametrize(
    ("to", "skipped", "hides"), [(4, (), False), (6, (), False), (8, ((0, 6, 8),), False), (8, ((0, 1, 8),), True)]
)
def test_what_was_written_anew_is_given_up_only_by_who_goes_over_it_and_names_it(
    to: int, skipped: tuple[tuple[int, int, int], ...], hides: bool
) -> None:
    """Who stays or goes back is told by the next ingest; what was written anew and is never seen is lost."""
    moved = replace(head(3, to), run="run-2", kind="rewind", generation=2, skipped=skipped)
    more: list[Event] = [planned("p3", run="run-3", generation=2, base_sequence=3, positions={0: to})]
    more += [Read("run-3", "p3", T, 0, to, 10, tuple(range(to, 10)))]
    more += [held(n, (*WAVE, *WAVE, *WAVE)[n - 1], "d3") for n in range(to, 10)]
    done = replace(head(4, 10), run="run-3", kind="ingest", generation=2, plan_id="p3", decision="d3", held=None)
    more += [replace(done, skipped=moved.skipped), projected(10, 4, 2, "run-3")]
    events = before_quiet(*ANEW, Rewound("run-2", "offsets", True), moved, *more)
    assert (Kind.LOST in kinds(events)) is not hides


def test_what_was_read_before_the_log_was_cut_off_is_what_was_there_then() -> None:
    """Though the reading is done only after that."""
    events = swap_type(Read, lambda e: replace(e, former=(5,)))
    at = next(n for n, e in enumerate(events) if isinstance(e, Read))
    assert kinds([*events[:at], Truncated(T, 0, 5), produced(5, WAVE[0]), *events[at:-1]]) == []


@pytest.mark.parametrize(("later", "found"), [(1, []), (0, [Kind.LOST])])
def test_of_what_lay_at_a_place_one_after_the_other_a_batch_owes_what_it_has_read(
    later: int, found: list[Kind]
) -> None:
    events = swap_type(Read, lambda e: replace(e, former=(5,), later=(later,)))
    at = next(n for n, e in enumerate(events) if isinstance(e, Read))
    cut = Truncated(T, 0, 5), produced(5, NEW), Truncated(T, 0, 5), produced(5, WAVE[0])
    assert kinds([*events[:at], *cut, *events[at:-1]]) == found


@pytest.mark.parametrize("is_held", [True, False])
def test_how_many_chunks_there_are_is_known_from_one_that_is_held_though_it_was_cut_off(is_held: bool) -> None:
    """And nothing was written in its place yet."""
    first, last = cut("w5", [b"\x05\x00", b"\x06\x00"], meta=metadata(NOW), live=True)
    untold = letter("w5", 1, b"\x06\x00", meta=metadata(NOW), count=None, digest=None)
    copies = [produced(n, one) for n, one in enumerate((first, untold, last), 6)]
    rows = [replace(held(n, one, "d3"), sequence=3) for n, one in enumerate((first, untold, last), 6)]
    plan, read = planned("p3", ranges=((0, 6, 9),)), Read("run-1", "p3", T, 0, 6, 9, (6, 7, 8))
    made = replace(head(3, 9), kind="ingest", plan_id="p3", decision="d3")
    chunks = tuple((T, 0, n, 2, proof_of(one)) for n, one in ((6, first), (7, untold)))
    publishes = Published("run-2", "p4", 4, "w5", b"\x05\x00\x06\x00", chunks)
    again = planned("p4", run="run-2", kind="backfill", base_sequence=3), publishes
    done = replace(head(4, 9), run="run-2", kind="backfill", plan_id="p4", decision="d4")
    events = before_quiet(*copies, plan, read, *rows[: 3 if is_held else 2], made, Truncated(T, 0, 8), *again, done)
    found = [a.what for a in analyse(History(events)) if "cut short" in a.what]
    assert found == ([] if is_held else ["it was cut short: chunks [0, 1], of []"])


LONG_AGO = NOW - 10**10


@pytest.mark.parametrize(
    ("sent_ms", "again_ms", "again", "found"),
    [
        (NOW, LONG_AGO, NEW, False),
        (LONG_AGO, NOW, NEW, False),
        (LONG_AGO, LONG_AGO, NEW, True),
        (LONG_AGO, NOW, WAVE[0], True),
    ],
    ids=["it was in time", "what came in its place was", "neither", "that is another one"],
)
def test_of_a_record_and_the_same_that_was_sent_again_to_its_place_either_may_be_published(
    sent_ms: int, again_ms: int, again: Any, found: bool
) -> None:
    """What is held from there names the place, and not when it was sent."""
    sent, anew = replace(produced(6, NEW), timestamp_ms=sent_ms), replace(produced(6, again), timestamp_ms=again_ms)
    made = replace(head(3, 7), kind="ingest", plan_id="p3", decision="d3")
    row = Published("run-2", "p4", 4, "w3", b"\x05\x00", ((T, 0, 6, 2, proof_of(NEW)),))
    done = replace(head(4, 7), run="run-2", kind="backfill", plan_id="p4", decision="d4")
    kept = planned("p3"), replace(held(6, NEW, "d3", "parked"), sequence=3), made
    events = before_quiet(sent, *kept, Truncated(T, 0, 6), anew, planned("p4", run="run-2", kind="backfill"), row, done)
    assert any("not what it says" in a.what for a in analyse(History(events))) is found


def test_what_was_cut_off_is_owed_by_who_read_it_and_commits_and_by_nobody_who_read_what_came_after() -> None:
    first = swap(produced(5, OPEN[0]), produced(5, NEW))
    at = next(n for n, e in enumerate(first) if isinstance(e, Planned)) + 1
    again: list[Event] = [Truncated(T, 0, 5), produced(5, OPEN[0])]
    before = Read("run-9", "p1", T, 0, 0, 6, (0, 1, 2, 5))
    assert kinds([*first[:at], before, *again, *first[at:]]) == []
    after_it = at + 1
    assert isinstance(first[at], Read), "by the run that commits"
    assert kinds([*first[:after_it], *again, *first[after_it:]]) == [Kind.LOST, Kind.LOST]


@pytest.mark.parametrize(
    ("ids", "more", "found"),
    [
        (("w1",), [Abandoned("p2")], []),
        (("w2",), [Abandoned("p2")], ["w1"]),
        (("w1",), [], ["w1"]),
        (("w1",), [Abandoned("p2"), held(2, WAVE[2], "d3", "open")], ["w1"]),
    ],
    ids=["given up", "another one", "not given up", "and decided on since"],
)
def test_what_is_whole_and_held_is_owed_by_nobody_where_somebody_gave_up_the_decision_about_it(
    ids: tuple[str, ...], more: list[Event], found: list[str]
) -> None:
    """It was restored when it waited no longer: no ingest takes it up again."""
    plan = Planned("run-2", "p2", "held", 1, 2, T, {0: 6}, (), "redrive", ids)
    lost = [
        a
        for a in analyse(History(then(parked("open"), plan, *more)))
        if a.what == "whole and sound, and never published"
    ]
    assert [i for a in lost for i in a.ids] == found
