"""What the checker asks of what a backfill names as gone: that no batch holds it, where the history says so."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.histories.anomaly import Kind
from tests.histories.by_hand import NOW, T, before_quiet, head, planned
from tests.histories.checker import analyse
from tests.histories.events import Event, Looked, LostOffset, Recorded, Retained, Started, Truncated
from tests.histories.history import History
from tests.histories.interval_events import Backfilled
from tests.histories.table_events import HistoryLost

SCOPE = (NOW * 10**6, (NOW + 1) * 10**6)
NOTED = Recorded("run-2", 2, "d1", {}, ((0, 0, 6),))
"""Of the ingest of the sound history: all that it has read."""
TAKEN, BEGUN, LOOKED = Retained(T, 0, 3), Started("run-3", "backfill", 100), Looked("run-3", "topic")
PLAN = planned("p3", run="run-3", kind="backfill", scope=SCOPE)


def untrue(*told: Event, first: str = "p3", lost: tuple[tuple[int, int, int], ...] = ((0, 0, 3),)) -> set[int]:
    found = analyse(History(before_quiet(*told, Backfilled("run-3", first, SCOPE, lost))))
    return {o for a in found if a.kind is Kind.UNTRUE and "holds it" in a.what for _, _, o in a.coordinates}


def test_what_a_batch_holds_is_not_named_as_gone() -> None:
    assert untrue(NOTED, TAKEN, BEGUN, LOOKED, PLAN) == {0, 1, 2}
    assert untrue(NOTED, TAKEN, BEGUN, LOOKED, first="") == {0, 1, 2}, "where it found nothing to read"
    assert untrue(NOTED, TAKEN, BEGUN, LOOKED, PLAN, lost=((0, 1, 2), (1, 0, 3))) == {1}
    assert untrue(NOTED, TAKEN, BEGUN, LOOKED, PLAN, lost=()) == set()
    assert untrue(TAKEN, BEGUN, NOTED, LOOKED, PLAN) == set(), "its row was written under way"


ACCEPTED = replace(head(3, 6), run="run-4", kind="rebuilt", generation=2, note="accepted as missing: 1 row")
SKIPS = replace(head(3, 6), run="run-4", kind="rewind", generation=2, skipped=((0, 0, 2),))


@pytest.mark.parametrize(
    ("before", "since", "plan", "told"),
    [
        ((TAKEN,), (), PLAN, set()),
        ((replace(NOTED, starts=((0, 0, 1),)), TAKEN), (), PLAN, {0}),
        ((replace(NOTED, decision="d2"), TAKEN), (), PLAN, set()),
        ((NOTED, HistoryLost((2,)), TAKEN), (), PLAN, set()),
        ((NOTED, TAKEN), (HistoryLost((1,)),), PLAN, set()),
        ((NOTED, HistoryLost((1,)), TAKEN), (), PLAN, {0, 1, 2}),
        ((NOTED, Truncated(T, 0, 6), TAKEN), (), PLAN, set()),
        ((NOTED, LostOffset(T, 0, 5), TAKEN), (), PLAN, set()),
        ((NOTED, LostOffset(T, 1, 5), TAKEN), (), PLAN, {0, 1, 2}),
        ((NOTED, ACCEPTED, TAKEN), (), replace(PLAN, base_sequence=3), set()),
        ((NOTED, SKIPS, TAKEN), (), replace(PLAN, base_sequence=3), {2}),
        ((NOTED, TAKEN), (), replace(PLAN, positions={0: 1}), {0}),
        ((NOTED, Retained(T, 0, 1)), (), PLAN, {0}),
    ],
    ids=[
        *("no row says so", "its row says a part", "the row of another one", "its row is lost"),
        *("a row is lost under way", "another row was lost", "the log was cut off", "the log lost something"),
        *("another log did", "accepted as missing", "skipped by name", "the position is before it"),
        "it went after the look",
    ],
)
def test_what_nobody_can_know_to_be_held_may_be_named(
    before: tuple[Event, ...], since: tuple[Event, ...], plan: Event, told: set[int]
) -> None:
    assert untrue(*before, BEGUN, LOOKED, *since, plan) == told
