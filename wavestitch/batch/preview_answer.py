"""What somebody answers to a preview of a rewind or of a decision: a rejection is kept, and is final."""

from __future__ import annotations

from wavestitch.batch.edges import Edges
from wavestitch.contracts.plain_text import name_of_person, said_by_person
from wavestitch.contracts.preview_answer import Rejected, refuse_dead
from wavestitch.contracts.quantities import EpochMs


def reject_preview(edges: Edges, preview_id: str, *, by: str, why: str = "") -> Rejected:
    """Keep that nobody may do it any more; the first word counts. Returns what is kept."""
    said = Rejected(name_of_person(by), said_by_person(why, "the reason (why)"), edges.clock_ms())
    edges.reject(preview_id, said)
    return edges.rejected(preview_id) or said


def refuse_dead_preview(edges: Edges, preview_id: str, *, made_ms: EpochMs) -> None:
    """Raises `Refused` where it was rejected, or is too old."""
    refuse_dead(
        edges.name,
        made_ms=made_ms,
        now=edges.clock_ms(),
        holds=edges.previews_hold,
        rejected=edges.rejected(preview_id),
    )
