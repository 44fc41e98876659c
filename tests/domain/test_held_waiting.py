"""What waits is found as if every open row were looked at; what was released is not opened again and again: I1, I5."""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any

import pytest
from pyiceberg.table import FileScanTask

from tests.builders.table_rows import held_row, hold, published_row, stage
from wavestitch.contracts.assembly import ChunkFacts
from wavestitch.contracts.held import HeldChunk, HeldLook, effective_held
from wavestitch.contracts.quantities import EpochMs, Offset, Partition
from wavestitch.contracts.reasons import Reason
from wavestitch.tables.catalog import CatalogSettings
from wavestitch.tables.held import held_look, held_waiting
from wavestitch.tables.lookup import id_index, published_lookup
from wavestitch.tables.lookup.file_scans import files_to_read, stream_file
from wavestitch.tables.lookup.id_index import IdIndex
from wavestitch.tables.stream_tables import StreamTables

pytestmark = pytest.mark.filterwarnings("error")
NOW = 1_767_614_400_000
LOOK = HeldLook(open_since=EpochMs(NOW), unreleased=True)


@pytest.fixture
def settings(tmp_path: Path) -> CatalogSettings:
    return CatalogSettings("local", f"sqlite:///{tmp_path}/catalog.db", f"file://{tmp_path}/warehouse")


@pytest.fixture
def tables(settings: CatalogSettings, tmp_path: Path) -> StreamTables:
    return StreamTables(settings, "ecg", id_index=IdIndex(tmp_path / "cache" / "ids"))


def first_chunk(row: dict[str, Any], *, at: int = NOW, other: bool = False) -> ChunkFacts:
    """The first one of a published row, as it was held before. `other`: of other bytes."""
    (chunk, *_) = row["chunks"]
    return ChunkFacts(
        partition=Partition(chunk["partition"]),
        offset=Offset(chunk["offset"]),
        timestamp_ms=EpochMs(at),
        waveform_id=row["waveform_id"],
        seq=0,
        count=None,
        crc=1,
        length=chunk["length"],
        meta=row["meta"],
        digest=None,
        piece=bytes(32) if other else chunk["piece"],
        reason=None,
        evidence=None,
        carried=True,
        topic_id=chunk["topic_id"],
    )


def hold_first(tables: StreamTables, names: Collection[str], decision: str, *, at: int = NOW, other: bool = False):
    chunks = [first_chunk(published_row(name), at=at, other=other) for name in names]
    hold(tables, [held_row(c, landing=None, decision=decision, sequence=int(decision[1:])) for c in chunks])


def publish(tables: StreamTables, names: Collection[str]) -> None:
    """A file each."""
    head = tables.head()
    tables.commit(head, head.next(), [stage(tables.data_folder(), n, [published_row(n)]) for n in names])


def compact(tables: StreamTables) -> None:
    stored = tables.stored()[0]
    table = stored.load()
    old = [task.file for task in files_to_read(table)]
    for file in old:
        new = stored.data_files(stored.load(), stored.write(stored.load(), stream_file(stored.load(), file)))
        stored.replace(stored.load(), [file], new)


def waiting(tables: StreamTables, look: HeldLook = LOOK) -> list[HeldChunk]:
    """What a batch sees of what waits."""
    rows = tables.held(tables.head().held, look)
    ids = {h.chunk.waveform_id for h in rows if h.chunk.waveform_id}
    return effective_held(rows, published=tables.published(ids))


def note_of(tmp_path: Path) -> Path:
    (found,) = (tmp_path / "cache" / "ids").glob("*-waiting-*.json")
    return found


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The data files that are opened from now on."""
    paths: list[str] = []

    def counted(read: Callable[..., object]) -> Callable[..., object]:
        def note(table: object, task: FileScanTask, *rest: object, **more: object) -> object:
            paths.append(task.file.file_path)
            return read(table, task, *rest, **more)

        return note

    for module in (held_look, id_index, published_lookup):
        monkeypatch.setattr(module, "read_file", counted(module.read_file))
    return paths


@pytest.mark.parametrize("seed", range(3))
def test_what_waits_is_what_waits_by_all_rows(seed, tables, settings, tmp_path):
    choose, plain = random.Random(seed), StreamTables(settings, "ecg")
    held: list[str] = []
    for n in range(16):
        names = [f"w{n}-{i}" for i in range(choose.choice((1, 2, 3)))]
        hold_first(tables, names, f"d{n + 2}", at=NOW + choose.choice((-1, 0, 5)), other=choose.random() < 0.2)
        held += names
        some = choose.sample(held, min(len(held), choose.choice((0, 1, 3))))
        if some:
            publish(tables, some)
            held = [name for name in held if name not in some]
        if choose.random() < 0.2:
            compact(tables)
        if choose.random() < 0.2 and (there := sorted(plain.published([f"w{m}-0" for m in range(n)]))):
            tables.waveforms().delete(f"waveform_id == '{choose.choice(there)}'")
        if choose.random() < 0.1:
            for note in (tmp_path / "cache" / "ids").glob("*-waiting-*.json"):
                note.write_text("damaged")
        look = HeldLook(open_since=EpochMs(NOW + choose.choice((-1, 0, 5))), unreleased=True)
        assert waiting(tables, look) == waiting(plain, look)


def test_what_was_released_is_not_opened_again_however_much_of_it_there_is(tables, opened):
    for n in range(12):
        hold_first(tables, [f"w{n}"], f"d{n + 2}")
        publish(tables, [f"w{n}"])
    hold_first(tables, ["last"], "d20")
    assert [h.chunk.waveform_id for h in waiting(tables)] == ["last"]
    opened.clear()
    assert [h.chunk.waveform_id for h in waiting(tables)] == ["last"]
    assert len(set(opened)) == 1
    hold_first(tables, ["one more"], "d21")
    publish(tables, ["last"])
    opened.clear()
    assert [h.chunk.waveform_id for h in waiting(tables)] == ["one more"]
    assert len(set(opened)) <= 3  # what waited, what waits now, and where the first of these was published


def test_what_a_held_row_lost_its_published_row_by_waits_again(tables):
    hold_first(tables, ["a", "b"], "d2")
    publish(tables, ["a", "b"])
    assert waiting(tables) == []
    tables.waveforms().delete("waveform_id == 'a'")
    assert [h.chunk.waveform_id for h in waiting(tables)] == ["a"]


def test_what_is_published_with_other_bytes_still_waits(tables):
    hold_first(tables, ["a"], "d2", other=True)
    publish(tables, ["a"])
    for _ in range(2):
        assert [h.chunk.waveform_id for h in waiting(tables)] == ["a"]


@pytest.mark.parametrize("damage", ["", "damaged", "0" * 64 + "\n{}"])
def test_a_damaged_note_is_made_anew(damage, tables, tmp_path):
    hold_first(tables, ["a", "b"], "d2")
    publish(tables, ["a"])
    before = waiting(tables)
    whole = note_of(tmp_path).read_text()
    note_of(tmp_path).write_text(damage or whole.replace("[]", '["nobody"]').replace('"b"', '"x"'))
    assert waiting(tables) == before
    assert note_of(tmp_path).read_text() == whole


def test_a_note_that_is_no_text_or_no_file_is_made_anew(tables, tmp_path):
    hold_first(tables, ["a", "b"], "d2")
    publish(tables, ["a"])
    before = waiting(tables)
    note = note_of(tmp_path)
    whole = note.read_bytes()
    for at in range(0, len(whole), 7):
        note.write_bytes(whole[:at] + bytes([whole[at] ^ 0x80]) + whole[at + 1 :])
        assert waiting(tables) == before
        assert note.read_bytes() == whole
    for make in (lambda: note.symlink_to(tmp_path / "elsewhere"), lambda: os.mkfifo(note)):
        note.unlink()
        make()
        assert waiting(tables) == before
        assert note.read_bytes() == whole
    note.unlink()
    note.mkdir()
    assert waiting(tables) == before


def test_a_note_that_would_be_large_is_not_kept(tables, tmp_path, monkeypatch):
    hold_first(tables, ["a", "b"], "d2")
    publish(tables, ["a"])
    monkeypatch.setattr(held_waiting, "_MOST_BYTES", 50)
    for _ in range(3):
        assert [h.chunk.waveform_id for h in waiting(tables)] == ["b"]
    assert not list((tmp_path / "cache" / "ids").glob("*-waiting-*.json"))


def test_nothing_is_left_out_unless_that_is_asked_for(tables):
    hold_first(tables, ["a"], "d2")
    publish(tables, ["a"])
    assert waiting(tables) == []
    (row,) = tables.held(tables.head().held, HeldLook(open_since=EpochMs(NOW)))
    assert (row.chunk.waveform_id, row.reason) == ("a", Reason.OPEN)
