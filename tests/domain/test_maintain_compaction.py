"""Small files put together beside batches: no row is changed, no commit lost, all is proven first. I2, I3, I7."""

from __future__ import annotations

import errno
from collections import Counter
from datetime import timedelta
from pathlib import Path

import numpy as np
import pytest
from pyiceberg.manifest import DataFile

from tests.builders.deleted_rows import delete_rows
from tests.builders.published_bytes import rows_with_bytes
from tests.builders.table_rows import (
    NOON,
    facts,
    first_head,
    held_row,
    hold,
    payloads,
    published_row,
    stage,
    write_landing,
)
from tests.domain.maintenance_rig import STREAM, Rig, limits, went
from tests.postgresql import Postgresql
from wavestitch.batch.stream_state import load_state
from wavestitch.contracts.errors import Altered, Transient
from wavestitch.contracts.position import Head, HeadKind
from wavestitch.contracts.reasons import Reason
from wavestitch.maintain.run import maintain_stream, raise_failures
from wavestitch.parquet.published_file import pages_as_in
from wavestitch.tables.commit.own_place import local_path
from wavestitch.tables.commit.stored_table import StoredTable
from wavestitch.tables.lookup.file_scans import files_to_read, stream_file
from wavestitch.tables.maintenance import put_together, small_files
from wavestitch.tables.maintenance.verify_waveforms import verify_waveforms
from wavestitch.tables.read_waveforms import read_waveforms

# Bits that a library may tidy up: minus zero, the least of all, all digits, NaN of three kinds.
NOON_MS = int(NOON.timestamp() * 1000)
ODD = np.array([1 << 63, 1, 0x3FF5555555555555, 0x7FF8000000000001, 0xFFF8DEADBEEF0000, 0x7FF0000000000001], "<u8")


@pytest.fixture
def rig(tmp_path: Path) -> Rig:
    return Rig(tmp_path)


@pytest.fixture(params=["sqlite", "postgresql"])
def rig_on_each(request: pytest.FixtureRequest, tmp_path: Path) -> Rig:
    """Of each kind of SQL catalog."""
    if request.param == "sqlite":
        return Rig(tmp_path, samples="double")
    server: Postgresql = request.getfixturevalue("postgresql")
    return Rig(tmp_path, server.address(server.new_database()), samples="double")


def odd_row(name: str, **changes):
    return published_row(name, raw=ODD.view("<f8"), sample_format="f64le", **changes)


def many_small_files(rig: Rig) -> None:
    """Nine heads with a file of each of two days, nine with a file of held rows, nine with nothing.

    The very first is not recorded."""
    for n in range(9):
        sequence = rig.number + 1
        landing = write_landing(rig.folder / f"l{n}.arrow", [(0, n, b"open %d" % n)])
        chunk = facts(0, n, b"open %d" % n)._replace(waveform_id=f"open-{n}")
        row = held_row(chunk, landing=landing, row=0, decision=f"d{sequence}", sequence=sequence)
        rig.hold([row], decision=f"d{sequence}", sequence=sequence)
        days = [odd_row(f"w{n}-{d}", start=NOON + timedelta(days=d)) for d in range(2)]
        files = [stage(rig.tables.data_folder(), f"{n}-{r['waveform_id']}", [r], samples="double") for r in days]
        base = rig.publish()
        rig.record(rig.tables.commit(base, base.next(), files))
        rig.number += 1


def before_the_commit(monkeypatch: pytest.MonkeyPatch, then) -> None:
    """Something happens when all files are written and proven."""
    real = StoredTable.replace

    def late(self, *args):
        then()
        return real(self, *args)

    monkeypatch.setattr(StoredTable, "replace", late)


def test_rows_stay_as_they_are_and_a_batch_that_commits_meanwhile_wins(rig_on_each, monkeypatch):
    rig = rig_on_each
    many_small_files(rig)
    before = {r["waveform_id"]: r for r in rows_with_bytes(read_waveforms(rig.tables))}
    held = load_state(rig.tables, topic_id="").held
    assert len(before) == 18
    assert len(held) == 9
    data = rig.folder / "warehouse" / STREAM / "waveforms" / "data"
    committed: list[Head] = []

    def commit_once() -> None:
        if not committed:
            committed.append(rig.publish("meanwhile"))

    before_the_commit(monkeypatch, commit_once)
    report = rig.maintain("compact", small_files=5)
    (action,) = report.actions
    assert action.count == 18 + 9 + 28  # with the row of the batch that came meanwhile
    assert action.facts == {"rewritten": 55, "added": 4, "conflicts": 1, "rows_compared": 55}
    assert report.before.data_files == {"waveforms": 18, "held": 9, "batches": 27}
    assert report.after.data_files == {"waveforms": 3, "held": 1, "batches": 1}

    after = {r["waveform_id"]: r for r in rows_with_bytes(read_waveforms(rig.tables))}
    assert after.pop("meanwhile")["samples"] == np.arange(8, dtype="<i2").tobytes()
    assert {r["samples"] for r in after.values()} == {ODD.tobytes()}
    assert verify_waveforms(rig.tables.waveforms()).altered == ()
    assert after == before
    assert len(read_waveforms(rig.tables, columns=["waveform_id"])) == 19
    # The head is found below the snapshot that replaced files, and what is held is whole.
    newest, before_it = rig.tables.heads()[:2]
    assert (newest.kind, before_it) == (HeadKind.MAINTENANCE, committed[0])
    assert load_state(rig.tables, topic_id="").held == held
    out = rig.folder / "out.arrow"
    assert len(payloads(rig.tables, [h.chunk.key for h in held], out)) == 9
    assert [b.sequence for b in rig.tables.batches()] == list(range(29, 1, -1))
    # A cache of ids that had not seen the files before they were put together finds them in the new ones.
    tables = rig.deployment.tables(STREAM)
    assert set(tables.published([*before, "meanwhile", "absent"])) == {*before, "meanwhile"}

    # With the next head the ones before it go, and then the old files.
    rig.publish("next")
    rig.maintain("snapshots", "orphans")
    left = {p.name for p in data.rglob("*.parquet")}
    assert len(left) == report.after.data_files["waveforms"] + 1
    assert set(rig.ids()) == {*before, "meanwhile", "next"}
    assert set(rig.tables.published(before)) == set(before)


def test_who_loses_each_time_changes_nothing_and_says_so(rig, monkeypatch):
    for n in range(5):
        rig.publish(f"w{n}")
    before_the_commit(monkeypatch, lambda: rig.publish(f"x{rig.number}"))
    with pytest.raises(Transient, match="a batch committed while small files were put together; nothing changed"):
        rig.maintain("compact", small_files=5)
    assert len(files_to_read(rig.tables.waveforms())) == rig.number == 5 + 2 * 5, "of two tables, five tries each"


def test_files_that_somebody_else_took_away_meanwhile_are_not_replaced(rig, monkeypatch):
    for n in range(5):
        rig.publish(f"w{n}")
    stored = rig.tables.stored()[0]
    took: list[DataFile] = []

    def take_one_away() -> None:
        if not took:
            table = stored.load()
            took.append(files_to_read(table)[0].file)
            with table.transaction().update_snapshot().overwrite() as change:
                change.delete_data_file(took[0])
            change._transaction.commit_transaction()

    before_the_commit(monkeypatch, take_one_away)
    with pytest.raises(Transient, match="nothing changed"):
        rig.maintain("compact", small_files=5)
    assert len(rig.ids()) == 4
    assert len(files_to_read(rig.tables.stored()[2].load())) == 1, "the history is put together all the same"


@pytest.mark.parametrize("again", [False, True], ids=["deleted", "deleted-and-published-again"])
def test_rows_that_another_tool_deletes_meanwhile_do_not_come_back(rig, monkeypatch, again):
    """verify-table's way out is to delete rows with another engine, and to rewind: then they stand once, not twice."""
    for n in range(5):
        rig.publish(f"w{n}")
    done: list[str] = []

    def delete_one() -> None:
        if not done:
            done.append("w3")
            delete_rows(rig.tables.stored()[0].load(), ["w3"])
            if again:
                rig.publish("w3")

    before_the_commit(monkeypatch, delete_one)
    with pytest.raises(Transient, match="another tool deleted rows of files that were put together meanwhile"):
        rig.maintain("compact", small_files=5)
    left = ["w0", "w1", "w2", "w4"]
    assert sorted(rig.ids()) == sorted([*left, "w3"] if again else left)
    found = verify_waveforms(rig.tables.waveforms())
    assert (found.rows, found.deleted, found.altered) == (len(rig.ids()), 1, ())
    (report,) = rig.maintain("compact", small_files=4 + again).actions
    assert report.kept == ("1 files of ecg.waveforms stay as they are: another tool deleted rows of them",)
    assert sorted(rig.ids()) == sorted([*left, "w3"] if again else left)


def test_rows_that_another_tool_deleted_are_not_verified_any_more(rig):
    """However they were altered: otherwise the way out would not end it."""
    rows = [published_row(f"w{n}") for n in range(3)]
    rows[1]["digest"] = "0" * 32
    base = rig.publish()
    rig.tables.commit(base, base.next(), [stage(rig.tables.data_folder(), "odd", rows)])
    (found,) = verify_waveforms(rig.tables.waveforms()).altered
    assert found.waveform_id == "w1"
    delete_rows(rig.tables.stored()[0].load(), ["w1"])
    after = verify_waveforms(rig.tables.waveforms())
    assert (after.rows, after.deleted, after.altered) == (2, 1, ())


ALTERED = {"changed": lambda s: [s[0] + 1, *s[1:]], "shorter": lambda s: s[:-1], "longer": lambda s: [*s, 1]}


@pytest.mark.parametrize("how", [*ALTERED, "a row less", "a row twice"])
def test_what_was_written_otherwise_than_read_never_counts_and_nothing_is_let_go_of(rig, how, monkeypatch):
    for n in range(5):
        rig.publish(f"w{n}")
    files = {t.file.file_path for t in files_to_read(rig.tables.waveforms())}
    real = put_together._Unit._group

    def wrongly(self, rows, members):
        if how.startswith("a row"):
            return real(self, rows, members[1:] if how == "a row less" else [*members, members[0]])
        self._samples[0] = np.array(ALTERED[how](self._samples[0].tolist()), self._samples[0].dtype)
        return real(self, rows, members)

    monkeypatch.setattr(put_together._Unit, "_group", wrongly)
    report = maintain_stream(rig.deployment, STREAM, apply=True, limits=limits(small_files=5))
    assert [f.stage for f in report.failures] == ["compact", "snapshots", "orphans"]
    with pytest.raises(Exception, match=r"they are not the same. The table was not touched"):
        raise_failures([report])
    assert {t.file.file_path for t in files_to_read(rig.tables.waveforms())} == files
    assert all(Path(local_path(f)).exists() for f in files)


def test_held_rows_that_were_written_otherwise_than_read_are_named_by_no_head(rig, monkeypatch):
    many_small_files_of_held(rig)
    head = rig.tables.head()
    real = StoredTable.write

    def without_one(self, table, batches, **how):
        return real(self, table, list(batches)[1:] if self.name.endswith(".held") else batches, **how)

    monkeypatch.setattr(StoredTable, "write", without_one)
    with pytest.raises(Altered, match=r"5 rows were read to be put together and 4 were found"):
        rig.tables.rewrite_held(head, dict.fromkeys(held_paths(rig), ()), counts=head.held.counts, note="")
    assert rig.tables.head() == head


def test_what_another_tool_made_of_the_held_table_is_no_head_s(rig):
    many_small_files_of_held(rig)
    before = rig.tables.head().held
    stored = rig.tables.stored()[1]
    table = stored.load()
    rows = [
        b.set_column(b.schema.get_field_index("meta"), "meta", b["payload"].cast("string")) for b in all_rows(table)
    ]
    files = stored.data_files(table, stored.write(table, rows))
    stored.replace(table, [t.file for t in files_to_read(table)], files)
    rig.maintain("compact", small_files=5)
    assert rig.tables.head().held.digest != before.digest
    assert {h.chunk.meta for h in load_state(rig.tables, topic_id="").held} == {facts(0, 0, b"open").meta}


def many_small_files_of_held(rig: Rig) -> None:
    for n in range(5):
        landing = write_landing(rig.folder / f"l{n}.arrow", [(0, n, b"open")])
        chunk = facts(0, n, b"open")._replace(waveform_id=f"open-{n}")
        rig.hold([held_row(chunk, landing=landing, row=0, decision=f"d{n}")], decision=f"d{n}", sequence=rig.number + 1)


def test_junk_expires_although_small_files_are_put_together(rig):
    """Its file goes with the newest of its rows, so that of one day stays apart from that of the next."""
    day, gone = 86_400_000, 0
    for n in range(9):
        junk = facts(0, n, b"junk", reason=Reason.NOT_A_CHUNK)._replace(waveform_id=None)
        landing = write_landing(rig.folder / f"l{n}.arrow", [(0, n, b"junk")])
        row = held_row(junk, landing=landing, row=0, decision=f"d{n}", sequence=n + 2, reason=Reason.NOT_A_CHUNK)
        hold(rig.tables, [row], decision=f"d{n}", clock_ms=NOON_MS + n // 3 * day + n)
        if n % 3 == 2:
            now = NOON_MS + n // 3 * day + day // 2
            gone += went(rig.maintain("junk", "compact", now_ms=now, junk=2 * 86_400, small_files=2), "junk")
    assert gone == 3, "of the first day, which is two and a half days old now"
    assert len(held_paths(rig)) == 2
    assert went(rig.maintain("junk", now_ms=NOON_MS + 9 * day, junk=86_400), "junk") == 6


def held_paths(rig: Rig) -> list[str]:
    table = rig.tables.stored()[1].load()
    return [t.file.file_path for t in files_to_read(table, snapshot_id=rig.tables.head().held.snapshot_id)]


def all_rows(table):
    return [b for t in files_to_read(table) for b in stream_file(table, t.file)]


def test_a_file_is_written_as_the_stream_says_and_sorted_by_source_and_start(tmp_path):
    rig = Rig(tmp_path)
    (rig.folder / "streams" / f"{STREAM}.yaml").write_text("topic: t\ngroup: g\nencoding: small\n")
    for n in range(6):
        rows = [
            published_row(f"{source}{n}", start=NOON + timedelta(seconds=10 - n), source=source)
            for source in ("b", "a")
        ]
        base = rig.publish()
        rig.tables.commit(base, base.next(), [stage(rig.tables.data_folder(), f"s{n}", rows)])
    rig.maintain("compact", small_files=5)
    (task,) = files_to_read(rig.tables.waveforms())
    pages = pages_as_in(Path(local_path(task.file.file_path)))
    assert (pages.samples, pages.encoding, pages.codec) == ("int", 5, 0)
    found = read_waveforms(rig.tables, columns=["source", "start_time"]).to_pylist()
    assert found == sorted(found, key=lambda r: (r["source"], r["start_time"]))
    assert len(found) == 12


def test_samples_stay_of_the_type_that_they_were_written_in(rig):
    for n in range(5):
        rig.publish(f"narrow{n}")
    for n in range(5):
        base = rig.tables.head()
        rows = [published_row(f"wide{n}", raw=np.array([1 << 40, -(1 << 40)]), sample_format="i64le")]
        rig.tables.commit(base, base.next(), [stage(rig.tables.data_folder(), f"wide{n}", rows, samples="long")])
    before = {r["waveform_id"]: r for r in rows_with_bytes(read_waveforms(rig.tables))}
    rig.maintain("compact", small_files=5)
    tasks = files_to_read(rig.tables.waveforms())
    kinds = sorted(pages_as_in(Path(local_path(t.file.file_path))).samples for t in tasks)
    assert kinds == ["int", "long"]
    assert {r["waveform_id"]: r for r in rows_with_bytes(read_waveforms(rig.tables))} == before


def test_files_are_closed_at_their_size_and_row_groups_at_theirs_and_large_ones_are_left_alone(rig, monkeypatch):
    noise = np.random.default_rng(7)
    for n in range(8):
        rows = [
            published_row(f"w{n}", raw=noise.integers(-(1 << 30), 1 << 30, 30_000, dtype="<i4"), sample_format="i32le")
        ]
        base = rig.publish()
        rig.tables.commit(base, base.next(), [stage(rig.tables.data_folder(), f"big{n}", rows)])
    before = {r["waveform_id"]: r for r in rows_with_bytes(read_waveforms(rig.tables))}
    monkeypatch.setattr(put_together, "_SORTED_BYTES", 300_000)
    monkeypatch.setattr(put_together, "_GROUP_BYTES", 200_000)
    rig.maintain("compact", small_files=5, target_file=250_000)
    sizes = [t.file.file_size_in_bytes for t in files_to_read(rig.tables.waveforms())]
    assert [size > 250_000 for size in sizes].count(True) >= 2
    assert len(sizes) == 3
    assert {r["waveform_id"]: r for r in rows_with_bytes(read_waveforms(rig.tables))} == before
    assert went(rig.maintain("compact", small_files=5, target_file=250_000), "compact") == 0


def test_files_are_of_so_much_as_a_reader_can_hold_however_well_it_is_packed(rig, monkeypatch):
    """A flat line is next to nothing on a disk. What is large unpacked is not taken for small again, either."""
    flat = np.full(50_000, 7, "<i4")
    for n in range(8):
        base = rig.tables.head()
        rows = [published_row(f"w{n}", raw=flat, sample_format="i32le")]
        new = first_head() if base is None else base.next()
        rig.tables.commit(base, new, [stage(rig.tables.data_folder(), f"flat{n}", rows)])
    monkeypatch.setattr(put_together, "_SORTED_BYTES", 400_000)
    monkeypatch.setattr(put_together, "_FILE_BYTES", 400_000)
    monkeypatch.setattr(put_together, "_GROUP_BYTES", 200_000)
    monkeypatch.setattr(small_files, "LARGE_BYTES", 300_000)
    rig.maintain("compact", small_files=5)
    files = [t.file for t in files_to_read(rig.tables.waveforms())]
    assert [f.record_count for f in files] == [2] * 4
    assert sum(f.file_size_in_bytes for f in files) < 4 * 50_000, "of one waveform unpacked, each"
    assert went(rig.maintain("compact", small_files=2, apply=False), "compact") == 0
    assert verify_waveforms(rig.tables.waveforms()).altered == ()


def test_where_the_disk_is_full_no_half_file_stays(rig, monkeypatch):
    for n in range(5):
        rig.publish(f"w{n}")
    before = rig.files("warehouse/ecg/waveforms/**/*.parquet")

    def full(self):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(put_together.PublishedFile, "close", full)
    with pytest.raises(Transient, match="No space left on device"):
        rig.maintain("compact", small_files=5)
    assert rig.files("warehouse/ecg/waveforms/**/*.parquet") == before


def test_nothing_is_written_where_there_is_nothing_to_put_together(rig):
    for n in range(3):
        rig.publish(f"w{n}")
    assert went(rig.maintain("compact", small_files=4), "compact") == 0
    assert went(rig.maintain("compact", small_files=3, apply=False), "compact") == 6
    assert len(files_to_read(rig.tables.waveforms())) == 3


def test_an_id_cache_that_lags_behind_a_compaction_does_not_forget_what_it_had_not_seen(rig):
    rig.publish("a")
    tables = rig.deployment.tables(STREAM)
    assert set(tables.published(["a", "b"])) == {"a"}
    rig.publish("b")
    rig.maintain("compact", small_files=2)
    assert len(files_to_read(rig.tables.waveforms())) == 1
    assert set(tables.published(["a", "b"])) == {"a", "b"}
    assert Counter(rig.ids()) == Counter(["a", "b"])
