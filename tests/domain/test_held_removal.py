"""Rows are taken out of files that are read in several batches of rows: those that were named, and no others (I1)."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.builders.table_rows import facts, held_row, hold, write_landing
from wavestitch.contracts.held import HeldLook
from wavestitch.tables.catalog import CatalogSettings
from wavestitch.tables.held.held_removal import held_places
from wavestitch.tables.lookup.file_scans import files_to_read, read_file
from wavestitch.tables.stream_tables import StreamTables

pytestmark = pytest.mark.filterwarnings("error")
ROWS = 12


@pytest.fixture
def tables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> StreamTables:
    """One held file of three row groups."""
    monkeypatch.setattr("wavestitch.tables.commit.stored_table._GROUP_BYTES", 1)
    tables = StreamTables(CatalogSettings("l", f"sqlite:///{tmp_path}/c.db", f"file://{tmp_path}/warehouse"), "ecg")
    landed = [(0, n, b"bytes %d" % n) for n in range(ROWS)]
    landing = write_landing(tmp_path / "l.arrow", landed, batch_rows=4)
    rows = [held_row(facts(p, o, b), landing=landing, row=n) for n, (p, o, b) in enumerate(landed)]
    hold(tables, rows)
    return tables


@pytest.mark.parametrize("going", [{0}, {5}, {11}, {3, 4, 8}, set(range(1, ROWS))], ids=str)
def test_what_stays_is_what_was_not_named_with_its_own_bytes(going, tables, tmp_path):
    head, table = tables.head(), tables.stored()[1].load()
    (task,) = files_to_read(table)
    assert len(list(read_file(table, task, ["offset"]))) > 1
    offsets = {p.row: p.held.chunk.offset for p in held_places(table, head.held)}
    tables.rewrite_held(head, {task.file.file_path: going}, counts={"open": ROWS - len(going)}, note="")
    stay = sorted(offsets[n] for n in range(ROWS) if n not in going)
    now = tables.head()
    assert len(tables.held(now.held, HeldLook(everything=True))) == len(stay)
    left = tables.stored()[1].load().scan(snapshot_id=now.held.snapshot_id).to_arrow().sort_by("offset")
    assert left["offset"].to_pylist() == stay
    assert left["payload"].to_pylist() == [b"bytes %d" % n for n in stay]
