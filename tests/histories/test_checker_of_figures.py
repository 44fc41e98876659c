"""What the checker makes of figures: how much a head says that is held, how much a row of the history says that was
published, and how far the data have come."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.builders.records import cut, metadata
from tests.histories.anomaly import Anomaly, Kind
from tests.histories.by_hand import NOW, OPEN, T, before_quiet, head, held, planned, produced, sound
from tests.histories.checker import analyse
from tests.histories.events import Event, Held, Published, Read, Recorded
from tests.histories.history import History
from tests.histories.table_events import Deleted, TakenOut


def says(events: list[Event], words: str) -> list[Anomaly]:
    return [a for a in analyse(History(events)) if words in a.what]


# what is held


def counting(counts: tuple[tuple[str, int], ...], *events: Event, held: tuple[str, ...] = ("d1",)) -> bool:
    """Whether a head after the sound history, and after these, that says so is called wrong."""
    made = replace(head(3, 6, kind="held", decision="d2"), held=held, counts=counts)
    return bool(says(before_quiet(*events, made)[:-1], "as held, and it is"))


def later(reason: str, **more: Any) -> Held:
    return replace(held(5, OPEN[0], "d2", reason), sequence=3, **more)


def test_a_head_counts_what_is_held_by_reason() -> None:
    assert not counting((("open", 1),))
    assert counting((("open", 2),))
    assert counting(())
    assert counting((("parked", 1),))
    assert not counting((), held=()), "its rows are not those that it names"


BOTH = ("d1", "d2")


def test_the_newest_word_on_a_chunk_counts() -> None:
    assert not counting((("parked", 1),), later("parked"), held=BOTH)
    assert counting((("open", 1),), later("parked"), held=BOTH)
    assert not counting((("open", 1),), later("parked")), "staged, and never committed"


def test_of_copies_that_say_another_count_each_is_one() -> None:
    assert not counting((("open", 1), ("parked", 1)), later("parked", says=(3, None)), held=BOTH)


def test_what_came_under_a_discarded_id_is_no_tombstone() -> None:
    assert not counting((("discarded", 1),), later("discarded"), held=BOTH)
    other = replace(later("discarded"), offset=6)
    assert not counting((("after_discard", 1), ("open", 1)), other, held=BOTH)
    assert counting((("discarded", 1), ("open", 1)), other, held=BOTH)
    assert not counting((("discarded", 1), ("open", 1)), replace(other, before="open"), held=BOTH)


def test_what_is_published_is_counted_no_more() -> None:
    (chunk,) = cut("w9", [b"\x05\x00"], meta=metadata(NOW))
    kept = replace(held(6, chunk, "d2", "parked"), sequence=3, says=(1, None))
    row = Published("run-2", "p2", 3, "w9", b"\x05\x00", ((T, 0, 6, 2, kept.piece),))
    told: list[Event] = [produced(6, chunk), kept]
    assert counting((("open", 1),), *told, held=BOTH)
    assert not counting((("open", 1),), *told, row, held=BOTH)
    longer = replace(kept, says=(2, None))
    assert counting((("open", 1),), produced(6, chunk), longer, row, held=BOTH), "another word about the whole"


def test_what_was_taken_out_is_counted_no_more_and_what_was_deleted_stops_the_count() -> None:
    other = replace(later("open"), offset=6)
    out = TakenOut("run-2", 3, ((T, 0, 6, other.piece, "d2"),))
    assert not counting((("open", 2),), other, held=BOTH)
    assert not counting((("open", 1),), other, out, held=BOTH)
    assert counting((("open", 2),), other, out, held=BOTH)
    assert not counting((("open", 9),), Deleted(("w1",)))


def test_what_was_lost_is_said_once_and_not_by_its_figures() -> None:
    made = replace(head(3, 6, kind="held", decision="d2"), held=("d1",), counts=(("open", 9),))
    found = analyse(History(before_quiet(produced(6, ROW_OF_NOW), made)))
    assert any(a.kind is Kind.LOST for a in found)
    assert not any("as held, and it is" in a.what for a in found)


# what was published


@pytest.mark.parametrize(("said", "right"), [(1, True), (0, False), (2, False), (None, True)])
def test_a_row_of_the_history_says_how_many_waveforms_were_published(said: int | None, right: bool) -> None:
    events = [replace(e, published=said) if isinstance(e, Recorded) else e for e in sound()]
    assert (not says(events, "waveforms were published")) is right


# how far the data have come

IDLE = 1000


def came_to(watermark_ms: int | None, *, seen_ms: int | None = NOW, kind: str = "ingest", **how: Any) -> list[Anomaly]:
    """A head after one that has watermark `was` and had last seen `saw`, planned by a `clock`, that reads one record of
    now and says this."""
    was, saw, clock = how.get("was", 0), how.get("saw", NOW - 5), how.get("clock", NOW + 10)
    before = replace(head(3, 6, run="run-2"), watermark_ms=was, seen_ms={0: saw, **how.get("others", {})})
    plan = planned("p3", run="run-2", ranges=((0, 6, 7),), clock_ms=clock, idle_ms=IDLE)
    said = {} if seen_ms is None else {0: seen_ms}
    others = how.get("others", {})
    positions, seen = {0: 7, **dict.fromkeys(others, 0)}, {**said, **others}
    made = replace(head(4, 7, run="run-2", kind=kind, plan_id="p3"), positions=positions)
    made = replace(made, watermark_ms=watermark_ms, seen_ms=seen)
    told = before_quiet(produced(6, ROW_OF_NOW), before, plan, Read("run-2", "p3", T, 0, 6, 7, (6,)), made)
    return [a for a in analyse(History(told)) if "has watermark" in a.what or "last record was of" in a.what]


(ROW_OF_NOW,) = cut("w3", [b"\x05\x00"], meta=metadata(NOW))


def test_the_watermark_is_where_the_data_are() -> None:
    assert not came_to(NOW)
    assert came_to(NOW + 1)
    assert came_to(NOW - 1)
    assert came_to(0), "never moves"
    assert came_to(NOW + 10), "the clock"
    assert not came_to(None)


def test_a_partition_that_is_not_idle_holds_it_back() -> None:
    assert not came_to(NOW - 500, others={1: NOW - 500})
    assert came_to(NOW, others={1: NOW - 500})
    assert not came_to(NOW, others={1: NOW - 5000})


def test_where_all_are_idle_it_follows_the_clock() -> None:
    assert not came_to(NOW + 4000, clock=NOW + 5000)
    assert came_to(NOW, clock=NOW + 5000)


def test_it_goes_back_only_where_a_clock_was_ahead() -> None:
    assert not came_to(NOW + 7, was=NOW + 7)
    assert came_to(NOW, was=NOW + 7)
    assert not came_to(NOW + 10, was=NOW + 99)
    assert came_to(NOW + 99, was=NOW + 99)


def test_who_leaves_the_positions_leaves_the_watermark() -> None:
    assert not came_to(5, was=5, kind="backfill")
    assert came_to(NOW, was=5, kind="backfill")


def test_what_was_seen_last_was_read_last() -> None:
    assert came_to(NOW - 5, seen_ms=NOW - 5)
    assert came_to(0, seen_ms=None)
