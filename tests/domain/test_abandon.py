"""A batch at its gate is given up for good: no head names it any more, whatever is left of its folder."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.builders.sending import send_chunk
from tests.deployment_rig import STREAM, DeploymentRig, plan_on
from tests.hostile.landed_deployment import FakeDeployment, landed_edges, make_landed_deployment, run_landed_batch
from wavestitch.batch.abandon import abandon_batch
from wavestitch.batch.gate_in_head import stand_at_gate
from wavestitch.contracts.errors import Altered, BadInput, Fenced, Refused
from wavestitch.contracts.position import AtGate, Head
from wavestitch.contracts.quantities import EpochMs

T = 1_767_614_400_000


@pytest.fixture
def whole(tmp_path: Path) -> DeploymentRig:
    """One batch is committed; something else has come since."""
    made = make_landed_deployment(tmp_path, stream_yaml="limits: {max_clock_skew: 36500 d}\n", partitions=1)
    for name in "ab":
        send_chunk(fake(made).memory, name, at_ms=T, start_ms=T, count=1)
        if name == "a":
            run_landed_batch(fake(made))
    return made


def fake(whole: DeploymentRig) -> FakeDeployment:
    assert isinstance(whole.deployment, FakeDeployment)
    return whole.deployment


def stopped(whole: DeploymentRig) -> str:
    """A batch of what has come since, which the head names at its gate."""
    deployment = fake(whole)
    plan_id = plan_on(landed_edges(deployment)).plan_id
    plan = deployment.folder(STREAM, plan_id).plan()
    stand_at_gate(plan, log=deployment.log, tables=deployment.tables(STREAM))
    assert head(whole).at_gate == (AtGate(plan_id, moves=True),)
    return plan_id


def head(whole: DeploymentRig) -> Head:
    found = whole.deployment.tables(STREAM).head()
    assert found is not None
    return found


def abandon(whole: DeploymentRig, plan_id: str, why: str = "the sensor was off") -> None:
    abandon_batch(whole.deployment, STREAM, plan_id, who="ada", why=why, at_ms=EpochMs(T))


def test_given_up_no_head_names_it_and_nobody_carries_it_through(whole: DeploymentRig) -> None:
    plan_id = stopped(whole)
    abandon(whole, plan_id)
    assert head(whole).at_gate == ()
    assert head(whole).note == f"batch {plan_id[:16]} at its gate is given up by ada: the sensor was off"
    with pytest.raises(Fenced, match=r"was abandoned by ada \(the sensor was off\)"):
        whole.deployment.folder(STREAM, plan_id).plan()


def test_one_whose_folder_is_gone_is_given_up_by_the_head_alone_and_only_while_that_names_it(
    whole: DeploymentRig,
) -> None:
    plan_id = stopped(whole)
    shutil.rmtree(whole.deployment.folder(STREAM, plan_id).path)
    abandon(whole, plan_id)
    assert head(whole).at_gate == ()
    with pytest.raises(BadInput, match="no plan in"):
        abandon(whole, plan_id)


def test_so_is_one_in_whose_folder_somebody_has_put_another_plan(whole: DeploymentRig) -> None:
    other = whole.deployment.folder(STREAM, plan_on(landed_edges(fake(whole))).plan_id).path / "plan.json"
    plan_id = stopped(whole)
    kept = whole.deployment.folder(STREAM, plan_id).path / "plan.json"
    kept.unlink()
    shutil.copy(other, kept)
    abandon(whole, plan_id)
    assert head(whole).at_gate == ()
    with pytest.raises(Altered, match="put there by somebody else"):
        abandon(whole, plan_id)


def test_what_is_committed_is_not_given_up_nor_is_anything_without_a_reason(whole: DeploymentRig) -> None:
    committed = head(whole).plan_id
    with pytest.raises(Refused, match="is committed: there is nothing left to abandon"):
        abandon(whole, committed)
    plan_id = stopped(whole)
    with pytest.raises(BadInput, match="say why this batch is abandoned"):
        abandon(whole, plan_id, " ")
    assert head(whole).at_gate == (AtGate(plan_id, moves=True),)
