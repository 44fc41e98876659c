"""What is held, as a page shows it: so many waveforms, or one in full. A page looks at so many waveforms and so many
chunks.

A filter that hardly anything meets would otherwise read all that is held; where the look ends before, the page says so
and where it goes on. Changes nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from wavestitch.batch.deployment import Deployment
from wavestitch.batch.held_waveforms import HeldWaveform, Selection, select_held
from wavestitch.contracts.belief import Belief
from wavestitch.contracts.held import HeldChunk

MOST, MOST_LOOKED_AT = 50, 2000
MOST_CHUNKS = 50_000
"""Of those looked at, all together: they are in the memory of Airflow's API server."""


@dataclass(frozen=True, slots=True)
class HeldList:
    """`counts`: chunks and records by what they are held for, of all that is held. `after`: the page goes on behind
    this id; None at the end."""

    counts: Mapping[str, int]
    waveforms: tuple[HeldWaveform, ...]
    after: str | None


@dataclass(frozen=True, slots=True)
class HeldOne:
    """`whole`: how many chunks it has by what they say, None where none says it; `missing`: those that are not there.
    `verdict`: what would become of it by the stream's present definition. `unbelieved`: why a chunk does not count."""

    waveform: HeldWaveform
    whole: int | None
    missing: tuple[int, ...]
    verdict: str
    unbelieved: Mapping[HeldChunk, str]


def held_list(deployment: Deployment, name: str, wanted: Selection) -> HeldList:
    tables, stream = deployment.tables(name), deployment.stream(name)
    head = tables.head()
    counts = dict(head.held.counts) if head is not None and head.held is not None else {}
    # What the ids alone do not say is asked here, waveform by waveform, so that the look has an end.
    among = select_held(tables, stream, replace(wanted, source="", since_ms=None, until_ms=None))
    found: list[HeldWaveform] = []
    last, chunks = "", 0
    for looked, one in enumerate(among):
        if len(found) == MOST or looked == MOST_LOOKED_AT or chunks >= MOST_CHUNKS:
            return HeldList(counts, tuple(found), last)
        last, chunks = one.waveform_id, chunks + len(one.held)
        if wanted.meets(one):
            found.append(one)
    return HeldList(counts, tuple(found), None)


def held_one(deployment: Deployment, name: str, waveform_id: str) -> HeldOne | None:
    """None where nothing of it is held."""
    stream = deployment.stream(name)
    one = next(select_held(deployment.tables(name), stream, Selection(ids=(waveform_id,))), None)
    if one is None:
        return None
    belief = Belief(stream)
    reason, evidence = one.verdict(stream)
    whole = max((h.chunk.count for h in one.held if h.chunk.count is not None), default=None)
    there = {h.chunk.seq for h in one.held}
    missing = tuple(n for n in range(min(whole or 0, stream.limits.max_chunks)) if n not in there)
    said = f"{reason.value}: {evidence}" if reason is not None else "whole"
    return HeldOne(one, whole, missing, said, {h: why for h in one.held if (why := belief.why_not(h))})
