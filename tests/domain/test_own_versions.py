"""What a table says of its own versions neither denies a commit nor takes the older ones away."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.domain.maintenance_rig import Rig
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
