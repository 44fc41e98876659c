"""Promote: what the stream's definition makes of a range today is published in the place of what is there.

Three acts, as for a decision about what is held: compared and kept, approved of by somebody, carried through. What is
kept is the plan of a batch of its own kind: the offsets that were compared, the definition, and for each waveform that
changes the row that is there and the one that is to be. It reads those offsets again, publishes exactly that in one
commit, moves no position, and touches no other waveform. An ingest in between does not matter, unless it changed one of
these; that, a rewind, another definition, or a log that has lost some of it voids what was shown, by name.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from wavestitch.batch.carry import NOTHING_READ, Carried, How, Silent, Watcher, carry_through
from wavestitch.batch.closed_gate import refuse_past_closed_gate
from wavestitch.batch.commit_offsets import look_at_group
from wavestitch.batch.edges import Edges
from wavestitch.batch.last_definition import refuse_torn
from wavestitch.batch.plan_request import Planning, PlanRequest
from wavestitch.batch.publishes_nothing import ComparingEdges
from wavestitch.batch.results import Finished, Published
from wavestitch.batch.survey import Made, plan_of, size_of, survey_beside, too_much
from wavestitch.batch.verify import Verified, verify_range
from wavestitch.batch.verify_request import VerifyRequest
from wavestitch.contracts.batch_stages import KeepPlan, kinds_of, stages_of
from wavestitch.contracts.definition_change import CHANGES, Change, changed
from wavestitch.contracts.definition_since import said_of_definition
from wavestitch.contracts.errors import BadInput, Refused
from wavestitch.contracts.held import HeldLook
from wavestitch.contracts.offset_range import OffsetRange
from wavestitch.contracts.pending_decision import held_back
from wavestitch.contracts.plain_text import name_of_person, said_by_person
from wavestitch.contracts.plan import Plan, PlanKind
from wavestitch.contracts.ports import PartitionEnds
from wavestitch.contracts.promotion import Promotion, changed_since, rows_as_shown
from wavestitch.contracts.reasons import Reason
from wavestitch.contracts.stages import Stage
from wavestitch.contracts.verification import Compared

MOST = 10_000
"""So many waveforms one promotion takes at most: each is named in its plan."""


@dataclass(frozen=True, slots=True)
class PromotionPreview:
    """A promotion as it would be. `changes`: the waveforms that it is about, each with what becomes of it and why.
    `counts`: all that were compared, by what becomes of them. `passed_over`: those that would change and are left as
    they are, each with the reason. `remarks`: of the definition, and as of a comparison."""

    plan: Plan
    promotion: Promotion
    changes: tuple[tuple[str, Change, str], ...]
    counts: Mapping[str, int]
    passed_over: tuple[tuple[str, str], ...]
    remarks: tuple[str, ...]

    @property
    def stages(self) -> tuple[Stage, ...]:
        return KeepPlan(self.plan), *stages_of(self.plan)


def preview_promotion(
    edges: Edges, comparing: ComparingEdges, request: VerifyRequest, *, who: str, why: str, watcher: Watcher
) -> PromotionPreview:
    """What it would do, its plan kept under its id; publishes nothing. `comparing`: of the same stream, by the
    definition that counts. Raises what `verify_range` raises, and `Refused` where there is nothing, or too much."""
    reason = said_by_person(why, "--why")
    if not reason:
        raise BadInput("say why this is promoted (--why …): it is kept with what it does")
    recent = refuse_torn(edges.stream, edges.tables)
    look_at_group(edges.stream, log=edges.log, tables=edges.tables)
    found = verify_range(comparing, request, watcher=watcher)
    every = [(one, changed(one)) for one in found.waveforms]
    change = frozenset(one.waveform_id for one, to in every if to.change in CHANGES)
    rows = comparing.snapshot.published(change)
    held = held_back(comparing.snapshot.held(HeldLook(ids=change)) if change else (), rows)
    taken: list[tuple[Compared, Change]] = []
    passed: list[tuple[str, str]] = []
    for one, to in every:
        if to.change not in CHANGES:
            continue
        problem = _why_not(one, held.get(one.waveform_id))
        if problem:
            passed.append((one.waveform_id, problem))
        else:
            taken.append((one, to.change))
    _refuse_none_or_many(edges.name, taken, passed)
    promotion = Promotion(
        ids=tuple(one.waveform_id for one, _ in taken),
        was=tuple(one.was for one, _ in taken),
        made=tuple(one.made for one, _ in taken),
        who=name_of_person(who),
        why=reason,
    )
    if promotion.taken_out:
        edges.tables.refuse_fixed_rows()
    refuse_past_closed_gate(edges, publishes=promotion.put_in)
    plan = _plan(edges, comparing, found, promotion)
    edges.keep_decision(plan)
    return PromotionPreview(
        plan=plan,
        promotion=promotion,
        changes=tuple((one.waveform_id, to, one.why) for one, to in taken),
        counts=dict(Counter(to.change.value for _, to in every)),
        passed_over=tuple(passed),
        remarks=(*said_of_definition(edges.stream, recent), *found.remarks),
    )


def kept_promotion(edges: Edges, preview_id: str) -> tuple[Plan, Promotion]:
    """As it was shown. Raises `BadInput` where that id is of none."""
    plan = edges.decision(preview_id)
    if plan.promotion is None:
        raise BadInput(
            f"preview {preview_id[:16]} of stream {edges.name} is of a decision about what is held; look at it with "
            f"`wavestitch held {edges.name} --preview {preview_id}`"
        )
    return plan, plan.promotion


def carry_promotion(edges: Edges, plan: Plan, *, watcher: Watcher | None = None) -> Published | Finished:
    """Carry what somebody approved of through (`begin_approved` began it). What the gate says of the whole was shown
    with it, and is accepted; what it says of a waveform counts."""
    assert plan.promotion is not None, "a plan of another kind is carried through by run_batch"
    how = How("accept", plan.promotion.why, watcher=watcher or Silent())
    done = carry_through(kinds_of(plan.kind), edges, Carried(plan.plan_id, (NOTHING_READ,)), how, total=plan.records)
    return done.of(Published)


def refuse_changed(edges: Edges, kept: Plan, promotion: Promotion) -> None:
    """Raises `Refused` where the rows are not those that were shown, where something is held that an operator has to
    decide about, or the log has not all of what was compared."""
    head, rows = edges.tables.head(), edges.tables.published(promotion.ids)
    held = edges.tables.held(head.held, HeldLook(ids=frozenset(promotion.ids))) if head is not None else ()
    others = rows_as_shown(promotion, rows) or sorted(held_back(held, rows))
    if others:
        raise changed_since(edges.name, others, of=len(promotion.ids))
    if promotion.taken_out:
        edges.tables.refuse_fixed_rows()
    topic = edges.log.topic(edges.stream.topic)
    ends = edges.log.ends(topic.name, topic.partitions) if topic.topic_id == kept.topic_id else {}
    gone = [r for r in kept.ranges if r.partition not in ends or not _covers(r, ends[r.partition])]
    if gone:
        raise Refused(
            f"stream {edges.name}: {gone[0]} was compared, and is not in the log any more. Nothing was changed; have "
            f"shown what is left of it, with `wavestitch promote {edges.name}` and the same range"
        )


def _covers(r: OffsetRange, ends: PartitionEnds) -> bool:
    return ends.log_start <= r.start and r.end <= ends.stable_end


def _why_not(one: Compared, held: Reason | None) -> str:
    """Why it stays as it is; empty where nothing keeps it. `held`: for what chunks of it are, that keeps it."""
    if one.plan_id and not one.was:
        return "is in the table several times"
    if not one.inside:
        return "its row has chunks outside of what was compared; take a larger range"
    if one.no_chunk:
        return (
            f"{one.no_chunk} is no chunk by the definition: taken out of the table it would be held as such, which "
            "maintenance lets go and no decision publishes again. Have it sent again so that the definition takes it "
            "for one, or put a definition in force that does"
        )
    if one.unread:
        return f"a copy in {one.unread} contradicts its row; let an ingest read that, and decide about it first"
    return "" if held is None else f"chunks of it are held as {held.value}; decide about them first"


def _refuse_none_or_many(stream: str, taken: Sequence[object], passed: Sequence[tuple[str, str]]) -> None:
    if not taken:
        first = f"; {passed[0][0]!r}: {passed[0][1]}" if passed else ""
        raise Refused(
            f"stream {stream}: by its definition the range gives what is published already, and there is nothing to "
            f"promote{first}. A definition that is a draft yet counts for nothing: look with `wavestitch compare "
            f"{stream}`, and put it in force first"
        )
    if len(taken) > MOST:
        raise Refused(
            f"stream {stream}: {len(taken)} waveforms would change, one promotion takes {MOST}: take a smaller range"
        )


def _plan(edges: Edges, comparing: ComparingEdges, found: Verified, promotion: Promotion) -> Plan:
    stream, head = edges.stream, comparing.snapshot.head
    by = Planning(edges.clock_ms(), edges.nonce(), edges.code_version, edges.reader_stops())
    request = PlanRequest(PlanKind.PROMOTE, ranges=found.read)
    here = survey_beside(stream, request, head, log=edges.log, tables=edges.tables, clock_ms=by.clock_ms)
    mean, most = size_of(stream, request.kind, here, found.read, by.stops)
    offsets = sum(r.size for r in found.read)
    if offsets > most:
        raise too_much(stream, request.kind, offsets, most=most, mean=mean)
    why = dict.fromkeys(here.topic.partitions, "compared")
    return replace(plan_of(stream, here, Made(request, mean, by), found.read, why=why), choice=promotion).sealed()
