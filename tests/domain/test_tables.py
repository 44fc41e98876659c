"""The tables of a stream with real Iceberg on SQLite: the head's compare-and-set, published, held, history."""

from __future__ import annotations

import sqlite3
from collections import Counter
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import numpy as np
import polars as pl
import pyarrow as pa
import pytest

from tests.domain.table_races import append_the_same_and_more, commit_on_the_same_head, race
from tests.domain.table_rows import (
    NOON,
    TOPIC_ID,
    facts,
    first_head,
    held_row,
    held_rows,
    published_row,
    stage,
    write_landing,
)
from wavestitch.contracts.batch_row import BatchRow
from wavestitch.contracts.errors import Altered, BadInput, Refused, StateUnknown, Terminal, Transient
from wavestitch.contracts.held import PublishedChunk
from wavestitch.contracts.offset_range import OffsetRange
from wavestitch.contracts.ports import CommitConflict
from wavestitch.contracts.position import HeadKind, Position
from wavestitch.contracts.reasons import Reason
from wavestitch.contracts.rows import LANDING, PUBLISHED
from wavestitch.tables.catalog import CatalogSettings, open_catalog
from wavestitch.tables.read_waveforms import physical_samples, raw_samples, read_waveforms
from wavestitch.tables.stored_table import StoredTable
from wavestitch.tables.stream_tables import StreamTables
from wavestitch.tables.table_layout import WAVEFORMS_TABLE, iceberg_schema

pytestmark = pytest.mark.filterwarnings("error")


@pytest.fixture
def settings(tmp_path: Path) -> CatalogSettings:
    return CatalogSettings("local", f"sqlite:///{tmp_path}/state/catalog.db", f"file://{tmp_path}/ware house")


@pytest.fixture
def tables(settings: CatalogSettings) -> StreamTables:
    return StreamTables(settings, "ecg")


def file_count(folder: Path) -> int:
    return sum(1 for p in folder.rglob("*") if p.is_file())


class TestHead:
    def test_a_stream_nobody_wrote_to_has_nothing_and_reading_makes_nothing(self, tables, settings):
        assert tables.head() is None
        assert tables.heads() == []
        assert tables.published(["a"]) == {}
        assert tables.held_snapshot() is None
        assert tables.held_rows() == []
        assert tables.batches() == []
        assert open_catalog(settings).list_namespaces() == []

    def test_a_head_comes_back_as_it_was_committed(self, tables):
        new = first_head(
            kind=HeadKind.REWIND,
            positions={0: Position(7, 1_700_000_000_123, 4), 11: Position(2**40)},
            plan_id="p" * 32,
            decision="d" * 32,
            watermark_ms=1_700_000_000_000,
            skipped=(OffsetRange(0, 3, 7),),
            mean_record_bytes=1234.5678901,
            note='"lost", said ops – on purpose',
        )
        made = tables.commit(None, new, [])
        assert made == new
        assert made.snapshot_id is not None
        assert tables.head() == new
        assert tables.head().snapshot_id == made.snapshot_id

    def test_a_commit_without_files_is_a_snapshot_all_the_same(self, tables):
        one = tables.commit(None, first_head(), [])
        two = tables.commit(one, one.next(generation=2), [])
        assert [h.sequence for h in tables.heads()] == [2, 1]
        assert two.snapshot_id != one.snapshot_id
        assert tables.waveforms().scan().to_arrow().num_rows == 0

    def test_a_stale_base_conflicts_and_nothing_is_written(self, tables, tmp_path):
        one = tables.commit(None, first_head(), [])
        two = tables.commit(one, one.next(), [])
        staged = stage(tables.data_folder(), "late", [published_row("late")])
        files = file_count(tmp_path)
        for stale in (None, one):
            with pytest.raises(CommitConflict, match="number 2 of generation 1"):
                tables.commit(stale, one.next(plan_id="stale"), [staged])
        assert file_count(tmp_path) == files
        assert tables.head() == two
        assert tables.published(["late"]) == {}

    def test_a_commit_that_loses_after_it_looked_conflicts_and_leaves_no_file(self, tables, settings, tmp_path):
        one = tables.commit(None, first_head(), [])
        stored = StoredTable(open_catalog(settings), "ecg", WAVEFORMS_TABLE)
        stale = stored.ensure()
        two = tables.commit(one, one.next(), [])
        files = file_count(tmp_path)
        with pytest.raises(CommitConflict):
            stored.commit_files(stale, [], one.next(plan_id="stale").to_properties())
        assert file_count(tmp_path) == files
        assert tables.head() == two

    def test_of_processes_that_commit_on_the_same_head_exactly_one_wins(self, settings, tmp_path):
        rounds, processes = 6, 4
        outcomes = race(commit_on_the_same_head, settings, tmp_path / "staged", processes=processes, rounds=rounds)
        for n in range(rounds):
            assert Counter(o[n] for o in outcomes) == {"committed": 1, "conflict": processes - 1}
        tables = StreamTables(settings, "race")
        heads = tables.heads()
        assert [h.sequence for h in heads] == list(range(rounds, 0, -1))
        rows = read_waveforms(tables, columns=["waveform_id"])["waveform_id"].to_pylist()
        assert sorted(rows) == sorted(h.plan_id for h in heads)

    def test_a_locked_catalog_is_transient_and_nothing_is_committed(self, tables, settings, tmp_path):
        one = tables.commit(None, first_head(), [])
        hurried = StreamTables(CatalogSettings("local", settings.uri + "?timeout=0.1", settings.warehouse), "ecg")
        other = sqlite3.connect(tmp_path / "state" / "catalog.db", isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(Transient, match="locked"):
            hurried.commit(one, one.next(), [])
        other.execute("ROLLBACK")
        other.close()
        assert tables.head().snapshot_id == one.snapshot_id

    def test_a_commit_that_fails_in_an_unexpected_way_has_an_unknown_outcome(self, tables, tmp_path):
        one = tables.commit(None, first_head(), [])
        with sqlite3.connect(tmp_path / "state" / "catalog.db") as other:
            other.execute(
                "CREATE TRIGGER refuse BEFORE UPDATE ON iceberg_tables BEGIN SELECT RAISE(ABORT, 'no reason'); END"
            )
        with pytest.raises(StateUnknown, match="no reason"):
            tables.commit(one, one.next(), [])
        assert tables.head() == one

    def test_a_staged_file_that_is_gone_or_damaged_is_altered_and_nothing_is_committed(self, tables):
        one = tables.commit(None, first_head(), [])
        staged = stage(tables.data_folder(), "a", [published_row("a")])
        Path(staged.path).write_bytes(b"not Parquet")
        with pytest.raises(Altered):
            tables.commit(one, one.next(), [staged])
        Path(staged.path).unlink()
        with pytest.raises(Altered):
            tables.commit(one, one.next(), [staged])
        assert tables.heads() == [one]

    def test_a_file_of_two_days_is_refused(self, tables):
        rows = [published_row("a"), published_row("b", start=NOON + timedelta(days=1))]
        with pytest.raises(Altered, match="more than one partition"):
            tables.commit(None, first_head(), [stage(tables.data_folder(), "two", rows)])
        assert tables.head() is None


class TestMaintenance:
    def test_its_snapshots_are_passed_over_and_do_not_stop_the_next_commit(self, tables):
        files = [stage(tables.data_folder(), i, [published_row(i)]) for i in ("a", "b")]
        one = tables.commit(None, first_head(), files)
        tables.waveforms().delete("waveform_id == 'b'")
        assert tables.waveforms().metadata.current_snapshot_id != one.snapshot_id
        assert tables.head().snapshot_id == one.snapshot_id
        two = tables.commit(one, one.next(), [])
        assert tables.heads() == [two, one]
        assert set(tables.published(["a", "b"])) == {"a"}

    def test_a_snapshot_of_its_own_conflicts_with_a_commit_on_the_way(self, tables, settings):
        one = tables.commit(None, first_head(), [stage(tables.data_folder(), "a", [published_row("a")])])
        stored = StoredTable(open_catalog(settings), "ecg", WAVEFORMS_TABLE)
        stale = stored.ensure()
        tables.waveforms().delete("waveform_id == 'a'")
        with pytest.raises(CommitConflict):
            stored.commit_files(stale, [], one.next().to_properties())

    def test_a_change_of_properties_alone_does_not_conflict_and_is_kept(self, tables, settings):
        one = tables.commit(None, first_head(), [])
        stored = StoredTable(open_catalog(settings), "ecg", WAVEFORMS_TABLE)
        stale = stored.ensure()
        with tables.waveforms().transaction() as change:
            change.set_properties(owner="ops")
        stored.commit_files(stale, [], one.next().to_properties())
        assert tables.head().sequence == 2
        assert tables.waveforms().properties["owner"] == "ops"

    def test_old_heads_may_be_expired(self, tables):
        one = tables.commit(None, first_head(), [])
        two = tables.commit(one, one.next(), [])
        three = tables.commit(two, two.next(), [])
        tables.waveforms().maintenance.expire_snapshots().by_ids([one.snapshot_id, two.snapshot_id]).commit()
        assert tables.heads() == [three]

    def test_an_expired_head_is_refused_and_not_taken_for_a_new_stream(self, tables):
        one = tables.commit(None, first_head(), [stage(tables.data_folder(), "a", [published_row("a")])])
        tables.waveforms().delete("waveform_id == 'a'")
        tables.waveforms().maintenance.expire_snapshots().by_id(one.snapshot_id).commit()
        with pytest.raises(Refused, match="expired"):
            tables.head()

    def test_old_metadata_files_are_removed(self, tables, tmp_path):
        head = tables.commit(None, first_head(), [])
        for _ in range(60):
            head = tables.commit(head, head.next(), [])
        assert len(list(tmp_path.glob("ware house/ecg/waveforms/metadata/*.metadata.json"))) < 55
        assert len(tables.heads()) == 61


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
        assert found["w2-4"].chunks == tuple(PublishedChunk(**c) for c in expected)
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
        assert tables.waveforms().schema() == iceberg_schema(PUBLISHED)

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
        (row,) = read_waveforms(tables, ids=["b"]).to_pylist()
        assert raw_samples(row).dtype == np.dtype("<i2")
        assert raw_samples(row).tolist() == list(range(8))
        assert physical_samples(row).dtype == np.float64
        assert physical_samples(row).tolist() == [(n - 2.0) / 4.0 for n in range(8)]

    def test_columns_come_in_the_order_asked_for_also_without_rows(self, tables):
        names = ["units", "waveform_id", "start_time"]
        assert read_waveforms(tables, columns=names).column_names == names
        tables.commit(None, first_head(), [stage(tables.data_folder(), "a", [published_row("a")])])
        found = read_waveforms(tables, columns=names)
        assert found.schema == pa.schema([PUBLISHED.field(n) for n in names])
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


class TestHeld:
    ROWS = ((0, 5, b"five"), (0, 6, b""), (0, 7, None), (1, 5, b"x" * 1000), (1, 9, b"nine"))

    def test_rows_come_back_without_their_bytes(self, tables, tmp_path):
        rows = list(self.ROWS)
        tables.append_held("plan", held_rows(write_landing(tmp_path / "l.arrow", rows), rows))
        expected = [r.held for r in held_rows(tmp_path / "l.arrow", rows)]
        assert sorted(tables.held_rows(), key=lambda h: h.chunk.coordinate) == expected
        assert tables.held_snapshot() is not None

    def test_a_record_that_is_no_chunk_keeps_its_reason_key_and_headers(self, tables, tmp_path):
        landing = write_landing(tmp_path / "l.arrow", [(0, 5, b"?")], raw_key=b"\xff")
        chunk = facts(0, 5, b"?", reason=Reason.CORRUPT)
        tables.append_held("plan", [held_row(chunk, landing=landing, row=0, reason=Reason.CORRUPT)])
        (held,) = tables.held_rows()
        assert held.chunk == chunk
        to = tmp_path / "out.arrow"
        tables.held_payloads([chunk.coordinate], to)
        (row,) = read_ipc(to).to_pylist()
        assert (row["reason"], row["evidence"]) == ("corrupt", "seen")
        assert (row["raw_key"], row["raw_headers"], row["payload"]) == (b"\xff", b"[]", b"?")

    def test_the_same_decision_is_not_appended_twice(self, tables, tmp_path):
        rows = list(self.ROWS)
        held = held_rows(write_landing(tmp_path / "l.arrow", rows), rows)
        tables.append_held("plan", held[:2])
        snapshot = tables.held_snapshot()
        tables.append_held("plan", held[:2])
        assert tables.held_snapshot() == snapshot
        tables.append_held("plan", [*held, held[0]])
        tables.append_held("again", held_rows(tmp_path / "l.arrow", rows, decision="d2", sequence=3))
        assert len(tables.held_rows()) == 2 * len(rows)

    def test_payloads_come_back_in_order_of_coordinate_from_wherever_they_are(self, tables, tmp_path):
        rows = list(self.ROWS)
        held = held_rows(write_landing(tmp_path / "l.arrow", rows), rows)
        for some in (held[3:], held[1:2], held[:1] + held[2:3]):
            tables.append_held("plan", some)
        # A later decision about the same chunks, without bytes.
        changed = [held_row(r.held.chunk, landing=None, decision="d2", sequence=3) for r in held]
        tables.append_held("later", changed)
        to = tmp_path / "out.arrow"
        wanted = [r.held.chunk.coordinate for r in held if r.held.chunk.offset != 6]
        numbers = tables.held_payloads(wanted[::-1], to)
        assert numbers == {c: n for n, c in enumerate(wanted)}
        found = read_ipc(to)
        assert found.schema.equals(LANDING, check_metadata=True)
        assert found["payload"].to_pylist() == [b"five", None, b"x" * 1000, b"nine"]
        assert found["crc"].to_pylist() == [r.held.chunk.crc for r in held if r.held.chunk.offset != 6]
        assert tables.held_payloads(wanted, to) == numbers
        with pytest.raises(Altered, match="other chunks"):
            tables.held_payloads(wanted[1:], to)

    def test_a_chunk_whose_bytes_are_nowhere_is_an_error_that_names_it(self, tables, tmp_path):
        tables.append_held("plan", [held_row(facts(0, 5, b"five"), landing=None)])
        with pytest.raises(Terminal, match=f"topic {TOPIC_ID} partition 0 offset 5"):
            tables.held_payloads([(TOPIC_ID, 0, 5)], tmp_path / "out.arrow")
        assert list(tmp_path.glob("*.arrow")) == []
        assert list(tmp_path.glob(".*")) == []

    def test_large_payloads_are_written_and_read_in_batches(self, tables, tmp_path):
        rows = [(p, o, bytes([p]) * (3 << 20)) for p in range(2) for o in range(15)]
        held = held_rows(write_landing(tmp_path / "l.arrow", rows, batch_rows=5), rows)
        tables.append_held("plan", held[::-1])
        assert len(list(tables._held.load().scan().plan_files())) == 2
        to = tmp_path / "out.arrow"
        numbers = tables.held_payloads([r.held.chunk.coordinate for r in held], to)
        with pa.ipc.open_file(to) as reader:
            assert max(reader.get_batch(n).nbytes for n in range(reader.num_record_batches)) < 20 << 20
        payloads = read_ipc(to)["payload"]
        assert all(payloads[numbers[TOPIC_ID, p, o]].as_py() == payload for p, o, payload in rows)

    def test_a_landing_file_with_other_records_is_altered_and_nothing_is_appended(self, tables, tmp_path):
        landing = write_landing(tmp_path / "l.arrow", [(0, 5, b"five")])
        with pytest.raises(Altered, match="offset 5"):
            tables.append_held("plan", [held_row(facts(0, 6, b"six"), landing=landing, row=0)])
        with pytest.raises(Altered, match="has 1 rows"):
            tables.append_held("plan", [held_row(facts(0, 6, b"six"), landing=landing, row=1)])
        assert tables.held_rows() == []

    def test_processes_that_append_at_once_lose_and_double_nothing(self, settings, tmp_path):
        processes, rounds = 3, 3
        race(append_the_same_and_more, settings, tmp_path, processes=processes, rounds=rounds)
        keys = Counter((h.decision, h.chunk.coordinate) for h in StreamTables(settings, "race").held_rows())
        assert set(keys.values()) == {1}
        assert len(keys) == rounds * (4 + processes * 3)


class TestHistory:
    def test_rows_come_back_newest_first_and_once(self, tables):
        rows = [
            BatchRow("p", f"d{n}", n, 1, "ingest", "ecg", 1_767_614_400_000 + n, [[0, 1, 2]], {"read": n})
            for n in range(4)
        ]
        tables.append_batches(rows[:2])
        tables.append_batches(iter(rows))
        tables.append_batches(rows[3:])
        assert tables.batches() == rows[::-1]


def read_ipc(path: Path) -> pa.Table:
    with pa.memory_map(str(path)) as source:
        return pa.ipc.open_file(source).read_all()
