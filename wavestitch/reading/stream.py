"""A stream's published waveforms, one line away: `wavestitch.open("ecg").waveforms(source="ward-7")`.

Every call reads the table as it is then, file after file, only those that can have what is asked for. Times are
`contracts.instant.Instant`s; `end` is behind the last. Raises `BadInput` for what cannot be asked, `Refused` where
nothing was published, `Transient` where what is being read expires meanwhile.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyiceberg.table import Table

from wavestitch.batch.deployment import Deployment
from wavestitch.contracts.errors import BadInput, Refused
from wavestitch.contracts.instant import Instant, instant_ns
from wavestitch.contracts.rows import PUBLISHED_DOCS, published_schema
from wavestitch.reading.exactness import Format
from wavestitch.reading.export import Exported, check_rows, write_files
from wavestitch.reading.extras import extra
from wavestitch.reading.labelled import label_waveforms
from wavestitch.reading.series import COLUMNS as LAID_OUT_BY
from wavestitch.reading.series import MOST_SAMPLES, Series, lay_out
from wavestitch.reading.wanted import Wanted, want
from wavestitch.reading.waveform import Waveform, waveform_of
from wavestitch.settings import Settings, load_settings
from wavestitch.tables.commit.samples_column import sample_type_of
from wavestitch.tables.read_waveforms import each_row, read_batches


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
        start: Instant | None = None,
        end: Instant | None = None,
        ids: Iterable[str] | None = None,
    ) -> Iterator[Waveform]:
        """Those whose first sample lies in `[start, end)`, as they lie in the table; one data file is in memory."""
        wanted = want(source=source, channel=channel, start=start, end=end, ids=ids)
        table = self._table()
        yield from _decoded(self._batches(table, wanted))

    def listed(
        self,
        *,
        source: str | None = None,
        channel: str | None = None,
        start: Instant | None = None,
        end: Instant | None = None,
        ids: Iterable[str] | None = None,
    ) -> Iterator[dict[str, Any]]:
        """What the table says of them, one dictionary each; samples, chunks and metadata aside, and never read."""
        wanted = want(source=source, channel=channel, start=start, end=end, ids=ids)
        table = self._table()
        yield from self._listed(table, wanted)

    def to_arrow(
        self,
        *,
        source: str | None = None,
        channel: str | None = None,
        start: Instant | None = None,
        end: Instant | None = None,
        ids: Iterable[str] | None = None,
    ) -> pa.Table:
        """The same as one Arrow table, with all columns; `samples` is a list of numbers. All of it is in memory."""
        wanted = want(source=source, channel=channel, start=start, end=end, ids=ids)
        table = self._table()
        return pa.Table.from_batches(self._batches(table, wanted), schema=published_schema(sample_type_of(table)))

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
        is read back before it gets its name. Files that are there and are just what would be written are done, and come
        first. Raises `Refused` for a waveform that the format cannot carry exactly, `BadInput` for a name that
        something else has, a library that is not installed, or where nothing is meant, by one of `ids` alone, too.
        """
        wanted, table = want(**asked), self._table()
        there = check_rows(self._listed(table, wanted), to=to, into=Path(into), ids=wanted.ids)
        for done in (True, False) if there else (False,):
            some = (w for w in _decoded(self._batches(table, wanted)) if (w.id in there) == done)
            yield from write_files(some, to=to, into=Path(into))

    def series(
        self, source: str, start: Instant, end: Instant, *, channel: str | None = None, most: int = MOST_SAMPLES
    ) -> Series:
        """The channel's samples in `[start, end)` as one array, NaN in the gaps. Raises `BadInput` where there are
        several channels and none is named, waveforms that overlap or have other rates or units, or more than `most`
        samples, gaps included: before any sample is read. Then one data file is in memory beside the array."""
        if start is None or end is None:
            raise BadInput("a series has a beginning and an end; name both")
        wanted, table = want(source=source, channel=channel, start=start, end=end), self._table()
        begin, behind = instant_ns(start), instant_ns(end)
        # One that began before may reach into it.
        reaching = partial(read_batches, table, equal=wanted.equal, end_ns=behind, reaching_ns=begin)
        rows = reaching(columns=LAID_OUT_BY)
        layout = lay_out((row for some in rows for row in some.to_pylist()), start_ns=begin, end_ns=behind, most=most)
        if layout is None:
            raise BadInput(f"stream {self.name} has nothing of source {source!r} between {start} and {end}")
        return layout.fill(_decoded(reaching()))

    def _listed(self, table: Table, wanted: Wanted) -> Iterator[dict[str, Any]]:
        aside = ("samples", "chunks", "meta")
        for batch in self._batches(table, wanted, columns=[c for c in PUBLISHED_DOCS if c not in aside]):
            yield from batch.to_pylist()

    def _batches(self, table: Table, wanted: Wanted, columns: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
        yield from read_batches(
            table,
            columns,
            ids=wanted.ids,
            equal=wanted.equal,
            start_ns=wanted.start_ns,
            end_ns=wanted.end_ns,
            files=None if wanted.ids is None else self._tables.files_with(table, wanted.ids),
        )

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


def _decoded(batches: Iterable[pa.RecordBatch]) -> Iterator[Waveform]:
    for batch in batches:
        yield from map(waveform_of, each_row(pa.Table.from_batches([batch])))
