"""Routes and rows of the pages by rights on the stream's DAG: two teams, somebody in both, one without a role."""

from __future__ import annotations

import random
import re
import threading
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.builders.heads import make_head, make_row
from tests.stack.airflow_home import make_database, prepare_airflow, write_settings
from wavestitch.batch.deployment import Deployment
from wavestitch.local.process import wait_until

prepare_airflow()

from tests.stack.pages_lab import fail_a_run, forget_runs  # noqa: E402

PLANS = {"ecg": "b" * 32, "seismic": "c" * 32}
PEOPLE = {
    "heart": ("viewer", ["heart"]),
    "earth": ("viewer", ["earth"]),
    "both": ("viewer", ["heart", "earth"]),
    "no team": ("viewer", []),
    "no role": (None, ["heart", "earth"]),
}
OF_A_STREAM = re.compile(r"\{(stream|dag_id)\}")
READS = {"heart": {"ecg"}, "earth": {"seismic"}, "both": {"ecg", "seismic"}, "no team": set(), "no role": set()}


@pytest.fixture
def client(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Two streams with a batch each, of two teams; what is told of each has the stream's name in it."""
    make_database()
    (tmp_path / "streams").mkdir()
    monkeypatch.setenv("WAVESTITCH_CONFIG", str(write_settings(tmp_path, streams=tmp_path / "streams")))
    for stream, plan_id in PLANS.items():
        (tmp_path / "streams" / f"{stream}.yaml").write_text(f"topic: {stream}-topic\ngroup: g\n")
        folder = tmp_path / "docs" / stream / plan_id
        folder.mkdir(parents=True)
        (folder / "index.html").write_text(f"extremes of {stream}")
        tables = Deployment().tables(stream)
        tables.commit(None, make_head(note="x", plan_id=plan_id), [])
        tables.append_batches([make_row(plan_id=plan_id, stream=stream, note=f"a secret of {stream}")])
    from airflow.api_fastapi import app as airflow_app  # noqa: PLC0415

    from tests.security.two_teams import TeamAuthManager  # noqa: PLC0415
    from wavestitch.ui.app import make_app  # noqa: PLC0415

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        from fastapi.testclient import TestClient  # noqa: PLC0415

    manager = TeamAuthManager()
    monkeypatch.setattr(airflow_app._AuthManagerState, "instance", manager)
    app = make_app()
    app.state.auth_manager = manager
    with TestClient(app, follow_redirects=False) as found:
        yield found


def headers(client: Any, person: str) -> dict[str, str]:
    return headers_of(client, person, *PEOPLE[person])


def headers_of(client: Any, person: str, role: str | None, teams: list[str]) -> dict[str, str]:
    from airflow.api_fastapi.auth.managers.simple.user import SimpleAuthManagerUser  # noqa: PLC0415

    user = SimpleAuthManagerUser(username=person, role=role, teams=teams)
    return {"Authorization": f"Bearer {client.app.state.auth_manager.generate_jwt(user)}"}


def overview(client: Any, sent: dict[str, str]) -> Any:
    """The page once the tables have answered; on a busy machine that may take more than one look."""
    answers: list[Any] = []

    def told() -> bool:
        answers.append(client.get("/", headers=sent))
        return "being looked at" not in answers[-1].text

    assert wait_until(told, seconds=60)
    return answers[-1]


@pytest.mark.parametrize("person", PEOPLE)
def test_the_overview_has_the_streams_whose_dag_may_be_read_and_no_word_of_others(client: Any, person: str) -> None:
    answer = overview(client, headers(client, person))
    assert answer.status_code == 200
    for stream in PLANS:
        assert (stream in answer.text) == (stream in READS[person]), (person, stream)


@pytest.mark.parametrize("person", PEOPLE)
def test_data_docs_and_batches_are_for_who_may_read_the_stream_s_dag(client: Any, person: str) -> None:
    for stream, plan_id in PLANS.items():
        allowed = stream in READS[person]
        held = (f"/stream/{stream}", f"/held/{stream}", f"/held/{stream}/one?id=w")
        waves = tuple(f"/waveforms/{stream}{rest}" for rest in ("", "/one?id=w", "/map"))
        for path in (f"/docs/{stream}/{plan_id}/index.html", f"/run/ingest_{stream}?run_id=r", *held, *waves):
            answer = client.get(path, headers=headers(client, person))
            assert answer.status_code == (200 if allowed else 403), (person, path)
            assert allowed or stream not in answer.text
        for where in ("waveforms", "held"):
            seen = client.get(f"/{where}/{stream}/view?id=w", headers=headers(client, person))
            assert seen.status_code in ({404, 503} if allowed else {403}), (person, where)
        listed = client.get("/waveforms/?format=json", headers=headers(client, person)).json()["streams"]
        assert (stream in listed) == allowed


def test_a_stream_that_is_not_there_looks_like_one_that_is_closed(client: Any) -> None:
    mine = headers(client, "heart")
    closed = client.get(f"/docs/seismic/{PLANS['seismic']}/index.html", headers=mine)
    absent = client.get(f"/docs/nothing/{PLANS['seismic']}/index.html", headers=mine)
    assert (closed.status_code, closed.text) == (absent.status_code, absent.text)


def test_a_right_that_is_taken_away_is_gone_with_the_next_request(client: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from tests.security import two_teams  # noqa: PLC0415

    mine = headers(client, "heart")
    assert "ecg" in overview(client, mine).text
    monkeypatch.setitem(two_teams.TEAM_OF, "ingest_ecg", "earth")
    assert "ecg" not in overview(client, mine).text
    assert client.get(f"/docs/ecg/{PLANS['ecg']}/index.html", headers=mine).status_code == 403


TEAMS = ["heart", "earth", "sea", "sky"]
MANY = {f"s{n}x": TEAMS[n % len(TEAMS)] for n in range(6)}
"""Streams, none of whose names is a part of another one's, and whose they are."""


@pytest.fixture
def failing_runs() -> Iterator[None]:
    """A run of each stream that failed, with the stream's name in its id; of DAGs of the stream in turn."""
    make_database()
    for n, stream in enumerate(MANY):
        fail_a_run(f"{('ingest', 'rewind', 'decide')[n % 3]}_{stream}", f"run-of-{stream}")
    yield
    for stream in MANY:
        forget_runs(f"run-of-{stream}")


@pytest.mark.usefixtures("failing_runs")
def test_fifty_people_see_all_of_their_own_streams_and_no_word_of_others_on_any_page(
    client: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Over all routes, as pages and as JSON. Who may read which stream is drawn, and what is shown held against it."""
    from tests.security import two_teams  # noqa: PLC0415

    for stream, team in MANY.items():
        (tmp_path / "streams" / f"{stream}.yaml").write_text(f"topic: topic-of-{stream}\ngroup: {stream}\n")
        for dag in ("ingest", "backfill", "rewind", "decide", "verify", "promote"):
            monkeypatch.setitem(two_teams.TEAM_OF, f"{dag}_{stream}", team)
        tables = Deployment().tables(stream)
        tables.commit(None, make_head(note="x", plan_id="d" * 32), [])
        tables.append_batches([make_row(plan_id="d" * 32, stream=stream, note=f"a secret of {stream}")])
    of_stream = sorted(r.path for r in client.app.routes if OF_A_STREAM.search(r.path))
    assert len(of_stream) == 10, "a route that is not looked at here"
    drawn = random.Random(7)
    for person in range(50):
        teams = [team for team in (*TEAMS, "nobody's") if drawn.random() < 0.4]
        mine = {stream for stream, team in MANY.items() if team in teams}
        sent = headers_of(client, f"person {person}", "viewer", teams)
        told = overview(client, sent) if person == 0 else client.get("/", headers=sent)
        said = client.get("/", params={"format": "json"}, headers=sent)
        assert {one["stream"] for one in said.json()["streams"]} & set(MANY) == mine, teams
        waves = client.get("/waveforms/", headers=sent)
        assert {s for s in MANY if s in waves.text} == mine, teams
        for answer in (told, said):
            assert {s for s in MANY if s in answer.text} == mine, teams
            assert {s for s in MANY if f"run-of-{s}" in answer.text} == mine, teams
        for n, stream in enumerate(MANY):
            route = path = of_stream[(person + n) % len(of_stream)]
            filled = {"stream": stream, "plan_id": "d" * 32, "name:path": "index.html", "dag_id": f"rewind_{stream}"}
            for key, value in filled.items():
                path = path.replace(f"{{{key}}}", value)
            asked = {"run_id": f"run-of-{stream}", "id": "w", "format": ("html", "json")[person % 2]}
            answer = client.get(path, params=asked, headers=sent)
            if stream in mine:
                # Samples may be late on a busy machine, which their answer says by its status.
                late = 503 if route.endswith("/view") and answer.status_code == 503 else 404
                absent = route.startswith("/docs/") or route.endswith("/view")
                assert answer.status_code == (late if absent else 200), path
                assert {s for s in MANY if s in answer.text} <= {stream}
            else:
                assert answer.status_code == 403, path
                assert not any(s in answer.text for s in MANY)


@pytest.mark.parametrize(
    "path",
    [
        *("/stream/ecg", "/held/ecg", "/held/ecg/one?id=w", "/run/ingest_ecg?run_id=r", "/waveforms/ecg"),
        *("/waveforms/ecg/map", "/waveforms/ecg/one?id=w", "/waveforms/ecg/view?id=w", "/held/ecg/view?id=w"),
    ],
)
def test_a_stream_whose_file_is_gone_says_no_word_of_others_and_of_no_folder(
    client: Any, tmp_path: Path, path: str
) -> None:
    (tmp_path / "streams" / "ecg.yaml").unlink()
    answer = client.get(path, headers=headers(client, "heart"))
    assert answer.status_code == (200 if path.startswith("/run/") else 404)
    assert "seismic" not in answer.text
    assert str(tmp_path) not in answer.text
    assert not client.app.state.looks._seen, "a name that is not declared is kept"


@pytest.mark.parametrize("form", ["html", "json"])
@pytest.mark.parametrize(
    ("leads_to", "says"), [("../elsewhere", "cannot be used"), ("seismic_next.yaml", "cannot be read: No such file")]
)
def test_a_file_that_cannot_be_used_says_no_folder_on_its_stream_s_page(
    client: Any, tmp_path: Path, form: str, leads_to: str, says: str
) -> None:
    """A link out of the folder is refused by a sentence that names both; of one within it Python names the target."""
    (tmp_path / "streams" / "ecg.yaml").unlink()
    (tmp_path / "streams" / "ecg.yaml").symlink_to(leads_to)
    answers: list[str] = []

    def told() -> bool:
        answers.append(client.get("/stream/ecg", params={"format": form}, headers=headers(client, "heart")).text)
        return says in answers[-1]

    assert wait_until(told, seconds=60)
    assert str(tmp_path) not in answers[-1]
    assert "seismic" not in answers[-1]


@pytest.mark.parametrize("path", ["/stream/ecg", "/held/ecg", "/waveforms/ecg", "/waveforms/ecg/map"])
def test_a_catalog_that_cannot_be_opened_is_told_without_its_place(client: Any, tmp_path: Path, path: str) -> None:
    (tmp_path / "catalog.db").unlink()
    (tmp_path / "catalog.db").mkdir()
    answers: list[str] = []

    def told() -> bool:
        answers.append(client.get(path, params={"format": "json"}, headers=headers(client, "heart")).text)
        return "did not answer; `wavestitch check`" in answers[-1]

    assert wait_until(told, seconds=60)
    assert not any(str(tmp_path) in answer for answer in answers)


def test_the_batch_of_a_run_is_shown_to_who_may_read_the_stream_s_own_dag(
    client: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What Airflow's database says of the run is given: a decision that ended carries the id of its plan in an XCom."""
    from tests.security import two_teams  # noqa: PLC0415
    from wavestitch.ui import app as pages  # noqa: PLC0415
    from wavestitch.ui.run_story import RunFacts  # noqa: PLC0415

    said = {("keep_plan", "return_value"): PLANS["ecg"]}
    monkeypatch.setattr(pages, "facts_of_run", lambda _, dag, run: RunFacts(dag, run, "success", {}, said))
    monkeypatch.setitem(two_teams.TEAM_OF, "decide_ecg", "earth")

    def asked(person: str) -> Any:
        asks = {"run_id": "r", "format": "json"}
        return client.get("/run/decide_ecg", params=asks, headers=headers(client, person))

    assert wait_until(lambda: bool(asked("both").json()["batch"]), seconds=60)
    answer = asked("earth")
    assert answer.status_code == 200
    assert not answer.json()["batch"]
    assert "a secret of ecg" not in answer.text


@pytest.mark.parametrize("said", ["all of it", "held Filters()", PLANS["ecg"].upper(), [PLANS["ecg"]]])
def test_what_an_xcom_says_instead_of_a_plan_s_id_is_asked_of_nothing(
    client: Any, monkeypatch: pytest.MonkeyPatch, said: Any
) -> None:
    """The page of the stream once had the answer of such a run's tab, where both were asked by the same name."""
    from wavestitch.ui import app as pages  # noqa: PLC0415
    from wavestitch.ui.run_story import RunFacts  # noqa: PLC0415

    answers = threading.Event()
    xcoms = {("plan", "plan_id"): said, ("publish", "return_value"): {}}
    monkeypatch.setattr(pages, "facts_of_run", lambda _, dag, run: RunFacts(dag, run, "success", {}, xcoms))
    monkeypatch.setattr(pages, "_find_batch", lambda *_: (answers.wait(20), pages.BatchOfRun())[1])
    sent = headers(client, "heart")
    assert client.get("/run/ingest_ecg", params={"run_id": "r"}, headers=sent).status_code == 200
    assert not client.app.state.looks._asked, "the tables are asked for what is no plan"
    answers.set()
    assert client.get("/stream/ecg", headers=sent).status_code == 200


@pytest.mark.usefixtures("failing_runs")
def test_a_run_that_failed_is_told_to_who_may_read_its_own_dag(
    client: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tests.security import two_teams  # noqa: PLC0415

    (tmp_path / "streams" / "s1x.yaml").write_text("topic: t\ngroup: g1\n")
    monkeypatch.setitem(two_teams.TEAM_OF, "ingest_s1x", "earth")
    monkeypatch.setitem(two_teams.TEAM_OF, "rewind_s1x", "auditors")
    for teams, told in ((["earth"], False), (["earth", "auditors"], True)):
        sent = headers_of(client, "somebody", "viewer", teams)
        for path in ("/", "/stream/s1x"):
            text = client.get(path, headers=sent).text
            assert "s1x" in text
            assert ("run-of-s1x" in text) == told
