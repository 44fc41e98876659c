"""Undo: the stages of an operation that was committed, walked backwards to the first that has an opposite.

The opposite is planned as any rewind and any decision is: shown first, previewed stage by stage, refused where it would
skip, or where it would touch more or less than the operation did. What was published stays published (I3): undoing a
batch means that its offsets are read again, and recognised. A promotion alone is taken back, row by row.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from wavestitch.batch.edges import Edges
from wavestitch.batch.held_decision import HeldPreview, plan_held
from wavestitch.batch.held_waveforms import Selection
from wavestitch.batch.history import find_committed, history_of
from wavestitch.batch.rewind import Rewind, Target, plan_rewind
from wavestitch.batch.rewind_target import stood_elsewhere
from wavestitch.batch.steps import finished
from wavestitch.batch.take_back import TakingBack, plan_taking_back
from wavestitch.batch.unseen_partition import refuse_unseen
from wavestitch.contracts.assembly import ChunkFacts
from wavestitch.contracts.batch_stages import CommitHead, ShowHead, stages_of
from wavestitch.contracts.errors import BadInput, Refused, WavestitchError
from wavestitch.contracts.harmless import in_shell
from wavestitch.contracts.held import HeldLook, effective_held
from wavestitch.contracts.held_choice import digest_of
from wavestitch.contracts.ports import PartitionEnds
from wavestitch.contracts.position import Head, HeadKind
from wavestitch.contracts.quantities import Offset, Partition
from wavestitch.contracts.stages import DecideOn, RewindTo, Stage, TakeBack, opposites
from wavestitch.contracts.undone_decision import not_undone_by, touched_by


def committed_stages(edges: Edges, plan_id: str | None = None, *, of: int | None = None) -> tuple[Stage, ...]:
    """What the operation did that this plan is of, or that the newest head came from. `of`: the number of the head that
    is meant; raises `Refused` where another one is the newest by now."""
    if plan_id is not None:
        if finished(edges, plan_id) is None:
            raise BadInput(
                f"batch {plan_id[:16]} of stream {edges.name} is not committed, so there is nothing to undo; "
                f"`wavestitch abandon {edges.name} --plan {plan_id} --why …` gives it up"
            )
        return _stages_of_plan(edges, plan_id)
    heads = edges.tables.heads()
    if not heads:
        raise Refused(f"stream {edges.name} has no head yet: there is nothing to undo")
    head = heads[0]
    _refuse_other_head(edges, head.sequence, of)
    if head.plan_id:
        return _stages_of_plan(edges, head.plan_id)
    if head.kind is HeadKind.MAINTENANCE:
        raise Refused(
            f"the newest head of stream {edges.name} is maintenance's ({head.note}), which cannot be undone; name the "
            f"batch that is meant with --plan{_or_previous(edges)}"
        )
    if head.kind is HeadKind.GATE:
        raise Refused(
            f"the newest head of stream {edges.name} says of a gate ({head.note}), and moved nothing; accept, park or "
            f"abandon a batch that stands at one, and name the batch that is meant with --plan{_or_previous(edges)}"
        )
    return CommitHead(heads[1] if len(heads) > 1 else None, head), ShowHead(head, {})


def _refuse_other_head(edges: Edges, newest: int | None, meant: int | None) -> None:
    if meant is not None and newest != meant:
        raise Refused(
            f"stream {edges.name}: head {meant} was to be undone, and the newest is {newest} by now; nothing was "
            f"changed. Look again with `wavestitch undo {edges.name}`, or name the batch that is meant with --plan"
        )


def _or_previous(edges: Edges) -> str:
    """The way back by hand, where there is one, and somebody to ask how far it goes."""
    heads = edges.tables.heads()
    was = stood_elsewhere(heads[0], heads) if heads else None
    if was is None:
        return ""
    try:
        topic = edges.log.topic(edges.stream.topic)
        refuse_unseen(edges.name, topic, heads[0])  # as whoever goes that way would be
        ends = edges.log.ends(topic.name, topic.partitions) if topic.topic_id == heads[0].topic_id else {}
    except WavestitchError:
        return ""  # why it cannot be undone is what was asked
    stands = {p: at.next_offset for p, at in heads[0].positions.items() if p in ends}
    behind = all(p in stands and to <= stands[p] for p, to in was.items())
    there = behind and all(ends[p].log_start <= to <= ends[p].high_watermark for p, to in was.items())
    to = "previous" if there else _places(heads[0], was, ends)
    return f", or go back by hand: `wavestitch rewind {edges.name} --to {in_shell(to)}`" if to else ""


def _gone(offsets: Mapping[Partition, Offset], ends: Mapping[Partition, PartitionEnds]) -> list[Partition]:
    return sorted(p for p, to in offsets.items() if p in ends and to < ends[p].log_start)


def _places(head: Head, offsets: Mapping[Partition, Offset], ends: Mapping[Partition, PartitionEnds]) -> str:
    """For `--to`: these offsets, as far as the log still has them, of the partitions where that leads back from where
    the head stands; empty where there is none."""
    gone, stands = _gone(offsets, ends), {p: at.next_offset for p, at in head.positions.items()}
    within = {p: min(to, ends[p].high_watermark) for p, to in sorted(offsets.items()) if p in ends}
    there = {p: ends[p].log_start if p in gone else to for p, to in within.items()}
    back = {p: to for p, to in there.items() if p in stands and to < stands[p]}
    return ",".join(f"{p}:{'earliest' if p in gone else to}" for p, to in back.items())


def _stages_of_plan(edges: Edges, plan_id: str) -> tuple[Stage, ...]:
    try:
        return stages_of(edges.plan(plan_id, committed=True))
    except BadInput as gone:
        raise BadInput(
            f"{gone.message}. What it did is not known any more; `wavestitch rewind {edges.name} --to previous` (or to "
            "an offset or a time) moves the positions, "
            f"`wavestitch held {edges.name} restore ID --why …` takes a discard back"
        ) from None


def plan_undo(
    edges: Edges, stages: Sequence[Stage], *, who: str, why: str, of: int | None = None
) -> Rewind | HeldPreview | TakingBack:
    """The opposite of these stages; touches nothing. Raises `Refused` where they have none, where it would touch more
    or less than they did, and where head `of` is not the newest any more."""
    for found in opposites(stages):
        if isinstance(found, RewindTo):
            back = _plan_back(edges, found, who=who, why=why)
            _refuse_other_head(edges, back.base.sequence if back.base is not None else None, of)
            return back
        if isinstance(found, TakeBack):
            taking = plan_taking_back(edges, found.plan_id, who=who, why=why)
            _refuse_other_head(edges, taking.put_back.base.sequence, of)
            return taking
        decided = _plan_opposite(edges, found, who=who, why=why)
        _refuse_other_head(edges, decided.plan.base_sequence, of)
        return decided
    said = "; ".join(f"{s.name} {s.undone()}" for s in reversed(stages))
    raise Refused(f"stream {edges.name}: there is nothing to undo in this case ({said}){_or_previous(edges)}")


def _plan_back(edges: Edges, found: RewindTo, *, who: str, why: str) -> Rewind:
    stream, head = edges.stream, edges.tables.head()
    _refuse_other_topic(stream.name, found, head)
    topic = edges.log.topic(stream.topic)
    refuse_unseen(stream.name, topic, head)
    ends = edges.log.ends(topic.name, topic.partitions)
    gone = _gone(found.offsets, ends)
    if head is not None and gone and topic.topic_id == found.topic_id:
        places, first = _places(head, found.offsets, ends), gone[0]
        back = f"Go back as far as there is something: `wavestitch rewind {stream.name} --to {places}`"
        raise Refused(
            f"stream {stream.name}: offset {found.offsets[first]} of partition {first} is not in the log of "
            f"{topic.name} any more, which begins at {ends[first].log_start}. "
            f"{back if places else 'Nothing is left to go back to'}"
        )
    target = Target(offsets=dict(found.offsets))
    rewind = plan_rewind(stream, target, log=edges.log, tables=edges.tables, who=who, why=why)
    _refuse_other_topic(stream.name, found, rewind.base)  # somebody may have come in between
    return rewind


def _refuse_other_topic(name: str, found: RewindTo, head: Head | None) -> None:
    if head is not None and head.topic_id != found.topic_id:
        raise Refused(
            f"stream {name}: this was of topic {found.topic_id}, and the stream reads {head.topic_id} now, where its "
            f"offsets mean nothing: it cannot be undone. `wavestitch rewind {name} --to …` goes to a time, an offset "
            "or `earliest` of the topic as it is"
        )


def _plan_opposite(edges: Edges, found: DecideOn, *, who: str, why: str) -> HeldPreview:
    """Restore and discard touch whatever is held of a waveform: refused unless this decision changed all of that, and
    nobody has decided on it since. The plan names what it rests on, and changes nothing where that is not so any more.
    """
    done, head = find_committed(history_of(edges), found.plan_id), edges.tables.head()
    if done is None or head is None:
        raise Refused(f"stream {edges.name}: batch {found.plan_id[:16]} is not committed, so there is nothing to undo")
    rows = edges.tables.held(head.held, HeldLook(ids=frozenset(found.ids)))
    held = effective_held(rows, published=edges.tables.published(set(found.ids)))
    others = not_undone_by(found.action, decision=done.row.decision, rows=rows, held=held)
    if others:
        first = min(others, key=lambda c: c.coordinate)
        name, only = edges.name, f"held {edges.name} {found.action}"
        raise Refused(
            f"stream {name}: `{only}` would not put back what batch {found.plan_id[:16]} changed: {len(others)} chunks "
            f"of {len({c.waveform_id for c in others})} waveforms were not changed by it, or were decided on or "
            f"published since, first {in_shell(first.waveform_id or '')} at {first.place}. Look with `wavestitch held "
            f"{name} show ID`, then decide by hand: `wavestitch held {name} restore ID --why …`, `discard` or `pick`"
        )
    # A decision needs a reason, and an undo has one by itself.
    reason = why or f"undo of batch {found.plan_id[:16]}"
    shown = plan_held(edges, found.action, Selection(ids=found.ids), who=who, why=reason, everything=True)
    choice = shown.plan.held_choice
    assert choice is not None, "plan_held plans a choice"
    by_id: dict[str | None, list[ChunkFacts]] = {}
    for h in touched_by(found.action, held):
        by_id.setdefault(h.chunk.waveform_id, []).append(h.chunk)
    _refuse_less(edges.name, by_id.keys(), choice.ids)
    among = tuple(digest_of(by_id.get(i, ())) for i in choice.ids)
    return replace(shown, plan=replace(shown.plan, choice=replace(choice, among=among)).sealed())


def _refuse_less(name: str, touched: Collection[str | None], ids: Collection[str]) -> None:
    """What was decided on or published while this was worked out would be left out in silence."""
    if left := sorted(set(touched).difference(ids), key=str):
        raise Refused(
            f"stream {name}: what is held of {len(left)} of these {len(touched)} waveforms changed while this undo was "
            f"worked out, first of {in_shell(left[0] or '')}. Nothing was changed; look again"
        )
