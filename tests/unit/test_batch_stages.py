"""What each stage of a batch, a rewind or a decision says that it will do, and what undoes it, to the word."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tests.builders.heads import at, make_head, make_row
from tests.builders.plans import make_plan
from tests.builders.ranges import span
from wavestitch.contracts.batch_stages import (
    BATCH,
    HELD,
    CommitHead,
    Publish,
    PutBack,
    ReadUnits,
    Reassemble,
    RecordHistory,
    Validate,
    kinds_of,
    stages_of,
)
from wavestitch.contracts.held_choice import HeldAction, HeldChoice
from wavestitch.contracts.plan import PlanKind
from wavestitch.contracts.position import HeadKind
from wavestitch.contracts.promotion import NO_ROW, Promotion
from wavestitch.contracts.quantities import Partition
from wavestitch.contracts.stages import DecideOn, RewindTo, TakeBack, Undoing

PLAN = make_plan()
HEAD = make_head(generation=3, kind=HeadKind.REWIND, positions={1: at(4), 0: at(9), 2: at(5)})
BASE = make_head(generation=2, positions={0: at(7), 2: at(5)})
PROMOTION = Promotion(("a", "b", "c"), ("was", "was", NO_ROW), ("made", NO_ROW, "made"), "ann", "why")


def decides(action: HeldAction, *ids: str) -> Any:
    return make_plan(kind=PlanKind.HELD, ranges=(), units=(), choice=HeldChoice(action, ids, "ann", "why"))


def back_to(places: Any) -> RewindTo:
    return RewindTo(places, "topic")


def test_a_head_says_what_moves_by_partition_and_nothing_of_what_stays() -> None:
    says = "commits a head of kind rewind, generation"
    assert CommitHead(BASE, HEAD).shows() == f"{says} 2 -> 3: 0:7 -> 9, 1:4"
    assert CommitHead(None, HEAD).shows() == f"{says} none -> 3: 0:9, 1:4, 2:5"
    assert CommitHead(HEAD, HEAD).shows() == f"{says} 3 -> 3: no position moves"


def test_a_head_is_undone_by_a_rewind_of_what_it_moved_to_where_that_stood() -> None:
    assert CommitHead(BASE, HEAD).opposite() == back_to({0: 7, 1: 0})
    gone = replace(BASE, positions={**BASE.positions, Partition(5): at(3)})
    assert CommitHead(gone, HEAD).opposite() == back_to({0: 7, 1: 0, 5: 3})
    assert CommitHead(HEAD, HEAD).opposite() is None
    assert CommitHead(None, HEAD).opposite() is None
    assert CommitHead(replace(BASE, topic_id="another"), HEAD).opposite() is None


def test_what_is_read_is_named_by_its_ranges() -> None:
    assert ReadUnits(PLAN).shows() == f"reads {span(0, 5, 9)} in 2 units, about {PLAN.estimated_bytes} bytes"
    nothing = make_plan(ranges=(), units=())
    assert ReadUnits(nothing).shows() == "reads nothing in 0 units, about 0 bytes"


def test_what_is_published_says_whether_positions_move_and_where_to() -> None:
    assert Publish(PLAN).shows() == f"{Publish.does}; positions move to 0:9"
    assert Publish(make_plan(ranges=(), units=())).shows() == f"{Publish.does}; no position moves"
    stays = make_plan(kind=PlanKind.MANUAL)
    assert Publish(stays).shows() == f"{Publish.does}; positions and what is held stay as they are"
    assert (
        Publish(decides(HeldAction.DISCARD, "a", "b")).shows()
        == f"{Publish.does}: discard of 2 waveforms; positions stay"
    )
    promotes = make_plan(kind=PlanKind.PROMOTE, choice=PROMOTION)
    assert (
        Publish(promotes).shows() == f"{Publish.does}: in the place of what is there, {PROMOTION.says}; positions stay"
    )


def test_what_was_published_is_undone_by_where_it_began_or_by_the_opposite_decision() -> None:
    assert Publish(PLAN).opposite() == back_to({0: 5})
    assert Publish(make_plan(ranges=(), units=())).opposite() is None
    assert Publish(make_plan(kind=PlanKind.MANUAL)).opposite() is None
    for action, opposite in ((HeldAction.DISCARD, HeldAction.RESTORE), (HeldAction.RESTORE, HeldAction.DISCARD)):
        plan = decides(action, "a", "b")
        assert Publish(plan).opposite() == DecideOn(opposite, ("a", "b"), plan.plan_id)
    assert Publish(decides(HeldAction.ACCEPT, "a")).opposite() is None
    promotes = make_plan(kind=PlanKind.PROMOTE, choice=PROMOTION)
    assert Publish(promotes).opposite() == TakeBack(promotes.plan_id)
    assert Publish(PLAN).irrevocable.how is Undoing.NEVER


def test_what_a_promotion_did_is_put_back_and_counted() -> None:
    says = "puts 2 rows back as they were, and takes 2 out; positions stay"
    assert PutBack(BASE, HEAD, 7, PROMOTION).shows() == says
    one = replace(PROMOTION, made=("made", NO_ROW, NO_ROW))
    assert PutBack(BASE, HEAD, 7, one).shows() == says.replace("takes 2", "takes 1")


def test_what_is_taken_up_and_asked_is_counted() -> None:
    assert Reassemble(PLAN).shows() == Reassemble.does
    assert Reassemble(decides(HeldAction.REDRIVE, "a")).shows() == f"takes up 1 held waveforms and {Reassemble.does}"
    assert Validate(PLAN).shows() == f"{Validate.does} ({len(PLAN.stream.expectations)} expectations)"
    assert (
        RecordHistory((make_row(sequence=3), make_row(sequence=4))).shows() == "writes the history rows of heads 3, 4"
    )


def test_a_decision_about_what_is_held_reads_nothing_and_writes_no_group() -> None:
    assert kinds_of(PlanKind.HELD) == HELD
    assert kinds_of(PlanKind.INGEST) == kinds_of(PlanKind.BACKFILL) == BATCH
    assert stages_of(PLAN) == tuple(stage(PLAN) for stage in BATCH)


def test_how_a_stage_is_undone_says_by_which_operation_and_of_how_much() -> None:
    def undone(stage: Any) -> str:
        return str(stage.undone())

    by = "(`wavestitch undo STREAM`)"
    assert undone(Publish(PLAN)) == f"undone by: a rewind to 0:5 {by}"
    assert undone(CommitHead(BASE, HEAD)) == f"undone by: a rewind to 0:7, 1:0 {by}"
    many = make_head(positions={p: at(5) for p in range(10)})
    moves = CommitHead(many, replace(many, positions={p: at(20) for p in many.positions}))
    assert undone(moves) == f"undone by: a rewind to {', '.join(f'{p}:5' for p in range(8))} and 2 more {by}"
    for action, opposite in ((HeldAction.DISCARD, "restore"), (HeldAction.RESTORE, "discard")):
        assert undone(Publish(decides(action, "a", "b"))) == f"undone by: `held {opposite}` of 2 waveforms {by}"
    promotes = make_plan(kind=PlanKind.PROMOTE, choice=PROMOTION)
    assert undone(Publish(promotes)) == f"undone by: the rows of before, put back as they were {by}"
    assert Publish(decides(HeldAction.ACCEPT, "a")).undone() == Publish(PLAN).irrevocable
