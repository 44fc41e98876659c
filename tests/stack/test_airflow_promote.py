"""Promotion in a real Airflow, by REST: compared, approved of by somebody, done as it was shown, taken back."""

from __future__ import annotations

import json
from typing import Any

import pytest
from typer.testing import CliRunner

from tests.builders.altered_rows import alter_row
from tests.builders.published_bytes import published_bytes
from tests.faults.in_process import run_here
from tests.stack.approving import answer, approve, ask
from tests.stack.live_airflow import LiveAirflow, recorded
from wavestitch.batch.plan import PlanRequest
from wavestitch.batch.run import RunOptions
from wavestitch.cli import app
from wavestitch.contracts.errors import BadInput

START_NS = 1_577_836_800_000_000_000
NOT_C1 = {"type": "expect_column_values_to_not_be_in_set", "kwargs": {"column": "waveform_id", "value_set": ["c1"]}}
DECLARED: dict[str, Any] = {"limits": {"max_clock_skew": "36500 d"}}


def test_what_another_tool_has_changed_and_what_is_refused_by_now_is_promoted_once_somebody_approves_and_taken_back(
    live: LiveAirflow, monkeypatch: pytest.MonkeyPatch
) -> None:
    stream = live.declare("cliff", DECLARED, flows=["promote"])
    tables = stream.deployment.tables("cliff")
    stream.send(*(recorded(f"c{n}", start_ns=START_NS) for n in range(2)))
    run_here(stream.deployment, "cliff", RunOptions(PlanRequest()))
    sent = published_bytes(tables)
    path = live.folder / "streams" / "cliff.yaml"
    path.write_text(json.dumps({**json.loads(path.read_text()), "expectations": [NOT_C1]}))
    table = tables.waveforms()
    assert table is not None
    samples = table.scan(row_filter="waveform_id == 'c0'").to_arrow()["samples"][0].as_py()
    alter_row(table, "c0", samples=[samples[0] + 1, *samples[1:]])
    altered = sorted(published_bytes(tables))
    assert altered != sorted(sent)

    why = {"why": "a tool has changed one"}
    with live.airflow.login("viewer") as viewer, pytest.raises(BadInput, match="403"):
        viewer.trigger("promote_cliff", why)
    run_id, shown = ask(live, "promote_cliff", why)
    assert "1 replaced, 0 newly published, 1 taken out" in shown
    assert sorted(published_bytes(tables)) == altered, "nothing is changed before somebody approves"
    (told,) = live.told(run_id)
    assert told["subject"] == "Replace what cliff has published?"

    with pytest.raises(BadInput, match="403"):
        answer(live, "viewer", "promote_cliff", run_id, "Approve")
    assert approve(live, "promote_cliff", run_id) == "success"
    assert published_bytes(tables) == [row for row in sent if row[0] == "c0"]
    assert stream.positions() == {0: 4}
    head = tables.head()
    assert head is not None
    assert "op" in head.note
    assert "admin" in head.note

    monkeypatch.setenv("WAVESTITCH_CONFIG", str(live.config))
    undone = CliRunner().invoke(app, ["undo", "cliff", "--of", str(head.sequence), "--apply", "--json"])
    assert undone.exit_code == 0, undone.output
    assert stream.published() == ["c0", "c1"]
    assert dict(published_bytes(tables))["c1"] == dict(sent)["c1"]
