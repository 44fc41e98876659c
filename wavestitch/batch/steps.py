"""The way of a batch, as six plain functions: the only place where its order and its conditions are written down.

    step_plan -> step_read (side by side) -> step_reassemble -> step_validate -> step_publish -> step_commit_offsets

The command line, Airflow and the tests' worlds carry a batch through these same functions, over edges of their own.
Each can be carried through again: whether its plan is finished is asked first, in one place, by every step; a committed
plan is finished, whatever else is gone.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Concatenate, ParamSpec, TypeVar

from wavestitch.batch.begin_planning import begin_planning
from wavestitch.batch.chain import keep_parts, known_elsewhere, stand_behind
from wavestitch.batch.closed_gate import (
    asks_the_gate,
    refuse_park,
    refuse_past_closed_gate,
    stands_at_its_gate,
    ways_out,
)
from wavestitch.batch.commit_offsets import commit_offsets, look_at_group
from wavestitch.batch.edges import Edges, Progress, Say
from wavestitch.batch.history import find_committed, history_of
from wavestitch.batch.last_definition import recent_batches
from wavestitch.batch.plan import NothingToDo, PlanRequest, plan_batch
from wavestitch.batch.publish import Audit, publish_batch
from wavestitch.batch.reassemble import decide_whole
from wavestitch.batch.request import Gate
from wavestitch.batch.results import (
    Finished,
    OffsetsCommitted,
    Planned,
    Published,
    Read,
    Reassembled,
    Validated,
    describe_plan,
    describe_published,
    needed,
)
from wavestitch.contracts.batch_stages import KeepPlan
from wavestitch.contracts.decision import Evidence
from wavestitch.contracts.errors import DataLost, GateClosed, WavestitchError
from wavestitch.contracts.past_cost import forecast
from wavestitch.contracts.plan import Plan, PlanKind
from wavestitch.contracts.protocol import check_fence
from wavestitch.contracts.stages import explain
from wavestitch.contracts.verdict import Verdict, would_publish
from wavestitch.garbage_collection import collection_paused
from wavestitch.write_once import disk_errors

P = ParamSpec("P")
R = TypeVar("R")
_SHOWN = 20  # sentences about what was reported: XCom is no place for more


def finished(edges: Edges, plan_id: str) -> Finished | None:
    """Whether this plan was committed. Every step asks this, first."""
    done = find_committed(history_of(edges), plan_id)
    if done is None:
        return None
    return Finished(plan_id, describe_published(done.row))


def of_a_plan(
    doing: str,
) -> Callable[
    [Callable[Concatenate[Edges, Plan, P], R]],
    Callable[Concatenate[Edges, str, P], R | Finished],
]:
    """Makes a step of what it does to a plan that is not finished yet.

    It is asked once more after an error: another execution that finishes the plan meanwhile takes the landing away and
    moves the head, and this one must then be told neither that somebody altered its files nor that it is fenced. Whose
    plan is stale is told that, and no way past what is gone.
    """

    def around(
        work: Callable[Concatenate[Edges, Plan, P], R],
    ) -> Callable[Concatenate[Edges, str, P], R | Finished]:
        def step(edges: Edges, plan_id: str, /, *args: P.args, **more: P.kwargs) -> R | Finished:
            done = finished(edges, plan_id)
            if done is not None:
                return done
            try:
                with disk_errors(doing):
                    return work(edges, edges.plan(plan_id), *args, **more)
            except WavestitchError as error:
                return _finished_meanwhile(edges, plan_id, error)

        functools.update_wrapper(step, work)
        return step

    return around


def _finished_meanwhile(edges: Edges, plan_id: str, error: WavestitchError) -> Finished:
    try:
        done = finished(edges, plan_id)
    except WavestitchError:
        done = None  # what went wrong first is what is told
    if done is None:
        if isinstance(error, DataLost):
            _refuse_overtaken(edges, plan_id)
        raise error
    return done


def _refuse_overtaken(edges: Edges, plan_id: str) -> None:
    """The way past what is gone leads on from where the plan stood, not from where somebody has gone back to since."""
    try:
        plan, head = edges.plan(plan_id), edges.tables.head()
    except WavestitchError:
        return  # what went wrong first is what is told
    if head is not None:
        check_fence(plan, head, base_in_ancestry=True)


@disk_errors("planning")
@collection_paused()
def step_plan(edges: Edges, request: PlanRequest, *, apply: bool = True) -> Planned | NothingToDo:
    """Pin the inputs of the next batch. Without `apply` nothing is done, and what would be is the same list."""
    if request.kind is PlanKind.INGEST:
        refuse_past_closed_gate(edges)
    walk, by = begin_planning(edges, apply=apply)
    plan = plan_batch(edges.stream, request, walk=walk, by=by)
    if isinstance(plan, NothingToDo):
        return replace(plan, stages=explain(walk.stages))
    walk(KeepPlan(plan))
    return describe_plan(plan, forecast(plan, recent_batches(edges.tables, edges.tables.head())), before=walk.stages)


@of_a_plan("taking up a plan")
def step_take_up(edges: Edges, plan: Plan) -> Planned:
    """In place of planning: an earlier plan, to be carried through again."""
    return describe_plan(plan)


@of_a_plan("reading")
def step_read(
    edges: Edges, plan: Plan, units: Sequence[int] | None = None, *, progress: Progress = lambda r, b: None
) -> Read:
    """Read units of work (all of them unless given) into the landing."""
    stand_behind(edges, plan)
    receipts = edges.read(plan, range(len(plan.units)) if units is None else units, progress=progress)
    return Read(
        receipts=tuple(edges.keep_receipt(r) for r in receipts),
        records=sum(s.records for r in receipts for s in r.slices),
        bytes=sum(s.payload_bytes for r in receipts for s in r.slices),
        seconds=max((r.seconds for r in receipts), default=0.0),
    )


@of_a_plan("reassembling")
@collection_paused()
def step_reassemble(edges: Edges, plan: Plan, read: Read | Finished, *, say: Say = lambda _: None) -> Reassembled:
    """Stitch what is whole."""
    receipts = needed(read, plan.plan_id).receipts
    start = edges.seconds()
    landed = edges.landed(plan, receipts)
    elsewhere = known_elsewhere(edges, plan, landed)
    what = decide_whole(plan, landed, tables=edges.tables, elsewhere=elsewhere)
    say(f"{len(landed.chunks)} records in {len(landed.files)} files; {len(what.whole)} waveforms are whole")
    report = edges.stitch(plan, landed, what, say=say)
    tried = len(edges.stitching(plan, report).outcomes)
    return Reassembled(report, receipts, tried, round(edges.seconds() - start, 3))


@of_a_plan("validating")
def step_validate(
    edges: Edges, plan: Plan, reassembled: Reassembled | Finished, *, gate: Gate = "stop", why: str = ""
) -> Validated:
    """Ask the gate. A closed gate stops the batch, unless an operator accepts it or parks the batch, with a reason. A
    backfill, which holds nothing, is not parked: neither by somebody nor by what the stream says."""
    if gate == "park":
        refuse_park(edges.name, plan)
    report = needed(reassembled, plan.plan_id).report
    start = edges.seconds()
    verdict = edges.judge(plan, edges.stitching(plan, report))
    name = edges.keep_verdict(plan, verdict)
    # What the stream says is said for every batch; what somebody says of this one comes first.
    parks = plan.holds and plan.stream.on_closed_gate == "park"
    by_itself = bool(verdict.closed) and gate == "stop" and parks
    if verdict.closed and gate == "stop" and not by_itself:
        edges.close_gate(plan, report=report, verdict=name)
        raise GateClosed(
            f"batch {plan.plan_id[:16]} of stream {edges.name}: {'; '.join(verdict.closed)}. Nothing was published. "
            f"Look at {edges.findings(plan.plan_id)}; then {ways_out(edges.name, plan)}"
            f"{'. Until then no ingest of the stream goes past it' if stands_at_its_gate(plan) else ''}",
            plan_id=plan.plan_id,
        )
    return Validated(
        verdict=name,
        park=gate == "park" or by_itself,
        answered=gate != "stop",
        note=_note(verdict, "park" if by_itself else gate, "the stream parks at a closed gate" if by_itself else why),
        failed=len(verdict.failed),
        reported=tuple(verdict.reported)[:_SHOWN],
        seconds=round(edges.seconds() - start, 3),
    )


def _note(verdict: Verdict, gate: Gate, why: str) -> str:
    """What somebody said is recorded even where the gate was open."""
    return f"gate: {gate}; {why}" if verdict.closed or gate != "stop" else ""


@of_a_plan("publishing")
@collection_paused()
def step_publish(
    edges: Edges,
    plan: Plan,
    reassembled: Reassembled | Finished,
    validated: Validated | Finished,
    *,
    say: Say = lambda _: None,
) -> Published | Finished:
    """Decide and commit."""
    made, checked = needed(reassembled, plan.plan_id), needed(validated, plan.plan_id)
    start = edges.seconds()
    landed = edges.landed(plan, made.receipts)
    stitching = edges.stitching(plan, made.report)
    failed = edges.verdict(plan, checked.verdict).failed

    def ask() -> None:
        if plan.moves_positions:
            # Planned before that other batch was stopped: it would take its range, and what was stopped with it.
            refuse_past_closed_gate(edges, own=plan.plan_id, answered=checked.answered)
        elif asks_the_gate(plan) and not checked.park:
            refuse_past_closed_gate(
                edges, own=plan.plan_id, answered=checked.answered, publishes=would_publish(stitching.outcomes, failed)
            )
        edges.plan(plan.plan_id)  # raises where it was abandoned, perhaps while the gates were looked at

    def ask_group() -> None:
        ask()
        if plan.leaves_positions:
            look_at_group(plan.stream, log=edges.log, tables=edges.tables)

    ask()
    evidence = Evidence(
        chunks=landed.chunks,
        seen_ms=landed.seen_ms,
        stitched=stitching.outcomes,
        failed=failed,
        park=checked.park,
        note=checked.note,
        elsewhere=known_elsewhere(edges, plan, landed),
    )
    audit = Audit(
        holes=landed.holes,
        committed_ms=edges.clock_ms(),
        clock_ms=edges.clock_ms,
        seconds={"read": landed.seconds, "reassemble": made.seconds, "validate": checked.seconds},
        sizes={"read": landed.payload_bytes},
        reading=landed.reading,
        written=landed.written,
        elapsed=lambda: round(edges.seconds() - start, 3),
    )
    done, ours = publish_batch(
        plan,
        evidence,
        tables=edges.tables,
        history=history_of(edges),
        staging=stitching.staging(landed),
        audit=audit,
        ask=ask_group,
        keep=lambda decision: keep_parts(edges, plan, decision),
        say=say,
    )
    figures = describe_published(done.row)
    return figures if ours else Finished(plan.plan_id, figures)


@disk_errors("committing offsets")
def step_commit_offsets(edges: Edges, plan_id: str) -> OffsetsCommitted:
    """Project the head into the group. The landing of a committed batch goes first: also where the group cannot be
    written, since the next batch of a backfill lands its own then."""
    freed = edges.free(plan_id) if finished(edges, plan_id) is not None else 0
    return OffsetsCommitted(commit_offsets(edges.stream, log=edges.log, tables=edges.tables), freed)
