"""The page of a run says on its first line what happened, and then what to do: for each kind of run and each end."""

from __future__ import annotations

from typing import Any

import pytest

from wavestitch.ui.answer import PlainJson
from wavestitch.ui.facts import run_said
from wavestitch.ui.pages import BatchOfRun, run_page
from wavestitch.ui.run_story import RunFacts, Story, story_of, stream_of_dag
from wavestitch.ui.said import plain

PUBLISHED = {"result": "Published", "waveforms": {"published": 3, "open": 1, "quarantined": 0}}
REPORT: dict[str, Any] = {
    "stream": "ecg",
    "applied": True,
    "actions": [{"action": "landing", "unit": "folders", "count": 2, "kept": ["b1: its gate is closed"]}],
    "remarks": [],
    "failures": [],
}


def told(kind: str, state: str, tasks: dict[str, str] | None = None, **said: Any) -> Story:
    """`said`: by `task__key`, or by task what it returned."""
    named: dict[Any, Any] = {tuple(k.partition("__")[::2]): v for k, v in said.items() if k != "failures"}
    xcoms = {(task, key or "return_value"): v for (task, key), v in named.items()}
    found = {task: {of: 1} for task, of in (tasks or {}).items()}
    run = RunFacts(f"{kind}_ecg", "r", state, found, xcoms, said.get("failures", {}))
    return story_of(kind, run, may=["ecg"])


@pytest.mark.parametrize(
    "story, style, says",
    [
        (
            told("ingest", "success", publish=PUBLISHED),
            "passed",
            "The batch was committed: 3 published, 1 open waveforms.",
        ),
        (told("ingest", "success", plan__nothing="the stream is up to date"), "passed", "Nothing was to be done: the"),
        (told("ingest", "running", {"read": "running"}), "muted", "It is under way: read."),
        (told("ingest", "queued"), "muted", "It waits for its turn."),
        (told("ingest", "failed", {"read": "failed"}), "failed", "It failed at read."),
        (told("ingest", "failed"), "failed", "It failed; no task of it did"),
        (told("ingest", "running", {"ask": "awaiting_input"}, validate__closed="2 rows."), "reported", "2 rows."),
        (told("rewind", "running", {"approve": "awaiting_input"}), "reported", "waits for an answer. Nothing moved."),
        (
            told("rewind", "success", {"apply": "skipped"}),
            "passed",
            "rejected, or nobody answered in time. Nothing moved.",
        ),
        (
            told("rewind", "success", apply={"head": 9, "generation": 2, "asked_by": "a"}),
            "passed",
            "by head 9 of generation 2",
        ),
        (told("rewind", "failed", {"preview": "failed"}), "failed", "It failed at preview."),
        (told("decide", "running", {"approve": "awaiting_input"}), "reported", "Nothing changed."),
        (told("decide", "success", publish=PUBLISHED), "passed", "The decision was committed: 3 published"),
        (told("decide", "success", {"keep_plan": "skipped"}), "passed", "rejected"),
        (
            told("backfill", "success", report={"published": 5, "batches": 2}),
            "passed",
            "5 waveforms were published by 2",
        ),
        (told("backfill", "success", report={"published": 0, "said": ["gone"]}), "reported", "0 waveforms"),
        (told("backfill", "running", {"plan": "success"}, plan=["a", "b"]), "muted", "Batches of it: 2."),
        (told("verify", "success", verify__found={"compared": "9 the same", "exit_code": 0}), "passed", "9 the same"),
        (told("verify", "failed", verify__found={"compared": "1 differs", "exit_code": 1}), "failed", "1 differs"),
        (told("maintain", "success", ecg=REPORT), "passed", "What nobody needs any more was let go, of 1 streams."),
        (told("maintain", "success", ecg=REPORT | {"applied": False}), "passed", "A dry run: this is what would go"),
        (
            told("maintain", "failed", {"ecg": "failed"}, failures={"ecg": "a disk is full"}),
            "failed",
            "1 of 1 streams failed",
        ),
        (told("watch", "success", look=[{"stream": "ecg", "problem": "away"}]), "reported", "1 of 1 streams are near"),
        (told("watch", "success", look=[{"stream": "ecg", "problem": ""}]), "passed", "All of 1 streams are well."),
    ],
)
def test_each_end_of_each_kind_of_run_has_a_first_line(story: Story, style: str, says: str) -> None:
    assert story.style == style
    assert says in story.says


def test_what_a_task_failed_with_is_said_and_where_nobody_said_it_the_log_is_named() -> None:
    story = told("ingest", "failed", {"read": "failed", "plan": "failed"}, failures={"read": "the broker is away"})
    assert story.lists == (("What the tasks say", ("read: the broker is away",)),)
    assert "The log of plan says why." in story.todo


def test_a_question_leads_to_where_it_is_answered_and_a_rewind_to_its_undo() -> None:
    assert told("ingest", "running", {"ask": "awaiting_input"}).answer == "ask"
    assert told("rewind", "running", {"approve": "awaiting_input"}).answer == "approve"
    assert "`undo:9`" in told("rewind", "success", apply={"head": 9, "undo": "undo:9"}).todo


def test_a_run_of_all_streams_says_nothing_of_one_that_may_not_be_seen() -> None:
    other = {**REPORT, "remarks": ["a secret"]}
    run = RunFacts("maintain", "r", "failed", {"b": {"failed": 1}}, {("a", "return_value"): other}, {"b": "a secret"})
    assert "secret" in str(story_of("maintain", run, may=["a", "b"]))
    assert "secret" not in str(story_of("maintain", run, may=["c"]))
    assert "nothing about a stream that you may read" in story_of("maintain", run, may=["c"]).says
    seen = [{"stream": "a", "problem": "a secret"}, {"stream": "c", "problem": ""}]
    watch = RunFacts("watch", "r", "success", {}, {("look", "return_value"): seen})
    assert "All of 1 streams" in story_of("watch", watch, may=["c"]).says
    assert "secret" not in str(story_of("watch", watch, may=["c"]))


def test_a_look_that_saw_a_stream_late_says_so_beside_its_headroom() -> None:
    fresh = {"late": True, "declared_s": 15}
    seen = [
        {"stream": "a", "headroom": {"alarm": "green"}, "freshness": fresh},
        {"stream": "b", "headroom": {"alarm": "red", "backlog": 7, "lost": 0}, "freshness": fresh},
        {"stream": "c", "headroom": {"alarm": "green"}, "freshness": {**fresh, "late": False}},
        {"stream": "d", "headroom": {"alarm": "green"}, "freshness": {"late": "yes"}},
    ]
    watch = RunFacts("watch", "r", "success", {}, {("look", "return_value"): seen})
    story = story_of("watch", watch, may=["a", "b", "c", "d"])
    assert story.says == "2 of 4 streams are near retention, late, or cannot be looked at."
    late = "later than the 15 s that it declares"
    assert story.lists == (("a", (late,)), ("b", (f"red: 7 offsets unread; {late}",)))


def test_a_dag_is_of_the_stream_that_it_was_made_for() -> None:
    names = ["ecg", "ecg_two", "not a name"]
    assert stream_of_dag("ingest_ecg", names) == ("ingest", "ecg")
    assert stream_of_dag("rewind_ecg_two", names) == ("rewind", "ecg_two")
    assert stream_of_dag("maintain", names) == ("maintain", "")
    for other in ("ingest_other", "rewind", "example", "ingest_"):
        assert stream_of_dag(other, names) == ("", "")


ODD: list[Any] = [
    *(None, 0, 7, 1.5, True, "x", "\ud800", "a\nb", [], ["a"], [["a"]], {}, {"published": 3}, {"waveforms": "abc"}),
    *({"actions": 3}, {"actions": [{"kept": 5, "count": 1}]}, {"failures": 3}, {"waveforms": 3}, {"remarks": 3}),
    {"result": "Finished", "published": {"waveforms": {"a": "b"}}},
    {"result": "Finished", "published": 3},
    *([{"stream": ["x"]}], [{"stream": "ecg", "headroom": 3}], [{"stream": "ecg", "headroom": {"lost": []}}]),
    [{"stream": "ecg", "problem": {"a": "\ud800"}}],
    *({"said": {"a": 1}, "incomplete": 3}, {"exit_code": [], "waveforms": [3, {"why": {}}], "compared": {}}),
    {"head": {}, "undo": [], "asked_by": {}},
]
SAYS = {
    "ingest": [("plan", "plan_id"), ("plan", "nothing"), ("validate", "closed"), ("publish", "return_value")],
    "backfill": [("report", "return_value"), ("plan", "return_value")],
    "rewind": [("preview", "shown"), ("apply", "return_value")],
    "decide": [("preview", "shown"), ("keep_plan", "return_value"), ("publish", "return_value")],
    "promote": [("preview", "shown"), ("keep_plan", "plan_id"), ("publish", "return_value")],
    "verify": [("verify", "found")],
    "maintain": [("ecg", "return_value")],
    "watch": [("look", "return_value")],
}


@pytest.mark.parametrize("kind", SAYS)
def test_whatever_an_xcom_was_changed_to_the_run_has_a_page(kind: str) -> None:
    for key in SAYS[kind]:
        for odd in ODD:
            run = RunFacts("d", "r", "success", {}, {key: odd})
            story = story_of(kind, run, may={"ecg"})
            run_page(kind, "ecg", run, story, BatchOfRun()).encode()
            assert PlainJson(run_said(kind, "ecg", run, story, None)).body


@pytest.mark.parametrize("text", ["[" * 200_000, "{", '{"a": ' * 50_000, "[1" + "0" * 5000 + "]"])
def test_a_text_that_only_seems_to_be_json_stays_a_text(text: str) -> None:
    assert plain(text) == text
