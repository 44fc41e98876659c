"""The head that a batch is to become, but for what it holds: where it leaves the stream, and its watermark.

A batch that leaves the positions leaves the watermark, too. Pure.
"""

from __future__ import annotations

from wavestitch.contracts.batch_size import METADATA_WEIGHT, RECORD_HEADERS
from wavestitch.contracts.chunk_table import ChunkTable
from wavestitch.contracts.fates import Evidence
from wavestitch.contracts.plan import Plan
from wavestitch.contracts.position import Head, HeadKind, advance_watermark
from wavestitch.contracts.quantities import milliseconds


def next_head(plan: Plan, evidence: Evidence, head: Head, table: ChunkTable) -> Head:
    """`head`: the one that it comes after; `table`: all that the batch has read."""
    kind = HeadKind(plan.kind.value)
    if plan.choice is not None:
        # Where somebody vouches for it, what the gate was told is the very same.
        answered = "" if plan.vouched else evidence.note
        note = "; ".join(filter(None, (plan.choice.note, answered)))
        return head.next(kind=kind, plan_id=plan.plan_id, note=note)
    if not plan.moves_positions:
        return head.next(kind=kind, plan_id=plan.plan_id, note=evidence.note)
    positions = {p: end._replace(seen_ms=evidence.seen_ms.get(p, end.seen_ms)) for p, end in plan.ends.items()}
    watermark = advance_watermark(
        positions, previous_ms=head.watermark_ms, clock_ms=plan.clock_ms, idle=milliseconds(plan.stream.idle)
    )
    # As readers count them: metadata come with each chunk, the id as its key or in a header.
    brought, texts = table.stored_bytes
    stored = brought + RECORD_HEADERS * len(table) + (METADATA_WEIGHT - 1) * texts
    return head.next(
        kind=kind,
        plan_id=plan.plan_id,
        positions=positions,
        watermark_ms=watermark,
        mean_record_bytes=stored / len(table) if len(table) else head.mean_record_bytes,
        note=evidence.note,
    )
