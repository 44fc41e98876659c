"""The page of all operations: a line for each, and a table with a row for each stage."""

from __future__ import annotations

from wavestitch.contracts.operations import operations, stages_page


def test_every_operation_has_a_line_and_every_stage_a_row_of_one_table() -> None:
    lines = stages_page().split("\n")
    head = lines.index("| stage | what it does | what it leaves | undo |")
    assert lines[head - 1 : head + 2 : 2] == ["", "|---|---|---|---|"]
    assert [line.partition(": ")[0] for line in lines[: head - 1]] == [f"- {name}" for name in operations()]
    stages = dict.fromkeys(stage for kinds in operations().values() for stage in kinds)
    rows = [line.strip("| ").split(" | ") for line in lines[head + 2 :]]
    assert [row[:2] for row in rows] == [[stage.name, stage.does] for stage in stages]
    assert all(line.count("|") == 5 for line in lines[head:])
