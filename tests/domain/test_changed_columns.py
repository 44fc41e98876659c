"""What any engine can do to the columns of a table, by its metadata alone.

No row is altered by it, and whoever did it is told what it stops, and how it is set back.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from pyiceberg.table.update.schema import UpdateSchema
from pyiceberg.types import DoubleType, LongType, StringType

from tests.domain.maintenance_rig import Rig
from wavestitch.contracts.errors import BadInput, Terminal
from wavestitch.tables.maintenance.verify_waveforms import verify_waveforms
from wavestitch.tables.read_waveforms import read_waveforms

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
LOST: dict[str, tuple[str, Change, Change | None]] = {
    "renamed": (
        r"ALTER TABLE ecg\.waveforms RENAME COLUMN unit TO units",
        lambda to: to.rename_column("units", "unit"),
        lambda to: to.rename_column("unit", "units"),
    ),
    "renamed inside": (
        r"column chunks\.element\.offset .* RENAME COLUMN chunks\.element\.place TO offset",
        lambda to: to.rename_column(("chunks", "element", "offset"), "place"),
        lambda to: to.rename_column(("chunks", "element", "place"), "offset"),
    ),
    "dropped": ("column adc_gain of table ecg.waveforms was dropped", lambda to: to.delete_column("adc_gain"), None),
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


@pytest.mark.parametrize(("said", "change", "back"), LOST.values(), ids=LOST)
def test_a_column_of_ours_that_is_lost_is_named_with_what_sets_it_back(
    rig: Rig, said: str, change: Change, back: Change | None
) -> None:
    alter(rig, change)
    for ask in (lambda: rig.publish("later"), rig.tables.waveforms, lambda: rig.maintain("compact")):
        with pytest.raises((BadInput, Terminal), match=said):
            ask()
    assert len(rig.tables.remarks()) == 1
    if back is None:
        alter(rig, lambda to: to.add_column("adc_gain", DoubleType()))
        with pytest.raises(BadInput, match="one that is added anew is another"):
            rig.publish("later")
    else:
        alter(rig, back)
        rig.publish("later")
        all_is_well(rig, *(f"w{n}" for n in range(5)), "later")
