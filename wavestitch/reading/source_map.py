"""What there is of each channel of a stream in a window of time: published rows and what is held, as stretches.

A bounded look: where there are more rows, files or held waveforms than it takes, it says so, and no map is made of some
of the rows, which would show as missing what was only not looked at.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

from wavestitch.batch.deployment import Deployment
from wavestitch.batch.held_waveforms import Crowd, HeldWaveform, waveforms_held
from wavestitch.contracts.chunk_metadata import Metadata, parse_metadata
from wavestitch.contracts.completeness import Lane, Span, Stretch, completeness, span_of
from wavestitch.contracts.errors import Refused
from wavestitch.contracts.held import IdsLook
from wavestitch.contracts.quantities import time_ns
from wavestitch.contracts.reasons import Reason
from wavestitch.reading.published_rows import Asked, map_rows, newest_sample

MOST_HELD, MOST_CHUNKS = 2000, 50_000
"""Looked at, whosever they are: waveforms, and chunks of all together. A filter that hardly any of them meets would
otherwise read all that is held, in Airflow's API server."""
DAY = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class SourceMap:
    """`lanes` in `[start, end)`; None where there are more rows or files than `rows` and `files`, which were looked at.
    `held_whole`: whether all that is held was looked at."""

    start: datetime
    end: datetime
    lanes: Mapping[Lane, list[Stretch]] | None
    rows: int
    files: int
    held_whole: bool


def map_of_stream(deployment: Deployment, name: str, asked: Asked) -> SourceMap:
    """Without an end the window ends with the newest sample, without a start it is a day. Raises what
    `published_rows` does."""
    tables, stream = deployment.tables(name), deployment.stream(name)
    end = asked.end or (shifted(asked.start, DAY) if asked.start else _behind(newest_sample(tables)))
    start = asked.start or shifted(end, -DAY)
    if start >= end:
        raise Refused(f"the window from {start.isoformat()} to {end.isoformat()} has no length; let it end later")
    found = map_rows(tables, replace(asked, start=start, end=end))
    if found.after is not None:
        return SourceMap(start, end, None, len(found.rows), found.opened, True)
    spans = [
        (
            Lane(row["source"], row["channel"]),
            span_of(start_ns=row["start_time_ns"], samples=row["sample_count"], rate_hz=row["sampling_rate_hz"]),
        )
        for row in found.rows
    ]
    held_whole, chunks = True, 0
    head = tables.head()
    among = waveforms_held(tables, stream, head, IdsLook(), most=MOST_CHUNKS) if head is not None else ()
    for number, one in enumerate(among):
        if number == MOST_HELD or chunks >= MOST_CHUNKS or isinstance(one, Crowd):
            held_whole = False
            break
        chunks += len(one.held)
        if asked.source in ("", one.source):
            spans += [(lane, span) for lane, span in _held(one) if asked.channel in ("", lane.channel)]
    # What only touches the window would be a neighbour that others beside it are not known of.
    window = time_ns(start), time_ns(end)
    inside = [(lane, s) for lane, s in spans if s.start_ns < window[1] and window[0] < s.end_ns]
    made = completeness(inside, start_ns=window[0], end_ns=window[1])
    return SourceMap(start, end, made, len(found.rows), found.opened, held_whole)


def shifted(moment: datetime, by: timedelta) -> datetime:
    """As far as the calendar goes."""
    try:
        return moment + by
    except OverflowError:
        return (datetime.max if by > timedelta() else datetime.min).replace(tzinfo=UTC)


def _held(one: HeldWaveform) -> Iterator[tuple[Lane, Span]]:
    """As long as its metadata say, or else as the chunks that are there. What was discarded, or is published with other
    bytes, fills no time."""
    said = parse_metadata(one.held[0].chunk.meta or "")
    if one.published or not isinstance(said, Metadata) or set(one.states) == {Reason.DISCARDED}:
        return
    lengths = {h.chunk.seq: h.chunk.length for h in one.held}
    samples = said.sample_count or max(1, sum(lengths.values()) // said.sample_bytes)
    span = span_of(start_ns=said.start_time_ns, samples=samples, rate_hz=said.sampling_rate_hz, held=True)
    yield Lane(said.source, said.channel), span


def _behind(newest: datetime | None) -> datetime:
    """The next whole minute; of a table without rows, of now nothing is known: the beginning of 1970."""
    if newest is None:
        return datetime(1970, 1, 2, tzinfo=UTC)
    return newest.replace(second=0, microsecond=0) + timedelta(minutes=1)
