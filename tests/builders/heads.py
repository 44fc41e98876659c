"""Heads of tests, and rows of the history."""

from __future__ import annotations

from typing import Any

from wavestitch.contracts.batch_row import BatchRow
from wavestitch.contracts.position import Head, HeadKind, Position
from wavestitch.contracts.quantities import EpochMs, LeaderEpoch, Offset


def make_head(**changes: Any) -> Head:
    """The first head of a stream, with one partition."""
    known: dict[str, Any] = {
        "sequence": 1,
        "generation": 1,
        "kind": HeadKind.FIRST,
        "topic_id": "topic",
        "positions": {0: Position(Offset(0))},
    }
    return Head(**{**known, **changes})


def at(next_offset: int, *, seen_ms: int | None = None, leader_epoch: int | None = None) -> Position:
    """A position, as tests write it down: numbers."""
    seen = None if seen_ms is None else EpochMs(seen_ms)
    return Position(Offset(next_offset), seen, None if leader_epoch is None else LeaderEpoch(leader_epoch))


def make_row(**changes: Any) -> BatchRow:
    """The history's row of an ingest."""
    known: dict[str, Any] = {
        "plan_id": "p",
        "decision": "d",
        "sequence": 1,
        "generation": 1,
        "kind": HeadKind.INGEST.value,
        "stream": "ecg",
        "committed_ms": 1_767_225_600_000,
    }
    return BatchRow(**{**known, **changes})
