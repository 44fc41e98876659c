"""A promotion beside what operators have decided, or have to decide, about what is held of the same waveforms."""

from __future__ import annotations

import pytest

from tests.builders.ranges import span
from tests.builders.streams import make_stream
from tests.domain.held_world import ONE, OTHER, TWO, T, World, conflicting, parked
from tests.domain.test_promote import edges, ids, mixed, preview, promote, redefined, undo
from tests.domain.test_verify_range import alter, found, verify
from tests.domain.test_verify_skipped import rewound, sent
from tests.fakes.batch import Carrying, run_batch
from wavestitch.batch.held_approval import begin_approved
from wavestitch.batch.plan import PlanRequest
from wavestitch.batch.promote import carry_promotion
from wavestitch.contracts.errors import Refused
from wavestitch.contracts.held_choice import HeldAction
from wavestitch.contracts.plan import PlanKind
from wavestitch.contracts.quantities import Offset, Partition
from wavestitch.contracts.stream import Limits
from wavestitch.contracts.verification import Agreement

FAILING = Carrying(failing={"w"})


@pytest.fixture
def world() -> World:
    return World()


def published(world: World) -> None:
    sent(world, "w")
    world.ingest()


def redriven(world: World) -> None:
    parked(world)
    world.decide(HeldAction.REDRIVE, "w")


def picked(world: World) -> None:
    conflicting(world)
    world.decide(HeldAction.PICK, "w", pick="first")


def contradicted(world: World) -> None:
    published(world)
    world.send("w", 1, OTHER)
    world.ingest()
    world.decide(HeldAction.DISCARD, "w")


@pytest.mark.parametrize("decided", [redriven, picked, contradicted])
def test_what_was_decided_about_before_is_taken_out_and_published_again(decided: object, world: World) -> None:
    assert callable(decided)
    decided(world)
    assert world.published() == {"w": ONE + TWO}
    before = world.held()
    promote(world, preview(world, how=FAILING), FAILING)
    assert (ids(world), world.held()["w"] - {"discarded"}) == ([], {"failed_expectation"})
    world.decide(HeldAction.REDRIVE, "w")
    assert (world.published(), world.held()) == ({"w": ONE + TWO}, before)


def test_another_truth_that_came_since_voids_it_when_it_is_begun_and_right_before_the_commit(world: World) -> None:
    published(world)
    shown = preview(world, how=FAILING)
    mine = edges(world, FAILING)
    begun = begin_approved(mine, shown.plan.plan_id, by="bob")
    world.send("w", 1, OTHER)
    world.ingest()
    changed = r"1 of these 1 waveforms are not what was shown any more, first w "
    with pytest.raises(Refused, match=changed):
        carry_promotion(mine, begun)
    with pytest.raises(Refused, match=changed):
        begin_approved(edges(world, FAILING), preview_of_before(world, shown.plan.plan_id), by="cal")
    assert (world.published(), world.held()) == ({"w": ONE + TWO}, {"w": {"conflict"}})


def preview_of_before(world: World, plan_id: str) -> str:
    assert edges(world).decision(plan_id).promotion is not None
    return plan_id


@pytest.mark.parametrize("how", [FAILING, Carrying()], ids=["taken out", "replaced"])
def test_a_copy_that_no_ingest_has_read_is_read_first_and_decided_about(how: Carrying, world: World) -> None:
    published(world)
    alter(world, "w", samples=OTHER + OTHER)
    world.send("w", 1, OTHER)
    with pytest.raises(Refused, match=r"nothing to promote; 'w': a copy in partition 0 offset 2 contradicts its row; "):
        preview(world, span(0, 0, 3), how=how)
    world.ingest()
    world.decide(HeldAction.DISCARD, "w")
    promote(world, preview(world, span(0, 0, 3), how=how), how)
    assert world.published() == ({} if how is FAILING else {"w": ONE + TWO})
    assert world.held() == {"w": {"discarded", "failed_expectation"} if how is FAILING else {"discarded"}}


def test_nor_is_a_row_taken_out_for_such_a_copy_that_came_in_the_place_of_another_record_since(world: World) -> None:
    """No ingest comes to that place again, so that it is not held and nobody decided about it."""
    published(world)
    world.bench.log.append(Partition(0), T, b"w", (), b"no chunk")
    world.ingest()
    shown = preview(world, how=FAILING)
    world.bench.log.truncate(Partition(0), Offset(2))
    world.send("w", 1, OTHER)
    with pytest.raises(Refused, match=r"or the range has a copy that contradicts them, which an ingest has to read"):
        promote(world, shown, FAILING)
    assert (world.published(), world.held()) == ({"w": ONE + TWO}, {})


def test_undo_publishes_nothing_that_was_discarded_since(world: World) -> None:
    published(world)
    promote(world, preview(world, how=FAILING), FAILING)
    plan_id = world.bench.tables.snapshots[-1].plan_id
    world.decide(HeldAction.DISCARD, "w")
    with pytest.raises(Refused, match=r"1 waveforms would be published again that somebody has discarded since, fir"):
        undo(world, plan_id)
    assert (ids(world), world.held()) == ([], {"w": {"discarded"}})
    world.decide(HeldAction.RESTORE, "w")
    undo(world, plan_id)
    assert (world.published(), world.held()) == ({"w": ONE + TWO}, {})


def test_where_somebody_has_a_column_nobody_is_asked_to_approve_of_what_cannot_be_taken_out(world: World) -> None:
    published(world)
    tables = world.bench.tables
    shown = preview(world, how=FAILING)
    tables.others_column = True
    with pytest.raises(Refused, match="column quality"):
        preview(world, how=FAILING)
    with pytest.raises(Refused, match="column quality"):
        begin_approved(edges(world, FAILING), shown.plan.plan_id, by="bob")
    tables.others_column = False
    promote(world, shown, FAILING)
    tables.others_column = True
    with pytest.raises(Refused, match="column quality"):
        undo(world)
    assert (ids(world), world.held()) == ([], {"w": {"failed_expectation"}})


def test_what_is_only_put_in_does_not_touch_it(world: World) -> None:
    mixed(world)
    redefined(world, limits=Limits())
    world.bench.tables.others_column = True
    promote(world, preview(world))
    assert ids(world) == ["long", "one"]


@pytest.mark.parametrize("word", [Agreement.OUTSIDE, Agreement.SKIPPED])
def test_what_a_promotion_read_and_was_not_about_is_neither_published_nor_held_by_it(
    word: Agreement, world: World
) -> None:
    if word is Agreement.OUTSIDE:
        world.stream = make_stream(start="latest")
        sent(world, "w", "b")
    else:
        sent(world, "first")
        world.ingest()
        sent(world, "w", "b")
        rewound(world, "latest")
    world.ingest()
    end = world.bench.log.partitions[0].end  # type: ignore[index]
    mine, all_of_it = span(0, end - 4, end - 2), span(0, end - 4, end)
    request = PlanRequest(PlanKind.MANUAL, ranges=(mine,))
    run_batch(world.bench, world.stream, request, clock_ms=world.now_ms + 1, how=Carrying())
    assert found(verify(world, all_of_it)) == {"w": Agreement.SAME, "b": word}
    promote(world, preview(world, all_of_it, how=FAILING), FAILING)
    assert found(verify(world, all_of_it)) == {"w": Agreement.HELD, "b": word}
