"""The held table and the history with real Iceberg on SQLite: rows come back once each, bytes as they were."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pyarrow as pa
import pytest

from tests.domain.table_races import append_the_same_and_more, race
from tests.domain.table_rows import (
    TOPIC_ID,
    facts,
    held_row,
    held_rows,
    write_landing,
)
from wavestitch.contracts.batch_row import BatchRow
from wavestitch.contracts.errors import Altered, Terminal
from wavestitch.contracts.reasons import Reason
from wavestitch.contracts.rows import LANDING
from wavestitch.tables.catalog import CatalogSettings
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
            BatchRow("p", f"d{n}", n, 1, "ingest", "ecg", 1_767_614_400_000 + n, [[0, 1, 2]], {"read": n})  # type: ignore[arg-type]
            for n in range(4)
        ]
        tables.append_batches(rows[:2])
        tables.append_batches(iter(rows))
        tables.append_batches(rows[3:])
        assert tables.batches() == rows[::-1]


def read_ipc(path: Path) -> pa.Table:
    with pa.memory_map(str(path)) as source:
        return pa.ipc.open_file(source).read_all()
