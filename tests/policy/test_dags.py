"""What every DAG must have, and what a stream's file may do to them: nothing, but to its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.stack.airflow_home import ROOT, load_dags, prepare_airflow, write_settings
from wavestitch import stream_files
from wavestitch.contracts import errors
from wavestitch.contracts.batch_stages import BATCH, HELD

prepare_airflow()

HEAVY = ("pyspark", "great_expectations", "confluent_kafka", "pyiceberg", "pandas", "pyarrow")
GOOD = "topic: t\ngroup: g\n"
ASKING = ("rewind_", "decide_", "promote_")
"""DAGs whose runs wait for a person, which has an end of its own."""
FLOWS = ("ingest", "backfill", "rewind", "decide", "verify", "promote")


@pytest.fixture
def dags_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[Path | dict[str, str]], dict[str, Any]]:
    """The DAGs for a folder of streams, or for files given as name and text."""

    def load(streams: Path | dict[str, str]) -> dict[str, Any]:
        if isinstance(streams, dict):
            folder = tmp_path / "streams"
            folder.mkdir()
            for name, text in streams.items():
                (folder / name).write_text(text)
            streams = folder
        monkeypatch.setenv("WAVESTITCH_CONFIG", str(write_settings(tmp_path, streams=streams)))
        bag = load_dags()
        assert bag.import_errors == {}, f"DAG files that cannot be imported: {bag.import_errors}"
        return dict(bag.dags)

    return load


@pytest.fixture
def dags(dags_of: Callable[[Path], dict[str, Any]]) -> dict[str, Any]:
    """The DAGs of the project as it is."""
    return dags_of(ROOT / "streams")


def test_each_declared_stream_has_a_dag_for_each_flow_and_two_are_for_all_streams(
    dags: dict[str, Any],
) -> None:
    streams = sorted(p.stem for p in (ROOT / "streams").glob("*.yaml"))
    assert sorted(dags) == sorted([*(f"{flow}_{s}" for flow in FLOWS for s in streams), "maintain", "watch"])


def test_every_dag_says_what_it_is_for_and_ends(dags: dict[str, Any]) -> None:
    from wavestitch.flows import alarms  # noqa: PLC0415 - loads Airflow

    for name, dag in dags.items():
        fix = f"DAG {name}: add it where the DAG is made, in dags/"
        assert dag.description, f"no description. {fix}"
        assert dag.doc_md, f"no doc_md. {fix}"
        assert "wavestitch" in dag.tags, f"no tag 'wavestitch'. {fix}"
        assert dag.dagrun_timeout is not None, f"no dagrun_timeout: a stuck run would keep its stream for ever. {fix}"
        assert dag.on_failure_callback is alarms.tell_timed_out, (
            f"of a run that reaches that nobody would be told. {fix}"
        )
        assert dag.max_active_runs == 1, f"max_active_runs is {dag.max_active_runs}, must be 1. {fix}"
        assert dag.catchup is False, f"catchup: each interval since its start date would be run. {fix}"
        assert "broken" not in dag.tags, f"{dag.description}: put its file in streams/ right"


def _each(found: Any) -> list[Any]:
    return list(found) if isinstance(found, list | tuple) else [found]


def test_somebody_is_told_where_a_task_of_any_dag_fails_and_where_a_run_that_waits_for_nobody_is_late(
    dags: dict[str, Any],
) -> None:
    from airflow.serialization.encoders import encode_deadline_alert  # noqa: PLC0415

    from wavestitch.flows.alarms import tell_failure  # noqa: PLC0415

    for name, dag in dags.items():
        for task in dag.tasks:
            fix = f"DAG {name}, task {task.task_id}: add tell_failure to default_args, in dags/"
            assert tell_failure in _each(task.on_failure_callback), f"nobody is told where it fails. {fix}"
        if not name.startswith(ASKING):
            assert dag.deadline, f"DAG {name}: no deadline; add late_after(…) where the DAG is made, in dags/"
            # As Airflow keeps it, and computes with it where a run is cleared that failed or is under way.
            kept = [timedelta(seconds=encode_deadline_alert(alert)["interval"]) for alert in dag.deadline]
            assert all(length < dag.dagrun_timeout for length in kept), f"DAG {name}: told after its end"


def test_every_task_has_an_owner_a_description_and_an_end(dags: dict[str, Any]) -> None:
    for name, dag in dags.items():
        for task in dag.tasks:
            fix = f"DAG {name}, task {task.task_id}: add it to the task's decorator or to default_args, in dags/"
            assert task.owner == "wavestitch", f"owner is {task.owner!r}. {fix}"
            assert task.doc_md, f"no doc_md (a docstring is enough). {fix}"
            assert task.execution_timeout is not None, f"no execution_timeout. {fix}"
            assert task.execution_timeout < dag.dagrun_timeout, f"it may take longer than its run. {fix}"


def test_every_form_field_explains_itself(dags: dict[str, Any]) -> None:
    for name, dag in dags.items():
        for key in dag.params:
            param = dag.params.get_param(key)
            fix = f"DAG {name}, param {key}: add it to the Param, in dags/"
            assert param.description, f"no description. {fix}"
            for what in ("title", "type"):
                assert param.schema.get(what), f"no {what}. {fix}"
            needed = "null" not in param.schema["type"] and param.value in (None, "")
            # The section without a name is the only one that Airflow opens by itself.
            assert not (needed and param.schema.get("section")), f"needed, and hidden in a closed section. {fix}"
            if dag.timetable.can_be_scheduled:
                assert not needed, f"blocks the form while it is empty. {fix}"


def test_positions_move_only_where_a_person_asked_for_it_and_a_person_approved_of_it(dags: dict[str, Any]) -> None:
    for name in sorted(n for n in dags if n.startswith("rewind_")):
        dag = dags[name]
        assert not dag.timetable.can_be_scheduled, f"DAG {name}: it must not have a schedule"
        assert all(t.retries == 0 for t in dag.tasks), f"DAG {name}: it must not be tried again by itself"
        approve = dag.get_task("approve")
        assert dag.get_task("apply").upstream_task_ids == {"approve", "preview"}
        assert approve.defaults == ["Reject"], f"DAG {name}: nobody's answer must be no"
        assert approve.response_timeout < dag.dagrun_timeout, f"DAG {name}: the run must outlive the question"
        for accepted in ("accept_skip", "accept_missing"):
            assert approve.params[accepted] is False, f"DAG {name}, {accepted}: must be off by default"


def test_what_is_held_is_decided_about_only_as_a_person_approved_and_by_the_stages_of_the_command(
    dags: dict[str, Any],
) -> None:
    for name in sorted(n for n in dags if n.startswith("decide_")):
        dag = dags[name]
        assert not dag.timetable.can_be_scheduled, f"DAG {name}: it must not have a schedule"
        stages = ["keep_plan", *(stage.name.replace(" ", "_") for stage in HELD)]
        gate = ["ask", "answered"]
        assert [t.task_id for t in dag.topological_sort()] == ["preview", "approve", *stages[:-1], *gate, stages[-1]]
        assert dag.get_task("publish").upstream_task_ids == {"keep_plan", "reassemble", "answered"}
        approve = dag.get_task("approve")
        assert dag.get_task("keep_plan").upstream_task_ids == {"approve", "preview"}
        assert approve.defaults == ["Reject"], f"DAG {name}: nobody's answer must be no"
        assert approve.response_timeout < dag.dagrun_timeout, f"DAG {name}: the run must outlive the question"


def test_what_is_published_is_replaced_only_as_a_person_approved_and_by_the_stages_of_the_command(
    dags: dict[str, Any],
) -> None:
    for name in sorted(n for n in dags if n.startswith("promote_")):
        dag = dags[name]
        assert not dag.timetable.can_be_scheduled, f"DAG {name}: it must not have a schedule"
        stages = ["keep_plan", *(stage.name.replace(" ", "_") for stage in BATCH)]
        assert [t.task_id for t in dag.topological_sort()] == ["preview", "approve", *stages]
        approve = dag.get_task("approve")
        assert dag.get_task("keep_plan").upstream_task_ids == {"approve", "preview"}
        assert approve.defaults == ["Reject"], f"DAG {name}: nobody's answer must be no"
        assert approve.response_timeout < dag.dagrun_timeout, f"DAG {name}: the run must outlive the question"


def test_maintenance_has_a_task_a_stream_one_at_a_time_and_is_a_dry_run_by_hand(dags: dict[str, Any]) -> None:
    maintain = dags["maintain"]
    assert sorted(t.task_id for t in maintain.tasks) == sorted(p.stem for p in (ROOT / "streams").glob("*.yaml"))
    assert maintain.params["mode"] == "dry run", "DAG maintain, param mode: must be a dry run by default"
    assert maintain.timetable.can_be_scheduled, "DAG maintain: it must run by itself, or disks fill up"
    assert maintain.max_active_tasks == 1, "DAG maintain: streams one at a time, each may start a Spark of its own"
    assert all(t.trigger_rule == "all_done" for t in maintain.tasks), "one stream must not stop the others"


def test_the_tasks_of_a_stream_are_the_stages_of_a_batch_in_order(dags: dict[str, Any]) -> None:
    dag = dags["ingest_ecg"]
    stages = [stage.name.replace(" ", "_") for stage in BATCH]
    after = stages.index("validate") + 1
    stages[after:after] = ["ask", "answered"]
    assert [t.task_id for t in dag.topological_sort()] == ["plan", *stages, "catch_up"]
    assert dag.get_task("ask").response_timeout < dag.dagrun_timeout, "the run must outlive the question"
    assert dag.get_task("ask").defaults == ["Stop"], "nobody's answer publishes nothing"
    of_each = [name for name in ["read", *stages[1:]] if name != "plan"]
    for group in ("batch", "across_cuts"):
        tasks = [t.task_id for t in dags["backfill_ecg"].topological_sort() if t.task_id.startswith(f"{group}.")]
        assert tasks == [f"{group}.{name}" for name in of_each]
    assert dag.get_task("read").is_mapped
    assert dag.get_task("read").map_index_template == "{{ slices }}"


def test_what_cannot_help_is_not_tried_again_and_what_can_is(dags: dict[str, Any]) -> None:
    from airflow.sdk import RetryAction  # noqa: PLC0415

    wanted = dict.fromkeys(errors.Terminal.__subclasses__(), RetryAction.FAIL)
    wanted |= {errors.Transient: RetryAction.RETRY, errors.StateUnknown: RetryAction.RETRY}  # type: ignore[dict-item]
    for task in dags["ingest_ecg"].tasks:
        assert task.retries == 2
        assert task.retry_policy is not None, f"DAG ingest_ecg, task {task.task_id}: no retry_policy (default_args)"
        for kind, action in wanted.items():
            found = task.retry_policy.evaluate(kind("x"), 1, 2).action
            assert found is action, f"task {task.task_id}: {kind.__name__} leads to {found}, must be {action}"


def test_backfills_of_a_stream_never_run_two_sparks_and_each_has_one_batch_on_disk(dags: dict[str, Any]) -> None:
    """However many runs Airflow's dialogue starts at once."""
    dag = dags["backfill_ecg"]
    sparks = [t for t in dag.tasks if t.task_id.endswith("reassemble")]
    assert [t.max_active_tis_per_dag for t in sparks] == [1, 1]
    assert dag.max_active_tasks == 1, "the next batch must not be read while one waits for its Spark"
    assert {str(t.weight_rule) for t in dag.tasks} == {"upstream"}, "the batch that has come farthest goes on first"


def test_every_stream_has_intervals_to_backfill_and_none_of_them_runs_by_itself(
    dags_of: Callable[..., dict[str, Any]],
) -> None:
    from airflow.serialization.serialized_objects import DagSerialization  # noqa: PLC0415

    hourly = GOOD + 'backfill_intervals: "0 * * * *"\n'
    found = dags_of({"a.yaml": GOOD + 'schedule: "15 * * * *"\n', "b.yaml": GOOD, "c.yaml": hourly})
    first, last = datetime(2020, 1, 1, tzinfo=UTC), datetime(2020, 1, 1, 3, 30, tzinfo=UTC)
    spans = {}
    for name in "abc":
        dag = DagSerialization.from_dict(DagSerialization.to_dict(found[f"backfill_{name}"]))
        assert dag.timetable.periodic
        assert dag.next_dagrun_info(last_automated_run_info=None) is None
        infos = [i.data_interval for i in dag.iter_dagrun_infos_between(first, last)]
        spans[name] = [(i.start.strftime("%d %H:%M"), i.end.strftime("%d %H:%M")) for i in infos]
    assert spans["a"][0] == ("01 00:15", "01 01:15")
    assert spans["b"] == [("01 00:00", "02 00:00")]
    assert [len(spans[name]) for name in "ac"] == [4, 4]
    assert "backfill" not in found["ingest_a"].allowed_run_types
    assert "scheduled" not in found["backfill_a"].allowed_run_types


def test_intervals_that_never_come_are_shown_where_they_are_wanted(dags_of: Callable[..., dict[str, Any]]) -> None:
    found = dags_of({"a.yaml": GOOD + 'backfill_intervals: "0 0 31 2 *"\n'})
    assert "'backfill_intervals' is not valid" in found["backfill_a"].description
    assert "broken" in found["backfill_a"].tags
    assert "broken" not in found["ingest_a"].tags


def test_to_park_is_offered_only_where_something_is_held(dags: dict[str, Any]) -> None:
    assert "park" in dags["ingest_ecg"].params.get_param("gate").schema["enum"]
    form = dags["backfill_ecg"].params.get_param("gate")
    assert form.schema["enum"] == ["ask", "stop", "accept"]
    assert "park" not in form.description


def test_a_schedule_is_a_cron_expression_in_utc_over_data_intervals(dags_of: Callable[..., dict[str, Any]]) -> None:
    found = dags_of({"a.yaml": GOOD + 'schedule: "15 * * * *"\n', "b.yaml": GOOD})
    assert type(found["ingest_a"].timetable).__name__ == "CronDataIntervalTimetable"
    assert found["ingest_a"].timetable.expression == "15 * * * *"
    assert str(found["ingest_a"].timetable.timezone) == "UTC"
    assert not found["ingest_b"].timetable.can_be_scheduled


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("topic: [", "streams/bad.yaml is not YAML"),
        ("topic: t\n", "'group' is missing"),
        (GOOD + "limit: 3\n", "unknown key 'limit'"),
        (GOOD + 'schedule: "61 * * * *"\n', "'schedule' is not valid"),
        (GOOD + 'schedule: "0 0 31 2 *"\n', "never comes"),
        (GOOD + "name: other\n", "file and name must agree"),
        ("<img src=x onerror=alert(1)>", "it must hold a mapping"),
    ],
)
def test_a_broken_file_takes_away_its_own_dag_only_and_shows_why(
    dags_of: Callable[..., dict[str, Any]], text: str, reason: str
) -> None:
    found = dags_of({"good.yaml": GOOD, "bad.yaml": text})
    # One whose schedule alone is wrong can be rewound all the same.
    assert found.keys() - {"backfill_bad", "rewind_bad", "decide_bad", "verify_bad", "promote_bad"} == {
        "maintain",
        "watch",
        "ingest_bad",
        *(f"{f}_good" for f in FLOWS),
    }
    broken = found["ingest_bad"]
    assert reason in broken.description
    assert reason in broken.doc_md
    assert "broken" in broken.tags
    assert "broken" not in found["ingest_good"].tags
    assert not broken.timetable.can_be_scheduled
    with pytest.raises(errors.BadInput, match=reason):
        broken.get_task("explain").python_callable()


def test_a_file_whose_name_is_no_stream_or_no_dag_is_broken_too(dags_of: Callable[..., dict[str, Any]]) -> None:
    found = dags_of({"My Stream.yaml": GOOD, "My_Stream.yaml": GOOD, "ok.yaml": GOOD})
    assert len(found) == 10
    assert sum("broken" in d.tags for d in found.values()) == 2


@pytest.mark.parametrize(
    ("name", "text", "reason"),
    [
        ("bad.yaml", f"name: 0x{'f' * 5000}\n{GOOD}", "a number has more than"),
        ("bad.yaml", f"{GOOD}? 0x{'f' * 5000}\n: 1\n", "a number has more than"),
        (f"{'x' * 250}.yaml", GOOD, "a stream's name has a-z"),
        # Its DAG once had the id of the stream beside it: a sum of letters is no digest.
        ("ecg\xaeward.yaml", GOOD, "a stream's name has a-z"),
        (b"\xff\xfe.yaml", GOOD, "a stream's name has a-z"),
        (".yaml", GOOD, "cannot be read"),
        ("bad.yaml", Path("/dev/zero"), "is a link out of"),
        ("bad.yaml", Path("/dev/stdin"), "is a link out of"),
        ("bad.yaml", Path("."), "cannot be read"),
    ],
)
def test_whatever_a_file_holds_or_is_called_takes_no_other_dag_away(
    dags_of: Callable[..., dict[str, Any]], tmp_path: Path, name: str | bytes, text: str | Path, reason: str
) -> None:
    folder = tmp_path / "files"
    folder.mkdir()
    for good in ("good.yaml", "ecg_ward_856.yaml"):
        (folder / good).write_text(GOOD)
    path = folder / os.fsdecode(name)
    path.symlink_to(text) if isinstance(text, Path) else path.write_text(text)
    found = dags_of(folder)
    own = {f"{flow}_{good}" for flow in FLOWS for good in ("good", "ecg_ward_856")}
    (broken,) = found.keys() - own - {"maintain", "watch"}
    assert "broken" in found[broken].tags
    assert reason in found[broken].description
    assert not any("broken" in found[n].tags for n in ("ingest_good", "ingest_ecg_ward_856"))
    assert len(found["maintain"].tasks) == 3


def test_of_more_files_than_are_read_a_dag_says_which_are_left_out(
    dags_of: Callable[..., dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WAVESTITCH_MOST_STREAMS", "1")
    found = dags_of({"one.yaml": GOOD, "two.yaml": GOOD})
    assert set(found) == {*(f"{flow}_one" for flow in FLOWS), "maintain", "watch", "streams_left_out"}
    assert "Left out are 'two'" in found["streams_left_out"].doc_md


def test_a_fault_of_ours_in_one_stream_is_the_trouble_of_its_own_dag(
    dags_of: Callable[..., dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    read = stream_files.parse_stream

    def at_fault(text: str, *, name: str, where: str) -> Any:
        if name == "meets_a_fault":
            raise KeyError(name)
        return read(text, name=name, where=where)

    monkeypatch.setattr(stream_files, "parse_stream", at_fault)
    found = dags_of({"good.yaml": GOOD, "meets_a_fault.yaml": GOOD})
    assert "KeyError: 'meets_a_fault'" in found["ingest_meets_a_fault"].description.replace('"', "")
    assert "broken" not in found["ingest_good"].tags


def test_a_stream_may_have_the_name_of_anything_in_the_dag_s_file(dags_of: Callable[..., dict[str, Any]]) -> None:
    assert "ingest_dag_id" in dags_of({"dag_id.yaml": GOOD, "good.yaml": GOOD})


def test_without_any_stream_there_is_only_maintenance(dags_of: Callable[..., dict[str, Any]]) -> None:
    assert sorted(dags_of({})) == ["maintain", "watch"]


def test_every_dag_can_be_stored_and_is_the_same_each_time_it_is_parsed(
    dags_of: Callable[..., dict[str, Any]],
) -> None:
    from airflow.serialization.serialized_objects import DagSerialization  # noqa: PLC0415

    first = {n: DagSerialization.to_dict(d) for n, d in dags_of(ROOT / "streams").items()}
    second = {n: DagSerialization.to_dict(d) for n, d in dags_of(ROOT / "streams").items()}
    assert json.dumps(first, sort_keys=True, default=str) == json.dumps(second, sort_keys=True, default=str)


def test_parsing_loads_nothing_heavy(tmp_path: Path) -> None:
    config = write_settings(tmp_path, streams=ROOT / "streams")
    code = f"""
import runpy, sys
for name in ("backfill", "decide", "ingest", "maintain", "promote", "rewind", "verify", "watch"):
    runpy.run_path(f"{ROOT}/dags/{{name}}.py")
print(sorted(set(sys.modules) & set({HEAVY!r})))
"""
    environment = {**os.environ, "WAVESTITCH_CONFIG": str(config)}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "[]", f"dags/*.py load {done.stdout}; import them inside the tasks"
