"""What an operator decides about held waveforms: five actions, and what each makes of a waveform's held chunks.

    redrive   decide again by the stream's present definition
    accept    publish in spite of a failed expectation, an implausible time, a wrong sample count or another ws-digest
    pick      of a conflict one copy: the first, the last, or the one at a place
    discard   a tombstone: none of these pieces is ever taken in again
    restore   undoes discard: what was held is held again as it was before

Pure. Never invents: what cannot be whole is not made whole, and what is published stays as it is (I2, I3).
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from wavestitch.contracts.assembly import ChunkFacts, Coordinate
from wavestitch.contracts.errors import BadInput
from wavestitch.contracts.offset_range import parse_place


class HeldAction(StrEnum):
    REDRIVE = "redrive"
    ACCEPT = "accept"
    PICK = "pick"
    DISCARD = "discard"
    RESTORE = "restore"


@dataclass(frozen=True, slots=True)
class HeldChoice:
    """`ids`: the waveforms. `pick`: `first`, `last` or, as `[TOPICID:]PARTITION:OFFSET`, the place of the copy that is
    right; empty for the other actions. `among`: the chunks that were shown of each, or that an undo changes, as digests
    beside the ids: of others it is not made. `who` and `why`: kept in the head's note."""

    action: HeldAction
    ids: tuple[str, ...]
    who: str
    why: str
    pick: str = ""
    among: tuple[str, ...] = ()

    @property
    def note(self) -> str:
        picked = f" {self.pick}" if self.pick else ""
        return f"{self.action.value}{picked} by {self.who}: {self.why}"


def check_pick(pick: str) -> tuple[str, int, int] | None:
    """Topic id (empty: whichever it is), partition and offset, or None for `first` and `last`. Raises `BadInput` for
    anything else."""
    if pick in ("first", "last"):
        return None
    place = parse_place(pick)
    if place is None:
        raise BadInput(
            f"--copy is {ascii(pick)[:80]}; allowed are first, last, PARTITION:OFFSET or TOPICID:PARTITION:OFFSET of "
            "the right copy"
        )
    return place


def topics_at(chunks: Iterable[ChunkFacts], pick: str) -> list[str]:
    """Of how many topics a place names a chunk: one, or nobody can tell which copy is meant."""
    place = check_pick(pick)
    return sorted({c.topic_id for c in chunks if place is not None and _is_at(c, place)})


def _is_at(c: ChunkFacts, place: tuple[str, int, int]) -> bool:
    return (c.partition, c.offset) == place[1:] and place[0] in ("", c.topic_id)


def digest_of(chunks: Iterable[ChunkFacts]) -> str:
    """Names the chunks that a decision is about, or an undo changes, by coordinate and what lies there."""
    return hashlib.sha256("\n".join(sorted(repr(c.key) for c in chunks)).encode()).hexdigest()


def pick_copy(chunks: Iterable[ChunkFacts], pick: str) -> tuple[list[ChunkFacts], list[ChunkFacts]]:
    """The chunks that belong to the copy that was picked, and those that do not.

    The copy is named by one chunk, by record time and place. What agrees with it in metadata, count and digest, says no
    fewer chunks than belong to it so far, and holds the only or (by the same order) the picked bytes of its sequence
    number, belongs to it.
    """
    ordered = sorted(chunks, key=lambda c: (c.timestamp_ms, c.topic_id, c.partition, c.offset), reverse=pick == "last")
    place = check_pick(pick)
    if place is not None:
        # Stable: the one at the place is the first of all, the rest stay in order.
        ordered.sort(key=lambda c: not _is_at(c, place))
        if len(topics_at(ordered, pick)) != 1:
            return [], ordered
    kept: list[ChunkFacts] = []
    dropped: list[ChunkFacts] = []
    bytes_of: dict[int | None, tuple[int | None, bytes]] = {}
    count = digest = None
    last = -1
    for c in ordered:
        same = not kept or (
            c.meta == kept[0].meta
            and (c.count is None or count is None or c.count == count)
            and (c.digest is None or digest is None or c.digest == digest)
            and (c.count is None or c.count > last)
        )
        beyond = count is not None and c.seq is not None and c.seq >= count
        if same and not beyond and bytes_of.setdefault(c.seq, c.identity) == c.identity:
            kept.append(c)
            last = max(last, last if c.seq is None else c.seq)
            count, digest = c.count if count is None else count, c.digest if digest is None else digest
        else:
            dropped.append(c)
    return kept, dropped


def place_of(coordinate: Coordinate) -> str:
    return f"{coordinate[1]}:{coordinate[2]}"
