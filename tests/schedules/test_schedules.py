"""A fixed part of all schedules breaks no guarantee, and a product whose order is wrong is found out by one."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.domain.protocol_machine import ProtocolMachine
from tests.fakes.fake_tables import FakeTables
from tests.histories.seeded_bugs.of_heads import (
    a_conflict_with_oneself_is_believed_and_cleaned_up_after,
    a_rewind_keeps_the_generation,
    the_fence_lets_everybody_through,
)
from tests.histories.seeded_bugs.of_requests import (
    a_commit_without_an_answer_is_taken_to_have_failed_and_cleaned_up_after,
)
from tests.schedules.along import play_along
from tests.schedules.copied import copied
from tests.schedules.explore import Remembered, explore, explore_in_pieces
from tests.schedules.played import Played, already
from tests.schedules.played import play as play_in_pieces
from tests.schedules.scenarios import SCENARIOS
from tests.schedules.schedule import Numbers, Schedule
from tests.schedules.state import Bounds, State
from tests.schedules.watched import watched
from tests.wrong_products import (
    a_conflict_after_two_commits_without_an_answer_is_taken_for_ones_own,
    a_preview_holds_in_every_generation,
    a_preview_is_worked_out_anew,
    held_rows_count_without_a_commit,
    the_gate_is_looked_at_when_planning_only,
    the_group_is_written_before_the_head_is_committed,
)
from wavestitch.batch import publish
from wavestitch.batch.history import History

Patch = pytest.MonkeyPatch
ONE_SWITCH = Bounds(1, 0, 0)
ONE_FAULT = Bounds(0, 1, 0)
ONE_LATE = Bounds(0, 0, 1)


@pytest.mark.parametrize("name", SCENARIOS)
def test_what_is_played_in_a_copy_of_a_world_changes_nothing_in_it(name: str) -> None:
    scenario = SCENARIOS[name]
    begun = scenario.begin()

    def played(machine: ProtocolMachine) -> tuple[State, State, list[str]]:
        schedule = Schedule(scenario, machine, Bounds(0, 0, 0), Numbers(), touched)
        before = schedule.state
        while ways := schedule.state.ways:
            schedule.go(ways[0])
        assert schedule.state.world != before.world, "nothing was changed in the copy"
        schedule.check()
        return before, schedule.state, schedule.way

    with watched() as touched:
        assert played(copied(begun)) == played(copied(begun)) == played(scenario.begin())


@pytest.mark.parametrize("bounds", [Bounds(2, 0, 0), Bounds(1, 1, 0), Bounds(1, 0, 1)])
def test_what_is_remembered_of_steps_leads_where_the_product_leads(
    bounds: Bounds, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who remembers nothing plays every schedule from its beginning."""
    scenario = SCENARIOS["a rewind and an approval"]
    remembered = explore(scenario, bounds)
    monkeypatch.setattr(Remembered, "after", lambda *_: None)
    played = explore(scenario, bounds)
    assert (remembered.schedules, remembered.states) == (played.schedules, played.states)
    assert remembered.left == played.left, "other worlds were left"
    assert remembered.played < played.played


def test_schedules_that_are_gone_in_pieces_are_the_same(tmp_path: Path) -> None:
    scenario, bounds, kept = SCENARIOS["a rewind and an approval"], Bounds(1, 1, 0), tmp_path / "kept.pickle"
    pieces, found = 0, None
    while found is None:
        pieces, found = pieces + 1, explore_in_pieces(scenario, bounds, kept=kept, until=time.monotonic() + 0.05)
    whole = explore(scenario, bounds)
    assert pieces > 1
    assert not kept.exists()
    assert (found.schedules, found.states, found.left) == (whole.schedules, whole.states, whole.left)


def test_a_step_that_leads_elsewhere_than_before_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """What it follows from is not all known then: here the number of runs that there ever were."""
    asked: list[None] = []
    head = FakeTables.head

    def odd(self: FakeTables) -> Any:
        asked.append(None)
        return head(self) if len(asked) % 5 else (head(self), head(self))[0]

    monkeypatch.setattr(FakeTables, "head", odd)
    with pytest.raises(RuntimeError, match="and led to"):
        explore(SCENARIOS["a rewind and an approval"], Bounds(1, 1, 0))


@pytest.mark.parametrize("name", SCENARIOS)
def test_no_schedule_with_one_switch_breaks_a_guarantee(name: str) -> None:
    found = explore(SCENARIOS[name], ONE_SWITCH)
    assert not found.violation, f"{found.violation} after {found.way}"
    assert found.schedules > 5, "the two do not meet"
    assert found.worlds > 0


def test_a_second_switch_leads_to_states_that_one_does_not_lead_to() -> None:
    scenario = SCENARIOS["a rewind and an approval"]
    found = explore(scenario, Bounds(2, 0, 0))
    assert not found.violation, f"{found.violation} after {found.way}"
    assert found.states > explore(scenario, ONE_SWITCH).states


def test_no_schedule_with_one_fault_breaks_a_guarantee() -> None:
    found = explore(SCENARIOS["a decision carried by two"], ONE_FAULT)
    assert not found.violation, f"{found.violation} after {found.way}"
    assert found.schedules > 50, "no fault was met"


def test_no_schedule_in_which_a_request_takes_effect_late_breaks_a_guarantee() -> None:
    found = explore(SCENARIOS["a decision carried by two"], ONE_LATE)
    assert not found.violation, f"{found.violation} after {found.way}"
    assert found.schedules > 100, "nothing came late"


def test_what_was_played_of_this_code_is_counted_and_not_played_again(tmp_path: Path) -> None:
    told: list[Played] = []
    account, alone = tmp_path / "account.json", [Bounds(0, 0, 0)]
    play = partial(play_in_pieces, begun=tmp_path / "begun")
    assert play(["two ingests"], alone, until=0.0, told=told.append, account=account) == [f"two ingests, {alone[0]}"]
    assert play(["two ingests"], alone, until=float("inf"), told=told.append, account=account) == []
    assert already(account) == told
    assert [(p.pair, p.schedules) for p in told] == [("two ingests", 1)]
    assert play(["two ingests"], alone, until=float("inf"), told=told.append, account=account) == []
    assert len(told) == 1
    more = [Bounds(1, 0, 0), *alone]
    assert play(["a rewind and an approval"], more, until=float("inf"), told=told.append, account=account) == []
    assert [p.bounds for p in told[1:]] == [str(more[0])], "what has none left out was played with it"
    account.write_text(account.read_text().replace('"code": "', '"code": "another'))
    assert already(account) == []


# a product whose order is wrong


def whether_a_plan_is_finished_is_asked_before_the_head_is_looked_at(patch: Patch) -> None:
    """A second run that commits in between is seen by the head, and not by the answer."""
    find, load = publish.find_committed, publish.load_for_batch
    answers: list[Any] = []

    def wrong_load(tables: Any, plan: Any, chunks: Any) -> Any:
        answers.append(find(History(tables, plan.stream.name, lambda _: None), plan.plan_id))
        return load(tables, plan, chunks)

    patch.setattr(publish, "load_for_batch", wrong_load)
    patch.setattr(publish, "find_committed", lambda *_: answers.pop())


MUTANTS: dict[str, tuple[Callable[[Patch], None], str, Bounds]] = {
    plant.__name__.replace("_", " "): (plant, name, bounds)
    for plant, name, bounds in (
        (the_fence_lets_everybody_through, "two ingests", ONE_SWITCH),
        (a_rewind_keeps_the_generation, "an ingest and a rewind", ONE_SWITCH),
        (a_preview_holds_in_every_generation, "a rewind and an approval", ONE_SWITCH),
        (a_preview_is_worked_out_anew, "an ingest and an approval", ONE_SWITCH),
        (whether_a_plan_is_finished_is_asked_before_the_head_is_looked_at, "named offsets carried by two", ONE_SWITCH),
        (the_gate_is_looked_at_when_planning_only, "two at a closed gate", ONE_SWITCH),
        (held_rows_count_without_a_commit, "two ingests", ONE_FAULT),
        (the_group_is_written_before_the_head_is_committed, "two ingests", ONE_FAULT),
        (a_conflict_with_oneself_is_believed_and_cleaned_up_after, "two ingests", ONE_FAULT),
        (a_commit_without_an_answer_is_taken_to_have_failed_and_cleaned_up_after, "two ingests", ONE_LATE),
    )
}


@pytest.mark.parametrize("name", MUTANTS)
def test_a_product_whose_order_is_wrong_is_found_out(name: str, monkeypatch: Patch) -> None:
    plant, scenario, bounds = MUTANTS[name]
    plant(monkeypatch)
    assert explore(SCENARIOS[scenario], bounds).violation


def test_one_that_is_wrong_is_found_out_where_a_late_request_a_fault_and_a_switch_come_together(
    monkeypatch: Patch,
) -> None:
    """The other one has to come first after two commits without an answer, of which each bound allows one."""
    together = [("tables.commit", "late"), ("tables.commit", "fail before"), ("tables.commit", "switch")]
    scenario = SCENARIOS["an ingest and a rewind"]

    play_along(scenario, together).check()
    a_conflict_after_two_commits_without_an_answer_is_taken_for_ones_own(monkeypatch)
    found = play_along(scenario, together)
    with pytest.raises(AssertionError, match="audit of head"):
        found.check()
