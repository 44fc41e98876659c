"""What a history has said so far: the records and who can see them, what is published and held, where heads and group
stand. Answers one question, whether a record is durable; decides nothing else. Shares no code with the product.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager

from tests.domain.oracle import Piece, Truth, digest_of, piece_of, size_of, truths
from tests.histories.events import (
    Asks,
    Committed,
    Coordinate,
    Event,
    Forged,
    Held,
    JunkLimit,
    Looked,
    LostOffset,
    Planned,
    Produced,
    Projected,
    Published,
    Read,
    Recorded,
    Reset,
    Retained,
    Settled,
    Shared,
    TopicMade,
    Truncated,
)
from tests.histories.maintenance_events import JunkGoes
from tests.histories.promotion_events import Replaced
from tests.histories.released import Identity, Released, Word
from tests.histories.table_events import Deleted, Forgotten, TakenOut

Words = tuple[Identity, int | None, str | None]
"""With the count and the digest of the whole."""
"""Waveform id, sequence number, length and digest: equal for two copies of one chunk."""


BLOCKS = ("conflict", "parked")
"""Held for one of these reasons, a waveform waits for somebody's decision."""


class Ledger:
    """`seen`: committed, open, aborted or marker. `reads`: per plan, what it landed; `landed`: the offsets of that.
    `group`: offset and version (generation, sequence) of its tag, None where the tag is not ours.

    A record is known by its place: the coordinate, but for one that was cut off, whose coordinate may come again, the
    topic id is marked. `former`: the places of what lay at a coordinate before.
    """

    def __init__(self) -> None:
        self.topic_id = ""
        self.records: dict[Coordinate, Produced] = {}
        self.seen: dict[Coordinate, str] = {}
        self.heads: list[Committed] = []
        self.plans: dict[str, Planned] = {}
        self.reads: dict[str, set[Coordinate]] = defaultdict(set)
        self.read_by: dict[tuple[str, str], set[Coordinate]] = defaultdict(set)
        """By plan and run: who carries a plan once more reads once more, and commits what it has read itself."""
        self.landed: dict[str, set[Coordinate]] = defaultdict(set)
        self.former: dict[Coordinate, list[Coordinate]] = defaultdict(list)
        self.moved: dict[Coordinate, Coordinate] = {}
        """Where the last cut put what it took."""
        self._cuts = 0
        self.gone: set[Coordinate] = set()
        """Offsets that the log covers still, and has lost."""
        self.log_start: dict[tuple[str, int], int] = {}
        self.junk_limit: int | None = None
        """Of bytes of records that are no chunks; None: all are kept."""
        self.published: dict[str, list[Published]] = defaultdict(list)
        self.held: dict[Coordinate, list[Held]] = defaultdict(list)
        self.group: dict[int, tuple[int, tuple[int, int] | None]] = {}
        self._published_pieces: set[Identity] = set()
        self._released = Released()
        self._held_pieces: dict[Identity, list[Held]] = defaultdict(list)
        self._held_of: dict[str, list[Held]] = defaultdict(list)
        self._payloads: dict[tuple[Coordinate, Identity], bytes | None] = {}
        self._stored: dict[tuple[Coordinate, Identity], list[Held]] = defaultdict(list)
        """The rows that have the bytes."""
        self.deleted: set[str] = set()
        """Waveforms of which somebody has deleted the published row, and nobody has published it again."""
        self._decisions: set[str] = set()
        self._taken: set[tuple[str, int, int, str, str]] = set()
        self._expired: set[tuple[str, int, int, str, str]] = set()
        """Rows of records that are no chunks: nobody is owed them any more. Whether they were so, their rule says."""
        """Rows of these decisions that maintenance has taken out."""
        self.asks, self._asked_late = True, False
        """Whether chunks are to be proven; whether once they were not."""
        self._junk_bytes = 0
        """Of all that was ever staged to be held and is no chunk."""
        self._events: list[Event] = []
        self.lost: list[Committed] = []
        """Heads of catalogs that were lost or set back."""

    def set_back(self, to: int, *, held: bool) -> None:
        """As if of the tables only what is no later than head `to` had ever been written. `held`: what was staged to be
        held is there still; it counts as soon as a head names it."""
        kept = [h for h in self.heads if h.sequence <= to]
        lost = [*self.lost, *self.heads[len(kept) :]]
        events = [e for e in self._events if not _in_a_table(e) or (held if isinstance(e, Held) else _stays(e, to))]
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
            case Looked():
                pass  # of those there are most
            case Settled():
                for offset in event.offsets:
                    self.seen[event.topic_id, event.partition, offset] = event.outcome
            case TopicMade():
                self.topic_id = event.topic_id
                self.group = {}
            case Planned():
                self.plans[event.plan_id] = event
            case Read():
                landed = {(event.topic_id, event.partition, o) for o in event.offsets}
                self.landed[event.plan_id] |= landed
                later = dict(zip(event.former, event.later, strict=False))
                gone = [c for c in landed if c[2] in event.former and self.former[c]]
                cut = {c: self.former[c][-1 - later.get(c[2], 0)] for c in gone}
                self.reads[event.plan_id] |= {cut.get(c, c) for c in landed}
                self.read_by[event.plan_id, event.run] |= {cut.get(c, c) for c in landed}
            case Truncated():
                self._cut(event)
            case LostOffset():
                self.gone.add((event.topic_id, event.partition, event.offset))
            case Retained():
                self.log_start[event.topic_id, event.partition] = event.log_start
            case Held():
                self._hold(event)
            case Replaced():
                for row in (row for i in event.ids for row in self.published.get(i, ())):
                    self._released.take_out(row, self.heads[-1])
                self._without_rows(set(event.ids))
            case Published():
                self.published[event.id].append(event)
                self.deleted.discard(event.id)
                self._published_pieces |= {(event.id, n, c[3], bytes.fromhex(c[4])) for n, c in enumerate(event.chunks)}
            case Committed():
                self.heads.append(event)
                self._decisions = self._decisions | {event.decision} if event.held is None else set(event.held)
            case JunkGoes():
                self._expired |= {row for row, _, _ in event.rows}
            case TakenOut():
                self._taken = set(event.rows) - self._expired
            case Deleted():
                self._delete(event)
            case Projected():
                self.group |= {p: (o, (event.generation, event.sequence)) for p, o in event.offsets.items()}
            case Asks():
                self.asks, self._asked_late = event.proof, True
            case JunkLimit():
                self.junk_limit = event.bytes
            case Reset() if event.offset is None:
                self.group.pop(event.partition, None)
            case Shared(another=False):
                # As a head of ours shows it, where it has the same number.
                self.group[event.partition] = (event.offset, (event.generation, event.sequence))
            case Reset() | Shared() | Forged():
                self.group[event.partition] = (event.offset, None)

    def _delete(self, event: Deleted) -> None:
        self.deleted |= set(event.ids)
        self._without_rows(self.deleted)

    def _without_rows(self, ids: set[str]) -> None:
        self._published_pieces = {piece for piece in self._published_pieces if piece[0] not in ids}
        for waveform_id in ids:
            self.published.pop(waveform_id, None)

    def _cut(self, event: Truncated) -> None:
        self._cuts += 1
        gone = [c for c in self.records if c[:2] == (event.topic_id, event.partition) and c[2] >= event.end]
        marked = {c: (f"{c[0]}~{self._cuts}", *c[1:]) for c in gone}
        for c, place in marked.items():
            self.former[c].append(place)
            self.records[place], self.seen[place] = self.records.pop(c), self.seen.pop(c)
        self.reads = defaultdict(set, {i: {marked.get(c, c) for c in some} for i, some in self.reads.items()})
        self.read_by = defaultdict(set, {i: {marked.get(c, c) for c in some} for i, some in self.read_by.items()})
        self.moved = marked
        self.gone = {c for c in self.gone if c[:2] != (event.topic_id, event.partition) or c[2] < event.end}

    def readable(self) -> set[Coordinate]:
        """What readers of committed data find now: before the first transaction that has not ended."""
        mine = {c: what for c, what in self.seen.items() if c[0] == self.topic_id}
        ends: dict[int, int] = {}
        for _, p, offset in (c for c, what in mine.items() if what == "open"):
            ends[p] = min(offset, ends.get(p, offset))
        return {
            c
            for c, what in mine.items()
            if what == "committed"
            and c not in self.gone
            and self.log_start.get(c[:2], 0) <= c[2] < ends.get(c[1], c[2] + 1)
        }

    def places(self, coordinate: Coordinate) -> list[Coordinate]:
        """All that ever lay at a coordinate, newest first."""
        now = [coordinate] if coordinate in self.records else []
        return now + self.former.get(coordinate, [])[::-1]

    def piece(self, record: Produced) -> Piece | None:
        return piece_of(record) if record.proven or not self.asks else None

    def truths(self, records: Iterable[Produced]) -> dict[str, Truth]:
        return truths(r for r in records if r.proven or not self.asks)

    @contextmanager
    def as_planned(self, plan_id: str) -> Iterator[None]:
        """As the definition asks that this plan was made of."""
        now = self.asks
        self.asks = self.plans[plan_id].asks if plan_id in self.plans and self._asked_late else now
        yield
        self.asks = now

    def believed(self, row: Held) -> bool:
        """Whether a held row meets what is asked now. What an operator let go stays that."""
        return not self.asks or row.asked or row.reason == "discarded"

    def _hold(self, row: Held) -> None:
        self.held[row.coordinate].append(row)
        self._junk_bytes += 0 if row.valid else row.length
        if row.valid:
            self._held_pieces[identity(row)].append(row)
            self._held_of[row.id or ""].append(row)
        if row.stored:
            self._payloads.setdefault((row.coordinate, identity(row)), row.payload)
            self._stored[row.coordinate, identity(row)].append(row)

    def counts(self, row: Held) -> bool:
        """Whether a held row is in the snapshot that the newest head names, or has expired since."""
        if self._expired and self._key(row) in self._expired:
            return True
        if row.decision == "" or row.decision not in self._decisions:
            return False
        return not self._is_out(row)

    def _is_out(self, row: Held) -> bool:
        """Whether maintenance, or somebody, has taken it out."""
        return bool(self._taken) and self._key(row) in self._taken

    @staticmethod
    def _key(row: Held) -> tuple[str, int, int, str, str]:
        return *row.coordinate, row.piece, row.decision

    def durable(self, coordinate: Coordinate) -> bool:
        """Whether the record is held with its bytes, or is a copy of a chunk that is published or so held."""
        record = self.records[coordinate]
        if any(self.counts(row) and self._has(row, record.value) for row in self.held.get(record.coordinate, ())):
            return True
        piece = self.piece(record)
        if piece is None and self._held_without_bytes(record):
            return True
        piece = piece_of(record) if self._asked_late else piece
        if piece is None:
            return False
        if piece.same in self._published_pieces:
            return True
        copies = self._held_pieces.get(piece.same, ())
        held = [row for row in copies if self.counts(row) and self._has(row, record.value)]
        words = self._released.words(record, piece.same)
        return any(self._says(row, piece, words) for row in held)

    def _says(self, row: Held, piece: Piece, words: Sequence[Word]) -> bool:
        """Whether a held copy of a chunk says of the whole what another one does, or else somebody may want either.
        `words`: of the rows that had it; then it may also say more, or these have. What is asked of chunks by now
        changes nothing of what they say."""
        found = [piece_of(self.records[c]) for c in self.places(row.coordinate) if self.committed(c)]
        same = [p for p in found if p is not None and p.same == piece.same]
        counts, digests = (
            ({None, *(w.chunks for w in words)}, {None, *(w.digest for w in words)}) if words else ((), ())
        )
        return any(piece.count in (p.count, *counts) and piece.digest in (p.digest, *digests) for p in same)

    def stands(self, piece: Identity) -> bool:
        """Whether a chunk is published, or held with its bytes."""
        copies = (row for row in self._held_pieces.get(piece, ()) if self.counts(row))
        key = self._payloads
        return piece in self._published_pieces or any(self._has(r, key.get((r.coordinate, piece))) for r in copies)

    def is_held(self, coordinate: Coordinate) -> bool:
        """Whether the record is held, with its bytes or without."""
        return any(self.counts(row) for row in self.held.get(self.records[coordinate].coordinate, ()))

    def _held_without_bytes(self, record: Produced) -> bool:
        """What is no chunk may be held by what it was, once the stream keeps no more bytes of such."""
        if self.junk_limit is None or self._junk_bytes <= self.junk_limit:
            return False
        what = size_of(record), digest_of(record).hex()
        rows = self.held.get(record.coordinate, ())
        return any(self.counts(r) and not r.valid and not r.stored and (r.length, r.piece) == what for r in rows)

    def _has(self, row: Held, value: bytes | None) -> bool:
        return any(r.payload == value and not self._is_out(r) for r in self._stored[row.coordinate, identity(row)])

    def last_words(self) -> dict[tuple[Coordinate, Identity], tuple[Held, bool]]:
        """Of each chunk that is held, and not published, the newest row that counts, and whether any row has its
        bytes."""
        newest = (row for waveform_id in list(self._held_of) for row in self.newest(waveform_id))
        waiting = (row for row in newest if identity(row) not in self._published_pieces)
        return {
            (row.coordinate, identity(row)): (row, self._has(row, self._payloads.get((row.coordinate, identity(row)))))
            for row in waiting
        }

    def committed(self, coordinate: Coordinate) -> bool:
        return self.seen.get(coordinate) == "committed"

    def pieces_at(self, coordinate: Coordinate, waveform_id: str) -> list[tuple[Coordinate, Piece]]:
        """The chunks of this waveform that readers of committed data found there, each with its place, newest first."""
        found = [(c, self.piece(self.records[c])) for c in self.places(coordinate) if self.committed(c)]
        return [(c, piece) for c, piece in found if piece is not None and piece.id == waveform_id]

    def held_records(self) -> set[Coordinate]:
        """The places whose held rows count, and are believed."""
        rows = (row for rows in self.held.values() for row in rows)
        return {self._place(row) for row in rows if self.counts(row) and (row.asked or not self.asks)}

    def effective(self, waveform_id: str) -> list[Held]:
        """What is held of a waveform, and believed, whatever was published."""
        return [row for row in self.newest(waveform_id) if self.believed(row)]

    def newest(self, waveform_id: str) -> list[Held]:
        """Of each place and piece the newest row that counts."""
        newest: dict[tuple[Coordinate, Identity], Held] = {}
        for row in self._held_of[waveform_id]:
            key = row.coordinate, identity(row)
            if self.counts(row) and (key not in newest or newest[key].sequence <= row.sequence):
                newest[key] = row
        return list(newest.values())

    def blocked(self, waveform_id: str) -> str:
        """Why nothing but somebody's decision may change this waveform; empty where any batch may."""
        reasons = {row.reason for row in self.effective(waveform_id)}
        return next((r for r in BLOCKS if r in reasons), "discarded" if reasons == {"discarded"} else "")

    def undecided(self, waveform_id: str) -> bool:
        """Whether anything is held of it that nobody let go, and that was not published."""
        rows = self.newest(waveform_id)
        return any(row.reason != "discarded" and identity(row) not in self._published_pieces for row in rows)

    def discarded(self, waveform_id: str) -> set[Identity]:
        """Pieces that an operator let go, and of which no copy stands."""
        rows = self.effective(waveform_id)
        standing = {identity(row) for row in rows if row.reason != "discarded"}
        return {identity(row) for row in rows} - standing

    def discarded_words(self, waveform_id: str) -> set[Words]:
        """The same by what they say of the whole, too: of two copies with the same bytes one may be picked."""
        said = [(self._words(row), row.reason) for row in self.effective(waveform_id)]
        return {words for words, _ in said} - {words for words, reason in said if reason != "discarded"}

    def is_let_go(self, piece: Piece) -> bool:
        """Whether an operator let this very copy go."""
        said = piece.same, piece.count, piece.digest
        return piece.same in self.discarded(piece.id) or said in self.discarded_words(piece.id)

    def record_of(self, row: Held) -> Produced | None:
        """None of what was cut off, and may be of no coordinate any more."""
        return self.records.get(self._place(row))

    def piece_of(self, row: Held) -> Piece | None:
        record = self.record_of(row)
        return self.piece(record) if record is not None else None

    def _words(self, row: Held) -> Words:
        piece = self.piece_of(row)
        return (identity(row), None, None) if piece is None else (identity(row), piece.count, piece.digest)

    def _place(self, row: Held) -> Coordinate:
        """Of what lay at a held row's coordinate, what the row is about."""
        places = self.places(row.coordinate)
        if len(places) < 2:
            return places[0] if places else row.coordinate
        key = row.coordinate, identity(row)
        if key in self._payloads:
            mine = [
                c for c in places if self.records[c].value == self._payloads[key] and self._is(self.records[c], row)
            ]
        else:  # no chunk, and held by what it was
            what = row.length, row.piece
            mine = [c for c in places if (size_of(self.records[c]), digest_of(self.records[c]).hex()) == what]
        return mine[0] if mine else row.coordinate

    def _is(self, record: Produced, row: Held) -> bool:
        piece = self.piece(record)
        return piece.same == identity(row) if piece is not None else not row.valid

    def furthest(self, partition: int) -> int:
        """The furthest position that a head of today's topic ever had."""
        mine = [h.positions.get(partition, 0) for h in (*self.heads, *self.lost) if h.topic_id == self.topic_id]
        return max(mine, default=0)


def identity(row: Held) -> Identity:
    """Of a held row, what its chunk is."""
    return row.id, row.seq, row.length, bytes.fromhex(row.piece)


def _in_a_table(event: Event) -> bool:
    return isinstance(event, Committed | Published | Replaced | Held | Recorded | Forgotten | TakenOut)


def _stays(event: Event, to: int) -> bool:
    """Whether a copy of the tables from right after head `to` has it."""
    assert isinstance(event, Committed | Published | Replaced | Recorded | Forgotten | TakenOut)
    return event.sequence <= to
