"""The index of ids names every file that has one and no file besides, whatever became of it or of the table: I2."""

from __future__ import annotations

import random
import sqlite3
from collections.abc import Callable
from pathlib import Path
from uuid import UUID

import pyarrow.compute as pc
import pytest
import xxhash
from pyiceberg.table import FileScanTask

from tests.builders.table_rows import first_head, published_row, stage
from wavestitch.contracts.errors import BadInput, Transient
from wavestitch.contracts.rows import published_schema
from wavestitch.tables.catalog import CatalogSettings
from wavestitch.tables.lookup import id_index, id_store, published_lookup
from wavestitch.tables.lookup.file_scans import files_to_read, stream_file
from wavestitch.tables.lookup.id_index import IdIndex
from wavestitch.tables.lookup.id_store import hash_ids, open_store
from wavestitch.tables.maintenance.snapshot_expiry import expire_snapshots
from wavestitch.tables.stream_tables import StreamTables

pytestmark = pytest.mark.filterwarnings("error")


@pytest.fixture
def settings(tmp_path: Path) -> CatalogSettings:
    return CatalogSettings("local", f"sqlite:///{tmp_path}/catalog.db", f"file://{tmp_path}/warehouse")


@pytest.fixture
def index(tmp_path: Path) -> IdIndex:
    return IdIndex(tmp_path / "ids")


@pytest.fixture
def tables(settings: CatalogSettings, index: IdIndex) -> StreamTables:
    return StreamTables(settings, "ecg", id_index=index)


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The data files that are opened from now on."""
    paths: list[str] = []

    def counted(read: Callable[..., object]) -> Callable[..., object]:
        def note(table: object, task: FileScanTask, *rest: object, **more: object) -> object:
            paths.append(task.file.file_path)
            return read(table, task, *rest, **more)

        return note

    for module in (id_index, published_lookup):
        monkeypatch.setattr(module, "read_file", counted(module.read_file))
    return paths


def publish(tables: StreamTables, *files: list[str], name: str = "") -> None:
    """One commit with a file for each list of ids."""
    head = tables.head()
    staged = [
        stage(tables.data_folder(), name or "-".join(names), [published_row(n) for n in names]) for names in files
    ]
    tables.commit(head, first_head() if head is None else head.next(), staged)


def write_anew(tables: StreamTables, ending: str, *, without: str) -> None:
    """Put a file without this id in the place of the one with this ending, as compaction and deletions do."""
    stored = tables.stored()[0]
    table = stored.load()
    (task,) = [t for t in files_to_read(table) if t.file.file_path.endswith(ending)]
    batches = [
        b.filter(pc.not_equal(b["waveform_id"], without)).cast(published_schema("int"), safe=False)
        for b in stream_file(table, task.file)
    ]
    stored.replace(table, [task.file], stored.data_files(table, stored.write(table, batches)))


def store_file(tmp_path: Path) -> Path:
    (found,) = (tmp_path / "ids").glob("*.sqlite")
    return found


@pytest.mark.parametrize("seed", range(3))
def test_with_the_index_the_table_says_what_it_says_without(seed, tables, settings, tmp_path):
    choose = random.Random(seed)
    plain = StreamTables(settings, "ecg")
    names = [f"w{i}" for i in range(60)]
    fresh = iter(names)
    for _ in range(25):  # more commits than manifests are kept apart
        publish(tables, *([next(fresh)] for _ in range(choose.choice((0, 1, 2)))))
        if choose.random() < 0.4:
            asked = choose.sample(names, 12)
            assert tables.published(asked) == plain.published(asked)
        if choose.random() < 0.1:
            store_file(tmp_path).unlink(missing_ok=True) if (tmp_path / "ids").is_dir() else None
        if choose.random() < 0.15 and (there := sorted(plain.published(names))):
            tables.waveforms().delete(f"waveform_id == '{choose.choice(there)}'")
    assert tables.published(names) == plain.published(names)


def test_only_files_that_have_one_of_the_ids_are_opened(tables, opened):
    publish(tables, ["a", "b"], ["c"], ["d", "e"])
    publish(tables, ["f"])
    assert set(tables.published(["nobody"])) == set()  # follows the table
    opened.clear()
    assert set(tables.published(["a", "c", "nowhere"])) == {"a", "c"}
    assert len(opened) == 2
    opened.clear()
    assert tables.published(["nowhere", "neither"]) == {}
    assert opened == []


def test_what_no_id_can_be_is_in_no_file_and_the_index_stays(tables, index, tmp_path, caplog):
    publish(tables, ["a"], ["b"])
    assert list(index.files_of(tables.waveforms(), ["a"]).values()) == [{"a"}]
    (kept,) = (p.stat().st_ino for p in (tmp_path / "ids").iterdir())
    assert index.files_of(tables.waveforms(), ["\ud800"]) == {}
    assert [p.stat().st_ino for p in (tmp_path / "ids").iterdir()] == [kept]
    assert caplog.messages == []


def test_it_says_which_file_has_which_id(tables, index):
    publish(tables, ["a", "b"], ["c"])
    found = index.files_of(tables.waveforms(), ["a", "b", "c", "nowhere"])
    assert {Path(path).name: ids for path, ids in found.items()} == {"a-b.parquet": {"a", "b"}, "c.parquet": {"c"}}


def test_ids_of_a_day_open_as_many_files_in_a_table_of_many_days_as_in_one_of_that_day(settings, tables, opened):
    """The main use: a rewind reads again what a day has, in a table of years."""
    day, days = [[f"today-{n}-{i}" for i in range(3)] for n in range(5)], 40
    alone = StreamTables(settings, "alone", id_index=tables._id_index)
    publish(alone, *day)
    for n in range(days):
        publish(tables, *[[f"day{n}-{m}-{i}" for i in range(3)] for m in range(5)])
    publish(tables, *day)
    counts = []
    asked = [i for names in day for i in names]
    for one in (alone, tables):
        one.published(["nobody"])
        opened.clear()
        assert set(one.published([*asked, "new"])) == set(asked)
        counts.append(len(opened))
    print(f"files opened: {counts[0]} of the day alone, {counts[1]} of {5 * (days + 1)}: ratio {counts[1] / counts[0]}")
    assert counts == [5, 5]


def test_each_file_is_read_once_for_its_ids(tables, opened):
    for n in range(30):  # manifests are merged meanwhile
        publish(tables, [f"w{n}"])
        tables.published(["nobody"])
    assert len(opened) == len(set(opened)) == 30


def test_it_follows_files_that_were_replaced(tables, opened):
    publish(tables, ["a", "b", "c"], ["d"])
    assert set(tables.published(["a", "d"])) == {"a", "d"}
    write_anew(tables, "a-b-c.parquet", without="b")
    assert set(tables.published(["a", "b", "c", "d"])) == {"a", "c", "d"}


def test_it_follows_after_snapshots_that_it_never_saw_were_expired(tables):
    publish(tables, ["a"])
    assert set(tables.published(["a"])) == {"a"}
    for name in ("b", "c", "d"):
        publish(tables, [name])
    table = tables.waveforms()
    gone = [s.snapshot_id for s in table.metadata.snapshots if s.snapshot_id != table.metadata.current_snapshot_id]
    expire_snapshots(tables.stored()[0], gone)
    assert set(tables.published(["a", "b", "c", "d", "e"])) == {"a", "b", "c", "d"}


def test_a_table_that_was_set_back_has_only_what_it_had_then(tables):
    publish(tables, ["a"])
    then = tables.waveforms().metadata.current_snapshot_id
    publish(tables, ["b"])
    assert set(tables.published(["a", "b"])) == {"a", "b"}
    tables.waveforms().manage_snapshots().set_current_snapshot(then).commit()
    assert set(tables.published(["a", "b"])) == {"a"}
    publish(tables, ["c"])
    assert set(tables.published(["a", "b", "c"])) == {"a", "c"}


def test_an_earlier_snapshot_is_answered_as_it_was(tables, index):
    publish(tables, ["a"])
    then = tables.waveforms().metadata.current_snapshot_id
    publish(tables, ["b"])
    table = tables.waveforms()
    assert set().union(*index.files_of(table, ["a", "b"], snapshot_id=then).values()) == {"a"}
    assert set().union(*index.files_of(table, ["a", "b"]).values()) == {"a", "b"}


def test_what_no_snapshot_names_is_forgotten_and_the_rest_is_not(tables, index, opened, tmp_path):
    for n in range(20):
        publish(tables, [f"w{n}-{i}" for i in range(50)], name=f"file-{n:02}")
    tables.published(["nobody"])
    for n in range(15):
        write_anew(tables, f"file-{n:02}.parquet", without=f"w{n}-0")
    tables.published(["nobody"])
    table = tables.waveforms()
    gone = [s.snapshot_id for s in table.metadata.snapshots if s.snapshot_id != table.metadata.current_snapshot_id]
    expire_snapshots(tables.stored()[0], gone)
    count = "SELECT sum(length(body)) / 12 FROM bucket"
    with sqlite3.connect(store_file(tmp_path)) as db:
        assert db.execute(count).fetchone() == (20 * 50 + 15 * 49,)
    assert index.prune(tables.waveforms(), apply=False) == 15
    assert index.prune(tables.waveforms()) == 15
    assert index.prune(tables.waveforms()) == 0
    with sqlite3.connect(store_file(tmp_path)) as db:
        assert db.execute(count).fetchone() == (20 * 50 - 15,)
    opened.clear()
    assert set(tables.published(["w3-0", "w3-1", "w19-0"])) == {"w3-1", "w19-0"}
    assert len(opened) == 2


class TestDamage:
    IDS = tuple(str(UUID(int=random.Random(7).getrandbits(128) ^ n * 7919)) for n in range(200))

    @pytest.fixture(scope="class")
    @classmethod
    def made(cls, tmp_path_factory: pytest.TempPathFactory) -> tuple[CatalogSettings, bytes, str]:
        """A table, and the store that follows it, with its name."""
        folder = tmp_path_factory.mktemp("made")
        settings = CatalogSettings("local", f"sqlite:///{folder}/catalog.db", f"file://{folder}/warehouse")
        tables = StreamTables(settings, "ecg", id_index=IdIndex(folder / "ids"))
        for n in range(0, 160, 40):
            publish(tables, list(cls.IDS[n : n + 40]), name=f"file-{n}")
        assert set(tables.published(cls.IDS)) == set(cls.IDS[:160])
        return settings, store_file(folder).read_bytes(), store_file(folder).name

    @pytest.fixture
    def settings(self, made: tuple[CatalogSettings, bytes, str]) -> CatalogSettings:
        """The table is the same for all; each test has the store for itself, and it is all that most of them touch."""
        return made[0]

    @pytest.fixture(autouse=True)
    def followed(self, made: tuple[CatalogSettings, bytes, str], tmp_path: Path) -> None:
        (tmp_path / "ids").mkdir(mode=0o700)
        (tmp_path / "ids" / made[2]).write_bytes(made[1])

    @pytest.fixture
    def table_of_its_own(self, tables: StreamTables, tmp_path: Path) -> StreamTables:
        """For whoever commits more."""
        (tmp_path / "own").mkdir()
        own = CatalogSettings("local", f"sqlite:///{tmp_path}/own/catalog.db", f"file://{tmp_path}/own/warehouse")
        store_file(tmp_path).unlink()
        tables = StreamTables(own, "ecg", id_index=IdIndex(tmp_path / "ids"))
        for n in range(0, 160, 40):
            publish(tables, list(self.IDS[n : n + 40]), name=f"file-{n}")
        assert set(tables.published(self.IDS)) == set(self.IDS[:160])
        return tables

    def check(self, tables: StreamTables) -> None:
        assert set(tables.published(self.IDS)) == set(self.IDS[:160])

    @pytest.mark.parametrize("seed", range(40))
    def test_flipped_bytes_never_hide_an_id(self, seed, tables, tmp_path):
        choose = random.Random(seed)
        path = store_file(tmp_path)
        raw = bytearray(path.read_bytes())
        places = [n for n in range(0, len(raw), 64) if any(raw[n : n + 64])]
        for _ in range(choose.choice((1, 1, 3, 100))):
            raw[min(choose.choice(places) + choose.randrange(64), len(raw) - 1)] ^= 1 << choose.randrange(8)
        path.write_bytes(bytes(raw))
        self.check(tables)

    @pytest.mark.parametrize("kept", [0, 1, 100, 4096, 30_000, -4096, -1])
    def test_a_file_that_was_cut_is_made_anew(self, kept, tables, tmp_path):
        path = store_file(tmp_path)
        raw = path.read_bytes()
        path.write_bytes(raw[:kept])
        self.check(tables)

    def test_what_is_no_store_is_made_anew(self, tables, tmp_path, caplog):
        store_file(tmp_path).write_bytes(b"not a database at all " * 400)
        self.check(tables)
        assert f"{store_file(tmp_path)} is made anew" in caplog.text

    def test_the_store_of_another_table_under_this_ones_name_is_made_anew(self, tables, settings, tmp_path):
        other = StreamTables(settings, "other", id_index=IdIndex(tmp_path / "others"))
        publish(other, ["elsewhere"])
        other.published(["elsewhere"])
        (foreign,) = (tmp_path / "others").glob("*.sqlite")
        store_file(tmp_path).write_bytes(foreign.read_bytes())
        self.check(tables)

    def test_the_store_of_another_column_or_format_is_made_anew(self, tables, tmp_path, monkeypatch):
        monkeypatch.setattr(id_index, "FORMAT", 99)
        self.check(tables)
        old, new = sorted((tmp_path / "ids").glob("*.sqlite"))
        new.write_bytes(old.read_bytes())
        self.check(tables)

    def test_a_bucket_of_another_time_is_found_out(self, table_of_its_own, tmp_path):
        tables = table_of_its_own
        path = store_file(tmp_path)
        with sqlite3.connect(path) as db:
            earlier = dict(db.execute("SELECT number, body FROM bucket"))
        publish(tables, list(self.IDS[160:]), name="more")
        assert set(tables.published(self.IDS)) == set(self.IDS)
        with sqlite3.connect(path) as db:
            db.executemany("UPDATE bucket SET body = ? WHERE number = ?", [(b, n) for n, b in earlier.items()])
        assert set(tables.published(self.IDS)) == set(self.IDS)

    def test_rows_that_were_removed_are_found_out(self, tables, tmp_path):
        for sql in ("DELETE FROM bucket WHERE number % 2", "DELETE FROM file WHERE number = 1", "DELETE FROM part"):
            with sqlite3.connect(store_file(tmp_path)) as db:
                db.execute(sql)
            self.check(tables)

    def test_what_lacks_one_thing_and_has_another_one_damaged_is_made_anew(self, tables, tmp_path):
        with sqlite3.connect(store_file(tmp_path)) as db:
            db.execute("DELETE FROM part WHERE rowid = (SELECT min(rowid) FROM part)")
            db.execute("UPDATE bucket SET body = x'00'")
        self.check(tables)

    def test_a_folder_that_cannot_be_written_is_refused_by_name(self, tables, tmp_path, settings):
        blocked = tmp_path / "blocked"
        blocked.mkdir()
        (blocked / store_file(tmp_path).name).mkdir()  # not even root can write a file there
        with pytest.raises(BadInput, match=r"cannot be read or written.*`cache`"):
            StreamTables(settings, "ecg", id_index=IdIndex(blocked)).published(["a"])

    def test_a_folder_that_cannot_be_made_is_refused_by_name(self, tables, tmp_path, settings):
        (tmp_path / "a-file").write_text("")
        with pytest.raises(BadInput, match="cannot be made"):
            StreamTables(settings, "ecg", id_index=IdIndex(tmp_path / "a-file" / "ids")).published(["a"])

    def test_a_store_that_is_locked_for_long_is_transient(self, table_of_its_own, tmp_path, monkeypatch):
        tables = table_of_its_own
        monkeypatch.setattr("wavestitch.tables.lookup.id_store._BUSY_SECONDS", 0.05)
        publish(tables, ["one more"])
        other = sqlite3.connect(store_file(tmp_path), isolation_level=None)
        other.execute("BEGIN EXCLUSIVE")
        with pytest.raises(Transient, match="can be deleted at any time"):
            tables.published(["one more"])
        other.close()
        assert set(tables.published(["one more"])) == {"one more"}


def test_whoever_chooses_ids_does_not_choose_their_bucket(tmp_path):
    """A bucket is written as a whole: of ids of one bucket each batch would write what all before it brought."""
    crowded = [i for i in map(str, range(400_000)) if xxhash.xxh3_64_intdigest(i.encode()) >> 54 == 0]
    found = []
    for name in ("one", "other"):
        with open_store(tmp_path / name, "i", write=True) as store:
            found.append(hash_ids(crowded, store.key))
    with open_store(tmp_path / "one", "i", write=False) as store:
        assert (hash_ids(crowded, store.key) == found[0]).all(), "the same for as long as the store is there"
    assert len(crowded) > 200
    for hashes in found:
        assert len(set(id_store._bucket_of(hashes).tolist())) > len(crowded) * 0.9
    assert not set(found[0].tolist()) & set(found[1].tolist())


def test_a_store_that_was_made_anew_while_files_were_read_takes_nothing_that_was_hashed_for_the_one_before(
    tables, index, tmp_path, monkeypatch
):
    publish(tables, ["a"], ["b"])
    add = id_index._add
    removed: list[Path] = []

    def remove_once(path, *rest):
        if not removed:
            removed.append(path)
            path.unlink()
        add(path, *rest)

    monkeypatch.setattr(id_index, "_add", remove_once)
    assert set(tables.published(["a", "b"])) == {"a", "b"}
    assert removed
    assert set(tables.published(["a", "b"])) == {"a", "b"}


def test_another_table_under_the_same_name_has_an_index_of_its_own(tmp_path):
    for n, name in enumerate(("a", "b")):
        settings = CatalogSettings("local", f"sqlite:///{tmp_path}/{n}.db", f"file://{tmp_path}/{n}")
        tables = StreamTables(settings, "ecg", id_index=IdIndex(tmp_path / "ids"))
        publish(tables, [name])
        assert set(tables.published(["a", "b"])) == {name}
