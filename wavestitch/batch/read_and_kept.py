"""What batches have read, and published or held all of: what is there and in no table was taken out of it.

Of what the head names as skipped that is believed where it was read since, or where the log is proven to be the very
one that was read before (somebody went back, and forward again over what was read). A skip may go over what was written
anew where other records were read. Asks the log for that; changes nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from wavestitch.batch.cut_log import last_proven
from wavestitch.batch.history import history_of, whole_history
from wavestitch.batch.publishes_nothing import ComparingEdges
from wavestitch.batch.unseen_partition import refuse_unseen
from wavestitch.contracts.batch_row import rows_behind, rows_of
from wavestitch.contracts.offset_range import OffsetRange, without
from wavestitch.contracts.plan import PlanKind
from wavestitch.contracts.position import Head, Position
from wavestitch.contracts.quantities import Generation, Offset, Partition

_KEEPING = frozenset(kind for kind in PlanKind if kind.keeps_all)


def read_and_kept(edges: ComparingEdges, topic_id: str, asked: Sequence[OffsetRange]) -> list[OffsetRange]:
    """As the history behind the snapshot's head knows it; `asked`: what somebody wants to know it of."""
    head = edges.snapshot.head
    rows = rows_behind(head.version, rows_of(edges.tables.table_uuid(), whole_history(history_of(edges))))
    mine = [row for row in rows if row.topic_id in ("", topic_id) and (row.kind in _KEEPING or row.left_nothing)]
    passed = without(asked, without(asked, head.skipped))
    if not passed:
        return [r for row in mine for r in row.read_ranges]
    heads = [h for h in edges.snapshot.heads() if h.topic_id == topic_id]
    since = skipped_since(head, heads)
    over = {r.partition for r in passed}
    same = _same_log(
        edges, heads, {row.generation for row in mine if not over.isdisjoint(_partitions(row.read_ranges))}
    )
    found: list[OffsetRange] = []
    for row in mine:
        proven = [OffsetRange(p, Offset(0), at) for p, at in same.get(row.generation, {}).items()]
        found += without(row.read_ranges, without(head.skipped, [*since.get(row.generation, ()), *proven]))
    return found


def skipped_since(head: Head, heads: Sequence[Head]) -> dict[Generation, list[OffsetRange]]:
    """By generation, what of the head's skipped ranges had been skipped then, and without a break since: what a batch
    of it read there, it read in the log of after the skip. `heads`: newest first."""
    found: dict[Generation, list[OffsetRange]] = {}
    standing = list(head.skipped)
    for one in heads:
        standing = without(standing, without(standing, one.skipped))
        found[one.generation] = standing
    return found


def _same_log(
    edges: ComparingEdges, heads: Sequence[Head], generations: Collection[Generation]
) -> dict[Generation, Mapping[Partition, Offset]]:
    """By generation, how far the log is the one in which the stream stood then: within a generation it only went
    forward, and each plan had looked that the log before it was the same."""
    topic = edges.log.topic(edges.stream.topic)
    refuse_unseen(edges.name, topic, edges.snapshot.head)
    ends = edges.log.ends(topic.name, topic.partitions)
    beyond = {p: Position(Offset(end.high_watermark + 1)) for p, end in ends.items()}
    found: dict[Generation, Mapping[Partition, Offset]] = {}
    for generation in sorted(generations):
        stood = [h.positions for h in heads if h.generation == generation]
        found[generation] = last_proven(topic.name, beyond, ends, edges.log, lambda stood=stood: stood)  # type: ignore[misc]
    return found


def _partitions(ranges: Sequence[OffsetRange]) -> set[Partition]:
    return {r.partition for r in ranges}
