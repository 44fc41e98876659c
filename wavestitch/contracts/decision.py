"""The decision of a batch: one fate for every chunk, and what is to be published and held. Everything after applies it.

Pure. Keeps I1 (every chunk has exactly one fate), I2 (what is published is never published again) and the audit
identity `read + carried in = published + duplicates + replays + quarantined + carried out + reported + out of scope`.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from wavestitch.contracts.assembly import Assembly, ChunkFacts, assemble_waveform
from wavestitch.contracts.batch_size import RECORD_HEADERS
from wavestitch.contracts.chunk_header import Metadata, parse_metadata
from wavestitch.contracts.errors import Terminal, Unbalanced
from wavestitch.contracts.held import HeldChunk, PublishedWaveform, open_deadlines
from wavestitch.contracts.plan import Plan
from wavestitch.contracts.position import Head, HeadKind, Position, advance_watermark
from wavestitch.contracts.reasons import Fate, Reason


class ChunkFate(NamedTuple):
    """What became of one chunk, and why where it was not published."""

    chunk: ChunkFacts
    fate: Fate
    reason: Reason | None = None
    evidence: str = ""


class Hold(NamedTuple):
    """A row to append to the held table. Carried chunks are appended without payload: only their reason changed."""

    chunk: ChunkFacts
    reason: Reason
    evidence: str


class Stitched(NamedTuple):
    """Outcome of stitching one whole waveform: `reason` None means its bytes are staged and proven."""

    reason: Reason | None
    evidence: str


@dataclass(frozen=True, slots=True)
class Evidence:
    """All that a batch found out; what `decide` looks at beside head, held and published.

    `seen_ms`: record time of the last record read, per partition. `failed`: waveform id → the expectations its row
    did not meet. `park`: hold all that would be published.
    """

    chunks: Sequence[ChunkFacts]
    seen_ms: Mapping[int, int]
    stitched: Mapping[str, Stitched]
    failed: Mapping[str, Sequence[str]] = field(default_factory=dict)
    park: bool = False
    note: str = ""


@dataclass(frozen=True, slots=True)
class Decision:
    """`digest` names the decision; a held row counts only if the head with this digest was committed."""

    digest: str
    plan_id: str
    publish: tuple[str, ...]
    fates: tuple[ChunkFate, ...]
    holds: tuple[Hold, ...]
    head: Head

    def counts(self) -> dict[Fate, int]:
        """Chunks per fate; every fate is there."""
        found = Counter(f.fate for f in self.fates)
        return {fate: found[fate] for fate in Fate}

    def waveforms(self, fate: Fate) -> set[str]:
        return {f.chunk.waveform_id for f in self.fates if f.fate is fate and f.chunk.waveform_id is not None}

    def reasons(self) -> dict[Reason, int]:
        """Chunks per reason, of all that have one."""
        return dict(Counter(f.reason for f in self.fates if f.reason is not None))


def decide(
    plan: Plan,
    evidence: Evidence,
    *,
    head: Head,
    held: Sequence[HeldChunk],
    published: Mapping[str, PublishedWaveform],
) -> Decision:
    """The fates of a batch on top of `head`.

    `held`: all effective held chunks that are open, and those of waveforms or coordinates that this batch read.
    `published`: what is published of all waveforms that are named in either.
    """
    pending = _PendingDecision(plan, evidence, head, held)
    for c in evidence.chunks:
        if c.reason is not None:
            pending.set_aside(c, Reason(c.reason), c.evidence or "")
    read_by_id, held_by_id = _by_id(evidence.chunks), _held_by_id(held)
    for waveform_id in sorted(set(read_by_id) | pending.waiting()):
        read, mine = read_by_id.get(waveform_id, []), held_by_id.get(waveform_id, [])
        known = published.get(waveform_id)
        if plan.scope is not None and not any(plan.scope.owns(_start_ns(c)) for c in read):
            pending.leave_to_its_owner(read)
        elif known is not None:
            pending.compare_with_published(known, read, mine)
        elif any(h.reason is Reason.CONFLICT for h in mine):
            pending.keep_blocked(read, mine)
        else:
            pending.assemble(waveform_id, read, mine)
    decided = pending.closed()
    check_balance(plan, evidence, decided)
    return decided


class _PendingDecision:
    """A decision in the making: the fates, rows to hold and waveforms to publish so far, waveform by waveform."""

    def __init__(self, plan: Plan, evidence: Evidence, head: Head, held: Sequence[HeldChunk]) -> None:
        self._plan = plan
        self._evidence = evidence
        self._before = head
        self._after = _next_head(plan, evidence, head)
        self._held_at = {h.chunk.coordinate: h for h in held}
        self._deadlines = open_deadlines(held, allowed_lateness_ms=plan.stream.allowed_lateness * 1000)
        self._fates: list[ChunkFate] = []
        self._holds: list[Hold] = []
        self._publish: list[str] = []

    def waiting(self) -> set[str]:
        """The open waveforms that an ingest takes up even where it reads none of their chunks."""
        return {i for i in self._deadlines if self._plan.holds and self._waits(i)}

    def leave_to_its_owner(self, read: Sequence[ChunkFacts]) -> None:
        for c in read:
            self._judge(c, Fate.OUT_OF_SCOPE)

    def compare_with_published(
        self, known: PublishedWaveform, read: Sequence[ChunkFacts], mine: Sequence[HeldChunk]
    ) -> None:
        """The first published stays: its own pieces are replays, everything else contradicts it."""
        why = "its waveform is published with other bytes at this place"
        for c in read:
            if known.has(c):
                self._judge(c, Fate.REPLAY)
            else:
                self.set_aside(c, Reason.CONFLICT, why)
        for c in _open_chunks(mine):
            self.set_aside(c, Reason.CONFLICT, why)

    def keep_blocked(self, read: Sequence[ChunkFacts], mine: Sequence[HeldChunk]) -> None:
        for c in (*read, *_open_chunks(mine)):
            self.set_aside(c, Reason.CONFLICT, "its waveform is held as a conflict, until an operator decides")

    def assemble(self, waveform_id: str, read: Sequence[ChunkFacts], mine: Sequence[HeldChunk]) -> None:
        """Decide afresh on all that is held and read of a waveform."""
        pool = [h.chunk for h in mine]
        known = {c.coordinate: c.identity for c in pool}
        for c in read:
            if known.get(c.coordinate) == c.identity:
                self._judge(c, Fate.REPLAY)
            else:
                pool.append(c)
        found = assemble_waveform(waveform_id, pool, self._plan.stream.limits)
        reason, why = _verdict(found, self._evidence)
        kept = () if reason is None else found.lessons
        for c in set(found.repeats).difference(kept):
            self._judge(c, Fate.DUPLICATE)
        if reason is None:
            self._publish.append(waveform_id)
            for c in found.pieces:
                self._judge(c, Fate.PUBLISHED)
        elif reason is Reason.OPEN:
            self._keep_open(found, why)
        else:
            for c in (*found.pieces, *kept):
                self.set_aside(c, reason, why)

    def set_aside(self, c: ChunkFacts, reason: Reason, why: str) -> None:
        """Quarantine a chunk, or report it where this run holds nothing."""
        known = self._held_at.get(c.coordinate)
        if c.carried and not self._plan.holds:
            self._leave_held(c)
        elif c.carried:
            self._judge(c, Fate.QUARANTINED, reason, why)
            if known is not None and known.reason is not reason:
                self._holds.append(Hold(c, reason, why))
        elif known is not None and known.chunk.identity == c.identity:
            self._judge(c, Fate.REPLAY)
        elif self._plan.holds:
            self._judge(c, Fate.QUARANTINED, reason, why)
            self._holds.append(Hold(c, reason, why))
        else:
            self._judge(c, Fate.REPORTED, reason, why)

    def closed(self) -> Decision:
        return _sealed(self._plan, self._after, tuple(sorted(self._publish)), self._fates, self._holds)

    def _keep_open(self, found: Assembly, why: str) -> None:
        """Incomplete: carried out until the watermark has passed what its newest piece may wait for."""
        expired = self._after.watermark_ms > found.newest_ms + self._plan.stream.allowed_lateness * 1000
        for c in (*found.pieces, *found.lessons):
            if not self._plan.holds:
                if c.carried:
                    self._leave_held(c)
                else:
                    self._judge(c, Fate.REPORTED, Reason.OPEN, why)
                continue
            if expired:
                self._judge(c, Fate.QUARANTINED, Reason.INCOMPLETE, why)
            else:
                self._judge(c, Fate.CARRIED_OUT, Reason.OPEN, why)
            was = self._held_at.get(c.coordinate)
            if not c.carried or (was is not None and was.reason is not Reason.OPEN):
                # The row says open; that it has expired follows from the head's watermark.
                self._holds.append(Hold(c, Reason.OPEN, why))

    def _leave_held(self, c: ChunkFacts) -> None:
        """A run that holds nothing leaves a held chunk as it was, and says so."""
        was = self._held_at[c.coordinate]
        if was.reason is not Reason.OPEN:
            self._judge(c, Fate.QUARANTINED, was.reason, was.evidence)
        elif self._waits(c.waveform_id or ""):
            self._judge(c, Fate.CARRIED_OUT, Reason.OPEN, was.evidence)
        else:
            self._judge(c, Fate.QUARANTINED, Reason.INCOMPLETE, was.evidence)

    def _waits(self, waveform_id: str) -> bool:
        return self._before.watermark_ms <= self._deadlines[waveform_id]

    def _judge(self, c: ChunkFacts, fate: Fate, reason: Reason | None = None, why: str = "") -> None:
        self._fates.append(ChunkFate(c, fate, reason, why))


def check_balance(plan: Plan, evidence: Evidence, decision: Decision) -> None:
    """Raises `Unbalanced` unless every chunk that was read has exactly one fate, and no chunk has two."""
    fated = Counter((f.chunk.carried, f.chunk.coordinate) for f in decision.fates)
    twice = [k for k, n in fated.items() if n > 1]
    read = Counter((False, c.coordinate) for c in evidence.chunks)
    got = Counter({k: n for k, n in fated.items() if not k[0]})
    if twice or read != got:
        raise Unbalanced(
            f"batch {plan.plan_id[:16]} does not balance: {len(evidence.chunks)} chunks read, "
            f"{sum(got.values())} with a fate, {len(twice)} with two; nothing was published",
            plan_id=plan.plan_id,
        )


def _by_id(chunks: Iterable[ChunkFacts]) -> dict[str, list[ChunkFacts]]:
    """The valid chunks, by waveform."""
    found: dict[str, list[ChunkFacts]] = {}
    for c in chunks:
        if c.reason is None and c.waveform_id is not None:
            found.setdefault(c.waveform_id, []).append(c)
    return found


def _held_by_id(held: Iterable[HeldChunk]) -> dict[str, list[HeldChunk]]:
    """The same of what is held."""
    found: dict[str, list[HeldChunk]] = {}
    for h in held:
        if h.chunk.reason is None and h.chunk.waveform_id is not None:
            found.setdefault(h.chunk.waveform_id, []).append(h)
    return found


def _open_chunks(mine: Iterable[HeldChunk]) -> list[ChunkFacts]:
    return [h.chunk for h in mine if h.reason is Reason.OPEN]


def _verdict(a: Assembly, evidence: Evidence) -> tuple[Reason | None, str]:
    if a.reason is not None:
        return a.reason, a.evidence
    done = evidence.stitched.get(a.waveform_id)
    if done is None:
        raise Terminal(
            f"waveform {a.waveform_id!r} is whole but was not stitched: what is held or published changed under the "
            "batch; plan again"
        )
    if done.reason is not None:
        return done.reason, done.evidence
    failed = evidence.failed.get(a.waveform_id)
    if failed:
        return Reason.FAILED_EXPECTATION, "; ".join(failed)
    if evidence.park:
        return Reason.PARKED, evidence.note
    return None, ""


def _start_ns(chunk: ChunkFacts) -> int:
    metadata = parse_metadata(chunk.meta or "")
    if not isinstance(metadata, Metadata):
        raise ValueError(f"the chunk at {chunk.place} was taken for valid, but {metadata}")
    return metadata.start_time_ns


def _next_head(plan: Plan, evidence: Evidence, head: Head) -> Head:
    kind = HeadKind(plan.kind.value)
    if not plan.moves_positions:
        return head.next(kind=kind, plan_id=plan.plan_id, note=evidence.note)
    positions = {
        p: Position(end.next_offset, evidence.seen_ms.get(p, end.seen_ms), end.leader_epoch)
        for p, end in plan.ends.items()
    }
    watermark = advance_watermark(
        positions, previous_ms=head.watermark_ms, clock_ms=plan.clock_ms, idle_ms=plan.stream.idle * 1000
    )
    # As readers count them: metadata come with each chunk, the id as its key or in a header.
    sizes = [c.length + len(c.meta or "") + RECORD_HEADERS for c in evidence.chunks]
    return head.next(
        kind=kind,
        plan_id=plan.plan_id,
        positions=positions,
        watermark_ms=watermark,
        mean_record_bytes=sum(sizes) / len(sizes) if sizes else head.mean_record_bytes,
        note=evidence.note,
    )


def _sealed(
    plan: Plan, head: Head, publish: tuple[str, ...], fates: Sequence[ChunkFate], holds: Sequence[Hold]
) -> Decision:
    ordered = tuple(sorted(fates, key=lambda f: (f.chunk.carried, f.chunk.coordinate)))
    held = tuple(sorted(holds, key=lambda h: (h.chunk.carried, h.chunk.coordinate)))
    seal = hashlib.sha256(f"{plan.plan_id} {head.sequence} {head.generation}\n".encode())
    for f in ordered:
        c = f.chunk
        what = f"{c.piece.hex()} {c.count} {c.waveform_id!r} {c.seq}"
        seal.update(f"{c.carried} {c.coordinate} {what} {f.fate} {f.reason}\n".encode())
    for h in held:
        seal.update(f"hold {h.chunk.carried} {h.chunk.coordinate} {h.reason}\n".encode())
    digest = seal.hexdigest()[:32]
    return Decision(digest, plan.plan_id, publish, ordered, held, replace(head, decision=digest))
