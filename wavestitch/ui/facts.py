"""What the pages say, for programs: the same facts as JSON, by the names that docs/operations.md lists. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from wavestitch.batch.held_page import HeldList, HeldOne
from wavestitch.batch.held_waveforms import HeldWaveform
from wavestitch.batch.stream_facts import PartitionFacts, StreamFacts
from wavestitch.batch.watch import room_to_json
from wavestitch.contracts.batch_row import BatchRow
from wavestitch.contracts.held import HeldChunk
from wavestitch.contracts.reasons import Reason


def overview_facts(streams: Sequence[tuple[StreamFacts, float | None]]) -> dict[str, Any]:
    """`looked_at_s_ago`: how old what is said of a stream is; None where nothing is known of it yet."""
    return {"streams": [stream_said(facts, age) for facts, age in streams]}


def stream_said(found: StreamFacts, age: float | None) -> dict[str, Any]:
    """What is known of one stream. Times in ms since the epoch."""
    said: dict[str, Any] = {"stream": found.name, "problem": found.problem, "looked_at_s_ago": age}
    if found.head is None:
        return said
    return said | {
        "topic": found.topic,
        "head": found.head.sequence,
        "generation": found.head.generation,
        "watermark_ms": found.head.watermark_ms,
        "backlog": found.backlog,
        "headroom": room_to_json(found.room),
        "open": found.open,
        "quarantined": found.quarantined,
        "remarks": list(found.remarks),
        "partitions": [_partition(p) for p in found.partitions],
        "batches": [batch_row_said(row) for row in found.batches],
    }


def batch_facts(stream: str, plan_id: str, row: BatchRow | None) -> dict[str, Any]:
    """The batch of a run; `batch` is None where the history has no row of it."""
    return {"stream": stream, "plan_id": plan_id, "batch": None if row is None else batch_row_said(row)}


def batch_row_said(row: BatchRow) -> dict[str, Any]:
    """A row of the history, but for what only the product reads."""
    return {
        "plan_id": row.plan_id,
        "head": row.sequence,
        "generation": row.generation,
        "kind": row.kind,
        "committed_ms": row.committed_ms,
        "ranges": row.ranges,
        "waveforms": row.waveforms,
        "chunks": row.counts,
        "partitions": row.partitions,
        "reasons": row.reasons,
        "seconds": row.seconds,
        "balances": row.identity_balances if row.partitions else None,
        "note": row.note,
    }


def held_list_facts(stream: str, found: HeldList) -> dict[str, Any]:
    """`after`: what the next page is asked with."""
    return {
        "stream": stream,
        "counts": dict(found.counts),
        "waveforms": [_held_waveform(one) for one in found.waveforms],
        "after": found.after,
    }


def held_one_facts(stream: str, found: HeldOne) -> dict[str, Any]:
    """One waveform that is held, chunk by chunk."""
    one = found.waveform
    return _held_waveform(one) | {
        "stream": stream,
        "verdict": found.verdict,
        "of": found.whole,
        "missing": list(found.missing),
        "held": [_chunk(h, state, found) for h, state in zip(one.held, one.states, strict=True)],
    }


def _partition(at: PartitionFacts) -> dict[str, int | None]:
    return {
        "partition": at.partition,
        "position": at.position,
        "log_start": at.log_start,
        "end": at.end,
        "backlog": at.backlog,
    }


def _held_waveform(one: HeldWaveform) -> dict[str, Any]:
    return {
        "waveform": one.waveform_id,
        "held_for": sorted({state.value for state in one.states}),
        "chunks": len(one.held),
        "bytes": one.bytes,
        "source": one.source,
        "newest_ms": one.newest_ms,
        "published": one.published,
        "why": one.held[0].evidence,
    }


def _chunk(held: HeldChunk, state: Reason, found: HeldOne) -> dict[str, Any]:
    chunk = held.chunk._asdict()
    return {
        **chunk,
        "piece": held.chunk.piece.hex(),
        "held_for": state.value,
        "why": held.evidence,
        "unbelieved": found.unbelieved.get(held),
    }
