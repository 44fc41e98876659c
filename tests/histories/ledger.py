"""What a history has said so far: the records and who can see them, what is published and held, where heads and group
stand. Answers one question, whether a record is durable; decides nothing else. Shares no code with the product.
"""

from __future__ import annotations

from collections import defaultdict

from tests.domain.oracle import Piece, piece_of
from tests.histories.history import (
    Committed,
    Coordinate,
    Event,
    Forgotten,
    Held,
    Planned,
    Produced,
    Projected,
    Published,
    Read,
    Recorded,
    Reset,
    Settled,
    TopicMade,
)

Identity = tuple[str | None, int | None, int, bytes]
"""Waveform id, sequence number, length and digest: equal for two copies of one chunk."""


class Ledger:
    """`seen`: committed, open, aborted or marker. `reads`: per plan, the coordinates that it landed. `group`: offset
    and version (generation, sequence) of its tag, None where the tag is not ours."""

    def __init__(self) -> None:
        self.topic_id = ""
        self.records: dict[Coordinate, Produced] = {}
        self.seen: dict[Coordinate, str] = {}
        self.heads: list[Committed] = []
        self.plans: dict[str, Planned] = {}
        self.reads: dict[str, set[Coordinate]] = defaultdict(set)
        self.published: dict[str, list[Published]] = defaultdict(list)
        self.held: dict[Coordinate, list[Held]] = defaultdict(list)
        self.group: dict[int, tuple[int, tuple[int, int] | None]] = {}
        self._published_pieces: set[Identity] = set()
        self._held_pieces: dict[Identity, list[Held]] = defaultdict(list)
        self._payloads: dict[tuple[Coordinate, Identity], bytes | None] = {}
        self._decisions: set[str] = set()
        self._events: list[Event] = []
        self.lost: list[Committed] = []
        """Heads of catalogs that were lost or set back."""

    def set_back(self, to: int) -> None:
        """As if of the tables only what is no later than head `to` had ever been written."""
        kept = [h for h in self.heads if h.sequence <= to]
        decisions = {h.decision for h in kept} - {""}
        lost = [*self.lost, *self.heads[len(kept) :]]
        events = [e for e in self._events if not _in_a_table(e) or _stays(e, to, decisions)]
        self.__init__()  # type: ignore[misc]
        for event in events:
            self.take(event)
        self.lost = lost

    def take(self, event: Event) -> None:
        self._events.append(event)
        match event:
            case Produced():
                self.records[event.coordinate] = event
                self.seen[event.coordinate] = event.seen
            case Settled():
                for offset in event.offsets:
                    self.seen[event.topic_id, event.partition, offset] = event.outcome
            case TopicMade():
                self.topic_id = event.topic_id
                self.group = {}
            case Planned():
                self.plans[event.plan_id] = event
            case Read():
                self.reads[event.plan_id].update((event.topic_id, event.partition, o) for o in event.offsets)
            case Held():
                self._hold(event)
            case Published():
                self.published[event.id].append(event)
                self._published_pieces |= {(event.id, n, c[3], bytes.fromhex(c[4])) for n, c in enumerate(event.chunks)}
            case Committed():
                self.heads.append(event)
                self._decisions = self._decisions | {event.decision} if event.held is None else set(event.held)
            case Projected():
                self.group |= {p: (o, (event.generation, event.sequence)) for p, o in event.offsets.items()}
            case Reset() if event.offset is None:
                self.group.pop(event.partition, None)
            case Reset():
                self.group[event.partition] = (event.offset, None)

    def _hold(self, row: Held) -> None:
        self.held[row.coordinate].append(row)
        if row.valid:
            self._held_pieces[_identity(row)].append(row)
        if row.stored:
            self._payloads.setdefault((row.coordinate, _identity(row)), row.payload)

    def counts(self, row: Held) -> bool:
        """Whether a held row is in the snapshot that the newest head names."""
        return row.decision != "" and row.decision in self._decisions

    def durable(self, coordinate: Coordinate) -> bool:
        """Whether the record is held with its bytes, or is a copy of a chunk that is published or so held."""
        record = self.records[coordinate]
        if any(self.counts(row) and self._has(row, record.value) for row in self.held.get(coordinate, ())):
            return True
        piece = piece_of(record)
        if piece is None:
            return False
        if piece.same in self._published_pieces:
            return True
        copies = self._held_pieces.get(piece.same, ())
        return any(self.counts(row) and self._has(row, record.value) for row in copies)

    def _has(self, row: Held, value: bytes | None) -> bool:
        key = row.coordinate, _identity(row)
        return key in self._payloads and self._payloads[key] == value

    def committed(self, coordinate: Coordinate) -> bool:
        return self.seen.get(coordinate) == "committed"

    def piece_at(self, coordinate: Coordinate, waveform_id: str) -> Piece | None:
        """The chunk of this waveform that readers of committed data find there."""
        piece = piece_of(self.records[coordinate]) if self.committed(coordinate) else None
        return piece if piece is not None and piece.id == waveform_id else None

    def held_records(self) -> set[Coordinate]:
        """Where what is held counts."""
        return {c for c, rows in self.held.items() if any(self.counts(row) for row in rows)}

    def furthest(self, partition: int) -> int:
        """The furthest position that a head of today's topic ever had."""
        mine = [h.positions.get(partition, 0) for h in (*self.heads, *self.lost) if h.topic_id == self.topic_id]
        return max(mine, default=0)


def _identity(row: Held) -> Identity:
    return row.id, row.seq, row.length, bytes.fromhex(row.piece)


def _in_a_table(event: Event) -> bool:
    return isinstance(event, Committed | Published | Held | Recorded | Forgotten)


def _stays(event: Event, to: int, decisions: set[str]) -> bool:
    """Whether a copy of the tables from right after head `to` has it."""
    if isinstance(event, Held):
        return event.decision in decisions
    assert isinstance(event, Committed | Published | Recorded | Forgotten)
    return event.sequence <= to
