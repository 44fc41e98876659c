"""The published table with real Iceberg on SQLite: what is found by id, and what readers get."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import numpy as np
import polars as pl
import pyarrow as pa
import pytest

from tests.builders.table_rows import (
    NOON,
    first_head,
    published_row,
    stage,
)
from wavestitch.contracts.errors import BadInput
from wavestitch.contracts.held import PublishedChunk
from wavestitch.contracts.rows import PUBLISHED_DOCS, published_schema
from wavestitch.tables.catalog import CatalogSettings
from wavestitch.tables.commit.table_layout import iceberg_schema
from wavestitch.tables.read_waveforms import each_row, physical_samples, raw_samples, read_waveforms
from wavestitch.tables.stream_tables import StreamTables

pytestmark = pytest.mark.filterwarnings("error")


@pytest.fixture
def settings(tmp_path: Path) -> CatalogSettings:
    return CatalogSettings("local", f"sqlite:///{tmp_path}/state/catalog.db", f"file://{tmp_path}/ware house")


@pytest.fixture
def tables(settings: CatalogSettings) -> StreamTables:
    return StreamTables(settings, "ecg")


class TestPublished:
    def test_waveforms_are_found_with_their_chunks_in_the_whole_table(self, tables):
        head = None
        for n in range(3):
            staged = stage(tables.data_folder(), f"f{n}", [published_row(f"w{n}-{i}") for i in range(5)])
            new = first_head() if head is None else head.next()
            head = tables.commit(head, new, [staged])
        found = tables.published({"w0-0", "w2-4", "absent", "' or 1=1 --"})
        assert set(found) == {"w0-0", "w2-4"}
        expected = published_row("w2-4")["chunks"]
        assert found["w2-4"].chunks == tuple(
            PublishedChunk(**{n: c[n] for n in PublishedChunk._fields}) for c in expected
        )
        assert found["w2-4"].waveform_id == "w2-4"

    def test_many_ids_are_found_as_well(self, tables):
        rows = [published_row(f"w{i}") for i in range(900)]
        tables.commit(None, first_head(), [stage(tables.data_folder(), "many", rows)])
        found = tables.published([f"w{i}" for i in range(100, 2000)])
        assert set(found) == {f"w{i}" for i in range(100, 900)}

    def test_waveforms_of_many_commits_are_found_in_few_manifests(self, tables):
        head = None
        for n in range(45):
            staged = stage(tables.data_folder(), f"f{n}", [published_row(f"w{n}")])
            head = tables.commit(head, first_head() if head is None else head.next(), [staged])
        assert set(tables.published([f"w{n}" for n in range(50)])) == {f"w{n}" for n in range(45)}
        assert tables.waveforms().inspect.manifests().num_rows < 25
        assert len(tables.heads()) == 45

    def test_no_ids_find_nothing(self, tables):
        tables.commit(None, first_head(), [])
        assert tables.published([]) == {}

    def test_days_before_and_after_1970_are_their_own_partitions(self, tables):
        epoch = datetime(1970, 1, 1, tzinfo=UTC)
        starts = {
            "long before": datetime(1899, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC),
            "just before": epoch - timedelta(microseconds=1),
            "at": epoch,
            "after": epoch + timedelta(hours=23, minutes=59, seconds=59, microseconds=999_999),
            "far": datetime(2116, 2, 20, tzinfo=UTC),
        }
        files = [stage(tables.data_folder(), i, [published_row(i, start=s)]) for i, s in starts.items()]
        tables.commit(None, first_head(), files)
        tasks = tables.waveforms().scan().plan_files()
        days = {Path(t.file.file_path).stem: epoch.date() + timedelta(days=t.file.partition[0]) for t in tasks}
        assert days == {i: s.date() for i, s in starts.items()}
        assert days["just before"] == date(1969, 12, 31)
        one_day = read_waveforms(tables, columns=["waveform_id"], start=epoch - timedelta(days=1), end=epoch)
        assert one_day["waveform_id"].to_pylist() == ["just before"]

    def test_field_ids_are_the_layouts_own(self, tables):
        tables.commit(None, first_head(), [])
        assert tables.waveforms().schema() == iceberg_schema(
            published_schema("int"), PUBLISHED_DOCS, identifier="waveform_id"
        )

    def test_record_times_are_found_by_their_bounds(self, tables):
        tables.commit(None, first_head(), [stage(tables.data_folder(), "a", [published_row("a")])])
        for text, rows in (
            (f"first_record_time = '{NOON.isoformat()}'", 1),
            (f"last_record_time > '{NOON.isoformat()}'", 1),
            (f"last_record_time < '{NOON.isoformat()}'", 0),
        ):
            assert tables.waveforms().scan(row_filter=text).to_arrow().num_rows == rows

    def test_polars_reads_what_was_published(self, tables, monkeypatch):
        monkeypatch.setenv("POLARS_ICEBERG_PLANNER", "pyiceberg")  # it warns that another package would plan faster
        rows = [published_row("a"), published_row("b")]
        tables.commit(None, first_head(), [stage(tables.data_folder(), "ab", rows)])
        frame = pl.scan_iceberg(tables.waveforms()).filter(pl.col("waveform_id") == "b").collect()
        assert frame["samples"].to_list() == [rows[1]["samples"]]
        assert frame["start_time"].to_list() == [NOON]


class TestReading:
    def test_samples_come_back_raw_and_in_physical_units(self, tables):
        tables.commit(None, first_head(), [stage(tables.data_folder(), "a", [published_row("a"), published_row("b")])])
        (row,) = each_row(read_waveforms(tables, ids=["b"]))
        assert raw_samples(row).dtype == np.dtype("<i2")
        assert raw_samples(row).tolist() == list(range(8))
        assert physical_samples(row).dtype == np.float64
        assert physical_samples(row).tolist() == [(n - 2.0) / 4.0 for n in range(8)]

    def test_columns_come_in_the_order_asked_for_also_without_rows(self, tables):
        names = ["units", "waveform_id", "start_time"]
        assert read_waveforms(tables, columns=names).column_names == names
        tables.commit(None, first_head(), [stage(tables.data_folder(), "a", [published_row("a")])])
        found = read_waveforms(tables, columns=names)
        assert found.schema == pa.schema([published_schema("int").field(n) for n in names])
        assert found.num_rows == 1

    def test_the_time_span_is_half_open(self, tables):
        tables.commit(None, first_head(), [stage(tables.data_folder(), "a", [published_row("a")])])
        second = timedelta(seconds=1)
        assert read_waveforms(tables, start=NOON, end=NOON + second).num_rows == 1
        assert read_waveforms(tables, start=NOON - second, end=NOON).num_rows == 0

    def test_unknown_columns_and_times_without_zone_are_refused(self, tables):
        with pytest.raises(BadInput, match="'sample'"):
            read_waveforms(tables, columns=["sample"])
        with pytest.raises(BadInput, match="time zone"):
            read_waveforms(tables, start=datetime(2026, 1, 1))
