"""What the checker owes of a backfill whose interval retention has taken: that it is named, where anybody can know."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.histories.anomaly import Kind
from tests.histories.by_hand import NEW, NOW, WAVE, T, before_quiet, head, held, planned, produced
from tests.histories.checker import analyse
from tests.histories.events import Event, Looked, Planned, Read, Retained, Started, TopicMade, Truncated
from tests.histories.history import History
from tests.histories.interval_events import Backfilled
from tests.histories.table_events import CatalogSetBack, HistoryLost

SCOPE = (NOW * 10**6, (NOW + 1) * 10**6)
LATER = (SCOPE[1], SCOPE[1] + 10**9)
LOOKED = Looked("run-3", "topic")
TAKEN = Retained(T, 0, 7)
PLAN = planned("p3", run="run-3", kind="backfill", scope=SCOPE)
READ = (
    planned("p2", run="run-2", kind="manual", ranges=((0, 6, 7),)),
    Read("run-2", "p2", T, 0, 6, 7, (6,)),
    replace(head(3, 6), run="run-2", kind="manual", plan_id="p2"),
)

KEPT = (
    planned("p2", run="run-2", ranges=((0, 6, 7),)),
    Read("run-2", "p2", T, 0, 6, 7, (6,)),
    replace(head(3, 7), run="run-2", kind="ingest", plan_id="p2"),
)


def silent(
    *between: Event,
    before: tuple[Event, ...] = (TAKEN,),
    plan: Event = PLAN,
    looked: Looked = LOOKED,
    lost: tuple[tuple[int, int, int], ...] = (),
    scope: tuple[int, int] = SCOPE,
) -> set[int]:
    """Of a waveform that lay at 6, and whatever is owed beside it."""
    told: list[Event] = [produced(6, NEW), *before, Started("run-3", "backfill", 100), looked, *between, plan]
    found = analyse(History(before_quiet(*told, Backfilled("run-3", "p3", scope, lost))))
    return {o for a in found if a.kind is Kind.UNEXPLAINED_GAP and "gone" in a.what for _, _, o in a.coordinates}


def test_what_nobody_had_read_before_it_went_is_named() -> None:
    assert silent() == {6}
    assert silent(lost=((0, 0, 7),)) == silent(lost=((0, 6, 7),)) == set()
    assert silent(PLAN, plan=TopicMade("topic-2"), lost=((0, 6, 7),)) == set(), "its topic is gone by now"
    assert silent(lost=((0, 0, 6),)) == silent(lost=((1, 0, 7),)) == {6}


@pytest.mark.parametrize(
    ("said", "owed"),
    [
        (silent(before=()), set()),
        (silent(before=(Retained(T, 0, 6),)), set()),
        (silent(TAKEN, before=()), set()),
        (silent(before=(*KEPT, TAKEN)), set()),
        (silent(before=(*READ, TAKEN)), {6}),
        (silent(before=(*READ[:2], TAKEN)), {6}),
        (silent(plan=replace(PLAN, scope=LATER), scope=LATER), set()),
        (silent(looked=Looked("run-3", "topic", (0,))), set()),
        (silent(plan=replace(PLAN, after=("p1",))), set()),
    ],
    ids=[
        *("it is there", "it is the first that is", "it went after the look", "an ingest had read it"),
        *("others read it and left it", "and were not committed"),
        *("of another interval", "of a partition that was not shown", "of a later batch"),
    ],
)
def test_what_else_is_there_or_known_is_owed_by_no_backfill(said: set[int], owed: set[int]) -> None:
    assert said == owed


ANEW = produced(4, NEW), produced(5, WAVE[0]), produced(6, NEW)


@pytest.mark.parametrize(("taken", "owed"), [(6, set()), (5, {4})])
def test_what_retention_passed_with_a_position_is_owed_by_nobody_wherever_that_is_by_now(
    taken: int, owed: set[int]
) -> None:
    """Written anew before it: then nobody could ask any more."""
    forward = replace(head(4, 7), run="run-4", kind="rewind", generation=2)
    plan = replace(PLAN, positions={0: 7}, generation=2, base_sequence=4)
    then = *READ, Truncated(T, 0, 4), *ANEW, Retained(T, 0, taken), forward, Retained(T, 0, 6)
    assert silent(before=then, plan=plan) & {4} == owed


@pytest.mark.parametrize(("back", "owed"), [(CatalogSetBack(3), set()), (CatalogSetBack(4), {4})])
def test_nor_is_what_it_had_passed_where_a_backup_has_put_the_position_to(back: CatalogSetBack, owed: set[int]) -> None:
    forward = replace(head(4, 7), run="run-4", kind="rewind", generation=2)
    again = replace(head(back.sequence + 1, 8), run="run-5", kind="rewind", generation=3)
    plan = replace(PLAN, positions={0: 8}, generation=3, base_sequence=again.sequence)
    then = *READ, Truncated(T, 0, 4), *ANEW, forward, Retained(T, 0, 6), back, again
    assert silent(before=then, plan=plan) & {4} == owed


@pytest.mark.parametrize(
    ("cut", "taken", "owed"),
    [
        (Truncated(T, 0, 4), 6, set()),
        (Truncated(T, 0, 4), 5, {4}),
        (Truncated(T, 0, 4, True), 5, {4}),
        (Truncated(T, 0, 6, True), 7, set()),
        (Truncated(T, 0, 6), 7, {6}),
    ],
    ids=[
        "passed with the position",
        "by an election",
        "by a disk put back",
        "so, ahead of the position",
        "by an election there",
    ],
)
def test_what_was_written_anew_is_owed_where_the_position_or_an_epoch_tells(
    cut: Truncated, taken: int, owed: set[int]
) -> None:
    anew = [one for one in ANEW if one.offset >= cut.end]
    assert silent(before=(*READ, cut, *anew, Retained(T, 0, taken))) == owed


ANEW_AT_6 = replace(produced(6, NEW), epoch=2)
BY_THEN = (
    replace(planned("p4", run="run-4", kind="manual", ranges=((0, 6, 7),)), epochs={0: 1}),
    Read("run-4", "p4", T, 0, 6, 7, (6,)),
    replace(head(4, 6), run="run-4", kind="manual", plan_id="p4"),
)
LEFT = (replace(READ[0], epochs={0: 1}), *READ[1:])
CARRIED_ON = replace(READ[2], run="run-4")
TOLD = replace(PLAN, base_sequence=3, epoch_ends=((0, 1, 6),))
CUT_OFF = Truncated(T, 0, 6)


@pytest.mark.parametrize(
    ("before", "between", "plan", "owed"),
    [
        ((*LEFT, CUT_OFF), (), TOLD, {6}),
        ((*LEFT, CUT_OFF, ANEW_AT_6, *BY_THEN), (), replace(TOLD, base_sequence=4), {6}),
        ((CUT_OFF, ANEW_AT_6, *LEFT, CUT_OFF), (), TOLD, set()),
        ((CUT_OFF, replace(ANEW_AT_6, epoch=1), *LEFT, CUT_OFF), (), TOLD, {6}),
        ((*LEFT, CUT_OFF, replace(ANEW_AT_6, epoch=1), *BY_THEN), (), replace(TOLD, base_sequence=4), {6}),
        ((*LEFT, CUT_OFF), (), replace(TOLD, epoch_ends=((0, 1, 7),)), set()),
        ((*LEFT, CUT_OFF), (), replace(TOLD, epoch_ends=((0, 2, 6),)), set()),
        ((*LEFT, CUT_OFF), (), replace(TOLD, scope=LATER), set()),
        ((*LEFT, replace(CUT_OFF, backup=True)), (), TOLD, set()),
        (LEFT, (CUT_OFF,), TOLD, set()),
        ((*LEFT[:2], CUT_OFF), (), TOLD, set()),
        ((*LEFT[:2], CUT_OFF, ANEW_AT_6, replace(READ[1], run="run-4"), CARRIED_ON), (), TOLD, set()),
        ((*LEFT[:2], CUT_OFF, ANEW_AT_6, replace(READ[1], run="run-4"), LEFT[2]), (), TOLD, {6}),
        ((*KEPT, CUT_OFF), (), TOLD, set()),
        ((*LEFT, HistoryLost((3,)), CUT_OFF), (), TOLD, set()),
        ((*LEFT, HistoryLost((2,)), CUT_OFF), (), TOLD, {6}),
        ((*LEFT, CatalogSetBack(2), CUT_OFF), (), replace(TOLD, base_sequence=2), set()),
    ],
    ids=[
        *(
            "left by a batch",
            "read anew by who had planned before",
            "left by who had planned before",
            "and by who had planned after it",
            "read anew in that very epoch",
            "its epoch ends later",
            "another epoch ended there",
            "of another interval",
        ),
        *("a disk put back", "cut off after the look", "read by a batch that died"),
        *("read anew by who carried it on", "and committed by who had read it before", "read by an ingest"),
        *("its row is lost", "another row is lost", "its head is gone"),
    ],
)
def test_what_others_left_and_was_cut_off_is_named(
    before: tuple[Event, ...], between: tuple[Event, ...], plan: Planned, owed: set[int]
) -> None:
    scope = plan.scope or SCOPE
    assert silent(*between, before=before, plan=plan, scope=scope) == owed
    assert silent(*between, before=before, plan=plan, scope=scope, lost=((0, 6, 7),)) == set()


ANEW_HEAD = replace(head(4, 7), run="run-4", kind="rebuilt", generation=2, note="rebuilt; accepted as missing: 1 row")
ON_IT = replace(PLAN, generation=2, base_sequence=4, positions={0: 7})
AGAIN = (
    planned("p5", run="run-5", ranges=((0, 6, 7),)),
    Read("run-5", "p5", T, 0, 6, 7, (6,)),
    replace(head(5, 7), run="run-5", kind="ingest", generation=2, plan_id="p5"),
)


@pytest.mark.parametrize(
    ("then", "owed"),
    [
        ((ANEW_HEAD,), {6}),
        ((replace(ANEW_HEAD, note="rebuilt"),), set()),
        ((replace(ANEW_HEAD, kind="first"),), {6}),
        ((held(6, NEW, "d9"), replace(ANEW_HEAD, held=("d1", "d9"))), set()),
        ((ANEW_HEAD, HistoryLost((4,))), set()),
        ((ANEW_HEAD, HistoryLost((3,))), {6}),
        ((ANEW_HEAD, *AGAIN), set()),
        ((ANEW_HEAD, CatalogSetBack(3)), set()),
        ((ANEW_HEAD, CatalogSetBack(2)), {6}),
        ((CatalogSetBack(2),), {6}),
        ((CatalogSetBack(3),), set()),
    ],
    ids=[
        *("accepted as missing", "nothing is missing", "under a first head", "it is held", "nobody knows of that"),
        *(
            "of that they do",
            "read once more",
            "that is taken back",
            "so is who had read it",
            "who had read it is gone",
        ),
        "who had read it is not",
    ],
)
def test_what_is_accepted_as_missing_or_was_read_by_no_head_that_is_left_counts_as_read_by_nobody(
    then: tuple[Event, ...], owed: set[int]
) -> None:
    assert silent(before=(*KEPT, *then, TAKEN), plan=ON_IT) == owed


@pytest.mark.parametrize(
    ("then", "skipped", "owed"),
    [
        ((TAKEN,), (), set()),
        ((TAKEN,), ((0, 6, 7),), {6}),
        ((TAKEN,), ((0, 5, 6),), set()),
        ((), ((0, 6, 7),), set()),
    ],
    ids=["nobody knows of it", "it was skipped by name", "another one was", "it is there"],
)
def test_what_was_written_anew_and_skipped_by_name_is_owed_by_name(
    then: tuple[Event, ...], skipped: tuple[tuple[int, int, int], ...], owed: set[int]
) -> None:
    forward = replace(head(4, 7), run="run-4", kind="rewind", generation=2, skipped=skipped)
    assert silent(before=(*KEPT, CUT_OFF, produced(6, NEW), forward, *then), plan=ON_IT) == owed
