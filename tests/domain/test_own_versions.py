"""What a table says of its own versions neither denies a commit nor takes the older ones away."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyiceberg.catalog import MetastoreCatalog
from pyiceberg.table import TableProperties

from tests.domain.maintenance_rig import Rig
from wavestitch.contracts.errors import Transient
from wavestitch.tables.catalog import open_catalog

MOST = "write.metadata.previous-versions-max"
DELETE = "write.metadata.delete-after-commit.enabled"
VERSIONS = "warehouse/ecg/{}/metadata/*.json"


@pytest.mark.parametrize("table", ["waveforms", "batches"])
def test_versions_of_the_metadata_are_kept_as_the_layout_says_and_commits_go_through(
    tmp_path: Path, table: str
) -> None:
    rig = Rig(tmp_path)
    rig.publish("w0")
    for n, said in enumerate(({MOST: "x"}, {MOST: "1"}, {MOST: "0"}, {MOST: "9" * 5000, DELETE: "maybe"}), 1):
        with open_catalog(rig.deployment.catalog_settings()).load_table(f"ecg.{table}").transaction() as change:
            change.set_properties({**said, "owner": str(n)})
        before = rig.files(VERSIONS.format(table))
        rig.publish(f"w{n}")
        assert before <= rig.files(VERSIONS.format(table))
        assert rig.ids() == [f"w{k}" for k in range(n + 1)]
    found = open_catalog(rig.deployment.catalog_settings()).load_table(f"ecg.{table}")
    assert found.properties["owner"] == "4", "what other programs note stays to be read"
    assert found.properties[DELETE] == "maybe"
    rig.maintain("snapshots")


def test_older_versions_go_when_there_are_fifty_whatever_the_table_says(tmp_path: Path) -> None:
    rig = Rig(tmp_path)
    rig.publish("w0")
    with open_catalog(rig.deployment.catalog_settings()).load_table("ecg.waveforms").transaction() as change:
        change.set_properties({MOST: "1000000", DELETE: "false"})
    for n in range(55):
        with open_catalog(rig.deployment.catalog_settings()).load_table("ecg.waveforms").transaction() as change:
            change.set_properties({"owner": str(n)})
    assert len(rig.files(VERSIONS.format("waveforms"))) <= 52


def test_no_property_that_pyiceberg_knows_denies_a_commit(tmp_path: Path) -> None:
    rig = Rig(tmp_path)
    rig.publish("w0")
    known = {v for k, v in vars(TableProperties).items() if k.isupper() and isinstance(v, str) and "." in v}
    assert {MOST, DELETE, "write.parquet.row-group-size-bytes", "commit.retry.num-retries"} <= known
    said = {**dict.fromkeys(known, "x"), "write.metadata.compression-codec": "x", "write.data.path": "x"}
    for table in ("waveforms", "batches"):
        with open_catalog(rig.deployment.catalog_settings()).load_table(f"ecg.{table}").transaction() as change:
            change.set_properties(said)
    rig.publish("w1")
    rig.maintain("snapshots", "orphans")
    assert rig.ids() == ["w0", "w1"]


def test_what_goes_wrong_before_the_catalog_is_asked_leaves_nothing_unknown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rig = Rig(tmp_path)
    rig.publish("w0")

    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(MetastoreCatalog, "_write_metadata", staticmethod(full))
        with pytest.raises(Transient, match=r"ecg\.waveforms: a file could not be .* No space left on device"):
            rig.publish("w1")
    assert rig.ids() == ["w0"]
    rig.publish("w1")
    assert rig.ids() == ["w0", "w1"]
