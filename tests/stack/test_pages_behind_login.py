"""The page in Airflow's API server: nobody without a login sees anything, a viewer sees everything there is."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.stack.airflow_home import ROOT, write_settings

PLAN = "b" * 32
PATHS = [
    "/wavestitch/",
    f"/wavestitch/docs/ecg/{PLAN}/index.html",
    "/wavestitch/run/ingest_ecg?run_id=r",
    "/wavestitch/no-such-page",
]


@pytest.fixture(autouse=True)
def deployment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A stream without a broker, and the Data Docs of one batch."""
    (tmp_path / "streams").mkdir()
    (tmp_path / "streams" / "ecg.yaml").write_text("topic: t\ngroup: g\n")
    (tmp_path / "streams" / "bad.yaml").write_text("topic: <script>\n")
    monkeypatch.setenv("WAVESTITCH_CONFIG", str(write_settings(tmp_path, streams=tmp_path / "streams")))
    folder = tmp_path / "docs" / "ecg" / PLAN
    folder.mkdir(parents=True)
    (folder / "index.html").write_text("<p>the Data Docs</p>")
    (tmp_path / "docs" / "secret.html").write_text("a secret")
    return tmp_path


@pytest.mark.parametrize("path", PATHS[:3])
def test_without_a_login_there_is_nothing_to_see(server: Any, path: str) -> None:
    answer = server.get(path)
    assert answer.status_code == 401
    assert "Data Docs" not in answer.text


def test_a_viewer_sees_streams_broken_ones_with_their_reason(server: Any, viewer: dict[str, str]) -> None:
    answer = server.get("/wavestitch/", headers=viewer)
    assert answer.status_code == 200
    assert "no batch yet" in answer.text
    assert "streams/bad.yaml" in answer.text
    assert "<script>" not in answer.text
    assert "default-src 'none'" in answer.headers["content-security-policy"]
    assert answer.headers["x-content-type-options"] == "nosniff"


def test_a_viewer_reads_data_docs_and_nothing_beside_them(server: Any, viewer: dict[str, str]) -> None:
    assert server.get(PATHS[1], headers=viewer).text == "<p>the Data Docs</p>"
    for name in ("..%2F..%2Fsecret.html", "../../secret.html", "%2e%2e/%2e%2e/secret.html", "index.htm", ""):
        assert server.get(f"/wavestitch/docs/ecg/{PLAN}/{name}", headers=viewer).status_code == 404, name


def test_a_run_that_is_not_there_and_a_dag_that_is_no_stream_s_say_so(server: Any, viewer: dict[str, str]) -> None:
    assert "no such run" in server.get(PATHS[2], headers=viewer).text
    assert "not a DAG of a stream" in server.get("/wavestitch/run/rewind?run_id=r", headers=viewer).text


@pytest.mark.parametrize("method", ["post", "put", "patch", "delete"])
def test_nothing_can_be_changed_there(server: Any, viewer: dict[str, str], method: str) -> None:
    for path in PATHS[:3]:
        assert getattr(server, method)(path, headers=viewer).status_code == 405


def test_the_plugin_is_registered_and_loads_no_api_server_until_it_is_asked(server: Any) -> None:
    code = (
        f"import runpy, sys; runpy.run_path({str(ROOT / 'plugins' / 'wavestitch_plugin.py')!r}); "
        "print('airflow.api_fastapi.core_api.security' in sys.modules, 'pyiceberg' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip().endswith("False False")
    from airflow import plugins_manager  # noqa: PLC0415

    assert not plugins_manager.get_import_errors()
    assert "wavestitch" in {a["name"] for a in plugins_manager.get_fastapi_plugins()[0]}
