"""The DAG `rewind`, carried out in this process against a real broker and real tables."""

from __future__ import annotations

from typing import Any

import pytest

from tests.stack.airflow_home import load_dags
from tests.stack.dag_lab import Lab, Run, outcome_of, waveform
from wavestitch.batch.deployment_edges import DeploymentEdges
from wavestitch.batch.plan import PlanRequest
from wavestitch.batch.steps import step_plan


def rewind(**conf: Any) -> Run:
    return outcome_of(load_dags().dags["rewind"].test(run_conf={"stream": "ecg", **conf}, logical_date=None))


@pytest.fixture
def planned(lab: Lab) -> Lab:
    """A stream whose head stands at the beginning of what was sent."""
    lab.send(waveform(1))
    step_plan(DeploymentEdges(lab.deployment, "ecg"), PlanRequest())
    return lab


def test_a_dry_run_shows_what_would_move_and_moves_nothing(planned: Lab) -> None:
    shown = rewind(to="latest")
    assert shown.state == "success"
    found = shown.xcoms["rewind.return_value"]
    assert found["applied"] is False
    assert sum(end for _, end in found["moves"].values()) == planned.sent
    assert sum(end - start for _, start, end in found["skipped"]) == planned.sent
    assert planned.positions() == {0: 0, 1: 0}


def test_it_moves_only_when_it_is_told_to_with_a_reason_and_an_accepted_loss(planned: Lab) -> None:
    for refused in ({"apply": True}, {"apply": True, "why": "a bad day"}, {"accept_skip": True, "apply": True}):
        assert rewind(to="latest", **refused).tasks["rewind"] == ("failed", 1), refused
        assert planned.positions() == {0: 0, 1: 0}

    applied = rewind(to="latest", apply=True, accept_skip=True, why="a bad day")
    assert applied.state == "success"
    assert sum(planned.positions().values()) == planned.sent
    assert planned.group() == planned.positions()
    head = planned.deployment.tables("ecg").head()
    assert head is not None
    assert head.generation == 2
    assert "by dag_test: a bad day" in head.note

    assert rewind(to="previous", apply=True, why="undo").state == "success"
    assert planned.positions() == {0: 0, 1: 0}


def test_a_place_that_nobody_can_go_to_is_refused_with_what_there_is(planned: Lab, capfd: Any) -> None:
    assert rewind(to="nowhere").tasks["rewind"] == ("failed", 1)
    out = capfd.readouterr()
    assert "is not a place to go; allowed are earliest" in out.out + out.err
