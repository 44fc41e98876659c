"""Whether the log still is the one that was read: cut off by an election below a position, or put back from a backup,
and written anew since.

Asks the log for what proves it, its content: the record batch in front of the position, which the head keeps. Where
that is another one, the log is the same up to the last place where the stream stood and that is proven. Where none was
kept, the leader epoch of the position says where it was cut off: where that epoch ends today (KIP-320). That proves
nothing: a cluster whose disks were put back counts epochs anew, or goes on in the one it had. Changes nothing. Keeps
I1, I8.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from types import MappingProxyType
from typing import Protocol

from wavestitch.contracts.accepted_skip import accepting
from wavestitch.contracts.errors import DataLost
from wavestitch.contracts.offset_range import OffsetRange
from wavestitch.contracts.ports import Log, PartitionEnds
from wavestitch.contracts.position import Head, LastBatch, Position
from wavestitch.contracts.quantities import Offset, Partition
from wavestitch.contracts.start_index import Epoch
from wavestitch.contracts.stream import Stream

Positions = Mapping[Partition, Position]
Earlier = Callable[[], Iterable[Positions]]
"""Where the stream stood before, on the same topic: asked for only where the log is another one."""


class _Heads(Protocol):
    def heads(self) -> Sequence[Head]: ...


def earlier_positions(tables: _Heads, topic_id: str) -> Earlier:
    """By the heads that are left."""
    return lambda: [head.positions for head in tables.heads() if head.topic_id == topic_id]


def find_cuts(
    topic: str, positions: Positions, ends: Mapping[Partition, PartitionEnds], log: Log, earlier: Earlier = tuple
) -> dict[Partition, Offset]:
    """The partitions that were cut off below their position, and where at the earliest: what lies from there on was
    never read, or not all of it.

    It is 0 where nobody knows any more: then anything that is gone may never have been read. Nothing is asked of
    positions that retention has passed, too: there a leader that changed and a log that was cut off look the same.
    """
    there = {p: at for p, at in positions.items() if ends[p].log_start < at.next_offset}
    other, unproven = _compared(topic, there, ends, log)
    # Where an epoch of that number ends today says nothing of these: it may have gone on after they were put back.
    cuts = dict.fromkeys(other, Offset(0)) | last_proven(topic, other, ends, log, earlier)
    cuts |= _ends_of_epochs(topic, unproven, ends, log)
    return {p: end if end > ends[p].log_start else Offset(0) for p, end in cuts.items()}


def _ends_of_epochs(
    topic: str, positions: Positions, ends: Mapping[Partition, PartitionEnds], log: Log
) -> dict[Partition, Offset]:
    """Where the leader epoch of a position ends, if that is below it."""
    epochs = {
        p: at.leader_epoch
        for p, at in positions.items()
        if at.leader_epoch is not None and at.leader_epoch != ends[p].leader_epoch
    }
    found = log.epoch_ends(topic, epochs) if epochs else {}
    # A log that does not know the epoch was put back from before it: nothing says how far it is the same.
    known = {p: ends[p].log_start if end is None else end for p, end in found.items()}
    return {p: end for p, end in known.items() if end < positions[p].next_offset}


def _compared(
    topic: str, positions: Positions, ends: Mapping[Partition, PartitionEnds], log: Log
) -> tuple[dict[Partition, Position], dict[Partition, Position]]:
    """The positions in front of which another batch is than was, or that the log ends before; and those of which
    nothing is proven: nobody kept it, or a cleaner or a broker has lost it since."""
    kept = {p: at for p, at in positions.items() if at.last_batch is not None}
    inside = {p: at for p, at in kept.items() if at.next_offset <= ends[p].high_watermark}
    now = _batches_before(topic, {p: at.next_offset for p, at in inside.items()}, log)
    gone = {p for p, found in now.items() if found is None}
    same = {p for p, at in inside.items() if now[p] == at.last_batch}
    other = {p: at for p, at in kept.items() if p not in same | gone}
    return other, {p: at for p, at in positions.items() if p not in other and p not in same}


def last_proven(
    topic: str, positions: Positions, ends: Mapping[Partition, PartitionEnds], log: Log, earlier: Earlier
) -> dict[Partition, Offset]:
    """The furthest place before the position where the stream stood and the log is as it was then. Found by halves:
    few questions, however many heads there are."""
    stood = list(earlier()) if positions else []
    places: dict[Partition, list[Position]] = {}
    for p, position in positions.items():
        within = range(ends[p].log_start + 1, position.next_offset)
        known = {at for one in stood if p in one and (at := one[p]).last_batch and at.next_offset in within}
        places[p] = sorted(known, key=lambda at: at.next_offset)
    found: dict[Partition, Offset] = {}
    while halves := {p: known[len(known) // 2] for p, known in places.items() if known}:
        now = _batches_before(topic, {p: at.next_offset for p, at in halves.items()}, log)
        for p, at in halves.items():
            half = len(places[p]) // 2
            if now[p] == at.last_batch:
                found[p], places[p] = at.next_offset, places[p][half + 1 :]
            else:
                places[p] = places[p][:half]
    return found


def _batches_before(topic: str, places: Mapping[Partition, Offset], log: Log) -> dict[Partition, LastBatch | None]:
    return log.batches_at(topic, {p: Offset(at - 1) for p, at in places.items()}) if places else {}


def with_last_batches(
    topic: str,
    positions: Positions,
    ends: Mapping[Partition, PartitionEnds],
    log: Log,
    *,
    was: Positions = MappingProxyType({}),
    earlier: Earlier = tuple,
    written: Set[Partition] = frozenset(),
) -> dict[Partition, Position]:
    """Positions where somebody puts a head, with the batch that is in front of each now, if anything is there.

    `was`: where it stood. Whoever goes back from there to behind a cut does not hide it: what was there stays. Nor does
    what is there now prove anything of a leader epoch before it, of which the next plan asks: it may have been written
    since `ends` were looked at, behind a cut. But for those of `written`, whose epoch is the one in which what lies in
    front of them had been written: it proves what is of that one, and what is of an earlier one proves another log."""
    inside = {p: at for p, at in positions.items() if ends[p].log_start < at.next_offset <= ends[p].high_watermark}
    back = {p: was[p] for p, at in positions.items() if p in was and at.next_offset <= was[p].next_offset}
    stood = {p: at for p, at in back.items() if at.last_batch is not None}
    behind = {p: at for p, at in stood.items() if p in inside}
    cuts = find_cuts(topic, behind, ends, log, earlier)
    hidden = {p: behind[p].last_batch for p, cut in cuts.items() if cut < inside[p].next_offset}
    # A log that ends before the place was cut off, wherever it ends tomorrow.
    hidden |= {p: at.last_batch for p, at in stood.items() if positions[p].next_offset > ends[p].high_watermark}
    present = {p for p, at in inside.items() if at.leader_epoch == ends[p].leader_epoch}
    sound = (inside.keys() & (behind.keys() | written | present)) - hidden.keys()
    now = _batches_before(topic, {p: inside[p].next_offset for p in sound}, log)
    hidden |= {p: _other_than(inside[p]) for p in sound & written if _is_earlier(now[p], inside[p])}
    last = {**{p: batch for p, batch in now.items() if not _is_later(batch, inside[p])}, **hidden}
    return {p: at._replace(last_batch=last.get(p)) for p, at in positions.items()}


def _is_later(batch: LastBatch | None, at: Position) -> bool:
    return batch is not None and at.leader_epoch is not None and batch.leader_epoch > at.leader_epoch


def _is_earlier(batch: LastBatch | None, at: Position) -> bool:
    return batch is not None and at.leader_epoch is not None and batch.leader_epoch < at.leader_epoch


def _other_than(at: Position) -> LastBatch | None:
    """What was read in front of it, of which the epoch alone is known: no batch has that digest."""
    return LastBatch(at.leader_epoch, "0" * 32) if at.leader_epoch is not None else None


def said_of_unproven(
    topic: str, stands: Positions, after: Positions, ends: Mapping[Partition, PartitionEnds]
) -> tuple[str, ...]:
    """A sentence for the partitions of which a plan knows by leader epochs alone what lies in front of where it starts,
    or whoever comes next would, of where it ends."""

    def unknown(positions: Positions) -> str:
        inside = {p: at for p, at in positions.items() if ends[p].log_start < at.next_offset <= ends[p].high_watermark}
        return ", ".join(f"{p} (before {at.next_offset})" for p, at in sorted(inside.items()) if at.last_batch is None)

    said = (
        (unknown(stands), "was not kept by the head", "the head of this batch keeps it"),
        (unknown(after), "could not be read", "give who plans the right to read the topic, if that is what is missing"),
    )
    return tuple(
        f"the record batch in front of partitions {where} of {topic} {why}: whether the log is the one that was read "
        f"is told by leader epochs alone, which brokers put back from a backup use again; {then}"
        for where, why, then in said
        if where
    )


def find_cuts_since(
    topic: str, read: Mapping[Epoch, Offset], ends: Mapping[Partition, PartitionEnds], log: Log
) -> dict[Epoch, Offset]:
    """The same of whatever was read in an epoch, up to these offsets: one question for as many epochs as a partition
    has had since. In an epoch that goes on it is gone at least from where the log ends."""
    # A row that names a partition which the topic has not says nothing of its log.
    left, found = sorted(one for one in read if one[0] in ends), dict[Epoch, Offset]()
    beyond = [(p, e) for p, e in left if e == ends[p].leader_epoch and read[p, e] > ends[p].high_watermark]
    found |= {(p, e): ends[p].high_watermark for p, e in beyond}
    while left:
        turn = dict(left)
        cuts = find_cuts(topic, {p: Position(read[p, e], leader_epoch=e) for p, e in turn.items()}, ends, log)
        found |= {(p, turn[p]): at for p, at in cuts.items()}
        left = [one for one in left if turn[one[0]] != one[1]]
    return found


def refuse_cut_log(
    stream: Stream, positions: Positions, ends: Mapping[Partition, PartitionEnds], log: Log, earlier: Earlier = tuple
) -> None:
    """Raises `DataLost`, with the way to all that was written anew."""
    cuts = find_cuts(stream.topic, positions, ends, log, earlier)
    if not cuts:
        return
    p, cut = min(cuts.items())
    position = positions[p].next_offset
    anew = ", ".join(str(OffsetRange(p, at, positions[p].next_offset)) for p, at in sorted(cuts.items()))
    places = ",".join(f"{p}:{max(at, ends[p].log_start)}" for p, at in sorted(cuts.items()))
    gone = [OffsetRange(p, at, ends[p].log_start) for p, at in sorted(cuts.items()) if at < ends[p].log_start]
    named = f"; gone by now, and perhaps never read, are {', '.join(map(str, gone))}" if gone else ""
    where = "from where nobody can say any more" if cut < ends[p].log_start else f"from {cut} on, at the earliest"
    raise DataLost(
        f"stream {stream.name}: the log of {stream.topic} was cut off before {position} on partition {p} after it had "
        f"been read up to there, and written anew {where} (an unclean leader election, or brokers put back from a "
        f"backup?); {anew} may hold other records than those that were read{named}. What was published stays. Read "
        f"what is there now with `wavestitch rewind {stream.name} --to {places}{accepting(gone)} --apply`; what is "
        "published is recognised",
        partition=p,
        position=position,
        cut=cut,
    )


def refuse_gone_anew(
    stream: Stream, positions: Positions, ends: Mapping[Partition, PartitionEnds], log: Log, earlier: Earlier
) -> None:
    """The same, only where a part of what was written anew is gone."""
    cuts = find_cuts(stream.topic, positions, ends, log, earlier)
    refuse_cut_log(stream, {p: positions[p] for p, at in cuts.items() if at < ends[p].log_start}, ends, log, earlier)


def said_of_cuts(
    cuts: Mapping[Partition, Offset], positions: Positions, wanted: Mapping[Partition, Offset]
) -> tuple[str, ...]:
    """A sentence each, for whoever is about to pass over what was written anew."""
    passed = {p: OffsetRange(p, at, min(wanted[p], positions[p].next_offset)) for p, at in sorted(cuts.items())}
    return tuple(
        f"partition {p} was cut off {f'at {r.start}' if r.start else 'somewhere'} after it had been read up to "
        f"{positions[p].next_offset}, and written anew: {r} holds other records, which nobody has read"
        for p, r in passed.items()
        if r.size > 0
    )
