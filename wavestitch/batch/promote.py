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
from dataclasses import dataclass, field, replace

from wavestitch.batch.carry import NOTHING_READ, Carried, How, Silent, Watcher, carry_through
from wavestitch.batch.closed_gate import refuse_past_closed_gate
from wavestitch.batch.commit_offsets import look_at_group
from wavestitch.batch.edges import Edges
from wavestitch.batch.history import history_of, whole_history
from wavestitch.batch.last_definition import refuse_torn
from wavestitch.batch.plan_request import Planning, PlanRequest
from wavestitch.batch.publishes_nothing import ComparingEdges
from wavestitch.batch.rehearsal import rehearse
from wavestitch.batch.results import Finished, Published
from wavestitch.batch.survey import Made, plan_of, size_of, survey_beside, too_much
from wavestitch.batch.unseen_partition import refuse_unseen
from wavestitch.batch.verify import Verified, verify_range
from wavestitch.batch.verify_request import VerifyRequest
from wavestitch.contracts.batch_stages import KeepPlan, kinds_of, stages_of
from wavestitch.contracts.chunk_table import ChunkTable
from wavestitch.contracts.definition_change import CHANGES, Change, changed
from wavestitch.contracts.definition_since import said_of_definition
from wavestitch.contracts.errors import BadInput, Refused
from wavestitch.contracts.harmless import in_shell
from wavestitch.contracts.held import HeldLook
from wavestitch.contracts.offset_range import OffsetRange
from wavestitch.contracts.pending_decision import held_back
from wavestitch.contracts.plain_text import name_of_person, said_by_person
from wavestitch.contracts.plan import Plan, PlanKind
from wavestitch.contracts.ports import PartitionEnds
from wavestitch.contracts.position import HeadKind
from wavestitch.contracts.promotion import Promotion, changed_since, rows_as_made, rows_as_shown
from wavestitch.contracts.stages import Stage
from wavestitch.contracts.verification import Compared

MOST = 10_000
"""So many waveforms one promotion takes at most: each is named in its plan."""


@dataclass(slots=True)
class _Read:
    """What was compared, for as long as a batch may read so much: more is refused afterwards, and was not kept."""

    most: int
    tables: list[ChunkTable] = field(default_factory=list)
    count: int = 0

    def take(self, table: ChunkTable) -> None:
        self.count += len(table)
        self.tables = [*self.tables, table] if self.count <= self.most else []

    @property
    def all(self) -> ChunkTable:
        return ChunkTable.joined(self.tables)


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
    read = _Read(edges.stream.limits.max_batch_records)
    found = verify_range(comparing, request, watcher=watcher, take=read.take)
    every = [(one, changed(one)) for one in found.waveforms]
    taken: list[tuple[Compared, Change]] = []
    passed: list[tuple[str, str]] = []
    for one, to in every:
        if to.change not in CHANGES:
            continue
        problem = _why_not(one)
        if problem:
            passed.append((one.waveform_id, problem))
        else:
            taken.append((one, to.change))
    _refuse_none_or_many(edges.name, taken, passed)
    tried = _plan(edges, comparing, found, _promotion(taken, who=who, why=reason))
    refused = {one.waveform_id: one.refused or to for one, to in taken if not one.made}
    if otherwise := rehearse(edges, tried, read.all, refused):
        passed = sorted([*passed, *otherwise.items()])
        taken = [(one, to) for one, to in taken if one.waveform_id not in otherwise]
        _refuse_none_or_many(edges.name, taken, passed)
    promotion = _promotion(taken, who=who, why=reason)
    if promotion.taken_out:
        edges.tables.refuse_fixed_rows()
    refuse_past_closed_gate(edges, publishes=promotion.put_in)
    plan = replace(tried, choice=promotion).sealed()
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
    refuse_unseen(edges.name, topic, head)
    ends = edges.log.ends(topic.name, topic.partitions) if topic.topic_id == kept.topic_id else {}
    gone = [r for r in kept.ranges if r.partition not in ends or not _covers(r, ends[r.partition])]
    if gone:
        raise Refused(
            f"stream {edges.name}: {gone[0]} was compared, and is not in the log any more. Nothing was changed; have "
            f"shown what is left of it, with `wavestitch promote {edges.name}` and the same range"
        )


def refuse_taken_back(edges: Edges, promotion: Promotion, sequence: int) -> None:
    """Of one that was done, as head `sequence`. Raises `Refused` where its rows are not those that it left. A row that
    was altered is replaced by one of the same pieces: these alone do not tell whether it was put back."""
    others = rows_as_made(promotion, edges.tables.published(promotion.ids))
    alike = [i for i, was, made in zip(promotion.ids, promotion.was, promotion.made, strict=True) if was == made]
    if not others and alike and _was_one_taken_back(edges, since=sequence + 1):
        others = alike
    if others:
        raise Refused(
            f"stream {edges.name}: this promotion was done, as head {sequence}, and {len(others)} of its "
            f"{len(promotion.ids)} waveforms are not as it left them, first {in_shell(others[0])}: it was taken back, "
            "or something was published, decided or promoted since. Nothing was changed; preview it again with "
            f"`wavestitch promote {edges.name}` and the same range"
        )


def _was_one_taken_back(edges: Edges, *, since: int) -> bool:
    return any(
        row.kind == HeadKind.PROMOTE and not row.plan_id for row in whole_history(history_of(edges), since=since)
    )


def _covers(r: OffsetRange, ends: PartitionEnds) -> bool:
    return ends.log_start <= r.start and r.end <= ends.stable_end


def _why_not(one: Compared) -> str:
    """Why the range says too little to replace it; empty where it does not."""
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
    return ""


def _promotion(taken: Sequence[tuple[Compared, Change]], *, who: str, why: str) -> Promotion:
    return Promotion(
        ids=tuple(one.waveform_id for one, _ in taken),
        was=tuple(one.was for one, _ in taken),
        made=tuple(one.made for one, _ in taken),
        who=name_of_person(who),
        why=why,
    )


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
