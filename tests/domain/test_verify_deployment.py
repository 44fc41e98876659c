"""A range verified over real tables, a real landing and Great Expectations; the log alone is in memory. Nothing of the
stream is changed by it, and nothing of it is left."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import typer

from tests.builders.altered_rows import alter_row
from tests.builders.deleted_rows import delete_rows
from tests.builders.ranges import span
from tests.builders.sending import send_chunk
from tests.deployment_rig import STREAM, DeploymentRig
from tests.hostile.landed_deployment import (
    FakeDeployment,
    declare,
    make_landed_deployment,
    reader_of,
    run_landed_batch,
)
from tests.stack.airflow_home import load_dags, make_database, prepare_airflow
from tests.stack.dag_lab import run_here
from wavestitch import cli, cli_verify
from wavestitch.batch import comparing_edges
from wavestitch.batch.carry import Silent
from wavestitch.batch.comparing_edges import VerifyingEdges
from wavestitch.batch.verify import Verified, VerifyRequest, verify_range
from wavestitch.contracts.offset_range import OffsetRange
from wavestitch.contracts.plan import Scope
from wavestitch.contracts.stream import Stream
from wavestitch.contracts.verification import Agreement, Compared
from wavestitch.settings_sections import Spark

prepare_airflow()
T = 1_767_614_400_000
HOUR = 3_600_000
YAML = "limits: {max_clock_skew: 36500 d}\nreading: {min_slice: 4}\n"
ASKED = "{type: expect_column_values_to_be_between, kwargs: {column: sample_count, max_value: 1}}"
STRICT = f"expectations: [{ASKED}]\n"


@pytest.fixture
def whole(tmp_path: Path) -> DeploymentRig:
    made = make_landed_deployment(tmp_path / "deployment", stream_yaml=YAML, partitions=2)
    for n in range(4):
        for seq in range(2):
            value = bytes([n, 0, seq, 1])
            send_chunk(memory(made), f"w{n}", seq, value, at_ms=T, start_ms=T + n * HOUR, count=2, partition=n % 2)
    run_landed_batch(fake(made))
    return made


def fake(whole: DeploymentRig) -> FakeDeployment:
    assert isinstance(whole.deployment, FakeDeployment)
    return whole.deployment


def memory(whole: DeploymentRig) -> Any:
    return fake(whole).memory


def state(whole: DeploymentRig) -> tuple[Any, ...]:
    """All that a verification must leave alone."""
    tables = whole.deployment.tables(STREAM)
    files = [str(p) for f in ("landing", "docs", "warehouse") for p in sorted((whole.folder / f).rglob("*"))]
    table = tables.waveforms()
    assert table is not None
    stands = tables.heads(), tables.batches(), table.current_snapshot(), tables.held_left()
    return *stands, dict(memory(whole).group), files


def verify(whole: DeploymentRig, *ranges: OffsetRange, scope: Scope | None = None, batch: str = "") -> Verified:
    before = state(whole)
    edges = VerifyingEdges(whole.deployment, STREAM, read=reader_of(fake(whole)))
    done = verify_range(edges, VerifyRequest(ranges, scope, batch), watcher=Silent())
    assert state(whole) == before
    return done


def unlike(done: Verified) -> dict[str, Compared]:
    return {one.waveform_id: one for one in done.waveforms if one.found is not Agreement.SAME}


def table_of(whole: DeploymentRig) -> Any:
    return whole.deployment.tables(STREAM).waveforms()


def test_what_batches_published_is_the_same_by_every_way_of_naming_a_range(whole: DeploymentRig) -> None:
    plan_id = whole.deployment.tables(STREAM).batches()[0].plan_id
    everything, named = verify(whole), verify(whole, span(0, 0, 4), span(1, 0, 4))
    assert [one.found for one in everything.waveforms] == [Agreement.SAME] * 4
    assert named.waveforms == everything.waveforms == verify(whole, batch=plan_id[:8]).waveforms
    interval = verify(whole, scope=Scope((T + HOUR) * 10**6, (T + 3 * HOUR) * 10**6))
    assert [one.waveform_id for one in interval.waveforms] == ["w1", "w2"]
    assert unlike(interval) == {}


def test_an_altered_sample_a_deleted_row_and_deleted_records_each_have_their_name(whole: DeploymentRig) -> None:
    plan_id = whole.deployment.tables(STREAM).batches()[0].plan_id
    alter_row(table_of(whole), "w1", samples=[7, 256, 1, 257])
    (one,) = unlike(verify(whole)).values()
    assert (one.waveform_id, one.found, one.columns) == ("w1", Agreement.DIFFERS, ("samples",))
    assert one.plan_id == plan_id
    delete_rows(table_of(whole), ["w2"])
    memory(whole).retain_from(1, 3)
    done = verify(whole, span(0, 0, 4), span(1, 0, 4))
    found = {i: one.found for i, one in unlike(done).items()}
    lost = Agreement.MISSING_IN_KAFKA
    assert found == {"w1": lost, "w2": Agreement.MISSING_IN_TABLE, "w3": lost}
    assert done.lost == (span(1, 0, 3),)
    assert done.waveforms[3].lost == (span(1, 2, 3),)


def test_what_a_batch_published_that_stands_in_no_history_yet_is_missed_when_its_row_is_gone(
    whole: DeploymentRig,
) -> None:
    """It was killed right after its commit, and another head is the newest."""
    plan_id = whole.deployment.tables(STREAM).batches()[0].plan_id
    send_chunk(memory(whole), "next", 0, b"\1\0", at_ms=T)
    run_landed_batch(fake(whole))
    history = whole.deployment.tables(STREAM).stored()[2].load()
    assert history is not None
    history.delete(f"plan_id == '{plan_id}'")
    delete_rows(table_of(whole), ["w2"])
    assert {i: one.found for i, one in unlike(verify(whole)).items()} == {"w2": Agreement.MISSING_IN_TABLE}
    assert "w2" in unlike(verify(whole, batch=plan_id[:8]))


def test_in_an_interval_what_is_held_and_gone_from_the_log_is_named_with_its_offsets(whole: DeploymentRig) -> None:
    send_chunk(memory(whole), "half", 0, b"\1\0", at_ms=T, start_ms=T + HOUR, count=2)
    send_chunk(memory(whole), "later", 0, b"\1\0", at_ms=T, start_ms=T + 9 * HOUR, count=2)
    run_landed_batch(fake(whole))
    interval = Scope((T + HOUR) * 10**6, (T + 3 * HOUR) * 10**6)
    assert {i: one.found for i, one in unlike(verify(whole, scope=interval)).items()} == {"half": Agreement.HELD}
    memory(whole).retain_from(0, 6)
    done = verify(whole, scope=interval)
    found = {i: one.found for i, one in unlike(done).items()}
    assert found == {"half": Agreement.HELD_ALONE, "w2": Agreement.MISSING_IN_KAFKA}
    (half,) = [one for one in done.waveforms if one.waveform_id == "half"]
    assert half.lost == (span(0, 4, 5),)
    assert sum(done.offsets.values()) == sum(r.size for r in done.asked)


def test_what_an_expectation_refuses_today_is_newly_failing_and_the_next_ingest_goes_on(whole: DeploymentRig) -> None:
    declare(whole, YAML + STRICT)
    found = unlike(verify(whole))
    assert [one.found for one in found.values()] == [Agreement.NEWLY_FAILING] * 4
    assert "sample_count" in found["w0"].why
    send_chunk(memory(whole), "next", 0, b"\1\0", at_ms=T)
    assert run_landed_batch(fake(whole))["waveforms"]["published"] == 1


def test_no_spark_is_asked_whichever_the_settings_name(whole: DeploymentRig) -> None:
    away = Spark(remote="sc://127.0.0.1:9", token=f"file:{whole.folder}/nowhere", java_home=whole.folder / "nowhere")
    settings = whole.deployment.settings.model_copy(update={"spark": away})
    deployment = replace(fake(whole), settings=settings)
    done = verify_range(
        VerifyingEdges(deployment, STREAM, read=reader_of(fake(whole))), VerifyRequest(), watcher=Silent()
    )
    assert [one.found for one in done.waveforms] == [Agreement.SAME] * 4


def test_an_ingest_beside_it_is_not_compared_with_and_is_not_disturbed(whole: DeploymentRig) -> None:
    reads = reader_of(fake(whole))

    def read(**how: Any) -> Any:
        send_chunk(memory(whole), "beside", 0, b"\1\0", at_ms=T)
        assert run_landed_batch(fake(whole))["waveforms"]["published"] == 1
        return reads(**how)

    before = whole.deployment.tables(STREAM).head()
    edges = VerifyingEdges(whole.deployment, STREAM, read=read)
    done = verify_range(edges, VerifyRequest((span(0, 0, 4),)), watcher=Silent())
    assert before is not None
    assert done.snapshot_id == before.snapshot_id
    assert unlike(done) == {}


def test_a_verification_that_fails_leaves_nothing_behind(whole: DeploymentRig) -> None:
    def fail(**_: Any) -> Any:
        raise KeyError("a fault")

    before = state(whole)
    edges = VerifyingEdges(whole.deployment, STREAM, read=fail)
    with pytest.raises(KeyError):
        verify_range(edges, VerifyRequest(), watcher=Silent())
    assert state(whole) == before


@pytest.fixture
def in_this_process(whole: DeploymentRig, monkeypatch: pytest.MonkeyPatch) -> DeploymentRig:
    """The command and the DAG find this deployment, whose log is in memory."""

    class Here(VerifyingEdges):
        def __init__(self, _deployment: Any, stream: str, *, definition: Stream | None = None, **_how: Any) -> None:
            reads = reader_of(fake(whole))
            super().__init__(whole.deployment, stream, definition=definition, read=reads)

    monkeypatch.setenv("WAVESTITCH_CONFIG", str(whole.folder / "wavestitch.toml"))
    monkeypatch.setattr(comparing_edges, "VerifyingEdges", Here)
    return whole


def command(*words: str, name: str = "verify") -> int:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["wavestitch", name, STREAM, *words])
        try:
            cli.main()
        except SystemExit as ended:
            return int(ended.code or 0)
    return 0


def test_the_command_says_it_in_its_exit_code_in_a_table_as_json_and_in_a_report_that_is_never_replaced(
    in_this_process: DeploymentRig, capsys: pytest.CaptureFixture[str]
) -> None:
    whole, report = in_this_process, in_this_process.folder / "report.json"
    assert command("--into", str(report)) == 0
    assert "the table says what the log says: 4 same" in " ".join(capsys.readouterr().out.split())
    assert json.loads(report.read_text())["counts"]["same"] == 4
    assert command("--into", str(report)) == 2
    nowhere = whole.folder / "link.json"
    nowhere.symlink_to(whole.folder / "nothing")
    assert command("--into", str(nowhere)) == 2
    assert command("--offsets", "0:0-4", "--batch", "beef") == 2
    memory(whole).retain_from(1, 3)
    assert command("--offsets", "0:0-4,1:0-4") == 7
    alter_row(table_of(whole), "w0", units="V")
    capsys.readouterr()
    assert command("--json", "--partitions", "0") == 6
    said = json.loads(capsys.readouterr().out)
    assert (said["exit_code"], said["counts"]["differs"], said["counts"]["same"]) == (6, 1, 1)
    assert said["waveforms"][0]["columns"] == ["units"]


@pytest.mark.parametrize("as_json", [False, True])
def test_a_report_whose_file_another_made_meanwhile_is_shown_and_not_said_to_be_in_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], *, as_json: bool
) -> None:
    into, found = tmp_path / "report.json", {"exit_code": 0}
    into.write_text("another's")

    with pytest.raises(typer.Exit) as ended:
        cli_verify._report(found, into, as_json, show=lambda: print("what was found"))
    assert ended.value.exit_code == 2
    out, err = capsys.readouterr()
    assert out == (json.dumps(found, indent=1) if as_json else "what was found") + "\n"
    said = f"{into} was made by another meanwhile and stays; the report is in no file"
    assert "".join(said.split()) in "".join(err.split())  # a terminal ends its lines where it likes
    assert into.read_text() == "another's"


def test_a_file_that_cannot_be_is_refused_before_anything_is_read(in_this_process: DeploymentRig) -> None:
    (in_this_process.folder / "file").write_text("")
    for name in ("x" * 300, "file/below"):
        assert command("--into", str(in_this_process.folder / name)) == 2


def test_what_differs_is_the_exit_code_also_where_the_disk_takes_no_report(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(typer.Exit) as ended:
        cli_verify._report({"exit_code": 6}, tmp_path / "file" / "report.json", as_json=True, show=lambda: None)
    said = capsys.readouterr()
    assert (ended.value.exit_code, json.loads(said.out)) == (6, {"exit_code": 6})
    assert "writing the report failed: File exists" in " ".join(said.err.split())


def test_the_dag_says_the_same_and_fails_where_they_differ(in_this_process: DeploymentRig) -> None:
    make_database()
    dag = load_dags().dags[f"verify_{STREAM}"]
    for task in dag.tasks:
        task.retries = 0
    done = run_here(dag, {"offsets": "0:0-4,1:0-4"})
    assert done.states() == {"verify": "success"}
    alter_row(table_of(in_this_process), "w0", units="V")
    failed = run_here(dag, {"partitions": "0"})
    assert failed.states() == {"verify": "failed"}
    found = failed.xcoms["verify.found"]
    assert (found["exit_code"], [one["waveform_id"] for one in found["waveforms"]]) == (6, ["w0"])


def draft(whole: DeploymentRig, text: str) -> Path:
    """A definition that is not in force."""
    path = Path(whole.deployment.settings.streams) / "drafts" / f"{STREAM}.yaml"
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    return path


def test_a_draft_is_compared_by_the_command_which_says_what_it_would_change_and_changes_nothing(
    in_this_process: DeploymentRig, capsys: pytest.CaptureFixture[str]
) -> None:
    whole, report = in_this_process, in_this_process.folder / "report.json"
    assert command(name="compare") == 2, "there is no draft yet"
    stream = whole.deployment.stream(STREAM)
    same = f"topic: {stream.topic}\ngroup: {stream.group}\n{YAML}"
    draft(whole, same)
    before = state(whole)
    capsys.readouterr()
    assert command(name="compare") == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "this definition would change nothing: 4 same" in said
    assert "the definition is the one that counts already" in said
    draft(whole, same + STRICT)
    assert command("--into", str(report), "--partitions", "0", name="compare") == 6
    said = " ".join(capsys.readouterr().out.split())
    assert "this definition WOULD CHANGE what is published: 2 newly failing" in said
    assert "expectations: nothing -> " in said
    found = json.loads(report.read_text())
    changes = {w["waveform_id"]: w["change"] for w in found["waveforms"]}
    assert changes == {"w0": "newly failing", "w2": "newly failing"}
    assert "sample_count" in found["waveforms"][0]["why"]
    report.unlink()
    assert state(whole) == before
    elsewhere = whole.folder / "other.yaml"
    elsewhere.write_text(same.replace(f"topic: {stream.topic}", "topic: another"))
    assert command("--definition", str(elsewhere), name="compare") == 2
    elsewhere.write_text(same + "nonsense: 1\n")
    assert command("--definition", str(elsewhere), name="compare") == 2
    assert str(elsewhere) in capsys.readouterr().err.replace("\n", "")
    memory(whole).retain_from(1, 3)
    elsewhere.write_text(same)
    assert command("--offsets", "1:0-4", "--definition", str(elsewhere), name="compare") == 7


def test_what_the_present_definition_refused_a_draft_newly_publishes_and_the_dag_says_so(
    in_this_process: DeploymentRig,
) -> None:
    whole = in_this_process
    declare(whole, YAML + STRICT)
    for seq in range(2):
        send_chunk(memory(whole), "long", seq, b"\1\0", at_ms=T, count=2)
    assert run_landed_batch(fake(whole))["waveforms"]["published"] == 0
    stream = whole.deployment.stream(STREAM)
    draft(whole, f"topic: {stream.topic}\ngroup: {stream.group}\n{YAML}")
    before = state(whole)
    make_database()
    done = run_here(load_dags().dags[f"verify_{STREAM}"], {"definition": "draft"})
    assert done.states() == {"verify": "success"}
    assert state(whole) == before
    found = done.xcoms["verify.return_value"]
    assert [(w["waveform_id"], w["change"]) for w in found["waveforms"]] == [("long", "newly published")]
    assert found["counts"]["same"] == 4
    assert any(said.startswith("expectations: ") for said in found["otherwise"])
