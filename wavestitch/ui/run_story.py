"""What a run did, in a sentence, and what is to be done about it: from its tasks' states and what they said. Pure.

One story for each kind of DAG. A sentence that nobody has said is never guessed at: then the task's log is named.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from wavestitch.contracts.plan_id import is_plan_id
from wavestitch.contracts.stream import (
    backfill_dag_id,
    decide_dag_id,
    ingest_dag_id,
    name_in_airflow,
    promote_dag_id,
    rewind_dag_id,
    verify_dag_id,
)
from wavestitch.ui.said import entries, fields, lines

_WAITING = "awaiting_input"
_AT_WORK = ("running", "queued", "scheduled", "deferred", "restarting", "up_for_retry", "up_for_reschedule", "none")
_ASK_AGAIN = "Somebody answers it under Required Actions of this run; unanswered for a day it is rejected."


@dataclass(frozen=True, slots=True)
class RunFacts:
    """A run as Airflow knows it. `tasks`: how many instances of each task are in which state. `said`: XComs of tasks
    that are not mapped, by task and key. `failures`: the sentences of tasks that failed."""

    dag_id: str
    run_id: str
    state: str
    tasks: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    said: Mapping[tuple[str, str], Any] = field(default_factory=dict)
    failures: Mapping[str, str] = field(default_factory=dict)

    def returned(self, task: str) -> Any:
        return self.said.get((task, "return_value"))

    def tasks_in(self, *states: str) -> list[str]:
        return sorted(task for task, found in self.tasks.items() if any(found.get(s) for s in states))


@dataclass(frozen=True, slots=True)
class Story:
    """`style`: how good or bad it is. `shown`: lines that were put before somebody. `lists`: a heading and lines each.
    `answer`: the task whose question waits. `plan_id`: of the batch that it carried, where it is one."""

    style: str
    says: str
    todo: str = ""
    shown: tuple[str, ...] = ()
    lists: tuple[tuple[str, tuple[str, ...]], ...] = ()
    answer: str = ""
    plan_id: str = ""


def stream_of_dag(dag_id: str, names: Collection[str]) -> tuple[str, str]:
    """Which kind of DAG it is, and the stream it is of; empty for one of ours that is of none, and for others'."""
    of = {"ingest": ingest_dag_id, "backfill": backfill_dag_id, "rewind": rewind_dag_id, "decide": decide_dag_id}
    for kind, id_of in {**of, "verify": verify_dag_id, "promote": promote_dag_id}.items():
        if dag_id.startswith(f"{kind}_"):
            for name in names:
                if id_of(name) == dag_id:
                    return kind, name
    return (dag_id, "") if dag_id in ("maintain", "watch") else ("", "")


def story_of(kind: str, run: RunFacts, *, may: Collection[str] = ()) -> Story:
    """`may`: the streams that whoever asks may see, for DAGs that are of all streams."""
    tell: dict[str, Callable[[RunFacts], Story]] = {
        "ingest": _ingest,
        "backfill": _backfill,
        "rewind": _rewind,
        "decide": partial(_decide, what="decision"),
        "promote": partial(_decide, what="promotion"),
        "verify": _verify,
        "maintain": lambda of: _maintain(of, may),
        "watch": lambda of: _watch(of, may),
    }
    return tell[kind](run)


def _ingest(run: RunFacts) -> Story:
    plan_id = _plan_in(run.said.get(("plan", "plan_id")))
    nothing = str(run.said.get(("plan", "nothing")) or "")
    if run.tasks_in(_WAITING):
        return _at_the_gate(run, plan_id)
    if nothing:
        return Story("passed", f"Nothing was to be done: {nothing}.".replace("..", "."))
    done = run.returned("publish")
    if run.state == "success" and isinstance(done, dict):
        left = (
            "The batch's limits left records behind; the next run was started."
            if run.returned("commit_offsets")
            else ""
        )
        return Story("passed", f"The batch was committed: {_published(done)}.", left, plan_id=plan_id)
    again = "Clear the task: the same plan is carried on, and nothing is published twice. For a new plan clear `plan`."
    return _otherwise(run, again, plan_id=plan_id)


def _backfill(run: RunFacts) -> Story:
    found = run.returned("report")
    plans = run.returned("plan")
    if not isinstance(found, dict):
        under = _otherwise(run, "Clear the task: the batches are carried on where they stopped.")
        count = f"Batches of it: {len(plans)}." if isinstance(plans, list) else ""
        return Story(under.style, f"{under.says} {count}".strip(), under.todo)
    lists = (("What it says", lines(found.get("said"))), ("Not whole", lines(found.get("incomplete"))))
    known = f"{found.get('replays', 0)} chunks were published before" if found.get("replays") else ""
    says = f"{found.get('published', 0)} waveforms were published by {found.get('batches', 0)} batches"
    todo = "What is not whole stays with the ingest: it is published once its chunks are there." if lists[1][1] else ""
    style = "reported" if lists[0][1] or lists[1][1] else "passed"
    return Story(style, f"{says}{', ' + known if known else ''}.", todo, lists=tuple(x for x in lists if x[1]))


def _rewind(run: RunFacts) -> Story:
    shown = lines(str(run.said.get(("preview", "shown")) or "").splitlines())
    if run.tasks_in(_WAITING):
        return Story(
            "reported",
            "A rewind was previewed and waits for an answer. Nothing moved.",
            _ASK_AGAIN,
            shown,
            (),
            "approve",
        )
    done = run.returned("apply")
    if isinstance(done, dict):
        says = f"The positions were moved by head {done.get('head')} of generation {done.get('generation')}"
        asked, approved = (str(done.get(by) or "nobody known") for by in ("asked_by", "approved_by"))
        who = f"asked for by {asked}, approved by {approved}"
        todo = f"The next batch reads from there. To undo it, trigger this DAG with `{done.get('undo')}` as To."
        return Story("passed", f"{says}, {who}.", todo, shown)
    return _unanswered(run, "The rewind was rejected, or nobody answered in time. Nothing moved.", shown)


def _plan_in(said: object) -> str:
    """The id, where it is one: an XCom holds what somebody with the right to change it put there."""
    return said if is_plan_id(said) else ""


def _at_the_gate(run: RunFacts, plan_id: str) -> Story:
    closed = str(run.said.get(("validate", "closed")) or "The gate is closed.")
    return Story("reported", f"A batch waits for an answer. {closed}", _ASK_AGAIN, answer="ask", plan_id=plan_id)


def _decide(run: RunFacts, *, what: str) -> Story:
    text = run.said.get(("preview", "shown")) or ""
    shown = lines(str(text).splitlines())
    plan_id = _plan_in(run.said.get(("keep_plan", "plan_id")) or run.returned("keep_plan"))
    if "ask" in run.tasks_in(_WAITING):
        return _at_the_gate(run, plan_id)
    if run.tasks_in(_WAITING):
        return Story(
            "reported",
            f"A {what} was previewed and waits for an answer. Nothing changed.",
            _ASK_AGAIN,
            shown,
            (),
            "approve",
        )
    done = run.returned("publish")
    if isinstance(done, dict):
        return Story("passed", f"The {what} was committed: {_published(done)}.", "", shown, plan_id=plan_id)
    return _unanswered(
        run, f"The {what} was rejected, or nobody answered in time. Nothing changed.", shown, plan_id=plan_id
    )


def _verify(run: RunFacts) -> Story:
    found = run.said.get(("verify", "found"))
    if not isinstance(found, dict):
        return _otherwise(run, "Clear the task: it changes nothing, and may be done again.")
    unlike = entries(found.get("waveforms"))
    told = tuple(f"{one.get('waveform_id')}: {one.get('found')}: {one.get('why')}" for one in unlike)
    style = "failed" if found.get("exit_code") else "passed"
    todo = "By hand, with the same range and `--into FILE`, all of them are named." if told else ""
    lists = (("Not the same", told),) if told else ()
    return Story(style, f"Table and log were compared: {found.get('compared')}.", todo, lists=lists)


def _maintain(run: RunFacts, may: Collection[str]) -> Story:
    reports = {name: run.returned(name_in_airflow(name)) for name in sorted(may)}
    found = {name: report for name, report in reports.items() if isinstance(report, dict)}
    failures = {name: said for name in sorted(may) if (said := run.failures.get(name_in_airflow(name)))}
    lists = [(name, _maintained(report)) for name, report in found.items()]
    lists += [(f"{name} failed", (said,)) for name, said in failures.items() if name not in found]
    failed = set(run.tasks_in("failed")) & {name_in_airflow(name) for name in may}
    applied = any(report.get("applied") for report in found.values())
    if not found and not failed:
        return _none_of_mine(run)
    says = "What nobody needs any more was let go" if applied else "A dry run: this is what would go"
    wrong = f"; {len(failed)} of {len(failed | set(found))} streams failed" if failed else ""
    todo = "" if applied else "Trigger it with the mode `apply` to do it; by itself it does so every night."
    if failed:
        todo = "The sentences below say what to do; the other stages and streams were carried through all the same."
    return Story("failed" if failed else "passed", f"{says}, of {len(found)} streams{wrong}.", todo, lists=tuple(lists))


def _watch(run: RunFacts, may: Collection[str]) -> Story:
    mine = [(name, one) for one in entries(run.returned("look")) if (name := str(one.get("stream"))) in may]
    told = [(name, _watched(one)) for name, one in mine]
    bad = [(name, said) for name, said in told if said]
    if not mine:
        return _none_of_mine(run)
    says = (
        f"{len(bad)} of {len(mine)} streams are near retention, late, or cannot be looked at"
        if bad
        else f"All of {len(mine)} streams are well"
    )
    lists = tuple((name, (said,)) for name, said in bad)
    return Story(
        "reported" if bad else "passed",
        f"{says}.",
        "The page of each stream says what to do." if bad else "",
        lists=lists,
    )


def _none_of_mine(run: RunFacts) -> Story:
    if run.state in ("running", "queued"):
        return _otherwise(RunFacts(run.dag_id, run.run_id, run.state), "")
    return Story("muted", "It says nothing about a stream that you may read.")


def _unanswered(run: RunFacts, rejected: str, shown: tuple[str, ...], *, plan_id: str = "") -> Story:
    """Of a run that asks somebody: it ended without doing anything, failed, or is under way."""
    if run.state == "success":
        return Story("passed", rejected, "Trigger it again for a new preview.", shown, plan_id=plan_id)
    told = _otherwise(run, "Trigger it again for a new preview; what was done is not done twice.")
    return Story(told.style, told.says, told.todo, shown, plan_id=plan_id)


def _otherwise(run: RunFacts, again: str, *, plan_id: str = "") -> Story:
    """Of a run that has not come to its end, or to a bad one."""
    failed = run.tasks_in("failed")
    if run.state == "failed" or failed:
        told = [f"{task}: {run.failures[task]}" for task in failed if task in run.failures]
        unsaid = [task for task in failed if task not in run.failures]
        says = (
            f"It failed at {', '.join(failed)}."
            if failed
            else "It failed; no task of it did: it may have taken too long."
        )
        logs = f" The log of {', '.join(unsaid)} says why." if unsaid else ""
        lists = (("What the tasks say", tuple(told)),) if told else ()
        return Story("failed", says, f"{again}{logs}", lists=lists, plan_id=plan_id)
    if run.state in ("running", "queued"):
        work = run.tasks_in(*_AT_WORK[:4], "up_for_retry", "up_for_reschedule") if run.state == "running" else []
        says = f"It is under way: {', '.join(work[:4])}." if work else "It waits for its turn."
        return Story("muted", says, "The page follows it.", plan_id=plan_id)
    return Story("muted", "It ended without saying what it did.", "Its tasks' logs may say more.", plan_id=plan_id)


def _published(done: Mapping[str, Any]) -> str:
    found = fields(done.get("published")) if done.get("result") == "Finished" else done
    counts = fields(found.get("waveforms"))
    if not counts:
        return "its figures are in the history"
    told = ", ".join(f"{n} {what}" for what, n in counts.items() if n or what == "published")
    return f"{told} waveforms" + (", by an earlier run" if done.get("result") == "Finished" else "")


def _maintained(report: Mapping[str, Any]) -> tuple[str, ...]:
    verb = "went" if report.get("applied") else "would go"
    actions = entries(report.get("actions"))
    done = [f"{a.get('action')}: {a.get('count')} {a.get('unit')} {verb}" for a in actions if a.get("count")]
    kept = [f"{a.get('action')}: kept: {line}" for a in actions for line in lines(a.get("kept"))]
    bad = [f"{f.get('stage')} failed: {f.get('message')}" for f in entries(report.get("failures"))]
    return (*bad, *done, *kept, *lines(report.get("remarks"))) or ("nothing may go",)


def _watched(one: Mapping[str, Any]) -> str:
    room, fresh = fields(one.get("headroom")), fields(one.get("freshness"))
    if one.get("problem"):
        return str(one["problem"])
    said = []
    if room and room.get("alarm") != "green":
        lost = f", {room['lost']} lost unread" if room.get("lost") else ""
        said.append(f"{room.get('alarm')}: {room.get('backlog')} offsets unread{lost}")
    if fresh.get("late") is True:
        said.append(f"later than the {fresh.get('declared_s')} s that it declares")
    return "; ".join(said)
