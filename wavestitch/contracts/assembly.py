"""Stitching, as a decision: which chunks make which waveform whole, and why the others do not.

The index of a batch (chunk facts without payload) goes in, one `Assembly` per waveform comes out. Any order,
repetition, slicing or partitioning of the same chunks gives the same result. Never touches payload. Keeps I2 and I3:
of two copies with different bytes neither is taken.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

from wavestitch.contracts.chunk_metadata import MAX_TIME_NS, Metadata, parse_metadata
from wavestitch.contracts.quantities import EpochMs, Milliseconds, Offset, Partition, apart, epoch_ms, milliseconds
from wavestitch.contracts.reasons import Reason
from wavestitch.contracts.stream import Limits

Coordinate = tuple[str, Partition, Offset]
"""Topic id, partition and offset."""
ChunkKey = tuple[Coordinate, tuple[str | None, int | None, bytes, int | None, str | None]]
"""A place in the log, and what lay there (waveform, sequence number, digest of the piece, and what it says of the
whole: count and digest): after an unclean election another record can have the same coordinate."""


def no_chunk(piece: bytes) -> tuple[None, None, bytes, None, None]:
    """What lay where a record is no chunk: the piece covers all that it is, and what it claims need not be kept."""
    return None, None, piece, None, None


class ChunkFacts(NamedTuple):
    """One row of a batch's index: all of a record but its payload.

    `carried`: it comes from the held table, not from this batch's reading. `file` and `row` say where its bytes lie
    (`file` is the landing file's number in the batch, -1 for held). `reason` is set where the record is no valid chunk.
    `topic_id` is empty for the plan's own topic (a held chunk may come from the topic's predecessor).
    """

    partition: Partition
    offset: Offset
    timestamp_ms: EpochMs
    waveform_id: str | None
    seq: int | None
    count: int | None  # type: ignore[assignment]  # shadows tuple.count, which nobody calls on a chunk
    crc: int
    length: int
    meta: str | None
    digest: str | None
    piece: bytes
    reason: str | None
    evidence: str | None
    carried: bool = False
    file: int = -1
    row: int = -1
    topic_id: str = ""

    @property
    def coordinate(self) -> Coordinate:
        return self.topic_id, self.partition, self.offset

    def in_topic(self, topic_id: str) -> ChunkFacts:
        """With its topic named: this one, the plan's own, where it says none."""
        return self if self.topic_id else self._replace(topic_id=topic_id)

    @property
    def key(self) -> ChunkKey:
        if self.reason is not None:
            return self.coordinate, no_chunk(self.piece)
        return self.coordinate, (self.waveform_id, self.seq, self.piece, self.count, self.digest)

    @property
    def place(self) -> str:
        """The coordinate for people."""
        return f"partition {self.partition} offset {self.offset}"

    @property
    def identity(self) -> tuple[int | None, bytes]:
        """Two chunks of one waveform with the same identity have the same place, metadata and bytes, whoever made them.

        No checksum is in it: those can be forged. Nor the count, nor the digest of the whole: a repeat may bring them.
        """
        return self.seq, self.piece

    def agrees_with(self, other: ChunkFacts) -> bool:
        """Of two copies of one piece: whether they do not say different things of the whole."""
        return _same_or_silent(self.count, other.count) and _same_or_silent(self.digest, other.digest)


def _same_or_silent(a: object, b: object) -> bool:
    return a is None or b is None or a == b


class Said:
    """What the copies of a waveform that are kept say: of which piece, which count and digest of the whole; and by a
    record time that its start time is plausible. A copy that says nothing else adds nothing. One that does is kept,
    too, a silent one beside one that spoke: where it turns out that the waveform was sent twice, under two counts say,
    all chunks of either are there to be picked."""

    def __init__(self, kept: Iterable[ChunkFacts], limits: Limits) -> None:
        self._said: set[tuple[tuple[int | None, bytes], int | None, str | None]] = set()
        self._skew = milliseconds(limits.max_clock_skew)
        self._timely = False
        for c in kept:
            self.learn(c)

    def learn(self, c: ChunkFacts) -> bool:
        """Whether this copy says what none before it said; from now on it is known."""
        timely = not self._timely and _from_start(c) <= self._skew
        said = c.identity, c.count, c.digest
        new = timely or said not in self._said
        self._said.add(said)
        self._timely = self._timely or timely
        return new


@dataclass(frozen=True, slots=True)
class Assembly:
    """All valid chunks of one waveform.

    `pieces`: one copy per sequence number, in order (every distinct copy where they conflict); `repeats`: further
    copies of those. `lessons` are the repeats that say something else (`Said`) than every piece and every lesson
    before: where the pieces are kept, they are kept beside them. `reason` None: whole, ready to be
    stitched. `metadata` is of the first piece. `accepted`: see `assemble_waveform`.
    """

    waveform_id: str
    pieces: tuple[ChunkFacts, ...]
    repeats: tuple[ChunkFacts, ...]
    lessons: tuple[ChunkFacts, ...]
    reason: Reason | None
    evidence: str
    metadata: Metadata
    accepted: bool = False

    @property
    def digest(self) -> str | None:
        """What the digest of the whole must be; None where no copy says it, or an operator vouches for the bytes."""
        if self.accepted:
            return None
        return next((c.digest for c in (*self.pieces, *self.repeats) if c.digest is not None), None)

    @property
    def byte_length(self) -> int:
        return sum(c.length for c in self.pieces)

    @property
    def newest_ms(self) -> EpochMs:
        """Record time, ms, of the newest of all that is held of it where it waits: from here an open waveform's allowed
        lateness counts, as for whoever looks at what is held (`open_deadlines`)."""
        return max(c.timestamp_ms for c in (*self.pieces, *self.lessons))


def assemble(chunks: Iterable[ChunkFacts], limits: Limits) -> dict[str, Assembly]:
    """Every waveform that has a valid chunk here, by id. Records that are no chunks are ignored."""
    by_id: dict[str, list[ChunkFacts]] = {}
    for c in chunks:
        if c.reason is None and c.waveform_id is not None:
            by_id.setdefault(c.waveform_id, []).append(c)
    return {i: assemble_waveform(i, pool, limits) for i, pool in by_id.items()}


def assemble_waveform(
    waveform_id: str,
    pool: Sequence[ChunkFacts],
    limits: Limits,
    *,
    accepted: bool = False,
    bare: AbstractSet[ChunkKey] = frozenset(),
) -> Assembly:
    """One waveform from all copies of its chunks. Of equal copies the piece is the one that is held already, then the
    one whose record time is nearest to the start time, then the first by coordinate: whoever sends a chunk again, at
    whatever time and place, changes nothing. But a copy that has bytes goes before those that are held without, `bare`.

    `accepted`: an operator vouches for its time, its sample count and its bytes as a whole, against what is claimed of
    them; that it is whole, and each piece as it was sealed, is asked all the same.
    """
    without = {c for c in pool if c.carried and c.key in bare} if bare else set()
    ordered = sorted(pool, key=lambda c: (c.seq, c in without, not c.carried, c.topic_id, c.partition, c.offset))
    pieces, repeats = _one_of_each(ordered)
    first = pieces[0]
    metadata = parse_metadata(first.meta or "")
    if isinstance(metadata, str):
        raise ValueError(f"the chunk at {first.place} was taken for valid, but {metadata}")
    reason, evidence = _judge(pieces, ordered, metadata, limits, accepted=accepted)
    if reason is None and (gone := [c for c in pieces if c in without]):
        # Nobody has them: it waits for its producer, and what comes beside it goes on.
        at = f"{gone[0].seq} at {gone[0].place}"
        evidence = f"the bytes of chunk {at} are gone from the held table; have it sent again"
        reason = Reason.OPEN
    lessons = _lessons(pieces, repeats, limits)
    return Assembly(waveform_id, tuple(pieces), tuple(repeats), lessons, reason, evidence, metadata, accepted)


def _one_of_each(ordered: list[ChunkFacts]) -> tuple[list[ChunkFacts], list[ChunkFacts]]:
    """One copy of each distinct chunk, in order, and the others."""
    if len({c.seq for c in ordered}) == len(ordered):
        return ordered, []
    repeats: list[ChunkFacts] = []
    best: dict[tuple[int | None, bytes], ChunkFacts] = {}
    for c in ordered:
        known = best.setdefault(c.identity, c)
        if known is not c:
            nearer = not (known.carried or c.carried) and _from_start(c) < _from_start(known)
            best[c.identity] = c if nearer else known
            repeats.append(known if nearer else c)
    return list(best.values()), repeats


def _from_start(c: ChunkFacts) -> Milliseconds:
    found = parse_metadata(c.meta or "")
    return apart(epoch_ms(found.start_time_ns), c.timestamp_ms) if isinstance(found, Metadata) else Milliseconds(0)


def _lessons(pieces: Sequence[ChunkFacts], repeats: Sequence[ChunkFacts], limits: Limits) -> tuple[ChunkFacts, ...]:
    if not repeats:
        return ()
    said = Said(pieces, limits)
    # One that is kept already stays: it would have to be judged anew by each batch.
    ordered = sorted(repeats, key=lambda c: not c.carried)
    return tuple([c for c in ordered if said.learn(c) or c.carried])


def _judge(
    pieces: Sequence[ChunkFacts],
    copies: Sequence[ChunkFacts],
    metadata: Metadata,
    limits: Limits,
    *,
    accepted: bool,
) -> tuple[Reason | None, str]:
    conflict = _conflict(pieces, copies)
    if conflict:
        return Reason.CONFLICT, conflict
    size = sum(c.length for c in pieces)
    count = next((c.count for c in copies if c.count is not None), None)
    if size > limits.max_waveform_bytes:
        return Reason.TOO_LARGE, f"{size} bytes in {len(pieces)} chunks; allowed are {limits.max_waveform_bytes} bytes"
    if max(count or 0, len(pieces)) > limits.max_chunks:
        return Reason.TOO_LARGE, f"{max(count or 0, len(pieces))} chunks; allowed are {limits.max_chunks}"
    # By the nearest of all copies: a record time is whatever the sender of a repeat says.
    start = epoch_ms(metadata.start_time_ns)
    skew = min(apart(start, c.timestamp_ms) for c in copies)
    if skew > milliseconds(limits.max_clock_skew) and not accepted:
        return (
            Reason.IMPLAUSIBLE_TIME,
            f"starts {skew // 1000} s from its record time; allowed are {limits.max_clock_skew} s",
        )
    if count is None:
        return Reason.OPEN, f"{len(pieces)} chunks here, and none says yet how many there are"
    if len(pieces) < count:
        return Reason.OPEN, f"{len(pieces)} of {count} chunks here; missing: {_missing(pieces, count)}"
    samples = size // metadata.sample_bytes
    if metadata.sample_count is not None and metadata.sample_count != samples and not accepted:
        return Reason.WRONG_SAMPLE_COUNT, f"the chunks hold {samples} samples, ws-meta says {metadata.sample_count}"
    if abs(metadata.end_time_ns(samples)) > MAX_TIME_NS:
        return (
            Reason.IMPLAUSIBLE_TIME,
            f"{samples} samples at {metadata.sampling_rate_hz} Hz end beyond what time can say",
        )
    return None, ""


def _conflict(pieces: Sequence[ChunkFacts], copies: Sequence[ChunkFacts]) -> str:
    first = copies[0]
    for c in copies:
        if c.meta != first.meta:
            return f"ws-meta differs between {first.place} and {c.place}"
    for a, b in pairwise(pieces):
        if a.seq == b.seq:
            return f"chunk {a.seq} has different bytes at {a.place} and {b.place}"
    counted = [c for c in copies if c.count is not None]
    for c in counted:
        if c.count != counted[0].count:
            return f"ws-count is {counted[0].count} at {counted[0].place} and {c.count} at {c.place}"
    top = pieces[-1]
    if counted and (top.seq or 0) >= (counted[0].count or 0):
        return f"chunk {top.seq} at {top.place} lies beyond ws-count {counted[0].count}"
    digests = {c.digest for c in copies if c.digest is not None}
    if len(digests) > 1:
        return f"{len(digests)} different ws-digest values; a waveform has one"
    return ""


def _missing(pieces: Sequence[ChunkFacts], count: int, most: int = 8) -> str:
    have = {c.seq for c in pieces}
    gaps = []
    for seq in range(count):
        if seq not in have:
            gaps.append(str(seq))
            if len(gaps) > most:
                return ", ".join(gaps[:most]) + ", …"
    return ", ".join(gaps)
