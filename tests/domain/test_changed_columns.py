"""What any engine can do to the columns of a table, by its metadata alone.

No row is altered by it, and whoever did it is told what it stops, and how it is set back.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from pyiceberg.table.update.schema import UpdateSchema
from pyiceberg.types import DoubleType, LongType, StringType

from tests.builders.records import letter, metadata
from tests.deployment_rig import STREAM
from tests.domain.maintenance_rig import Rig
from tests.hostile.landed_deployment import FakeDeployment, landed_edges, make_landed_deployment
from wavestitch.batch.run import RunOptions, Silent, run_batch
from wavestitch.contracts.errors import BadInput, Terminal
from wavestitch.contracts.quantities import Partition
from wavestitch.tables.maintenance.verify_waveforms import verify_waveforms
from wavestitch.tables.read_waveforms import read_waveforms

T = 1_767_614_400_000
YAML = "limits: {max_clock_skew: 36500 d}\n"
Change = Callable[[UpdateSchema], object]
HARMLESS: dict[str, Change] = {
    "a comment": lambda to: to.update_column("source", doc="who recorded it"),
    "another order": lambda to: to.move_first("units"),
    "may lack values": lambda to: to.make_column_optional("source"),
}
THEIRS: dict[str, tuple[str, Change]] = {
    "added": ("column quality of table ecg.waveforms is none of", lambda to: to.add_column("quality", StringType())),
    "added inside": (
        "column chunks.element.note of table ecg.waveforms is none of",
        lambda to: to.add_column(("chunks", "element", "note"), StringType()),
    ),
    "widened": (
        "column chunks.element.length of table ecg.waveforms is of type long, the table was made with int",
        lambda to: to.update_column(("chunks", "element", "length"), field_type=LongType()),
    ),
}
LOST: dict[str, tuple[str, Change]] = {
    "renamed": (
        r"ALTER TABLE ecg\.waveforms RENAME COLUMN unit TO units",
        lambda to: to.rename_column("units", "unit"),
    ),
    "renamed inside": (
        r"column chunks\.element\.offset .* RENAME COLUMN chunks\.element\.place TO offset",
        lambda to: to.rename_column(("chunks", "element", "offset"), "place"),
    ),
    "dropped": ("column adc_gain of table ecg.waveforms was dropped", lambda to: to.delete_column("adc_gain")),
}


@pytest.fixture
def rig(tmp_path: Path) -> Rig:
    rig = Rig(tmp_path)
    for n in range(5):
        rig.publish(f"w{n}")
    return rig


def alter(rig: Rig, change: Change) -> None:
    table = rig.tables.stored()[0]._catalog.load_table("ecg.waveforms")
    with table.update_schema(allow_incompatible_changes=True) as columns:
        change(columns)


def all_is_well(rig: Rig, *ids: str) -> None:
    found = verify_waveforms(rig.tables.waveforms())
    assert (found.rows, found.altered) == (len(ids), ())
    assert sorted(read_waveforms(rig.tables)["waveform_id"].to_pylist()) == sorted(ids)


@pytest.mark.parametrize("change", HARMLESS.values(), ids=HARMLESS)
def test_what_says_nothing_of_values_changes_nothing(rig: Rig, change: Change) -> None:
    alter(rig, change)
    assert rig.tables.remarks() == []
    rig.publish("later")
    all_is_well(rig, *(f"w{n}" for n in range(5)), "later")
    assert rig.maintain("compact", small_files=5).actions[0].facts["rewritten"] == 6 + 6
    all_is_well(rig, *(f"w{n}" for n in range(5)), "later")


@pytest.mark.parametrize(("said", "change"), THEIRS.values(), ids=THEIRS)
def test_a_column_of_somebody_s_is_left_to_them_and_its_table_s_small_files_too(
    rig: Rig, said: str, change: Change
) -> None:
    alter(rig, change)
    (remark,) = rig.tables.remarks()
    assert said in remark
    rig.publish("later")
    all_is_well(rig, *(f"w{n}" for n in range(5)), "later")
    (action,) = rig.maintain("compact", small_files=5).actions
    assert action.facts["rewritten"] == 6, "of the history, which is put together as ever"
    assert action.kept == (f"small files stay as they are: {remark}",)
    if drops := re.search(r"ALTER TABLE ecg\.waveforms DROP COLUMN (\S+) ends it", remark):
        alter(rig, lambda to: to.delete_column(tuple(drops[1].split("."))))
        assert rig.tables.remarks() == []
        assert rig.maintain("compact", small_files=5).actions[0].facts["rewritten"] > 0


@pytest.mark.parametrize(("said", "change"), LOST.values(), ids=LOST)
def test_a_column_of_ours_that_is_lost_is_named_with_what_sets_it_back(rig: Rig, said: str, change: Change) -> None:
    alter(rig, change)
    for ask in (lambda: rig.publish("later"), rig.tables.waveforms, lambda: rig.maintain("compact")):
        with pytest.raises((BadInput, Terminal), match=said):
            ask()
    assert len(rig.tables.remarks()) == 1
    renames = re.search(r"RENAME COLUMN (\S+) TO ([^)]+)\)", rig.tables.remarks()[0])
    if renames is None:
        alter(rig, lambda to: to.add_column("adc_gain", DoubleType()))
        with pytest.raises(BadInput, match="one that is added anew is another"):
            rig.publish("later")
    else:
        alter(rig, lambda to: to.rename_column(tuple(renames[1].split(".")), renames[2]))
        assert rig.tables.remarks() == []
        rig.publish("later")
        all_is_well(rig, *(f"w{n}" for n in range(5)), "later")


@pytest.mark.parametrize("mapping", ["[]", "nothing", '[{"names":["units"],"field-id":9}]'])
def test_names_of_columns_that_say_otherwise_are_named_and_not_obeyed(rig: Rig, mapping: str) -> None:
    table = rig.tables.stored()[0]._catalog.load_table("ecg.waveforms")
    with table.transaction() as change:
        change.set_properties({"schema.name-mapping.default": mapping})
    (remark,) = rig.tables.remarks()
    assert remark.startswith("property schema.name-mapping.default of table ecg.waveforms is")
    rig.publish("later")
    all_is_well(rig, *(f"w{n}" for n in range(5)), "later")


class TestADroppedColumn:
    """Both ways out that its refusal names, by a whole deployment."""

    @pytest.fixture
    def whole(self, tmp_path: Path) -> FakeDeployment:
        deployment = make_landed_deployment(tmp_path, stream_yaml=YAML, partitions=1).deployment
        assert isinstance(deployment, FakeDeployment)
        self.batch_of(deployment, "w0", "w1")
        shutil.copy(tmp_path / "catalog.db", tmp_path / "catalog.from-before")
        with deployment.tables(STREAM).stored()[0].load().update_schema(allow_incompatible_changes=True) as columns:
            columns.delete_column("units")
        with pytest.raises(BadInput, match="restore the catalog from before, or declare the stream under another name"):
            self.batch_of(deployment, "later")
        return deployment

    @staticmethod
    def batch_of(deployment: FakeDeployment, *names: str, stream: str = STREAM) -> None:
        for name in names:
            one = letter(name, 0, b"\x01\x00", meta=metadata(T, sample_count=None), count=1)
            deployment.memory.append(Partition(0), T, one.key, one.headers, one.value)
        run_batch(landed_edges(deployment, stream), RunOptions(), watcher=Silent())

    @staticmethod
    def read(deployment: FakeDeployment, stream: str = STREAM) -> list[str]:
        return sorted(read_waveforms(deployment.tables(stream))["waveform_id"].to_pylist())

    def test_the_catalog_from_before_has_all_and_goes_on(self, whole: FakeDeployment, tmp_path: Path) -> None:
        shutil.copy(tmp_path / "catalog.from-before", tmp_path / "catalog.db")
        self.batch_of(whole)
        assert self.read(whole) == ["later", "w0", "w1"]

    def test_under_another_name_with_a_group_of_its_own_all_that_the_topic_has_is_read(
        self, whole: FakeDeployment, tmp_path: Path
    ) -> None:
        definition = f"topic: {whole.memory.name}\ngroup: of-its-own\nstart: earliest\n{YAML}"
        (tmp_path / "streams" / "second.yaml").write_text(definition)
        whole.memory.group = {}  # it knows of one group: this one has no offsets yet
        self.batch_of(whole, stream="second")
        assert self.read(whole, "second") == ["later", "w0", "w1"]
