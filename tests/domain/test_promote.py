"""What was compared is promoted: published in the place of what is there, exactly that, in one commit, or not."""

from __future__ import annotations

from typing import Any

import pytest

from tests.builders.ranges import span
from tests.builders.sending import send_chunk
from tests.domain.held_world import ONE, OTHER, TWO, T, World
from tests.domain.test_verify_range import alter, two_published
from tests.fakes.batch import Carrying, FakeEdges
from tests.fakes.fake_comparing import FakeComparing
from wavestitch.batch.carry import Silent
from wavestitch.batch.held_approval import begin_approved
from wavestitch.batch.promote import PromotionPreview, carry_promotion, preview_promotion
from wavestitch.batch.rewind import Target, apply_rewind, plan_rewind
from wavestitch.batch.run import RunOptions, run_batch
from wavestitch.batch.take_back import TakingBack, plan_taking_back, take_back
from wavestitch.batch.undo import committed_stages, plan_undo
from wavestitch.batch.verify_request import VerifyRequest
from wavestitch.contracts.definition_change import Change
from wavestitch.contracts.errors import BadInput, Fenced, Refused, Transient
from wavestitch.contracts.held_choice import HeldAction
from wavestitch.contracts.offset_range import OffsetRange
from wavestitch.contracts.position import HeadKind
from wavestitch.contracts.quantities import Offset, Partition
from wavestitch.contracts.stream import Limits


@pytest.fixture
def world() -> World:
    return World()


def edges(world: World, how: Carrying | None = None) -> FakeEdges:
    world.now_ms += 1
    return FakeEdges(world.bench, world.stream, world.now_ms, how or Carrying())


def preview(world: World, *ranges: OffsetRange, how: Carrying | None = None) -> PromotionPreview:
    comparing = FakeComparing(world.bench, world.stream, world.now_ms, how or Carrying())
    request = VerifyRequest(ranges=ranges)
    return preview_promotion(edges(world), comparing, request, who="ann", why="a limit", watcher=Silent())


def promote(world: World, shown: PromotionPreview, how: Carrying | None = None) -> Any:
    mine = edges(world, how)
    done = carry_promotion(mine, begin_approved(mine, shown.plan.plan_id, by="bob"))
    world.check()
    return done


def redefined(world: World, **otherwise: Any) -> None:
    world.stream = world.stream.model_copy(update=otherwise)


def ids(world: World) -> list[str]:
    return sorted(row.waveform_id for _, row in world.bench.tables.rows)


def mixed(world: World, *long: bytes) -> None:
    """By its first definition `one` is published, and `long` is held: it has too many chunks."""
    redefined(world, limits=Limits(max_chunks=1))
    world.send("one", 0, ONE, count=1)
    for seq, value in enumerate(long or (ONE, TWO)):
        world.send("long", seq, value)
    world.ingest()
    assert (ids(world), world.held()) == (["one"], {"long": {"too_large"}})


def test_comparing_and_promoting_leaves_each_id_once_and_the_positions_where_they_were(world: World) -> None:
    mixed(world)
    redefined(world, limits=Limits())
    stood = world.bench.tables.snapshots[-1].positions
    group = dict(world.bench.log.group)
    shown = preview(world, how=Carrying(failing={"one"}))
    assert [(i, to) for i, to, _ in shown.changes] == [("long", Change.NEWLY_PUBLISHED), ("one", Change.NEWLY_FAILING)]
    assert shown.promotion.says == "0 replaced, 1 newly published, 1 taken out"
    assert ids(world) == ["one"], "a preview publishes nothing"
    promote(world, shown, Carrying(failing={"one"}))
    assert (ids(world), world.held()) == (["long"], {"one": {"failed_expectation"}})
    head = world.bench.tables.snapshots[-1]
    assert (head.kind, head.positions) == (HeadKind.PROMOTE, stood)
    assert {p: at.offset for p, at in world.bench.log.group.items()} == {p: at.offset for p, at in group.items()}
    row = world.bench.tables.history[-1]
    assert (
        row.note
        == head.note
        == ("promote by ann, approved by bob: a limit (0 replaced, 1 newly published, 1 taken out)")
    )
    assert (row.kind, row.identity_balances, row.starts) == ("promote", True, {})


def test_a_replay_of_all_of_it_by_that_definition_changes_nothing_and_another_promotion_finds_nothing(
    world: World,
) -> None:
    mixed(world)
    redefined(world, limits=Limits())
    promote(world, preview(world))
    assert ids(world) == ["long", "one"]
    log, tables = world.bench.log, world.bench.tables
    back = plan_rewind(world.stream, Target(word="earliest"), log=log, tables=tables, who="eve", why="to see")
    apply_rewind(world.stream, back, accept_skip=False, log=log, tables=tables)
    world.ingest()
    assert (ids(world), world.held()) == (["long", "one"], {})
    with pytest.raises(Refused, match="there is nothing to promote"):
        preview(world)


def test_a_row_that_somebody_altered_is_replaced_by_what_the_log_says(world: World) -> None:
    two_published(world)
    alter(world, "w", samples=OTHER + OTHER)
    shown = preview(world)
    assert [(i, to) for i, to, _ in shown.changes] == [("w", Change.DIFFERS)]
    promote(world, shown)
    assert world.published() == {"v": ONE + TWO, "w": ONE + TWO}


def test_what_is_taken_out_is_held_and_published_again_once_the_definition_lets_it(world: World) -> None:
    two_published(world)
    redefined(world, limits=Limits(max_chunks=1))
    promote(world, preview(world))
    assert (ids(world), world.held()) == ([], {"v": {"too_large"}, "w": {"too_large"}})
    redefined(world, limits=Limits())
    world.decide(HeldAction.REDRIVE, "v", "w")
    assert (world.published(), world.held()) == ({"v": ONE + TWO, "w": ONE + TWO}, {})


def test_what_was_held_before_it_was_published_counts_as_held_again_once(world: World) -> None:
    """Its rows in the held table were released by the row that goes."""
    world.send("w", 0, ONE)
    world.ingest()
    world.send("w", 1, TWO)
    world.ingest()
    assert (ids(world), world.held()) == (["w"], {})
    redefined(world, limits=Limits(max_chunks=1))
    promote(world, preview(world))
    assert (ids(world), world.held()) == ([], {"w": {"too_large"}})


def test_an_ingest_in_between_does_not_matter_unless_it_publishes_one_of_these(world: World) -> None:
    mixed(world)
    redefined(world, limits=Limits())
    shown = preview(world)
    world.send("later", 0, ONE, count=1)
    world.ingest()
    promote(world, shown)
    assert ids(world) == ["later", "long", "one"]


def test_what_was_decided_meanwhile_voids_it_by_name(world: World) -> None:
    mixed(world)
    redefined(world, limits=Limits())
    shown = preview(world)
    world.decide(HeldAction.REDRIVE, "long")
    with pytest.raises(Refused, match=r"1 of these 1 waveforms are not what was shown any more, first long .*preview"):
        promote(world, shown)
    assert ids(world) == ["long", "one"]


def test_what_comes_after_it_was_approved_of_voids_it_right_before_the_commit(world: World) -> None:
    mixed(world)
    redefined(world, limits=Limits())
    mine = edges(world)
    plan = begin_approved(mine, preview(world).plan.plan_id, by="bob")
    world.send("long", 1, OTHER)
    world.ingest()
    before = list(world.bench.tables.snapshots)
    with pytest.raises(Refused, match=r"1 of these 1 waveforms are not what was shown any more, first long "):
        carry_promotion(mine, plan)
    assert (world.bench.tables.snapshots, ids(world)) == (before, ["one"])


def test_a_row_that_came_or_went_since_it_was_begun_voids_it_right_before_the_commit_too(world: World) -> None:
    """Though it would be the very row that was shown: somebody else has decided about that waveform."""
    mixed(world)
    redefined(world, limits=Limits())
    mine = edges(world)
    plan = begin_approved(mine, preview(world).plan.plan_id, by="bob")
    world.decide(HeldAction.REDRIVE, "long")
    before = list(world.bench.tables.snapshots)
    with pytest.raises(Refused, match=r"1 of these 1 waveforms are not what was shown any more, first long "):
        carry_promotion(mine, plan)
    assert world.bench.tables.snapshots == before


def test_what_an_election_cut_off_is_not_taken_out_for_what_lies_in_its_place(world: World) -> None:
    """Records that nobody has published lie where the row says that its chunks do, one of them none at all."""
    two_published(world)
    world.bench.log.truncate(Partition(0), Offset(0))
    world.send("x", 0, ONE, count=1)
    for n in range(5):
        world.bench.log.append(Partition(0), T, b"x", (("ws-version", b"2"), ("ws-crc", b"%08x" % n)), b"none")
    redefined(world, limits=Limits(max_chunks=1))
    with pytest.raises(Refused, match="nothing to promote"):
        preview(world, span(0, 0, 4), how=Carrying(failing={"w"}))
    assert ids(world) == ["v", "w"]


def test_of_two_chunks_that_are_alike_each_is_read_before_their_row_is_taken_out(world: World) -> None:
    """A flat line: the second lay where the log was cut off since it was shown."""
    for waveform_id in ("v", "w"):
        for seq in range(2):
            world.send(waveform_id, seq, ONE)
    world.ingest()
    redefined(world, limits=Limits(max_chunks=1))
    shown = preview(world)
    world.bench.log.truncate(Partition(0), Offset(3))
    world.send("x", 0, OTHER, count=1)
    with pytest.raises(Refused, match=r"1 of these 2 waveforms are not what was shown any more, first w "):
        carry_promotion(edges(world), begin_approved(edges(world), shown.plan.plan_id, by="bob"))
    assert ids(world) == ["v", "w"]


def test_a_rewind_another_definition_and_a_log_that_lost_some_of_it_void_it(world: World) -> None:
    two_published(world)
    redefined(world, limits=Limits(max_chunks=1))
    shown = preview(world)
    before = world.stream
    redefined(world, allowed_lateness=7200)
    with pytest.raises(Refused, match=r"its definition says otherwise of allowed_lateness than when this"):
        promote(world, shown)
    world.stream = before
    world.bench.log.retain_from(Partition(0), Offset(1))
    with pytest.raises(Refused, match=r"partition 0 \[0, 4\) was compared, and is not in the log any more"):
        promote(world, shown)
    log, tables = world.bench.log, world.bench.tables
    back = plan_rewind(world.stream, Target(word="earliest"), log=log, tables=tables, who="eve", why="to see")
    apply_rewind(world.stream, back, accept_skip=True, log=log, tables=tables)
    with pytest.raises(Fenced, match="somebody rewound since"):
        promote(world, shown)
    assert ids(world) == ["v", "w"]


def test_a_partition_that_a_broker_does_not_show_yet_is_no_log_that_lost_what_was_compared(world: World) -> None:
    world.bench.log.add_partition()
    send_chunk(world.bench.log, "x", 0, ONE, at_ms=T, start_ms=T, count=1, partition=1)
    two_published(world)
    redefined(world, limits=Limits(max_chunks=1))
    shown = preview(world)
    world.bench.log.lag(9, shows=1)
    with pytest.raises(Transient, match="shows no partition 1 of topic waves"):
        promote(world, shown)
    world.bench.log.lag(0, shows=0)
    promote(world, shown)
    assert ids(world) == ["x"]


def test_what_it_cannot_replace_whole_is_passed_over_with_the_reason(world: World) -> None:
    two_published(world)
    for value in (TWO, OTHER):
        world.send("two truths", 1, value)
    world.send("two truths", 0, ONE)
    world.ingest()
    world.send("w", 1, OTHER)
    world.ingest()
    assert world.held()["w"] == {"conflict"}
    redefined(world, limits=Limits(max_chunks=1))
    shown = preview(world)
    assert ([i for i, *_ in shown.changes], dict(shown.passed_over)) == (
        ["v"],
        {"w": "chunks of it are held as conflict; decide about them first"},
    )
    promote(world, shown)
    assert ids(world) == ["w"]


def test_part_of_a_row_is_no_reason_to_take_it_out(world: World) -> None:
    two_published(world)
    redefined(world, limits=Limits(max_chunks=1))
    with pytest.raises(Refused, match="nothing to promote"):
        preview(world, span(0, 0, 1))


def test_what_lacks_only_the_record_that_says_how_many_chunks_it_has_is_no_reason_either(world: World) -> None:
    world.send("w", 0, ONE, count=None)
    world.send("w", 0, ONE, count=1)
    world.ingest()
    assert ids(world) == ["w"]
    with pytest.raises(Refused, match="nothing to promote"):
        preview(world, span(0, 0, 1))


def test_more_than_a_batch_and_no_reason_are_refused(world: World) -> None:
    two_published(world)
    redefined(world, limits=Limits(max_chunks=1, max_batch_records=2))
    with pytest.raises(Refused, match=r"the promote covers 4 offsets .* take a smaller interval"):
        preview(world)
    mine, comparing = edges(world), FakeComparing(world.bench, world.stream, world.now_ms, Carrying())
    with pytest.raises(BadInput, match="say why"):
        preview_promotion(mine, comparing, VerifyRequest(), who="ann", why=" ", watcher=Silent())


def test_carried_through_twice_or_taken_up_as_a_plan_it_is_one_commit(world: World) -> None:
    two_published(world)
    redefined(world, limits=Limits(max_chunks=1))
    shown = preview(world)
    promote(world, shown)
    before = list(world.bench.tables.snapshots)
    promote(world, shown)
    plan_id = world.bench.tables.snapshots[-1].plan_id
    run_batch(edges(world), RunOptions(plan_id=plan_id), watcher=Silent())
    assert world.bench.tables.snapshots == before
    assert world.held() == {"v": {"too_large"}, "w": {"too_large"}}


class TestUndo:
    def test_it_puts_back_what_was_there_and_holds_what_was_held(self, world: World) -> None:
        mixed(world)
        before, held, mark = world.published(), world.held(), world.mark()
        redefined(world, limits=Limits())
        failing = Carrying(failing={"one"})
        promote(world, preview(world, how=failing), failing)
        assert (ids(world), world.held()) == (["long"], {"one": {"failed_expectation"}})
        undo(world)
        assert (world.published(), world.held()) == (before, held)
        assert (world.mark().counts, world.mark().chunk_bytes) == (mark.counts, mark.chunk_bytes)
        head = world.bench.tables.snapshots[-1]
        assert head.note == "taken back by cal: a mistake (0 replaced, 1 newly published, 1 taken out before)"
        world.send("later", 0, ONE, count=1)
        world.ingest()
        assert [row.note for row in world.bench.tables.history if row.kind == "promote"][-1] == head.note

    def test_what_was_published_or_promoted_since_is_undone_first(self, world: World) -> None:
        two_published(world)
        redefined(world, limits=Limits(max_chunks=1))
        promote(world, preview(world))
        plan_id = world.bench.tables.snapshots[-1].plan_id
        redefined(world, limits=Limits())
        world.decide(HeldAction.REDRIVE, "v")
        with pytest.raises(Refused, match=r"1 of the 2 waveforms of batch .* are not as it left them, first v:"):
            undo(world, plan_id)
        assert ids(world) == ["v"]

    def test_an_ingest_in_between_does_not_matter_and_one_while_it_is_looked_at_does(self, world: World) -> None:
        two_published(world)
        redefined(world, limits=Limits(max_chunks=1))
        promote(world, preview(world))
        plan_id = world.bench.tables.snapshots[-1].plan_id
        world.send("later", 0, ONE, count=1)
        world.ingest()
        shown = plan_taking_back(edges(world), plan_id, who="cal", why="")
        world.send("last", 0, ONE, count=1)
        world.ingest()
        with pytest.raises(Refused, match=r"somebody committed since this was worked out; nothing was changed"):
            take_back(edges(world), shown)
        undo(world, plan_id)
        assert ids(world) == ["last", "later", "v", "w"]

    def test_once_maintenance_has_let_go_of_what_was_before_it_says_the_other_way(self, world: World) -> None:
        two_published(world)
        redefined(world, limits=Limits(max_chunks=1))
        promote(world, preview(world))
        world.bench.tables.drop_snapshots({h.snapshot_id for h in world.bench.tables.snapshots[:-1]})
        with pytest.raises(Refused, match=r"let go of the snapshot before .* promote the range again by it"):
            undo(world)

    def test_where_maintenance_lets_it_go_meanwhile_it_says_to_look_again(self, world: World) -> None:
        two_published(world)
        redefined(world, limits=Limits(max_chunks=1))
        promote(world, preview(world))
        plan_id = world.bench.tables.snapshots[-1].plan_id
        shown = plan_taking_back(edges(world), plan_id, who="cal", why="")
        world.bench.tables.drop_snapshots({h.snapshot_id for h in world.bench.tables.snapshots[:-1]})
        with pytest.raises(Transient, match="was let go since it was looked at"):
            take_back(edges(world), shown)
        assert ids(world) == []

    def test_what_would_be_neither_published_nor_held_is_refused(self, world: World) -> None:
        mixed(world)
        redefined(world, limits=Limits())
        promote(world, preview(world))
        tables = world.bench.tables
        tables.rewrite_held(tables.snapshots[-1], range(len(tables.held_rows())), note="released rows go")
        with pytest.raises(Refused, match=r"1 waveforms would be neither published nor held, first long"):
            undo(world, tables.snapshots[-2].plan_id)

    def test_one_chunk_does_not_vouch_for_another_that_is_like_it(self, world: World) -> None:
        mixed(world, ONE, ONE)
        redefined(world, limits=Limits())
        promote(world, preview(world))
        tables = world.bench.tables
        second = [n for n, row in enumerate(tables.held_rows()) if row.held.chunk.seq == 1]
        tables.rewrite_held(tables.snapshots[-1], second, note="one released row goes")
        with pytest.raises(Refused, match=r"1 waveforms would be neither published nor held, first long"):
            undo(world, tables.snapshots[-2].plan_id)


def undo(world: World, plan_id: str | None = None) -> None:
    mine = edges(world)
    found = plan_undo(mine, committed_stages(mine, plan_id), who="cal", why="a mistake")
    assert isinstance(found, TakingBack)
    take_back(mine, found)
    world.check()
