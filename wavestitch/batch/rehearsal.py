"""What the batch of a promotion would decide, asked before anybody is shown it.

By the decision and the rule of the commit themselves, over all that was read and all that is held: what is shown can be
done as long as nothing changes. Changes nothing, and stitches nothing: what the gate or the bytes refuse was compared.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from wavestitch.batch.edges import Edges
from wavestitch.batch.stream_state import StreamState, load_for_batch
from wavestitch.contracts.assembly import assemble
from wavestitch.contracts.chunk_table import ChunkTable
from wavestitch.contracts.decided import Decision
from wavestitch.contracts.decision import decide
from wavestitch.contracts.fates import AllStitched, ChunkFate, Evidence
from wavestitch.contracts.pending_decision import held_back
from wavestitch.contracts.plan import Plan
from wavestitch.contracts.promotion import made_otherwise
from wavestitch.contracts.reasons import Fate, Reason


def rehearse(edges: Edges, plan: Plan, chunks: ChunkTable, refused: Mapping[str, str]) -> dict[str, str]:
    """The waveforms of which the batch would make something else than its plan says, each with why and what to do.
    `chunks`: all that was compared; `refused`: by waveform, for what the gate or the bytes refuse it."""
    assert plan.promotion is not None, "of another plan nothing is shown"
    now = load_for_batch(edges.tables, plan, chunks)
    in_time = _in_time_by_what_is_held(refused, chunks, now, plan)
    failed = {i: (why,) for i, why in refused.items() if i not in in_time}
    evidence = Evidence(chunks=chunks, seen_ms={}, stitched=AllStitched(), failed=failed)
    decision = decide(plan, evidence, head=now.head, held=now.held, published=now.published, sealed=False)
    others = held_back(now.held, now.replaced)
    found = made_otherwise(plan.promotion, decision, replaced=now.replaced, others=others)
    said: dict[str, str] = {}
    if unsaid := [i for i in found if i not in others]:
        said = _why(unsaid, edges.name, decision, now)
    held = {i: f"chunks of it are held as {reason.value}; decide about them first" for i, reason in others.items()}
    return {i: held.get(i) or said[i] for i in found}


def _in_time_by_what_is_held(ids: Collection[str], chunks: ChunkTable, now: StreamState, plan: Plan) -> set[str]:
    """The waveforms whose time is implausible by all that was compared of them, and is not with what is held of them
    beside that: a batch asks all copies when they were sent, wherever they lie."""
    read = [c for c in chunks.facts(chunks.rows_of(ids)) if c.waveform_id in ids]
    late = {i for i, one in assemble(read, plan.stream.limits).items() if one.reason is Reason.IMPLAUSIBLE_TIME}
    held = [h.chunk for h in now.held if h.chunk.waveform_id in late and h.reason is not Reason.DISCARDED]
    both = assemble([c for c in (*read, *held) if c.waveform_id in late], plan.stream.limits)
    return {i for i, one in both.items() if one.reason is not Reason.IMPLAUSIBLE_TIME}


def _why(ids: list[str], stream: str, decision: Decision, now: StreamState) -> dict[str, str]:
    mine: dict[str, list[ChunkFate]] = {i: [] for i in ids}
    for f in decision.fates.others:
        if f.chunk.waveform_id in mine:
            mine[f.chunk.waveform_id].append(f)
    return {i: _why_one(i, fates, stream, now) for i, fates in mine.items()}


def _why_one(waveform_id: str, fates: list[ChunkFate], stream: str, now: StreamState) -> str:
    row = now.replaced.get(waveform_id)
    held = {f.chunk.seq: f.chunk.identity for f in fates if f.chunk.carried}
    read = [f.chunk for f in fates if not f.chunk.carried and f.chunk.reason is None]
    odd = [c for c in read if row is None or not row.has(c)] if any(f.reason is Reason.CONFLICT for f in fates) else []
    # First what contradicts by its bytes; what is held may contradict another word about the whole.
    odd.sort(key=lambda c: held.get(c.seq, c.identity) == c.identity)
    if not odd:
        otherwise = (
            "nothing refuses it then" if any(f.fate is Fate.PUBLISHED for f in fates) else "it changed meanwhile"
        )
        why = next((f"{f.reason.value}: {f.evidence}" for f in fates if f.reason is not None), otherwise)
        return f"with all that is held of it the batch would make something else of it ({why}); look at that first"
    c, beside = odd[0], "its row" if row is not None else "what is held of it"
    at = now.head.positions.get(c.partition)
    if at is None or c.offset >= at.next_offset:
        return f"a copy in {c.place} contradicts {beside}; let an ingest read that, and decide about it first"
    return (
        f"a copy in {c.place} contradicts {beside}, and is not held as a chunk: no ingest comes to it again; go back "
        f"there with `wavestitch rewind {stream} --to {c.partition}:{c.offset}`, let an ingest read it, and decide "
        "about it first"
    )
