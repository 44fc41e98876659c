"""What is held, for programs: the same words at the command line and on the pages. Pure."""

from __future__ import annotations

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
    """`state`: what it is held for today, which for one that is open may be another reason than at first."""
    chunk = held.chunk._asdict()
    return {**chunk, "piece": held.chunk.piece.hex(), "held_for": state.value, "why": held.evidence}
