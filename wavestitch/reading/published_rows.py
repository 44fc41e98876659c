"""What the pages of waveforms ask of the published table: bounded looks at one snapshot, samples aside.

A page opens so many files at most, and says where the next one goes on, or that it would take more. Raises what
`wavestitch.reading.stream` does.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import Any

from pyiceberg.expressions import BooleanExpression
from pyiceberg.table import Table

from wavestitch.contracts.errors import BadInput, Refused
from wavestitch.reading.extremes import Placed, in_a_row
from wavestitch.tables.lookup.file_scans import files_to_read
from wavestitch.tables.lookup.paged_rows import PageOfRows, Place, newest_end, page_of_rows
from wavestitch.tables.lookup.row_filter import all_of, at_least, below, equals, is_in
from wavestitch.tables.lookup.stored_row import StoredRow, find_row, sent_parts
from wavestitch.tables.stream_tables import StreamTables

PAGE_ROWS, PAGE_FILES = 50, 32
MAP_ROWS, MAP_FILES = 20_000, 128
_MAP_COLUMNS = ("source", "channel", "start_time_ns", "sample_count", "sampling_rate_hz")


@dataclass(frozen=True, slots=True)
class Asked:
    """Which waveforms are meant: all that is said must hold; an empty text says nothing. Those with samples in
    `[start, end)`."""

    waveform_id: str = ""
    source: str = ""
    channel: str = ""
    start: datetime | None = None
    end: datetime | None = None

    def condition(self) -> BooleanExpression:
        named = {"source": self.source, "channel": self.channel}
        parts = [equals(name, value) for name, value in named.items() if value]
        if self.waveform_id:
            parts.append(is_in("waveform_id", [self.waveform_id]))
        if self.start is not None:
            parts.append(at_least("end_time", _utc(self.start)))
        if self.end is not None:
            parts.append(below("start_time", _utc(self.end)))
        return all_of(*parts)


@dataclass(frozen=True, slots=True, eq=False)
class Found:
    """One waveform, and the table as it was when it was found."""

    table: Table
    stored: StoredRow

    @property
    def row(self) -> Mapping[str, Any]:
        return self.stored.row

    def parts(self, start: int, end: int) -> Iterator[Placed]:
        return in_a_row(sent_parts(self.table, self.stored, start, end), start, end)


def list_published(tables: StreamTables, asked: Asked, begin: Place | None) -> PageOfRows:
    """A page of those that are meant, newest files first; of an id that this host's index knows, its files alone, where
    these are the whole answer. A place to go on at counts the table's files: an index may come and go between pages."""
    table = _table(tables)
    look = partial(page_of_rows, table, asked.condition(), begin=begin, most_rows=PAGE_ROWS, most_files=PAGE_FILES)
    files = tables.files_with(table, [asked.waveform_id]) if asked.waveform_id and begin is None else None
    page = None if files is None else look(files=files)
    return look() if page is None or page.after is not None else page


def find_published(tables: StreamTables, waveform_id: str, start_ns: int | None) -> Found | None:
    """The waveform with this id. `start_ns`: of its first sample, where that is known: then only files of that time
    are opened. Raises `Refused` where it may lie in more files than are opened for a page."""
    table = _table(tables)
    about = is_in("waveform_id", [waveform_id])
    if start_ns is not None:
        about = all_of(about, equals("start_time_ns", start_ns))
    tasks = tables.files_with(table, [waveform_id]) if start_ns is None else None
    tasks = files_to_read(table, about) if tasks is None else tasks
    found = find_row(table, waveform_id, tasks[:PAGE_FILES])
    if found is None and len(tasks) > PAGE_FILES:
        raise Refused(
            f"{waveform_id!r} may lie in any of {len(tasks)} files, of which a page opens {PAGE_FILES}; look for it on "
            "the stream's page of waveforms with its source or time, whose links say where it lies"
        )
    return None if found is None else Found(table, found)


def map_rows(tables: StreamTables, asked: Asked) -> PageOfRows:
    """What a map is drawn from: all that are meant, or as many as are looked at; then `after` is no None."""
    return page_of_rows(
        _table(tables), asked.condition(), begin=None, most_rows=MAP_ROWS, most_files=MAP_FILES, columns=_MAP_COLUMNS
    )


def newest_sample(tables: StreamTables) -> datetime | None:
    table = tables.waveforms()
    return None if table is None else newest_end(table)


def _table(tables: StreamTables) -> Table:
    table = tables.waveforms()
    if table is None:
        raise Refused("the stream has no table yet: nothing was published")
    return table


def _utc(moment: datetime) -> str:
    try:
        return moment.astimezone(UTC).isoformat()
    except OverflowError:
        raise BadInput(f"{moment.isoformat()} is outside of the years 1 to 9999 in UTC") from None
