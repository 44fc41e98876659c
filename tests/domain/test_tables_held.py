"""The held table and the history with real Iceberg on SQLite: rows come back once each, bytes as they were."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from tests.builders.heads import make_row
from tests.builders.table_rows import (
    TOPIC_ID,
    all_held,
    facts,
    first_head,
    held_row,
    held_rows,
    hold,
    payloads,
    place,
    stage_held,
    write_landing,
)
from tests.domain.table_races import race, stage_the_same_and_more
from wavestitch.contracts.assembly import ChunkFacts
from wavestitch.contracts.errors import Altered, Terminal, Transient
from wavestitch.contracts.held import HeldLook, IdsLook, effective_held
from wavestitch.contracts.ports import HeldRow
from wavestitch.contracts.quantities import EpochMs
from wavestitch.contracts.reasons import Reason
from wavestitch.contracts.rows import LANDING
from wavestitch.tables.catalog import CatalogSettings, open_catalog
from wavestitch.tables.held import held_files, held_look
from wavestitch.tables.lookup import id_index
from wavestitch.tables.lookup.file_scans import files_to_read
from wavestitch.tables.lookup.id_index import IdIndex
from wavestitch.tables.stream_tables import StreamTables

pytestmark = pytest.mark.filterwarnings("error")


@pytest.fixture
def settings(tmp_path: Path) -> CatalogSettings:
    return CatalogSettings("local", f"sqlite:///{tmp_path}/state/catalog.db", f"file://{tmp_path}/ware house")


@pytest.fixture
def tables(settings: CatalogSettings) -> StreamTables:
    return StreamTables(settings, "ecg")


class TestHeld:
    ROWS = ((0, 5, b"five"), (0, 6, b""), (0, 7, None), (1, 5, b"x" * 1000), (1, 9, b"nine"))

    def test_rows_come_back_without_their_bytes(self, tables, tmp_path):
        rows = list(self.ROWS)
        hold(tables, held_rows(write_landing(tmp_path / "l.arrow", rows), rows))
        expected = [r.held for r in held_rows(tmp_path / "l.arrow", rows)]
        assert sorted(all_held(tables), key=lambda h: h.chunk.coordinate) == expected
        assert tables.head().held.rows == len(rows)

    def test_a_table_that_somebody_dropped_is_named_and_made_anew_by_no_look(self, tables, settings, tmp_path):
        """Whoever registers it again would find another one in its place."""
        rows = list(self.ROWS)
        hold(tables, held_rows(write_landing(tmp_path / "l.arrow", rows), rows))
        mark, table = tables.head().held, tables.stored()[1]
        was = table.load().metadata_location
        there = all_held(tables)
        catalog = open_catalog(settings)
        catalog.drop_table(table.name)
        for look in (
            lambda: tables.held(mark, HeldLook(everything=True)),
            lambda: tables.held_ids(mark, IdsLook()),
            lambda: tables.held_files(mark),
            lambda: tables.held_payloads(mark, [there[0].chunk.key], tmp_path / "out.arrow"),
            lambda: list(tables.held_values(mark, [there[0].chunk.key])),
            lambda: tables.rewrite_held(tables.head(), {}, counts={}, note="junk"),
        ):
            with pytest.raises(Altered, match=r"table ecg.held is not in the catalog.*it was dropped or renamed"):
                look()
            assert not catalog.table_exists(table.name)
        catalog.register_table(table.name, was)
        assert all_held(tables) == there

    def test_a_record_that_is_no_chunk_keeps_its_reason_key_and_headers(self, tables, tmp_path):
        landing = write_landing(tmp_path / "l.arrow", [(0, 5, b"?")], raw_key=b"\xff")
        chunk = facts(0, 5, b"?", reason=Reason.CORRUPT)
        hold(tables, [held_row(chunk, landing=landing, row=0, reason=Reason.CORRUPT)])
        (held,) = all_held(tables)
        assert held.chunk == chunk
        to = tmp_path / "out.arrow"
        payloads(tables, [chunk.key], to)
        (row,) = read_ipc(to).to_pylist()
        assert (row["reason"], row["evidence"]) == ("corrupt", "seen")
        assert (row["raw_key"], row["raw_headers"], row["payload"]) == (b"\xff", b"[]", b"?")

    def test_the_same_decision_staged_again_is_the_same_snapshot(self, tables, tmp_path):
        rows = list(self.ROWS)
        held = held_rows(write_landing(tmp_path / "l.arrow", rows), rows)
        base = tables.commit(None, first_head(), [])
        first = stage_held(tables, base, held)
        again = stage_held(tables, base, [*held, held[0]])
        assert replace(again, counts=first.counts, chunk_bytes=first.chunk_bytes) == first
        assert first.rows == len(rows)

    def test_rows_count_only_once_a_head_names_them(self, tables, tmp_path):
        rows = list(self.ROWS)
        landing = write_landing(tmp_path / "l.arrow", rows)
        base = hold(tables, held_rows(landing, rows)[:2])
        lost = held_rows(landing, rows, decision="died before its commit", sequence=3)[2:4]
        stage_held(tables, base, lost)
        assert {h.decision for h in all_held(tables)} == {"d1"}
        hold(tables, held_rows(landing, rows, decision="d2", sequence=3)[4:])
        assert Counter(h.decision for h in all_held(tables)) == {"d1": 2, "d2": 1}
        assert tables.head().held.counts == {"open": 3}

    def test_main_follows_the_head_and_what_was_staged_for_nothing_goes(self, tables, tmp_path):
        rows = list(self.ROWS)
        landing = write_landing(tmp_path / "l.arrow", rows)
        base = hold(tables, held_rows(landing, rows)[:2])
        stage_held(tables, base, held_rows(landing, rows, decision="lost")[2:4])
        head = tables.commit(base, base.next(), [])
        (lost,) = branches(tables)
        tables.settle_held()
        table = tables.stored()[1].load()
        assert table.metadata.current_snapshot_id == head.held.snapshot_id
        assert branches(tables) == []
        assert {s.snapshot_id for s in table.metadata.snapshots} >= {head.held.snapshot_id}
        assert lost not in table.metadata.refs

    def test_what_may_still_be_committed_stays(self, tables, tmp_path):
        rows = list(self.ROWS)
        landing = write_landing(tmp_path / "l.arrow", rows)
        base = hold(tables, held_rows(landing, rows)[:2])
        mark = stage_held(tables, base, held_rows(landing, rows, decision="late")[2:4])
        tables.settle_held()
        tables.commit(base, base.next(held=mark), [])
        assert len(all_held(tables)) == 4

    def test_main_that_somebody_moved_means_nothing_and_is_put_right(self, tables, tmp_path):
        rows = list(self.ROWS)
        hold(tables, held_rows(write_landing(tmp_path / "l.arrow", rows), rows))
        table = tables.stored()[1].load()
        root = table.metadata.refs["wavestitch-empty"].snapshot_id
        table.manage_snapshots().set_current_snapshot(snapshot_id=root).commit()
        assert len(all_held(tables)) == len(rows)
        tables.settle_held()
        assert tables.stored()[1].load().metadata.current_snapshot_id == tables.head().held.snapshot_id

    def test_a_snapshot_that_is_not_what_the_head_vouches_for_is_altered(self, tables, tmp_path):
        rows = list(self.ROWS)
        head = hold(tables, held_rows(write_landing(tmp_path / "l.arrow", rows), rows))
        for wrong in ({"rows": 4}, {"digest": "0" * 64}, {"bytes": 1}):
            with pytest.raises(Altered, match="snapshot"):
                tables.held(replace(head.held, **wrong), HeldLook(everything=True))

    def test_a_snapshot_that_the_newest_head_names_and_somebody_expired_is_altered(self, tables, tmp_path):
        rows = list(self.ROWS)
        held = held_rows(write_landing(tmp_path / "l.arrow", rows), rows)
        head = hold(tables, held[:2])
        hold(tables, held[2:])
        table = tables._held.load()
        with table.manage_snapshots() as change:
            change.set_current_snapshot(head.held.snapshot_id)
        table.maintenance.expire_snapshots().by_id(tables.head().held.snapshot_id).commit()
        with pytest.raises(Altered, match="which is not there"):
            tables.held(tables.head().held, HeldLook(everything=True))
        with pytest.raises(Transient, match="look again"):
            tables.held(replace(head.held, snapshot_id=7), HeldLook(everything=True))

    def test_a_file_of_an_older_snapshot_that_is_there_is_named_where_it_is_gone(self, tables, tmp_path):
        """Nobody has let go of it: to look again would not help."""
        rows = list(self.ROWS)
        held = held_rows(write_landing(tmp_path / "l.arrow", rows), rows)
        older = hold(tables, held[:2]).held
        newer = hold(tables, held[2:])
        (task,) = files_to_read(tables.stored()[1].load(), snapshot_id=older.snapshot_id)
        Path(task.file.file_path.removeprefix("file://")).unlink()
        for mark in (older, newer.held):
            with pytest.raises(Altered, match=Path(task.file.file_path).name):
                tables.held(mark, HeldLook(everything=True))

    def test_payloads_come_back_in_order_of_coordinate_from_wherever_they_are(self, tables, tmp_path):
        rows = list(self.ROWS)
        held = held_rows(write_landing(tmp_path / "l.arrow", rows), rows)
        for n, some in enumerate((held[3:], held[1:2], held[:1] + held[2:3])):
            hold(tables, [of_decision(r, f"d{n}", n) for r in some])
        # A later decision about the same chunks, without bytes.
        hold(tables, [held_row(r.held.chunk, landing=None, decision="later", sequence=9) for r in held])
        to = tmp_path / "out.arrow"
        wanted = [r.held.chunk.key for r in held if r.held.chunk.offset != 6]
        numbers = payloads(tables, wanted[::-1], to)
        assert numbers == {c: n for n, c in enumerate(wanted)}
        found = read_ipc(to)
        assert found.schema.equals(LANDING, check_metadata=True)
        assert found["payload"].to_pylist() == [b"five", None, b"x" * 1000, b"nine"]
        assert found["crc"].to_pylist() == [r.held.chunk.crc for r in held if r.held.chunk.offset != 6]
        assert payloads(tables, wanted, to) == numbers
        with pytest.raises(Altered, match="other chunks"):
            payloads(tables, wanted[1:], to)

    def test_a_place_that_was_used_again_has_the_bytes_of_each_piece(self, tables, tmp_path):
        old, new = facts(0, 5, b"OLD-"), facts(0, 5, b"NEW!")
        first = write_landing(tmp_path / "1.arrow", [(0, 5, b"OLD-")])
        again = write_landing(tmp_path / "2.arrow", [(0, 5, b"NEW!")])
        hold(tables, [held_row(old, landing=first, row=0, decision="before the cut", sequence=2)])
        hold(tables, [held_row(new, landing=again, row=0, decision="after the cut", sequence=3)])
        counted = effective_held(all_held(tables), published={})
        assert {h.chunk.crc for h in counted} == {old.crc, new.crc}
        to = tmp_path / "out.arrow"
        numbers = payloads(tables, [old.key, new.key], to)
        bytes_of = read_ipc(to)["payload"].to_pylist()
        assert (bytes_of[numbers[old.key]], bytes_of[numbers[new.key]]) == (b"OLD-", b"NEW!")

    def test_a_chunk_whose_bytes_are_nowhere_is_an_error_that_names_it(self, tables, tmp_path):
        chunk = facts(0, 5, b"five")
        hold(tables, [held_row(chunk, landing=None)])
        with pytest.raises(Terminal, match=f"topic {TOPIC_ID} partition 0 offset 5"):
            payloads(tables, [chunk.key], tmp_path / "out.arrow")
        assert list(tmp_path.glob("*.arrow")) == []
        assert list(tmp_path.glob(".*")) == []

    def test_large_payloads_are_written_and_read_in_batches(self, tables, tmp_path):
        rows = [(p, o, bytes([p]) * (3 << 20)) for p in range(2) for o in range(15)]
        held = held_rows(write_landing(tmp_path / "l.arrow", rows, batch_rows=5), rows)
        hold(tables, held[::-1])
        (task,) = tables._held.load().scan().plan_files()
        assert len(task.file.split_offsets) > 5
        to = tmp_path / "out.arrow"
        numbers = payloads(tables, [r.held.chunk.key for r in held], to)
        with pa.ipc.open_file(to) as reader:
            assert max(reader.get_batch(n).nbytes for n in range(reader.num_record_batches)) < 20 << 20
        found = read_ipc(to)["payload"]
        assert all(found[numbers[facts(p, o, payload).key]].as_py() == payload for p, o, payload in rows)

    def test_a_landing_file_with_other_records_is_altered_and_nothing_is_appended(self, tables, tmp_path):
        landing = write_landing(tmp_path / "l.arrow", [(0, 5, b"five")])
        with pytest.raises(Altered, match="offset 5"):
            hold(tables, [held_row(facts(0, 6, b"six"), landing=landing, row=0)])
        with pytest.raises(Altered, match="has 1 rows"):
            hold(tables, [held_row(facts(0, 6, b"six"), landing=landing, row=1)])
        assert all_held(tables) == []

    def test_processes_that_stage_at_once_lose_and_double_nothing(self, settings, tmp_path):
        processes, rounds = 3, 3
        StreamTables(settings, "race").commit(None, first_head(), [])
        race(stage_the_same_and_more, settings, tmp_path, processes=processes, rounds=rounds)
        tables = StreamTables(settings, "race")
        table = tables.stored()[1].load()
        found = [
            Counter(zip(*(rows[c].to_pylist() for c in ("decision", "partition", "offset")), strict=True))
            for name in branches(tables)
            for rows in [table.scan(snapshot_id=table.metadata.refs[name].snapshot_id).to_arrow()]
        ]
        assert len(found) == rounds * (1 + processes)
        assert all(set(keys.values()) == {1} for keys in found)
        assert sorted(len(keys) for keys in found) == sorted([4] * rounds + [3] * rounds * processes)


class TestLooks:
    """A look opens what it asks for. Junk of six batches, open and parked waveforms, all with narrow places."""

    @pytest.fixture
    def full(self, tables):
        for n in range(6):
            junk = [
                held_row(
                    no_chunk(p, 100 * n + o), landing=None, decision=f"j{n}", sequence=n, reason=Reason.NOT_A_CHUNK
                )
                for p in range(2)
                for o in range(40)
            ]
            mine = facts(0, 100 * n + 50, b"x")._replace(waveform_id=f"w{n}", seq=0)
            hold(tables, [*junk, held_row(mine, landing=None, decision=f"j{n}", sequence=n)])
        return tables

    def opened(self, monkeypatch) -> list[str]:
        seen: list[str] = []
        real = held_look.read_file

        def spy(table, task, *more, **named):
            seen.append(f"{held_files.held_file(task.file).reason} {task.file.file_path}")
            return real(table, task, *more, **named)

        for module in (held_look, id_index):
            monkeypatch.setattr(module, "read_file", spy)
        return seen

    @pytest.fixture
    def indexed(self, settings, tmp_path):
        """Ten files of chunks, each with ids from all over, and junk that names the same ids."""
        tables = StreamTables(settings, "ecg", id_index=IdIndex(tmp_path / "ids"))
        for n in range(10):
            mine = [facts(0, 100 * n + i, b"x")._replace(waveform_id=f"w{i:03}{n}", seq=0) for i in range(60)]
            lies = [
                facts(1, 100 * n + i, b"?", reason=Reason.CORRUPT)._replace(waveform_id=f"w{i:03}{n}")
                for i in range(60)
            ]
            rows = [held_row(c, landing=None, decision=f"d{n}", sequence=n) for c in mine]
            rows += [held_row(c, landing=None, decision=f"d{n}", sequence=n, reason=Reason.CORRUPT) for c in lies]
            hold(tables, rows)
        return tables

    def test_of_very_many_ids_only_the_files_are_opened_that_have_one(self, indexed, monkeypatch):
        mark = indexed.head().held
        indexed.held(mark, HeldLook(ids=frozenset({"follows the table"})))
        asked = {f"w{i:03}3" for i in range(60)} | {f"w{i:03}7" for i in range(10)} | {f"new-{i}" for i in range(500)}
        opened = self.opened(monkeypatch)
        found = indexed.held(mark, HeldLook(ids=frozenset(asked)))
        assert {h.chunk.waveform_id for h in found} == {i for i in asked if i.startswith("w")}
        assert {h.reason for h in found} == {Reason.OPEN}
        assert len(opened) == 2

    def test_of_very_many_ids_that_nothing_is_held_of_no_file_is_opened(self, indexed, monkeypatch):
        mark = indexed.head().held
        indexed.held(mark, HeldLook(ids=frozenset({"follows the table"})))
        opened = self.opened(monkeypatch)
        # By their bounds, every file could have them.
        assert indexed.held(mark, HeldLook(ids=frozenset(f"w{i:03}x" for i in range(500)))) == []
        assert opened == []

    def test_the_index_of_ids_never_opens_junk_whatever_waveform_it_names(self, indexed, monkeypatch):
        opened = self.opened(monkeypatch)
        indexed.held(indexed.head().held, HeldLook(ids=frozenset({"w0003"})))
        assert opened
        assert {path.partition(" ")[0] for path in opened} == {"open"}
        assert indexed.prune_index(apply=False) == 0

    def test_with_the_index_a_look_finds_what_it_finds_without(self, indexed, settings):
        plain = StreamTables(settings, "ecg")
        mark = indexed.head().held
        for ids in ({"w0003"}, {f"w{i:03}{n}" for i in range(60) for n in range(10)}, {"w0001", "nobody"}):
            look = HeldLook(ids=frozenset(ids))
            assert by_place(indexed.held(mark, look)) == by_place(plain.held(mark, look))

    def test_what_waits_is_found_without_opening_a_file_of_junk(self, full, monkeypatch):
        opened = self.opened(monkeypatch)
        since = facts(0, 350, b"x").timestamp_ms
        found = full.held(full.head().held, HeldLook(open_since=since))
        assert {h.chunk.waveform_id for h in found} == {"w3", "w4", "w5"}
        assert len(set(opened)) == 3

    def test_a_waveform_is_found_by_its_id(self, full, monkeypatch):
        opened = self.opened(monkeypatch)
        found = full.held(full.head().held, HeldLook(ids=frozenset({"w2"})))
        assert [h.chunk.waveform_id for h in found] == ["w2"]
        assert len(set(opened)) == 1

    def test_what_is_held_at_a_place_is_found_in_the_file_that_reaches_there(self, full, monkeypatch):
        opened = self.opened(monkeypatch)
        found = full.held(full.head().held, HeldLook(coordinates=frozenset({place(1, 207), place(1, 9999)})))
        assert [h.chunk.coordinate for h in found] == [(TOPIC_ID, 1, 207)]
        assert len(set(opened)) < 6

    def test_nothing_is_opened_where_a_batch_touches_nothing(self, full, monkeypatch):
        opened = self.opened(monkeypatch)
        look = HeldLook(
            open_since=EpochMs(1 << 60),
            ids=frozenset({"new"}),
            coordinates=frozenset({place(p, 5000) for p in (0, 1)}),
        )
        assert full.held(full.head().held, look) == []
        assert opened == []

    def test_how_much_is_held_and_why_is_known_without_opening_anything(self, full, monkeypatch):
        opened = self.opened(monkeypatch)
        by_reason: Counter[str] = Counter()
        for file in full.held_files(full.head().held):
            by_reason[file.reason] += file.rows
        assert by_reason == {"not_a_chunk": 480, "open": 6}
        assert full.head().held.counts == by_reason
        assert opened == []


def by_place(held):
    return sorted(held, key=lambda h: (h.chunk.coordinate, h.sequence))


def no_chunk(partition: int, offset: int) -> ChunkFacts:
    return facts(partition, offset, b"", reason=Reason.NOT_A_CHUNK)._replace(waveform_id=None, seq=None, meta=None)


def of_decision(row: HeldRow, decision: str, sequence: int) -> HeldRow:
    return replace(row, held=replace(row.held, decision=decision, sequence=sequence))


def branches(tables: StreamTables) -> list[str]:
    """What is staged and not yet settled."""
    names = tables.stored()[1].load().metadata.refs
    return sorted(n for n in names if n.startswith("wavestitch-") and n != "wavestitch-empty")


class TestHistory:
    def test_rows_come_back_newest_first_and_once(self, tables):
        rows = [
            make_row(decision=f"d{n}", sequence=n, committed_ms=n, ranges=[[0, 1, 2]], counts={"read": n})
            for n in range(4)
        ]
        tables.append_batches(rows[:2])
        tables.append_batches(iter(rows))
        tables.append_batches(rows[3:])
        assert tables.batches() == rows[::-1]


def read_ipc(path: Path) -> pa.Table:
    with pa.memory_map(str(path)) as source:
        return pa.ipc.open_file(source).read_all()
