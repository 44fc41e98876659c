"""A batch on the terminal: of its audit what is not zero, and all of it where that is asked for."""

from __future__ import annotations

import pytest

from tests.builders.heads import make_row
from wavestitch import console
from wavestitch.contracts.reasons import Fate

ALL = ["planned", "holes", "read", "carried in", *(fate.value.replace("_", " ") for fate in Fate)]


def shown(capsys: pytest.CaptureFixture[str], *, whole: bool) -> tuple[list[str], str]:
    """The audit's rows by name, and everything that was printed."""
    zero = dict.fromkeys(("holes", "carried_in", *(fate.value for fate in Fate)), 0)
    partitions = {
        0: {**zero, "planned": 4, "read": 4, "published": 4},
        1: {**zero, "planned": 2, "read": 2, "replay": 2},
    }
    console.show_batch(make_row(plan_id="a" * 32, partitions=partitions), whole=whole)
    said = capsys.readouterr().out
    return [name for name in ALL if any(line.lstrip("│ ┃").startswith(name) for line in said.splitlines())], said


def test_of_the_audit_what_is_zero_in_every_partition_is_left_out_which_is_said(
    capsys: pytest.CaptureFixture[str],
) -> None:
    names, said = shown(capsys, whole=False)
    assert names == ["planned", "read", "published", "replay"]
    assert f"wavestitch show {'a' * 16} --whole" in said


def test_the_whole_table_is_one_flag_away(capsys: pytest.CaptureFixture[str]) -> None:
    names, said = shown(capsys, whole=True)
    assert names == ALL
    assert "--whole" not in said
