"""A promotion is undone: the rows that it took out are put back, bit for bit, in the place of those that it put in.

They come from the snapshot right before it, so no record is read again, for as long as maintenance keeps that snapshot.
What it published newly is held again, and what it holds is released, both as whoever looks derives it. Shown first, and
done on the head that it was shown on. Keeps I1: refused where something that goes would be neither published nor held.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from wavestitch.batch.commit_offsets import look_at_group
from wavestitch.batch.edges import Edges
from wavestitch.batch.walk import Walk
from wavestitch.contracts.batch_stages import PutBack
from wavestitch.contracts.errors import Refused
from wavestitch.contracts.harmless import in_shell
from wavestitch.contracts.held import HeldChunk, HeldLook, PublishedWaveform, effective_held
from wavestitch.contracts.held_mark import HeldMark, held_bytes
from wavestitch.contracts.plain_text import name_of_person, said_by_person
from wavestitch.contracts.ports import CommitConflict
from wavestitch.contracts.position import Head, HeadKind
from wavestitch.contracts.promotion import Promotion, rows_as_made
from wavestitch.contracts.reasons import Reason
from wavestitch.contracts.stages import Stage


@dataclass(frozen=True, slots=True)
class TakingBack:
    """What it would do. `plan_id`: of the promotion."""

    plan_id: str
    put_back: PutBack

    @property
    def stages(self) -> tuple[Stage, ...]:
        return (self.put_back,)


def plan_taking_back(edges: Edges, plan_id: str, *, who: str, why: str) -> TakingBack:
    """Touches nothing. Raises `Refused` where it would not put back what was, or cannot."""
    promotion = edges.plan(plan_id, committed=True).promotion
    assert promotion is not None, "only a promotion is taken back"
    base, _, _ = look_at_group(edges.stream, log=edges.log, tables=edges.tables)
    before = _before(edges, plan_id)
    edges.tables.refuse_fixed_rows()
    now = edges.tables.published(promotion.ids)
    then = edges.tables.published(promotion.ids, of=before.snapshot_id)
    if others := rows_as_made(promotion, now):
        raise Refused(
            f"stream {edges.name}: {len(others)} of the {len(promotion.ids)} waveforms of batch {plan_id[:16]} are not "
            f"as it left them, first {in_shell(others[0])}: something was published or promoted since. Nothing was "
            f"changed; undo that first, or compare and promote by the definition of before"
        )
    mark = base.held and _mark_after(edges, base.held, promotion, now=now, then=then)
    if mark is None and promotion.put_in:
        _refuse_lost(edges.name, promotion, [], now=now, then=then)
    reason = said_by_person(why, "--why") or f"undo of batch {plan_id[:16]}"
    note = f"taken back by {name_of_person(who)}: {reason} ({promotion.says} before)"
    head = base.next(kind=HeadKind.PROMOTE, held=mark, note=note)
    return TakingBack(plan_id, PutBack(base, head, before.snapshot_id or 0, promotion))


def take_back(edges: Edges, found: TakingBack) -> Head:
    """Do it. Raises `Refused` where the head is another one by now."""
    walk = Walk(edges.stream, edges.log, edges.tables)
    try:
        for stage in found.stages:
            walk(stage)
    except CommitConflict:
        raise Refused(
            f"stream {edges.name}: somebody committed since this was worked out; nothing was changed, look at it again "
            f"with `wavestitch undo {edges.name} --plan {found.plan_id}`"
        ) from None
    assert walk.head is not None, "it commits a head"
    return walk.head


def _before(edges: Edges, plan_id: str) -> Head:
    heads = edges.tables.heads()
    at = next((n for n, h in enumerate(heads) if h.plan_id == plan_id), len(heads))
    if at + 1 >= len(heads):
        raise Refused(
            f"stream {edges.name}: maintenance has let go of the snapshot before batch {plan_id[:16]}, and of the rows "
            "that were there. Put the definition of before in force, and promote the range again by it: `wavestitch "
            f"promote {edges.name} --why …`"
        )
    return heads[at + 1]


def _mark_after(
    edges: Edges,
    mark: HeldMark,
    promotion: Promotion,
    *,
    now: Mapping[str, PublishedWaveform],
    then: Mapping[str, PublishedWaveform],
) -> HeldMark:
    rows = edges.tables.held(mark, HeldLook(ids=frozenset(promotion.ids)))
    mine = [h for h in rows if h.chunk.reason is None and h.chunk.waveform_id in set(promotion.ids)]
    was, will = effective_held(mine, published=now), effective_held(mine, published=then)
    _refuse_discarded(edges.name, was, will)
    _refuse_lost(edges.name, promotion, will, now=now, then=then)
    counts = Counter(mark.counts)
    counts.subtract(h.counted_as for h in was)
    counts.update(h.counted_as for h in will)
    size = mark.chunk_bytes - _bytes(was) + _bytes(will)
    return replace(mark, counts={reason: n for reason, n in sorted(counts.items()) if n}, chunk_bytes=size)


def _refuse_discarded(stream: str, was: Sequence[HeldChunk], will: Sequence[HeldChunk]) -> None:
    """Of what would be published again: somebody has decided since that it is not to be."""
    stays = {h.key for h in will}
    gone = sorted({h.chunk.waveform_id or "" for h in was if h.reason is Reason.DISCARDED and h.key not in stays})
    if gone:
        raise Refused(
            f"stream {stream}: {len(gone)} waveforms would be published again that somebody has discarded since, first "
            f"{in_shell(gone[0])}. Nothing was changed; restore them first with `wavestitch held {stream} restore "
            f"{in_shell(gone[0])} --why …`, and undo it then"
        )


def _bytes(held: Sequence[HeldChunk]) -> int:
    return sum(held_bytes(h.chunk, h.counted_as) for h in held)


def _refuse_lost(
    stream: str,
    promotion: Promotion,
    held: Sequence[HeldChunk],
    *,
    now: Mapping[str, PublishedWaveform],
    then: Mapping[str, PublishedWaveform],
) -> None:
    kept = {(h.chunk.waveform_id, h.chunk.seq, h.chunk.piece) for h in held}
    kept |= {(i, seq, c.piece) for i, row in then.items() for seq, c in enumerate(row.chunks)}
    lost = [i for i in promotion.put_in if any((i, s, c.piece) not in kept for s, c in enumerate(now[i].chunks))]
    if lost:
        raise Refused(
            f"stream {stream}: {len(lost)} waveforms would be neither published nor held, first {in_shell(lost[0])}: "
            "what was held of them was let go by maintenance since they are published. Put the definition of before in "
            f"force, and promote the range again by it: `wavestitch promote {stream} --why …`"
        )
