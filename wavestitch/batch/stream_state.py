"""What there is at this moment: the head, what is held and what is published. A decision is made on that.

Read in this order: head first, then held and published. What is held is of the snapshot that this head names, however
many have been staged since; what is published only grows by commits, and a commit in between makes the compare-and-set
fail, so that a decision never rests on a mixture. A look costs what is asked for, not what was ever held (I5).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from wavestitch.contracts.assembly import ChunkFacts
from wavestitch.contracts.errors import Refused
from wavestitch.contracts.held import HeldChunk, HeldLook, PublishedWaveform, effective_held
from wavestitch.contracts.held_mark import held_bytes
from wavestitch.contracts.plan import Plan
from wavestitch.contracts.ports import Tables
from wavestitch.contracts.position import Head
from wavestitch.contracts.quantities import EpochMs, before, milliseconds
from wavestitch.contracts.stream import Stream


@dataclass(frozen=True, slots=True)
class StreamState:
    """`held`: the effective held chunks that were asked for; those of the given topic have an empty `topic_id`.
    `published`: of the waveforms that were asked for, and of those that a held chunk names. `replaced`: the rows that a
    promotion takes out. They are not among the published ones, what they released counts as held, and the head counts
    it, too."""

    head: Head
    held: list[HeldChunk]
    published: Mapping[str, PublishedWaveform]
    replaced: Mapping[str, PublishedWaveform] = field(default_factory=dict)


def load_for_batch(tables: Tables, plan: Plan, chunks: Sequence[ChunkFacts]) -> StreamState:
    """What `decide` needs for a batch that read these chunks."""
    # Whoever only plans, as Airflow does to parse its DAGs, needs no columns, which are slow to load.
    from wavestitch.contracts.chunk_table import ChunkTable  # noqa: PLC0415
    from wavestitch.contracts.read_places import ReadPlaces  # noqa: PLC0415

    head, table = _head(tables), ChunkTable.of(chunks)
    ids = frozenset([*table.ids.to_pylist(), *(plan.choice.ids if plan.choice is not None else ())])
    look = HeldLook(
        open_since=open_since(head.as_of(plan.clock_ms), plan.stream) if plan.expires else None,
        ids=ids,
        coordinates=ReadPlaces(plan.topic_id, table),
        unreleased=plan.promotion is None,  # which takes rows out that released some
    )
    goes = plan.promotion.ids if plan.promotion is not None else ()
    return _load(tables, head, look, topic_id=plan.topic_id, ids=ids, goes=goes)


def load_state(tables: Tables, *, topic_id: str, look: HeldLook | None = None, head: Head | None = None) -> StreamState:
    """The stream as it stands, or stood at `head`, and of what is held what `look` asks for: everything, for proofs,
    unless given."""
    chosen = HeldLook(everything=True) if look is None else look
    now, of = (_head(tables), None) if head is None else (head, head.snapshot_id)
    return _load(tables, now, chosen, topic_id=topic_id, ids=chosen.ids, of=of)


def open_since(head: Head, stream: Stream) -> EpochMs:
    """An open chunk with an older record time than this waits no more."""
    return before(head.watermark_ms, milliseconds(stream.allowed_lateness))


def _head(tables: Tables) -> Head:
    head = tables.head()
    if head is None:
        raise Refused("the stream has no head yet; plan a batch first")
    return head


def _load(
    tables: Tables,
    head: Head,
    look: HeldLook,
    *,
    topic_id: str,
    ids: Iterable[str],
    goes: Collection[str] = (),
    of: int | None = None,
) -> StreamState:
    rows = tables.held(head.held, look)
    own = [replace(h, chunk=h.chunk._replace(topic_id="")) if h.chunk.topic_id == topic_id else h for h in rows]
    there = tables.published({*ids, *(h.chunk.waveform_id for h in own if h.chunk.waveform_id is not None)}, of=of)
    replaced = {i: there[i] for i in goes if i in there}
    if not replaced:
        return StreamState(head, effective_held(own, published=there), there)
    published = {i: row for i, row in there.items() if i not in replaced}
    held, counted = effective_held(own, published=published), effective_held(own, published=there)
    return StreamState(_counting(head, held, counted), held, published, replaced)


def _counting(head: Head, held: Sequence[HeldChunk], counted: Sequence[HeldChunk]) -> Head:
    """The head as if it counted all of these, of which it counts some."""
    if head.held is None:
        return head
    known = {h.key for h in counted}
    freed = [h for h in held if h.key not in known]
    counts = Counter(head.held.counts) + Counter(h.counted_as for h in freed)
    size = head.held.chunk_bytes + sum(held_bytes(h.chunk, h.counted_as) for h in freed)
    return replace(head, held=replace(head.held, counts=dict(counts), chunk_bytes=size))
