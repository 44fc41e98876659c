"""A slice's reading ends when its position reaches the end, or fails with a reason; silence is never the end."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tests.builders.ranges import span
from wavestitch.contracts.offset_range import OffsetRange
from wavestitch.contracts.quantities import Offset
from wavestitch.contracts.stop_rule import Ruling, State, StopRule, Why

SLICE = span(0, 10, 20)
DONE = Ruling(State.DONE, Why.REACHED_END)
CONTINUE = Ruling(State.CONTINUE, None)


def rule(slice_: OffsetRange = SLICE) -> StopRule:
    return StopRule(slice_, idle_seconds=5, now=0)


def test_the_record_before_the_end_does_end_it() -> None:
    r = rule()
    assert r.admit(Offset(19))
    assert r.judge(position=None, now=1) == DONE


def test_a_marker_before_the_end_is_passed_by_position_alone() -> None:
    r = rule()
    assert r.admit(Offset(18))
    assert r.judge(position=Offset(19), now=1) == CONTINUE
    assert r.judge(position=Offset(20), now=2) == DONE


def test_a_record_behind_the_end_is_dropped_and_proves_the_end_was_passed() -> None:
    r = rule()
    assert not r.admit(Offset(23))
    assert r.judge(position=None, now=1) == DONE


def test_an_empty_slice_is_done_before_anything_came() -> None:
    assert rule(span(0, 7, 7)).judge(position=None, now=0) == DONE


def test_silence_is_never_the_end_and_fails_at_the_deadline() -> None:
    r = rule()
    assert [r.judge(position=Offset(p), now=t).state for p, t in ((None, 1), (-1001, 3), (10, 4.99))] == [
        State.CONTINUE
    ] * 3
    assert r.judge(position=Offset(10), now=5) == Ruling(State.FAILED, Why.IDLE)


def test_any_step_forward_starts_the_deadline_anew() -> None:
    r = rule()
    r.judge(position=Offset(11), now=4.9)
    assert r.judge(position=Offset(11), now=9.8) == CONTINUE
    assert r.judge(position=Offset(11), now=9.9) == Ruling(State.FAILED, Why.IDLE)


def test_an_offset_that_comes_twice_fails() -> None:
    r = rule()
    r.admit(Offset(12))
    assert not r.admit(Offset(12))
    assert r.judge(position=Offset(20), now=0) == Ruling(State.FAILED, Why.NOT_RISING)


def test_the_first_offset_fails_as_one_that_comes_twice_too() -> None:
    r = rule()
    assert r.admit(Offset(10))
    assert not r.admit(Offset(10))
    assert r.judge(position=Offset(20), now=0) == Ruling(State.FAILED, Why.NOT_RISING)


def test_what_did_not_come_is_behind_the_position_and_behind_the_last_record() -> None:
    r = rule()
    assert r.reached == 10
    r.admit(Offset(12))
    assert r.reached == 13
    r.judge(position=Offset(15), now=1)
    assert r.reached == 15


def test_an_offset_before_the_start_fails() -> None:
    r = rule()
    assert not r.admit(Offset(9))
    assert r.judge(position=Offset(20), now=0) == Ruling(State.FAILED, Why.BEFORE_START)


def test_an_error_is_final_whatever_comes_after() -> None:
    r = rule()
    r.fail(Why.LOG_ERROR)
    assert not r.admit(Offset(10))
    assert r.judge(position=Offset(20), now=0) == Ruling(State.FAILED, Why.LOG_ERROR)


Event = tuple[str, int]
events = st.lists(
    st.one_of(
        st.tuples(st.just("record"), st.integers(0, 30)),
        st.tuples(st.just("judge"), st.integers(-1001, 30)),
        st.tuples(st.just("wait"), st.integers(0, 6)),
        st.tuples(st.just("fail"), st.just(0)),
    ),
    max_size=60,
)


@given(events)
def test_whatever_happens_done_means_the_end_was_reached_and_a_ruling_is_final(script: list[Event]) -> None:
    r, now, kept, reached, final = rule(), 0.0, list[int](), SLICE.start, None
    for what, n in script:
        if what == "record":
            admitted = r.admit(Offset(n))
            assert not (admitted and final), "a record was kept after the ruling"
            if admitted:
                kept.append(n)
            reached = Offset(max(reached, n + 1))
        elif what == "fail":
            r.fail(Why.LOG_ERROR)
        else:
            now += n if what == "wait" else 0
            position = n if what == "judge" else None
            reached = Offset(max(reached, position or 0))
            ruling = r.judge(position=Offset(position), now=now)
            assert final in (None, ruling)
            if ruling.state is State.DONE:
                assert reached >= SLICE.end
            if ruling.state is not State.CONTINUE:
                assert ruling.why is not None
                final = ruling
    assert kept == sorted(set(kept))
    assert all(SLICE.start <= n < SLICE.end for n in kept)


@given(st.lists(st.integers(0, 3), min_size=1, max_size=30))
def test_silence_alone_always_ends_in_idle(waits: list[int]) -> None:
    r, now = rule(), 0
    for wait in waits:
        now += wait
        assert r.judge(position=None, now=now).state is (State.FAILED if now >= 5 else State.CONTINUE)


@given(st.sets(st.integers(10, 19)))
def test_records_in_order_are_all_kept_and_the_position_ends_it(offsets: set[int]) -> None:
    r = rule()
    assert all(r.admit(Offset(n)) for n in sorted(offsets))
    assert r.judge(position=Offset(20), now=0) == DONE
