"""What Airflow says of the batches before decides whether a batch of a backfill waits for its turn, or ends."""

from __future__ import annotations

import importlib
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest

from tests.stack.airflow_home import prepare_airflow
from wavestitch.contracts.errors import Refused, Transient

prepare_airflow()

NOT_YET = Transient("b comes after a", before="a", ahead=2)
STAGES = ("read", "reassemble", "validate", "answered", "publish", "commit_offsets")


@pytest.fixture
def turns() -> Any:
    return importlib.import_module("wavestitch.flows.turns")


@dataclass
class Task:
    """Of a mapped group, as Airflow hands it to its own code. `others`: states by number of the map."""

    others: dict[int, tuple[str | None, ...]] = field(default_factory=dict)
    map_index: int = 2
    task_id: str = "batch.read"
    dag_id: str = "backfill_ecg"
    run_id: str = "run"
    task: Any = field(default_factory=lambda: SimpleNamespace(retry_delay=timedelta(minutes=1)))

    def get_task_states(self, *, dag_id: str, run_ids: list[str], map_index: int, task_ids: list[str]) -> Any:
        assert (dag_id, run_ids, task_ids) == (self.dag_id, [self.run_id], [f"batch.{one}" for one in STAGES])
        states = zip(STAGES, self.others.get(map_index, ()), strict=False)
        found = {f"batch.{stage}_{map_index}": state for stage, state in states}
        return {self.run_id: found} if found else {}


@pytest.mark.parametrize(
    "states",
    [
        (None,),
        ("running", None, None, None, None),
        ("up_for_retry", None, None, None, None),
        ("success", "success", "success", None, None, None),
        ("success", "success", "success", "success", "up_for_retry", None),
        ("up_for_reschedule", None, None, None, None),
    ],
)
def test_while_the_first_that_is_not_finished_is_under_way_it_asks_again_the_later_the_farther_it_is(
    turns: Any, states: tuple[str | None, ...]
) -> None:
    with pytest.raises(turns.AirflowRescheduleException) as later:
        turns.await_turn(Task({0: states}), NOT_YET)
    wait = later.value.reschedule_date - datetime.now(UTC)
    assert timedelta(seconds=50) < wait <= timedelta(seconds=60)


@pytest.mark.parametrize(
    ("states", "why"),
    [
        (("failed", *("upstream_failed",) * 4, None), "Its task read is failed"),
        (("success", "success", "success", "failed", "upstream_failed"), "Its task answered is failed"),
        (("success", "success", "failed", None, None), "Its task validate is failed"),
        (("success", "skipped", None, None, None), "Its task reassemble is skipped"),
        (("success",) * 6, "No task of this run carries it through"),
        ((), "No task of this run carries it through"),
    ],
)
def test_behind_one_that_has_ended_without_being_finished_it_ends_at_once(
    turns: Any, states: tuple[str, ...], why: str
) -> None:
    with pytest.raises(Refused, match=f"b comes after a. {why}"):
        turns.await_turn(Task({0: states, 1: ("up_for_reschedule",)}), NOT_YET)


def test_behind_one_of_another_group_it_ends_at_once(turns: Any) -> None:
    with pytest.raises(Refused, match="No task of this run carries it through"):
        turns.await_turn(Task({-1: ("running",)}, map_index=1), NOT_YET)


@pytest.mark.parametrize("state", [None, "queued", "running", "up_for_retry"])
def test_while_the_one_before_is_finished_and_has_its_landing_yet_it_asks_again(turns: Any, state: str | None) -> None:
    with pytest.raises(turns.AirflowRescheduleException):
        turns.await_landing(Task({1: (*("success",) * 5, state)}))


@pytest.mark.parametrize("state", ["success", "failed"])
def test_once_the_one_before_has_ended_it_reads(turns: Any, state: str) -> None:
    turns.await_landing(Task({1: (*("success",) * 5, state)}))
    turns.await_landing(Task(map_index=0))
