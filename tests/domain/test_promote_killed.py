"""A promotion that dies, fails or is told nothing between any two of its effects: all of it is done, or nothing."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.domain.held_world import World
from tests.domain.test_promote import edges, ids, mixed, preview, redefined, two_published, undo
from tests.fakes.batch import Carrying
from tests.fakes.faults import Fault, Killed, Steps
from wavestitch.batch.carry import Silent
from wavestitch.batch.held_approval import begin_approved
from wavestitch.batch.promote import carry_promotion
from wavestitch.batch.run import RunOptions, run_batch
from wavestitch.batch.take_back import plan_taking_back, take_back
from wavestitch.contracts.errors import Refused, WavestitchError
from wavestitch.contracts.stream import Limits

FAILING = Carrying(failing={"one"})
FAULTS = [f for f in Fault if f is not Fault.LATE]


def shown() -> tuple[World, str]:
    world = World()
    mixed(world)
    redefined(world, limits=Limits())
    return world, preview(world, how=FAILING).plan.plan_id


def state(world: World) -> tuple[list[str], dict[str, set[str]]]:
    return ids(world), world.held()


def every_effect(call: Callable[[World, str], object], begin: Callable[[], tuple[World, str]]) -> int:
    world, about = begin()
    run = Steps(lambda: call(world, about))
    run.finish()
    assert run.error is None
    return len(run.trace)


def do(world: World, preview_id: str) -> None:
    mine = edges(world, FAILING)
    carry_promotion(mine, begin_approved(mine, preview_id, by="bob"))


@pytest.mark.parametrize("fault", FAULTS)
def test_wherever_it_is_stopped_all_or_nothing_is_done_and_doing_it_again_does_it_once(fault: Fault) -> None:
    before, after = (["one"], {"long": {"too_large"}}), (["long"], {"one": {"failed_expectation"}})
    met = set()
    for at in range(1, every_effect(do, shown)):
        world, preview_id = shown()
        positions = world.bench.tables.snapshots[-1].positions
        run = Steps(lambda world=world, preview_id=preview_id: do(world, preview_id))  # type: ignore[misc]
        for _ in range(at):
            run.advance()
        run.advance(fault)
        run.finish()
        assert run.error is None or isinstance(run.error, Killed | WavestitchError), run.error
        assert state(world) in (before, after), f"stopped at {run.trace[at]}: half of it is done"
        met.add(state(world) == after)
        world.check()
        do(world, preview_id)
        assert state(world) == after
        assert len(world.bench.tables.snapshots) == 3, "it was committed once"
        assert world.bench.tables.snapshots[-1].positions == positions
        world.check()
        world.ingest()
    assert met == {False, True} or fault in (Fault.RESENT, Fault.CONFLICT)


@pytest.mark.parametrize("fault", [Fault.KILL_BEFORE, Fault.KILL_AFTER, Fault.FAIL_AFTER, Fault.RESENT])
def test_so_it_is_where_it_is_taken_back(fault: Fault) -> None:
    def promoted() -> tuple[World, str]:
        world, preview_id = shown()
        do(world, preview_id)
        return world, world.bench.tables.snapshots[-1].plan_id

    def back(world: World, plan_id: str) -> None:
        mine = edges(world)
        take_back(mine, plan_taking_back(mine, plan_id, who="cal", why="a mistake"))

    before, after = (["long"], {"one": {"failed_expectation"}}), (["one"], {"long": {"too_large"}})
    for at in range(1, every_effect(back, promoted)):
        world, plan_id = promoted()
        run = Steps(lambda world=world, plan_id=plan_id: back(world, plan_id))  # type: ignore[misc]
        for _ in range(at):
            run.advance()
        run.advance(fault)
        run.finish()
        assert state(world) in (before, after)
        world.check()
        if state(world) == before:
            back(world, plan_id)
        else:
            with pytest.raises(Refused, match="not as it left them"):
                back(world, plan_id)
        assert state(world) == after
        world.check()
        world.ingest()


def test_two_at_once_are_one() -> None:
    """Whoever approves twice, in any order of their effects."""
    world, preview_id = shown()
    first, second = (Steps(lambda: do(world, preview_id), name) for name in ("first", "second"))
    while first.advance() | second.advance():
        pass
    assert (first.error, second.error) == (None, None)
    assert state(world) == (["long"], {"one": {"failed_expectation"}})
    assert len(world.bench.tables.snapshots) == 3
    world.check()


def test_a_catalog_that_was_set_back_is_refused_by_name() -> None:
    world, preview_id = shown()
    world.send("later", 0, b"\1\0", count=1)
    world.ingest()
    world.bench.tables.restore(len(world.bench.tables.snapshots) - 1)
    with pytest.raises(Refused, match=r"set back|another table|does not have"):
        do(world, preview_id)
    with pytest.raises(Refused, match=r"set back|another table|does not have"):
        preview(world)
    assert ids(world) == ["one"]


def test_it_is_taken_up_by_its_plan_after_a_crash_as_every_batch() -> None:
    world = World()
    two_published(world)
    redefined(world, limits=Limits(max_chunks=1))
    mine = edges(world)
    plan = begin_approved(mine, preview(world).plan.plan_id, by="bob")
    run_batch(edges(world), RunOptions(plan_id=plan.plan_id), watcher=Silent())
    assert state(world) == ([], {"v": {"too_large"}, "w": {"too_large"}})
    world.check()
    undo(world)
    assert ids(world) == ["v", "w"]
