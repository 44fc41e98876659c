"""The head of a stream with real Iceberg on SQLite: its compare-and-set, and maintenance beside it."""

from __future__ import annotations

import sqlite3
from collections import Counter
from contextlib import closing
from datetime import timedelta
from pathlib import Path

import pytest
from pyiceberg.io.pyarrow import MetricModeTypes, compute_statistics_plan

from tests.builders.ranges import span
from tests.builders.table_rows import (
    NOON,
    first_head,
    published_row,
    stage,
)
from tests.domain.table_races import commit_on_the_same_head, race
from wavestitch.contracts.errors import Altered, Refused, StateUnknown, Transient
from wavestitch.contracts.held import HeldLook
from wavestitch.contracts.ports import CommitConflict
from wavestitch.contracts.position import HeadKind, Position
from wavestitch.contracts.quantities import EpochMs, LeaderEpoch, Offset
from wavestitch.maintain.what_goes import unreferenced
from wavestitch.tables.catalog import CatalogSettings, open_catalog
from wavestitch.tables.commit.own_files import stored_files
from wavestitch.tables.commit.stored_table import StoredTable
from wavestitch.tables.commit.table_layout import BATCHES_TABLE, HELD_TABLE, waveforms_layout
from wavestitch.tables.maintenance.table_state import named_files
from wavestitch.tables.read_waveforms import read_waveforms
from wavestitch.tables.stream_tables import StreamTables

pytestmark = pytest.mark.filterwarnings("error")


@pytest.fixture
def settings(tmp_path: Path) -> CatalogSettings:
    return CatalogSettings("local", f"sqlite:///{tmp_path}/state/catalog.db", f"file://{tmp_path}/ware house")


@pytest.fixture
def tables(settings: CatalogSettings) -> StreamTables:
    return StreamTables(settings, "ecg")


def file_count(folder: Path) -> int:
    return sum(1 for p in folder.rglob("*") if p.is_file())


@pytest.mark.parametrize("layout", [waveforms_layout("int"), HELD_TABLE, BATCHES_TABLE], ids=lambda t: t.name)
def test_no_bound_of_a_text_is_cut(layout):
    """Cut ones need an upper bound that is counted up, and not each text has one: `x` 15 times, U+D7FF, and more."""
    plan = compute_statistics_plan(layout.schema, layout.properties)
    texts = [c for c in plan.values() if str(c.iceberg_type) == "string"]
    assert texts
    assert MetricModeTypes.TRUNCATE not in {c.mode.type for c in texts}


@pytest.mark.parametrize("column", ["waveform_id", "source", "channel", "units"])
@pytest.mark.parametrize("text", ["x" * 15 + "\ud7ff" + "y", "\U0010ffff" * 40, "\x00" * 20, ""])
def test_a_text_of_a_producer_is_committed_and_found_whatever_it_is(tables, column, text):
    rows = [published_row("good"), {**published_row("odd"), column: text}]
    tables.commit(None, first_head(), [stage(tables.data_folder(), "f", rows)])
    assert sorted(read_waveforms(tables)[column].to_pylist()) == sorted(row[column] for row in rows)


class TestHead:
    def test_a_stream_nobody_wrote_to_has_nothing_and_reading_makes_nothing(self, tables, settings):
        assert tables.table_uuid() is None
        assert tables.head() is None
        assert tables.heads() == []
        assert tables.published(["a"]) == {}
        assert tables.held(None, HeldLook(everything=True)) == []
        assert tables.held_files(None) == []
        assert tables.batches() == []
        assert open_catalog(settings).list_namespaces() == []

    def test_a_table_keeps_its_uuid_and_a_table_made_anew_has_another_one(self, tables, settings):
        head = tables.commit(None, first_head(), [])
        made = tables.table_uuid()
        tables.commit(head, head.next(), [])
        assert made is not None
        assert tables.table_uuid() == made
        open_catalog(settings).drop_table("ecg.waveforms")
        tables.commit(None, first_head(), [])
        assert tables.table_uuid() not in (None, made)

    def test_a_head_comes_back_as_it_was_committed(self, tables):
        new = first_head(
            kind=HeadKind.REWIND,
            positions={0: Position(Offset(7), EpochMs(1_700_000_000_123), LeaderEpoch(4)), 11: Position(Offset(2**40))},
            plan_id="p" * 32,
            decision="d" * 32,
            watermark_ms=1_700_000_000_000,
            skipped=(span(0, 3, 7),),
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

    def test_a_commit_that_loses_after_it_looked_conflicts_and_its_files_go_with_maintenance(
        self, tables, settings, tmp_path
    ):
        one = tables.commit(None, first_head(), [])
        stored = StoredTable(open_catalog(settings), "ecg", waveforms_layout("int"), warehouse=settings.warehouse)
        stale = stored.ensure()
        two = tables.commit(one, one.next(), [])
        before = {f.path for f in stored_files([tmp_path])}
        with pytest.raises(CommitConflict):
            stored.commit_files(stale, [], one.next(plan_id="stale").to_properties())
        left = [f for f in stored_files([tmp_path]) if f.path not in before]
        named, now_ms = named_files(tables.waveforms()), left[-1].modified_ms
        assert left
        assert unreferenced(left, named=named, under_way=(), modified_before=now_ms) == left
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

    def test_a_commit_that_waited_too_long_for_a_reader_is_seen_by_nobody_and_keeps_nobody_out(
        self, tables, settings, tmp_path
    ):
        one = tables.commit(None, first_head(), [])
        hurried = StreamTables(CatalogSettings("local", settings.uri + "?timeout=0.1", settings.warehouse), "ecg")
        with closing(sqlite3.connect(tmp_path / "state" / "catalog.db", isolation_level=None)) as reader:
            reader.execute("BEGIN")
            reader.execute("SELECT * FROM iceberg_tables").fetchall()
            with pytest.raises(Transient, match="locked"):
                hurried.commit(one, one.next(), [])
            reader.execute("ROLLBACK")
        with closing(sqlite3.connect(tmp_path / "state" / "catalog.db", timeout=0.1, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
        assert hurried.head() == one

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
        stored = StoredTable(open_catalog(settings), "ecg", waveforms_layout("int"), warehouse=settings.warehouse)
        stale = stored.ensure()
        tables.waveforms().delete("waveform_id == 'a'")
        with pytest.raises(CommitConflict):
            stored.commit_files(stale, [], one.next().to_properties())

    def test_a_change_of_properties_alone_does_not_conflict_and_is_kept(self, tables, settings):
        one = tables.commit(None, first_head(), [])
        stored = StoredTable(open_catalog(settings), "ecg", waveforms_layout("int"), warehouse=settings.warehouse)
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

    def test_rows_as_of_a_head_that_was_expired_between_two_looks_are_told_as_that(self, tables):
        one = tables.commit(None, first_head(), [stage(tables.data_folder(), "a", [published_row("a")])])
        tables.commit(one, one.next(), [])
        assert set(tables.published(["a", "b"], of=one.snapshot_id)) == {"a"}
        tables.waveforms().maintenance.expire_snapshots().by_id(one.snapshot_id).commit()
        with pytest.raises(Transient, match=r"was let go since it was looked at; nothing was written, look again"):
            tables.published(["a", "b"], of=one.snapshot_id)
        assert set(tables.published(["a", "b"])) == {"a"}

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
