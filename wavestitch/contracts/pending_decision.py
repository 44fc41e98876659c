"""A decision in the making: what becomes of each waveform's chunks, one waveform after the other.

Pure. Decides nothing about which waveforms are taken up: that is `decide`. Keeps I1 (what is not published is held) and
I2 (what is published is never published again).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from wavestitch.contracts.assembly import Assembly, ChunkFacts, Said, assemble_waveform
from wavestitch.contracts.copies import say_no_more
from wavestitch.contracts.decided import Decision, Fates, holds_in_order, seal_decision
from wavestitch.contracts.errors import Terminal, Unbalanced
from wavestitch.contracts.fates import ChunkFate, Evidence, Hold
from wavestitch.contracts.held import (
    HeldChunk,
    HeldKey,
    PublishedWaveform,
    bare_keys,
    effective_held,
    is_released,
    open_deadlines,
    pieces_of,
    pieces_without_bytes,
)
from wavestitch.contracts.held_choice import HeldAction, HeldChoice, digest_of, pick_copy
from wavestitch.contracts.held_mark import AFTER_DISCARD, held_bytes
from wavestitch.contracts.next_head import next_head
from wavestitch.contracts.plain_waveforms import PlainWaveforms
from wavestitch.contracts.plan import Plan
from wavestitch.contracts.position import Head
from wavestitch.contracts.quantities import Partition, after, milliseconds
from wavestitch.contracts.reasons import Fate, Reason
from wavestitch.contracts.tombstones import Tombstones

_BLOCKED = {
    Reason.CONFLICT: "its waveform is held as a conflict, until an operator decides",
    Reason.PARKED: "its waveform is parked, until an operator decides",
    Reason.DISCARDED: "its waveform was discarded by an operator",
}


class PendingDecision:
    """A decision in the making: the fates, rows to hold and waveforms to publish so far, waveform by waveform."""

    def __init__(
        self,
        plan: Plan,
        evidence: Evidence,
        head: Head,
        held: Sequence[HeldChunk],
        plain: PlainWaveforms,
        beside: Sequence[HeldChunk] = (),
    ) -> None:
        """`beside`: what is held and not believed. It is counted, and nothing else."""
        self._beside = beside
        self._plan = plan
        self._evidence = evidence
        self._plain = plain
        self._before = head
        self._after = next_head(plan, evidence, head, plain.table)
        self._held_at: dict[HeldKey, HeldChunk] = {h.key: h for h in held}
        self._beside_at: dict[HeldKey, HeldChunk] = {h.key: h for h in beside}
        self._bare = bare_keys(held)
        self._bare_pieces = pieces_without_bytes(held) if self._bare else set()
        self._lateness = milliseconds(plan.stream.allowed_lateness)
        self._latest_ms = after(plan.clock_ms, milliseconds(plan.stream.limits.max_clock_skew))
        self._deadlines = open_deadlines(held, allowed_lateness=self._lateness)
        self._fates: list[ChunkFate] = []
        self._holds: list[Hold] = []
        self._publish: dict[str, Assembly] = {}

    def waiting(self) -> set[str]:
        """The open waveforms that an ingest takes up even where it reads none of their chunks."""
        return {i for i in self._deadlines if self._plan.expires and self._waits(i)}

    def leave_to_its_owner(self, read: Sequence[ChunkFacts]) -> None:
        for c in read:
            self._judge(c, Fate.OUT_OF_SCOPE)

    def compare_with_published(
        self, known: PublishedWaveform, read: Sequence[ChunkFacts], mine: Sequence[HeldChunk]
    ) -> None:
        """The first published stays: its own pieces are replays, everything else contradicts it."""
        why = "its waveform is published with other bytes at this place"
        tombstones = Tombstones(mine, self._plan.stream.limits)
        for c in read:
            if known.has(c):
                self._judge(c, Fate.REPLAY)
            elif tombstones.cover(c):
                self._bury(c, tombstones)
            else:
                self.set_aside(c, Reason.CONFLICT, why)
        for c in _open_chunks(mine):
            self.set_aside(c, Reason.CONFLICT, why)

    def keep_blocked(self, reason: Reason, read: Sequence[ChunkFacts], mine: Sequence[HeldChunk]) -> None:
        """What waits for somebody's decision is not decided by a chunk that happens to come again."""
        # Of a conflict every copy is kept, since one of them will be picked; of the others those that say more.
        known = set() if reason is Reason.CONFLICT else {h.chunk.identity for h in mine}
        said = Said([h.chunk for h in mine], self._plan.stream.limits)
        for c in read:
            adds = c.identity not in known or c.key in self._held_at or self._brings_bytes(c)
            if said.learn(c) or adds:
                self.set_aside(c, reason, _BLOCKED[reason])
            else:
                self._judge(c, Fate.DUPLICATE)
        for c in _open_chunks(mine):
            self.set_aside(c, reason, _BLOCKED[reason])

    def is_left(self, waveform_id: str, read: Sequence[ChunkFacts], mine: Sequence[HeldChunk]) -> bool:
        """Whether an earlier batch of the backfill has read a copy that says more than all that is here."""
        known = [*read, *(h.chunk for h in mine if h.reason is not Reason.DISCARDED)]
        return not say_no_more(self._evidence.elsewhere.get(waveform_id, ()), known)

    def leave_to_all(self, read: Sequence[ChunkFacts], mine: Sequence[HeldChunk]) -> None:
        """Decided by whoever has all copies that the backfill has read."""
        for c in read:
            self._judge(c, Fate.REPORTED, Reason.OPEN, "another batch of this backfill has read other chunks of it")
        self._leave_all([h.chunk for h in mine if h.reason is not Reason.DISCARDED])

    def assemble(self, waveform_id: str, read: Sequence[ChunkFacts], mine: Sequence[HeldChunk]) -> None:
        """Decide afresh on all that is held and read of a waveform."""
        pool = self._beside_held(read, mine) if mine else list(read)
        if pool:
            self._settle(self._assembled(waveform_id, pool))

    def _assembled(self, waveform_id: str, pool: Sequence[ChunkFacts]) -> Assembly:
        limits, accepted = self._plan.stream.limits, self._plan.accepts
        return assemble_waveform(waveform_id, pool, limits, accepted=accepted, bare=self._bare)

    def _beside_held(self, read: Sequence[ChunkFacts], mine: Sequence[HeldChunk]) -> list[ChunkFacts]:
        """What is held and not discarded, and what is read and no repeat of either. Where a chunk is held without its
        bytes, the one that is read takes its place."""
        again = {c.key for c in read if self._lacks_bytes(c)}
        standing = [h.chunk for h in mine if h.reason is not Reason.DISCARDED]
        pool = [c for c in standing if c.key not in again]
        for c in standing:
            if c.key in again and self._plan.holds:
                self._judge(c, Fate.REPLAY)
            elif c.key in again:
                self._leave_held(c)
        known = {c.key for c in pool}
        tombstones = Tombstones(mine, self._plan.stream.limits)
        for c in read:
            if c.key in known:
                self._judge(c, Fate.REPLAY)
            elif tombstones.cover(c):
                self._bury(c, tombstones)
            else:
                pool.append(c)
        return pool

    def choose(
        self, choice: HeldChoice, waveform_id: str, mine: Sequence[HeldChunk], known: PublishedWaveform | None
    ) -> None:
        """Carry an operator's decision out on what is held of a waveform now."""
        standing = [h.chunk for h in mine if h.reason is not Reason.DISCARDED]
        if choice.action is HeldAction.RESTORE:
            self._refuse_others(choice, waveform_id, [h.chunk for h in mine if h.reason is Reason.DISCARDED])
            # What came while the waveform was discarded is held as its neighbours were before.
            before = {h.before for h in mine if h.reason is Reason.DISCARDED and h.before is not None}
            unsaid = next(iter(before)) if len(before) == 1 else Reason.CONFLICT
            again = [replace(h, reason=h.before or unsaid) if h.reason is Reason.DISCARDED else h for h in mine]
            due = open_deadlines(again, allowed_lateness=self._lateness).get(waveform_id, self._after.watermark_ms)
            for was, h in zip(mine, again, strict=True):
                if was.reason is Reason.DISCARDED:
                    self._restore(h, choice.note, waits=self._after.watermark_ms <= due)
        elif choice.action is HeldAction.DISCARD:
            self._refuse_others(choice, waveform_id, standing)
            for c in standing:
                self.set_aside(c, Reason.DISCARDED, choice.note)
        elif known is not None:
            if choice.action is HeldAction.PICK:  # perhaps of the other copy
                self._refuse_others(choice, waveform_id, standing)
            # Published meanwhile: what is left contradicts it, and can only be discarded.
            self._leave_all(standing)
        else:
            self._decide_again(choice, waveform_id, standing)

    def _decide_again(self, choice: HeldChoice, waveform_id: str, standing: Sequence[ChunkFacts]) -> None:
        seen = self._refuse_others(choice, waveform_id, standing)
        kept, dropped = list(standing), list[ChunkFacts]()
        if choice.action is HeldAction.PICK:
            picked, others = pick_copy(seen, choice.pick)
            kept, dropped = [seen[c] for c in picked], [seen[c] for c in others]
        if not kept:
            self._leave_all(dropped)
            return
        self._settle(self._assembled(waveform_id, kept))
        made = pieces_of(self._publish[waveform_id]) if waveform_id in self._publish else None
        for c in dropped:
            if made is not None and made.has(c):
                # The very bytes that are published, with another word about the whole.
                self._judge(c, Fate.REPLAY)
            else:
                self.set_aside(c, Reason.DISCARDED, choice.note)

    def _leave_all(self, chunks: Iterable[ChunkFacts]) -> None:
        for c in chunks:
            self._leave_held(c)

    def _refuse_others(
        self, choice: HeldChoice, waveform_id: str, meant: Sequence[ChunkFacts]
    ) -> dict[ChunkFacts, ChunkFacts]:
        """A decision is about the chunks that were shown, and an undo about those that were changed: of others neither
        is made. Returned with every topic named, as whoever decided saw them."""
        seen = {c.in_topic(self._plan.topic_id): c for c in meant}
        among = dict(zip(choice.ids, choice.among, strict=False)).get(waveform_id)
        if among is not None and among != digest_of(seen):
            since = f"{choice.pick} was picked" if choice.pick else f"this {choice.action.value} was planned"
            raise Terminal(
                f"waveform {waveform_id!r}: what is held of it changed since {since}; nothing was published, plan again"
            )
        return seen

    def _settle(self, found: Assembly) -> None:
        reason, why = _verdict(found, self._evidence, accepts=self._plan.accepts)
        if reason is Reason.OPEN and found.newest_ms > self._latest_ms:
            # It would wait until its own time comes, and never expire.
            reason, why = Reason.IMPLAUSIBLE_TIME, f"{why}; a record time lies beyond what max_clock_skew allows"
        kept = () if reason is None else found.lessons
        lessons = set(kept)
        for c in found.repeats:  # in their order: the decision's digest follows from it
            if c not in lessons:
                self._judge(c, Fate.DUPLICATE)
        if reason is None:
            self._publish[found.waveform_id] = found
            self._fates += [ChunkFate(c, Fate.PUBLISHED) for c in found.pieces]
        elif reason is Reason.OPEN:
            self._keep_open(found, why)
        else:
            for c in (*found.pieces, *kept):
                self.set_aside(c, reason, why)

    def _bury(self, c: ChunkFacts, tombstones: Tombstones) -> None:
        """A repeat of what was discarded stays away; one that says more of the whole is kept for a restore."""
        if tombstones.learn(c) or self._lacks_bytes(c) or self._brings_bytes(c):
            self.set_aside(c, Reason.DISCARDED, _BLOCKED[Reason.DISCARDED])
        else:
            self._judge(c, Fate.REPLAY)

    def _restore(self, h: HeldChunk, note: str, *, waits: bool) -> None:
        """`h`: as it is to be held. `waits`: whether its waveform does, if it is open."""
        if h.reason is Reason.OPEN and waits:
            self._judge(h.chunk, Fate.CARRIED_OUT, h.reason, note)
        else:
            expired = Reason.INCOMPLETE if h.reason is Reason.OPEN else h.reason
            self._judge(h.chunk, Fate.QUARANTINED, expired, note)
        self._holds.append(Hold(h.chunk, h.reason, note))

    def set_aside(self, c: ChunkFacts, reason: Reason, why: str) -> None:
        """Quarantine a chunk, or report it where this run holds nothing."""
        known = self._held_at.get(c.key)
        if c.carried and not self._plan.holds:
            self._leave_held(c)
        elif c.carried:
            self._judge(c, Fate.QUARANTINED, reason, why)
            if known is not None and known.reason is not reason:
                self._holds.append(Hold(c, reason, why))
        elif known is not None and not self._lacks_bytes(c):
            self._judge(c, Fate.REPLAY)
        elif self._plan.holds:
            self._judge(c, Fate.QUARANTINED, reason, why)
            self._holds.append(Hold(c, reason, why))
            self._bare_pieces.discard((c.waveform_id, *c.identity))
        else:
            self._judge(c, Fate.REPORTED, reason, why)

    def _brings_bytes(self, c: ChunkFacts) -> bool:
        """Whether its piece is held, and no copy of that has bytes: sent again, from wherever, it heals that."""
        return c.reason is None and (c.waveform_id, *c.identity) in self._bare_pieces

    def _lacks_bytes(self, c: ChunkFacts) -> bool:
        """Whether this very chunk is held, and nobody has its bytes any more: then the ones that are read are kept."""
        known = self._held_at.get(c.key)
        return known is not None and not known.stored and c.reason is None

    def closed(self, taken_up: set[HeldKey], *, sealed: bool) -> Decision:
        publish = tuple(sorted([*self._publish, *self._plain.ids.to_pylist()]))
        carried_in = Counter[Partition](coordinate[1] for coordinate, _ in taken_up)
        fates, holds = Fates(self._plain, self._fates), holds_in_order(self._holds)
        lost = taken_up ^ {f.chunk.key for f in self._fates if f.chunk.carried}
        if lost:
            raise Unbalanced(
                f"batch {self._plan.plan_id[:16]} does not balance: {len(lost)} held chunks have no fate, or have one "
                "though they were not to be decided on; nothing was published",
                plan_id=self._plan.plan_id,
            )
        counts, size = self._held_after()
        digest = seal_decision(self._plan.plan_id, self._after, fates, holds) if sealed else ""
        head = replace(self._after, decision=digest)
        return Decision(digest, self._plan.plan_id, publish, fates, holds, head, dict(carried_in), counts, size)

    def _held_after(self) -> tuple[dict[str, int], int]:
        """How many chunks are held by reason, and what they count for: those before, less what is released or held for
        another reason now, by the very rule by which whoever looks next counts them."""
        before = self._before.held
        counts, size = Counter(before.counts if before is not None else {}), before.chunk_bytes if before else 0
        now = {h.chunk.key: (h.chunk, self._counted_as(h)) for h in self._holds}
        was = [*self._held_at.values(), *self._beside]
        ids = {c.waveform_id for c in (*(h.chunk for h in was), *(c for c, _ in now.values()))}
        made = {i: pieces_of(self._publish[i]) for i in ids & self._publish.keys() if i is not None}
        for h in was:
            counts[h.counted_as] -= 1
            size -= held_bytes(h.chunk, h.counted_as)
            now.setdefault(h.key, (h.chunk, h.counted_as))
        stay = [(c, counted) for c, counted in now.values() if not is_released(c, made)]
        counts.update(counted for _, counted in stay)
        size += sum(held_bytes(c, counted) for c, counted in stay)
        return {reason: n for reason, n in sorted(counts.items()) if n}, size

    def _counted_as(self, hold: Hold) -> str:
        """As the row will be counted by whoever looks next: what is read under a discarded id is no tombstone."""
        known = self._held_at.get(hold.chunk.key) or self._beside_at.get(hold.chunk.key)
        if hold.reason is not Reason.DISCARDED or (known is not None and known.reason is not Reason.DISCARDED):
            return hold.reason.value
        return known.counted_as if known is not None else AFTER_DISCARD

    def _keep_open(self, found: Assembly, why: str) -> None:
        """Incomplete: carried out until the watermark has passed what the newest of it may wait for."""
        expired = self._after.watermark_ms > after(found.newest_ms, self._lateness)
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
            was = self._held_at.get(c.key)
            if not c.carried or (was is not None and was.reason is not Reason.OPEN):
                # The row says open; that it has expired follows from the head's watermark.
                self._holds.append(Hold(c, Reason.OPEN, why))

    def _leave_held(self, c: ChunkFacts) -> None:
        """A run that holds nothing leaves a held chunk as it was, and says so."""
        was = self._held_at[c.key]
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


def blocked_by(mine: Sequence[HeldChunk]) -> Reason | None:
    """Why nothing but an operator's decision changes this waveform; None where a batch may decide afresh."""
    reasons = {h.reason for h in mine}
    for reason in (Reason.CONFLICT, Reason.PARKED):
        if reason in reasons:
            return reason
    # Of a picked waveform the other copies are tombstones, and the rest may go on.
    return Reason.DISCARDED if reasons == {Reason.DISCARDED} else None


def held_back(held: Iterable[HeldChunk], rows: Mapping[str, PublishedWaveform]) -> dict[str, Reason]:
    """What a promotion leaves as it is, until an operator has decided, by waveform. What its row has released, of
    `rows`, was decided; and what was discarded beside a row contradicts it, and stays discarded without it."""
    found: dict[str, list[HeldChunk]] = {}
    for h in effective_held(held, published=rows):
        if h.chunk.reason is None and h.chunk.waveform_id is not None:
            found.setdefault(h.chunk.waveform_id, []).append(h)
    reasons = {i: blocked_by(mine) for i, mine in found.items()}
    return {i: r for i, r in reasons.items() if r is not None and not (r is Reason.DISCARDED and i in rows)}


def _open_chunks(mine: Iterable[HeldChunk]) -> list[ChunkFacts]:
    return [h.chunk for h in mine if h.reason is Reason.OPEN]


def _verdict(a: Assembly, evidence: Evidence, *, accepts: bool) -> tuple[Reason | None, str]:
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
    if failed and not accepts:
        return Reason.FAILED_EXPECTATION, "; ".join(failed)
    if evidence.park:
        return Reason.PARKED, evidence.note
    return None, ""
