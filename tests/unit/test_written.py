"""In which leader epochs what was read had been written: of records, and of what proves that there are none."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from wavestitch.contracts.quantities import LeaderEpoch, Offset
from wavestitch.contracts.written import NO_EPOCH, Written, WrittenHole, beside_holes, epoch_at, epoch_of, runs_of

offsets = st.lists(st.tuples(st.booleans(), st.integers(-1, 2)), min_size=1, max_size=12)
"""Of each offset, whether there is a record, and the epoch: in any order, as where a log is cut off under a reader."""


@given(offsets, st.integers(0, 5))
def test_of_every_offset_the_epoch_is_known_in_which_it_was_written(found: list[tuple[bool, int]], start: int) -> None:
    each = [(Offset(start + n), there, LeaderEpoch(epoch)) for n, (there, epoch) in enumerate(found)]
    records = runs_of(Written(o, epoch) for o, there, epoch in each if there)
    holes = [WrittenHole(o, Offset(o + 1), epoch) for o, there, epoch in each if not there]
    runs = beside_holes(records, holes, Offset(start + len(each)))
    assert [epoch_at(runs, o) for o, _, _ in each] == [epoch for _, _, epoch in each]
    assert runs == runs_of(runs) == sorted(runs)
    assert runs[0].start == start


def test_long_holes_begin_and_end_where_they_do() -> None:
    records = [Written(Offset(0), LeaderEpoch(3))]
    holes = [WrittenHole(Offset(4), Offset(9), LeaderEpoch(5))]
    assert beside_holes(records, holes, Offset(12)) == [(0, 3), (4, 5), (9, 3)]
    assert beside_holes(records, holes, Offset(9)) == [(0, 3), (4, 5)]
    assert beside_holes([], holes, Offset(9)) == [(4, 5)]
    assert beside_holes([], [], Offset(9)) == []


def test_before_the_first_run_and_of_a_broker_that_gives_none_nothing_is_known() -> None:
    assert [epoch_at([Written(Offset(2), LeaderEpoch(1))], Offset(o)) for o in range(4)] == [NO_EPOCH, NO_EPOCH, 1, 1]
    assert [epoch_of(given) for given in (None, -1, 0, 7)] == [NO_EPOCH, NO_EPOCH, 0, 7]
