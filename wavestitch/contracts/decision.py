"""The decision of a batch: one fate for every chunk, and what is to be published and held. Everything after applies it.

Pure. Keeps I1 (every chunk has exactly one fate), I2 (what is published is never published again) and the audit
identity `read + carried in = published + duplicates + replays + quarantined + carried out + reported + out of scope`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence

from wavestitch.contracts.assembly import ChunkFacts
from wavestitch.contracts.belief import Belief
from wavestitch.contracts.chunk_table import ChunkTable
from wavestitch.contracts.decided import Decision
from wavestitch.contracts.errors import Unbalanced
from wavestitch.contracts.fates import ChunkFate, Evidence, Hold, Stitched
from wavestitch.contracts.held import HeldChunk, HeldKey, PublishedWaveform
from wavestitch.contracts.held_choice import HeldAction
from wavestitch.contracts.pending_decision import PendingDecision, blocked_by
from wavestitch.contracts.plain_waveforms import PlainWaveforms, find_plain
from wavestitch.contracts.plan import Plan
from wavestitch.contracts.position import Head
from wavestitch.contracts.quantities import before, milliseconds
from wavestitch.contracts.reasons import Reason
from wavestitch.contracts.start_times import start_time_ns

__all__ = ["ChunkFate", "Decision", "Evidence", "Hold", "Stitched", "check_balance", "decide", "decide_beside"]


def decide(
    plan: Plan,
    evidence: Evidence,
    *,
    head: Head,
    held: Sequence[HeldChunk],
    published: Mapping[str, PublishedWaveform],
    sealed: bool = True,
) -> Decision:
    """The fates of a batch on top of `head`. What is normal is decided at once, by columns (`find_plain`).

    `held`: all effective held chunks that are open, and those of waveforms or coordinates that this batch read.
    `published`: what is published of all waveforms that are named in either. `sealed`: whether it gets its digest; who
    only asks what would be published does without.
    """
    table = ChunkTable.of(evidence.chunks)
    plain = find_plain(plan, evidence, table, held=held, published=published)
    return decide_beside(plain, plan, evidence, head=head, held=held, published=published, sealed=sealed)


def decide_beside(
    plain: PlainWaveforms,
    plan: Plan,
    evidence: Evidence,
    *,
    head: Head,
    held: Sequence[HeldChunk],
    published: Mapping[str, PublishedWaveform],
    sealed: bool = True,
) -> Decision:
    """The same, where it is known which waveforms are plain; of `no_plain`, every chunk is decided as an object."""
    if plan.expires:
        head = head.as_of(plan.clock_ms)
    held, beside = _believed(plan, held)
    pending = PendingDecision(plan, evidence, head, held, plain, beside)
    owns = _owner(plan)
    chunks = plain.others()
    for c in chunks:
        if c.reason is not None:
            pending.set_aside(c, Reason(c.reason), c.evidence or "")
    read_by_id, held_by_id = _by_id(chunks), _held_by_id(held)
    for waveform_id in sorted(set(read_by_id) | pending.waiting()):
        read, mine = read_by_id.get(waveform_id, []), held_by_id.get(waveform_id, [])
        known = published.get(waveform_id)
        if not owns(waveform_id, read):
            pending.leave_to_its_owner(read)
        elif known is not None:
            pending.compare_with_published(known, read, mine)
        elif (reason := _blocked(plan, mine)) is not None:
            pending.keep_blocked(reason, read, mine)
        elif pending.is_left(waveform_id, read, mine):
            pending.leave_to_all(read, mine)
        else:
            pending.assemble(waveform_id, read, mine)
    if (choice := plan.held_choice) is not None:
        for waveform_id in choice.ids:
            pending.choose(choice, waveform_id, held_by_id.get(waveform_id, []), published.get(waveform_id))
    decided = pending.closed(_taken_up(plan, head, read_by_id, held_by_id, published), sealed=sealed)
    check_balance(plan, chunks, decided)
    return decided


def _owner(plan: Plan) -> Callable[[str, Sequence[ChunkFacts]], bool]:
    """Whether a waveform, of which these chunks were read, is the plan's to decide on: of a backfill what starts in its
    interval, of a promotion what was shown."""
    if plan.promotion is not None:
        shown = frozenset(plan.promotion.ids)
        return lambda waveform_id, _: waveform_id in shown
    scope = plan.scope
    return lambda _, read: scope is None or any(scope.owns(start_time_ns(c)) for c in read)


def _blocked(plan: Plan, mine: Sequence[HeldChunk]) -> Reason | None:
    """Of a promotion nothing: what the row that goes had released was decided, and of what counts beside it `held_back`
    is asked before it is shown, begun and committed."""
    return None if plan.promotion is not None else blocked_by(mine)


def _believed(plan: Plan, held: Sequence[HeldChunk]) -> tuple[Sequence[HeldChunk], Sequence[HeldChunk]]:
    """What counts by the present definition, and the rest. Whoever lets chunks go or takes that back means all."""
    if plan.held_choice is not None and plan.held_choice.action in (HeldAction.DISCARD, HeldAction.RESTORE):
        return held, ()
    belief = Belief(plan.stream)
    counts = [belief.believes(h) for h in held]
    return [h for h, yes in zip(held, counts, strict=True) if yes], [
        h for h, yes in zip(held, counts, strict=True) if not yes
    ]


def check_balance(plan: Plan, others: Sequence[ChunkFacts], decision: Decision) -> None:
    """Raises `Unbalanced` unless every chunk that was read has exactly one fate, and no chunk has two. `others`: the
    chunks that were read and are of no plain waveform; those are rows of the index, each of them once."""
    fates, plain = decision.fates.others, decision.fates.plain
    carried = Counter(f.chunk.key for f in fates if f.chunk.carried)
    got = Counter(f.chunk.key for f in fates if not f.chunk.carried)
    twice = [k for fated in (carried, got) for k, n in fated.items() if n > 1]
    read = Counter(c.key for c in others)
    rows = int(plain.is_plain.sum())
    if got != read or twice or rows != len(plain.rows) or rows + len(others) != len(plain.table):
        raise Unbalanced(
            f"batch {plan.plan_id[:16]} does not balance: {len(plain.table)} chunks read, "
            f"{len(decision.fates)} fates; nothing was published",
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


def _taken_up(
    plan: Plan,
    head: Head,
    read: Mapping[str, Sequence[ChunkFacts]],
    held: Mapping[str, Sequence[HeldChunk]],
    published: Mapping[str, PublishedWaveform],
) -> set[HeldKey]:
    """The held chunks that this plan has to decide on: counted from what is held, not from what became of it."""
    if (choice := plan.held_choice) is not None:
        chosen = [h for i in set(choice.ids) & held.keys() for h in held[i]]
        restores = choice.action is HeldAction.RESTORE
        return {h.key for h in chosen if (h.reason is Reason.DISCARDED) is restores}
    since = before(head.watermark_ms, milliseconds(plan.stream.allowed_lateness))
    owns = _owner(plan)
    found: set[HeldKey] = set()
    for waveform_id, mine in held.items():
        waits = plan.expires and any(h.reason is Reason.OPEN and h.chunk.timestamp_ms >= since for h in mine)
        touched = waveform_id in read and owns(waveform_id, read[waveform_id])
        if not (waits or touched):
            continue
        settled = waveform_id in published or _blocked(plan, mine) is not None
        found |= {h.key for h in mine if h.reason is Reason.OPEN or not (settled or h.reason is Reason.DISCARDED)}
    return found
