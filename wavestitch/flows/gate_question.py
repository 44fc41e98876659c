"""A closed gate, put to a person in Airflow: accept, park or stop, each with a reason. Asked only where it is closed.

Decides nothing: the answer goes to the same step that closed the gate. Nobody's answer, when the stream's time-out is
out or its headroom is, is the one that the stream names (`contracts.gate_wait`).
"""
# mypy: disable-error-code="misc,untyped-decorator"

from __future__ import annotations

from datetime import timedelta
from typing import Any

from airflow.providers.standard.operators.hitl import HITLOperator
from airflow.sdk import TriggerRule, get_current_context, task
from airflow.sdk.exceptions import AirflowSkipException, DownstreamTasksSkipped
from airflow.sdk.timezone import utcnow

from wavestitch.batch.request import Gate
from wavestitch.contracts.errors import GateClosed, WavestitchError
from wavestitch.contracts.gate_wait import GateDefault, is_red, look_again_s, unanswered
from wavestitch.contracts.harmless import for_markdown
from wavestitch.contracts.headroom import Room
from wavestitch.contracts.plain_text import MAX_SAID, name_of_person
from wavestitch.contracts.stream import Stream
from wavestitch.flows.addresses import docs_page
from wavestitch.flows.batch_tasks import carried_out, edges_of, log_lines
from wavestitch.flows.bound_answer import BoundAnswer, name_of_answerer, refuse_answer_about_another
from wavestitch.flows.form_fields import text_or_nothing
from wavestitch.flows.gate_form import asks, gate_of_run
from wavestitch.flows.pending import ANSWER_BY, TellPending

ACCEPT, PARK, STOP = "Accept", "Park", "Stop"
ANSWERS = {ACCEPT: "accept", PARK: "park", STOP: "stop"}
VALIDATE, CLOSED, QUESTION, HOLDS, PLAN = "validate", "closed", "question", "holds", "plan"
"""The task that looks at the gate, and its XComs where that is closed: the error's sentence, the question, whether the
batch can be held, and its plan's id."""
ASK = "ask"
RETURN_VALUE = "return_value"
NAMED = {answer: option for option, answer in ANSWERS.items()}
NOBODY = "nobody answered in time"
RED = "nobody answered before headroom was red"
WITHOUT_ANSWER: dict[GateDefault, str] = {
    "stop": "**Stop**",
    "park": "**Park**, at once where headroom is red",
    "park_if_red": "**Park** where headroom is red, else **Stop**",
}
ASK_DOC = (
    "**Asks somebody what becomes of a batch at a closed gate**, under *Required Actions*; skipped where it is open. "
    "Accept: publish it nevertheless. Park: hold all of it, and let the stream go on (not asked of a backfill or of "
    "named offsets, of which nothing can be held). Stop: the run fails, and no ingest, nor a batch behind it of the "
    "same backfill, goes past the batch until somebody decides."
)


@task(task_id=VALIDATE, execution_timeout=timedelta(hours=1))
def validate_or_ask(stream: str, plan_id: str, reassembled: dict[str, Any]) -> dict[str, Any]:
    """**Looks at the gate**: the stream's Great Expectations suite over one row a waveform. Data Docs show the outcome.

    Where it closes, `ask` puts that to somebody, unless the run's form says what becomes of it.
    """
    context = get_current_context()
    gate, why = gate_of_run(context)
    done = looked_at(stream, plan_id, reassembled, gate=gate, why=why, asked=asks(context))
    if done:
        # Skipped from here it takes no process of its own; it would skip itself, too, and the batch wait for its end.
        ti = context["ti"]
        ti.xcom_push(key=RETURN_VALUE, value=done)
        raise DownstreamTasksSkipped(tasks=[(beside(ASK, ti), ti.map_index)])
    return done


def looked_at(
    stream: str, plan_id: str, reassembled: dict[str, Any], *, gate: Gate, why: str, asked: bool
) -> dict[str, Any]:
    """What the task that looks at the gate returns: nothing where it is closed and somebody is `asked`, to whom it
    leaves the question. `gate`, `why`: what was said beforehand."""
    from wavestitch.batch.results import Reassembled, result_from_json  # noqa: PLC0415

    made = result_from_json(reassembled, Reassembled)
    try:
        return carried_out("validate", stream, plan_id, made, gate=gate, why=why)
    except GateClosed as closed:
        if not asked:
            raise
        context = get_current_context()
        edges = edges_of(stream)
        plan = edges.plan(plan_id)
        holds = plan.holds
        question = describe_question(
            closed.message,
            docs_url=docs_page(stream, plan_id),
            unanswered=without_answer(edges.stream, holds=holds),
            holds=holds,
            chained=plan.scope is not None,
        )
        log_lines(question)
        context["ti"].xcom_push(key=QUESTION, value=question)
        context["ti"].xcom_push(key=HOLDS, value=holds)
        context["ti"].xcom_push(key=PLAN, value=plan_id)
        context["ti"].xcom_push(key=CLOSED, value=closed.message)
        return {}


class GateQuestion(BoundAnswer, HITLOperator):
    """Waits for the answer of somebody; skips itself where there is nothing to ask, asks again where no reason came, or
    nobody has answered yet and the stream waits on."""

    def __init__(self, *, stream: str, gate_default: GateDefault, gate_timeout: float, **more: Any) -> None:
        super().__init__(response_timeout=timedelta(seconds=gate_timeout), **more)
        self.stream, self.gate_default, self.gate_timeout = stream, gate_default, gate_timeout

    def about(self, ti: Any) -> str:
        return str(left_by(VALIDATE, ti, PLAN))

    def execute(self, context: Any) -> Any:
        ti = context["ti"]
        if not left_by(VALIDATE, ti, CLOSED):
            raise AirflowSkipException("the gate is open")
        self.body = left_by(VALIDATE, ti, QUESTION)
        if not left_by(VALIDATE, ti, HOLDS):
            self.options, self.defaults, self.gate_default = [ACCEPT, STOP], [STOP], "stop"
        room, left_s = self._room(), self._left_s(ti)
        self.response_timeout = timedelta(seconds=look_again_s(self.gate_default, room, left_s=max(0.0, left_s)))
        self.hitl_summary_extra[ANSWER_BY] = (utcnow() + timedelta(seconds=left_s)).isoformat()
        return super().execute(context)

    def execute_complete(self, context: Any, event: dict[str, Any]) -> Any:
        given = super().execute_complete(context, event)
        if needs_reason(given):
            self.log.warning("accepting and parking need a reason (why); it is asked again")
            return self._ask_again(context)
        if by_nobody(given):
            if not left_by(VALIDATE, context["ti"], HOLDS):
                self.gate_default = "stop"
            room = self._room()
            answer = unanswered(self.gate_default, room, left_s=self._left_s(context["ti"]))
            if answer is None:
                self.log.info("nobody has answered yet, and there is headroom: it waits on")
                return self._ask_again(context)
            red = answer == "park" and is_red(room)
            return {**given, "chosen_options": [NAMED[answer]], "params_input": {"why": RED if red else NOBODY}}
        return given

    def _ask_again(self, context: Any) -> Any:
        self.notifiers = ()  # whom it concerns was told
        return self.execute(context)

    def _left_s(self, ti: Any) -> float:
        """Since the task was first started: that stays while it waits, and is new where somebody has cleared it."""
        waited: timedelta = utcnow() - ti.start_date
        return self.gate_timeout - waited.total_seconds()

    def _room(self) -> Room | None:
        """None where it is not asked for, or cannot be known."""
        from wavestitch.batch.deployment import Deployment  # noqa: PLC0415
        from wavestitch.batch.watch import room_of  # noqa: PLC0415

        if self.gate_default == "stop":
            return None
        try:
            return room_of(Deployment(), self.stream)
        except WavestitchError as error:
            self.log.warning("how much headroom there is cannot be said: %s", error.message)
            return None


def ask_about(stream: Stream, *, holds: bool) -> GateQuestion:
    """The task that asks, of one stream. `holds`: whether its batches can be held, unless one says otherwise."""
    return GateQuestion(
        stream=stream.name,
        gate_default=stream.gate_default,
        gate_timeout=stream.gate_timeout,
        task_id=ASK,
        doc_md=ASK_DOC,
        subject=f"{stream.name}: the gate is closed. Publish the batch,{' hold it,' if holds else ''} or stop?",
        options=list(ANSWERS) if holds else [ACCEPT, STOP],
        defaults=default_of(stream, holds=holds),
        # With a default: Airflow checks the fields as the task starts, before there is anybody to fill them in.
        params={
            "why": text_or_nothing(
                "Why",
                f"Recorded with the batch, beside your name. Needed with Accept{' and Park' if holds else ''}.",
                most=MAX_SAID,
            )
        },
        notifiers=TellPending(stream.name),
        execution_timeout=timedelta(minutes=5),
    )


@task(execution_timeout=timedelta(hours=1), trigger_rule=TriggerRule.NONE_FAILED_MIN_ONE_SUCCESS)
def answered(stream: str, plan_id: str, reassembled: dict[str, Any], validated: dict[str, Any]) -> dict[str, Any]:
    """**Carries the answer out**: by the step that looked at the gate. Nothing to do where it was open."""
    from wavestitch.batch.results import Reassembled, result_from_json  # noqa: PLC0415

    if validated:
        return validated
    ti = get_current_context()["ti"]
    given = left_by(ASK, ti)
    refuse_answer_about_another(given, plan_id, asked_by=ASK)
    gate, why = answer_of(given)
    if gate == "stop":
        raise GateClosed(f"{left_by(VALIDATE, ti, CLOSED)}. The answer was to stop: {why}")
    made = result_from_json(reassembled, Reassembled)
    return carried_out("validate", stream, plan_id, made, gate=gate, why=why)


def left_by(task_id: str, ti: Any, key: str = RETURN_VALUE) -> Any:
    """The XCom of this task for the batch that `ti` is about: of its group and its place there, where it has one."""
    return ti.xcom_pull(task_ids=beside(task_id, ti), key=key, map_indexes=ti.map_index)


def beside(task_id: str, ti: Any) -> str:
    """The whole id of the task of this name for the batch that `ti` is about."""
    group = ti.task_id.rpartition(".")[0]
    return f"{group}.{task_id}" if group else task_id


def default_of(stream: Stream, *, holds: bool) -> str:
    """The answer when the time is out. What cannot be held cannot be parked."""
    return PARK if holds and stream.gate_default == "park" else STOP


def without_answer(stream: Stream, *, holds: bool) -> str:
    """What becomes of it where nobody answers, as Markdown."""
    return WITHOUT_ANSWER[stream.gate_default if holds else "stop"]


def describe_question(sentence: str, *, docs_url: str, unanswered: str, holds: bool, chained: bool) -> str:
    """What is asked, as Markdown. `unanswered`: as `without_answer`; `holds`: whether the batch can be held; `chained`:
    whether it is a backfill's, so that others may stand behind it."""
    park = "- **Park**: hold all of it; the stream goes on, and a redrive takes it up later.\n" if holds else ""
    stop = "the run fails"
    if holds:
        stop = f"{stop}, and no ingest goes past the batch until somebody decides"
    elif chained:
        stop = f"{stop}; the batches behind this one read nothing until it is accepted"
    return (
        f"{for_markdown(sentence)}\n\n[What the gate found (Data Docs)]({docs_url})\n\n"
        "- **Accept**: publish the batch nevertheless.\n"
        f"{park}- **Stop**: {stop}.\n\n"
        f"Without an answer: {unanswered}."
    )


def by_nobody(given: Any) -> bool:
    who, _ = _said(given)
    return not who


def needs_reason(given: Any) -> bool:
    """Whether somebody chose what is done with a reason only, and gave none."""
    who, why = _said(given)
    return bool(who) and not why and given["chosen_options"][0] != STOP


def answer_of(given: Any) -> tuple[str, str]:
    """What somebody chose, and why and who it was, as it is recorded."""
    who, why = _said(given)
    return ANSWERS[given["chosen_options"][0]], f"{why} ({name_of_person(who)})".strip() if who else why or NOBODY


def _said(given: Any) -> tuple[str, str]:
    """Who answered (nobody where the time ran out), and the reason."""
    return name_of_answerer(given), str((given["params_input"] or {}).get("why") or "").strip()
