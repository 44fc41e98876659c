"""What is held, waveform by waveform, for people: selected, summed up, page by page. Decides and changes nothing.

Costs what a page shows, and one column for the ids; records that are no chunks belong to no waveform and are not here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from wavestitch.batch.stream_state import load_state
from wavestitch.contracts.assembly import assemble_waveform
from wavestitch.contracts.belief import Belief
from wavestitch.contracts.chunk_metadata import Metadata, parse_metadata
from wavestitch.contracts.held import HeldChunk, HeldLook, held_states
from wavestitch.contracts.ports import Tables
from wavestitch.contracts.quantities import EpochMs, milliseconds
from wavestitch.contracts.reasons import Reason
from wavestitch.contracts.stream import Stream

_AT_ONCE = 500
_ROWS_AT_ONCE = 20_000
"""Of some 4 KiB each in memory; of a waveform that has more, the others are not loaded beside it."""


@dataclass(frozen=True, slots=True)
class Selection:
    """Which held waveforms are meant; everything that is given must be met. `reasons` as they are now (`incomplete`, no
    longer `open`, where a deadline has passed). Record times of the newest chunk, ms: `[since_ms, until_ms)`.
    `decisions`: digests of the batches that held them. `after`: only ids behind this one, in order."""

    ids: tuple[str, ...] = ()
    reasons: frozenset[Reason] = frozenset()
    source: str = ""
    since_ms: EpochMs | None = None
    until_ms: EpochMs | None = None
    decisions: frozenset[str] | None = None
    after: str = ""

    def meets(self, one: HeldWaveform) -> bool:
        return (
            (not self.reasons or bool(self.reasons & set(one.states)))
            and (not self.source or one.source == self.source)
            and (self.since_ms is None or one.newest_ms >= self.since_ms)
            and (self.until_ms is None or one.newest_ms < self.until_ms)
            and (self.decisions is None or any(h.decision in self.decisions for h in one.held))
        )


@dataclass(frozen=True, slots=True)
class HeldWaveform:
    """All that is held of a waveform. `states`: of each chunk, as `held_states`. `published`: it is, and what is held
    contradicts it."""

    waveform_id: str
    held: tuple[HeldChunk, ...]
    states: tuple[Reason, ...]
    published: bool

    @property
    def bytes(self) -> int:
        return sum(h.chunk.length for h in self.held)

    @property
    def newest_ms(self) -> EpochMs:
        return max(h.chunk.timestamp_ms for h in self.held)

    @property
    def source(self) -> str:
        found = parse_metadata(self.held[0].chunk.meta or "")
        return found.source if isinstance(found, Metadata) else ""

    def believed(self, stream: Stream) -> list[HeldChunk]:
        """Those that count by the stream's present definition."""
        belief = Belief(stream)
        return [h for h in self.held if belief.believes(h)]

    def verdict(self, stream: Stream) -> tuple[Reason | None, str]:
        """What would become of it by the stream's present definition, as far as the index says; None: it is whole."""
        chunks = [h.chunk for h in self.believed(stream)]
        if not chunks:
            return Reason.UNPROVEN, Belief(stream).why_not(self.held[0])
        found = assemble_waveform(self.waveform_id, chunks, stream.limits)
        return found.reason, found.evidence


def select_held(tables: Tables, stream: Stream, wanted: Selection) -> Iterator[HeldWaveform]:
    """The waveforms that are meant, in order of their ids."""
    head = tables.head()
    if head is None:
        return
    # An expired open waveform is incomplete by the watermark; its rows still say open.
    stored = frozenset({Reason.OPEN if r is Reason.INCOMPLETE else r for r in wanted.reasons})
    rows = dict.fromkeys(sorted(set(wanted.ids)), 1) if wanted.ids else tables.held_ids(head.held, stored)
    for some in some_at_once({i: n for i, n in rows.items() if i > wanted.after}):
        for one in _load(tables, stream, some):
            if wanted.meets(one):
                yield one


def some_at_once(rows: Mapping[str, int], *, most_ids: int = _AT_ONCE) -> Iterator[list[str]]:
    """Ids, in order, with about as many rows together as may be in memory at once; one alone may have more."""
    some: list[str] = []
    together = 0
    for i, n in rows.items():
        if some and (len(some) == most_ids or together + n > _ROWS_AT_ONCE):
            yield some
            some, together = [], 0
        some.append(i)
        together += n
    if some:
        yield some


def _load(tables: Tables, stream: Stream, ids: Sequence[str]) -> list[HeldWaveform]:
    now = load_state(tables, topic_id="", look=HeldLook(ids=frozenset(ids)))
    by_id: dict[str, list[HeldChunk]] = {}
    for h in now.held:
        if h.chunk.reason is None and h.chunk.waveform_id is not None:
            by_id.setdefault(h.chunk.waveform_id, []).append(h)
    lateness = milliseconds(stream.allowed_lateness)
    return [
        HeldWaveform(
            i,
            tuple(by_id[i]),
            tuple(held_states(by_id[i], watermark=now.head.watermark_ms, allowed_lateness=lateness)),
            i in now.published,
        )
        for i in sorted(by_id)
    ]
