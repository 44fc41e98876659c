"""What is held, as a page shows it: so many waveforms, or one in full. A page looks at so many waveforms and so many
chunks.

A filter that hardly anything meets would otherwise read all that is held; where the look ends before, the page says so
and where it goes on. Changes nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from wavestitch.batch.deployment import Deployment
from wavestitch.batch.held_waveforms import Crowd, HeldWaveform, Selection, ids_meant, waveforms_held
from wavestitch.contracts.belief import Belief
from wavestitch.contracts.held import HeldChunk, IdsLook
from wavestitch.contracts.held_mark import HeldMark
from wavestitch.contracts.partial_waveform import PartialWaveform, lay_out
from wavestitch.contracts.reasons import Reason

MOST, MOST_LOOKED_AT = 50, 2000
ROWS_SHOWN = 500
"""Chunks of one waveform on a page."""
MOST_CHUNKS = 50_000
"""Of those looked at, of one alone or all together: they are in the memory of Airflow's API server."""


@dataclass(frozen=True, slots=True)
class HeldList:
    """`counts`: chunks and records by what they are held for, of all that is held. `crowds`: waveforms with more chunks
    than a page looks at, whatever else they are. `after`: the page goes on behind this id; None at the end."""

    counts: Mapping[str, int]
    waveforms: tuple[HeldWaveform, ...]
    crowds: tuple[Crowd, ...]
    after: str | None


@dataclass(frozen=True, slots=True)
class HeldOne:
    """`whole`: how many chunks it has by what they say, None where none says it; `missing`: those that are not there.
    `verdict`: what would become of it by the stream's present definition. `unbelieved`: why a chunk does not count.
    `mark`: what was held when it was looked at. `partial`: where the chunks that count lie, of the copy that was asked
    for; None where none can be drawn."""

    waveform: HeldWaveform
    whole: int | None
    missing: tuple[int, ...]
    verdict: str
    unbelieved: Mapping[HeldChunk, str]
    mark: HeldMark
    partial: PartialWaveform | None

    def rows(self) -> list[tuple[HeldChunk, Reason]]:
        """Each chunk with what it is held for today, in order of their numbers."""
        both = zip(self.waveform.held, self.waveform.states, strict=True)
        return sorted(both, key=lambda row: (row[0].chunk.seq or 0, row[0].chunk.place))


def held_list(deployment: Deployment, name: str, wanted: Selection) -> HeldList:
    tables, stream = deployment.tables(name), deployment.stream(name)
    head = tables.head()
    if head is None or head.held is None:
        return HeldList({}, (), (), None)
    found: list[HeldWaveform] = []
    crowds: list[Crowd] = []
    last, chunks = "", 0
    among = waveforms_held(tables, stream, head, ids_meant(wanted), most=MOST_CHUNKS)
    # What the ids alone do not say is asked here, waveform by waveform, so that the look has an end.
    for looked, one in enumerate(among):
        more = 0 if isinstance(one, Crowd) else len(one.held)
        if len(found) + len(crowds) >= MOST or looked == MOST_LOOKED_AT or chunks + more > MOST_CHUNKS:
            return HeldList(head.held.counts, tuple(found), tuple(crowds), last)
        last = one.waveform_id
        if isinstance(one, Crowd):
            crowds.append(one)
            continue
        chunks += more
        if wanted.meets(one):
            found.append(one)
    return HeldList(head.held.counts, tuple(found), tuple(crowds), None)


def held_one(deployment: Deployment, name: str, waveform_id: str, copy: str = "first") -> HeldOne | Crowd | None:
    """None where nothing of it is held. `copy`: of several that contradict each other, the one that is laid out."""
    tables, stream = deployment.tables(name), deployment.stream(name)
    head, look = tables.head(), IdsLook(ids=frozenset({waveform_id}))
    if head is None or head.held is None:
        return None
    one = next(waveforms_held(tables, stream, head, look, most=MOST_CHUNKS), None)
    if one is None or isinstance(one, Crowd):
        return one
    belief = Belief(stream)
    reason, evidence = one.verdict(stream)
    whole = max((h.chunk.count for h in one.held if h.chunk.count is not None), default=None)
    there = {h.chunk.seq for h in one.held}
    missing = tuple(n for n in range(min(whole or 0, stream.limits.max_chunks)) if n not in there)
    said = f"{reason.value}: {evidence}" if reason is not None else "whole"
    unbelieved = {h: why for h in one.held if (why := belief.why_not(h))}
    partial = lay_out(waveform_id, [h for h in one.held if h not in unbelieved], copy=copy)
    return HeldOne(one, whole, missing, said, unbelieved, head.held, partial)
