"""Whoever reads while batches commit, rewinds are made, rows are held and maintenance goes by sees what is published
grow, and nothing else. I2, I3."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from pyiceberg.table import Table

from tests.builders.table_rows import facts, held_row, published_row, stage, write_landing
from tests.domain.maintenance_rig import Rig
from tests.domain.readers_beside import Readers
from wavestitch.contracts.errors import Altered, Transient, WavestitchError
from wavestitch.contracts.held import HeldLook, IdsLook
from wavestitch.contracts.held_mark import HeldMark
from wavestitch.tables.commit.stored_table import StoredTable
from wavestitch.tables.lookup import file_scans, published_lookup
from wavestitch.tables.maintenance import put_together, small_files
from wavestitch.tables.maintenance.verify_waveforms import verify_waveforms

Patch = pytest.MonkeyPatch


class Story:
    """A stream from its first batch to the end of its maintenance, with readers beside it."""

    def __init__(self, folder: Path) -> None:
        self.rig = Rig(folder)
        self.readers = Readers(self.rig)
        self._number = count()

    def batch(self) -> None:
        """Of two files, as two tasks write them."""
        ids = [f"w{next(self._number)}" for _ in range(3)]
        data = self.rig.tables.data_folder()
        files = [stage(data, f"{ids[0]}-{n}", [published_row(i) for i in ids[n::2]]) for n in range(2)]
        self.readers.begins(*ids)
        base = self.rig.publish()
        self.rig.record(self.rig.tables.commit(base, base.next(decision=f"of {ids}"), files))

    def rewind(self) -> None:
        head = self.rig.tables.head()
        assert head is not None
        self.rig.publish(generation=head.generation + 1)

    def hold(self) -> None:
        head = self.rig.tables.head()
        assert head is not None
        decision, number = f"held-{head.sequence + 1}", head.sequence
        landing = write_landing(self.rig.folder / f"{decision}.arrow", [(0, number, b"open")])
        chunk = facts(0, number, b"open")._replace(waveform_id=f"open-{number}")
        row = held_row(chunk, landing=landing, row=0, decision=decision, sequence=head.sequence + 1)
        self.rig.hold([row], decision=decision, sequence=head.sequence + 1)

    def holds(self) -> HeldMark:
        head = self.rig.tables.head()
        assert head is not None
        assert head.held is not None
        return head.held

    def maintain(self) -> None:
        self.rig.maintain(small_files=2)

    def play(self) -> None:
        self.batch()
        with self.readers.beside():
            for act in (self.batch, self.hold, self.rewind, self.maintain, self.batch, self.maintain, self.maintain):
                act()
                self.readers.slowly()
        self.readers.read_out()
        self.readers.look()


def test_what_is_published_grows_for_every_reader_whatever_goes_on_beside(tmp_path: Path) -> None:
    story = Story(tmp_path)
    story.play()
    assert story.readers.looks > 30, "the moments at which they are to look do not come any more"
    assert len(story.readers.seen) == 9
    ends = story.readers.ends
    assert ends["whole"] > 0, ends
    assert ends["expired"] > 0, f"no snapshot went from under a reader: {ends}"


def test_who_looks_at_rows_for_longer_than_their_snapshot_lives_is_told_so_and_of_no_damage(tmp_path: Path) -> None:
    rig = Rig(tmp_path)
    for n in range(3):
        rig.publish(f"w{n}")
    table, (pinned, _) = rig.tables.waveforms(), rig.tables.pinned_rows() or pytest.fail("nothing is there")
    assert table is not None

    def maintenance(rows: int, _size: int) -> None:
        if rows == 1:
            for _ in range(3):
                rig.maintain(small_files=2)
                rig.publish()

    with pytest.raises(Transient, match="has expired meanwhile, and a file of it is gone: read again"):
        verify_waveforms(table, progress=maintenance)
    with pytest.raises(Transient, match="has expired meanwhile"):
        list(pinned.faces(["w2"]))
    again = rig.tables.waveforms()
    assert again is not None
    assert verify_waveforms(again).altered == ()


def compacted(folder: Path) -> tuple[Table, Table, int]:
    """A table as a reader and as somebody else has it, and its snapshot of before its files were put together."""
    rig = Rig(folder)
    for n in range(3):
        rig.publish(f"w{n}")
    before = rig.tables.waveforms()
    assert before is not None
    old = before.metadata.current_snapshot_id
    assert old is not None
    rig.maintain(small_files=2)
    seen, now = rig.tables.waveforms(), rig.tables.waveforms()
    assert seen is not None
    assert now is not None
    return seen, now, old


def test_who_reads_an_older_snapshot_is_told_that_it_has_expired_while_the_newest_is_there(tmp_path: Path) -> None:
    seen, now, old = compacted(tmp_path)
    (task, *_) = file_scans.files_to_read(seen, snapshot_id=old)
    now.maintenance.expire_snapshots().by_id(old).commit()
    Path(task.file.file_path.removeprefix("file://")).unlink()
    with pytest.raises(Transient, match=f"snapshot {old} of table .* has expired meanwhile"):
        list(file_scans.read_file(seen, task, ["waveform_id"], snapshot_id=old))
    with pytest.raises(Altered, match="restore it"):  # of the newest
        list(file_scans.read_file(seen, task, ["waveform_id"]))


def test_who_looks_up_rows_of_an_older_snapshot_is_told_that_it_has_expired(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen, now, old = compacted(tmp_path)
    planned = published_lookup.files_to_read

    def expired_meanwhile(*args: Any, **more: Any) -> Any:
        found = planned(*args, **more)
        now.maintenance.expire_snapshots().by_id(old).commit()
        for task in found:
            Path(task.file.file_path.removeprefix("file://")).unlink()
        return found

    monkeypatch.setattr(published_lookup, "files_to_read", expired_meanwhile)
    with pytest.raises(Transient, match=f"snapshot {old} of table .* has expired meanwhile"):
        published_lookup.find_published(seen, ["w0"], snapshot_id=old)


def test_who_looks_at_what_an_older_head_held_is_told_to_look_again_and_of_no_damage(tmp_path: Path) -> None:
    story = Story(tmp_path)
    story.batch()
    story.hold()
    tables = story.rig.tables
    seen = story.holds()
    keys = {chunk.key for chunk in tables.held(seen, HeldLook(everything=True))}
    for _ in range(3):
        story.hold()
        story.batch()
        story.maintain()
    looks: list[Callable[[], object]] = [
        lambda: tables.held(seen, HeldLook(everything=True)),
        lambda: tables.held_ids(seen, IdsLook()),
        lambda: tables.held_files(seen),
        lambda: tables.held_payloads(seen, keys, tmp_path / "bytes.arrow"),
        lambda: list(tables.held_values(seen, keys)),
    ]
    for look in looks:
        with pytest.raises(Transient, match=f"held snapshot {seen.snapshot_id}, .* look again"):
            look()
    assert len(tables.held(story.holds(), HeldLook(everything=True))) == 4


# a product that shows readers something else


def the_new_files_are_there_before_the_old_ones_go(patch: Patch) -> None:
    real = StoredTable.replace

    def wrong(self: Any, table: Any, old: Any, new: Any) -> None:
        real(self, table, [], new)
        real(self, self.load(), old, [])

    patch.setattr(StoredTable, "replace", wrong)


def the_old_files_go_before_the_new_ones_are_there(patch: Patch) -> None:
    real = StoredTable.replace

    def wrong(self: Any, table: Any, old: Any, new: Any) -> None:
        real(self, table, old, [])
        real(self, self.load(), [], new)

    patch.setattr(StoredTable, "replace", wrong)


def the_old_files_are_removed_as_soon_as_others_stand_for_them(patch: Patch) -> None:
    real = StoredTable.replace

    def wrong(self: Any, table: Any, old: Any, new: Any) -> None:
        real(self, table, old, new)
        for file in old:
            Path(file.file_path.removeprefix("file://")).unlink()

    patch.setattr(StoredTable, "replace", wrong)


def what_is_put_together_lacks_a_row_and_is_not_compared(patch: Patch) -> None:
    real = put_together._sorted_units
    patch.setattr(put_together, "_sorted_units", lambda batches: real(list(batches)[1:]))
    patch.setattr(small_files, "prove_same", lambda *_: None)


def a_batch_is_committed_file_by_file(patch: Patch) -> None:
    real = StoredTable.commit_files

    def wrong(self: Any, table: Any, paths: Any, *summary: Any) -> None:
        for path in paths[1:]:
            real(self, table, [path])
        real(self, table, paths[:1], *summary)

    patch.setattr(StoredTable, "commit_files", wrong)


def a_file_that_is_gone_ends_a_reading(patch: Patch) -> None:
    real = file_scans.read_file

    def wrong(*about: Any, **more: Any) -> Any:
        try:
            yield from real(*about, **more)
        except WavestitchError:
            return

    patch.setattr(file_scans, "read_file", wrong)


MUTANTS = {
    plant.__name__.replace("_", " "): (plant, said)
    for plant, said in (
        (the_new_files_are_there_before_the_old_ones_go, "twice"),
        (the_old_files_go_before_the_new_ones_are_there, "vanished"),
        (the_old_files_are_removed_as_soon_as_others_stand_for_them, "a file that should be there is not"),
        (what_is_put_together_lacks_a_row_and_is_not_compared, "vanished"),
        (a_batch_is_committed_file_by_file, "half of a batch"),
        (a_file_that_is_gone_ends_a_reading, "vanished"),
    )
}


@pytest.mark.parametrize("name", MUTANTS)
def test_a_product_that_shows_readers_something_else_is_found_out(
    name: str, tmp_path: Path, monkeypatch: Patch
) -> None:
    plant, said = MUTANTS[name]
    plant(monkeypatch)
    with pytest.raises((AssertionError, WavestitchError), match=said):
        Story(tmp_path).play()
