"""A backfill: the batches that its interval takes, those that read across their cuts, and what came of it by name.

    step_plan_backfill -> each batch through its stages -> step_plan_seams -> each of those -> step_close_backfill

The command line and Airflow carry it through these functions. It owns the waveforms that start in its interval, moves
no position and leaves what is held alone. What retention has taken is in the result; where nothing is there because of
it, the backfill fails by name (I8).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from wavestitch.batch.begin_planning import begin_planning
from wavestitch.batch.carry import NOTHING_READ, Carried, How, carry_through
from wavestitch.batch.edges import Edges
from wavestitch.batch.history import find_committed, history_of
from wavestitch.batch.plan import Links, PlanRequest, plan_links
from wavestitch.batch.run import RunOptions, Watcher
from wavestitch.batch.steps import finished
from wavestitch.batch.stream_state import load_state
from wavestitch.batch.walk import Walk
from wavestitch.contracts.assembly import ChunkFacts
from wavestitch.contracts.batch_stages import BATCH, KeepPlan, stages_of
from wavestitch.contracts.belief import Belief
from wavestitch.contracts.copies import are_published
from wavestitch.contracts.errors import DataLost
from wavestitch.contracts.held import HeldLook
from wavestitch.contracts.offset_range import OffsetRange
from wavestitch.contracts.plan import PlanKind, Scope
from wavestitch.contracts.reasons import Fate, Reason
from wavestitch.contracts.seams import across_cuts
from wavestitch.contracts.stages import Stage, Told, explain
from wavestitch.contracts.versioned import Versioned
from wavestitch.write_once import disk_errors

_NAMED = 20
_AGAIN = "run the task before this one again"


@dataclass(frozen=True, slots=True)
class BackfillPlanned:
    """The batches of a backfill, as plans that are kept, and how many offsets they read. `lost`: what the log has no
    more and no ingest has read, of what may have held the interval; `read_before`: what it has no more and an ingest
    has read: published or held. `nothing`: why there is nothing to read."""

    stream: str
    scope: Scope
    plans: tuple[str, ...]
    offsets: int
    estimated_bytes: int
    lost: tuple[OffsetRange, ...] = ()
    read_before: tuple[OffsetRange, ...] = ()
    nothing: str = ""
    remarks: tuple[str, ...] = ()
    stages: tuple[Told, ...] = ()


@dataclass(frozen=True, slots=True)
class Backfilled:
    """What a backfill did. `published`: waveforms; `replays`: chunks of waveforms that were published before;
    `reported`: chunks of those that it could not publish, and left; `incomplete`: some of the ids that lack chunks;
    `contradicted`: some of those of which copies say different things, published or not."""

    stream: str
    batches: int
    published: int
    replays: int
    reported: int
    incomplete: tuple[str, ...]
    lost: tuple[OffsetRange, ...]
    read_before: tuple[OffsetRange, ...]
    said: tuple[str, ...]
    contradicted: tuple[str, ...]


@disk_errors("planning")
def step_plan_backfill(edges: Edges, scope: Scope, *, apply: bool = True) -> BackfillPlanned:
    """Pin the inputs of all its batches. Without `apply` nothing is done."""
    return _planned(edges, PlanRequest(PlanKind.BACKFILL, scope), apply=apply)


@disk_errors("planning")
def step_plan_seams(edges: Edges, planned: BackfillPlanned) -> BackfillPlanned:
    """The batches that read waveforms together which no batch of the backfill had whole. Raises `Refused` where the
    topic was made anew since."""
    lacks = across_cuts(edges.parts(plan_id) for plan_id in planned.plans)
    found = lacks.beside(_held(edges, lacks.lacking)).together
    known = edges.tables.published(set(found))
    together = tuple(places for waveform_id, places in found.items() if waveform_id not in known)
    if not together:
        return BackfillPlanned(planned.stream, planned.scope, (), 0, 0)
    topic_id = edges.plan(planned.plans[0], committed=True).topic_id
    request = PlanRequest(PlanKind.BACKFILL, planned.scope, together=together, after=planned.plans, topic_id=topic_id)
    return _planned(edges, request, apply=True)


def _held(edges: Edges, ids: Sequence[str]) -> list[ChunkFacts]:
    """What is held of these waveforms and counts now."""
    if not ids:
        return []
    belief, look = Belief(edges.stream), HeldLook(ids=frozenset(ids))
    held = load_state(edges.tables, topic_id="", look=look).held
    return [h.chunk for h in held if h.reason is not Reason.DISCARDED and belief.believes(h)]


def _planned(edges: Edges, request: PlanRequest, *, apply: bool) -> BackfillPlanned:
    walk, by = begin_planning(edges, apply=apply)
    found = plan_links(edges.stream, request, walk=walk, by=by)
    for plan in found.plans:
        walk(KeepPlan(plan))
    return _told(edges, request, found, walk)


def _told(edges: Edges, request: PlanRequest, found: Links, walk: Walk) -> BackfillPlanned:
    scope = request.scope
    assert scope is not None, "a backfill has an interval"
    before: list[Stage] = [s for s in walk.stages if not isinstance(s, KeepPlan)]
    # Of the first of them: the others are like it.
    batch: list[Stage] = [s for plan in found.plans[:1] for s in (KeepPlan(plan), *stages_of(plan))]
    return BackfillPlanned(
        stream=edges.name,
        scope=scope,
        plans=tuple(plan.plan_id for plan in found.plans),
        offsets=sum(plan.records for plan in found.plans),
        estimated_bytes=sum(plan.estimated_bytes for plan in found.plans),
        lost=found.lost,
        read_before=found.read_before,
        nothing=found.nothing,
        remarks=(*found.remarks, *(found.plans[0].remarks if found.plans else ())),
        stages=explain((*before, *batch)),
    )


def step_close_backfill(edges: Edges, planned: BackfillPlanned, seams: BackfillPlanned | None) -> Backfilled:
    """What came of it. Raises `DataLost` where the interval is empty because its records are gone."""
    plans = [*planned.plans, *(seams.plans if seams is not None else ())]
    rows = [done.row for plan_id in plans if (done := find_committed(history_of(edges), plan_id)) is not None]
    incomplete, contradicted = _left(edges, planned, seams)
    lost = [*planned.lost, *(seams.lost if seams is not None else ())]
    read_before = [*planned.read_before, *(seams.read_before if seams is not None else ())]
    counts = {fate: sum(row.counts.get(fate.value, 0) for row in rows) for fate in Fate}
    published = sum(row.waveforms.get("published", 0) for row in rows)
    found = published + counts[Fate.REPLAY] + counts[Fate.REPORTED] + counts[Fate.DUPLICATE]
    if lost and not found:
        raise DataLost(
            f"stream {edges.name}: nothing is left of this interval: {_shown(lost)} of {edges.stream.topic} are gone "
            "from the log, no ingest that the table knows of has read them (of what was cut off: in the same leader "
            "epoch), or they were skipped or accepted as missing by name, and they may have held it. Nothing was "
            "published; what an earlier batch has published is there, the rest only a producer brings back that sends "
            "it again",
            lost=[list(r) for r in lost[:_NAMED]],
        )
    return Backfilled(
        stream=edges.name,
        batches=len(rows),
        published=published,
        replays=counts[Fate.REPLAY],
        reported=counts[Fate.REPORTED],
        incomplete=tuple(incomplete[:_NAMED]),
        lost=tuple(lost),
        read_before=tuple(read_before),
        said=(*_sentences(edges, planned, lost, read_before, incomplete), *_of_copies(edges, contradicted)),
        contradicted=tuple(contradicted[:_NAMED]),
    )


def _left(edges: Edges, planned: BackfillPlanned, seams: BackfillPlanned | None) -> tuple[list[str], list[str]]:
    """The waveforms that it could not publish, those aside that were refused: which lack chunks, and of which copies
    contradict each other or what is published."""
    last = [edges.parts(plan_id) for plan_id in (seams.plans if seams is not None else ())]
    found = across_cuts([*(edges.parts(plan_id) for plan_id in planned.plans), *last])
    known = edges.tables.published(found.copies.keys())
    refused = {part.waveform_id for parts in last for part in parts.parts if Reason.OPEN not in part.reasons}
    incomplete = [i for i in sorted({*found.together, *found.lacking} - refused) if i not in known]
    contradicted = [
        i
        for i, copies in found.copies.items()
        if (not are_published(copies, known[i]) if i in known else i in found.contradicted)
    ]
    return incomplete, contradicted


def _sentences(
    edges: Edges,
    planned: BackfillPlanned,
    lost: Sequence[OffsetRange],
    read_before: Sequence[OffsetRange],
    incomplete: Sequence[str],
) -> list[str]:
    said = [planned.nothing] if planned.nothing else []
    if lost:
        said.append(
            f"{_shown(lost)} are gone from the log, and no ingest that the table knows of has read them (of what was "
            "cut off: in the same leader epoch), or they were skipped or accepted as missing by name: they may have "
            "held waveforms of this interval, and what no earlier batch has published of it is lost"
        )
    if read_before:
        said.append(
            f"{_shown(read_before)} are gone from the log; ingests had read them: what was whole then is published, "
            f"the rest is held (`wavestitch held {edges.name}`), of records that were no chunks to them the bytes as "
            "far as limits.max_junk_bytes let them"
        )
    if incomplete:
        said.append(f"{len(incomplete)} waveforms of the interval are not whole, and were left as they are")
    return [*said, *planned.remarks]


def _of_copies(edges: Edges, contradicted: Sequence[str]) -> list[str]:
    if not contradicted:
        return []
    named = ", ".join(map(repr, contradicted[:_NAMED])) + (" …" if len(contradicted) > _NAMED else "")
    return [
        f"{len(contradicted)} waveforms of the interval were sent with other bytes, or with another word about the "
        f"whole, or are held or published so: of those no copy was taken but by the batch that published it ({named}); "
        f"have their producer send them under new ids, or let an ingest read them (`wavestitch rewind {edges.name}`) "
        f"and pick one (`wavestitch held {edges.name} pick`)"
    ]


def _shown(ranges: Sequence[OffsetRange]) -> str:
    shown = ", ".join(str(r) for r in ranges[:_NAMED])
    return shown if len(ranges) <= _NAMED else f"{shown} and {len(ranges) - _NAMED} more"


PLANNED = Versioned(BackfillPlanned, "a planned backfill", _AGAIN)
BACKFILLED = Versioned(Backfilled, "the result of a backfill", _AGAIN)


def run_backfill(edges: Edges, scope: Scope, options: RunOptions, *, watcher: Watcher) -> Backfilled:
    """Carry all of it through in this process tree."""
    watcher.begin("plan")
    planned = step_plan_backfill(edges, scope)
    _carry_all(edges, planned, options, watcher)
    watcher.begin("plan across cuts")
    seams = step_plan_seams(edges, planned)
    _carry_all(edges, seams, options, watcher)
    done = step_close_backfill(edges, planned, seams)
    for said in done.said:
        watcher.say(said)
    return done


def _carry_all(edges: Edges, planned: BackfillPlanned, options: RunOptions, watcher: Watcher) -> None:
    for plan_id in planned.plans:
        if finished(edges, plan_id) is None:
            total = edges.plan(plan_id).records
            how = How(options.gate, options.why, watcher=watcher)
            carry_through(BATCH, edges, Carried(plan_id, (NOTHING_READ,)), how, total=total, after=options.after_step)
