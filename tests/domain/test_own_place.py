"""Where files are written and removed is said by the settings: no table's word about its place costs anybody a file."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from pyiceberg.table import Table
from pyiceberg.table.update import SetLocationUpdate

from tests.builders.table_rows import first_head, published_row, stage
from tests.domain.maintenance_rig import DAY_MS, Rig, went
from tests.domain.rest_catalog import rest_catalog
from wavestitch.contracts.errors import BadInput, Terminal
from wavestitch.contracts.quantities import epoch_ms
from wavestitch.maintain import run as maintain_run
from wavestitch.tables.access.file_marks import Marks
from wavestitch.tables.catalog import CatalogSettings, open_catalog
from wavestitch.tables.commit import own_place
from wavestitch.tables.commit.own_files import LocalFiles, stored_files
from wavestitch.tables.commit.own_place import OwnPlace, local_path
from wavestitch.tables.stream_tables import StreamTables

OTHER = "eeg"


class TwoStreams:
    """Streams ecg and eeg in one warehouse, each with a published waveform, and a file of somebody else's beside."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.rig = folder, Rig(folder)
        self.rig.publish("w1")
        self.settings = self.rig.deployment.catalog_settings()
        other = StreamTables(self.settings, OTHER)
        other.commit(None, first_head(), [stage(other.data_folder(), "f9", [published_row("precious")])])
        (folder / "somebody-elses.parquet").write_bytes(b"x")
        self.theirs = self.files_of_others()

    def files_of_others(self) -> set[str]:
        return self.rig.files(f"warehouse/{OTHER}/**/*") | self.rig.files("*.parquet")

    def move(self, table: str, where: str) -> None:
        found = open_catalog(self.settings).load_table(f"ecg.{table}")
        with found.transaction() as change:
            change._apply((SetLocationUpdate(location=where),), ())

    def two_nights(self) -> None:
        now = epoch_ms(self.folder.stat().st_mtime_ns)
        for days in (4, 8):
            self.rig.maintain("snapshots", "orphans", now_ms=now + days * DAY_MS, orphan_age=3 * 86400)

    def read_others(self) -> list[str]:
        table = StreamTables(self.settings, OTHER).waveforms()
        assert table is not None
        return table.scan().to_arrow()["waveform_id"].to_pylist()


@pytest.mark.parametrize(
    ("table", "where"), [("waveforms", ""), ("held", "/warehouse"), ("batches", f"/warehouse/{OTHER}/waveforms")]
)
def test_a_table_that_says_it_is_elsewhere_costs_nobody_a_file(table: str, where: str, tmp_path: Path) -> None:
    streams = TwoStreams(tmp_path)
    own = streams.rig.files("warehouse/ecg/**/*")
    StreamTables(streams.settings, "ecg").stored()[1].ensure()
    streams.move(table, f"file://{tmp_path}{where}")
    (remark,) = streams.rig.deployment.tables("ecg").remarks()
    assert f"table ecg.{table} says that it is at file://{tmp_path}{where}, and belongs at" in remark
    for refused in (streams.two_nights, lambda: streams.rig.publish("w2")):
        with pytest.raises((Terminal, BadInput), match=f"ecg.{table} says that it is at .* SET LOCATION"):
            refused()
    assert streams.theirs <= streams.files_of_others()
    assert own <= streams.rig.files("warehouse/ecg/**/*")
    assert streams.read_others() == ["precious"]
    assert streams.rig.ids() == ["w1"]

    streams.move(table, f"file:{tmp_path}/warehouse/ecg/{table}/")
    streams.two_nights()
    streams.rig.publish("w2")
    assert streams.rig.ids() == ["w1", "w2"]
    assert streams.theirs <= streams.files_of_others()


def warehouse_is(rig: Rig, where: str) -> None:
    """From now on the settings say this, below the rig's folder."""
    config = rig.folder / "wavestitch.toml"
    lines = [line for line in config.read_text().splitlines() if not line.startswith("warehouse")]
    config.write_text("\n".join([*lines, f'warehouse = "{where.format(rig.folder)}"\n']))
    rig.read_settings({"WAVESTITCH_CONFIG": str(config)})


def spelled(rig: Rig, location: str) -> None:
    """The table's own place, as somebody has spelled it since."""
    with open_catalog(rig.deployment.catalog_settings()).load_table("ecg.waveforms").transaction() as change:
        change._apply((SetLocationUpdate(location=location.format(rig.folder)),), ())


SPELLINGS = {
    "a link, later its folder": ("file://{}/link", "file://{}/real", ""),
    "a folder, later a link to it": ("file://{}/real", "file://{}/link", ""),
    "two slashes, and a dot": ("file://{}/real//w/./", "file://{}/real//w/./", ""),
    "as Java writes it": ("file:{}/real", "file://{}/real", ""),
    "two slashes in the table": ("file://{}/real", "file://{}/real", "file://{}/real//ecg/waveforms"),
    "up and down in the table": ("file://{}/real", "file://{}/real", "file://{}/real/ecg/../ecg/waveforms/"),
    "a link in the table": ("file://{}/real", "file://{}/real", "file:{}/link/ecg/waveforms"),
}


def spell(rig: Rig, case: str) -> None:
    (rig.folder / "real").mkdir()
    (rig.folder / "link").symlink_to("real")
    first, then, location = SPELLINGS[case]
    warehouse_is(rig, first)
    rig.publish("w1")
    if location:
        spelled(rig, location)
    rig.publish("w2")
    warehouse_is(rig, then)
    rig.publish("w3")


@pytest.mark.parametrize("case", SPELLINGS)
def test_another_spelling_of_the_same_place_costs_no_file(case: str, tmp_path: Path) -> None:
    rig = Rig(tmp_path)
    spell(rig, case)
    assert rig.tables.remarks() == []
    orphan = next(tmp_path.glob("real/**/waveforms/data")) / "nobodys.parquet"
    orphan.write_bytes(b"x")
    assert went(rig.maintain("orphans"), "orphans") == 1
    assert not orphan.exists()
    assert rig.ids() == ["w1", "w2", "w3"]


def test_where_files_are_not_recognised_the_belt_keeps_them_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The seeded bug: names are compared as texts, on both sides; and nobody doubts the catalog for it."""
    monkeypatch.setattr(maintain_run, "find_doubt", lambda *_, **__: None)
    rig = Rig(tmp_path)
    spell(rig, "a link, later its folder")
    monkeypatch.setattr(Marks, "of_names", lambda _self, names: set(map(local_path, names)))
    monkeypatch.setattr(Marks, "listed", lambda *_: frozenset())
    files = rig.files("real/**/*")
    with pytest.raises(Terminal, match=r"ecg\.waveforms needs \d+ files that are not found in .*/metadata, e\.g\."):
        rig.maintain("orphans")
    assert rig.files("real/**/*") == files
    monkeypatch.undo()
    rig.maintain("orphans")
    assert rig.ids() == ["w1", "w2", "w3"]


def test_where_a_live_file_is_missing_no_other_goes(tmp_path: Path) -> None:
    rig = Rig(tmp_path)
    rig.publish("w1")
    found = rig.tables.waveforms()
    assert found is not None
    live = Path(local_path(next(iter(found.scan().plan_files())).file.file_path))
    live.rename(tmp_path / "aside")
    other = live.with_name("nobodys.parquet")
    other.write_bytes(b"x")
    with pytest.raises(Terminal, match=rf"needs 1 files that are not found in .*, e\.g\. '{live}'"):
        rig.maintain("orphans")
    assert other.exists()
    (tmp_path / "aside").rename(live)
    assert went(rig.maintain("orphans"), "orphans") == 1


@pytest.mark.parametrize("name", ["file://localhost{}", "file://srv{}", "file:{}", "file:///..{}"])
def test_a_name_that_readers_take_for_different_files_is_recognised_as_each(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "localhost/w").mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    assert str(tmp_path / "x") in Marks().of_names([name.format(tmp_path / "x")])
    assert str(tmp_path / "localhost/w/x") in Marks().of_names(["file://localhost/w/x"])
    assert local_path("file://srv/w/x") == "file://srv/w/x"


def test_the_other_stream_loses_its_files_where_the_table_is_believed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The seeded bug: what this file looks for can be seen."""
    streams = TwoStreams(tmp_path)
    monkeypatch.setattr(OwnPlace, "refuse_other", lambda _self, _table: None)
    monkeypatch.setattr(LocalFiles, "listed", lambda _: stored_files([tmp_path]))
    streams.move("waveforms", f"file://{tmp_path}")
    monkeypatch.setattr(StreamTables, "named_by_others", lambda _: set())
    streams.two_nights()
    assert not streams.theirs <= streams.files_of_others()


def test_what_another_table_of_the_catalog_names_stays(tmp_path: Path) -> None:
    rig = Rig(tmp_path)
    rig.publish("a")
    first = rig.tables.waveforms()
    assert first is not None
    catalog = open_catalog(rig.deployment.catalog_settings())
    catalog.create_namespace("backup")
    catalog.create_namespace("backup.deep")
    catalog.register_table("backup.deep.ecg_of_monday", first.metadata_location)
    first.delete("waveform_id == 'a'")
    rig.publish("b")
    assert went(rig.maintain("snapshots"), "snapshots") > 0
    report = rig.maintain("orphans")
    assert any("that only other tables of the catalog name stay" in k for a in report.actions for k in a.kept)
    kept = catalog.load_table("backup.deep.ecg_of_monday").scan().to_arrow()
    assert kept["waveform_id"].to_pylist() == ["a"]
    catalog.drop_table("backup.deep.ecg_of_monday")
    assert went(rig.maintain("orphans"), "orphans") > 0
    assert rig.ids() == ["b"]


def test_only_what_is_below_data_and_metadata_is_the_table_s(tmp_path: Path) -> None:
    rig = Rig(tmp_path)
    rig.publish("a")
    table = tmp_path / "warehouse/ecg/waveforms"
    (tmp_path / "linked").mkdir()
    beside = [table / "copy.parquet", table / "theirs" / "copy.parquet", tmp_path / "linked" / "copy.parquet"]
    for path in beside:
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(b"x")
    (table / "data" / "elsewhere").symlink_to(tmp_path / "linked")
    (table / "data" / "one.parquet").symlink_to(tmp_path / "linked" / "copy.parquet")
    rig.maintain("orphans")
    assert all(p.exists() for p in beside)
    assert (table / "data" / "one.parquet").is_symlink()


def test_other_folders_for_rows_and_metadata_are_not_obeyed_and_remarked(tmp_path: Path) -> None:
    streams = TwoStreams(tmp_path)
    said = {
        f"write.{what}.path": f"file://{tmp_path}/warehouse/{OTHER}/waveforms/{what}" for what in ("data", "metadata")
    }
    with open_catalog(streams.settings).load_table("ecg.waveforms").transaction() as change:
        change.set_properties({**said, "write.object-storage.enabled": "true"})
    streams.rig.publish("w2")
    assert streams.files_of_others() == streams.theirs
    assert len(streams.rig.deployment.tables("ecg").remarks()) == 3


def test_a_namespace_chooses_no_place_for_new_tables(tmp_path: Path) -> None:
    rig = Rig(tmp_path)
    open_catalog(rig.deployment.catalog_settings()).create_namespace("ecg", {"location": f"file://{tmp_path}/other"})
    rig.publish("a")
    assert not (tmp_path / "other").exists()
    assert rig.ids() == ["a"]


def test_versions_of_the_metadata_elsewhere_are_not_deleted_by_a_commit(tmp_path: Path) -> None:
    streams = TwoStreams(tmp_path)
    victim = StreamTables(streams.settings, OTHER).waveforms()
    found = streams.rig.tables.waveforms()
    assert victim is not None
    assert found is not None
    path = Path(local_path(found.metadata_location))
    metadata = json.loads(path.read_text())
    version = {"metadata-file": victim.metadata_location, "timestamp-ms": metadata["last-updated-ms"]}
    own = {**version, "metadata-file": found.metadata_location}
    # Another name: the versions that this process has read are remembered by theirs.
    other = path.with_name(f"00009-{path.name[6:]}")
    other.write_text(json.dumps({**metadata, "metadata-log": [version, *[own] * 50]}))
    point(streams.settings, found, f"file://{other}")
    streams.rig.publish("w2")
    assert streams.read_others() == ["precious"]
    assert streams.files_of_others() == streams.theirs


def point(settings: CatalogSettings, table: Table, metadata: str) -> None:
    catalog = open_catalog(settings)
    catalog.drop_table(table.name())
    catalog.register_table(table.name(), metadata)


def test_over_rest_orphans_go_by_the_same_rules(tmp_path: Path) -> None:
    with rest_catalog(tmp_path / "served") as (settings, _):
        tables = StreamTables(settings, "ecg")
        tables.commit(None, first_head(), [stage(tables.data_folder(), "f1", [published_row("a")])])
        other = StreamTables(settings, OTHER)
        other.commit(None, first_head(), [stage(other.data_folder(), "f2", [published_row("b")])])
        assert any(f.endswith("f2.parquet") for f in tables.named_by_others())
        assert not any("/ecg/" in f for f in tables.named_by_others())


@pytest.mark.parametrize("warehouse", ["gs://bucket/w", "production", "/srv/w"])
def test_a_warehouse_of_another_kind_is_refused_with_what_to_write(warehouse: str) -> None:
    with pytest.raises(BadInput, match=r"`warehouse` of \[tables\] must be one, e\.g\. file:///srv"):
        own_place.OwnPlace.of(warehouse, "ecg", "waveforms").folder()
