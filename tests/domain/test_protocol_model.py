"""The exhaustive model holds within small budgets, finds out every dropped rule, and says the same as the product."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from itertools import product as every
from typing import Any, cast

import pytest

from tests.builders.heads import make_head
from tests.builders.plans import make_plan
from tests.builders.ranges import span
from tests.builders.records import letter, metadata
from tests.builders.streams import make_stream
from tests.domain.effort import FACTOR
from tests.fakes.batch import facts_of
from tests.fakes.kept_partition import Record
from tests.fakes.way_out import way_out
from tests.model import exploration as model
from tests.model import rules
from tests.model.actors import Actors
from tests.model.rules import Deciding, doubted, fenced, offered, projects, reconciles
from tests.model.world import WAVES, Choice, Group, Groups, Head, Held, Made, Place, Run, State, World
from wavestitch.batch.backlog import refuse_overtaken
from wavestitch.batch.held_decision import why_not
from wavestitch.batch.held_waveforms import HeldWaveform
from wavestitch.batch.rewind import _moves
from wavestitch.batch.rewind_target import Sight, wanted_offsets
from wavestitch.contracts.accepted_skip import not_accepted
from wavestitch.contracts.assembly import ChunkFacts
from wavestitch.contracts.batch_stages import stages_of
from wavestitch.contracts.decision import Evidence, Stitched, decide
from wavestitch.contracts.disagreement import find_disagreement, next_generation
from wavestitch.contracts.errors import DataLost, Fenced
from wavestitch.contracts.held import HeldChunk, PublishedChunk, PublishedWaveform, effective_held
from wavestitch.contracts.held_choice import HeldAction, HeldChoice
from wavestitch.contracts.plan import Plan, PlanKind
from wavestitch.contracts.ports import PartitionEnds, TopicView
from wavestitch.contracts.position import GroupOffset, Position, Tag
from wavestitch.contracts.position import Head as ProductHead
from wavestitch.contracts.protocol import check_fence, may_project, reconcile
from wavestitch.contracts.quantities import EpochMs, Generation, Offset, Partition
from wavestitch.contracts.reasons import Reason
from wavestitch.contracts.stages import RewindTo, opposites
from wavestitch.contracts.stream import Stream
from wavestitch.contracts.undone_decision import not_undone_by

START_MS = 1_700_000_000_000
STREAM = make_stream("waves", group="waves-batches")
REACHED = {
    "runs": 50_000,
    "catalogs": 96_000,
    "held": 40_000,
    "decisions beside ingests": 30_000,
    "gates": 30_000,
    "gates beside backfills": 25_000,
    "gates beside decisions": 70_000,
    "partitions": 100_000,
    "partitions of catalogs": 40_000,
    "undo of decisions": 14_500,
    "undo of batches": 11_000,
    "retention": 145_000,
    "retention of partitions": 54_000,
    "retention beside decisions": 69_000,
    "retention at a closed gate": 22_000,
    "retention beside catalogs": 4_700,
}
DEEP = {
    "runs": model.Budget(),
    "catalogs": model.SCENARIOS["catalogs"].budget._replace(records=4),
    "held": model.SCENARIOS["held"].budget._replace(runs=2),
    "gates": model.SCENARIOS["gates"].budget._replace(decisions=1),
    "retention": model.SCENARIOS["retention"].budget._replace(retentions=2),
    "retention beside decisions": model.SCENARIOS["retention beside decisions"].budget._replace(rewinds=1),
}

MORE = {"a longer log": model.Scenario(WAVES, model.Budget(runs=2, expiries=0))}
DECIDED = {"a longer log": 70, "held": 100, "decisions beside ingests": 60, "gates": 20, "partitions": 60}
"""What the product decides, too, and of how much at least."""


@cache
def explored(name: str) -> tuple[model.Found, frozenset[tuple[Head, Run]]]:
    """A scenario to its end, and, where the product is to decide it, too, all that its runs had to decide on."""
    scenario, seen = {**model.SCENARIOS, **MORE}[name], set[tuple[Head, Run]]()
    if FACTOR > 1 and name in DEEP:
        scenario = model.Scenario(scenario.world, DEEP[name])

    def remember(s: State) -> None:
        for run in s.runs:
            if run.step == "planned":
                head = Head(1, 1, run.starts, s.head.published, s.head.held)
                choice = run.choice and run.choice._replace(among=frozenset(), meant=())
                plain = Run(run.kind, "planned", 1, 1, run.starts, run.ends, 1, gate=run.gate, choice=choice)
                seen.add((head, plain._replace(mended=run.mended)))

    return model.explore(scenario, look=remember if name in DECIDED else None), frozenset(seen)


@pytest.mark.parametrize("name", model.SCENARIOS)
def test_no_interleaving_breaks_an_invariant(name: str) -> None:
    found, _ = explored(name)
    assert not found.violation, f"{found.violation} after {' > '.join(found.way)}"
    assert found.whole
    assert found.states > REACHED[name], "the budget no longer reaches what it reached"


@pytest.mark.parametrize(("name", "dropped"), [(n, d) for n, s in model.SCENARIOS.items() for d in s.mutants])
def test_a_dropped_rule_is_found_out(name: str, dropped: str) -> None:
    assert model.explore(model.SCENARIOS[name], dropped, most=100_000).violation


def head_of(small: Head) -> ProductHead:
    positions = {p: Position(Offset(at)) for p, at in enumerate(small.positions)}
    return make_head(sequence=small.sequence, generation=small.generation, positions=positions, snapshot_id=1)


def group_of(small: Groups) -> dict[Partition, GroupOffset | None]:
    return {Partition(p): _offset_of(g) for p, g in enumerate(small)}


def _offset_of(small: Group) -> GroupOffset | None:
    if small.offset is None:
        return None
    if small.tag is None:
        return GroupOffset(Offset(small.offset), "")
    table, generation, sequence = small.tag
    return GroupOffset(Offset(small.offset), Tag(f"{table}", Generation(generation), sequence).encode())


def small_heads() -> list[Head]:
    return [Head(s, g, (p,)) for s, g, p in every(range(3), range(3), range(4))]


def small_groups() -> list[Groups]:
    """Of one partition, whatever it may show, and of two, a few."""
    tags = [None, *every(range(2), range(3), range(3))]
    one = [Group(None, None), *(Group(o, t) for o in range(4) for t in tags)]
    few = [Group(None, None), Group(0, None), Group(1, (0, 1, 1)), Group(2, (0, 1, 2)), Group(1, (1, 0, 1))]
    return [*((g,) for g in one), *every(few, few)]


def test_reconciling_and_projecting_follow_the_model() -> None:
    for head, group in every(small_heads(), small_groups()):
        here = head._replace(positions=head.positions * len(group))
        assert may_project(head_of(here), group_of(group), table="0") == projects(here, group)
        doubt = find_disagreement(head_of(here), group_of(group), table="0")
        assert ("" if doubt is None else doubt.doubt.value) == doubted(here, group), f"{here} {group}"
        if doubt is not None:
            assert next_generation(head_of(here), group_of(group), table="0") == rules.next_generation(here, group)
            continue
        reset = [(g.offset, at) for g, at in zip(group, here.positions, strict=True) if g.tag is None]
        if any(offset is not None and offset > at for offset, at in reset):
            continue  # a forward reset: the product refuses it, the model has none
        for on_reset in ("adopt", "refuse"):
            if on_reset == "refuse" and any(offset not in (None, at) for offset, at in reset):
                continue
            found = reconcile(head_of(here), group_of(group), on_reset=cast(Any, on_reset), stream="waves")
            said = "adopt" if found.adopt else "project" if found.project else ""
            assert said == reconciles(here, group), f"{here} {group}"
            if found.adopt:
                assert found.adopt.generation == here.generation + 1
                for p, g in enumerate(group):
                    taken_over = g.offset if g.tag is None and g.offset is not None else here.positions[p]
                    assert found.adopt.positions[Partition(p)].next_offset == taken_over


def plan_of(run: Run, *, stream: Stream = STREAM) -> Plan:
    read = [(p, s, e) for p, (s, e) in enumerate(zip(run.starts, run.ends, strict=True)) if e > s]
    chosen = run.choice
    choice = None
    if chosen is not None:
        pick = "last" if chosen.action == "pick" else ""
        choice = HeldChoice(HeldAction(chosen.action), (chosen.waveform,), "ops", "to see", pick)
    return make_plan(
        kind=PlanKind(run.kind),
        stream=stream,
        partitions=len(run.starts),
        ranges=tuple(span(*r) for r in read),
        units=(),
        positions={p: Position(Offset(at)) for p, at in enumerate(run.starts)},
        ends={p: Position(Offset(at)) for p, at in enumerate(run.ends)},
        generation=run.generation,
        base_sequence=0,
        base_snapshot=1,
        watermark_ms=0,
        clock_ms=START_MS,
        choice=choice,
    )


def test_the_fence_follows_the_model() -> None:
    parts = [(0, 0), (0, 2), (1, 2)]
    for kind, generation, head_generation, start, stands in every(
        ("ingest", "backfill"), range(3), range(3), parts, parts
    ):
        run, head = Run(kind, "staged", 0, generation, start, (4, 4), 1), Head(2, head_generation, stands)
        try:
            check_fence(plan_of(run), head_of(head), base_in_ancestry=True)
            let_through = True
        except Fenced:
            let_through = False
        assert let_through is not fenced(run, head), f"{run} on {head}"


def test_what_retention_took_is_refused_and_named_as_in_the_model() -> None:
    """An ingest goes on nowhere before the log's beginning; the way out that it names gives up what is gone, and no
    more, and moves no other partition."""
    places = [*every(range(3), range(3))]
    for stands, starts in every(places, places):
        small = Head(1, 1, stands)
        ends = {Partition(p): PartitionEnds(Offset(at), Offset(4), Offset(4), None) for p, at in enumerate(starts)}
        gone = rules.behind_the_cut(small, (Group(None, None),) * 2, starts)
        try:
            refuse_overtaken(STREAM, {Partition(p): Offset(at) for p, at in enumerate(stands)}, ends)
        except DataLost as error:
            way = way_out(error.message)
            assert way is not None
        else:
            assert not gone
            continue
        topic = TopicView("waves", "topic", tuple(ends), False, 0, "producer")
        sight = Sight(STREAM, head_of(small), topic, ends, {}, "0")
        wanted = wanted_offsets(way.target, sight, log=cast(Any, None), tables=cast(Any, None))
        moves, skipped = _moves(sight, way.target, wanted, cuts={})
        assert {p: to for p, (_, to) in moves.items() if to != stands[p]} == gone
        expected = Actors()._set(small, tuple(gone.get(p, at) for p, at in enumerate(stands))).skipped
        assert {(r.partition, o) for r in skipped for o in range(r.start, r.end)} == expected
        assert not not_accepted(skipped, way.accepts)


def facts(world: World) -> dict[Place, ChunkFacts]:
    """The model's log, as real records."""
    meta, found = metadata(START_MS), {}
    for p, records in enumerate(world.log):
        for o, r in enumerate(records):
            one = letter(r.waveform, r.seq, bytes([ord(r.copy), r.seq]), meta=meta, count=world.chunks[r.waveform])
            found[p, o] = facts_of(Record("topic", Partition(p), Offset(o), START_MS, *one), p, o)
    return found


def held_chunks(head: Head, known: dict[Place, ChunkFacts]) -> list[HeldChunk]:
    return [
        HeldChunk(
            known[h.place]._replace(carried=True, topic_id="topic"),
            reason_of(h.reason),
            "",
            "d",
            1,
            before=reason_of(h.before) if h.before else None,
        )
        for h in sorted(head.held)
    ]


def reason_of(text: str) -> Reason:
    return Reason.FAILED_EXPECTATION if text == "failed" else Reason(text)


def published_waveforms(world: World, head: Head, known: dict[Place, ChunkFacts]) -> dict[str, PublishedWaveform]:
    copy_of = {(r.waveform, r.seq, r.copy): known[p] for p in known for r in [world.at(p)]}
    return {
        w: PublishedWaveform(
            w,
            tuple(
                PublishedChunk(c.partition, c.offset, c.length, c.piece)
                for c in (copy_of[w, seq, copy] for seq, copy in enumerate(copies))
            ),
        )
        for w, copies in head.published
    }


@pytest.mark.parametrize(("name", "least"), DECIDED.items())
def test_deciding_follows_the_model(name: str, least: int) -> None:
    """Whatever is published and held, read and chosen: the product publishes and holds the same, and says as much."""
    (found, seen), world = explored(name), {**model.SCENARIOS, **MORE}[name].world
    assert found.whole
    assert len(seen) > least
    known = facts(world)
    for head, run in seen:
        expected = Deciding(world, run, head)
        mine, published = held_chunks(head, known), published_waveforms(world, head, known)
        decided = decide(
            plan_of(run),
            Evidence(
                [known[p] for p in run.places],
                dict.fromkeys(map(Partition, range(len(world.log))), EpochMs(START_MS)),
                {w: Stitched(None, "") for w in world.chunks},
                failed={} if run.mended else dict.fromkeys(world.failing, ("it fails",)),
                park=run.gate == "park",
            ),
            head=head_of(head),
            held=mine,
            published=published,
        )
        where = f"{run} on {head}"
        assert set(decided.publish) == expected.publish.keys(), where
        rows = [HeldChunk(h.chunk._replace(topic_id="topic"), h.reason, "", "e", 2) for h in decided.holds]
        now = head._replace(published=head.published | frozenset(expected.publish.items()))
        after = effective_held([*mine, *rows], published=published_waveforms(world, now, known))
        assert {((h.chunk.partition, h.chunk.offset), h.reason, h.before) for h in after} == {
            (h.place, reason_of(h.reason), reason_of(h.before) if h.before else None) for h in expected.held.values()
        }, where


def test_what_is_offered_about_held_waveforms_follows_the_model() -> None:
    world, seen = model.SCENARIOS["held"].world, {head for head, _ in explored("held")[1]}
    known = facts(world)
    for head, waveform in every(seen, world.chunks):
        mine = [h for h in held_chunks(head, known) if h.chunk.waveform_id == waveform]
        if mine:
            states = tuple(h.reason for h in mine)
            one = HeldWaveform(waveform, tuple(mine), states, waveform in head.bytes_of)
            for action in HeldAction:
                problem = why_not(one, action, STREAM, "last" if action is HeldAction.PICK else "")
                assert (problem == "") is (action.value in offered(world, head, waveform)), (
                    f"{action} {waveform} {head}"
                )


def test_a_held_row_of_the_model_says_why_it_was_held_before() -> None:
    """The least of the decisions, by hand: what is discarded and restored is held as it was."""
    world = model.SCENARIOS["held"].world
    head = Head(1, 1, (3,), held=frozenset({Held((0, 2), "failed")}))
    gone = Deciding(world, Run("held", "planned", 1, 1, (3,), (3,), 1, choice=Choice("discard", "F")), head)
    assert list(gone.held.values()) == [Held((0, 2), "discarded", "failed")]
    after = head._replace(held=frozenset(gone.held.values()))
    back = Deciding(world, Run("held", "planned", 2, 1, (3,), (3,), 2, choice=Choice("restore", "F")), after)
    assert list(back.held.values()) == [Held((0, 2), "failed")]


def test_what_undo_takes_back_follows_the_model() -> None:
    """Of a decision: whether its opposite touches what it changed, and nothing else. Of a batch: where it began."""
    scenario, met, planned = model.SCENARIOS["undo of decisions"], set[tuple[frozenset[Held], Made]](), set[Run]()

    def look(s: State) -> None:
        met.update((s.head.held, made) for made in s.head.made if made.action in rules.OPPOSITES)

    assert model.explore(scenario, look=look).whole
    known, seen = facts(scenario.world), set[bool]()
    for held, made in met:
        head = Head(1, 1, (2,), held=held)
        rows = [replace(c, decision=str(h.by)) for c, h in zip(held_chunks(head, known), sorted(held), strict=True)]
        gone = [
            replace(rows[0], chunk=known[h.place]._replace(carried=True, topic_id="topic"), decision=str(h.by))
            for h in made.rows
            if h not in held
        ]
        action = HeldAction(rules.OPPOSITES[made.action])
        others = not_undone_by(action, decision=str(made.number), rows=[*gone, *rows], held=rows)
        touches = any((h.reason == "discarded") is (action is HeldAction.RESTORE) for h in held)
        assert (touches and not others) is rules.takes_back(scenario.world, head, made), f"{made} on {held}"
        seen.add(not others)
    assert seen == {True, False}

    def begun(s: State) -> None:
        planned.update(run for run in s.runs if run.moves and run.step == "planned")

    model.explore(model.SCENARIOS["undo of batches"], look=begun)
    for run in planned:
        back = rules.began(run)
        found = opposites(stages_of(plan_of(run)))[0]
        assert isinstance(found, RewindTo)
        assert found.offsets == dict(back), run
