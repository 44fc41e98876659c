"""Runs and a compaction that settle the held table at once: what the newest head names is never taken away, with real
Iceberg on SQLite."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from tests.builders.table_rows import all_held, held_rows, hold, stage_held, write_landing
from tests.domain.maintenance_rig import Rig
from wavestitch.contracts.ports import HeldRow
from wavestitch.contracts.position import Head, HeadKind
from wavestitch.tables.catalog import CatalogSettings
from wavestitch.tables.lookup.file_scans import files_to_read
from wavestitch.tables.stream_tables import StreamTables

ROWS = [(0, n, b"%d" % n) for n in range(8)]


@pytest.fixture
def both(tmp_path: Path) -> tuple[StreamTables, StreamTables]:
    settings = CatalogSettings("local", f"sqlite:///{tmp_path}/catalog.db", f"file://{tmp_path}/warehouse")
    return StreamTables(settings, "ecg"), StreamTables(settings, "ecg")


def some(tmp_path: Path, decision: str, start: int, *, sequence: int = 2) -> list[HeldRow]:
    landing = tmp_path / "l.arrow"
    if not landing.exists():
        write_landing(landing, ROWS)
    return held_rows(landing, ROWS, decision=decision, sequence=sequence)[start : start + 2]


def commit(tables: StreamTables, tmp_path: Path, decision: str, start: int) -> Head:
    """As a batch that has not settled yet."""
    base = tables.head()
    assert base is not None
    mark = stage_held(tables, base, some(tmp_path, decision, start, sequence=base.sequence + 1))
    return tables.commit(base, base.next(held=mark, decision=decision), [])


def main(tables: StreamTables) -> int | None:
    table = tables.stored()[1].load()
    assert table is not None
    return table.metadata.current_snapshot_id


@pytest.mark.parametrize("pause", ["before the heads", "after the heads", "after the held table"])
def test_whoever_settles_late_takes_nothing_of_the_head_that_came_meanwhile(both, tmp_path, monkeypatch, pause):
    a, b = both
    hold(a, some(tmp_path, "d1", 0))
    commit(a, tmp_path, "dA", 2)
    looked, stored = a.heads, a.stored()[1]
    load = stored.load

    def overtake() -> None:
        monkeypatch.undo()
        if b.head().decision == "dB":
            return
        commit(b, tmp_path, "dB", 4)
        b.settle_held()

    def heads() -> list[Head]:
        if pause == "before the heads":
            overtake()
            return a.heads()
        found = looked()
        overtake()
        return found

    def table():
        found = load()
        overtake()
        return found

    if pause == "after the held table":
        monkeypatch.setattr(stored, "load", table)
    else:
        monkeypatch.setattr(a, "heads", heads)
    a.settle_held()
    assert len(all_held(b)) == 6
    assert main(b) == b.head().held.snapshot_id
    commit(a, tmp_path, "dC", 6)
    a.settle_held()
    assert len(all_held(b)) == 8


def test_a_batch_that_settles_takes_nothing_of_a_compaction_that_is_about_to_be_named(both, tmp_path, monkeypatch):
    maintenance, batch = both
    hold(maintenance, some(tmp_path, "d1", 0))
    hold(maintenance, some(tmp_path, "d2", 2), decision="d2")
    base = batch.head()
    base = batch.commit(base, base.next(decision="holds nothing new"), [])
    real = maintenance.commit

    def late(*args, **kwargs):
        batch.settle_held()
        return real(*args, **kwargs)

    monkeypatch.setattr(maintenance, "commit", late)
    tasks = files_to_read(maintenance.stored()[1].load(), snapshot_id=base.held.snapshot_id)
    files = [task.file.file_path for task in tasks]
    head = maintenance.rewrite_held(base, dict.fromkeys(files, ()), counts=base.held.counts, note="")
    monkeypatch.undo()
    assert head == maintenance.head()
    assert len(all_held(batch)) == 4
    assert len(files) == 2
    assert len(batch.held_files(head.held)) == 1
    assert main(batch) == head.held.snapshot_id


def test_main_is_never_put_back_to_an_older_head(both, tmp_path, monkeypatch):
    a, b = both
    hold(a, some(tmp_path, "d1", 0))
    old = a.heads()
    newest = hold(b, some(tmp_path, "d2", 2), decision="d2")
    monkeypatch.setattr(a, "heads", lambda: old)
    a.settle_held()
    assert main(b) == newest.held.snapshot_id
    assert len(all_held(b)) == 4


def test_what_was_staged_for_nothing_goes_by_age_and_what_heads_name_stays(tmp_path):
    rig = Rig(tmp_path / "rig")
    rig.publish("a")
    landing = write_landing(tmp_path / "l.arrow", ROWS)
    rig.hold(held_rows(landing, ROWS, decision="d2", sequence=2)[:2], decision="d2", sequence=2)
    base = rig.tables.head()
    lost = stage_held(rig.tables, base, held_rows(landing, ROWS, decision="lost", sequence=3)[2:4])
    rig.publish("b")
    rig.tables.settle_held()

    def there() -> set[int]:
        table = rig.tables.stored()[1].load()
        assert table is not None
        return {s.snapshot_id for s in table.metadata.snapshots}

    rig.maintain("snapshots", snapshot_age=3600)
    assert lost.snapshot_id in there()
    rig.maintain("snapshots", snapshot_age=3600, now_ms=int(time.time() * 1000) + 7_200_000)
    assert lost.snapshot_id not in there()
    assert rig.tables.head().held.snapshot_id in there()
    assert len(all_held(rig.tables)) == 2


def test_main_shows_no_decision_that_a_catalog_that_was_set_back_has_not(both, tmp_path):
    """Its number is beyond the head's for long; that it is of an older generation says that nobody is faster."""
    tables, _ = both
    kept = hold(tables, some(tmp_path, "d1", 0))
    for n in range(2, 4):
        hold(tables, some(tmp_path, f"d{n}", 2 * n - 2), decision=f"d{n}")
    tables.waveforms().manage_snapshots().rollback_to_snapshot(kept.snapshot_id).commit()
    assert tables.head() == kept
    tables.settle_held()
    assert main(tables) != kept.held.snapshot_id, "as long as nobody has said which of the two is right"
    tables.commit(kept, kept.next(kind=HeadKind.REWIND, generation=2), [])
    tables.settle_held()
    assert main(tables) == kept.held.snapshot_id
    assert len(all_held(tables)) == 2
