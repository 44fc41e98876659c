"""No table's times go back, whatever clock a commit was made by: Iceberg's Java library reads none where they do."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path

import pytest
from pyiceberg.catalog.sql import SqlCatalog

from tests.builders.table_rows import first_head, held_rows, hold, published_row, stage, write_landing
from tests.domain.rest_catalog import rest_catalog
from wavestitch.tables.catalog import CatalogSettings
from wavestitch.tables.maintenance.snapshot_expiry import expire_snapshots
from wavestitch.tables.stream_tables import StreamTables

AHEAD_S = 600
_real = time.time


@contextmanager
def a_clock_ahead(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with monkeypatch.context() as for_now:
        for_now.setattr(time, "time", lambda: _real() + AHEAD_S)
        yield


@pytest.fixture
def settings(tmp_path: Path) -> CatalogSettings:
    return CatalogSettings("local", f"sqlite:///{tmp_path}/catalog.db", f"file://{tmp_path}/warehouse")


@pytest.fixture
def tables(settings: CatalogSettings) -> StreamTables:
    return StreamTables(settings, "ecg")


def backward(tables: StreamTables) -> list[str]:
    """Where the times of a metadata file go back, as Java reads it, and with no tolerance."""
    found = []
    for stored in tables.stored():
        table = stored.load()
        if table is None:
            continue
        said = json.loads(Path(table.metadata_location.removeprefix("file://")).read_text())
        for log in ("snapshot-log", "metadata-log"):
            times = [e["timestamp-ms"] for e in said.get(log, ())] + [said["last-updated-ms"]]
            found += [f"{stored.name} {log} {n}" for n, (a, b) in enumerate(pairwise(times)) if a > b]
    return found


def batch(tables: StreamTables, n: int) -> None:
    head = tables.head()
    tables.commit(head, head.next(), [stage(tables.data_folder(), f"f{n}", [published_row(f"w{n}")])])


def test_batches_after_one_whose_clock_was_ahead_are_later_than_it(tables, monkeypatch):
    tables.commit(None, first_head(), [])
    with a_clock_ahead(monkeypatch):
        batch(tables, 1)
    ahead = tables.head().committed_ms
    assert ahead > _real() * 1000 + AHEAD_S * 900
    batch(tables, 2)
    batch(tables, 3)
    assert backward(tables) == []
    assert [h.committed_ms for h in tables.heads()][:3] == [ahead + 2, ahead + 1, ahead]
    assert tables.remarks() == []


def test_where_the_clock_is_right_a_snapshot_has_its_time(tables):
    tables.commit(None, first_head(), [])
    since = int(_real() * 1000)
    time.sleep(0.002)  # so that the next commit is of a later millisecond, without the clock being helped
    batch(tables, 1)
    assert since <= tables.head().committed_ms <= _real() * 1000


def test_an_expiry_after_a_clock_was_ahead_leaves_no_older_last_change(tables, monkeypatch):
    tables.commit(None, first_head(), [])
    with a_clock_ahead(monkeypatch):
        batch(tables, 1)
    waveforms = tables.stored()[0]
    oldest = waveforms.load().metadata.snapshots[0].snapshot_id
    assert expire_snapshots(waveforms, [oldest]) == 1
    batch(tables, 2)
    assert backward(tables) == []


def test_a_branch_of_held_rows_that_main_follows_later_is_no_step_back(tables, tmp_path, monkeypatch):
    landed = [(0, n, b"bytes") for n in range(3)]
    rows = held_rows(write_landing(tmp_path / "1.arrow", landed), landed)
    with a_clock_ahead(monkeypatch):
        hold(tables, rows[:1])
    hold(tables, rows[1:2])
    hold(tables, rows[2:])
    assert backward(tables) == []


def test_a_rest_catalog_is_sent_snapshots_that_are_later(tmp_path, monkeypatch):
    with rest_catalog(tmp_path) as (served, _):
        tables = StreamTables(served, "ecg")
        tables.commit(None, first_head(), [])
        with a_clock_ahead(monkeypatch):
            batch(tables, 1)
        ahead = tables.head().committed_ms
        batch(tables, 2)
        assert tables.head().committed_ms == ahead + 1


def test_what_others_left_is_said(tables, settings, monkeypatch):
    tables.commit(None, first_head(), [])
    with a_clock_ahead(monkeypatch):
        batch(tables, 1)
    # A program beside us, with no care for the table's times.
    theirs = SqlCatalog("local", uri=settings.uri, warehouse=settings.warehouse).load_table("ecg.waveforms")
    with theirs.transaction() as change, change.update_snapshot().fast_append():
        pass
    said = [r for r in tables.remarks() if "goes back" in r]
    assert len(said) == 1
    assert re.search(
        r"table ecg.waveforms goes back by (600|59\d) s, 60 s are allowed: .*`wavestitch maintain`", said[0]
    )
