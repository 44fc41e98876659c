"""What the checker says of maintenance: stages that nobody tried, files that stay or go."""

from __future__ import annotations

import pytest

from tests.histories.anomaly import Kind
from tests.histories.by_hand import before_quiet, kinds
from tests.histories.events import Ended, Event, Started
from tests.histories.maintenance_events import Cleared, JunkGoes, LeftBehind, StageBegun
from tests.histories.maintenance_rules import AGE_MS, JUNK_MS, STAGES


def a_run(*begun: str, reason: str) -> list[Event]:
    began: list[Event] = [Started("run-9", "maintain", 600)]
    return [*began, *(StageBegun("run-9", stage) for stage in begun), Ended("run-9", reason, 9, "")]


@pytest.mark.parametrize(
    ("begun", "reason", "found"),
    [
        (STAGES, "done", []),
        (STAGES, "Transient", []),
        (STAGES[:2], "killed", []),
        ((), "Refused", []),
        (STAGES[:2], "Transient", [Kind.UNBOUNDED_COST]),
        (STAGES[:3], "done", [Kind.UNBOUNDED_COST]),
    ],
)
def test_a_stage_that_fails_keeps_no_other_from_being_tried(
    begun: tuple[str, ...], reason: str, found: list[Kind]
) -> None:
    assert kinds(before_quiet(*a_run(*begun, reason=reason))) == found


@pytest.mark.parametrize(
    ("alive", "age_ms", "stays", "found"),
    [
        (False, AGE_MS + 1, False, []),
        (False, AGE_MS + 1, True, [Kind.UNBOUNDED_COST]),
        (False, AGE_MS, True, []),
        (False, AGE_MS, False, [Kind.LOST]),
        (True, AGE_MS + 1, True, []),
        (True, AGE_MS + 1, False, [Kind.LOST]),
    ],
)
def test_what_a_killed_reader_left_goes_once_it_is_old_and_nothing_else(
    alive: bool, age_ms: int, stays: bool, found: list[Kind]
) -> None:
    left = ("a file",) if stays else ()
    events: list[Event] = [LeftBehind("a file", 1000, alive), Cleared("run-9", 1000 + age_ms, left)]
    assert kinds(before_quiet(*events)) == found


@pytest.mark.parametrize(
    ("is_chunk", "age_ms", "found"),
    [(False, JUNK_MS + 1, []), (False, JUNK_MS, [Kind.LOST]), (True, JUNK_MS + 1, [Kind.LOST])],
)
def test_of_what_is_held_only_old_junk_expires(is_chunk: bool, age_ms: int, found: list[Kind]) -> None:
    row = (("topic-1", 0, 3, "abc", "d1"), 1000, is_chunk)
    assert kinds(before_quiet(JunkGoes("run-9", 1000 + age_ms, (row,)))) == found
