"""The exhaustive model holds within a small budget, finds out every dropped rule, and says the same as the product."""

from __future__ import annotations

from itertools import product as every

import pytest

from tests.builders.records import cut, metadata
from tests.domain.effort import FACTOR
from tests.memory.batch import facts_of
from tests.memory.memory_log import Record
from tests.model import protocol as model
from wavestitch.contracts.decision import Evidence, Stitched, decide
from wavestitch.contracts.disagreement import find_disagreement, next_generation
from wavestitch.contracts.errors import Fenced
from wavestitch.contracts.held import HeldChunk, PublishedChunk, PublishedWaveform
from wavestitch.contracts.offset_range import OffsetRange
from wavestitch.contracts.plan import Plan, PlanKind
from wavestitch.contracts.position import GroupOffset, Head, HeadKind, Position, Tag
from wavestitch.contracts.protocol import check_fence, may_project, reconcile
from wavestitch.contracts.quantities import EpochMs
from wavestitch.contracts.reasons import Reason
from wavestitch.contracts.stream import Stream

SMALL = model.Budget(runs=2, records=4)
START_MS = 1_700_000_000_000
STREAM = Stream(name="waves", topic="waves", group="waves-batches")


def test_no_interleaving_of_two_runs_breaks_an_invariant() -> None:
    found = model.explore(budget=SMALL if FACTOR == 1 else model.Budget())
    assert not found.violation, f"{found.violation} after {' > '.join(found.way)}"
    assert found.whole
    assert found.states > 50_000, "the budget no longer reaches what it reached"


def test_no_catalog_that_is_copied_lost_or_exchanged_breaks_an_invariant() -> None:
    found = model.explore(budget=model.CATALOGS if FACTOR == 1 else model.CATALOGS._replace(records=4))
    assert not found.violation, f"{found.violation} after {' > '.join(found.way)}"
    assert found.whole
    assert found.states > 100_000, "the budget no longer reaches what it reached"


@pytest.mark.parametrize("dropped", model.CATALOG_MUTANTS)
def test_a_dropped_rule_about_catalogs_is_found_out(dropped: str) -> None:
    assert model.explore(dropped, model.CATALOGS, most=100_000).violation


@pytest.mark.parametrize("dropped", model.MUTANTS)
def test_a_dropped_rule_is_found_out(dropped: str) -> None:
    assert model.explore(dropped, SMALL._replace(records=5), most=50_000).violation


def head_of(small: model.Head) -> Head:
    positions = {0: Position(small.position)}
    return Head(small.sequence, small.generation, HeadKind.INGEST, "topic", positions, snapshot_id=1)


def group_of(small: model.Group) -> dict[int, GroupOffset | None]:
    if small.offset is None:
        return {0: None}
    if small.tag is None:
        return {0: GroupOffset(small.offset, "")}
    table, generation, sequence = small.tag
    return {0: GroupOffset(small.offset, Tag(f"{table}", generation, sequence).encode())}


def small_heads() -> list[model.Head]:
    return [model.Head(s, g, p) for s, g, p in every(range(3), range(3), range(4))]


def test_reconciling_and_projecting_follow_the_model() -> None:
    tags = [None, *every(range(2), range(3), range(3))]
    groups = [model.Group(None, None), *(model.Group(o, t) for o in range(4) for t in tags)]
    for head, group in every(small_heads(), groups):
        assert may_project(head_of(head), group_of(group), table="0") == model.projects(head, group)
        doubt = find_disagreement(head_of(head), group_of(group), table="0")
        assert ("" if doubt is None else doubt.doubt.value) == model.doubted(head, group), f"{head} {group}"
        if doubt is not None:
            known = group.tag[1] if group.tag is not None and group.tag[0] == 0 else 0
            assert next_generation(head_of(head), group_of(group), table="0") == max(head.generation, known) + 1
            continue
        if group.tag is None and (group.offset or 0) > head.position:
            continue  # a forward reset: the product refuses it, the model has none
        for on_reset in ("adopt", "refuse"):
            if on_reset == "refuse" and group.tag is None and group.offset not in (None, head.position):
                continue
            found = reconcile(head_of(head), group_of(group), on_reset=on_reset, stream="waves")
            said = "adopt" if found.adopt else "project" if found.project else ""
            assert said == model.reconciles(head, group), f"{head} {group}"
            if found.adopt:
                assert found.adopt.generation == head.generation + 1
                assert found.adopt.positions[0].next_offset == group.offset


def plan_of(*, ingest: bool, generation: int, start: int, end: int) -> Plan:
    return Plan(
        plan_id="plan",
        kind=PlanKind.INGEST if ingest else PlanKind.BACKFILL,
        stream=STREAM,
        topic_id="topic",
        partitions=1,
        ranges=(OffsetRange(0, start, end),),
        units=(),
        positions={0: Position(start)},
        ends={0: Position(end)},
        generation=generation,
        base_sequence=0,
        base_snapshot=1,
        held_snapshot=None,
        watermark_ms=EpochMs(0),
        clock_ms=EpochMs(START_MS),
        scope=None,
        why={},
        mean_record_bytes=1.0,
        code_version="test",
        nonce="",
    )


def test_the_fence_follows_the_model() -> None:
    for head, ingest, generation, start in every(small_heads(), (True, False), range(3), range(4)):
        run = model.Run(ingest, "staged", 0, generation, start, 4, 1)
        plan = plan_of(ingest=ingest, generation=generation, start=start, end=4)
        try:
            check_fence(plan, head_of(head), base_in_ancestry=True)
            let_through = True
        except Fenced:
            let_through = False
        assert let_through is not model.fenced(run, head), f"{run} on {head}"


def model_records() -> list[Record]:
    """The model's log, as real records."""
    meta = metadata(START_MS)
    cuts = {w: cut(w, [bytes([ord(w), s]) for s in range(n)], meta=meta) for w, n in model.CHUNKS.items()}
    return [Record("topic", 0, o, START_MS, *cuts[w][s]) for o, (w, s) in enumerate(model.RECORDS)]


def test_deciding_follows_the_model() -> None:
    """Whatever is published and held in the model, whatever the range: the product publishes and holds the same."""
    seen: set[tuple[frozenset[str], frozenset[int], int, int, bool]] = set()

    def remember(state: model.State) -> None:
        for run in state.runs:
            if run.step == "planned":
                seen.add((state.head.published, model.effective(state), run.start, run.end, run.ingest))

    assert model.explore(budget=model.Budget(runs=2, expiries=0), look=remember).whole
    assert len(seen) > 70
    facts = [facts_of(r, 0, r.offset) for r in model_records()]
    copies = {
        w: [next(f for f in facts if (f.waveform_id, f.seq) == (w, s)) for s in range(n)]
        for w, n in model.CHUNKS.items()
        if w != "C"
    }
    everything = {w: Stitched(None, "") for w in model.CHUNKS}
    for published, held, start, end, ingest in seen:
        head = head_of(model.Head(1, 1, start, published, frozenset()))
        decided = decide(
            plan_of(ingest=ingest, generation=1, start=start, end=end),
            Evidence(facts[start:end], {0: EpochMs(START_MS)}, everything),
            head=head,
            held=[HeldChunk(facts[o]._replace(carried=True), Reason.OPEN, "", "d", 1) for o in sorted(held)],
            published={
                w: PublishedWaveform(w, tuple(PublishedChunk(0, c.offset, c.length, c.piece) for c in copies[w]))
                for w in published
            },
        )
        state = model.State(
            end,
            model.Head(1, 1, start, published, frozenset({1})),
            frozenset((1, o) for o in held),
            model.Group(),
            (),
            0,
            SMALL,
        )
        run = model.Protocol()._decided(state, model.Run(ingest, "planned", 1, 1, start, end, 2))
        assert set(decided.publish) == run.publish, f"{published} {held} [{start}, {end})"
        assert {h.chunk.offset for h in decided.holds} | held == run.hold | held
