"""What is held, for programs: the same words at the command line and on the pages. Pure."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from functools import lru_cache
from typing import Any

from wavestitch.batch.held_waveforms import HeldWaveform
from wavestitch.contracts.held import HeldChunk
from wavestitch.contracts.reasons import Reason


def waveform_said(one: HeldWaveform) -> dict[str, Any]:
    """`held_for`: all reasons of its chunks as they stand today; `newest_ms`: since the epoch."""
    return {
        "waveform_id": one.waveform_id,
        "held_for": sorted({state.value for state in one.states}),
        "chunks": len(one.held),
        "bytes": one.bytes,
        "source": one.source,
        "newest_ms": one.newest_ms,
        "published": one.published,
        "why": one.held[0].evidence,
    }


def chunk_said(held: HeldChunk, state: Reason) -> dict[str, Any]:
    """`state`: what it is held for today, which for one that is open may be another reason than at first. `meta`: by
    its digest (`texts_said`), since thousands of chunks have one text, and a producer chooses how long that is."""
    chunk = held.chunk._asdict()
    meta = None if held.chunk.meta is None else _digest(held.chunk.meta)
    return {**chunk, "meta": meta, "piece": held.chunk.piece.hex(), "held_for": state.value, "why": held.evidence}


def texts_said(held: Iterable[HeldChunk]) -> dict[str, str]:
    """Each text of metadata of these chunks once, by its digest."""
    texts = {h.chunk.meta for h in held if h.chunk.meta is not None}
    return {_digest(text): text for text in texts}


@lru_cache(maxsize=64)
def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]
