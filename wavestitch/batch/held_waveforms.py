"""What is held, waveform by waveform: selected, summed up, some at a time. Decides and changes nothing.

Costs what is asked for, and one column for the ids; records that are no chunks belong to no waveform and are not here.
How many chunks a waveform has, and how many waveforms there are, is for a producer to say: so many ids and so many rows
are in memory at once, and a waveform with more rows than whoever asks has room for is counted, and not loaded.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import chain, islice

from wavestitch.batch.stream_state import load_state, open_since
from wavestitch.contracts.assembly import assemble_waveform
from wavestitch.contracts.belief import Belief
from wavestitch.contracts.chunk_metadata import Metadata, parse_metadata
from wavestitch.contracts.held import HeldChunk, HeldLook, IdsLook, held_states
from wavestitch.contracts.held_mark import HeldMark
from wavestitch.contracts.ports import Tables
from wavestitch.contracts.position import Head
from wavestitch.contracts.quantities import EpochMs, milliseconds
from wavestitch.contracts.reasons import Reason
from wavestitch.contracts.stream import Stream

_AT_ONCE = 500
_IDS_AT_ONCE = 100_000
_ROWS_AT_ONCE = 20_000
"""Of a waveform that has more, the others are not loaded beside it."""


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


@dataclass(frozen=True, slots=True)
class Crowd:
    """A waveform of which more chunks are held than whoever looks has room for."""

    waveform_id: str
    rows: int


def select_held(tables: Tables, stream: Stream, wanted: Selection) -> Iterator[HeldWaveform]:
    """The waveforms that are meant, in order of their ids."""
    head = tables.head()
    if head is not None:
        for one in waveforms_held(tables, stream, head, ids_meant(wanted)):
            if isinstance(one, HeldWaveform) and wanted.meets(one):
                yield one


def ids_meant(wanted: Selection) -> IdsLook:
    """What of a selection the rows say: the waveforms that may be meant."""
    if wanted.ids:
        return IdsLook(ids=frozenset(wanted.ids), after=wanted.after)
    # An expired open waveform is incomplete by the watermark; its rows still say open.
    stored = frozenset({Reason.OPEN if r is Reason.INCOMPLETE else r for r in wanted.reasons})
    return IdsLook(stored, after=wanted.after)


def open_waveforms(
    tables: Tables, stream: Stream, head: Head, *, most: int | None = None
) -> Iterator[HeldWaveform | Crowd]:
    """Those that have an open chunk which still waits."""
    since = open_since(head, stream)
    if _fits(head, most):
        return iter(_load(tables, stream, head, HeldLook(open_since=since)))
    waiting = IdsLook(frozenset({Reason.OPEN}), since)
    return waveforms_held(tables, stream, head, waiting, most=most, at_once=_ROWS_AT_ONCE)


def waveforms_held(
    tables: Tables, stream: Stream, head: Head, look: IdsLook, *, most: int | None = None, at_once: int = _AT_ONCE
) -> Iterator[HeldWaveform | Crowd]:
    """All that is held, at this head, of each waveform that has such a row, in order of their ids; of one that has more
    than `most` rows, how many. `at_once`: so many waveforms are loaded together, at most."""
    if look.ids and _fits(head, most):
        named = frozenset(i for i in look.ids if i > look.after)
        yield from _load(tables, stream, head, HeldLook(ids=named))
        return
    found, counted = held_ids(tables, head.held, look), look.counts_all or _fits(head, most)
    while page := dict(islice(found, _ROWS_AT_ONCE)):
        rows = page if counted else tables.held_ids(head.held, IdsLook(ids=frozenset(page)))
        few = {i: n for i, n in rows.items() if most is None or n <= most}
        crowds: Iterable[HeldWaveform | Crowd] = [Crowd(i, n) for i, n in rows.items() if i not in few]
        pieces = some_at_once(few.items(), most_ids=at_once)
        loaded: Iterable[HeldWaveform | Crowd] = chain.from_iterable(
            _load(tables, stream, head, HeldLook(ids=frozenset(some))) for some in pieces
        )
        yield from heapq.merge(loaded, crowds, key=_id_of)


def _fits(head: Head, most: int | None) -> bool:
    """Whether no more rows are held at all than may be in memory at once: then nobody has to count them first."""
    return head.held is None or head.held.rows <= min(_ROWS_AT_ONCE, _ROWS_AT_ONCE if most is None else most)


def _id_of(one: HeldWaveform | Crowd) -> str:
    return one.waveform_id


def held_ids(tables: Tables, mark: HeldMark | None, look: IdsLook) -> Iterator[tuple[str, int]]:
    """The waveforms that are asked for, in order, and how many such rows each has."""
    while page := tables.held_ids(mark, replace(look, most=_IDS_AT_ONCE)):
        yield from page.items()
        if len(page) < _IDS_AT_ONCE:
            return
        look = replace(look, after=max(page))


def some_at_once(rows: Iterable[tuple[str, int]], *, most_ids: int = _AT_ONCE) -> Iterator[list[str]]:
    """Ids, in order, with about as many rows together as may be in memory at once; one alone may have more."""
    some: list[str] = []
    together = 0
    for i, n in rows:
        if some and (len(some) == most_ids or together + n > _ROWS_AT_ONCE):
            yield some
            some, together = [], 0
        some.append(i)
        together += n
    if some:
        yield some


def _load(tables: Tables, stream: Stream, head: Head, look: HeldLook) -> list[HeldWaveform]:
    now = load_state(tables, topic_id="", look=look, head=head)
    by_id: dict[str, list[HeldChunk]] = {}
    for h in now.held:
        if h.chunk.reason is None and h.chunk.waveform_id is not None:
            by_id.setdefault(h.chunk.waveform_id, []).append(h)
    lateness = milliseconds(stream.allowed_lateness)
    return [
        HeldWaveform(
            i,
            tuple(by_id[i]),
            tuple(held_states(by_id[i], watermark=head.watermark_ms, allowed_lateness=lateness)),
            i in now.published,
        )
        for i in sorted(by_id)
    ]
