"""Undo puts back exactly what the operation changed, or refuses and names the way by hand; never something else."""

from __future__ import annotations

import re
from functools import partial

import pytest

from tests.builders.sending import send_chunk
from tests.domain.held_world import ONE, OTHER, TWO, T, World
from tests.fakes.batch import Bench, Carrying, FakeEdges
from tests.fakes.fake_log import FakeLog
from tests.fakes.faults import Fault, Steps
from wavestitch.batch.held_decision import HeldPreview, carry_out
from wavestitch.batch.held_waveforms import Selection, select_held
from wavestitch.batch.request import rewind_target
from wavestitch.batch.rewind import Rewind, Target, apply_rewind, plan_rewind
from wavestitch.batch.undo import committed_stages, plan_undo
from wavestitch.contracts.errors import Refused, Terminal, Transient
from wavestitch.contracts.held_choice import HeldAction
from wavestitch.contracts.offset_range import OffsetRange
from wavestitch.contracts.position import Head, HeadKind
from wavestitch.contracts.quantities import Offset, Partition


def preview(
    world: World, plan_id: str | None = None, *, of: int | None = None, why: str = "back"
) -> Rewind | HeldPreview:
    edges = edges_of(world)
    found = plan_undo(edges, committed_stages(edges, plan_id, of=of), who="ops", why=why, of=of)
    assert isinstance(found, Rewind | HeldPreview)
    return found


def edges_of(world: World) -> FakeEdges:
    world.now_ms += 1
    return FakeEdges(world.bench, world.stream, world.now_ms, Carrying())


def do(world: World, found: Rewind | HeldPreview) -> None:
    if isinstance(found, HeldPreview):
        carry_out(edges_of(world), found.plan)
    else:
        apply_rewind(world.stream, found, accept_skip=False, log=world.bench.log, tables=world.bench.tables)
    world.check()


def rewind(world: World, to: str) -> None:
    log, tables = world.bench.log, world.bench.tables
    found = plan_rewind(world.stream, rewind_target(to), log=log, tables=tables, who="ops", why="so it is")
    apply_rewind(world.stream, found, accept_skip=True, log=log, tables=tables)


def newest(world: World) -> Head:
    return world.bench.tables.snapshots[-1]


def ways_back(world: World) -> tuple[list[str], list[str]]:
    """What an undo that is refused names, and what it names behind a head of maintenance; none where one goes."""

    def named() -> list[str]:
        try:
            preview(world)
        except Refused as refused:
            return re.findall(r"`wavestitch rewind ecg --to ([^`]+)`", str(refused))
        return []

    before, was = named(), newest(world)
    world.bench.tables.commit(was, was.next(kind=HeadKind.MAINTENANCE, note="junk went"), [])
    return before, named()


def states(world: World) -> list[tuple[str, int | None, int, str]]:
    found = select_held(world.bench.tables, world.stream, Selection())
    return sorted(
        (o.waveform_id, h.chunk.seq, h.chunk.offset, s.value)
        for o in found
        for h, s in zip(o.held, o.states, strict=True)
    )


def picked(world: World) -> None:
    """Of two copies of the first chunk one is picked, and waits for the second chunk; the other is discarded."""
    world.send("w", 0, ONE)
    world.send("w", 0, OTHER)
    world.ingest()
    world.decide(HeldAction.PICK, "w", pick="first")


class TestADecision:
    @pytest.mark.parametrize("action", [HeldAction.RESTORE, HeldAction.DISCARD])
    def test_one_that_changed_a_part_of_a_waveform_is_not_undone_by_one_about_all_of_it(
        self, world: World, action: HeldAction
    ) -> None:
        picked(world)
        world.decide(action, "w")
        was = states(world)
        with pytest.raises(Refused, match=r"would not put back what batch .* changed: 1 chunks .*decide by hand"):
            preview(world)
        assert states(world) == was

    def test_its_undo_has_a_reason_by_itself(self, world: World) -> None:
        world.send("w", 0, ONE)
        world.ingest()
        world.decide(HeldAction.DISCARD, "w")
        do(world, preview(world, why=""))
        assert world.held() == {"w": {"open"}}
        assert "undo of batch" in newest(world).note

    def test_one_is_not_undone_over_what_somebody_decided_since(self, world: World) -> None:
        world.send("v", 0, ONE)
        world.send("w", 0, ONE)
        world.ingest()
        world.decide(HeldAction.DISCARD, "v", "w")
        plan_id = newest(world).plan_id
        world.decide(HeldAction.RESTORE, "v")
        with pytest.raises(Refused, match="decided on or published since, first v at"):
            preview(world, plan_id)
        world.decide(HeldAction.DISCARD, "v")
        with pytest.raises(Refused, match="decided on or published since, first v at"):
            preview(world, plan_id)

    def test_one_is_not_undone_where_a_chunk_came_since(self, world: World) -> None:
        world.send("w", 0, ONE, count=3)
        world.ingest()
        world.decide(HeldAction.DISCARD, "w")
        plan_id = newest(world).plan_id
        world.send("w", 1, TWO, count=3)
        world.ingest()
        with pytest.raises(Refused, match="1 chunks of 1 waveforms were not changed by it"):
            preview(world, plan_id)

    @pytest.mark.parametrize("action", [HeldAction.RESTORE, HeldAction.DISCARD])
    def test_one_changes_nothing_where_a_chunk_came_after_its_preview(self, world: World, action: HeldAction) -> None:
        world.send("w", 0, ONE, count=3)
        world.ingest()
        world.decide(HeldAction.DISCARD, "w")
        if action is HeldAction.DISCARD:
            world.decide(HeldAction.RESTORE, "w")
        found = preview(world)
        assert isinstance(found, HeldPreview)
        assert found.plan.held_choice is not None
        assert found.plan.held_choice.action is action
        world.send("w", 1, TWO, count=3)
        world.ingest()
        was = states(world)
        with pytest.raises(Terminal, match=f"changed since this {action.value} was planned; nothing was published"):
            carry_out(edges_of(world), found.plan)
        assert states(world) == was

    def test_one_about_whole_waveforms_is_undone_and_so_is_that(self, world: World) -> None:
        world.send("v", 0, ONE)
        world.send("w", 0, ONE)
        world.send("w", 0, OTHER)
        world.ingest()
        before = states(world)
        world.decide(HeldAction.DISCARD, "v", "w")
        discarded = states(world)
        do(world, preview(world))
        assert states(world) == before
        do(world, preview(world))
        assert states(world) == discarded


class TestPositions:
    def test_those_of_another_topic_are_no_place_to_go_back_to(self, world: World) -> None:
        world.send("a", 0, ONE, count=1)
        world.ingest()
        world.send("b", 0, ONE, count=1)
        world.ingest()
        plan_id = newest(world).plan_id
        world.bench.log.recreate(1)
        rewind(world, "new-topic")
        for name in "cde":
            world.send(name, 0, ONE, count=1)
        with pytest.raises(Refused, match="this was of topic topic-1, and the stream reads topic-2 now"):
            preview(world, plan_id)

    def test_what_retention_took_is_named_with_the_place_that_is_nearest(self, world: World) -> None:
        world.bench = Bench(FakeLog("waves", 2))
        for p in (0, 1):
            for i in range(3):
                send_chunk(world.bench.log, f"x{p}{i}", 0, ONE, at_ms=T, start_ms=T, count=1, partition=p)
        world.ingest()
        world.bench.log.retain_from(Partition(0), Offset(2))
        with pytest.raises(Refused, match=r"begins at 2\..*`wavestitch rewind ecg --to 0:earliest,1:0`"):
            preview(world)

    @pytest.mark.parametrize(("cut", "places"), [(2, "0:2,1:earliest"), (0, "0:0,1:earliest")])
    def test_what_a_log_does_not_have_any_more_is_no_place_to_go_back_to(
        self, world: World, cut: int, places: str
    ) -> None:
        """Brokers were put back, and retention took the beginning of another partition."""
        world.bench = Bench(FakeLog("waves", 2))
        for sent in ([0] * 4, [0, 0, 1, 1, 1]):
            for n, p in enumerate(sent):
                send_chunk(world.bench.log, f"w{len(sent)}{n}", 0, ONE, at_ms=T, start_ms=T, count=1, partition=p)
            world.ingest()
        world.bench.log.put_back(Partition(0), Offset(cut), 0, elected=False)
        world.bench.log.retain_from(Partition(1), Offset(1))
        with pytest.raises(Refused, match=r"begins at 1\. Go back as far as there is something") as refused:
            preview(world)
        assert f"`wavestitch rewind ecg --to {places}`" in str(refused.value)
        rewind(world, places)

    def test_no_place_is_named_where_the_position_is_already(self, world: World) -> None:
        for name in "abc":
            world.send(name, 0, ONE, count=1)
        world.ingest()
        rewind(world, "earliest")
        world.bench.log.put_back(Partition(0), Offset(0), 0, elected=False)
        with pytest.raises(
            Refused, match=r"offset 3 of partition 0 is not in the log of waves \(\[0, 0\]\)"
        ) as refused:
            preview(world)
        assert "earliest" not in str(refused.value)

    @pytest.mark.parametrize("to", ["latest", "1:latest"])
    def test_a_partition_that_was_added_goes_back_to_its_beginning(self, world: World, to: str) -> None:
        world.send("a", 0, ONE, count=1)
        world.ingest()
        world.bench.log.add_partition()
        send_chunk(world.bench.log, "b", 0, ONE, at_ms=T, start_ms=T, count=1, partition=1)
        rewind(world, to)
        assert newest(world).skipped == (OffsetRange(Partition(1), Offset(0), Offset(1)),)
        do(world, preview(world))
        assert newest(world).positions[Partition(1)].next_offset == 0
        assert newest(world).skipped == ()

    @pytest.mark.parametrize("word", ["before", "undo", "previous"])
    def test_where_a_batch_began_is_the_beginning_of_a_partition_that_it_began(self, world: World, word: str) -> None:
        world.ingest()
        world.bench.log.add_partition()
        for p in (0, 1):
            send_chunk(world.bench.log, f"w{p}", 0, ONE, at_ms=T, start_ms=T, count=1, partition=p)
        world.ingest()
        head = newest(world)
        argument = {"before": head.plan_id, "undo": str(head.sequence)}.get(word, "")
        target, log, tables = Target(word, argument=argument), world.bench.log, world.bench.tables
        found = plan_rewind(world.stream, target, log=log, tables=tables, who="ops", why="so it is")
        assert found.moves == {0: (1, 0), 1: (1, 0)}

    def test_behind_a_head_of_maintenance_the_way_back_by_hand_is_named_where_there_is_one(self, world: World) -> None:
        world.send("a", 0, ONE, count=1)
        world.ingest()
        world.send("b", 0, ONE, count=1)
        rewind(world, "latest")
        was = newest(world)
        world.bench.tables.commit(was, was.next(kind=HeadKind.MAINTENANCE, note="junk went"), [])
        with pytest.raises(Refused, match=r"cannot be undone.*`wavestitch rewind ecg --to previous`"):
            preview(world)
        rewind(world, "previous")
        assert newest(world).positions[Partition(0)].next_offset == 1

    def test_where_nobody_can_be_asked_how_far_the_log_goes_the_refusal_says_why_all_the_same(
        self, world: World
    ) -> None:
        world.send("a", 0, ONE, count=1)
        world.ingest()
        world.send("b", 0, ONE, count=1)
        rewind(world, "latest")
        was = newest(world)
        world.bench.tables.commit(was, was.next(kind=HeadKind.MAINTENANCE, note="junk went"), [])
        asked = Steps(partial(preview, world))
        while asked.at != "log.topic":
            assert asked.advance()
        asked.advance(Fault.FAIL_BEFORE)
        asked.finish()
        assert isinstance(asked.error, Refused)
        assert "cannot be undone" in str(asked.error)
        assert "wavestitch rewind" not in str(asked.error)

    def test_no_way_is_named_that_would_go_forward_and_skip(self, world: World) -> None:
        for n in range(3):
            world.send(f"w{n}", 0, ONE, count=1)
        world.ingest()
        rewind(world, "0:1")
        assert ways_back(world) == ([], []), "it stood further on before"
        rewind(world, "latest")
        world.send("late", 0, ONE, count=1)
        world.bench.log.retain_from(Partition(0), Offset(4))
        assert ways_back(world) == ([], []), "the log begins behind where it stands"

    def test_no_way_is_named_of_a_topic_that_was_made_anew_since(self, world: World) -> None:
        world.send("a", 0, ONE, count=1)
        world.ingest()
        world.send("b", 0, ONE, count=1)
        rewind(world, "latest")
        assert ways_back(world)[1] == ["previous"]
        world.bench.log.recreate(1)
        for name in "cde":
            world.send(name, 0, ONE, count=1)
        assert ways_back(world) == ([], [])

    def test_no_way_is_named_of_a_partition_that_brokers_put_back_do_not_have(self, world: World) -> None:
        world.bench.log.add_partition()
        for p in range(2):
            send_chunk(world.bench.log, f"w{p}", 0, ONE, at_ms=T, start_ms=T, count=1, partition=p)
        world.ingest()
        world.bench.log.lag(10**6, shows=1)
        rewind(world, "start-over")
        assert ways_back(world)[1] == []
        with pytest.raises(Refused, match=r"not in the log of waves \(no such partition\)$"):
            rewind(world, "1:0,0:1")

    def test_no_way_is_named_by_a_view_that_is_older_than_the_head(self, world: World) -> None:
        world.bench.log.add_partition()
        for n, p in enumerate((0, 0, 1)):
            send_chunk(world.bench.log, f"w{n}", 0, ONE, at_ms=T, start_ms=T, count=1, partition=p)
        world.ingest()
        rewind(world, "0:1,1:0")
        rewind(world, "latest")
        world.bench.log.retain_from(Partition(0), Offset(2))
        world.bench.log.lag(10**6, shows=1)
        with pytest.raises(Transient, match="the broker shows no partition 1"):
            preview(world)
        was = newest(world)
        world.bench.tables.commit(was, was.next(kind=HeadKind.MAINTENANCE, note="junk went"), [])
        with pytest.raises(Refused, match=r"with --plan$"):
            preview(world)

    def test_a_way_leaves_out_a_partition_that_came_back_after_the_stream_began_anew(self, world: World) -> None:
        world.bench.log.add_partition()
        send_chunk(world.bench.log, "w", 0, ONE, at_ms=T, start_ms=T, count=1, partition=1)
        world.ingest()
        world.bench.log.lag(10**6, shows=1)
        rewind(world, "start-over")
        world.bench.log.lag(0, shows=1)
        assert ways_back(world)[1] == []

    def test_no_way_back_is_named_where_only_a_partition_was_added(self, world: World) -> None:
        """It stood at its beginning before, as it does."""
        world.ingest()
        world.bench.log.add_partition()
        rewind(world, "latest")
        assert newest(world).positions.keys() == {0, 1}
        with pytest.raises(Refused, match="there is nothing to undo in this case") as refused:
            preview(world)
        assert "wavestitch rewind" not in str(refused.value)

    @pytest.mark.parametrize(
        ("stood", "begins", "ways"),
        [("0:1", 2, "0:earliest"), ("0:1", 3, ""), ("0:1,1:1", 2, "0:earliest,1:1"), ("0:1,1:1", 3, "1:1")],
    )
    def test_a_way_back_goes_as_far_as_the_log_does_and_names_no_partition_that_stands_there(
        self, world: World, stood: str, begins: int, ways: str
    ) -> None:
        world.bench.log.add_partition()
        for n, p in enumerate((0, 0, 0, 1, 1)):
            send_chunk(world.bench.log, f"w{n}", 0, ONE, at_ms=T, start_ms=T, count=1, partition=p)
        world.ingest()
        rewind(world, stood)
        rewind(world, "latest")
        world.bench.log.retain_from(Partition(0), Offset(begins))
        assert ways_back(world) == ([ways] if ways else [], [ways] if ways else [])
        if ways:
            rewind(world, ways)


class TestTheHeadThatIsMeant:
    def test_what_was_shown_is_done_or_refused_where_another_head_is_the_newest(self, world: World) -> None:
        world.send("w", 0, ONE)
        world.ingest()
        world.decide(HeldAction.DISCARD, "w")
        meant = newest(world).sequence
        assert isinstance(preview(world, of=meant), HeldPreview)
        world.send("x", 0, ONE, count=1)
        world.ingest()
        with pytest.raises(Refused, match=f"head {meant} was to be undone, and the newest is {meant + 1} by now"):
            preview(world, of=meant)

    def test_a_head_that_comes_while_the_opposite_is_worked_out_is_found_out(self, world: World) -> None:
        world.send("x", 0, ONE, count=1)
        world.ingest()
        edges, meant = edges_of(world), newest(world).sequence
        stages = committed_stages(edges, of=meant)
        world.send("y", 0, ONE, count=1)
        world.ingest()
        with pytest.raises(Refused, match="was to be undone"):
            plan_undo(edges, stages, who="ops", why="back", of=meant)


@pytest.fixture
def world() -> World:
    return World()
