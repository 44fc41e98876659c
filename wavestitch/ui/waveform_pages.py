"""The pages of waveforms: a form with a page of results, and one waveform with its plot. Plain values in, text out."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any

from markupsafe import Markup, escape

from wavestitch.contracts.errors import BadInput
from wavestitch.html_pages import render_page
from wavestitch.reading.published_rows import PAGE_FILES, Asked
from wavestitch.tables.lookup.paged_rows import PageOfRows, Place
from wavestitch.ui.links import link
from wavestitch.ui.waveform_facts import CHUNKS_SHOWN, chunks_said, place_text, sent_bytes_of

_PLACE = re.compile(r"([0-9]{1,19})-([0-9]{1,9})-([0-9]{1,12})")


@dataclass(frozen=True, slots=True)
class Search:
    """What the form says, and where the page goes on. Times without a zone are UTC."""

    id: str = ""
    source: str = ""
    channel: str = ""
    start: str = ""
    end: str = ""
    after: str = ""

    def asked(self) -> Asked:
        """Raises `BadInput` for a time that is none."""
        return Asked(self.id, self.source, self.channel, moment(self.start), moment(self.end))

    def place(self) -> Place | None:
        """Raises `BadInput` for a text that no page has given out."""
        if not self.after:
            return None
        if (found := _PLACE.fullmatch(self.after)) is None:
            raise BadInput(f"{self.after[:80]!r} is no place in a list; begin the list again")
        return Place(*map(int, found.groups()))

    def link(self, stream: str, **changes: str) -> Markup:
        return link(stream, {**asdict(self), "after": "", **changes})


def moment(said: str) -> datetime | None:
    """A time as a form has it; None where it has none."""
    if not said.strip():
        return None
    try:
        found = datetime.fromisoformat(said.strip())
    except ValueError:
        raise BadInput(f"{said[:80]!r} is no time; write e.g. 2026-01-31T12:00, which is UTC") from None
    try:
        return (found if found.tzinfo is not None else found.replace(tzinfo=UTC)).astimezone(UTC)
    except OverflowError:
        raise BadInput(f"{said[:80]!r} is outside of the years 1 to 9999 in UTC; write another time") from None


def streams_page(streams: Sequence[str]) -> str:
    return render_page("waveform_streams", title="Waveforms", root="../", here="waveforms", streams=streams)


def waveforms_page(stream: str, search: Search, found: PageOfRows | None, problem: str = "") -> str:
    """`found`: None where there is a problem instead."""
    return render_page(
        "waveforms",
        root="../",
        here="waveforms",
        title=f"Waveforms of {stream}",
        stream=stream,
        search=search,
        found=found,
        problem=problem,
        most_files=PAGE_FILES,
        next=search.link(stream, after=place_text(found.after) or "") if found and found.after else "",
        again=search.link(stream) if search.after else "",
        link_of=lambda row: link_of_waveform(f"{stream}/one", row),
        source_of=lambda row: link(stream, {"source": row["source"], "channel": row["channel"]}),
        map_link=link(f"{stream}/map", {"source": search.source, "channel": search.channel}),
        seconds=_seconds,
    )


def waveform_page(stream: str, row: Mapping[str, Any], first_chunk: int, topic: str | None) -> str:
    """`topic`: the name of the topic that the stream reads, where the waveform came from it."""
    behind = min(len(row["chunks"]), first_chunk + CHUNKS_SHOWN)
    pages = {"Earlier chunks": first_chunk - CHUNKS_SHOWN, "Further chunks": behind}
    at = str(row["start_time_ns"])
    return render_page(
        "waveform",
        root="../../",
        here="waveforms",
        title=f"Waveform {row['waveform_id']}",
        stream=stream,
        row=row,
        topic=topic,
        bytes=sent_bytes_of(row),
        seconds=_seconds(row),
        chunks=chunks_said(row, first_chunk, behind),
        first_chunk=first_chunk,
        pages=[
            (said, link("one", {"id": row["waveform_id"], "at": at, "chunk": str(max(0, n))}))
            for said, n in pages.items()
            if -CHUNKS_SHOWN < n < len(row["chunks"])
        ],
        view_link=link("view", {"id": row["waveform_id"], "at": at}),
        back=link(f"../{stream}", {"source": row["source"], "channel": row["channel"]}),
        map_link=link("map", {"source": row["source"], "channel": row["channel"], "end": row["end_time"].isoformat()}),
    )


def link_of_waveform(path: str, row: Mapping[str, Any]) -> Markup:
    """With its time, by which few files are opened to find it."""
    return link(path, {"id": row["waveform_id"], "at": str(row["start_time_ns"])})


def shown_time(row: Mapping[str, Any]) -> Markup:
    return escape(row["start_time"].strftime("%Y-%m-%d %H:%M:%S.%f")[:-3])


def _seconds(row: Mapping[str, Any]) -> str:
    return f"{row['sample_count'] / row['sampling_rate_hz']:g}"
