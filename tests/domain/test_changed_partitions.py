"""What any engine can do to the partitions of a table, by its metadata alone: told, and a batch that stops says why."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from pyiceberg.transforms import IdentityTransform

from tests.builders.table_rows import published_row, stage
from tests.domain.maintenance_rig import STREAM, Rig
from wavestitch.contracts.errors import BadInput

SAID = (
    r"table ecg\.waveforms is partitioned by day\(start_time\), source, and was made to be by day\(start_time\): .* "
    r"\(ALTER TABLE ecg\.waveforms DROP PARTITION FIELD by_source\)"
)


def publish(rig: Rig, name: str, *sources: str) -> None:
    base = rig.tables.head()
    assert base is not None
    rows = [published_row(f"{name} {source}", source=source) for source in sources]
    rig.record(rig.tables.commit(base, base.next(decision=name), [stage(rig.tables.data_folder(), name, rows)]))


def test_a_batch_that_another_division_does_not_take_says_how_it_is_set_back(tmp_path: Path) -> None:
    rig = Rig(tmp_path)
    rig.publish("a")
    assert rig.tables.remarks() == []
    table = rig.tables.stored()[0]._catalog.load_table(f"{STREAM}.waveforms")
    with table.update_spec() as spec:
        spec.add_field("source", IdentityTransform(), "by_source")
    (said,) = rig.tables.remarks()
    assert re.search(SAID, said)
    with pytest.raises(BadInput, match=SAID):
        publish(rig, "two", "s1", "s2")
    publish(rig, "one", "s1")
    with table.update_spec() as spec:
        spec.remove_field("by_source")
    assert rig.tables.remarks() == []
    publish(rig, "again", "s1", "s2")
    assert sorted(rig.ids()) == ["a", "again s1", "again s2", "one s1"]


def test_one_that_is_gone_is_named_too(tmp_path: Path) -> None:
    rig = Rig(tmp_path)
    rig.publish("a")
    table = rig.tables.stored()[0]._catalog.load_table(f"{STREAM}.waveforms")
    with table.update_spec() as spec:
        spec.remove_field("start_time_day")
    (said,) = rig.tables.remarks()
    assert "is partitioned by nothing" in said
    assert "ADD PARTITION FIELD day(start_time)" in said
    rig.publish("b")
    assert sorted(rig.ids()) == ["a", "b"]
