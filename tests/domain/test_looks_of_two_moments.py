"""Who plans looks at one thing after the other, and somebody else comes in between: before each look in turn."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import count
from typing import Any

import pytest

from tests.builders.sending import send_chunk
from tests.builders.streams import make_stream
from tests.domain import backfill_rig as rig
from tests.domain.held_world import ONE, OTHER, TWO, World
from tests.fakes.batch import Bench, Carrying, FakeEdges
from tests.fakes.fake_log import FakeLog
from tests.fakes.faults import Steps
from wavestitch.batch.cut_log import find_cuts, with_last_batches
from wavestitch.batch.held_approval import begin_approved, preview_held
from wavestitch.batch.held_decision import carry_out
from wavestitch.batch.held_waveforms import Selection
from wavestitch.batch.rewind import Rewind, Target, apply_rewind, plan_rewind
from wavestitch.batch.undo import committed_stages, plan_undo
from wavestitch.contracts.errors import DataLost, Refused, Terminal, Transient
from wavestitch.contracts.held_choice import HeldAction
from wavestitch.contracts.plan import Scope
from wavestitch.contracts.position import Position
from wavestitch.contracts.quantities import Offset, Partition

SECOND_NS = 10**9


def stopped_before_each(make: Any) -> Iterator[tuple[Any, Steps]]:
    """`make` gives a world, and what is asked in it. Up to where a plan is kept, or to the end."""
    for looks in count():
        world, asked = make()
        steps = Steps(asked)
        if not all(steps.advance() for _ in range(looks)) or steps.at == "folder.begin":
            assert looks > 5
            return
        yield world, steps


def test_what_retention_takes_while_an_interval_is_located_is_named() -> None:
    """Of an ordinary stream the times tell that it is older, but by what is left."""
    first_ns = rig.START_MS * 10**6
    scope, stream = Scope(first_ns, first_ns + 4 * SECOND_NS), make_stream(reading={"min_slice": 1})

    def made() -> tuple[Bench, Any]:
        bench = Bench(FakeLog("waves", 1))
        for n in range(4):
            at = rig.START_MS + n * 1000
            send_chunk(bench.log, f"w{n}", at_ms=at, start_ms=at, count=1)
        return bench, partial(rig.backfill, bench, stream, scope)

    ends = []
    for bench, steps in stopped_before_each(made):
        bench.log.retain_from(Partition(0), Offset(3))
        steps.finish()
        if steps.error is None:
            assert [str(gone) for gone in steps.result.lost] == ["partition 0 [0, 3)"]
        else:
            assert isinstance(steps.error, DataLost), "it was planned already, and is read in vain"
        ends.append(steps.error is None)
    assert set(ends) == {True, False}


def test_no_topic_that_is_made_in_its_place_hides_what_is_gone_of_an_interval() -> None:
    """It begins at 0, and has nothing."""

    def made() -> tuple[Bench, Any]:
        bench = Bench(FakeLog("waves", 1))
        rig.send(bench, "first", day=9)
        rig.ingest(bench)
        rig.send(bench, "gone", day=1)
        bench.log.retain_from(Partition(0), Offset(2))
        return bench, partial(rig.backfill, bench, rig.ARCHIVE, rig.days(1, 2))

    for bench, steps in stopped_before_each(made):
        bench.log.recreate(1)
        steps.finish()
        assert isinstance(steps.error, DataLost | Refused)


def test_no_topic_that_is_made_in_its_place_hides_what_lay_across_the_cuts_of_a_backfill() -> None:
    stream = make_stream(limits={**rig.SKEW, "max_batch_records": 2}, reading={"min_slice": 1, "workers": 2})

    def made() -> tuple[Bench, Any]:
        bench = Bench(FakeLog("waves", 1))
        rig.ingest(bench)
        send_chunk(bench.log, "across", 0, at_ms=rig.START_MS, start_ms=rig.START_MS - 999 * rig.DAY, count=2)
        for name in "ab":
            rig.send(bench, name, day=1)
        rig.send(bench, "across", day=1, chunks=2, first=1)
        return bench, partial(rig.backfill, bench, stream, rig.days(1, 2))

    ends = []
    for looks in count():
        bench, asked = made()
        steps = Steps(asked)
        if not all(steps.advance() for _ in range(looks)):
            break
        bench.log.recreate(1)
        steps.finish()
        whole = "across" in {row.waveform_id for _, row in bench.tables.rows}
        assert whole or isinstance(steps.error, Terminal), looks
        ends.append(whole)
    assert set(ends) == {True, False}
    assert len(ends) > 100


def test_a_batch_that_is_committed_while_a_rewind_is_worked_out_is_no_catalog_that_was_set_back() -> None:
    def made() -> tuple[World, Any]:
        world = World()
        for n in range(3):
            world.send(f"a{n}", 0, ONE, count=1)
            world.ingest()
        world.send("b", 0, ONE, count=1)
        bench = world.bench
        look = partial(plan_rewind, world.stream, Target("earliest"), log=bench.log, tables=bench.tables)
        return world, partial(look, who="ops", why="to see")

    for world, steps in stopped_before_each(made):
        world.ingest()
        steps.finish()
        assert steps.error is None
        assert isinstance(steps.result, Rewind)


def test_a_pick_of_two_is_done_whole_or_not_at_all_where_the_other_copy_of_one_is_published_meanwhile() -> None:
    def made() -> tuple[World, Any]:
        world = World()
        for one in ("v", "w"):
            world.send(one, 0, ONE)
            world.send(one, 0, OTHER)
            world.send(one, 1, TWO)
        world.ingest()
        shown = preview_held(
            edges(world), HeldAction.PICK, Selection(ids=("v", "w")), who="ann", why="the first", pick="first"
        )

        def approved() -> Any:
            return carry_out(edges(world), begin_approved(edges(world), shown.plan.plan_id, by="bob"))

        return world, approved

    def edges(world: World) -> FakeEdges:
        world.now_ms += 1
        return FakeEdges(world.bench, world.stream, world.now_ms, Carrying())

    ends = []
    for looks in count():
        world, approved = made()
        steps = Steps(approved)
        if not all(steps.advance() for _ in range(looks)) or "w" in world.published():
            break
        world.decide(HeldAction.PICK, "v", pick="last")
        steps.finish()
        assert isinstance(steps.error, Refused | Terminal)
        assert world.published() == {"v": OTHER + TWO}
        ends.append(type(steps.error))
    assert {Refused, Terminal} <= set(ends)
    assert len(ends) > 20


def test_what_was_of_another_topic_is_undone_on_none_that_is_made_in_its_place_meanwhile() -> None:
    def made() -> tuple[World, Any]:
        world = World()
        world.send("a", 0, ONE, count=1)
        world.ingest()
        bench, edges = world.bench, FakeEdges(world.bench, world.stream, world.now_ms, Carrying())
        plan_id = bench.tables.snapshots[-1].plan_id
        return world, partial(plan_undo, edges, committed_stages(edges, plan_id), who="ops", why="back")

    ends = []
    for world, steps in stopped_before_each(made):
        bench = world.bench
        bench.log.recreate(1)
        world.send("b", 0, ONE, count=1)
        anew = plan_rewind(
            world.stream, Target("new-topic"), log=bench.log, tables=bench.tables, who="ops", why="it is another one"
        )
        apply_rewind(world.stream, anew, accept_skip=True, log=bench.log, tables=bench.tables)
        world.ingest()
        steps.finish()
        ends.append(steps.error)
        assert isinstance(steps.error, Refused | Transient)
    assert len(ends) > 5


@pytest.mark.parametrize("elected", [False, True])
def test_what_is_written_behind_a_cut_after_the_ends_were_looked_at_proves_nothing_of_a_position(elected: bool) -> None:
    """It is of a later leader epoch than the position, which the next plan asks for then."""
    bench = Bench(FakeLog("waves", 1))
    for name in "abcde":
        rig.send(bench, name, day=1)
    ends = bench.log.ends("waves", [Partition(0)])
    if elected:
        bench.log.truncate(Partition(0), Offset(2))
        for name in "fgh":
            rig.send(bench, name, day=1)
    stood = {Partition(0): Position(Offset(4), leader_epoch=ends[Partition(0)].leader_epoch)}
    found = with_last_batches("waves", stood, ends, bench.log)[Partition(0)]
    assert (found.last_batch is None) is elected
    now = bench.log.ends("waves", [Partition(0)])
    assert find_cuts("waves", {Partition(0): found}, now, bench.log) == ({Partition(0): 2} if elected else {})


def test_a_decision_is_undone_whole_or_not_at_all_where_a_part_of_it_is_published_meanwhile() -> None:
    def made() -> tuple[World, Any]:
        world = World()
        for one in ("v", "w"):
            world.send(one, 0, ONE)
        world.ingest()
        world.decide(HeldAction.DISCARD, "v", "w")
        world.decide(HeldAction.RESTORE, "v", "w")
        edges = FakeEdges(world.bench, world.stream, world.now_ms + 1, Carrying())
        plan_id = world.bench.tables.snapshots[-1].plan_id
        return world, lambda: plan_undo(edges, committed_stages(edges, plan_id), who="ops", why="back")

    ends = []
    for world, steps in stopped_before_each(made):
        world.send("w", 1, TWO, count=2)
        world.ingest()
        steps.finish()
        assert isinstance(steps.error, Refused | None)
        if steps.error is None:
            edges = FakeEdges(world.bench, world.stream, world.now_ms + 1, Carrying())
            with pytest.raises(Terminal, match="changed since this discard was planned; nothing was published"):
                carry_out(edges, steps.result.plan)
        world.check()
        assert world.held() == {"v": {"open"}}
        ends.append(steps.error is None)
    assert set(ends) == {False, True}
