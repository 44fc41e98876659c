"""A rewind in three acts: previewed, decided about by somebody, and done as it was previewed.

The preview is written once; what is applied are its very offsets, in its very generation. Decides what makes it void:
another rewind, a skip that nobody was shown, a rejection, its age. A batch that commits in between does not. Decides
who may approve.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from wavestitch.batch.closed_gate import given_up_by_a_rewind, refuse_giving_up_unsaid
from wavestitch.batch.edges import Edges
from wavestitch.batch.last_definition import refuse_torn
from wavestitch.batch.preview_answer import refuse_dead_preview
from wavestitch.batch.request import rewind_target
from wavestitch.batch.rewind import Rewind, accept_losses, carry_rewind, plan_rewind
from wavestitch.batch.rewind_target import WHOLE, Target
from wavestitch.contracts.accepted_skip import AcceptedSkip
from wavestitch.contracts.batch_row import BatchRow
from wavestitch.contracts.batch_size import batch_offsets
from wavestitch.contracts.errors import Refused, Transient
from wavestitch.contracts.offset_range import OffsetRange, without
from wavestitch.contracts.past_cost import reading_seconds
from wavestitch.contracts.plain_text import name_of_person
from wavestitch.contracts.ports import CommitConflict, PartitionEnds, TopicView
from wavestitch.contracts.position import Head
from wavestitch.contracts.quantities import NONE_YET, EpochMs, Milliseconds, Partition, apart, elapsed
from wavestitch.contracts.reasons import Fate
from wavestitch.contracts.rewind_preview import PartitionPreview, RewindPreview

_TRIES = 5


def preview_rewind(edges: Edges, to: str, partitions: str | None, *, who: str, why: str) -> RewindPreview:
    """What the rewind would do, kept under its id; moves nothing."""
    stream, log, tables = edges.stream, edges.log, edges.tables
    target = rewind_target(to, partitions)
    found = plan_rewind(stream, target, log=log, tables=tables, who=who, why=why)
    topic = log.topic(stream.topic)
    ends = log.ends(topic.name, sorted(found.moves))
    past = tables.batches()
    again = [OffsetRange(p, at, was) for p, (was, at) in found.moves.items() if was is not None and was > at]
    rows = _rows(edges, found, topic, ends, past)
    size = sum(row.bytes or 0 for row in rows)
    mean = found.head.mean_record_bytes
    most = batch_offsets(stream.limits, mean=mean or 1.0, stops=())
    batches = -(-sum(r.size for r in again) // most)
    preview = RewindPreview(
        stream=stream.name,
        to=to.strip(),
        partitions=(partitions or "").strip(),
        asked_by=name_of_person(who) if who else "",
        why=why,
        made_ms=edges.clock_ms(),
        generation=found.base.generation if found.base is not None else NONE_YET,
        sequence=found.base.sequence if found.base is not None else 0,
        targets={p: at for p, (_, at) in sorted(found.moves.items())},
        whole=bool(target.words & WHOLE) or bool(found.settles),
        skipped=found.skipped,
        missing=tuple(m.said for m in found.missing),
        settles=found.settles,
        remarks=(*found.remarks, *given_up_by_a_rewind(edges, found.base)),
        rows=tuple(rows),
        waveforms=sum(row.waveforms.get("published", 0) for row in past if _reads(row, again)),
        batches=batches,
        seconds=reading_seconds(past, batches=batches, size=size),
    )
    edges.keep_preview(preview)
    return preview


def with_gates(edges: Edges, found: Rewind, *, why: str, apply: bool) -> Rewind:
    """The rewind, and which batches at a closed gate are given up by it; to be done only where somebody says why."""
    if apply:
        refuse_giving_up_unsaid(edges, found.base, why)
    return replace(found, remarks=(*found.remarks, *given_up_by_a_rewind(edges, found.base)))


def apply_preview(
    edges: Edges, preview: RewindPreview, *, by: str, accept_skip: AcceptedSkip = False, accept_missing: bool = False
) -> Head:
    """Do what was previewed. `by`: who approved of it. Raises `Refused` where it is void, or that one may not."""
    refuse_dead_preview(edges, preview.preview_id, made_ms=preview.made_ms)
    refuse_torn(edges.stream, edges.tables)
    check_approver(edges, preview, by)
    who = preview.asked_by if by == preview.asked_by else f"{preview.asked_by}, approved by {name_of_person(by)}"
    for _ in range(_TRIES):
        found = _again(edges, preview, who=who)
        refuse_giving_up_unsaid(edges, found.base, preview.why)
        accept_losses(edges.stream, found, accept_skip=accept_skip, accept_missing=accept_missing, log=edges.log)
        try:
            return carry_rewind(edges.stream, found, log=edges.log, tables=edges.tables)
        except CommitConflict:
            continue
    raise Transient(f"stream {edges.name}: the head changed {_TRIES} times while the rewind was committed; try again")


def check_approver(edges: Edges, preview: RewindPreview, by: str) -> None:
    """Raises `Refused` where the stream wants another one than who asked, and it is the same, or nobody knows who."""
    if edges.stream.rewind_approval == "anyone":
        return
    if by and preview.asked_by and name_of_person(by) != preview.asked_by:
        return
    asker, approver = preview.asked_by or "nobody knows whom", name_of_person(by) if by else "nobody knows whom"
    raise Refused(
        f"stream {edges.name}: this rewind was asked for by {asker} and approved by {approver}; the stream says "
        "rewind_approval: other. Nothing was moved; have somebody else approve of a new preview"
    )


def _again(edges: Edges, preview: RewindPreview, *, who: str) -> Rewind:
    """The rewind on the head as it is now; refused unless it goes exactly where the preview does."""
    stream, tables = edges.stream, edges.tables
    head = tables.head() if not preview.whole else None
    if head is not None and head.generation != preview.generation:
        raise _void(edges, f"somebody rewound since: generation {preview.generation} is {head.generation} now")
    said = rewind_target(preview.to, preview.partitions)
    target = said if preview.whole else Target(offsets=preview.targets)
    found = plan_rewind(stream, target, log=edges.log, tables=tables, who=who, why=preview.why, named=str(said))
    base = found.base.generation if found.base is not None else NONE_YET
    if base != preview.generation:
        raise _void(edges, f"somebody rewound since: generation {preview.generation} is {base} now")
    if {p: at for p, (_, at) in found.moves.items()} != preview.targets:
        raise _void(edges, "it would go elsewhere by now")
    more = without(found.skipped, preview.skipped)
    if more:
        raise _void(edges, f"it would also skip {', '.join(map(str, more))} by now")
    if new := [m.said for m in found.missing if m.said not in preview.missing]:
        raise _void(edges, f"more is missing by now: {'; '.join(new)}")
    return found


def _void(edges: Edges, why: str) -> Refused:
    return Refused(f"stream {edges.name}: the preview is void: {why}. Nothing was moved; preview the rewind again")


def _rows(
    edges: Edges, found: Rewind, topic: TopicView, ends: Mapping[Partition, PartitionEnds], past: Sequence[BatchRow]
) -> list[PartitionPreview]:
    now, mean = edges.clock_ms(), found.head.mean_record_bytes
    back = {p: at for p, (was, at) in found.moves.items() if was is not None and at < was}
    times = edges.log.probe(topic.name, back).times if back else {}
    stands = found.base.positions if found.base is not None else {}
    rows = []
    for p, (was, at) in sorted(found.moves.items()):
        again = max(0, (was or 0) - at)
        first, last = times.get(p), stands[p].seen_ms if p in stands else None
        rows.append(
            PartitionPreview(
                partition=p,
                current=was,
                target=at,
                log_start=ends[p].log_start,
                log_end=ends[p].stable_end,
                again=again,
                back_ms=apart(first, last) if again and first is not None and last is not None else None,
                bytes=round(again * mean) if mean is not None else None,
                expires_ms=_left(first, topic.retention_ms, now) if again else None,
                published=sum(_published(row, OffsetRange(p, at, was or at)) for row in past),
            )
        )
    return rows


def _left(first: EpochMs | None, retention_ms: int | None, now: EpochMs) -> Milliseconds | None:
    """Milliseconds until the broker may delete a record of that time; less than 0 where it may already."""
    if first is None or retention_ms is None:
        return None
    return elapsed(since=now, until=EpochMs(first + retention_ms))


def _reads(row: BatchRow, again: Sequence[OffsetRange]) -> bool:
    return any(r.cut(a).size > 0 for r in row.read_ranges for a in again if r.partition == a.partition)


def _published(row: BatchRow, again: OffsetRange) -> int:
    """Chunks that the batch published of these offsets, at most."""
    inside = sum(r.cut(again).size for r in row.read_ranges if r.partition == again.partition)
    counted = row.partitions.get(str(again.partition), {})
    return min(inside, counted.get(Fate.PUBLISHED.value, 0))
