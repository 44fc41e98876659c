"""What stands at this moment: the head, what is held and what is published. The ground that a decision is made on.

Read in this order: head first, then held and published. Both only grow by commits, and a commit in between makes the
compare-and-set fail, so that a decision never rests on a mixture.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

from wavestitch.contracts.errors import Refused
from wavestitch.contracts.held import HeldChunk, PublishedWaveform, effective_held
from wavestitch.contracts.ports import Tables
from wavestitch.contracts.position import Head


@dataclass(frozen=True, slots=True)
class StreamState:
    """`held`: all effective held chunks of the stream; those of the given topic have an empty `topic_id`."""

    head: Head
    held: list[HeldChunk]
    published: Mapping[str, PublishedWaveform]


def load_state(tables: Tables, *, topic_id: str, ids: Collection[str] = ()) -> StreamState:
    """The stream as it stands; `published` covers `ids` and every waveform that has a held chunk."""
    head = tables.head()
    if head is None:
        raise Refused("the stream has no head yet; plan a batch first")
    rows = [replace(h, chunk=h.chunk._replace(topic_id=_short(h.chunk.topic_id, topic_id))) for h in tables.held_rows()]
    published = tables.published({*ids, *(h.chunk.waveform_id for h in rows if h.chunk.waveform_id is not None)})
    committed = committed_decisions(tables, {h.decision for h in rows})
    return StreamState(head, effective_held(rows, committed=committed, published=published), published)


def committed_decisions(tables: Tables, wanted: Collection[str]) -> set[str]:
    """Those of these decisions that were committed: in the head's ancestry, or in the history, which outlives it."""
    unknown = set(wanted) - {""}
    if not unknown:
        return set()
    found = {h.decision for h in tables.heads()} & unknown
    # The history only grows: it is not read where the heads that are left know them all.
    return found if found == unknown else found | {d for _, d in tables.recorded() if d in unknown}


def _short(found: str, own: str) -> str:
    return "" if found == own else found
