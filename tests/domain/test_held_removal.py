"""Rows are taken out of files that are read in several batches of rows: those that were named, and no others (I1)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from tests.domain.table_rows import facts, held_row, write_landing
from wavestitch.tables.catalog import CatalogSettings
from wavestitch.tables.file_scans import files_to_read, read_file
from wavestitch.tables.held_removal import held_places, remove_rows
from wavestitch.tables.held_rows import held_batches
from wavestitch.tables.stream_tables import StreamTables

pytestmark = pytest.mark.filterwarnings("error")
ROWS = 12


@pytest.fixture
def tables(tmp_path: Path) -> StreamTables:
    """One held file of three row groups."""
    tables = StreamTables(CatalogSettings("l", f"sqlite:///{tmp_path}/c.db", f"file://{tmp_path}/warehouse"), "ecg")
    landed = [(0, n, b"bytes %d" % n) for n in range(ROWS)]
    landing = write_landing(tmp_path / "l.arrow", landed)
    rows = [held_row(facts(p, o, b), landing=landing, row=n) for n, (p, o, b) in enumerate(landed)]
    held = tables.stored()[1]

    def groups(_: object) -> Iterator[pa.RecordBatch]:
        for start in range(0, ROWS, 4):
            yield from held_batches(rows[start : start + 4], plan_id="p")

    held.append_missing(lambda _: rows, groups)
    return tables


@pytest.mark.parametrize("going", [{0}, {5}, {11}, {3, 4, 8}, set(range(1, ROWS))], ids=str)
def test_what_stays_is_what_was_not_named_with_its_own_bytes(going, tables, tmp_path):
    held = tables.stored()[1]
    table = held.load()
    (task,) = files_to_read(table)
    assert len(list(read_file(table, task, ["offset"]))) > 1
    offsets = {p.row: p.held.chunk.offset for p in held_places(table)}
    remove_rows(held, {task.file.file_path: going})
    stay = sorted(offsets[n] for n in range(ROWS) if n not in going)
    left = held.load().scan().to_arrow().sort_by("offset")
    assert left["offset"].to_pylist() == stay
    assert left["payload"].to_pylist() == [b"bytes %d" % n for n in stay]
