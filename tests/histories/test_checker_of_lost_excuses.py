"""Where an excuse of the checker ends: what happened before it, what it is not about, what was done since."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.builders.records import cut, metadata
from tests.histories.anomaly import Kind
from tests.histories.by_hand import (
    NEW,
    NOW,
    ROW,
    WAVE,
    T,
    a_decision,
    before_quiet,
    head,
    held,
    planned,
    produced,
    projected,
    proof_of,
    sound,
    swap,
    then,
)
from tests.histories.checker import analyse
from tests.histories.events import (
    Abandoned,
    Committed,
    Event,
    Looked,
    Planned,
    Read,
    Retained,
    Rewound,
    Started,
    Truncated,
)
from tests.histories.history import History
from tests.histories.interval_events import Backfilled
from tests.histories.promotion_events import GateSays
from tests.histories.table_events import CatalogSetBack, Deleted
from tests.histories.test_checker_of_gone import LOOKED, SCOPE
from tests.histories.verify_events import Verified

OTHER = cut("w1", [b"\x09\x00", b"\x02\x00", b"\x03\x00"], meta=metadata(NOW))[0]
WHOLE = "whole and sound, and never published"
OPEN_THOUGH_WHOLE = swap(ROW, *(held(n, one, "d1") for n, one in enumerate(WAVE)))


def what(events: list[Event]) -> set[str]:
    return {a.what for a in analyse(History(events))}


def ingest(number: int, start: int, end: int, *inside: Event, generation: int = 1) -> list[Event]:
    run, plan_id = f"run-{number}", f"p{number}"
    plan = Planned(run, plan_id, "ingest", generation, number - 1, T, {0: start}, ((0, start, end),))
    offsets = tuple(o for o in range(start, end) if o not in (3, 4))
    made = replace(head(number, end), run=run, kind="ingest", plan_id=plan_id, decision=plan_id, generation=generation)
    return [plan, Read(run, plan_id, T, 0, start, end, offsets), *inside, made, projected(end, number, generation, run)]


@pytest.mark.parametrize("then_deleted", [False, True])
def test_what_was_lost_before_somebody_deleted_rows_is_lost_still(then_deleted: bool) -> None:
    """A copy that contradicts the row was read, and held by nobody."""
    dropped = [produced(6, OTHER), *ingest(3, 6, 7)]
    deleted: list[Event] = [Deleted(("w1",))] if then_deleted else []
    assert "passed by a head, and neither published nor held" in what(before_quiet(*dropped, *deleted))


def back_to_the_beginning() -> list[Event]:
    made = replace(head(3, 0), run="run-2", kind="rewind", generation=2)
    return [Rewound("run-2", "offsets", True), made, projected(0, 3, 2, "run-2")]


@pytest.mark.parametrize(("end", "told"), [(6, True), (2, False)])
def test_what_was_deleted_and_read_again_is_published(end: int, told: bool) -> None:
    rows = [replace(held(n, one, "p4"), run="run-4", sequence=4) for n, one in enumerate(WAVE) if n < end]
    again = ingest(4, 0, end, *rows, generation=2)
    assert (WHOLE in what(before_quiet(Deleted(("w1",)), *back_to_the_beginning(), *again))) is told


@pytest.mark.parametrize("read", [True, False])
def test_what_was_deleted_and_is_read_by_a_backfill_is_published(read: bool) -> None:
    plan = planned("p3", run="run-3", kind="backfill", scope=SCOPE, ranges=((0, 0, 3),))
    reads: list[Event] = [Read("run-3", "p3", T, 0, 0, 3, (0, 1, 2))] if read else []
    done = Backfilled("run-3", "p3", SCOPE)
    events = before_quiet(Deleted(("w1",)), Started("run-3", "backfill", 100), LOOKED, plan, *reads, done)
    assert ("whole in the log, of an interval whose backfill ended well" in what(events)) is read


@pytest.mark.parametrize(("action", "told"), [("discard", True), ("redrive", False)])
def test_who_gives_up_a_discard_has_not_decided_about_what_is_whole(action: str, told: bool) -> None:
    plan = planned("p9", run="run-2", kind="held", action=action, ids=("w1",))
    assert (WHOLE in what(then(OPEN_THOUGH_WHOLE, plan, Abandoned("p9")))) is told


def test_what_the_gate_refused_before_it_was_sent_is_published_when_it_may_be() -> None:
    says = [GateSays("w1"), GateSays("w1", False)]
    assert WHOLE in what([*says, *OPEN_THOUGH_WHOLE])
    at = next(n for n, e in enumerate(OPEN_THOUGH_WHOLE) if isinstance(e, Committed) and e.decision == "d1")
    assert WHOLE not in what([says[0], *OPEN_THOUGH_WHOLE[:at], says[1], *OPEN_THOUGH_WHOLE[at:]])


@pytest.mark.parametrize(("samples", "told"), [(ROW.samples, False), (b"nonsense", True)])
def test_a_row_is_put_back_as_it_was_once(samples: bytes, told: bool) -> None:
    row = replace(ROW, run="run-2", plan_id="", sequence=3, samples=samples)
    made = replace(head(3, 6), run="run-2", kind="maintenance")
    assert ("put back as it never was" in what(before_quiet(row, made, projected(6, 3, run="run-2")))) is told


@pytest.mark.parametrize(("between", "told"), [((), True), ((Truncated(T, 0, 6),), False)])
def test_a_backfill_names_as_gone_what_is(between: tuple[Event, ...], told: bool) -> None:
    plan = planned("p3", run="run-3", kind="backfill", scope=SCOPE)
    begun = Started("run-3", "backfill", 100), LOOKED, plan
    found = what(before_quiet(*between, *begun, Backfilled("run-3", "p3", SCOPE, ((0, 0, 6),))))
    assert ("named as gone by a backfill, and it is there" in found) is told


def test_a_backfill_that_found_nothing_to_read_is_judged_too() -> None:
    """It left what is whole in the log; or what is gone, and was read by nobody."""
    begun = Started("run-3", "backfill", 100), LOOKED
    left = what(before_quiet(produced(6, NEW), *begun, Backfilled("run-3", "", SCOPE)))
    assert "whole in the log, of an interval whose backfill ended well" in left
    gone = what(before_quiet(produced(6, NEW), Retained(T, 0, 7), *begun, Backfilled("run-3", "", SCOPE)))
    assert "gone, read by nobody, and not named by a backfill of its interval" in gone


@pytest.mark.parametrize(("lost", "told"), [((), True), (((0, 6, 7),), False), (((0, 7, 8),), True)])
def test_what_retention_takes_while_a_backfill_goes_on_is_published_or_named(
    lost: tuple[tuple[int, int, int], ...], told: bool
) -> None:
    plan = planned("p3", run="run-3", kind="backfill", scope=SCOPE)
    begun = Started("run-3", "backfill", 100), LOOKED, plan
    found = what(before_quiet(produced(6, NEW), *begun, Retained(T, 0, 7), Backfilled("run-3", "p3", SCOPE, lost)))
    assert ("whole when its backfill was planned, gone since, and neither published nor named" in found) is told


def test_a_catalog_that_is_set_back_takes_nothing_of_what_the_heads_that_stay_have_read() -> None:
    """The newest of them says so: its row is missing."""
    says = Verified("run-9", ((0, 0, 6),), ((0, 0, 6),), (("w1", "outside"), ("w2", "held")), deleted=("w1",))
    missing = "run-9 says 'outside', and it is missing in the table"
    assert missing in what(before_quiet(says))
    assert missing in what(before_quiet(*a_decision("restore"), CatalogSetBack(2), says))


@pytest.mark.parametrize("early", [False, True])
def test_retention_that_passed_a_position_before_a_cut_tells_nothing_of_that(early: bool) -> None:
    """What came anew at 4 was never read: somebody goes on at 5, and retention took it, ahead of the position."""
    (five,) = cut("w5", [b"\x06\x00"], meta=metadata(NOW))
    events = [*sound()[:-1]]
    if early:
        events.insert(1, Retained(T, 0, 0))
    row = replace(ROW, run="run-4", plan_id="p4", sequence=4, id="w5", samples=b"\x06\x00")
    row = replace(row, chunks=((T, 0, 5, 2, proof_of(five)),))
    made = replace(head(3, 5), run="run-2", kind="rewind", generation=2)
    anew: list[Event] = [Truncated(T, 0, 4), produced(4, NEW), produced(5, five), Retained(T, 0, 5)]
    looks: list[Event] = [Rewound("run-2", "offsets", True), Started("run-2", "rewind", 100), Looked("run-2", "topic")]
    rewind = [*looks, made, projected(5, 3, 2, "run-2")]
    last = before_quiet()[-1]
    found = analyse(History([*events, *anew, *rewind, *ingest(4, 5, 6, row, generation=2), last]))
    assert any(a.kind is Kind.LOST and a.what.startswith("never seen") for a in found)


@pytest.mark.parametrize("cut_again", [False, True])
@pytest.mark.parametrize(("taken", "excused"), [(6, True), (5, False)])
def test_retention_that_passes_a_position_after_a_cut_tells_whatever_is_cut_off_then(
    taken: int, excused: bool, cut_again: bool
) -> None:
    """Nobody can ask any more where the log was cut off below 6, where the head stands."""
    anew: list[Event] = [
        Truncated(T, 0, 4),
        produced(4, NEW),
        produced(5, NEW),
        produced(6, NEW),
        Retained(T, 0, taken),
    ]
    again: list[Event] = [Truncated(T, 0, 6), produced(6, NEW)] if cut_again else []
    found = analyse(History(before_quiet(*anew, *again)))
    unseen = {c[2] for a in found if a.what.startswith("never seen") for c in a.coordinates}
    assert (4 not in unseen) is excused
