"""The cache of published ids rules out only what is certainly not published, whatever became of it or the table: I2."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

from tests.domain.table_rows import first_head, published_row, stage
from wavestitch.contracts.errors import Transient
from wavestitch.tables import published_lookup, stream_tables
from wavestitch.tables.catalog import CatalogSettings
from wavestitch.tables.id_cache import IdCache
from wavestitch.tables.stream_tables import StreamTables

pytestmark = pytest.mark.filterwarnings("error")


@pytest.fixture
def settings(tmp_path: Path) -> CatalogSettings:
    return CatalogSettings("local", f"sqlite:///{tmp_path}/catalog.db", f"file://{tmp_path}/warehouse")


@pytest.fixture
def tables(settings: CatalogSettings, tmp_path: Path) -> StreamTables:
    return StreamTables(settings, "ecg", id_cache=IdCache(tmp_path / "ids"))


def publish(tables: StreamTables, *names: str) -> None:
    head = tables.head()
    files = [stage(tables.data_folder(), "-".join(names), [published_row(n) for n in names])] if names else []
    tables.commit(head, first_head() if head is None else head.next(), files)


def cache_file(tmp_path: Path) -> Path:
    (found,) = (tmp_path / "ids").iterdir()
    return found


def forget(tmp_path: Path) -> None:
    for path in (tmp_path / "ids").glob("*"):
        path.unlink()


@pytest.mark.parametrize("seed", range(3))
def test_with_the_cache_the_table_says_what_it_says_without(seed, tables, settings, tmp_path):
    choose = random.Random(seed)
    plain = StreamTables(settings, "ecg")
    names = [f"w{i}" for i in range(60)]
    fresh = iter(names)
    for _ in range(25):  # more commits than manifests are kept apart
        publish(tables, *(next(fresh) for _ in range(choose.choice((0, 1, 2)))))
        if choose.random() < 0.4:
            asked = choose.sample(names, 12)
            assert tables.published(asked) == plain.published(asked)
        if choose.random() < 0.1:
            forget(tmp_path)
    assert tables.published(names) == plain.published(names)


def test_an_id_that_is_not_published_never_makes_the_table_be_scanned(tables, monkeypatch):
    publish(tables, "a", "b")
    publish(tables, "c")
    looked: list[set[str]] = []

    def find(table: Any, ids: Any) -> Any:
        looked.append(set(ids))
        return published_lookup.find_published(table, ids)

    monkeypatch.setattr(stream_tables, "find_published", find)
    assert set(tables.published(["a", "c", "nowhere"])) == {"a", "c"}
    assert tables.published(["nowhere", "neither"]) == {}
    assert looked == [{"a", "c"}, set()]


def test_it_follows_after_snapshots_that_it_never_saw_were_expired(tables, settings):
    publish(tables, "a")
    assert set(tables.published(["a"])) == {"a"}
    for name in ("b", "c", "d"):
        publish(tables, name)
    table = tables.waveforms()
    assert table is not None
    keep = {table.metadata.current_snapshot_id}
    for snapshot in [s.snapshot_id for s in table.metadata.snapshots if s.snapshot_id not in keep]:
        table.maintenance.expire_snapshots().by_id(snapshot).commit()
    assert set(tables.published(["a", "b", "c", "d", "e"])) == {"a", "b", "c", "d"}


def test_a_damaged_cache_is_said_with_its_path_and_can_be_deleted(tables, tmp_path):
    publish(tables, "a")
    tables.published(["a"])
    path = cache_file(tmp_path)
    path.write_bytes(b"not a database at all " * 400)
    with pytest.raises(Transient, match=f"cache of published ids {path}.*can be deleted"):
        tables.published(["a"])
    path.unlink()
    assert set(tables.published(["a"])) == {"a"}


def test_another_table_under_the_same_name_has_a_cache_of_its_own(tmp_path):
    for n, name in enumerate(("a", "b")):
        settings = CatalogSettings("local", f"sqlite:///{tmp_path}/{n}.db", f"file://{tmp_path}/{n}")
        tables = StreamTables(settings, "ecg", id_cache=IdCache(tmp_path / "ids"))
        publish(tables, name)
        assert set(tables.published(["a", "b"])) == {name}
