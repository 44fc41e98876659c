"""The map of what there is of each channel over time: a picture of links, and the same in words. Plain values in."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from markupsafe import Markup

from wavestitch.contracts.completeness import Kind, Lane, Stretch, coarse
from wavestitch.contracts.quantities import time_ns
from wavestitch.html_pages import render_page
from wavestitch.reading.published_rows import MAP_FILES, MAP_ROWS
from wavestitch.reading.source_map import MOST_CHUNKS, MOST_HELD, SourceMap, shifted
from wavestitch.ui.links import link
from wavestitch.ui.waveform_pages import Search

WIDTH = 1000
_MOST_LANES, _MOST_CELLS, _MOST_TOLD = 100, 500, 200
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_WINDOWS = {"1 hour": 1, "6 hours": 6, "1 day": 24, "7 days": 168, "30 days": 720}


@dataclass(frozen=True, slots=True)
class Cell:
    """A part of a lane as it is drawn: from `x` on, `width` wide, of `WIDTH`. `href`: to the waveforms in it."""

    x: float
    width: float
    kind: str
    says: str
    href: Markup | None


def map_page(stream: str, search: Search, found: SourceMap) -> str:
    lanes = list((found.lanes or {}).items())
    shown = [(lane, _cells(stream, lane, some, found)) for lane, some in lanes[:_MOST_LANES]]
    told = [
        (lane, stretch.kind.value, _time(stretch.start_ns), _time(stretch.end_ns))
        for lane, some in lanes[:_MOST_LANES]
        for stretch in some
        if stretch.kind is not Kind.THERE
    ]
    return render_page(
        "map",
        root="../../",
        here="waveforms",
        title=f"What there is of {stream}",
        stream=stream,
        search=search,
        found=found,
        empty=not lanes and found.lanes is not None and not (search.start or search.end),
        start=_shown(found.start),
        middle=_shown(found.start + (found.end - found.start) / 2),
        end=_shown(found.end),
        lanes=shown,
        more_lanes=max(0, len(lanes) - _MOST_LANES),
        told=told[:_MOST_TOLD],
        more_told=max(0, len(told) - _MOST_TOLD),
        width=WIDTH,
        most_rows=MAP_ROWS,
        most_files=MAP_FILES,
        most_held=MOST_HELD,
        most_chunks=MOST_CHUNKS,
        windows=_windows(search, found),
        moves=_moves(search, found),
        list_link=link(f"../{stream}", {"source": search.source, "channel": search.channel}),
    )


def map_facts(stream: str, found: SourceMap) -> dict[str, Any]:
    """`lanes`: None where there was too much to look at. Times in ns since 1970."""
    return {
        "stream": stream,
        "start_ns": time_ns(found.start),
        "end_ns": time_ns(found.end),
        "rows": found.rows,
        "files": found.files,
        "held_whole": found.held_whole,
        "lanes": None
        if found.lanes is None
        else [
            {
                "source": lane.source,
                "channel": lane.channel,
                "stretches": [
                    {
                        "start_ns": s.start_ns,
                        "end_ns": s.end_ns,
                        "kind": s.kind.value,
                        "waveforms": s.waveforms,
                    }
                    for s in some
                ],
            }
            for lane, some in found.lanes.items()
        ],
    }


def _cells(stream: str, lane: Lane, stretches: Sequence[Stretch], found: SourceMap) -> list[Cell]:
    start, end = time_ns(found.start), time_ns(found.end)
    if len(stretches) > _MOST_CELLS:
        stretches = coarse(stretches, start_ns=start, end_ns=end, cells=_MOST_CELLS)
    return [_cell(stream, lane, one, start, end) for one in stretches]


def _cell(stream: str, lane: Lane, one: Stretch, start: int, end: int) -> Cell:
    x = WIDTH * (one.start_ns - start) / (end - start)
    width = max(1.5, WIDTH * (one.end_ns - one.start_ns) / (end - start))
    several = "1 waveform" if one.waveforms == 1 else f"{one.waveforms} waveforms"
    says = f"{one.kind.value}: {_time(one.start_ns)} to {_time(one.end_ns)}" + (f", {several}" if one.waveforms else "")
    about = {"source": lane.source, "channel": lane.channel}
    href = None
    if one.kind is Kind.OPEN:
        href = link(f"../../held/{stream}", {"source": lane.source})
    elif one.kind is not Kind.MISSING:
        until = shifted(_moment(one.end_ns), timedelta(microseconds=1))
        times = {"start": _moment(one.start_ns).isoformat(), "end": until.isoformat()}
        href = link(f"../{stream}", about | times)
    return Cell(round(x, 2), round(min(width, WIDTH - x), 2), one.kind.value, says, href)


def _windows(search: Search, found: SourceMap) -> list[tuple[str, Markup, bool]]:
    """Links to windows of other lengths that end where this one does."""
    now = found.end - found.start
    return [
        (said, _at(search, shifted(found.end, -timedelta(hours=hours)), found.end), now == timedelta(hours=hours))
        for said, hours in _WINDOWS.items()
    ]


def _moves(search: Search, found: SourceMap) -> list[tuple[str, Markup]]:
    length = found.end - found.start
    return [
        ("Earlier", _at(search, shifted(found.start, -length), found.start)),
        ("Later", _at(search, found.end, shifted(found.end, length))),
    ]


def _at(search: Search, start: datetime, end: datetime) -> Markup:
    said = {"source": search.source, "channel": search.channel}
    return link("map", said | {"start": start.isoformat(), "end": end.isoformat()})


def _moment(ns: int) -> datetime:
    return _EPOCH + timedelta(microseconds=ns // 1000)


def _time(ns: int) -> str:
    return _shown(_moment(ns))


def _shown(moment: datetime) -> str:
    return moment.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S")
