"""On real tables and folders, too, a batch's stages leave exactly what they name, and nothing happens beside them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from tests.builders.records import letter, metadata
from tests.deployment_rig import STREAM
from tests.domain.observed_effects import Observer, look
from tests.hostile.landed_deployment import FakeDeployment, landed_edges, make_landed_deployment, run_landed_batch
from wavestitch import terminal
from wavestitch.batch.deployment import Deployment
from wavestitch.batch.held_decision import carry_out, plan_held
from wavestitch.batch.held_waveforms import Selection, select_held
from wavestitch.batch.rewind import Target, apply_rewind, plan_rewind
from wavestitch.cli import app
from wavestitch.contracts.batch_stages import BATCH, HELD, PLANNING
from wavestitch.contracts.errors import GateClosed
from wavestitch.contracts.held_choice import HeldAction
from wavestitch.contracts.quantities import Partition

T = 1_767_614_400_000
LONG = """expectations:
  - type: expect_column_values_to_be_between
    kwargs: {column: sample_count, min_value: 2}
    severity: critical
"""
NEVER = """expectations:
  - type: expect_table_row_count_to_equal
    kwargs: {value: 77}
    severity: critical
"""


@pytest.fixture
def deployment(tmp_path: Path) -> FakeDeployment:
    made = make_landed_deployment(tmp_path, stream_yaml=LONG, partitions=1).deployment
    assert isinstance(made, FakeDeployment)
    return made


def send(deployment: FakeDeployment, name: str, *values: bytes, count: int) -> None:
    for seq, value in enumerate(values):
        one = letter(name, seq, value, meta=metadata(T, sample_count=None), count=count)
        deployment.memory.append(Partition(0), T, one.key, one.headers, one.value)


def states(deployment: FakeDeployment) -> set[str]:
    found = select_held(deployment.tables(STREAM), deployment.stream(STREAM), Selection())
    return {state.value for one in found for state in one.states}


def test_every_stage_leaves_what_it_names_and_nothing_else(
    deployment: FakeDeployment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    observer = Observer(lambda: look(deployment, STREAM, tmp_path, group=deployment.memory.group))
    observer.watch(monkeypatch)
    for name in ("w", "x"):
        send(deployment, name, b"\x01\x00", b"\x02\x00", count=2)
    send(deployment, "short", b"\x01\x00", count=1)  # fails its expectation: its file is written anew without it
    send(deployment, "open", b"\x01\x00", count=2)
    observer.begin()
    run_landed_batch(deployment)
    observer.end()
    assert observer.order == ["commit head", "show head", "keep plan", *(s.name for s in BATCH)]
    send(deployment, "v", b"\x01\x00", b"\x02\x00", count=2)
    run_landed_batch(deployment)
    observer.end()
    assert observer.order[-len(BATCH) - 2 :] == ["record history", "keep plan", *(s.name for s in BATCH)]
    closing = make_landed_deployment(tmp_path / "closing", stream_yaml=NEVER, partitions=1).deployment
    assert isinstance(closing, FakeDeployment)
    send(closing, "w", b"\x01\x00", count=1)
    observer.look = lambda: look(closing, STREAM, tmp_path / "closing", group=closing.memory.group)
    observer.begin()
    with pytest.raises(GateClosed):
        run_landed_batch(closing)
    observer.end()
    assert observer.order[-1] == "validate"
    assert {s.name: sorted(left) for s, left in observer.left.items()} == {
        s.name: sorted(s.effects) for s in (*PLANNING, *BATCH)
    }
    assert observer.beside == set()


def test_what_a_closed_gate_stopped_is_read_from_what_the_batch_left(tmp_path: Path) -> None:
    deployment = make_landed_deployment(tmp_path, stream_yaml=NEVER, partitions=1).deployment
    assert isinstance(deployment, FakeDeployment)
    for name in ("w", "x"):
        send(deployment, name, b"\x01\x00", count=1)
    edges = landed_edges(deployment)
    with pytest.raises(GateClosed):
        run_landed_batch(deployment)
    (plan,) = edges.closed_gates()
    assert edges.stopped(plan) == {"w", "x"}
    folder = deployment.folder(STREAM, plan.plan_id).path
    (report,) = folder.glob("report-*.json")
    report.unlink()
    assert edges.stopped(plan) is None, "nobody can say any more"


def test_rewinds_and_decisions_leave_no_more_than_they_name(
    deployment: FakeDeployment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    send(deployment, "w", b"\x01\x00", b"\x02\x00", count=2)
    send(deployment, "open", b"\x01\x00", count=2)
    run_landed_batch(deployment)
    observer = Observer(lambda: look(deployment, STREAM, tmp_path, group=deployment.memory.group))
    observer.watch(monkeypatch)
    edges = landed_edges(deployment)
    observer.begin()
    found = plan_rewind(edges.stream, Target("earliest"), log=edges.log, tables=edges.tables, who="o", why="y")
    observer.end()
    apply_rewind(edges.stream, found, accept_skip=False, log=edges.log, tables=edges.tables)
    observer.end()
    assert observer.order == [s.name for s in found.stages]
    observer.begin()
    decided = plan_held(edges, HeldAction.DISCARD, Selection(ids=("open",)), who="o", why="y")
    observer.end()
    carry_out(edges, decided.plan)
    observer.end()
    assert observer.order == [s.name for s in decided.stages] == ["keep plan", *(s.name for s in HELD)]
    assert observer.beside == set()
    for stage, left in observer.left.items():
        assert left <= stage.effects, f"{stage.name}: names {sorted(stage.effects)}, left {sorted(left)}"


def test_a_discard_is_undone_from_the_command_line(
    deployment: FakeDeployment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    send(deployment, "open", b"\x01\x00", count=2)
    run_landed_batch(deployment)
    edges = landed_edges(deployment)
    before = states(deployment)
    carry_out(edges, plan_held(edges, HeldAction.DISCARD, Selection(ids=("open",)), who="o", why="y").plan)
    monkeypatch.setenv("WAVESTITCH_CONFIG", str(tmp_path / "wavestitch.toml"))
    monkeypatch.setattr(terminal.out, "width", 400)
    monkeypatch.setattr(Deployment, "log", edges.log)  # no broker is waited for

    assert states(deployment) == {"discarded"}
    shown = CliRunner().invoke(app, ["undo", STREAM, "--why", "it was right"])
    assert shown.exit_code == 0, shown.output
    assert "restore: 1 waveforms" in shown.output
    assert "undone by: `held discard` of 1 waveforms" in " ".join(shown.output.split())
    assert states(deployment) == {"discarded"}
    newest = edges.tables.heads()[0].sequence
    assert f"undo of head {newest}; do it with --of {newest} --apply" in " ".join(shown.output.split())
    unsaid = CliRunner().invoke(app, ["undo", STREAM, "--why", "it was right", "--apply"])
    assert unsaid.exit_code != 0, "another head may be the newest by now"
    assert f"wavestitch undo {STREAM} --of {newest} --apply" in said(unsaid)
    another = CliRunner().invoke(app, ["undo", STREAM, "--of", str(newest - 1), "--apply"])
    assert another.exit_code != 0
    assert f"head {newest - 1} was to be undone, and the newest is {newest} by now" in said(another)
    assert states(deployment) == {"discarded"}
    done = CliRunner().invoke(app, ["undo", STREAM, "--why", "it was right", "--of", str(newest), "--apply"])
    assert done.exit_code == 0, done.output
    assert states(deployment) == before != {"discarded"}


def said(done: Any) -> str:
    return " ".join(f"{done.output} {done.exception}".split())
