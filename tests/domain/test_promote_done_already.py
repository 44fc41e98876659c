"""A promotion that was done is asked for once more: told as done where it stands, and refused where it does not."""

from __future__ import annotations

import pytest

from tests.domain.held_world import ONE, OTHER, World
from tests.domain.test_promote import edges, ids, mixed, preview, promote, redefined, undo
from tests.domain.test_verify_range import alter, two_published
from wavestitch import console_held, console_promote
from wavestitch.batch.held_approval import begin_approved, preview_held
from wavestitch.batch.held_decision import carry_out
from wavestitch.batch.held_waveforms import Selection
from wavestitch.batch.results import Finished
from wavestitch.contracts.errors import Refused
from wavestitch.contracts.held_choice import HeldAction
from wavestitch.contracts.stream import Limits


@pytest.fixture
def world() -> World:
    return World()


def test_what_stands_is_told_as_done_by_its_head(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    mixed(world)
    redefined(world, limits=Limits())
    shown = preview(world)
    promote(world, shown)
    world.send("later", 0, ONE, count=1)
    world.ingest()
    console_promote.show_kept("ecg", shown.plan.plan_id, shown.promotion, promote(world, shown))
    assert "it was done already, as head 3, and stands" in capsys.readouterr().out


def test_what_was_taken_back_is_not_told_as_done_and_is_done_when_it_was_shown_again(world: World) -> None:
    mixed(world)
    redefined(world, limits=Limits())
    shown = preview(world)
    promote(world, shown)
    undo(world)
    with pytest.raises(
        Refused, match=r"was done, as head 3, and 1 of its 1 waveforms are not as it left them, first l"
    ):
        promote(world, shown)
    assert ids(world) == ["one"]
    promote(world, preview(world))
    assert ids(world) == ["long", "one"]


def test_nor_where_a_row_that_was_altered_is_put_back_which_is_of_the_same_pieces(world: World) -> None:
    two_published(world)
    alter(world, "w", samples=OTHER + OTHER)
    shown = preview(world)
    promote(world, shown)
    assert isinstance(promote(world, shown), Finished), "it stands"
    undo(world)
    with pytest.raises(Refused, match=r"1 of its 1 waveforms are not as it left them, first w"):
        promote(world, shown)
    assert world.published()["w"] == OTHER + OTHER


def test_nor_what_an_operator_has_decided_otherwise_since(world: World) -> None:
    two_published(world)
    redefined(world, limits=Limits(max_chunks=1))
    shown = preview(world)
    promote(world, shown)
    redefined(world, limits=Limits())
    world.decide(HeldAction.REDRIVE, "v")
    with pytest.raises(Refused, match=r"1 of its 2 waveforms are not as it left them, first v"):
        promote(world, shown)


def test_a_decision_that_was_taken_back_says_that_it_was_done_and_that_what_came_since_stands(
    world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    world.send("w", 0, ONE)
    world.ingest()
    kept = preview_held(edges(world), HeldAction.DISCARD, Selection(ids=("w",)), who="ann", why="no").plan
    for _ in range(2):
        plan = begin_approved(edges(world), kept.plan_id, by="bob")
        done = carry_out(edges(world), plan)
        world.decide(HeldAction.RESTORE, "w") if not isinstance(done, Finished) else None
    console_held.show_kept(kept.plan_id, plan, done)
    assert "it was done already, as head 3; what was decided since stands" in capsys.readouterr().out
    assert world.held() == {"w": {"open"}}


def test_what_was_taken_back_before_it_was_done_once_more_stands(world: World) -> None:
    two_published(world)
    alter(world, "w", samples=OTHER + OTHER)
    promote(world, preview(world))
    undo(world)
    again = preview(world)
    promote(world, again)
    assert isinstance(promote(world, again), Finished)
