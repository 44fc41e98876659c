"""What the commits of a stream come to, each counted once, and what a look at it is in figures."""

from __future__ import annotations

import pytest

from tests.builders.heads import make_row
from wavestitch.contracts.batch_row import BatchRow
from wavestitch.contracts.metrics import (
    COMMITTED,
    HELD,
    LAST_SECONDS,
    LOOKED,
    OPEN,
    OPEN_AGE,
    UP,
    Counted,
    Sample,
    Seen,
    samples_of,
)
from wavestitch.contracts.quantities import EpochMs
from wavestitch.contracts.reasons import Fate

NOW = EpochMs(1_767_614_400_500)


def batch(sequence: int, times: int = 1) -> BatchRow:
    """With figures that are so many times those of the first."""
    return make_row(
        sequence=sequence,
        partitions={"0": {"planned": 9 * times, "read": 7 * times}, "1": {"planned": times}, "5": {"read": 99}},
        reading={"0": [100.0 * times, 1.0], "5": [99.0, 1.0]},
        counts={"read": 7 * times, "published": 5 * times, "quarantined": 2 * times},
        waveforms={"published": 2 * times, "open": 4, "quarantined": times},
        seconds={"read": 0.5 * times, "publish": 0.25 * times, "elsewhere": 9.0},
    )


def counted(*rows: BatchRow, until: int) -> Counted:
    return Counted().beginning_at(1).with_rows(rows, until=until, partitions=range(2))


def test_a_batch_counts_with_all_its_figures_and_those_that_it_does_not_have_are_nought() -> None:
    assert counted(batch(1), until=1) == Counted(
        sequence=1,
        commits={"ingest": 1},
        records={"0": 7, "1": 0},
        bytes={"0": 100},
        chunks={**dict.fromkeys((fate.value for fate in Fate), 0), "published": 5, "quarantined": 2},
        waveforms={"published": 2, "quarantined": 1},
        seconds={"read": 0.5, "reassemble": 0.0, "validate": 0.0, "publish": 0.25},
    )


def test_each_commit_counts_once_and_what_it_says_adds_to_what_was() -> None:
    rows = [batch(1), batch(2, 2), batch(3, 3)]
    once = counted(*rows, until=2)
    assert (once.sequence, once.records, once.seconds["read"]) == (2, {"0": 21, "1": 0}, 1.5)
    assert once.with_rows(rows, until=2, partitions=range(2)) == once
    assert once.with_rows(rows, until=3, partitions=range(2)) == counted(*rows, until=3)
    assert counted(*rows, until=3).chunks["published"] == 30


def test_of_what_was_before_the_first_look_the_newest_commit_counts_and_a_table_set_back_takes_nothing_away() -> None:
    assert Counted().beginning_at(4).sequence == 3
    assert Counted(sequence=7).beginning_at(4).sequence == 4
    assert Counted(sequence=3).beginning_at(4).sequence == 3
    assert Counted(sequence=7).with_rows([], until=4, partitions=()).sequence == 7


@pytest.mark.parametrize("figure", [-1, (1 << 53) + 1])
def test_a_figure_that_no_batch_has_counts_nothing_and_stops_nothing(figure: int) -> None:
    odd = make_row(
        kind="of another tool",
        partitions={"0": {"read": figure}},
        reading={"0": [float(figure) * 2, 1.0], "1": []},
        counts={"published": figure},
        seconds={"read": float(figure) * 2},
    )
    found = counted(odd, batch(2), until=2)
    assert (found.commits, found.records["0"], found.chunks["published"]) == ({"ingest": 1}, 7, 5)
    assert (found.bytes, found.seconds["read"]) == ({"0": 100, "1": 0}, 0.5)
    assert counted(make_row(partitions={"0": {"read": 1 << 53}}), until=1).records == {"0": 1 << 53}


def test_what_was_seen_is_told_in_seconds_and_by_the_words_that_are_known() -> None:
    seen = Seen(
        up=True,
        open=3,
        open_ms=EpochMs(NOW - 90_250),
        held={"conflict": 2, "after_discard": 1, "of another tool": 7},
        committed_ms=EpochMs(NOW - 1000),
        last={"read": 0.5, "of another tool": 7.0},
    )
    assert samples_of(seen, Counted(commits={"rewind": 1, "ingest": 4}), now=NOW)[:8] == [
        Sample(UP, (), 1.0),
        Sample(LOOKED, (), 1_767_614_400.5),
        Sample(OPEN, (), 3),
        Sample(OPEN_AGE, (), 90.25),
        Sample(COMMITTED, (), 1_767_614_399.5),
        Sample(HELD, ("after_discard",), 1),
        Sample(HELD, ("conflict",), 2),
        Sample(LAST_SECONDS, ("read",), 0.5),
    ]


def test_what_is_not_known_has_no_figure() -> None:
    assert samples_of(Seen(up=False), Counted(), now=NOW) == [Sample(UP, (), 0.0), Sample(LOOKED, (), NOW / 1000)]
    nothing_waits = samples_of(Seen(up=True, committed_ms=NOW), Counted(), now=NOW)
    assert nothing_waits[2:] == [Sample(OPEN, (), 0), Sample(OPEN_AGE, (), 0.0), Sample(COMMITTED, (), NOW / 1000)]
