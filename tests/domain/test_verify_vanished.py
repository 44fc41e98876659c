"""A row that a decision had published is gone from the table: what it was made of is held again, and the head knows."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.builders.ranges import span
from tests.domain.held_world import ONE, TWO, World
from tests.domain.test_promote_beside_decisions import picked, redriven
from tests.domain.test_verify_range import found, verify
from tests.domain.test_verify_skipped import without_row
from wavestitch.contracts.held_choice import HeldAction
from wavestitch.contracts.verification import Agreement


@pytest.fixture
def world() -> World:
    return World()


def accepted(world: World) -> None:
    world.send("w", 0, ONE)
    world.send("w", 1, TWO)
    world.ingest(failing={"w"})
    world.decide(HeldAction.ACCEPT, "w")


def completed(world: World) -> None:
    world.send("w", 0, ONE)
    world.ingest()
    world.send("w", 1, TWO)
    world.ingest()


@pytest.mark.parametrize("publish", [redriven, picked, accepted])
def test_what_was_held_before_it_was_published_is_missed_when_its_row_is_gone(
    publish: Callable[[World], None], world: World
) -> None:
    publish(world)
    before = verify(world)
    assert (before.exit_code, before.misplaced) == (0, ())
    without_row(world, "w")
    done = verify(world)
    assert (done.exit_code, found(done)) == (6, {"w": Agreement.HELD})
    (said,) = done.misplaced
    assert "2 chunks of its waveforms are held as" in said
    assert "and the head counts 0 in all: others of them were published, and that row is gone" in said


@pytest.mark.xfail(strict=True, reason="the head counts all that is held, and a smaller range is compared with that")
def test_so_it_is_where_others_that_are_held_lie_outside_of_the_range(world: World) -> None:
    redriven(world)
    for seq, value in enumerate((ONE, TWO)):
        world.send("x", seq, value)
    world.ingest(park=True)
    without_row(world, "w")
    assert verify(world).exit_code == 6
    assert verify(world, span(0, 0, 2)).exit_code == 6


def test_what_waits_still_and_what_was_let_go_is_no_such_thing(world: World) -> None:
    world.send("w", 0, ONE)
    world.send("v", 0, ONE)
    world.send("v", 1, TWO)
    world.ingest(park=True)
    world.decide(HeldAction.DISCARD, "v")
    for seq in range(2):
        world.send("v", seq, TWO)
    world.ingest()
    done = verify(world)
    assert (done.misplaced, found(done)["w"]) == ((), Agreement.HELD)


def test_of_a_part_that_was_held_the_rest_is_missing_too(world: World) -> None:
    completed(world)
    without_row(world, "w")
    done = verify(world)
    assert (done.exit_code, found(done)) == (6, {"w": Agreement.MISSING_IN_TABLE})
