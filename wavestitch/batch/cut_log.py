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
from wavestitch.contracts.stream import Stream


def find_cuts(
    topic: str, positions: Mapping[int, Position], ends: Mapping[int, PartitionEnds], log: Log
) -> dict[int, int]:
    """The partitions that were cut off below their position, and where: what lies from there on was never read.

    Of positions outside of the log nothing is asked: that the log does not hold them says it all.
    """
    epochs = {
        p: at.leader_epoch
        for p, at in positions.items()
        if at.leader_epoch is not None
        and ends[p].log_start < at.next_offset <= ends[p].high_watermark
        and at.leader_epoch != ends[p].leader_epoch
    }
    found = log.epoch_ends(topic, epochs) if epochs else {}
    # A log that does not know the epoch was put back from before it: nothing says how far it is the same.
    known = {p: ends[p].log_start if end is None else end for p, end in found.items()}
    return {p: max(end, ends[p].log_start) for p, end in known.items() if end < positions[p].next_offset}


def refuse_cut_log(
    stream: Stream, positions: Mapping[int, Position], ends: Mapping[int, PartitionEnds], log: Log
) -> None:
    """Raises `DataLost`, with the way to all that was written anew."""
    cuts = find_cuts(stream.topic, positions, ends, log)
    if not cuts:
        return
    p, cut = min(cuts.items())
    position = positions[p].next_offset
    anew = ", ".join(str(OffsetRange(p, at, positions[p].next_offset)) for p, at in sorted(cuts.items()))
    places = ",".join(f"{p}:{at}" for p, at in sorted(cuts.items()))
    raise DataLost(
        f"stream {stream.name}: the log of {stream.topic} was cut off before {position} on partition {p} after it had "
        f"been read up to there, and written anew from {cut} on (an unclean leader election?); {anew} hold other "
        "records than those that were read. What was published stays. Read what is there now with `wavestitch rewind "
        f"{stream.name} --to {places} --apply`; what is published is recognised",
        partition=p,
        position=position,
        cut=cut,
    )


def said_of_cuts(cuts: Mapping[int, int], positions: Mapping[int, Position]) -> tuple[str, ...]:
    """A sentence each, for whoever is about to pass over what was written anew."""
    return tuple(
        f"partition {p} was cut off at {at} after it had been read up to {positions[p].next_offset}, and written anew: "
        f"{OffsetRange(p, at, positions[p].next_offset)} holds other records, which nobody has read"
        for p, at in sorted(cuts.items())
    )
