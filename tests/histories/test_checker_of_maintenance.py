"""What the checker says of maintenance: stages that nobody tried, files that stay or go."""

from __future__ import annotations

import pytest

from tests.histories.anomaly import Kind
from tests.histories.by_hand import before_quiet, kinds
from tests.histories.events import Ended, Event, Started
from tests.histories.upkeep_events import Cleared, LeftBehind, Tended
from tests.histories.upkeep_rules import AGE_MS, STAGES


def a_run(*tended: str, reason: str) -> list[Event]:
    began: list[Event] = [Started("run-9", "maintain", 600)]
    return [*began, *(Tended("run-9", stage) for stage in tended), Ended("run-9", reason, 9, "")]


@pytest.mark.parametrize(
    ("tended", "reason", "found"),
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
    tended: tuple[str, ...], reason: str, found: list[Kind]
) -> None:
    assert kinds(before_quiet(*a_run(*tended, reason=reason))) == found


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
