"""Files of the held table are ruled out by what the manifests say: as the table's own scan does, and read once (I5)."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyiceberg.manifest import ManifestFile
from pyiceberg.table import FileScanTask, Table

from tests.builders.table_rows import TOPIC_ID, facts, held_row, hold, payloads, place, write_landing
from wavestitch.contracts.held import HeldLook
from wavestitch.contracts.quantities import EpochMs
from wavestitch.contracts.reasons import Reason
from wavestitch.tables.catalog import CatalogSettings
from wavestitch.tables.held import held_payloads
from wavestitch.tables.held.held_files import HeldFiles, held_files_of
from wavestitch.tables.held.held_look import near
from wavestitch.tables.lookup.file_scans import files_to_read
from wavestitch.tables.lookup.row_filter import all_of, at_least, equals, is_in
from wavestitch.tables.stream_tables import StreamTables

pytestmark = pytest.mark.filterwarnings("error")
FILES = 30


@pytest.fixture
def tables(tmp_path: Path) -> StreamTables:
    """Thirty heads; each holds a chunk that waits, every third a record that is none, or a conflict, of two topics."""
    tables = StreamTables(CatalogSettings("l", f"sqlite:///{tmp_path}/c.db", f"file://{tmp_path}/warehouse"), "ecg")
    for n in range(FILES):
        topic = TOPIC_ID if n % 2 else "a\0"
        rows = [held_row(facts(n % 3, 10 * n, b"", topic_id=topic)._replace(waveform_id=f"w{n:02}"), landing=None)]
        if n % 3 == 0:
            reason = Reason.NULL_VALUE if n % 2 else Reason.CONFLICT
            other = facts(n % 2, 10 * n + 5, b"", reason=reason if n % 2 else None)._replace(waveform_id=None)
            rows.append(held_row(other, landing=None, reason=reason))
        hold(tables, rows)
    return tables


def live(tables: StreamTables) -> HeldFiles:
    table, head = tables.stored()[1].ensure(), tables.head()
    assert head is not None
    assert head.held is not None
    return held_files_of(table, head.held.snapshot_id)


def test_a_file_is_ruled_out_exactly_where_the_tables_own_scan_rules_it_out(tables: StreamTables) -> None:
    table, files = tables.stored()[1].ensure(), live(tables)
    since, opened = facts(0, 140, b"").timestamp_ms, files.of_reasons({"open"})
    places = {place(1, 50), place(1, 95), place(2, 70, "a\0"), place(0, 1000, "a\0")}
    everywhere = {place(p, o, t) for t in (TOPIC_ID, "a\0") for p in range(3) for o in (0, 300)}
    looks = [
        (
            opened & files.since(since),
            all_of(equals("reason", "open"), at_least("timestamp_ms", since)),
        ),
        (files.near(places), near(places)),
        (files.near(everywhere), near(everywhere)),
        (files.of_reasons({"null_value", "conflict"}), is_in("reason", {"null_value", "conflict"})),
        (
            files.with_ids({"w03"}) & files.of_reasons({"open"}),
            all_of(equals("reason", "open"), equals("waveform_id", "w03")),
        ),
    ]
    for which, wanted in looks:
        found = {task.file.file_path for task in files_to_read(table, wanted)}
        assert found
        assert {task.file.file_path for task in files.tasks(which)} == found
    assert [t.file.file_path for t in files.tasks(files.every())] == [t.file.file_path for t in files_to_read(table)]
    assert {h.reason for h, chunk in zip(files.held, files.of_chunks(), strict=True) if not chunk} == {"null_value"}


def test_bytes_of_chunks_are_found_without_opening_the_junk_between_them(
    tables: StreamTables, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    landed = [(0, 1000 + n, b"bytes %d" % n) for n in range(3)]
    landing = write_landing(tmp_path / "l.arrow", landed)
    rows = [held_row(facts(p, o, b), landing=landing, row=n, decision="b") for n, (p, o, b) in enumerate(landed)]
    junk = facts(0, 1001, b"bytes 1", reason=Reason.NOT_A_CHUNK)
    rows[1] = held_row(junk, landing=landing, row=1, decision="b", reason=Reason.NOT_A_CHUNK)
    hold(tables, rows)
    opened: list[str] = []
    read = held_payloads.read_file

    def spy(table: Table, task: FileScanTask, *more: object) -> object:
        opened.append(str(task.file.partition[0]))
        return read(table, task, *more)  # type: ignore[arg-type]

    monkeypatch.setattr(held_payloads, "read_file", spy)
    chunks = [rows[0].held.key, rows[2].held.key]
    assert len(payloads(tables, chunks, tmp_path / "chunks.arrow")) == 2
    assert set(opened) == {"open"}
    assert len(payloads(tables, [*chunks, rows[1].held.key], tmp_path / "all.arrow")) == 3
    assert set(opened) == {"open", "not_a_chunk"}


def test_a_manifest_is_read_once_in_a_process(tables: StreamTables, monkeypatch: pytest.MonkeyPatch) -> None:
    head = tables.head()
    assert head is not None
    look = HeldLook(open_since=EpochMs(0), coordinates=frozenset({place(1, 50)}))
    first = tables.held(head.held, look)
    read: list[str] = []
    entries = ManifestFile.fetch_manifest_entry

    def count(self: ManifestFile, *more: object, **others: object) -> object:
        read.append(self.manifest_path)
        return entries(self, *more, **others)  # type: ignore[arg-type]

    monkeypatch.setattr(ManifestFile, "fetch_manifest_entry", count)
    assert len(tables.held(head.held, look)) == len(first) == FILES
    assert read == []
    hold(tables, [held_row(facts(0, 999, b""), landing=None, decision="new")])
    head = tables.head()
    assert head is not None
    read.clear()
    assert len(tables.held(head.held, look)) == FILES + 1
    assert read == [], "what was staged was looked at when it was staged"
