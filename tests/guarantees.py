"""The invariants as objects: each looks at what can be seen of a stream from outside and raises where it is broken.

They derive everything by themselves (which held rows count, how far the head ever was, what a chunk is) from a `Sight`:
the records that were produced, the heads, the tables' rows and the group. Tests at every level fill in a sight.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.domain.oracle import Piece, digest_of, piece_of, size_of

Coordinate = tuple[str, int, int]
REWINDS = ("rewind", "adopted")
ON_PURPOSE = (*REWINDS, "rebuilt", "first")
FATES = ("published", "duplicate", "replay", "quarantined", "carried_out", "reported", "out_of_scope")


@dataclass(frozen=True)
class HeldRow:
    """A row of the held table. `valid`: the record is a chunk. `stored`: it has the payload, or an earlier row does.
    `says`: of the whole, its count and digest."""

    coordinate: Coordinate
    id: str | None
    piece: tuple[int | None, int, bytes]
    valid: bool
    reason: str
    time_ms: int
    decision: str
    sequence: int
    payload: bytes | None
    stored: bool = True
    says: tuple[int | None, str | None] = (None, None)

    @property
    def key(self) -> tuple[Any, ...]:
        """The place, and what lay there: a place that was used again has two."""
        return self.coordinate, self.id, self.piece, self.says


@dataclass(frozen=True)
class Row:
    """A published waveform; `chunks`: (coordinate, length, digest of the piece) in order. `sequence`: of the head that
    published it."""

    id: str
    samples: bytes
    chunks: tuple[tuple[Coordinate, int, bytes], ...]
    sequence: int


@dataclass(frozen=True)
class Sight:
    """A stream as seen from outside.

    `records`: all that were ever committed to the log (with `coordinate`). `heads`: all that ever were, oldest first.
    `held`: the rows of the held snapshot that the newest head names. `plans`: by id. `topic_id`: of the topic as it is
    today. `junk_bytes`: how many bytes of records that are no chunks the stream keeps at least; None: all.
    """

    records: Sequence[Any]
    topic_id: str
    heads: Sequence[Any]
    group: Mapping[int, tuple[int, str]]
    published: Sequence[Row]
    held: Sequence[HeldRow]
    history: Sequence[Any]
    plans: Mapping[str, Any] = field(default_factory=dict)
    allowed_lateness_ms: int = 0
    junk_bytes: int | None = None
    lives: Mapping[Any, Sequence[tuple[int, int]]] = field(default_factory=dict)
    """By record the leader epochs of its partition in which it was there, from the first to the last; one that has no
    entry was there always."""

    def in_epoch(self, epoch: int) -> list[Any]:
        """The records of the log as it was then."""
        always = [(epoch, epoch)]
        return [r for r in self.records if any(a <= epoch <= b for a, b in self.lives.get(r, always))]


def effective(held: Iterable[HeldRow], committed: frozenset[str], published: Iterable[Row]) -> list[HeldRow]:
    """The rows that count: of committed decisions, the newest of a place and piece, not published with the piece."""
    there = {(w.id, seq, length, piece) for w in published for seq, (_, length, piece) in enumerate(w.chunks)}
    newest: dict[tuple[Any, ...], HeldRow] = {}
    for row in held:
        if row.decision in committed and (row.key not in newest or newest[row.key].sequence < row.sequence):
            newest[row.key] = row
    return [r for r in newest.values() if not (r.valid and (r.id, *r.piece) in there)]


def furthest(heads: Iterable[Any], topic_id: str) -> dict[int, int]:
    """Per partition, the furthest position that a head of this topic ever had."""
    far: dict[int, int] = {}
    for head in heads:
        if head.topic_id == topic_id:
            for p, at in head.positions.items():
                far[p] = max(far.get(p, 0), at.next_offset)
    return far


class NoLoss:
    """I1: each chunk that a head has passed is published, a repeat of what is, or held with its payload; and what it
    says of the whole is known as long as its waveform is held.

    What is no chunk is held, too: with its payload, until the stream keeps no more of them, then by what it was.
    """

    def check(self, sight: Sight) -> None:
        committed = frozenset(h.decision for h in sight.heads)
        strange = {r.decision for r in sight.held} - committed
        assert not strange, f"I1: rows of decisions that were never committed count as held: {sorted(strange)}"
        for head in sight.heads:
            ahead = [r for r in head.skipped if r.partition in head.positions and r.end > _at(head, r.partition)]
            assert not ahead, f"I1: head {head.sequence} names {ahead} as skipped, and has not gone past that"
        owed, kept = Passed(sight.heads), _Kept(sight, committed)
        at: dict[Coordinate, list[Any]] = defaultdict(list)
        for record in sight.records:
            if record.coordinate in owed and owed.there(record, sight.lives.get(record)):
                at[record.coordinate].append(record)
        for records in at.values():
            # Where a place was used again nobody can tell from here which of the two was read.
            missing = [kept.lacks(record) for record in records]
            if all(missing):
                raise AssertionError(missing[0])


class _Kept:
    """What the tables keep, and whether that is all of a record."""

    def __init__(self, sight: Sight, committed: frozenset[str]) -> None:
        counted = effective(sight.held, committed, sight.published)
        self._payloads = {r.key: r.payload for r in sight.held if r.stored}
        self._held_at: dict[Coordinate, list[HeldRow]] = defaultdict(list)
        self._said: dict[str | None, set[object]] = defaultdict(set)
        for r in counted:
            self._held_at[r.coordinate].append(r)
            self._said[r.id].update(r.says)
        self._pieces = {(r.id, *r.piece) for r in counted if r.valid}
        self._pieces |= {
            (w.id, n, length, piece) for w in sight.published for n, (_, length, piece) in enumerate(w.chunks)
        }
        self._published = {w.id for w in sight.published}
        junk = sum(r.piece[1] for r in counted if not r.valid)
        self._too_much_junk = sight.junk_bytes is not None and junk > sight.junk_bytes

    def lacks(self, record: Any) -> str:
        """What is not kept of it; empty where all is."""
        rows, piece, where = self._held_at.get(record.coordinate, []), piece_of(record), record.coordinate
        if any(r.key in self._payloads and self._payloads[r.key] == record.value for r in rows):
            return ""
        if piece is None and self._too_much_junk:
            what = size_of(record), digest_of(record)
            if any(not r.valid and not r.stored and r.piece[1:] == what for r in rows):
                return ""
        if rows and (piece is None or (piece.id, piece.seq) in {(r.id, r.piece[0]) for r in rows}):
            return f"I1: {where} is held without its bytes"
        if piece is None:
            return f"I1: what is no chunk at {where} is not held"
        if piece.same not in self._pieces:
            return f"I1: chunk {piece.id}/{piece.seq} at {where} is neither published nor held"
        unsaid = {piece.count, piece.digest} - {None} - self._said[piece.id]
        if piece.id not in self._published and unsaid:
            return f"I1: nothing that is held of {piece.id} says {unsaid}, as {where} says of the whole"
        return ""


def _at(head: Any, partition: int) -> int:
    position: int = head.positions[partition].next_offset
    return position


class Passed:
    """What the heads have gone past, place by place: `owed`, what a batch has read, and what somebody went over without
    a name; `given_up`: by name, until somebody goes back to before it. Worked out from where each head moved, not from
    what the newest one goes on naming. Where the stream began, nothing before that is either."""

    def __init__(self, heads: Sequence[Any]) -> None:
        self.owed: dict[tuple[str, int], set[int]] = defaultdict(set)
        self.given_up: dict[tuple[str, int], set[int]] = defaultdict(set)
        self._epochs: dict[Coordinate, set[int | None]] = defaultdict(set)
        for before, head in zip([None, *heads], heads, strict=False):
            if before is None and head.kind == "first":
                continue
            was = before.positions if before is not None and before.topic_id == head.topic_id else {}
            for p, at in head.positions.items():
                self._moved(head, p, was[p].next_offset if p in was else 0, at.next_offset)

    def _moved(self, head: Any, partition: int, start: int, end: int) -> None:
        key = head.topic_id, partition
        passed = set(range(start, end))
        if head.kind == "rebuilt":
            # What was held is not known any more: it is read again, from where this head stands.
            self.owed[key] = {o for o in self.owed[key] if o < end}
        if head.kind in ON_PURPOSE:
            named = {o for r in head.skipped if r.partition == partition for o in range(r.start, r.end)} & passed
            self.given_up[key] = {o for o in self.given_up[key] if o < end} | named
            passed -= named
        for o in passed:
            self._epochs[*key, o].add(head.positions[partition].leader_epoch)
        self.owed[key] |= passed
        self.given_up[key] -= self.owed[key]

    def __contains__(self, coordinate: Coordinate) -> bool:
        """Whether it is owed."""
        topic_id, partition, offset = coordinate
        return offset in self.owed.get((topic_id, partition), ())

    def there(self, record: Any, lives: Sequence[tuple[int, int]] | None) -> bool:
        """Whether it was there in an epoch in which a head went past it. What was cut off before, or was written anew
        behind a head's back, nobody has read; the next plan says so."""
        epochs = self._epochs.get(record.coordinate, ())
        return lives is None or any(e is None or a <= e <= b for e in epochs for a, b in lives)


class NoDuplicates:
    """I2: a waveform id appears once in the published table."""

    def check(self, sight: Sight) -> None:
        twice = [i for i, n in Counter(row.id for row in sight.published).items() if n > 1]
        assert not twice, f"I2: published more than once: {twice}"


class NoInvention:
    """I3: published bytes are those of chunks that were produced, that agree with each other and are all there are."""

    def check(self, sight: Sight) -> None:
        sent: dict[Coordinate, list[Piece]] = defaultdict(list)
        counts: dict[str, set[int]] = defaultdict(set)
        for record in sight.records:
            found = piece_of(record)
            if found is not None:
                sent[record.coordinate].append(found)
                counts[found.id] |= {found.count} - {None}
        for row in sight.published:
            pieces: list[Piece] = []
            for seq, (coordinate, length, proof) in enumerate(row.chunks):
                there = sent.get(coordinate)
                assert there, f"I3: {row.id} was published from {coordinate}, where no chunk was produced"
                # At a place that was used again, one of those that lay there.
                piece = next((one for one in there if one.same == (row.id, seq, length, proof)), None)
                assert piece is not None, f"I3: {row.id}/{seq} is not the chunk at {coordinate}"
                pieces.append(piece)
            assert row.samples == b"".join(p.value for p in pieces), f"I3: {row.id} has other bytes than its chunks"
            assert len({p.meta for p in pieces}) == 1, f"I3: {row.id} mixes chunks with different metadata"
            assert {p.count for p in pieces} <= {None, len(pieces)}, f"I3: {row.id} has chunks that claim another count"
            assert len(pieces) in counts.get(row.id, ()), f"I3: no chunk of {row.id} says that it has {len(pieces)}"


class Balanced:
    """I8 and the audit identity: every record has one fate, every hole is one, and what is carried out is carried in.

    Remembers which batches it has looked at, so that it can be asked after every step.
    """

    def __init__(self) -> None:
        self._done: set[tuple[int, str]] = set()

    def check(self, sight: Sight) -> None:
        for row in sight.history:
            if (row.sequence, row.decision) not in self._done and row.counts:
                self._done.add((row.sequence, row.decision))
                self._row(sight, row)

    def _row(self, sight: Sight, row: Any) -> None:
        where = f"audit of head {row.sequence}"
        for p, n in row.partitions.items():
            assert n["read"] + n["carried_in"] == sum(n[f] for f in FATES), f"{where}: partition {p} does not balance"
            assert n["planned"] == n["read"] + n["holes"], f"{where}: partition {p} has offsets without a fate"
        # Where the log was cut off, what was read is what lay there before or after it, and nothing in between.
        wrong = [self._read_and_carried(sight, row, there) for there in _lay_there(sight, row)]
        assert "" in wrong, f"{where}: {' or '.join(wrong)}"
        if row.kind != "ingest":
            held_by = row.kind == "promote"  # what it takes out of the table it holds
            assert held_by or all(
                n["quarantined"] + n["carried_out"] <= n["carried_in"] for n in row.partitions.values()
            ), where
            return
        waiting = _carried(sight, row.sequence, set(), row.sequence)
        assert row.counts["carried_out"] == waiting, f"{where}: {row.counts['carried_out']} carried out, {waiting} wait"

    @staticmethod
    def _read_and_carried(sight: Sight, row: Any, there: Sequence[Any]) -> str:
        places = len({r.coordinate for r in there})
        if row.counts["read"] != places:
            return f"{row.counts['read']} read, {places} were there"
        if row.kind != "ingest":
            return ""
        touched = {piece.id for r in there if (piece := piece_of(r)) is not None}
        waited = _carried(sight, row.sequence - 1, touched, row.sequence)
        said = row.counts["carried_in"]
        return "" if said == waited else f"{said} carried in, {waited} waited"


def _lay_there(sight: Sight, row: Any) -> list[list[Any]]:
    """What the batch may have read, in each way in which the logs of its partitions ever were."""
    topic_id = next(h.topic_id for h in sight.heads if h.sequence == row.sequence)
    ways: list[list[Any]] = [[]]
    for p, start, end in row.ranges:
        here = []
        for epoch in sorted({0, *(e for lives in sight.lives.values() for a, b in lives for e in (a, b, b + 1))}):
            found = [
                r for r in sight.in_epoch(epoch) if r.coordinate[:2] == (topic_id, p) and start <= r.coordinate[2] < end
            ]
            if found not in here:
                here.append(found)
        ways = [way + found for way in ways for found in here]
    return ways


def _carried(sight: Sight, sequence: int, touched: set[str], by: int) -> int:
    """How many held chunks the batch after this head takes up, when it reads chunks of `touched`. `by`: its own head,
    by whose watermark it goes where that is less: then a clock had been ahead."""
    committed = frozenset(h.decision for h in sight.heads if h.sequence <= sequence)
    published = [w for w in sight.published if w.sequence <= sequence]
    watermark = min(h.watermark_ms for h in sight.heads if h.sequence in (sequence, by))
    by_id: dict[str, list[HeldRow]] = {}
    for row in effective(sight.held, committed, published):
        if row.valid and row.id is not None:
            by_id.setdefault(row.id, []).append(row)
    total = 0
    for waveform_id, rows in by_id.items():
        waiting = [r for r in rows if r.reason == "open"]
        alive = bool(waiting) and max(r.time_ms for r in waiting) + sight.allowed_lateness_ms >= watermark
        if not alive and waveform_id not in touched:
            continue
        reasons = {r.reason for r in rows}
        blocked = bool(reasons & {"conflict", "parked"}) or reasons == {"discarded"}
        settled = waveform_id in {w.id for w in published} or blocked
        total += len(waiting) if settled else sum(r.reason != "discarded" for r in rows)
    return total
