"""While the catalog may be another one than before, maintenance lets nothing go; and the ways out work."""

from __future__ import annotations

import re
import shutil
import sqlite3
from pathlib import Path
from uuid import uuid4

import pytest

from tests.domain.maintenance_rig import STREAM, Rig, went
from wavestitch.contracts.errors import Terminal
from wavestitch.contracts.position import GroupOffset
from wavestitch.contracts.quantities import Partition
from wavestitch.contracts.table_versions import TableVersion, find_doubtful
from wavestitch.maintain import run as maintain_run
from wavestitch.tables.catalog import open_catalog

IRREVOCABLE = ("landing", "held", "junk", "snapshots", "orphans")
DOCS = Path(__file__).parents[2] / "docs" / "operations.md"


@pytest.fixture
def rig(tmp_path: Path) -> Rig:
    return Rig(tmp_path)


def set_back(rig: Rig, batches: int) -> None:
    """A backup of the catalog is put back that does not know the last batches."""
    rig.publish("w0")
    shutil.copy(rig.folder / "catalog.db", rig.folder / "backup.db")
    for n in range(1, batches + 1):
        rig.publish(f"w{n}")
    shutil.copy(rig.folder / "catalog.db", rig.folder / "newer.db")
    shutil.copy(rig.folder / "backup.db", rig.folder / "catalog.db")


def begin_anew(rig: Rig) -> set[str]:
    """The catalog is lost, and a new one is begun in the same folder; what was published before."""
    rig.publish("w0")
    rig.publish("w1")
    old = rig.files("warehouse/ecg/waveforms/data/**/*.parquet")
    lose_catalog(rig)
    rig.number = 10
    rig.publish("w9")
    return old


def lose_catalog(rig: Rig) -> None:
    with sqlite3.connect(rig.folder / "catalog.db") as db:
        db.execute("delete from iceberg_tables")
        db.execute("delete from iceberg_namespace_properties")
    db.close()


def refused(rig: Rig) -> str:
    with pytest.raises(Terminal) as found:
        rig.maintain()
    assert all(f"{stage} of ecg: not run" in found.value.message for stage in (*IRREVOCABLE, "compact"))
    assert "index of ecg" not in found.value.message
    return found.value.message


@pytest.mark.parametrize("batches", [1, 3])
def test_a_catalog_that_was_set_back_costs_no_file_and_the_newer_one_can_be_put_back(rig: Rig, batches: int) -> None:
    set_back(rig, batches)
    before = rig.files()
    said = refused(rig)
    assert re.search(r"/waveforms/metadata has \S+\.metadata\.json \(\d snapshots, newer\), which no table", said)
    assert before <= rig.files()
    shutil.copy(rig.folder / "newer.db", rig.folder / "catalog.db")
    rig.maintain()
    assert rig.ids() == [f"w{n}" for n in range(batches + 1)]


def test_without_that_look_the_newer_catalog_is_ruined(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    """The seeded bug: maintenance obeys the catalog alone."""
    monkeypatch.setattr(maintain_run, "find_doubt", lambda *_, **__: None)
    set_back(rig, 1)
    published = rig.files("warehouse/ecg/waveforms/data/*.parquet")
    rig.maintain("orphans")
    assert not published <= rig.files()


def test_a_table_that_goes_on_after_it_was_set_back_does_not_make_the_rest_rubbish(rig: Rig) -> None:
    set_back(rig, 3)
    refused(rig)
    published = rig.files("warehouse/ecg/waveforms/data/*.parquet")
    rig.number = 20
    for n in range(60):
        rig.publish(f"x{n}", recorded=False)
    refused(rig)
    assert published <= rig.files()


@pytest.mark.parametrize(
    ("left", "said"),
    [
        ('{"format": 1, "prov', r"is not JSON"),
        ('{"format": 99}', r"was written by a newer Wavestitch"),
        ('{"format": 1, "proven": []}', r"lacks a field: let_go"),
    ],
)
def test_a_note_that_cannot_be_read_forgets_no_doubt(rig: Rig, left: str, said: str) -> None:
    """Taken for an empty one, and written over, it would forget versions that nothing else proves any more."""
    set_back(rig, 3)
    refused(rig)
    (note,) = rig.folder.glob("landing/ecg/.versions.json")
    kept = note.read_text()
    note.write_text(left)
    before = rig.files()
    assert re.search(rf"{note}: the note of the tables' versions {said}.*; .*put it back as it was", refused(rig))
    assert note.read_text() == left
    assert before <= rig.files()
    note.write_text(kept)
    assert "which no table of the catalog names" in refused(rig)


def test_a_new_catalog_in_the_old_folder_costs_no_file_until_that_is_said_by_name(rig: Rig) -> None:
    old = begin_anew(rig)
    said = refused(rig)
    assert "2 snapshots, of table" in said
    assert old <= rig.files()
    names = re.findall(r"--let-go (\S+)", said)
    with pytest.raises(Terminal, match=r"00000-no\.metadata\.json' is no version .* there are: 00001-"):
        rig.maintain("orphans", let_go=["00000-no.metadata.json"])
    with pytest.raises(Terminal, match="not run"):
        rig.maintain("orphans", let_go=names[:1])
    rig.maintain("orphans", let_go=names, apply=False)
    assert old <= rig.files()
    rig.maintain("orphans", let_go=names)
    assert not old & rig.files()
    assert rig.ids() == ["w9"]
    rig.maintain()


def test_what_was_let_go_by_name_stays_so_and_says_nothing_of_what_comes_later(rig: Rig) -> None:
    begin_anew(rig)
    names = re.findall(r"--let-go (\S+)", refused(rig))
    rig.maintain("snapshots", let_go=names)
    rig.maintain("snapshots")
    lose_catalog(rig)
    rig.number = 30
    rig.publish("w10")
    assert re.findall(r"--let-go (\S+)", refused(rig))[0] not in names


def test_a_tag_that_contradicts_the_head_stops_it_too(rig: Rig) -> None:
    head = rig.publish("w0")
    uuid = rig.tables.table_uuid()
    rig.log.group[Partition(0)] = GroupOffset(
        head.positions[Partition(0)].next_offset, head.next().tag(str(uuid)).encode()
    )
    before = rig.files()
    assert "partition 0 of group g shows head 2 of generation 1" in refused(rig)
    assert before <= rig.files()
    rig.log.group[Partition(0)] = GroupOffset(head.positions[Partition(0)].next_offset, head.tag(str(uuid)).encode())
    rig.maintain()


def test_what_a_commit_that_lost_or_died_has_left_is_no_doubt(rig: Rig) -> None:
    rig.publish("w0")
    shutil.copy(rig.folder / "catalog.db", rig.folder / "before.db")
    rig.publish("w1")
    lost = rig.files("warehouse/ecg/*/metadata/*.metadata.json")
    shutil.copy(rig.folder / "before.db", rig.folder / "catalog.db")
    rig.number = 7
    rig.publish("w2")  # the commit that won: it stands on the same version
    folder = rig.folder / "warehouse/ecg/waveforms/metadata"
    (folder / f"00009-{uuid4()}.metadata.json").write_text('{"table-uuid": "half wri')
    (folder / f"00000-{uuid4()}.metadata.json").write_text('{"table-uuid": "x", "last-updated-ms": 1, "snapshots": []}')
    rig.maintain()
    assert not lost <= rig.files()
    assert rig.ids() == ["w0", "w2"]


def test_a_table_that_the_catalog_names_otherwise_is_no_doubt(rig: Rig) -> None:
    rig.publish("w0")
    found = rig.tables.waveforms()
    assert found is not None
    catalog = open_catalog(rig.deployment.catalog_settings())
    catalog.create_namespace("old")
    lose_catalog(rig)
    catalog.create_namespace("old")
    for name in ("waveforms", "batches"):
        newest = max(rig.folder.glob(f"warehouse/ecg/{name}/metadata/*.metadata.json"))
        catalog.register_table(f"old.{name}", f"file://{newest}")
    rig.number = 10
    rig.publish("w9")
    rig.maintain()
    assert catalog.load_table("old.waveforms").scan().to_arrow()["waveform_id"].to_pylist() == ["w0"]


@pytest.mark.parametrize("lost", [True, False])
def test_registering_the_newest_versions_as_the_documentation_says_brings_everything_back(
    rig: Rig, lost: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_back(rig, 2)
    if lost:
        lose_catalog(rig)
    monkeypatch.setenv("WAVESTITCH_CONFIG", str(rig.folder / "wavestitch.toml"))
    (code,) = re.findall(r"```python\n(# The tables of a catalog.*?)```", DOCS.read_text(), re.DOTALL)
    exec(code.replace('"STREAM"', f'"{STREAM}"'), {})
    assert rig.ids() == ["w0", "w1", "w2"]
    assert [b.sequence for b in rig.tables.batches()] == [3, 2, 1]
    rig.maintain()
    rig.number = 40
    rig.publish("w4")
    assert went(rig.maintain("orphans"), "orphans") >= 0
    assert rig.ids() == ["w0", "w1", "w2", "w4"]


def version(file: str, *, table: str = "t", sequence: int = 1, snapshots: int = 1, parent: str = "") -> TableVersion:
    return TableVersion(file, table, sequence, snapshots, updated_ms=sequence * 10, parent=parent)


def test_which_versions_are_in_doubt() -> None:
    unnamed = [
        version("lost the race", sequence=5),
        version("somebody went on from it", sequence=4),
        version("went on", sequence=5, parent="somebody went on from it"),
        version("newer", sequence=6),
        version("long past", sequence=1),
        version("followed the past", sequence=2, parent="long past"),
        version("another's", table="u", sequence=1),
        version("never used", table="u", sequence=0, snapshots=0),
        version("known before", sequence=3),
    ]
    found = find_doubtful(unnamed, table="t", sequence=5, past_ms=30, remembered=["known before"])
    assert [v.file for v in found] == ["newer", "somebody went on from it", "known before", "another's"]
