"""What the checker makes of closed gates: who may go past one, and who could not know of it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.builders.records import cut, metadata
from tests.histories.anomaly import Kind
from tests.histories.by_hand import NOW, T, before_quiet, committed_by, head, kinds, planned, produced, proof_of
from tests.histories.events import Abandoned, Answered, Event, GateClosed, Looked, Published


def test_an_ingest_past_a_closed_gate_is_invented() -> None:
    stopped, backfill = planned("p2"), planned("p2", kind="backfill")
    closed, looked, mine = GateClosed("p2"), Looked("run-2", "gates"), planned("p3", run="run-2")
    done = committed_by("p3", "ingest")
    assert kinds(before_quiet(stopped, closed, mine, looked, *done)) == [Kind.INVENTED]
    assert kinds(before_quiet(stopped, closed, mine, *done)) == [Kind.INVENTED], "who never looks has no excuse"
    assert kinds(before_quiet(stopped, looked, mine, closed, *done)) == [Kind.INVENTED], "nor who looked only before"
    assert kinds(before_quiet(stopped, mine, looked, closed, *done)) == [], "who looked right before cannot know"
    assert kinds(before_quiet(stopped, mine, looked, Looked("run-2", "head"), closed, *done)) == [], "nor once more"
    other = replace(head(3, 6), run="run-9", plan_id="p9", kind="held")
    late = before_quiet(stopped, mine, looked, other, Looked("run-2", "head"), closed, *done)
    assert Kind.INVENTED in kinds(late), "who found another head looks again"
    assert kinds(before_quiet(stopped, closed, Abandoned("p2"), mine, looked, *done)) == []
    assert kinds(before_quiet(stopped, Abandoned("p2"), closed, mine, looked, *done)) == [], "its run hears of it late"
    assert kinds(before_quiet(backfill, closed, mine, looked, *done)) == [], "it stands in nobody's way"


def test_who_has_answered_its_own_closed_gate_goes_past_another_one_though_somebody_gives_it_up_meanwhile() -> None:
    """That it was given up is said of those alone who could know it."""
    mine = planned("p3", run="run-2")
    begins = planned("p2"), mine, GateClosed("p2"), GateClosed("p3"), Looked("run-2", "gates")
    looked, gave_up = Looked("run-2", "abandoned"), Abandoned("p3")
    done = committed_by("p3", "ingest")
    assert kinds(before_quiet(*begins, looked, *done)) == [Kind.INVENTED]
    assert kinds(before_quiet(*begins, Answered("p3"), looked, *done)) == []
    assert kinds(before_quiet(*begins, Answered("p3"), looked, gave_up, *done)) == []
    assert kinds(before_quiet(*begins, looked, gave_up, *done)) == [Kind.INVENTED], "nobody has answered"
    assert kinds(before_quiet(*begins, Answered("p3"), gave_up, looked, *done)) == [Kind.STALE_WRITER]


@pytest.mark.parametrize(
    ("action", "bars"), [("redrive", True), ("pick", True), ("", True), ("accept", False), ("discard", False)]
)
def test_what_a_gate_stopped_is_published_by_nobody_else_but_who_accepts_it(action: str, bars: bool) -> None:
    """By no other decision, and by no backfill, wherever it has it from."""
    one = cut("w5", [b"\x05\x00"], meta=metadata(NOW))[0]
    row = Published("run-2", "p3", 3, "w5", b"\x05\x00", ((T, 0, 6, 2, proof_of(one)),))
    kind = "held" if action else "backfill"
    mine = planned("p3", run="run-2", kind=kind, action=action, ids=("w5",) if action else ())
    rows = [] if action == "discard" else [row]
    for stopped, found in (("w5", [Kind.INVENTED] if bars else []), ("w7", [])):
        at_gate: list[Event] = [planned("p2"), GateClosed("p2", (stopped,))]
        events = before_quiet(produced(6, one), *at_gate, mine, *rows, *committed_by("p3", kind))
        assert kinds(events[:-1]) == found
