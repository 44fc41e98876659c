"""Whoever is to answer a question is told of it, with the page where that is done; the question waits in any case."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.builders.webhook import listening_webhook
from tests.stack.airflow_home import write_settings

BODY = "**op** asks to rewind **ecg** to `earliest`\n\nRuns under way end fenced."


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """What Airflow hands to a notifier, of an Airflow behind a path."""
    monkeypatch.setenv("AIRFLOW__API__BASE_URL", "https://ops.example/airflow/")
    question = SimpleNamespace(
        subject="Rewind ecg?",
        body=BODY,
        options=["Approve", "Reject"],
        hitl_summary_extra={"timeout_datetime": "2026-01-31T00:00:00+00:00"},
    )
    ti = SimpleNamespace(
        dag_id="rewind_ecg", run_id="manual__2026-01-30T00:00:00+00:00", task_id="approve", map_index=-1
    )
    return {"task": question, "ti": ti, "dag": None}


def settings(folder: Path, monkeypatch: pytest.MonkeyPatch, notify: str) -> None:
    path = write_settings(folder, streams=folder)
    path.write_text(f"{path.read_text()}[notify]\n{notify}\n")
    monkeypatch.setenv("WAVESTITCH_CONFIG", str(path))


def test_the_question_is_told_with_its_answers_and_the_page_where_it_is_answered(
    asked: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from wavestitch.flows.pending import TellPending  # noqa: PLC0415

    page = "https://ops.example/airflow/dags/rewind_ecg/runs/manual__2026-01-30T00%3A00%3A00%2B00%3A00/tasks/approve"
    with listening_webhook() as webhook:
        settings(tmp_path, monkeypatch, f'webhook = "{webhook.address}"')
        TellPending("ecg")(asked)
    (told,) = webhook.told
    assert told["subject"] == "Rewind ecg?"
    assert told["text"].startswith(BODY)
    assert told["text"].endswith(f"until 2026-01-31T00:00:00+00:00: {page}/required_actions")
    facts = told["facts"]
    assert (facts["stream"], facts["dag"], facts["task"]) == ("ecg", "rewind_ecg", "approve")
    assert (facts["answers"], facts["page"]) == ("Approve, Reject", f"{page}/required_actions")


@pytest.mark.parametrize("notify", ['webhook = "http://127.0.0.1:9/nobody"', 'webhok = "misspelt"'])
def test_where_nobody_can_be_told_the_question_is_asked_all_the_same(
    asked: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, notify: str
) -> None:
    from wavestitch.flows.pending import TellPending  # noqa: PLC0415

    settings(tmp_path, monkeypatch, notify)
    TellPending("ecg")(asked)


def test_what_a_batch_says_in_airflow_of_its_gate_leads_to_the_page_behind_its_login(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from wavestitch.flows.batch_tasks import edges_of  # noqa: PLC0415

    monkeypatch.setenv("AIRFLOW__API__BASE_URL", "https://ops.example/airflow/")
    settings(tmp_path, monkeypatch, "")
    assert edges_of("ecg").findings("0a1b") == "https://ops.example/airflow/wavestitch/docs/ecg/0a1b/index.html"


@pytest.mark.parametrize(("holds", "answers"), [(True, "Accept, Park, Stop"), (False, "Accept, Stop")])
def test_a_gate_that_is_asked_about_again_for_lack_of_a_reason_was_told_of_once(
    asked: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, holds: bool, answers: str
) -> None:
    """By the operator itself; of Airflow stand in the place where it keeps questions, and the state of a task."""
    from airflow.providers.standard.operators import hitl  # noqa: PLC0415
    from airflow.sdk import DAG  # noqa: PLC0415
    from airflow.sdk.exceptions import TaskAwaitingInput  # noqa: PLC0415

    from wavestitch.contracts.errors import Refused  # noqa: PLC0415
    from wavestitch.flows import gate_question  # noqa: PLC0415
    from wavestitch.flows.gate_question import CLOSED, HOLDS, PLAN, QUESTION, ask_about  # noqa: PLC0415
    from wavestitch.settings import load_settings, load_stream  # noqa: PLC0415

    kept: list[dict[str, Any]] = []
    monkeypatch.setattr(hitl, "upsert_hitl_detail", lambda **said: kept.append(said))
    (tmp_path / "ecg.yaml").write_text("topic: t\ngroup: g\n")
    with listening_webhook() as webhook:
        settings(tmp_path, monkeypatch, f'webhook = "{webhook.address}"')
        with DAG("ingest_ecg", schedule=None) as dag:
            ask = ask_about(load_stream(load_settings(), "ecg"), holds=True)
        said: dict[str, object] = {
            CLOSED: "the gate is closed",
            HOLDS: holds,
            QUESTION: "[Data Docs](https://ops.example/docs)",
            PLAN: "0" * 32,
        }
        ti = asked["ti"]
        ti.start_date = datetime.now(UTC)
        ti.id, ti.xcom_pull = "1", lambda task_ids, key, map_indexes: said[key]
        ti.xcom_push = lambda key, value: said.update({key: value})
        context = {"task": ask, "task_instance": ti, "ti": ti, "dag": dag}
        with pytest.raises(TaskAwaitingInput):
            ask.execute(context)
        given = {"chosen_options": ["Accept"], "params_input": {"why": None}, "responded_at": datetime.now(UTC)}
        with pytest.raises(TaskAwaitingInput):
            ask.execute_complete(context, {**given, "responded_by_user": {"id": "op", "name": "op"}})
        given["params_input"] = {"why": "two of them"}
        answer = ask.execute_complete(context, {**given, "responded_by_user": {"id": "op", "name": "op"}})
    said["return_value"] = answer
    monkeypatch.setattr(gate_question, "get_current_context", lambda: context)
    with pytest.raises(Refused, match=f"asked about {'0' * 32}, and this is about {'1' * 32}.*; clear `ask`, too"):
        gate_question.answered.function("ecg", "1" * 32, {}, {})
    assert len(kept) == 2
    (told,) = webhook.told
    assert told["subject"] == "ecg: the gate is closed. Publish the batch, hold it, or stop?"
    assert told["facts"]["answers"] == answers


@pytest.mark.parametrize(
    ("answer", "user"), [("Reject", {"id": "op", "name": "op"}), ("Reject", None), ("Approve", None)]
)
def test_what_is_rejected_in_airflow_or_answered_by_nobody_is_kept_as_rejected(
    asked: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, answer: str, user: dict[str, str] | None
) -> None:
    """By the operator itself: so that no hand and no cleared task does it."""
    from airflow.sdk import DAG  # noqa: PLC0415

    from wavestitch.batch.kept_previews import kept_rejection  # noqa: PLC0415
    from wavestitch.flows.approval import Approval  # noqa: PLC0415
    from wavestitch.settings import load_settings  # noqa: PLC0415

    (tmp_path / "ecg.yaml").write_text("topic: t\ngroup: g\n")
    settings(tmp_path, monkeypatch, "")
    with DAG("rewind_ecg", schedule=None) as dag:
        approve = Approval(task_id="approve", stream="ecg", subject="Rewind ecg?")
    ti = asked["ti"]
    ti.xcom_pull = lambda task_ids, key, map_indexes: {"about": "0" * 32}[key]
    given = {"chosen_options": [answer], "params_input": {}, "responded_at": datetime.now(UTC)}
    context = {"task": approve, "ti": ti, "task_instance": ti, "dag": dag}
    approve.execute_complete(context, {**given, "responded_by_user": user})
    kept = kept_rejection(load_settings().landing, "ecg", "0" * 32)
    who = None if kept is None else kept.who
    assert who == (None if answer == "Approve" else "op" if user else "nobody, who did not answer in time")
