"""Every route that we add to Airflow's API server is closed to who has not logged in (check 8).

Airflow itself does not close a plugin's application: it asks nobody who they are unless the plugin does.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.stack.airflow_home import ROOT, make_database, prepare_airflow, write_settings

prepare_airflow()

PLAN = "b" * 32
FILLED = {"stream": "ecg", "plan_id": PLAN, "name": "index.html", "name:path": "index.html", "dag_id": "ingest_ecg"}
METHODS = ("GET", "HEAD", "OPTIONS", "POST", "PUT", "PATCH", "DELETE")


@pytest.fixture(scope="module")
def apps() -> dict[str, Any]:
    """Every application that a plugin registers, by its prefix: as Airflow finds them (folder, entry point)."""
    make_database()
    from airflow import plugins_manager  # noqa: PLC0415

    assert not plugins_manager.get_import_errors()
    found, middlewares = plugins_manager.get_fastapi_plugins()
    assert not middlewares, "a plugin changes what all requests go through"
    blueprints = plugins_manager.get_flask_plugins()[0]
    assert not blueprints, "a plugin registers pages that are not looked at here"
    return {entry["url_prefix"]: entry["app"]._make() for entry in found}


@pytest.fixture
def deployment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "streams").mkdir()
    (tmp_path / "streams" / "ecg.yaml").write_text("topic: t\ngroup: g\n")
    monkeypatch.setenv("WAVESTITCH_CONFIG", str(write_settings(tmp_path, streams=tmp_path / "streams")))
    (tmp_path / "docs" / "ecg" / PLAN).mkdir(parents=True)
    (tmp_path / "docs" / "ecg" / PLAN / "index.html").write_text("for those who logged in")


def _calls(dependant: Any) -> Iterator[str]:
    for inner in dependant.dependencies:
        yield getattr(inner.call, "__qualname__", str(inner.call))
        yield from _calls(inner)


def _open_routes(app: Any) -> list[str]:
    """Routes that do not ask who is there, and whatever is no plain route at all (a mount, a socket)."""
    return [
        str(getattr(route, "path", route))
        for route in app.routes
        if not hasattr(route, "dependant") or not any("requires_authenticated" in c for c in _calls(route.dependant))
    ]


def _client(app: Any) -> Any:
    from airflow.api_fastapi.app import create_auth_manager  # noqa: PLC0415

    with warnings.catch_warnings():
        # About the client library of a version that Airflow's own requirements choose.
        warnings.simplefilter("ignore", DeprecationWarning)
        from fastapi.testclient import TestClient  # noqa: PLC0415

    app.state.auth_manager = create_auth_manager()
    return TestClient(app, follow_redirects=False)


def test_there_are_pages_to_look_at(apps: dict[str, Any]) -> None:
    assert sorted(apps) == ["/wavestitch"]
    assert len(apps["/wavestitch"].routes) >= 3


def test_every_route_asks_who_is_there(apps: dict[str, Any]) -> None:
    assert {prefix: _open_routes(app) for prefix, app in apps.items()} == {prefix: [] for prefix in apps}


def test_a_route_that_does_not_ask_would_be_found() -> None:
    from wavestitch.ui.app import make_app  # noqa: PLC0415

    app = make_app()
    app.get("/open")(lambda: "anybody")
    app.mount("/files", make_app())
    assert _open_routes(app) == ["/open", "/files"]


@pytest.mark.usefixtures("deployment")
def test_the_anonymous_get_nothing_from_any_route_by_any_method(apps: dict[str, Any]) -> None:
    for prefix, app in apps.items():
        client = _client(app)
        for route in app.routes:
            path = route.path_format.format(**FILLED)
            for method in METHODS:
                answer = client.request(method, path, params={"run_id": "r"})
                shut = (401, 403) if method in route.methods else (401, 403, 405)
                assert answer.status_code in shut, f"{method} {prefix}{path}: {answer.status_code}"
                assert "logged in" not in answer.text


@pytest.mark.usefixtures("deployment")
@pytest.mark.parametrize(
    "headers",
    [
        {"Authorization": "Bearer "},
        {"Authorization": "Bearer eyJhbGciOiJub25lIn0.eyJzdWIiOiJhZG1pbiJ9."},
        {"Authorization": "Basic YWRtaW46YWRtaW4="},
        {"Cookie": "_token=eyJhbGciOiJub25lIn0.eyJzdWIiOiJhZG1pbiJ9."},
        {"X-Forwarded-User": "admin", "Remote-User": "admin"},
    ],
)
def test_a_login_that_is_none_opens_nothing(apps: dict[str, Any], headers: dict[str, str]) -> None:
    client = _client(apps["/wavestitch"])
    for route in apps["/wavestitch"].routes:
        answer = client.get(route.path_format.format(**FILLED), params={"run_id": "r"}, headers=headers)
        assert answer.status_code in (401, 403), f"{route.path}: {answer.status_code}"


@pytest.mark.usefixtures("deployment")
def test_who_has_no_role_sees_no_batch_and_who_has_one_sees_it(apps: dict[str, Any]) -> None:
    from airflow.api_fastapi.auth.managers.simple.user import SimpleAuthManagerUser  # noqa: PLC0415

    client = _client(apps["/wavestitch"])
    seen = {}
    for role in (None, "viewer"):
        user = SimpleAuthManagerUser(username=f"a-{role}", role=role)
        token = client.app.state.auth_manager.generate_jwt(user)
        answer = client.get("/run/ingest_ecg", params={"run_id": "r"}, headers={"Authorization": f"Bearer {token}"})
        seen[role] = answer.status_code
    assert seen == {None: 403, "viewer": 200}


def test_no_dag_author_s_folder_is_the_plugins_folder() -> None:
    """What is in plugins/ runs in the API server: whoever may write DAGs must not be able to write there."""
    from wavestitch.local.airflow_settings import AirflowFolders, airflow_environment  # noqa: PLC0415

    folders = AirflowFolders(
        home=Path("/h"),
        commands=Path("/h/bin"),
        environment_bin=Path("/e"),
        dags=ROOT / "dags",
        plugins=ROOT / "plugins",
        passwords=Path("/h/p"),
    )
    env = airflow_environment(inherited={}, folders=folders, port=1, extra={})
    dags, plugins = Path(env["AIRFLOW__CORE__DAGS_FOLDER"]), Path(env["AIRFLOW__CORE__PLUGINS_FOLDER"])
    assert not plugins.is_relative_to(dags)
    assert not dags.is_relative_to(plugins)
