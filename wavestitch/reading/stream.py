"""A stream's published waveforms, one line away: `wavestitch.open("ecg").waveforms(source="ward-7")`.

Every call reads the table as it is then, file after file, only those that can have what is asked for. Times must have a
time zone; `end` is behind the last. Raises `BadInput` for what cannot be asked, `Refused` where nothing was published,
`Transient` where what is being read expires meanwhile.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyiceberg.table import Table

from wavestitch.batch.deployment import Deployment
from wavestitch.contracts.errors import Altered, BadInput, Refused, Transient
from wavestitch.contracts.quantities import time_ns
from wavestitch.contracts.rows import published_schema
from wavestitch.reading.exactness import Format
from wavestitch.reading.export import Exported, check_rows, write_files
from wavestitch.reading.extras import extra
from wavestitch.reading.labelled import label_waveforms
from wavestitch.reading.series import MOST_SAMPLES, Series, join
from wavestitch.reading.waveform import Waveform, waveform_of
from wavestitch.settings import Settings, load_settings
from wavestitch.tables.commit.samples_column import sample_type_of
from wavestitch.tables.read_waveforms import each_row, read_batches

Times = datetime | str | None


class OpenStream:
    """One stream, for reading."""

    def __init__(self, deployment: Deployment, name: str) -> None:
        self.name = name
        self.description = deployment.stream(name).description
        self._tables = deployment.tables(name)

    def waveforms(
        self,
        *,
        source: str | None = None,
        channel: str | None = None,
        start: Times = None,
        end: Times = None,
        ids: Collection[str] | None = None,
    ) -> Iterator[Waveform]:
        """Those whose first sample lies in `[start, end)`, as they lie in the table; one data file is in memory."""
        for batch in self._batches(source, channel, start, end, ids):
            yield from map(waveform_of, each_row(pa.Table.from_batches([batch])))

    def listed(
        self,
        *,
        source: str | None = None,
        channel: str | None = None,
        start: Times = None,
        end: Times = None,
        ids: Collection[str] | None = None,
    ) -> Iterator[dict[str, Any]]:
        """What the table says of them, one dictionary each; samples, chunks and metadata aside, and never read."""
        aside = ("samples", "chunks", "meta")
        for batch in self._batches(source, channel, start, end, ids, without=aside):
            yield from batch.to_pylist()

    def to_arrow(
        self,
        *,
        source: str | None = None,
        channel: str | None = None,
        start: Times = None,
        end: Times = None,
        ids: Collection[str] | None = None,
    ) -> pa.Table:
        """The same as one Arrow table, with all columns; `samples` is a list of numbers. All of it is in memory."""
        table = self._table()
        batches = list(self._batches(source, channel, start, end, ids, table=table))
        return pa.Table.from_batches(batches, schema=published_schema(sample_type_of(table)))

    def to_polars(self, **asked: Any) -> Any:
        """The same as a `polars.DataFrame`. Needs Polars, which is not installed with Wavestitch."""
        return extra("polars", for_what="to_polars()", named="polars").from_arrow(self.to_arrow(**asked))

    def to_duckdb(self, **asked: Any) -> Any:
        """The same as a relation of DuckDB: `….to_duckdb().query("w", "SELECT source, list_avg(samples) FROM w")`.
        Needs DuckDB, which is not installed with Wavestitch."""
        return extra("duckdb", for_what="to_duckdb()", named="duckdb").connect().from_arrow(self.to_arrow(**asked))

    def to_xarray(self, **asked: Any) -> Any:
        """The same as an `xarray.Dataset`: `samples` raw along `sample`, all waveforms one behind the other, and
        `sample_count` of each along `waveform` (a contiguous ragged array, as the CF conventions have it). Raises
        `BadInput` for samples of several formats. Needs xarray, which is not installed with Wavestitch."""
        return label_waveforms(self.waveforms(**asked))

    def export(self, into: str | Path, to: Format, **asked: Any) -> Iterator[Exported]:
        """Write a file for each waveform that `waveforms(**asked)` gives into a folder, and say where it is.

        `to`: mseed, wfdb, edf, hdf5, parquet or npz. Nothing is written before all of them are found to fit; each file
        is read back before it gets its name. Raises `Refused` for a waveform that the format cannot carry exactly,
        `BadInput` for a name that is taken, a library that is not installed, or where nothing is meant.
        """
        check_rows(self.listed(**asked), to=to, into=Path(into))
        yield from write_files(self.waveforms(**asked), to=to, into=Path(into))

    def series(
        self, source: str, start: Times, end: Times, *, channel: str | None = None, most: int = MOST_SAMPLES
    ) -> Series:
        """The channel's samples in `[start, end)` as one array, NaN in the gaps. Raises `BadInput` where there are
        several channels and none is named, waveforms that overlap or have other rates or units, or more than `most`
        samples, gaps included."""
        begin, behind = _time(start), _time(end)
        if begin is None or behind is None:
            raise BadInput("a series has a beginning and an end; name both")
        # One that began before may reach into it: all are asked, only those that do are decoded.
        found = list(self._reaching(source, channel, begin, behind))
        if not found:
            raise BadInput(f"stream {self.name} has nothing of source {source!r} between {begin} and {behind}")
        channels = sorted({w.channel for w in found})
        if len(channels) > 1:
            raise BadInput(f"source {source!r} has channels {', '.join(channels)}; name one")
        return join(found, start_ns=time_ns(begin), end_ns=time_ns(behind), most=most)

    def _reaching(self, source: str, channel: str | None, begin: datetime, behind: datetime) -> Iterator[Waveform]:
        about = {"source": source} if channel is None else {"source": source, "channel": channel}
        seen = self._table()
        found = read_batches(seen, equal=about, end=behind, reaching=begin)
        for batch in self._while_it_is_there(seen, found):
            yield from map(waveform_of, each_row(pa.Table.from_batches([batch])))

    def _batches(
        self,
        source: str | None,
        channel: str | None,
        start: Times,
        end: Times,
        ids: Collection[str] | None,
        without: Collection[str] = (),
        table: Table | None = None,
    ) -> Iterator[pa.RecordBatch]:
        named: Mapping[str, str | None] = {"source": source, "channel": channel}
        equal = {name: value for name, value in named.items() if value is not None}
        begin, behind = _time(start), _time(end)
        seen = self._table() if table is None else table
        files = None if ids is None else self._tables.files_with(seen, ids)
        found = read_batches(seen, ids=ids, equal=equal, start=begin, end=behind, without=without, files=files)
        return self._while_it_is_there(seen, found)

    def _while_it_is_there(self, seen: Table, found: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Raises `Transient` where maintenance took away meanwhile what is read."""
        try:
            yield from found
        except Altered as error:
            now, snapshot = self._tables.waveforms(), seen.metadata.current_snapshot_id
            if now is None or snapshot is None or now.metadata.snapshot_by_id(snapshot) is not None:
                raise
            raise Transient(
                f"snapshot {snapshot} of stream {self.name}, which was being read, has expired meanwhile, and a file "
                "of it is gone: read again. Whoever reads for longer than `snapshot_age` and `orphan_age` of the "
                "settings allow asks for less at a time"
            ) from error

    def _table(self) -> Table:
        table = self._tables.waveforms()
        if table is None:
            raise Refused(f"stream {self.name} has no table yet: nothing was published")
        return table

    def __repr__(self) -> str:
        return f"<OpenStream {self.name!r}>"


def open_stream(stream: str, settings: Settings | None = None, *, guest: bool = False) -> OpenStream:
    """The stream that `streams/NAME.yaml` declares; `settings`: those that the command line finds, unless given.
    `guest`: the process is somebody else's.

    Raises `BadInput` where there is no such stream, or where the settings are not valid.
    """
    return OpenStream(Deployment(settings or load_settings(), guest=guest), stream)


def _time(said: Times) -> datetime | None:
    if not isinstance(said, str):
        return said
    try:
        return datetime.fromisoformat(said)
    except ValueError:
        raise BadInput(f"{said!r} is no time; write e.g. 2026-01-31T12:00:00Z") from None
