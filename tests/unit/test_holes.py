"""An offset that was planned and not delivered is proven by the broker's batches, or fails the batch by name (I8)."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby, pairwise
from typing import NamedTuple

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.builders.ranges import span
from wavestitch.contracts.errors import DataLost, Transient
from wavestitch.contracts.holes import Hole, HoleFinder, Proof, lost_to_retention, prove_holes, show_intervals
from wavestitch.contracts.plan import PlanKind
from wavestitch.contracts.quantities import Offset
from wavestitch.contracts.record_batches import AbortedTransaction, Control, RawFetch, RecordBatch

SLICE = span(3, 100, 1000)


@given(st.sets(st.integers(0, 80)), st.integers(0, 40), st.integers(0, 40))
def test_holes_are_exactly_the_offsets_that_did_not_come(offsets: set[int], start: int, size: int) -> None:
    end = start + size
    delivered = sorted(o for o in offsets if start <= o < end)
    finder = HoleFinder(Offset(start))
    for o in delivered:
        finder.add(Offset(o))
    holes = finder.close(Offset(end))
    assert sorted(o for a, b in holes for o in range(a, b)) == sorted(set(range(start, end)) - set(delivered))
    assert all(a < b for a, b in holes)
    assert all(before[1] < after[0] for before, after in pairwise(holes)), "two that touch"


class Piece(NamedTuple):
    """Offsets of one kind in a generated log: R records, A aborted ones, C and X markers, G gone with its batch, P gone
    from within a batch."""

    kind: str
    count: int  # type: ignore[assignment]


class Log:
    """A log of pieces from offset 0, fetched as a broker would, at most `most` batches at a time."""

    def __init__(self, pieces: list[Piece], *, most: int) -> None:
        self.most = most
        self.batches: list[RecordBatch] = []
        self.aborted: list[tuple[AbortedTransaction, int]] = []
        self.kinds = ""
        self.asked: list[int] = []
        """The bytes of each fetch."""
        for number, (kind, count) in enumerate(pieces):
            start, end = len(self.kinds), len(self.kinds) + count
            self.kinds += kind * count
            if kind in "RP":
                missing = range(start, end) if kind == "P" else ()
                self.batches.append(RecordBatch(Offset(start), Offset(end), -1, False, None, missing))
            if kind == "A":
                self.batches.append(RecordBatch(Offset(start), Offset(end), number, True, None))
                self.aborted.append((AbortedTransaction(number, Offset(start)), end))
                # The same producer goes on: what it commits later is not of the aborted transaction.
                self.batches.append(RecordBatch(Offset(end), Offset(end + 1), number, True, Control.ABORT))
                self.batches.append(RecordBatch(Offset(end + 1), Offset(end + 2), number, True, None))
                self.batches.append(RecordBatch(Offset(end + 2), Offset(end + 3), number, True, Control.COMMIT))
                self.kinds += "XRC"
            if kind in "CX":
                control = Control.COMMIT if kind == "C" else Control.ABORT
                self.batches += [
                    RecordBatch(Offset(o), Offset(o + 1), 10_000 + o, True, control) for o in range(start, end)
                ]

    def __call__(self, offset: int, most_bytes: int, /) -> RawFetch:
        self.asked.append(most_bytes)
        found = [b for b in self.batches if b.end > offset][: self.most]
        end = found[-1].end if found else offset
        return RawFetch(found, [t for t, last in self.aborted if last >= offset and t.first_offset < end])


PROOFS = {"C": Proof.COMMIT_MARKER, "X": Proof.ABORT_MARKER, "A": Proof.ABORTED}


def prove(holes: Sequence[tuple[int, int]], log: Log) -> list[Hole]:
    wanted = [(Offset(a), Offset(b)) for a, b in holes]
    return prove_holes(wanted, stream="ecg", topic="waves", slice_=SLICE, fetch=log).holes


def runs(kinds: str, wanted: str, start: int, end: int) -> list[tuple[int, int, str]]:
    """Runs of one kind within `[start, end)`."""
    found = []
    for kind, group in groupby(range(start, end), key=kinds.__getitem__):
        offsets = list(group)
        if kind in wanted:
            found.append((offsets[0], offsets[-1] + 1, kind))
    return found


pieces = st.lists(st.builds(Piece, st.sampled_from("RRACX"), st.integers(1, 12)), min_size=1, max_size=12)


@given(pieces, st.integers(1, 9), st.data())
def test_every_hole_is_proven_as_what_it_is_however_the_slice_and_the_fetches_fall(
    made: list[Piece], most: int, data: st.DataObject
) -> None:
    log = Log(made, most=most)
    start = data.draw(st.integers(0, len(log.kinds)))
    end = data.draw(st.integers(start, len(log.kinds)))
    finder = HoleFinder(Offset(start))
    for o in range(start, end):
        if log.kinds[o] == "R":
            finder.add(Offset(o))
    expected = [Hole(Offset(a), Offset(b), PROOFS[kind]) for a, b, kind in runs(log.kinds, "CXA", start, end)]
    assert prove(finder.close(Offset(end)), log) == expected


@given(pieces, pieces, st.sampled_from("GP"), st.integers(1, 9), st.integers(1, 9))
@example([Piece("C", 65)], [Piece("R", 1)], "G", 1, 500)
def test_what_is_gone_is_lost_by_name_and_nothing_else_is(
    before: list[Piece], after: list[Piece], how: str, count: int, most: int
) -> None:
    log = Log([*before, Piece(how, count), *after], most=most)
    first = log.kinds.index(how)
    finder = HoleFinder(Offset(0))
    for o, kind in enumerate(log.kinds):
        if kind == "R":
            finder.add(Offset(o))
    with pytest.raises(DataLost) as lost:
        prove(finder.close(Offset(len(log.kinds))), log)
    assert lost.value.facts["offsets"] == [[first, first + count]]
    gone = f"3:{first}-{first + count}"
    assert f"`wavestitch run ecg --partitions 3 --until 3:{first}`" in lost.value.message
    assert f"`wavestitch rewind ecg --to 3:{first + count} --accept-skip {gone} --apply`" in lost.value.message


@pytest.mark.parametrize("count", [1, 64, 65, 128, 5000])
@pytest.mark.parametrize("kind", "CX")
def test_no_number_of_markers_side_by_side_is_too_many(kind: str, count: int) -> None:
    log = Log([Piece("R", 100), Piece(kind, count), Piece("R", 1)], most=800)
    assert prove([(100, 100 + count)], log) == [Hole(Offset(100), Offset(100 + count), PROOFS[kind])]
    assert len(log.asked) <= 1 + count // 800


def test_a_single_lost_record_between_two_delivered_ones_is_not_taken_for_a_marker() -> None:
    log = Log([Piece("R", 100), Piece("G", 1), Piece("R", 5)], most=10)
    with pytest.raises(DataLost, match=r"offsets \[100, 101\) hold no record, no marker"):
        prove([(100, 101)], log)


def test_records_that_are_there_and_were_not_delivered_make_the_reading_fail_for_now() -> None:
    log = Log([Piece("R", 100), Piece("C", 1), Piece("R", 5)], most=10)
    with pytest.raises(Transient, match=r"\[98, 100\) were skipped by the reading"):
        prove([(98, 101)], log)


def test_a_hole_behind_everything_that_the_log_holds_is_lost() -> None:
    log = Log([Piece("C", 6)], most=10)
    with pytest.raises(DataLost) as lost:
        prove([(5, 7), (8, 10)], log)
    assert lost.value.facts == {"topic": "waves", "partition": 3, "offsets": [[6, 7], [8, 10]]}
    assert len(log.asked) == 2, "where the log ends, all that wait are gone"
    assert "the others follow in the same way" in lost.value.message


def test_an_error_carries_a_hundred_intervals_and_counts_the_others() -> None:
    with pytest.raises(DataLost, match=r"\[8, 9\) and 97 more hold no record") as lost:
        prove([(2 * n, 2 * n + 1) for n in range(102)], Log([], most=1))
    assert lost.value.facts["offsets"] == [[2 * n, 2 * n + 1] for n in range(100)]


def test_no_hole_asks_nobody() -> None:
    log = Log([], most=1)
    assert prove([], log) == []
    assert log.asked == []


KIB = 1024


@pytest.mark.parametrize(
    ("made", "holes", "asked"),
    [
        # One that goes on is asked for more and more at a time, whatever waits behind it.
        ([Piece("C", 5), Piece("R", 75), Piece("C", 1)], [(0, 5), (80, 81)], [64, 128, 256, 512, 1024, 512]),
        ([Piece("C", 9)], [(0, 9)], [64, 128, 256, 512, 1024, 2048, 4096, 4096, 4096]),
        # Far apart it is little each time.
        ([Piece("R", 1), Piece("C", 1)] * 3, [(1, 2), (3, 4), (5, 6)], [64, 64, 64]),
    ],
)
def test_no_more_is_fetched_than_proves_something(
    made: list[Piece], holes: list[tuple[int, int]], asked: list[int]
) -> None:
    log = Log(made, most=1)
    found = [h for h in holes if log.kinds[h[0]] == "C"]
    assert prove(found, log) == [Hole(Offset(a), Offset(b), Proof.COMMIT_MARKER) for a, b in found]
    assert [n // KIB for n in log.asked] == asked


@pytest.mark.parametrize(("count", "shown"), [(1, "[0, 1)"), (2, "[0, 1), [2, 3)"), (3, "[0, 1), [2, 3) and 1 more")])
def test_so_many_intervals_are_shown_and_the_others_counted(count: int, shown: str) -> None:
    assert show_intervals([(Offset(2 * n), Offset(2 * n + 1)) for n in range(count)], most=2) == shown


def test_what_retention_took_is_named_up_to_where_the_log_begins() -> None:
    lost = lost_to_retention(stream="ecg", topic="waves", slice_=SLICE, position=120, log_start=Offset(300))
    assert "offsets [100, 300) were deleted before all of them were read" in lost.message
    assert "reading [100, 1000) had come to 120, the log now begins at 300" in lost.message
    assert "`wavestitch rewind ecg --to 3:300 --accept-skip 3:100-300 --apply`" in lost.message
    assert lost.facts == {"topic": "waves", "partition": 3, "offsets": [[100, 300]], "log_start": 300}
    assert lost_to_retention(stream="ecg", topic="waves", slice_=SLICE, position=120, log_start=Offset(5000)).facts[
        "offsets"
    ] == [[100, 1000]]


@pytest.mark.parametrize(("begins", "before"), [(100, False), (90, True), (None, True)])
def test_an_ingest_is_not_told_to_take_in_what_is_before_its_own_beginning(begins: int | None, before: bool) -> None:
    """A slice may be a later part of what the batch reads: then there is something before it."""
    finder = Log([Piece("R", 100), Piece("G", 2), Piece("R", 5)], most=10)
    with pytest.raises(DataLost) as lost:
        prove_holes(
            [(Offset(100), Offset(102))],
            stream="ecg",
            topic="waves",
            slice_=span(3, 100, 107),
            fetch=finder,
            begins=None if begins is None else Offset(begins),
        )
    assert ("`wavestitch run ecg --partitions 3 --until 3:100`" in lost.value.message) is before
    assert (
        "on behind them with `wavestitch rewind ecg --to 3:102 --accept-skip 3:100-102 --apply`" in lost.value.message
    )


@pytest.mark.parametrize("kind", [PlanKind.MANUAL, PlanKind.BACKFILL])
def test_a_plan_that_names_what_it_reads_is_led_around_a_loss_not_sent_to_a_rewind(kind: PlanKind) -> None:
    finder = Log([Piece("R", 100), Piece("G", 2), Piece("R", 5)], most=10)
    slice_ = span(3, 90, 107)
    with pytest.raises(DataLost) as lost:
        prove_holes([(Offset(100), Offset(102))], stream="ecg", topic="waves", slice_=slice_, fetch=finder, kind=kind)
    assert "`wavestitch run ecg --offsets 3:90-100`, `wavestitch run ecg --offsets 3:102-107`" in lost.value.message
    gone = lost_to_retention(stream="ecg", topic="waves", slice_=slice_, position=90, log_start=Offset(95), kind=kind)
    assert "`wavestitch run ecg --offsets 3:95-107`" in gone.message
    for advice in (lost.value.message, gone.message):
        assert "wavestitch rewind" not in advice
        assert "--until" not in advice
