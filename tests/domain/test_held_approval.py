"""What was previewed of a decision about held waveforms is what is done, under the names of asker and approver."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.domain.held_world import ONE, OTHER, TWO, World, parked
from tests.fakes.batch import Carrying, FakeEdges
from wavestitch.batch import held_decision
from wavestitch.batch.carry import Carried, How, carry_through
from wavestitch.batch.held_approval import begin_approved, preview_held
from wavestitch.batch.held_waveforms import Selection
from wavestitch.batch.preview_answer import reject_preview
from wavestitch.batch.results import Finished, Published
from wavestitch.batch.rewind import apply_rewind, plan_rewind
from wavestitch.batch.rewind_target import Target
from wavestitch.contracts.batch_stages import HELD
from wavestitch.contracts.errors import BadInput, Fenced, Refused, Terminal
from wavestitch.contracts.held_choice import HeldAction
from wavestitch.contracts.quantities import Offset, Partition
from wavestitch.contracts.reasons import Reason


@pytest.fixture
def world() -> World:
    made = World()
    parked(made)
    return made


def edges(world: World) -> FakeEdges:
    world.now_ms += 1
    return FakeEdges(world.bench, world.stream, world.now_ms, Carrying())


def preview(world: World, action: HeldAction = HeldAction.REDRIVE) -> str:
    wanted = Selection(reasons=frozenset({Reason.PARKED}))
    return preview_held(edges(world), action, wanted, who="ann", why="looked at it").plan.plan_id


def approve(world: World, plan_id: str, by: str = "bob") -> Published:
    plan = begin_approved(edges(world), plan_id, by=by)
    done = carry_through(HELD, edges(world), Carried(plan.plan_id), How()).of(Published)
    world.check()
    assert isinstance(done, Published)
    return done


def test_a_preview_changes_nothing_and_what_is_approved_is_published_from_a_log_that_has_it_no_more(
    world: World,
) -> None:
    before = world.bench.tables.snapshots[-1]
    plan_id = preview(world)
    assert world.bench.tables.snapshots[-1] == before
    assert plan_id not in world.bench.plans, "no batch is under way"
    world.bench.log.retain_from(Partition(0), Offset(2))
    approve(world, plan_id)
    assert world.published() == {"w": ONE + TWO}
    assert world.bench.tables.snapshots[-1].note == "redrive by ann, approved by bob: looked at it"


def test_whoever_approves_of_their_own_is_named_once_and_nobody_as_somebody(world: World) -> None:
    plan = begin_approved(edges(world), preview(world), by="ann")
    assert plan.choice is not None
    assert plan.choice.who == "ann"
    plan = begin_approved(edges(world), preview(world), by="")
    assert plan.choice is not None
    assert plan.choice.who == "ann, approved by somebody"


def test_what_came_to_be_held_since_the_preview_is_not_in_it_and_an_ingest_in_between_does_not_matter(
    world: World,
) -> None:
    plan_id = preview(world)
    for seq, value in enumerate((ONE, TWO)):
        world.send("later", seq, value)
    world.ingest(park=True)
    approve(world, plan_id)
    assert world.published() == {"w": ONE + TWO}
    assert world.held() == {"later": {"parked"}}


def test_begun_twice_it_is_one_batch_and_published_once(world: World) -> None:
    plan_id = preview(world)
    first, second = (begin_approved(edges(world), plan_id, by="bob") for _ in range(2))
    assert first == second
    approve(world, plan_id)
    assert world.published() == {"w": ONE + TWO}


def test_a_rewind_since_voids_it_and_nothing_changes(world: World) -> None:
    plan_id = preview(world, HeldAction.DISCARD)
    log, tables = world.bench.log, world.bench.tables
    back = plan_rewind(world.stream, Target(word="earliest"), log=log, tables=tables, who="eve", why="to see")
    apply_rewind(world.stream, back, accept_skip=False, log=log, tables=tables)
    with pytest.raises(Fenced, match="somebody rewound since this decision was previewed"):
        begin_approved(edges(world), plan_id, by="bob")
    assert world.held() == {"w": {"parked"}}


def test_what_an_earlier_version_kept_without_saying_what_was_held_is_shown_again(world: World) -> None:
    wanted = Selection(reasons=frozenset({Reason.PARKED}))
    found = preview_held(edges(world), HeldAction.REDRIVE, wanted, who="ann", why="looked at it").plan
    assert found.held_choice is not None
    old = replace(found, choice=replace(found.held_choice, among=())).sealed()
    edges(world).keep_decision(old)
    with pytest.raises(Refused, match=r"kept by another version of wavestitch.* have it shown again"):
        begin_approved(edges(world), old.plan_id, by="bob")
    assert world.held() == {"w": {"parked"}}
    approve(world, preview(world))


def test_an_id_that_nobody_previewed_begins_nothing(world: World) -> None:
    with pytest.raises(BadInput):
        begin_approved(edges(world), "0" * 32, by="bob")


@pytest.mark.parametrize("action", [HeldAction.REDRIVE, HeldAction.ACCEPT, HeldAction.DISCARD, HeldAction.RESTORE])
def test_what_came_to_one_of_them_since_the_preview_voids_it_and_a_new_preview_shows_it(
    world: World, action: HeldAction
) -> None:
    if action is HeldAction.RESTORE:
        world.decide(HeldAction.DISCARD, "w")
    shown = preview_held(edges(world), action, Selection(ids=("w",)), who="ann", why="looked at it")
    world.send("w", 1, OTHER, count=3)
    world.ingest()
    before, was = world.bench.tables.snapshots[-1], world.held()
    with pytest.raises(Refused, match=r"1 of these 1 waveforms changed since this .* was shown, first of w.*show ID"):
        begin_approved(edges(world), shown.plan.plan_id, by="bob")
    assert (world.bench.tables.snapshots[-1], world.held(), world.published()) == (before, was, {})
    assert not [p for p in world.bench.plans.values() if p.choice is not None and p.choice.who == "ann"]
    discards = HeldAction.RESTORE if action is HeldAction.RESTORE else HeldAction.DISCARD
    again = preview_held(edges(world), discards, Selection(ids=("w",)), who="ann", why="looked again")
    assert again.chunks == shown.chunks + 1
    approve(world, again.plan.plan_id)


def test_what_comes_after_it_was_approved_of_and_before_it_is_committed_is_not_decided_upon(world: World) -> None:
    plan = begin_approved(edges(world), preview(world), by="bob")
    world.send("w", 1, OTHER)
    world.ingest()
    with pytest.raises(Terminal, match="changed since this redrive was planned; nothing was published, plan again"):
        carry_through(HELD, edges(world), Carried(plan.plan_id), How())
    world.check()
    assert (world.published(), world.held()) == ({}, {"w": {"parked"}})


def test_what_somebody_decided_since_the_preview_voids_it(world: World) -> None:
    plan_id = preview(world)
    world.decide(HeldAction.DISCARD, "w")
    with pytest.raises(Refused, match="changed since this redrive was shown"):
        begin_approved(edges(world), plan_id, by="bob")
    assert world.held() == {"w": {"discarded"}}


def test_a_definition_that_changed_since_the_preview_voids_it_and_is_named(world: World) -> None:
    plan_id, old = preview(world), world.stream
    limits = old.limits.model_copy(update={"max_chunks": 7})
    world.stream = old.model_copy(update={"proof": "sha256", "limits": limits})
    with pytest.raises(Refused, match=r"says otherwise of limits, proof than when .* Nothing was changed; preview it"):
        begin_approved(edges(world), plan_id, by="bob")
    assert (world.published(), world.held()) == ({}, {"w": {"parked"}})
    world.stream = old
    approve(world, plan_id)
    assert world.published() == {"w": ONE + TWO}


def test_what_was_rejected_or_waited_too_long_is_decided_by_nobody(world: World) -> None:
    rejected, old = preview(world), preview(world, HeldAction.DISCARD)
    reject_preview(edges(world), rejected, by="eve")
    with pytest.raises(Refused, match="was rejected by eve, which stands"):
        begin_approved(edges(world), rejected, by="bob")
    world.now_ms += 7 * 86_400_000 + 1
    with pytest.raises(Refused, match="older than 604800 s"):
        begin_approved(edges(world), old, by="bob")
    assert (world.published(), world.held()) == ({}, {"w": {"parked"}})
    assert all(plan.choice is None for plan in world.bench.plans.values())


def test_what_was_approved_of_and_committed_stays_done_whatever_is_said_of_it_then(world: World) -> None:
    plan_id = preview(world)
    approve(world, plan_id)
    reject_preview(edges(world), plan_id, by="eve")
    plan = begin_approved(edges(world), plan_id, by="bob")
    assert isinstance(carry_through(HELD, edges(world), Carried(plan.plan_id), How()).of(Published), Finished)


def test_done_again_after_it_was_committed_it_is_finished_whatever_changed_since(world: World) -> None:
    plan_id = preview(world)
    approve(world, plan_id)
    world.send("w", 1, OTHER)
    world.ingest()
    world.stream = world.stream.model_copy(update={"proof": "sha256"})
    plan = begin_approved(edges(world), plan_id, by="bob")
    assert isinstance(carry_through(HELD, edges(world), Carried(plan.plan_id), How()).of(Published), Finished)
    assert world.published() == {"w": ONE + TWO}


def test_a_preview_takes_as_many_as_one_decision_may_unless_all_are_asked_for(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    for seq, value in enumerate((ONE, TWO)):
        world.send("x", seq, value)
    world.ingest(park=True)
    monkeypatch.setattr(held_decision, "MOST", 1)
    wanted = Selection(reasons=frozenset({Reason.PARKED}))
    some, every = (
        preview_held(edges(world), HeldAction.REDRIVE, wanted, who="ann", why="looked at it", everything=all_of_them)
        for all_of_them in (False, True)
    )
    assert (some.waveforms, some.more) == (1, True)
    assert (every.waveforms, every.more) == (2, False)
    approve(world, every.plan.plan_id)
    assert set(world.published()) == {"w", "x"}
