"""A head in place of one that somebody else's tool expired: what it can be made from, and what nobody knows any more.

The group's tag proves which positions a head of this table had. What was held is found in the held table (`find_held`).
The history proves that the decisions up to it are known, and that nobody rewound since. Where any of these is missing,
a partition begins again at the log's start: reading again loses nothing, since what is published is recognised; what
retention took before that may never have been read, and is named. So is what somebody took out of the tables. Never
takes a position that was not proven. Keeps I1, I2 and I7.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass

from wavestitch.batch.found_held import FoundHeld, Missing
from wavestitch.batch.rewind_target import Sight
from wavestitch.contracts.batch_row import BatchRow, rows_behind
from wavestitch.contracts.errors import Refused
from wavestitch.contracts.offset_range import OffsetRange, without
from wavestitch.contracts.plain_text import ACCEPTED_MISSING
from wavestitch.contracts.ports import Remains
from wavestitch.contracts.position import Head, HeadKind, Position, Tag, is_believable, parse_tag
from wavestitch.contracts.protocol import moved_position, still_skipped
from wavestitch.contracts.quantities import BEGINNING, NONE_YET, Generation, LeaderEpoch, Offset, Partition
from wavestitch.contracts.written import NO_EPOCH, epoch_at

_SHOWN = 20
_STAYS = frozenset(
    {HeadKind.BACKFILL, HeadKind.MANUAL, HeadKind.HELD, HeadKind.PROMOTE, HeadKind.MAINTENANCE, HeadKind.GATE}
)
"""Heads that stand where the one before them did."""


@dataclass(frozen=True, slots=True)
class Rebuilt:
    """`skipped`: below the log's start, and perhaps never read. `missing`: of the tables, to be accepted by name.
    `remarks`: a sentence each, for people. `stood`: where the newest head of the topic that is left in the metadata
    does, of the partitions whose log still is the one that it knows. `written`: partitions whose position is of the
    leader epoch in which the record in front of it had been written."""

    head: Head
    skipped: tuple[OffsetRange, ...]
    missing: tuple[Missing, ...]
    remarks: tuple[str, ...]
    stood: Mapping[Partition, Position]
    written: frozenset[Partition]


def rebuild_head(
    sight: Sight,
    remains: Remains,
    history: Sequence[BatchRow],
    *,
    others: int,
    held: FoundHeld,
    by_plan: Callable[[], Mapping[str, int]],
    note: str,
) -> Rebuilt:
    """`history`: of this table, newest first. `others`: the last number that a head of another one has. `by_plan`:
    asked how many published rows each plan has, where some are missing. Raises `Refused` where nothing ever was."""
    tags = {p: tag for p in sight.topic.partitions if (tag := _tag(sight, remains, p)) is not None}
    if remains.last_sequence == 0 and not tags and not history:
        raise Refused(f"stream {sight.stream.name} never had a head; there is nothing to rebuild")
    missing = missing_published(remains, history, by_plan) + held.missing
    left = remains.left if remains.left is not None and remains.left.topic_id == sight.topic.topic_id else None
    # Where something is staged that a lost head may have named, what is held is not known: all is read again.
    newest = _newest_generation(remains, history)
    behind = rows_behind((newest, max((b.sequence for b in history), default=0)), history)
    ingests = [b for b in behind if b.kind == HeadKind.INGEST and b.topic_id == sight.topic.topic_id]
    since = [b for b in ingests if left is not None and b.sequence > left.sequence]
    known_to = _known_to(behind, newest)
    elsewhere = _of_other_topics(behind, sight.topic.topic_id)
    doubts = {
        p: doubt
        for p, tag in tags.items()
        if (doubt := _doubted(tag, known_to, newest, elsewhere, settled=held.settled) or _denied(sight, p, tag, behind))
    }
    shown = {p: found.offset for p, found in sight.group.items() if p in tags.keys() - doubts and found is not None}
    stood = {p: at for p, at in left.positions.items() if not _is_replaced(p, at, since)} if left is not None else {}
    # Where the stream stands still, the batch in front of it says more than any leader epoch.
    kept = {p: at.leader_epoch for p, at in stood.items() if shown.get(p) == at.next_offset and at.last_batch}
    written = {p: epoch for p in shown.keys() - kept if (epoch := _written(sight, p, tags[p], ingests)) is not None}
    positions = {p: _position(sight, p, shown, left, {**kept, **written}) for p in sight.topic.partitions}
    stands = {p: at.next_offset for p, at in positions.items()}
    # Beyond the log's end it was cut off, and nobody can say where.
    read_to = {
        p: shown[p] if p in shown and shown[p] <= at.high_watermark else Offset(0) for p, at in sight.ends.items()
    }
    skipped = tuple(
        OffsetRange(p, read_to[p], at.log_start)
        for p, at in sorted(sight.ends.items())
        if p in positions and read_to[p] < at.log_start
    )
    known = [*(t.sequence for t in tags.values()), *(b.sequence for b in history)]
    # A table counts its snapshots from 1, and its heads begin beyond those of one that was there before.
    last = remains.last_sequence + others
    head = Head(
        sequence=max(last, held.last_sequence, *known) + 1,
        generation=_generation(last, remains, tags, history),
        kind=HeadKind.REBUILT,
        topic_id=sight.topic.topic_id,
        positions=positions,
        skipped=(_still_skipped(left, stands, since) if left is not None else ()) + skipped,
        watermark_ms=left.watermark_ms if left is not None else BEGINNING,
        note=with_missing(note, missing, held.left_out),
        held=held.mark,
    )
    remarks = _remarks(sight, remains, tags, stands, doubts=doubts, left=left)
    return Rebuilt(head, skipped, missing, remarks + held.remarks, stood, frozenset(written))


def with_missing(note: str, missing: Sequence[Missing], left_out: Sequence[str] = ()) -> str:
    """The note of a head under which somebody accepts what is missing, and goes on without what cannot be proven."""
    note += f"; {ACCEPTED_MISSING}{', '.join(m.what for m in missing)}" if missing else ""
    return note + (f"; not taken: {', '.join(left_out)}" if left_out else "")


def _tag(sight: Sight, remains: Remains, partition: Partition) -> Tag | None:
    found = sight.group.get(partition)
    tag = parse_tag(found.metadata) if found is not None else None
    return tag if tag is not None and tag.table == remains.table and is_believable(tag, remains.left) else None


def _of_other_topics(history: Sequence[BatchRow], topic_id: str) -> set[int]:
    """Heads that stood in a topic which was there before: the group, which is asked by the topic's name, may still show
    where. A row that names no topic is of a version that wrote none."""
    return {b.sequence for b in history if b.topic_id not in ("", topic_id)}


def _newest_generation(remains: Remains, history: Sequence[BatchRow]) -> Generation:
    left = NONE_YET if remains.left is None else remains.left.generation
    return max([left, *(b.generation for b in history)])


def _position(
    sight: Sight,
    partition: Partition,
    shown: Mapping[Partition, Offset],
    left: Head | None,
    epochs: Mapping[Partition, LeaderEpoch | None],
) -> Position:
    here = sight.ends[partition]
    at = shown.get(partition)
    # Beyond the log's end: it was cut back. Below its start: retention; then what is gone is named as skipped.
    to = here.log_start if at is None or not here.log_start <= at <= here.high_watermark else at
    found = sight.group.get(partition)
    # A log that was cut off since is found out by the epoch of a head that still stands there, or in which the record
    # in front of it had been written, or by the one in which the group stood there, a later one, which brokers that
    # were put back in between use again.
    epoch = None
    if found is not None and found.offset == to > here.log_start:
        epoch = epochs.get(partition, found.leader_epoch)
    if epoch is not None:
        return Position(to, leader_epoch=epoch)
    return moved_position(to, was=left.positions.get(partition) if left is not None else None, here=here)


def _known_to(history: Sequence[BatchRow], newest: Generation) -> int:
    """The last head up to which every one since the stream's first stands in the history, and once; or since one that
    was rebuilt, which follows from no decision before it. Where two of the newest generation have one number, the table
    was set back to before that, and a tag may be of either."""
    first = max((b.sequence for b in history if b.kind in (HeadKind.FIRST, HeadKind.REBUILT)), default=1)
    told = Counter(b.sequence for b in history if b.generation == newest)
    known = {b.sequence for b in history if told[b.sequence] < 2}
    to = first - 1
    while to + 1 in known:
        to += 1
    return to


def _generation(last: int, remains: Remains, tags: Mapping[Partition, Tag], history: Sequence[BatchRow]) -> Generation:
    """Newer than any that ever was: each head that left no trace may have been a rewind."""
    versions = [*((t.generation, t.sequence) for t in tags.values()), *((b.generation, b.sequence) for b in history)]
    if remains.left is not None:
        versions.append(remains.left.version)
    generation = max((g for g, _ in versions), default=0)
    untraced = max(0, last - max((s for _, s in versions), default=0))
    return Generation(generation + untraced + 1)


def missing_published(
    remains: Remains, history: Sequence[BatchRow], by_plan: Callable[[], Mapping[str, int]]
) -> tuple[Missing, ...]:
    """Rows that the history counts and the table has not: deleted on purpose, rolled back, or lost."""
    recorded = sum(b.waveforms.get("published", 0) for b in history)
    there = by_plan()
    # Batch by batch: rows of one that the history does not know would stand in for those that another one lacks.
    batches = [(b, b.waveforms.get("published", 0), there.get(b.plan_id, 0)) for b in history if b.plan_id]
    short = [(b, said, has) for b, said, has in batches if has < said]
    where = "; ".join(_of_batch(*one) for one in short[:_SHOWN])
    more = f"; and {len(short) - _SHOWN} batches more" if len(short) > _SHOWN else ""
    where = f" ({where}{more})" if where else ""
    n = max(recorded - remains.rows, sum(said - has for _, said, has in short))
    if n <= 0:
        return ()
    said = (
        f"{n} published waveforms: the history counts {recorded}, the table has {remains.rows}{where}. If the "
        "table was rolled back, put it back (an older metadata file); what was taken out on purpose stays away unless "
        "its offsets are read again"
    )
    return (Missing(f"{n} published waveforms", said),)


def _of_batch(row: BatchRow, said: int, has: int) -> str:
    ranges = ", ".join(str(r) for r in row.read_ranges) or "no offsets are known"
    return f"batch {row.plan_id[:16]}: {has} of {said}, {ranges}"


def _doubted(tag: Tag, known_to: int, newest: Generation, others: Set[int], *, settled: bool) -> str:
    """Why the stream may not have stood there; empty where all decisions up to it are known, and nobody is known to
    have rewound since."""
    if not settled:
        return f"the tag shows head {tag.sequence}, and a head may have named what is staged in the held table"
    if tag.sequence in others:
        return f"the tag shows head {tag.sequence}, which read another topic of this name, before it was made anew"
    if tag.sequence > known_to:
        return (
            f"the tag shows head {tag.sequence}, the history knows all decisions up to head {known_to} only, each "
            "once, so what was read and held since may not be known"
        )
    if tag.generation < newest:
        return f"the tag shows head {tag.sequence} of generation {tag.generation}, and the stream was rewound since"
    return ""


def _denied(sight: Sight, partition: Partition, tag: Tag, history: Sequence[BatchRow]) -> str:
    """Why the head that the history knows by the tag's number is another one, whose number it took after the table was
    set back; empty where nothing tells."""
    found, stood = sight.group.get(partition), _read_to(tag, partition, history)
    if found is None or stood in (None, found.offset):
        return ""
    said = f"the tag shows head {tag.sequence} at {found.offset}, by the history that one stood at {stood}: "
    return said + "the table was set back"


def _read_to(tag: Tag, partition: Partition, history: Sequence[BatchRow]) -> Offset | None:
    """Up to where the tag's head had read; None where that is not known."""
    for row in sorted((b for b in history if b.sequence <= tag.sequence), key=lambda b: b.sequence, reverse=True):
        if row.kind in _STAYS:
            continue
        if row.kind != HeadKind.INGEST or not row.ranges:
            break  # moved on purpose, or what it read is not known
        stood = max((r.end for r in row.read_ranges if r.partition == partition), default=None)
        if stood is not None:
            return stood
    return None


def _written(sight: Sight, partition: Partition, tag: Tag, ingests: Sequence[BatchRow]) -> LeaderEpoch | None:
    """In which epoch what lies in front of where the group stands had been written when it was read last, however the
    stream came to stand there; None where that is not known, or the log has not come to the group's own epoch: that is
    the one which shows that it was put back."""
    found, now = sight.group[partition], sight.ends[partition]
    if found is None:
        return None
    if found.leader_epoch is not None and now.leader_epoch is not None and found.leader_epoch > now.leader_epoch:
        return None
    there = OffsetRange(partition, Offset(found.offset - 1), found.offset)
    before = [b for b in ingests if b.sequence <= tag.sequence and _has_read(b, there)]
    if not before:
        return None
    epoch = epoch_at(max(before, key=lambda b: b.sequence).written_in(partition), there.start)
    return None if epoch == NO_EPOCH else epoch


def _has_read(row: BatchRow, some: OffsetRange) -> bool:
    return any(r.partition == some.partition and some.cut(r) == some for r in row.read_ranges)


def _is_replaced(partition: Partition, at: Position, since: Sequence[BatchRow]) -> bool:
    """Whether something before a position of the head that is left was read later, and had been written in a later
    epoch than the batch in front of it: the log was cut off there, and what was written anew has been read."""
    was = at.last_batch
    runs = [run for b in since for run in b.written_in(partition)]
    return was is not None and any(run.start < at.next_offset and run.epoch > was.leader_epoch for run in runs)


def _still_skipped(
    left: Head, stands: Mapping[Partition, Offset], since: Sequence[BatchRow]
) -> tuple[OffsetRange, ...]:
    """What the head that is left gave up, but for what was read after all."""
    return tuple(without(still_skipped(left.skipped, stands), [r for b in since for r in b.read_ranges]))


def _from_tag(sight: Sight, partition: Partition, stands: Offset) -> str:
    """Where a tag that is believed leads to."""
    found, here = sight.group[partition], sight.ends[partition]
    if found is None or found.offset == stands:
        return "the group's tag"
    if found.offset < stands:
        return f"the log's start; the group's tag shows {found.offset}, where retention has been since"
    return f"the log's start; the group's tag shows {found.offset}, beyond the log's end {here.high_watermark}"


def _remarks(
    sight: Sight,
    remains: Remains,
    tags: Mapping[Partition, Tag],
    stands: Mapping[Partition, Offset],
    *,
    doubts: Mapping[Partition, str],
    left: Head | None,
) -> tuple[str, ...]:
    said = [f"table {remains.table} has {remains.rows} published waveforms and no head; it is made anew from:"]
    for p in sight.topic.partitions:
        if p not in tags:
            said.append(f"partition {p}: the log's start; the group has no tag of this table")
        elif p in doubts:
            said.append(f"partition {p}: the log's start; {doubts[p]}")
        else:
            head = f"(head {tags[p].sequence}, generation {tags[p].generation})"
            said.append(f"partition {p}: {_from_tag(sight, p, stands[p])} {head}")
    if left is None:
        said.append("not known: skipped ranges, and the watermark, which begins anew; the topic is the one of now")
    else:
        said.append(f"skipped ranges and watermark: from head {left.sequence}, which is left in the table's metadata")
    return tuple(said)
