"""What is shown is what is done: the stages of a preview are those that run, and none has an effect that it hides."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from tests.builders.ranges import span
from tests.domain.accounted_world import AFTER_PLANNING, INGEST, STREAM, World
from tests.fakes.account import Account
from tests.fakes.faults import Fault
from tests.histories import promoting, verifying
from tests.histories.random_histories import run_histories
from tests.histories.running import Running
from wavestitch.batch import carry
from wavestitch.batch.held_decision import carry_out, plan_held
from wavestitch.batch.held_waveforms import Selection
from wavestitch.batch.plan import NothingToDo, PlanRequest
from wavestitch.batch.results import Finished, Planned
from wavestitch.batch.run import RunOptions, Silent, run_batch
from wavestitch.batch.steps import step_plan
from wavestitch.batch.undo import committed_stages
from wavestitch.console import show_stages
from wavestitch.contracts import batch_stages as stages
from wavestitch.contracts.batch_stages import OfPlan
from wavestitch.contracts.errors import BadInput, GateClosed, Refused
from wavestitch.contracts.held_choice import HeldAction
from wavestitch.contracts.operations import stages_page
from wavestitch.contracts.plan import PlanKind, Scope
from wavestitch.contracts.position import HeadKind
from wavestitch.contracts.quantities import Offset, Partition
from wavestitch.contracts.stages import DecideOn, Effect, Stage, Undo, Undoing, explain, opposites

ONE, TWO, OTHER = b"\x01\x00", b"\x02\x00", b"\x07\x00"


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> World:
    return World(monkeypatch)


class TestABatch:
    def test_the_first_one_makes_a_head_and_says_so_before(self, world: World) -> None:
        world.send("w", ONE, TWO).ingest()
        assert world.account.names == ["commit head", "show head", "keep plan", *AFTER_PLANNING]

    def test_once_the_first_head_is_in_the_history_there_is_nothing_to_do_first(self, world: World) -> None:
        world.send("w", ONE, TWO).ingest()
        world.send("v", ONE, TWO).ingest()
        assert world.account.names == ["record history", "keep plan", *AFTER_PLANNING]
        world.send("u", ONE, TWO).ingest()
        assert world.account.names == ["keep plan", *AFTER_PLANNING]

    def test_what_is_shown_beforehand_is_to_the_word_what_the_run_says(self, world: World) -> None:
        world.send("w", ONE, TWO).ingest()
        told = {t.stage: t.does for t in world.send("v", ONE, TWO).ingest().planned.stages}
        assert told["read"].startswith("reads partition 0 [2, 4) in 1 units")
        assert told["record history"] == "writes the history rows of heads 1"

    def test_a_reset_is_taken_over_and_an_expired_group_shown_again_by_named_stages(self, world: World) -> None:
        world.send("w", ONE, TWO).ingest()
        world.bench.log.reset_group(Partition(0), Offset(0))
        world.ingest()
        assert world.account.names[:4] == ["record history", "commit head", "show head", "keep plan"]
        world.bench.log.expire_group(Partition(0))
        world.send("v", ONE, TWO).ingest()
        assert world.account.names[:3] == ["record history", "show head", "keep plan"]

    def test_planning_that_finds_nothing_to_read_says_what_it_does_nevertheless(self, world: World) -> None:
        world.send("w", ONE, TWO).ingest()
        world.bench.log.expire_group(Partition(0))
        world.forget()
        shown = world.shown()
        found = step_plan(world.edges(), INGEST)
        assert isinstance(found, NothingToDo)
        assert [told.stage for told in found.stages] == ["record history", "show head"] == world.account.names
        assert found == shown

    def test_a_row_that_a_crash_prevented_is_written_by_a_stage_that_is_named(self, world: World) -> None:
        world.send("w", ONE, TWO).ingest()
        world.bench.tables.history.clear()
        world.send("v", ONE, TWO).ingest()
        assert world.account.names[0] == "record history"
        assert len(world.bench.tables.history) == 3

    @pytest.mark.parametrize(
        "request_",
        [
            PlanRequest(PlanKind.BACKFILL, scope=Scope(0, 1 << 62)),
            PlanRequest(PlanKind.MANUAL, ranges=(span(0, 0, 2),)),
        ],
    )
    def test_one_that_leaves_the_positions_alone_has_the_same_stages(self, world: World, request_: PlanRequest) -> None:
        world.send("w", ONE, TWO).ingest()
        was = world.positions()
        world.ingest(request_)
        assert world.account.names == ["record history", "keep plan", *AFTER_PLANNING]
        assert world.positions() == was

    def test_one_whose_gate_closes_stops_at_its_stage_and_parked_it_goes_through(self, world: World) -> None:
        world.send("w", ONE, TWO)
        with pytest.raises(GateClosed):
            world.ingest(spoiled={"w"})
        assert world.account.names[-1] == "validate"
        assert world.account.unnamed == []
        (plan_id,) = world.bench.plans
        world.forget()
        options = RunOptions(plan_id=plan_id, gate="park", why="later")
        run_batch(world.edges(spoiled={"w"}), options, watcher=Silent())
        assert world.account.names == AFTER_PLANNING
        assert world.account.unnamed == []

    def test_a_finished_one_only_looks_after_its_offsets(self, world: World) -> None:
        world.send("w", ONE, TWO).ingest()
        world.forget()
        (plan_id,) = world.bench.plans
        done = run_batch(world.edges(), RunOptions(plan_id=plan_id), watcher=Silent())
        assert not isinstance(done, NothingToDo)
        assert isinstance(done.published, Finished)
        assert world.account.names == ["commit offsets"]
        assert world.account.unnamed == []


class TestADecision:
    def test_each_does_what_its_preview_shows(self, world: World) -> None:
        world.send("w", ONE, TWO, OTHER, first=0, count=2)  # the third is beyond its count: a conflict
        world.send("v", ONE)
        world.ingest(failing=())
        assert world.held() >= {"open"}
        world.decide(HeldAction.DISCARD, "v")
        world.decide(HeldAction.RESTORE, "v")
        world.decide(HeldAction.REDRIVE, "v")
        assert world.account.names == ["keep plan", "reassemble", "validate", "publish"]

    @pytest.mark.parametrize(("action", "pick"), [(HeldAction.ACCEPT, ""), (HeldAction.PICK, "first")])
    def test_accept_and_pick_publish_by_the_same_stages(self, world: World, action: HeldAction, pick: str) -> None:
        world.send("w", ONE, TWO)
        if action is HeldAction.PICK:
            world.send("w", OTHER, first=1)
        world.ingest(failing={"w"})
        world.decide(action, "w", pick)
        assert [row.waveform_id for _, row in world.bench.tables.rows] == ["w"]

    def test_one_that_is_carried_through_by_run_leaves_the_offsets_alone(self, world: World) -> None:
        world.send("v", ONE).ingest()
        plan = plan_held(world.edges(), HeldAction.DISCARD, Selection(ids=("v",)), who="o", why="y").plan
        carry_out(world.edges(), plan)
        world.forget()
        done = run_batch(world.edges(), RunOptions(plan_id=plan.plan_id), watcher=Silent())
        assert world.account.names == ["commit offsets"]  # finished: the group follows the head
        assert not isinstance(done, NothingToDo)


class TestARewind:
    @pytest.mark.parametrize("to", ["earliest", "latest", "head", "group", "start-over"])
    def test_it_does_what_its_preview_shows(self, world: World, to: str) -> None:
        world.send("w", ONE, TWO).ingest()
        world.bench.log.reset_group(Partition(0), Offset(1))  # so that to stay where it stands is an answer, too
        world.rewind(to)
        assert world.account.names == ["commit head", "show head"]

    def test_a_new_topic_and_a_rebuilt_head_too(self, world: World) -> None:
        world.send("w", ONE, TWO).ingest()
        world.bench.log.recreate(2)
        world.rewind("new-topic")
        world.bench.tables.expire_head()
        world.rewind("rebuilt")


class TestUndo:
    def test_a_batch_is_undone_by_a_rewind_to_where_it_began(self, world: World) -> None:
        world.send("w", ONE, TWO).ingest()
        was = world.positions()
        world.send("v", ONE, TWO).ingest()
        assert world.positions() != was
        world.undo()
        assert world.positions() == was
        world.ingest()
        assert sorted(row.waveform_id for _, row in world.bench.tables.rows) == ["v", "w"], "not published twice"

    def test_one_that_is_named_is_undone_after_others(self, world: World) -> None:
        world.send("w", ONE, TWO).ingest()
        (plan_id,) = world.bench.plans
        world.send("v", ONE, TWO).ingest()
        world.undo(plan_id)
        assert world.positions()[0] == 0

    def test_a_rewind_is_undone_by_a_rewind_back_and_so_is_that(self, world: World) -> None:
        world.send("w", ONE, TWO).ingest()
        was = world.positions()
        world.rewind(p0=1)
        world.undo()
        assert world.positions() == was
        world.undo()
        assert world.positions() == {**was, 0: 1}

    def test_a_discard_is_undone_by_a_restore_and_a_restore_by_a_discard(self, world: World) -> None:
        world.send("v", ONE).ingest()
        world.decide(HeldAction.DISCARD, "v")
        assert self.standing(world) == {"discarded"}
        world.undo()
        assert self.standing(world) == {"open"}
        world.undo()
        assert self.standing(world) == {"discarded"}

    def test_what_publishes_only_is_said_not_to_be_undone(self, world: World) -> None:
        world.send("w", ONE, TWO).ingest(failing={"w"})
        world.decide(HeldAction.ACCEPT, "w")
        with pytest.raises(
            Refused, match=r"nothing to undo.*publish cannot be undone: positions stay, and what was published stays"
        ):
            world.undo()

    def test_maintenance_is_said_not_to_be_undone(self, world: World) -> None:
        world.send("w", ONE, TWO).ingest()
        head = world.bench.tables.snapshots[-1]
        world.bench.tables.commit(head, head.next(kind=HeadKind.MAINTENANCE, note="junk went"), [])
        with pytest.raises(Refused, match=r"maintenance's \(junk went\), which cannot be undone"):
            world.undo()

    def test_what_was_not_committed_is_given_up_not_undone(self, world: World) -> None:
        world.send("w", ONE, TWO)
        found = step_plan(world.edges(), INGEST)
        assert isinstance(found, Planned)
        with pytest.raises(BadInput, match="wavestitch abandon ecg"):
            world.undo(found.plan_id)

    def test_what_was_cleaned_away_is_said_so_with_the_way_to_do_it_by_hand(self, world: World) -> None:
        world.send("w", ONE, TWO).ingest()
        world.bench.plans.clear()
        with pytest.raises(BadInput, match=r"not known any more; `wavestitch rewind ecg --to previous`"):
            world.undo()

    def test_the_first_head_has_nothing_before_it(self, world: World) -> None:
        with pytest.raises(Refused, match="no head yet"):
            world.undo()

    @staticmethod
    def standing(world: World) -> set[str]:
        rows = world.bench.tables.held_rows()
        newest = max(row.held.sequence for row in rows)
        return {row.held.reason.value for row in rows if row.held.sequence == newest}


class Announce(OfPlan):
    name = "announce"
    does = "tells somebody"
    effects = frozenset({Effect.DOCS})
    undo = Undo(Undoing.OPPOSITE, "telling them that it was not so")

    def opposite(self) -> DecideOn:
        return DecideOn(HeldAction.DISCARD, (self.plan.plan_id,), self.plan.plan_id)


def test_a_stage_that_is_added_to_the_list_is_in_preview_run_documentation_and_undo(
    world: World, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    told: list[str] = []

    def announce(edges: Any, so_far: Any, how: Any) -> Any:
        told.append(so_far.plan_id)
        return so_far.of(Planned)

    monkeypatch.setattr(stages, "BATCH", (*stages.BATCH, Announce))
    monkeypatch.setitem(carry.ACTS, Announce, announce)
    world.send("w", ONE, TWO)
    shown = world.shown()
    assert shown.stages[-1].stage == "announce"
    show_stages(shown.stages)
    assert "tells somebody" in capsys.readouterr().out
    run_batch(world.edges(), RunOptions(), watcher=Silent())
    (plan_id,) = world.bench.plans
    assert told == [plan_id]
    assert "| announce | tells somebody | Data Docs | undone by: telling them" in stages_page()
    assert opposites(committed_stages(world.edges()))[0] == DecideOn(HeldAction.DISCARD, (plan_id,), plan_id)


def test_a_stage_that_does_what_it_does_not_name_is_found_out(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    act = carry.ACTS[stages.Validate]

    def meddling(edges: Any, so_far: Any, how: Any) -> Any:
        edges.log.commit_group(STREAM.group, STREAM.topic, {}, "somebody")
        return act(edges, so_far, how)

    monkeypatch.setitem(carry.ACTS, stages.Validate, lambda *a: _during(world.account, stages.Validate, meddling, a))
    world.send("w", ONE, TWO)
    run_batch(world.edges(), RunOptions(), watcher=Silent())
    assert world.account.unnamed == ["GROUP in validate"]


def _during(account: Account, stage: type[Stage], act: Callable[..., Any], given: tuple[Any, ...]) -> Any:
    with account.during(stage):
        return act(*given)


def test_an_effect_beside_all_stages_is_found_out(world: World) -> None:
    world.bench.tables.append_batches([])
    assert world.account.unnamed == ["HISTORY in no stage"]


def test_every_effect_that_a_stage_names_it_has(world: World) -> None:
    """A list that named more than is done would hide just as much."""
    seen: dict[type[Stage], set[Effect]] = {}

    def add() -> None:
        for stage, effect in world.account.effects:
            assert stage is not None
            seen.setdefault(stage, set()).add(effect)

    world.send("w", ONE, TWO).send("v", ONE).ingest()
    add()
    world.bench.tables.history.clear()
    world.send("u", ONE, TWO).ingest()
    add()
    with pytest.raises(GateClosed):
        world.send("x", ONE, TWO).ingest(spoiled={"x"})
    add()
    named = {stage: set(stage.effects) for stage in (*stages.PLANNING, *stages.BATCH)}
    assert seen == named


def test_stages_of_a_plan_say_what_the_plan_says(world: World) -> None:
    world.send("w", ONE, TWO).ingest()
    (plan,) = world.bench.plans.values()
    told = {t.stage: t.does for t in explain(stages.stages_of(plan))}
    assert told["read"].startswith("reads partition 0 [0, 2) in 1 units")
    assert told["publish"].endswith("positions move to 0:2")
    undone = {t.stage: t.undo for t in explain(stages.stages_of(plan))}
    assert undone["publish"] == "undone by: a rewind to 0:0 (`wavestitch undo STREAM`)"
    still = {t.stage: t.does for t in explain(stages.stages_of(replace(plan, kind=PlanKind.BACKFILL)))}
    assert still["publish"].endswith("positions and what is held stay as they are")


def test_in_random_histories_with_kills_and_runs_side_by_side_no_stage_has_an_effect_that_it_hides(
    world: World,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # Who verifies, or compares before a promotion, carries out no stage: what is written for that lies in a folder of
    # its own, which goes.
    monkeypatch.setattr(verifying, "SHARE", 0.0)
    monkeypatch.setattr(promoting, "SHARE", 0.0)
    # A request that lands late has its stage behind it, which did name the effect.
    monkeypatch.setattr(Running, "may_fail", lambda _: [fault for fault in Fault if fault is not Fault.LATE])
    played = run_histories(first_seed=200, count=20, deadline_seconds=300)
    assert played.anomalies == {}
    assert played.histories == 20, "too slow: not all histories were played"
    assert world.account.unnamed == []
    for stage in (*stages.PLANNING, *stages.BATCH):
        assert world.account.of(stage) == stage.effects, f"{stage.name}: what it names, and all of it"
