"""What Airflow calls where a task has failed, or a run is late: who must know is told, and nothing is raised."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.builders.webhook import Webhook, listening_webhook
from tests.stack.airflow_home import ROOT, prepare_airflow, write_settings
from wavestitch.contracts.errors import Fenced, Refused
from wavestitch.contracts.failures_told import AGAIN, FailuresTold
from wavestitch.contracts.quantities import EpochMs, after
from wavestitch.settings import load_settings

prepare_airflow()


@pytest.fixture
def webhook(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Webhook]:
    config = write_settings(tmp_path, streams=ROOT / "streams")
    monkeypatch.setenv("WAVESTITCH_CONFIG", str(config))
    with listening_webhook() as found:
        monkeypatch.setenv("WAVESTITCH_NOTIFY__WEBHOOK", found.address)
        yield found


def fail(error: object, run: str = "manual__1") -> dict[str, str]:
    """What its run keeps of it."""
    from wavestitch.flows.alarms import tell_failure  # noqa: PLC0415 - loads Airflow

    said: dict[str, str] = {}
    ti = SimpleNamespace(
        dag_id="ingest_ecg", task_id="plan", run_id=run, xcom_push=lambda key, value: said.update({key: value})
    )
    tell_failure({"ti": ti, "exception": error})
    return said


def test_a_failure_is_told_with_its_sentence_and_where_to_look_and_once_a_day(webhook: Webhook) -> None:
    for offset in (5, 7):
        fail(Refused(f"stream ecg: the log begins at {offset}"))
    (told,) = webhook.told
    assert told["subject"] == "ingest_ecg: plan failed"
    assert told["text"].startswith("stream ecg: the log begins at 5\n")
    assert told["text"].endswith("/dags/ingest_ecg/runs/manual__1")
    fail(Refused("another sentence"))
    assert len(webhook.told) == 2


def test_the_run_keeps_what_its_task_failed_with_whoever_was_told(webhook: Webhook) -> None:
    for _ in range(2):
        assert fail(Refused("the log begins at 5")) == {"failed_with": "the log begins at 5"}
    assert fail(KeyError("a secret")) == {"failed_with": "KeyError; the task's log says more"}
    assert fail(Refused("two\nlines")) == {"failed_with": "two\\x0alines"}
    assert len(webhook.told) == 3


def test_a_failure_that_was_told_is_not_said_to_have_been_told_to_nobody_where_that_cannot_be_kept(
    webhook: Webhook, caplog: pytest.LogCaptureFixture
) -> None:
    landing = load_settings().landing
    landing.mkdir(parents=True, exist_ok=True)
    (landing / ".failures").write_text("in the way of what was told")
    for _ in range(2):
        fail(Refused("no"))
    assert len(webhook.told) == 2
    said = [record.getMessage() for record in caplog.records if record.name == "wavestitch.flows.alarms"]
    assert len(said) == 2
    assert all(line.startswith("this failure was told, and is told again with the next run") for line in said), said


def test_what_was_not_taken_is_told_with_the_next_failure(webhook: Webhook) -> None:
    webhook.status = 500
    fail(Refused("no"))
    webhook.status = 200
    fail(Refused("no"))
    fail(Refused("no"))
    assert len(webhook.told) == 2


def test_of_an_error_that_is_not_ours_only_the_kind_is_told_and_of_a_run_that_was_overtaken_nothing(
    webhook: Webhook,
) -> None:
    fail(Fenced("somebody rewound"))
    fail(ValueError("hunter2"))
    fail(None)
    first, second = (body["text"] for body in webhook.told)
    assert first.startswith("ValueError; the task's log says more")
    assert "hunter2" not in first
    assert second.startswith("the task's log says why")


def test_a_run_that_its_time_out_has_ended_is_told_and_one_that_a_task_has_failed_is_not(
    webhook: Webhook, monkeypatch: pytest.MonkeyPatch
) -> None:
    from wavestitch.flows.alarms import tell_timed_out  # noqa: PLC0415

    dag = SimpleNamespace(dag_id="backfill_ecg", dagrun_timeout=timedelta(days=2))
    ended = {"dag": dag, "run_id": "backfill__1", "reason": "timed_out"}
    tell_timed_out(ended | {"reason": "task_failure"})
    tell_timed_out(ended)
    (told,) = webhook.told
    assert told["subject"] == "backfill_ecg: a run was ended by its time-out"
    assert "longer than 2 days, 0:00:00, and Airflow has skipped what was left of it" in told["text"]
    assert told["text"].endswith("/dags/backfill_ecg/runs/backfill__1")
    monkeypatch.setenv("WAVESTITCH_CONFIG", "/nowhere")
    tell_timed_out(ended)


def test_a_late_run_is_told_and_settings_that_cannot_be_read_raise_nothing(
    webhook: Webhook, monkeypatch: pytest.MonkeyPatch
) -> None:
    from wavestitch.flows.alarms import tell_late  # noqa: PLC0415

    late = {"dag_run": {"dag_id": "ingest_ecg", "dag_run_id": "manual__1"}, "deadline": {}}
    tell_late(late)
    assert webhook.subjects == ["ingest_ecg: a run takes longer than it should"]
    monkeypatch.setenv("WAVESTITCH_CONFIG", "/nowhere")
    tell_late(late)
    fail(Refused("no"))
    assert len(webhook.told) == 1


def test_after_a_day_it_is_told_again() -> None:
    told = FailuresTold().telling("plan", "no", now=EpochMs(1))
    assert told is not None
    assert told.telling("plan", "no", now=EpochMs(2)) is None
    assert told.telling("read", "no", now=EpochMs(2)) is not None
    assert told.telling("plan", "no", now=after(EpochMs(1), AGAIN)) is not None


def test_a_failure_that_a_clock_told_which_was_ahead_is_told_by_one_that_is_right() -> None:
    told = FailuresTold().telling("plan", "no", now=EpochMs(2 * 10**12))
    assert told is not None
    again = told.telling("plan", "no", now=EpochMs(10**12))
    assert again is not None
    assert again.telling("plan", "no", now=EpochMs(10**12 + 1)) is None


def test_a_failure_that_names_its_run_s_own_plan_is_the_same_failure() -> None:
    said = "cannot write /landing/ecg/{}: batch {} found no room"
    ids = ["3bcb3d4baf088eb64d8381c22fc0a844", "f00dfeedcafe0123456789abcdef4567"]
    first, second = (said.format(i, i[:16]) for i in ids)
    told = FailuresTold().telling("plan", first, now=EpochMs(1))
    assert told is not None
    assert told.telling("plan", second, now=EpochMs(2)) is None
    assert told.telling("plan", second.replace("landing", "warehouse"), now=EpochMs(2)) is not None
