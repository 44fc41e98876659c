"""Whether the log still is the one that was read: cut off by an election below a position, and written anew since.

Asks the log, and only where its leader changed since the position was kept: an epoch is never used twice, so what was
read in it ends today where it did, or before (KIP-320). Changes nothing. Keeps I1 and I8.
"""

from __future__ import annotations

from collections.abc import Mapping

from wavestitch.contracts.errors import DataLost
from wavestitch.contracts.offset_range import OffsetRange
from wavestitch.contracts.ports import Log, PartitionEnds
from wavestitch.contracts.position import Position
from wavestitch.contracts.quantities import Offset, Partition
from wavestitch.contracts.start_index import Epoch
from wavestitch.contracts.stream import Stream


def find_cuts(
    topic: str, positions: Mapping[Partition, Position], ends: Mapping[Partition, PartitionEnds], log: Log
) -> dict[Partition, Offset]:
    """The partitions that were cut off below their position, and where: what lies from there on was never read.

    It is 0 where retention has passed the cut: then a broker knows its place no more, and anything that is gone may
    never have been read. Nothing is asked of positions that retention has passed, too: there a leader that changed and
    a log that was cut off look the same.
    """
    epochs = {
        p: at.leader_epoch
        for p, at in positions.items()
        if at.leader_epoch is not None
        and ends[p].log_start < at.next_offset
        and at.leader_epoch != ends[p].leader_epoch
    }
    found = log.epoch_ends(topic, epochs) if epochs else {}
    # A log that does not know the epoch was put back from before it: nothing says how far it is the same.
    known = {p: ends[p].log_start if end is None else end for p, end in found.items()}
    cuts = {p: end for p, end in known.items() if end < positions[p].next_offset}
    return {p: end if end > ends[p].log_start else Offset(0) for p, end in cuts.items()}


def find_cuts_since(
    topic: str, read: Mapping[Epoch, Offset], ends: Mapping[Partition, PartitionEnds], log: Log
) -> dict[Epoch, Offset]:
    """The same of whatever was read in an epoch, up to these offsets: one question for as many epochs as a partition
    has had since."""
    # A row that names a partition which the topic has not says nothing of its log.
    left, found = sorted(one for one in read if one[0] in ends), dict[Epoch, Offset]()
    while left:
        turn = dict(left)
        cuts = find_cuts(topic, {p: Position(read[p, e], leader_epoch=e) for p, e in turn.items()}, ends, log)
        found |= {(p, turn[p]): at for p, at in cuts.items()}
        left = [one for one in left if turn[one[0]] != one[1]]
    return found


def refuse_cut_log(
    stream: Stream, positions: Mapping[Partition, Position], ends: Mapping[Partition, PartitionEnds], log: Log
) -> None:
    """Raises `DataLost`, with the way to all that was written anew."""
    cuts = find_cuts(stream.topic, positions, ends, log)
    if not cuts:
        return
    p, cut = min(cuts.items())
    position = positions[p].next_offset
    anew = ", ".join(str(OffsetRange(p, at, positions[p].next_offset)) for p, at in sorted(cuts.items()))
    places = ",".join(f"{p}:{max(at, ends[p].log_start)}" for p, at in sorted(cuts.items()))
    gone = [OffsetRange(p, at, ends[p].log_start) for p, at in sorted(cuts.items()) if at < ends[p].log_start]
    named = f"; gone by now, and perhaps never read, are {', '.join(map(str, gone))}" if gone else ""
    where = "from where nobody can say any more" if cut < ends[p].log_start else f"from {cut} on"
    on = " --accept-skip" if gone else ""
    raise DataLost(
        f"stream {stream.name}: the log of {stream.topic} was cut off before {position} on partition {p} after it had "
        f"been read up to there, and written anew {where} (an unclean leader election?); {anew} hold other records "
        f"than those that were read{named}. What was published stays. Read what is there now with `wavestitch rewind "
        f"{stream.name} --to {places}{on} --apply`; what is published is recognised",
        partition=p,
        position=position,
        cut=cut,
    )


def refuse_gone_anew(
    stream: Stream, positions: Mapping[Partition, Position], ends: Mapping[Partition, PartitionEnds], log: Log
) -> None:
    """The same, only where a part of what was written anew is gone."""
    cuts = find_cuts(stream.topic, positions, ends, log)
    refuse_cut_log(stream, {p: positions[p] for p, at in cuts.items() if at < ends[p].log_start}, ends, log)


def said_of_cuts(
    cuts: Mapping[Partition, Offset], positions: Mapping[Partition, Position], wanted: Mapping[Partition, Offset]
) -> tuple[str, ...]:
    """A sentence each, for whoever is about to pass over what was written anew."""
    passed = {p: OffsetRange(p, at, min(wanted[p], positions[p].next_offset)) for p, at in sorted(cuts.items())}
    return tuple(
        f"partition {p} was cut off {f'at {r.start}' if r.start else 'somewhere'} after it had been read up to "
        f"{positions[p].next_offset}, and written anew: {r} holds other records, which nobody has read"
        for p, r in passed.items()
        if r.size > 0
    )
