"""An operator's decision about what is held, as a batch of its own kind: planned, previewed, and carried through.

It reads no record from Kafka, so it works long after retention has passed, and where the topic is gone. A broker has to
answer all the same: the group is asked, as for a backfill, whether the catalog is the one that it was shown. From the
plan on it is carried by the same steps as every batch (reassemble, validate, publish), by the same `decide`, and
committed by the same compare-and-set; positions stay. Undone by its opposite: discard by restore; what was published
stays published (I2, I3).
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from wavestitch.batch.carry import Carried, How, Silent, Watcher, carry_through
from wavestitch.batch.closed_gate import asks_the_gate, refuse_past_closed_gate
from wavestitch.batch.commit_offsets import look_at_group
from wavestitch.batch.edges import Edges
from wavestitch.batch.held_records import refuse_records
from wavestitch.batch.held_waveforms import HeldWaveform, Selection, select_held
from wavestitch.batch.last_definition import refuse_torn
from wavestitch.batch.results import Finished, Published
from wavestitch.batch.walk import Walk
from wavestitch.contracts.assembly import ChunkFacts, assemble_waveform
from wavestitch.contracts.batch_stages import KeepPlan, kinds_of, stages_of
from wavestitch.contracts.belief import Belief
from wavestitch.contracts.definition_since import said_of_definition
from wavestitch.contracts.errors import BadInput, Refused
from wavestitch.contracts.harmless import in_shell
from wavestitch.contracts.held_choice import HeldAction, HeldChoice, check_pick, digest_of, pick_copy, topics_at
from wavestitch.contracts.plain_text import name_of_person, said_by_person
from wavestitch.contracts.plan import Plan, PlanKind
from wavestitch.contracts.position import Head
from wavestitch.contracts.reasons import Reason
from wavestitch.contracts.stages import Stage
from wavestitch.contracts.stream import Stream
from wavestitch.contracts.undone_decision import touched_by

MOST = 1000
"""So many waveforms one decision takes at most, unless somebody says all."""
_FINAL = frozenset({Reason.DIGEST_MISMATCH})
"""What no change of the stream's definition makes otherwise."""


@dataclass(frozen=True, slots=True)
class HeldPreview:
    """A decision as it would be. `passed_over`: waveforms that it cannot change, each with the reason. `more`: there
    are more than the cap lets through."""

    plan: Plan
    waveforms: int
    chunks: int
    bytes: int
    reasons: dict[str, int]
    passed_over: tuple[tuple[str, str], ...]
    more: bool

    @property
    def stages(self) -> tuple[Stage, ...]:
        return KeepPlan(self.plan), *stages_of(self.plan)


def plan_held(
    edges: Edges, action: HeldAction, wanted: Selection, *, who: str, why: str, pick: str = "", everything: bool = False
) -> HeldPreview:
    """What the decision would do; touches nothing. Raises `Refused` where there is nothing that it could change."""
    stream, tables = edges.stream, edges.tables
    reason = said_by_person(why, "--why")
    if not reason:
        raise BadInput("say why this is decided (--why …): it is kept with the decision")
    if (action is HeldAction.PICK) != bool(pick):
        raise BadInput("which copy is right? pick takes --copy first, last or PARTITION:OFFSET, and nothing else does")
    if pick:
        check_pick(pick)
    recent = refuse_torn(stream, tables)
    head, _, _ = look_at_group(stream, log=edges.log, tables=tables)
    taken: list[HeldWaveform] = []
    passed: list[tuple[str, str]] = []
    more = False
    for one in select_held(tables, stream, wanted):
        problem = why_not(one, action, stream, pick)
        if problem:
            passed.append((one.waveform_id, problem))
        elif len(taken) < MOST or everything:
            taken.append(one)
        else:
            more = True
            break
    if not taken:
        refuse_records(tables, edges.log, stream, wanted.ids)
        first = f": {passed[0][0]!r} {passed[0][1]}" if passed else ""
        raise Refused(
            f"stream {stream.name}: nothing that is held and meant can be changed by {action.value}{first}. What is "
            f"held, and for what: `wavestitch held {stream.name}`"
        )
    among = tuple(digest_of(_meant(w, action, stream)) for w in taken)
    choice = HeldChoice(action, tuple(w.waveform_id for w in taken), name_of_person(who), reason, pick, among)
    plan = _plan(edges, stream, head, choice, remarks=said_of_definition(stream, recent))
    if asks_the_gate(plan):
        refuse_past_closed_gate(edges, publishes=choice.ids)
    return HeldPreview(
        plan=plan,
        waveforms=len(taken),
        chunks=sum(len(w.held) for w in taken),
        bytes=sum(w.bytes for w in taken),
        reasons=dict(Counter(s.value for w in taken for s in w.states)),
        passed_over=tuple(passed),
        more=more,
    )


def carry_out(edges: Edges, plan: Plan, *, watcher: Watcher | None = None) -> Published | Finished:
    """Carry the decision through, by the stages of every batch. Raises `Fenced` where somebody rewound since."""
    choice = plan.held_choice
    assert choice is not None, "a plan of another kind reads, and is carried through by run_batch"
    walk = Walk(edges.stream, edges.log, edges.tables, begin=edges.begin)
    walk(KeepPlan(plan))
    how = How("accept" if plan.accepts else "stop", choice.why, watcher=watcher or Silent())
    return carry_through(kinds_of(plan.kind), edges, Carried(plan.plan_id), how).of(Published)


def refuse_others(edges: Edges, choice: HeldChoice) -> None:
    """Raises `Refused` where what is held of these waveforms is not what was shown, or one of them was published."""
    if len(choice.among) != len(choice.ids):
        raise Refused(
            f"stream {edges.name}: this {choice.action} was kept by another version of wavestitch, which did not say "
            "what was held of each waveform. Nothing was changed; have it shown again"
        )
    found = {w.waveform_id: w for w in select_held(edges.tables, edges.stream, Selection(ids=choice.ids))}
    others = [
        i
        for i, shown in zip(choice.ids, choice.among, strict=True)
        if i not in found or digest_of(_meant(found[i], choice.action, edges.stream)) != shown
    ]
    if others:
        raise Refused(
            f"stream {edges.name}: what is held of {len(others)} of these {len(choice.ids)} waveforms changed since "
            f"this {choice.action} was shown, first of {in_shell(others[0])} (`wavestitch held {edges.name} show ID`). "
            "Nothing was changed; look, and have it shown again"
        )


def _meant(one: HeldWaveform, action: HeldAction, stream: Stream) -> list[ChunkFacts]:
    """The chunks that a decision is about: whoever lets them go or takes that back means all."""
    if action in (HeldAction.DISCARD, HeldAction.RESTORE):
        return [h.chunk for h in touched_by(action, one.held)]
    return _publishable(one, stream)


def _publishable(one: HeldWaveform, stream: Stream) -> list[ChunkFacts]:
    """What a decision can publish: neither discarded, nor held from before the stream asked for more."""
    return [h.chunk for h in one.believed(stream) if h.reason is not Reason.DISCARDED]


def why_not(one: HeldWaveform, action: HeldAction, stream: Stream, pick: str) -> str:
    """Why this decision would change nothing about the waveform; empty where it would."""
    states = set(one.states)
    discarded = {Reason.DISCARDED}
    if action is HeldAction.RESTORE:
        return "" if states & discarded else "is not discarded"
    if states == discarded:
        return "is discarded; restore it first"
    if action is HeldAction.DISCARD:
        return ""
    if one.published:
        return "is published; what is held contradicts it, and can only be discarded"
    publishable = _publishable(one, stream)
    if not publishable:
        why = next(filter(None, map(Belief(stream).why_not, one.held)), "")
        return f"is not believed by the stream's present definition ({why}); have it sent again, or discard it"
    if action is HeldAction.PICK:
        if len(topics := topics_at(publishable, pick)) > 1:
            places = " or ".join(f"{topic}:{pick}" for topic in topics)
            return f"has a chunk at {pick} of {len(topics)} topics; name the one that is meant, as {places}"
        if not pick_copy(publishable, pick)[0]:
            return f"has no chunk at {pick}"
        return "" if Reason.CONFLICT in states else "is no conflict"
    if action is HeldAction.ACCEPT:
        found = assemble_waveform(one.waveform_id, publishable, stream.limits, accepted=True)
        if found.reason is not None:
            return f"is {found.reason.value}, which nobody can accept ({found.evidence})"
        if Reason.MISFIT in states:
            return "does not fit the stream's samples, which nobody can accept; widen `samples`, and redrive it"
    return _why_in_vain(one.waveform_id, publishable, states, stream) if action is HeldAction.REDRIVE else ""


def _why_in_vain(waveform_id: str, publishable: list[ChunkFacts], states: set[Reason], stream: Stream) -> str:
    """Why no definition of the stream makes this otherwise; empty where one might."""
    if states & _FINAL and assemble_waveform(waveform_id, publishable, stream.limits).reason is None:
        # Not where a copy came under another word, while it was discarded say: then it is a conflict, to be picked of.
        return "has other bytes than its ws-digest says, and will have; accept publishes them, discard lets them go"
    if Reason.IMPLAUSIBLE_TIME in states:
        found = assemble_waveform(waveform_id, publishable, stream.limits, accepted=True)
        if found.reason is Reason.IMPLAUSIBLE_TIME:
            return f"is beyond what any limit allows ({found.evidence}); discard lets it go"
    return ""


def _plan(edges: Edges, stream: Stream, head: Head, choice: HeldChoice, *, remarks: tuple[str, ...]) -> Plan:
    return Plan(
        plan_id="",
        kind=PlanKind.HELD,
        stream=stream,
        topic_id=head.topic_id,
        partitions=len(head.positions),
        ranges=(),
        units=(),
        positions=dict(head.positions),
        ends=dict(head.positions),
        generation=head.generation,
        base_sequence=head.sequence,
        base_snapshot=head.snapshot_id or 0,
        held_snapshot=None if head.held is None else head.held.snapshot_id,
        watermark_ms=head.watermark_ms,
        clock_ms=edges.clock_ms(),
        scope=None,
        why={},
        mean_record_bytes=head.mean_record_bytes or 0.0,
        code_version=edges.code_version,
        nonce=edges.nonce(),
        remarks=remarks,
        choice=choice,
    ).sealed()
