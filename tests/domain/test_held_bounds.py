"""What bounds decisions about what is held, and ingests beside them: quotas, and gates that a redrive closed.

On the memory edges, by the product's own steps; all guarantees hold after every batch and decision.
"""

from __future__ import annotations

import pytest

from tests.builders.records import metadata
from tests.builders.sending import send_chunk
from tests.domain.held_world import ONE, TWO, T, World, parked
from tests.fakes.batch import Bench, Carrying, FakeEdges, carry_through, run_batch
from tests.fakes.fake_log import FakeLog
from tests.fakes.way_out import Take, ways_out
from wavestitch.batch.held_decision import carry_out, plan_held
from wavestitch.batch.held_waveforms import Selection
from wavestitch.batch.plan import PlanRequest
from wavestitch.batch.rewind import apply_rewind, plan_rewind
from wavestitch.batch.rewind_target import Target
from wavestitch.batch.steps import step_plan
from wavestitch.contracts.errors import GateClosed, Refused
from wavestitch.contracts.held_choice import HeldAction
from wavestitch.contracts.plan import Plan
from wavestitch.contracts.stream import Limits


@pytest.fixture
def world() -> World:
    return World()


class TestQuotas:
    def test_a_batch_that_would_hold_too_much_is_refused_with_the_place_and_a_way_out(self, world: World) -> None:
        world.stream = world.stream.model_copy(update={"limits": Limits(max_held_rows=3)})
        for n in range(3):
            world.send(f"w{n}", 0, ONE)
        world.ingest()
        world.send("x", 0, ONE)
        world.send("y", 0, ONE)
        world.send("w0", 1, TWO)
        with pytest.raises(Refused, match=r"4 rows in .* partition 0, offsets 3 to 4 \(2 open\).*rewind ecg --to 0:5"):
            world.ingest()
        assert world.published() == {}
        world.stream = world.stream.model_copy(update={"limits": Limits(max_held_rows=4)})
        world.ingest()
        assert world.published() == {"w0": ONE + TWO}

    def test_what_was_discarded_takes_no_room(self, world: World) -> None:
        world.stream = world.stream.model_copy(update={"limits": Limits(max_held_rows=2)})
        for n in range(2):
            world.send(f"w{n}", 0, ONE)
        world.ingest()
        world.send("x", 0, ONE)
        with pytest.raises(Refused, match="3 rows in"):
            world.ingest()
        world.decide(HeldAction.DISCARD, "w0")
        world.ingest()
        assert world.held() == {"w0": {"discarded"}, "w1": {"open"}, "x": {"open"}}

    def test_what_comes_under_a_discarded_id_since_takes_room(self, world: World) -> None:
        """Nobody has decided about it: whoever sends under such an id fills nothing without end."""
        world.stream = world.stream.model_copy(update={"limits": Limits(max_held_rows=3)})
        world.send("w", 0, ONE)
        world.ingest()
        world.decide(HeldAction.DISCARD, "w")
        assert world.mark().waveform_rows == 0
        for n in range(3):
            world.send("w", 0, bytes([n, 1]))
        world.ingest()
        assert (world.mark().waveform_rows, world.mark().chunk_bytes > 0) == (3, True)
        assert world.mark().counts == {"discarded": 1, "after_discard": 3}
        world.send("w", 0, b"\x07\x07")
        with pytest.raises(Refused, match=r"4 rows in.*under discarded ids since with `wavestitch held ecg restore ID"):
            world.ingest()
        world.decide(HeldAction.RESTORE, "w")
        world.decide(HeldAction.DISCARD, "w")
        assert (world.mark().waveform_rows, world.mark().chunk_bytes) == (0, 0), "now an operator has decided"
        world.ingest()
        assert world.held() == {"w": {"discarded"}}

    def test_a_repeat_of_what_was_discarded_that_says_more_takes_room_too(self, world: World) -> None:
        world.stream = world.stream.model_copy(update={"limits": Limits(max_held_rows=3)})
        world.send("w", 0, ONE)
        world.ingest()
        world.decide(HeldAction.DISCARD, "w")
        for count in range(3, 7):
            world.send("w", 0, ONE, count=count)
        with pytest.raises(Refused, match="4 rows in"):
            world.ingest()

    def test_the_way_to_take_in_what_is_good_names_every_partition(self, world: World) -> None:
        """Bounded in the worst partition alone, the next one stops the batch, and the two name each other in turn."""
        world.bench = Bench(FakeLog("waves", 3))
        world.stream = world.stream.model_copy(update={"limits": Limits(max_held_rows=3)})
        for p in (0, 1, 2):
            send_chunk(world.bench.log, f"good-{p}", at_ms=T, partition=p)
            for n in range(p * 4):
                send_chunk(world.bench.log, f"open-{p}-{n}", at_ms=T, partition=p, count=2)
        with pytest.raises(Refused, match=r"--partitions 0 --until 0:1`.*--until 0:1,1:1,2:1`") as refused:
            world.ingest()
        takes = [way for way in ways_out(str(refused.value)) if isinstance(way, Take)]
        for way in takes:
            world.now_ms += 1
            run_batch(world.bench, world.stream, way.request, clock_ms=world.now_ms)
        assert set(world.published()) == {"good-0", "good-1", "good-2"}

    def test_what_the_batch_publishes_is_not_held_after_it(self, world: World) -> None:
        world.stream = world.stream.model_copy(update={"limits": Limits(max_held_rows=3)})
        for n in range(3):
            world.send(f"w{n}", 0, ONE)
        world.ingest()
        for n in range(3):
            world.send(f"w{n}", 1, TWO)
        world.send("x", 0, ONE)
        world.ingest()
        assert len(world.published()) == 3
        assert world.held() == {"x": {"open"}}

    def test_beyond_a_limit_that_was_lowered_it_may_only_shrink(self, world: World) -> None:
        for n in range(4):
            world.send(f"w{n}", 0, ONE)
        world.ingest()
        world.stream = world.stream.model_copy(update={"limits": Limits(max_held_rows=2)})
        world.send("w0", 1, TWO)
        world.send("x", 0, ONE)
        world.ingest()
        assert set(world.published()) == {"w0"}
        world.send("y", 0, ONE)
        with pytest.raises(Refused, match=r"5 rows in .* would be held; allowed are 2"):
            world.ingest()

    def test_what_is_good_before_the_bad_can_be_taken_in(self, world: World) -> None:
        world.stream = world.stream.model_copy(update={"limits": Limits(max_held_rows=1)})
        world.send("good", 0, ONE, count=1)
        world.send("x", 0, ONE)
        world.send("y", 0, ONE)
        with pytest.raises(Refused, match=r"what comes before them with `wavestitch run ecg --until 0:1`, or skip all"):
            world.ingest()

    def test_bytes_count_what_is_held_and_not_what_was_released_since(self, world: World) -> None:
        """Each batch makes whole what waited, and leaves one open; rows lie in the table until maintenance."""
        one = len(ONE) + len(metadata(T))
        world.stream = world.stream.model_copy(update={"limits": Limits(max_held_bytes=2 * one)})
        world.send("w0", 0, ONE)
        for n in range(1, 6):
            world.ingest()
            world.send(f"w{n - 1}", 1, TWO, at=T + n)
            world.send(f"w{n}", 0, ONE, at=T + n)
        world.send("x", 0, ONE)
        world.send("y", 0, ONE)
        with pytest.raises(Refused, match=rf"3 rows in {3 * one} bytes would be held"):
            world.ingest()


class TestClosedGate:
    """A redrive whose rows close the gate stands there as a batch does."""

    @pytest.fixture
    def plan(self, world: World) -> Plan:
        parked(world)
        for n in range(9):
            world.send(f"v{n}", 0, ONE, count=1)
        edges = self.edges(world)
        found = plan_held(edges, HeldAction.REDRIVE, Selection(ids=("w",)), who="ops", why="again").plan
        with pytest.raises(GateClosed, match="Until then no ingest of the stream goes past it"):
            carry_out(edges, found)
        return found

    def edges(self, world: World) -> FakeEdges:
        return FakeEdges(world.bench, world.stream, world.now_ms + 1, Carrying(spoiled={"w"}))

    def test_no_ingest_goes_past_it(self, world: World, plan: Plan) -> None:
        with pytest.raises(Refused, match=rf"--plan {plan.plan_id} --gate accept.*stays held as it was"):
            world.ingest()
        assert world.published() == {}

    def test_nor_one_that_was_planned_before(self, world: World) -> None:
        parked(world)
        world.send("v", 0, ONE, count=1)
        edges = self.edges(world)
        step_plan(edges, PlanRequest())
        ingest = list(world.bench.plans.values())[-1]
        redrive = plan_held(edges, HeldAction.REDRIVE, Selection(ids=("w",)), who="ops", why="again").plan
        with pytest.raises(GateClosed):
            carry_out(edges, redrive)
        with pytest.raises(Refused, match="stands at a closed gate"):
            carry_through(world.bench, ingest, Carrying())

    def test_nor_another_redrive_among_more_that_are_good(self, world: World, plan: Plan) -> None:
        with pytest.raises(Refused, match="no batch that would publish what it stopped goes past it"):
            plan_held(self.edges(world), HeldAction.REDRIVE, Selection(), who="ops", why="diluted")

    def test_nor_one_of_a_waveform_that_an_ingest_had_taken_up_there(self, world: World) -> None:
        """A chunk of what is held comes once more; the ingest decides about it afresh, and is stopped with it."""
        ids = ("w", "u", "v")
        for wid in ids:
            world.send(wid, 0, ONE, count=1)
        world.ingest(failing=set(ids))
        world.send("w", 0, ONE, count=1)
        with pytest.raises(GateClosed):
            world.ingest(spoiled={"w"})
        found = plan_held(self.edges(world), HeldAction.REDRIVE, Selection(ids=("u", "v")), who="ops", why="good").plan
        with pytest.raises(Refused, match="no batch that would publish what it stopped goes past it"):
            plan_held(self.edges(world), HeldAction.REDRIVE, Selection(ids=ids), who="ops", why="diluted")
        carry_out(self.edges(world), found)
        assert set(world.published()) == {"u", "v"}

    def test_accepted_it_is_published_and_the_stream_goes_on(self, world: World, plan: Plan) -> None:
        carry_through(world.bench, plan, Carrying(spoiled={"w"}, gate="accept"))
        world.ingest()
        assert world.published().keys() == {"w", *(f"v{n}" for n in range(9))}

    def test_parked_it_is_held_and_the_stream_goes_on(self, world: World, plan: Plan) -> None:
        carry_through(world.bench, plan, Carrying(spoiled={"w"}, park=True))
        world.ingest()
        assert world.held() == {"w": {"parked"}}

    def test_abandoned_it_is_held_as_it_was_and_the_stream_goes_on(self, world: World, plan: Plan) -> None:
        world.bench.abandoned.add(plan.plan_id)
        world.ingest()
        assert world.held() == {"w": {"parked"}}

    def test_what_is_at_it_can_be_discarded(self, world: World, plan: Plan) -> None:
        world.decide(HeldAction.DISCARD, "w")
        assert world.held() == {"w": {"discarded"}}

    def test_a_rewind_ends_it(self, world: World, plan: Plan) -> None:
        log, tables = world.bench.log, world.bench.tables
        found = plan_rewind(world.stream, Target(word="earliest"), log=log, tables=tables, who="ops", why="anew")
        apply_rewind(world.stream, found, accept_skip=False, log=log, tables=tables)
        world.ingest()
        assert world.published().keys() == {f"v{n}" for n in range(9)}
