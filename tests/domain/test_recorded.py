"""Which decisions the history has is known of its files of one row without opening them, and is no guess."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

import pyarrow as pa
import pytest
from pyiceberg.table import FileScanTask

from tests.builders.heads import make_row
from tests.builders.table_rows import first_head
from wavestitch.contracts.errors import BadInput
from wavestitch.tables.catalog import CatalogSettings
from wavestitch.tables.commit.table_layout import BATCHES
from wavestitch.tables.history.batch_history import history_batches
from wavestitch.tables.lookup import file_scans
from wavestitch.tables.stream_tables import StreamTables

DECISION = "{:064x}"


@pytest.fixture
def tables(tmp_path: Path) -> StreamTables:
    settings = CatalogSettings("local", f"sqlite:///{tmp_path}/catalog.db", f"file://{tmp_path}/warehouse")
    found = StreamTables(settings, "ecg")
    found.commit(None, first_head(), [])
    return found


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    paths: list[str] = []
    real: Callable[..., object] = file_scans.read_file

    def note(table: object, task: FileScanTask, *rest: object) -> object:
        paths.append(task.file.file_path)
        return real(table, task, *rest)

    monkeypatch.setattr(file_scans, "read_file", note)
    return paths


def append(tables: StreamTables, numbers: Sequence[int]) -> None:
    tables.append_batches([make_row(sequence=n, decision=DECISION.format(n)) for n in numbers])


def recorded(numbers: Sequence[int]) -> set[tuple[int, str]]:
    return {(n, DECISION.format(n)) for n in numbers}


def test_only_files_of_several_rows_are_opened(tables: StreamTables, opened: list[str]) -> None:
    append(tables, range(1, 5))
    for n in range(5, 9):
        append(tables, [n])
    opened.clear()
    assert tables.recorded() == recorded(range(1, 9))
    assert len(opened) == 1
    assert tables.recorded(since=6) == recorded(range(6, 9))
    assert len(opened) == 1


def test_bounds_that_another_writer_cut_are_not_believed(tables: StreamTables, opened: list[str]) -> None:
    append(tables, [1])
    theirs = tables._batches._catalog.load_table("ecg.batches")
    with theirs.transaction() as change:
        change.set_properties({"write.metadata.metrics.default": "truncate(16)"})
    theirs.append(pa.Table.from_batches(history_batches([make_row(sequence=2, decision=DECISION.format(2))])))
    opened.clear()
    assert tables.recorded() == recorded([1, 2])
    assert len(opened) == 1


def test_a_row_that_another_engine_deleted_is_not_recorded(tables: StreamTables) -> None:
    for n in (1, 2):
        append(tables, [n])
    tables._batches.load().delete("sequence == 1")
    assert tables.recorded() == recorded([2])


def test_rows_that_were_read_are_not_read_again(tables: StreamTables, opened: list[str]) -> None:
    append(tables, range(1, 9))
    for n in range(9, 13):
        append(tables, [n])
    first = tables.batches(since=10)
    assert [row.sequence for row in first] == [12, 11, 10]
    opened.clear()
    assert tables.batches(since=10) == first
    assert [row.sequence for row in tables.batches(since=11)] == [12, 11]
    assert opened == []
    append(tables, [13])
    opened.clear()
    assert [row.sequence for row in tables.batches(since=8)] == [13, 12, 11, 10, 9, 8]
    assert len(opened) == 3  # the new one, the one that nobody asked for yet, and the one of many


def test_a_row_of_somebody_else_without_a_sequence_is_told_of_and_stops_nobody(tables: StreamTables) -> None:
    tables.stored()[2].ensure().append(
        pa.Table.from_pylist(
            [
                dict.fromkeys(BATCHES.names) | {"plan_id": which, "decision": which, "sequence": n, "detail": "{}"}
                for which, n in (("p", 7), ("q", None))
            ],
            schema=BATCHES,
        )
    )
    assert tables.batches(plan_id="other") == []
    for since in (5, 8):
        with suppress(BadInput):  # of the row that has a sequence, and is none
            tables.batches(since=since)
        assert len(tables.shown_batches(since=since).odd) == (1 if since == 5 else 0)
    assert len(tables.shown_batches().odd) == 2
