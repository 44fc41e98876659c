"""A closed gate as it is put to somebody: what is asked, how an answer is recorded, and what nobody's answer is.

By the operator itself; of Airflow stand in the place where it keeps questions, and the state of a task.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.domain.maintenance_rig import STREAM, Rig
from tests.stack.airflow_home import prepare_airflow
from wavestitch.batch.deployment import Deployment
from wavestitch.contracts.position import Position
from wavestitch.contracts.quantities import Offset, Partition
from wavestitch.contracts.stream import GateDefault

prepare_airflow()

HOUR = 3600
TIME_OUT = 12 * HOUR

Ask = Callable[..., tuple[Any, list[dict[str, Any]]]]


@pytest.mark.parametrize(
    ("chosen", "who", "why", "recorded", "asked_again"),
    [
        ("Accept", "op", "two of them today", ("accept", "two of them today (op)"), False),
        ("Park", "op", " ", ("park", "(op)"), True),
        ("Accept", "op", None, ("accept", "(op)"), True),
        ("Stop", "op", None, ("stop", "(op)"), False),
        ("Park", None, None, ("park", "nobody answered in time"), False),
    ],
)
def test_an_answer_at_the_gate_is_recorded_with_who_and_why_and_asked_again_without_a_reason(
    chosen: str, who: str | None, why: str | None, recorded: tuple[str, str], asked_again: bool
) -> None:
    from wavestitch.flows.gate_question import answer_of, needs_reason  # noqa: PLC0415

    given = {
        "chosen_options": [chosen],
        "params_input": {"why": why},
        "responded_by_user": who and {"id": who, "name": who},
    }
    assert answer_of(given) == recorded
    assert needs_reason(given) is asked_again


@pytest.mark.parametrize(
    ("default", "said"),
    [
        ("stop", "Without an answer: **Stop**."),
        ("park", "Without an answer: **Park**, at once where headroom is red."),
        ("park_if_red", "Without an answer: **Park** where headroom is red, else **Stop**."),
    ],
)
def test_the_question_says_what_becomes_of_the_batch_without_an_answer(default: GateDefault, said: str) -> None:
    from tests.builders.streams import make_stream  # noqa: PLC0415
    from wavestitch.flows.gate_question import describe_question, without_answer  # noqa: PLC0415

    stream = make_stream(gate_default=default)
    for holds, wanted in ((True, said), (False, "Without an answer: **Stop**.")):
        unanswered = without_answer(stream, holds=holds)
        asked = describe_question("closed", docs_url="", unanswered=unanswered, holds=holds, chained=False)
        assert asked.endswith(wanted)
        assert ("Park" in asked) is holds


@pytest.fixture
def rig(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Rig:
    """A stream with unread records that were written six hours ago."""
    made = Rig(tmp_path)
    made.publish("w0", positions={Partition(0): Position(Offset(0))}, topic_id=made.log.topic_id)
    written = time.time_ns() // 1_000_000 - 6 * HOUR * 1000
    made.log.append(Partition(0), timestamp_ms=written, key=None, headers=(), value=b"unread")
    monkeypatch.setenv("WAVESTITCH_CONFIG", str(tmp_path / "wavestitch.toml"))
    monkeypatch.setattr(Deployment, "log", made.log)
    return made


@pytest.fixture
def ask(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> Ask:
    """The operator of a stream that says this, what it has asked Airflow to show, and how it is called."""
    from airflow.providers.standard.operators import hitl  # noqa: PLC0415
    from airflow.sdk import DAG  # noqa: PLC0415

    from tests.builders.streams import make_stream  # noqa: PLC0415
    from wavestitch.flows.bound_answer import ABOUT  # noqa: PLC0415
    from wavestitch.flows.gate_question import CLOSED, HOLDS, PLAN, QUESTION, ask_about  # noqa: PLC0415

    def made(default: GateDefault, *, waited_s: float, holds: bool = True) -> tuple[Any, list[dict[str, Any]]]:
        shown: list[dict[str, Any]] = []
        monkeypatch.setattr(hitl, "upsert_hitl_detail", lambda **said: shown.append(said))
        stream = make_stream(name=STREAM, gate_default=default, gate_timeout=f"{TIME_OUT} s")
        with DAG(f"ingest_{STREAM}", schedule=None):
            operator = ask_about(stream, holds=True)
        operator.notifiers = ()
        left = {CLOSED: "the gate is closed", HOLDS: holds, QUESTION: "and now?", PLAN: "0" * 32, ABOUT: ""}
        started = datetime.now(UTC) - timedelta(seconds=waited_s)
        ti = SimpleNamespace(id="ti", task_id="ask", map_index=-1, start_date=started)
        ti.xcom_pull = lambda task_ids, key, map_indexes: left[key]
        ti.xcom_push = lambda key, value: left.update({key: value})
        context = {"task": operator, "task_instance": ti, "ti": ti}
        return SimpleNamespace(
            execute=lambda: operator.execute(context),
            nobody=lambda: operator.execute_complete(
                context,
                {
                    "chosen_options": operator.defaults,
                    "params_input": {"why": None},
                    "responded_at": datetime.now(UTC),
                    "responded_by_user": None,
                },
            ),
        ), shown

    return made


@pytest.mark.parametrize(
    ("holds", "options", "default"), [(True, ["Accept", "Park", "Stop"], "Park"), (False, ["Accept", "Stop"], "Stop")]
)
def test_the_question_and_its_default_are_those_of_the_batch(
    ask: Ask, holds: bool, options: list[str], default: str
) -> None:
    """What Airflow shows, and answers by itself after the time-out, is what it is given as the task starts."""
    from airflow.sdk.exceptions import TaskAwaitingInput  # noqa: PLC0415

    asking, shown = ask("park", waited_s=0, holds=holds)
    with pytest.raises(TaskAwaitingInput):
        asking.execute()
    assert [(said["options"], said["defaults"]) for said in shown] == [(options, [default])]


@pytest.mark.parametrize(
    ("default", "retention_h", "waits_h"),
    # Six hours old: of eight hours two are left, half of which go by before it is looked at again; of seven days most.
    [("stop", 8, 12), ("park", 8, 1), ("park_if_red", 8, 1), ("park", 168, 12), ("park", None, 1)],
)
def test_who_may_be_parked_by_itself_is_looked_at_again_in_time(
    rig: Rig, ask: Ask, default: GateDefault, retention_h: int | None, waits_h: float
) -> None:
    from airflow.sdk.exceptions import TaskAwaitingInput  # noqa: PLC0415

    rig.log.retention_ms = None if retention_h is None else retention_h * HOUR * 1000
    asking, _ = ask(default, waited_s=0)
    with pytest.raises(TaskAwaitingInput) as waiting:
        asking.execute()
    assert waiting.value.timeout.total_seconds() == pytest.approx(waits_h * HOUR, abs=120)


@pytest.mark.parametrize(
    ("default", "waited_h", "retention_h", "wanted"),
    [
        ("park", 1, 7, ("park", "nobody answered before headroom was red")),
        ("park_if_red", 1, 7, ("park", "nobody answered before headroom was red")),
        ("park", 1, 168, None),
        ("park_if_red", 1, 168, None),
        ("park", 12, 168, ("park", "nobody answered in time")),
        ("park_if_red", 12, 168, ("stop", "nobody answered in time")),
        ("stop", 12, 7, ("stop", "nobody answered in time")),
    ],
)
def test_nobody_s_answer_is_that_of_the_stream_the_time_and_the_headroom(
    rig: Rig, ask: Ask, default: GateDefault, waited_h: float, retention_h: int, wanted: tuple[str, str] | None
) -> None:
    """`wanted` None: it waits on, and Airflow is asked to show the question again."""
    from airflow.sdk.exceptions import TaskAwaitingInput  # noqa: PLC0415

    from wavestitch.flows.gate_question import answer_of  # noqa: PLC0415

    rig.log.retention_ms = retention_h * HOUR * 1000
    asking, shown = ask(default, waited_s=waited_h * HOUR)
    if wanted is None:
        with pytest.raises(TaskAwaitingInput) as waiting:
            asking.nobody()
        assert len(shown) == 1
        assert waiting.value.timeout.total_seconds() <= TIME_OUT - waited_h * HOUR
    else:
        assert answer_of(asking.nobody()) == wanted
        assert shown == []


def test_what_cannot_be_held_is_stopped_whatever_the_headroom(rig: Rig, ask: Ask) -> None:
    from wavestitch.flows.gate_question import answer_of  # noqa: PLC0415

    rig.log.retention_ms = 7 * HOUR * 1000
    asking, _ = ask("park", waited_s=TIME_OUT, holds=False)
    assert answer_of(asking.nobody()) == ("stop", "nobody answered in time")


def test_where_headroom_cannot_be_known_it_waits_on_and_looks_again_soon(rig: Rig, ask: Ask) -> None:
    from airflow.sdk.exceptions import TaskAwaitingInput  # noqa: PLC0415

    (rig.folder / "streams" / f"{STREAM}.yaml").write_text("topic: nobody\ngroup: g\n")
    asking, _ = ask("park_if_red", waited_s=HOUR)
    with pytest.raises(TaskAwaitingInput) as waiting:
        asking.nobody()
    assert waiting.value.timeout.total_seconds() == pytest.approx(300, abs=5)
