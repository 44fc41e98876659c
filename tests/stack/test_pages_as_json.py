"""Every page is answered as JSON, too: to whoever asks for it, with the same facts and by the same rights."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.stack.airflow_home import write_settings

PAGES = [
    "/wavestitch/",
    "/wavestitch/stream/ecg",
    "/wavestitch/held/ecg",
    "/wavestitch/held/ecg/one?id=w",
    "/wavestitch/run/ingest_ecg?run_id=r",
]


@pytest.fixture(autouse=True)
def deployment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "streams").mkdir()
    (tmp_path / "streams" / "ecg.yaml").write_text("topic: t\ngroup: g\n")
    monkeypatch.setenv("WAVESTITCH_CONFIG", str(write_settings(tmp_path, streams=tmp_path / "streams")))


@pytest.mark.parametrize("path", PAGES)
def test_a_page_is_json_where_it_is_asked_for_and_closed_all_the_same(
    server: Any, viewer: dict[str, str], path: str
) -> None:
    named = path + ("&" if "?" in path else "?") + "format=json"
    accepted = {"Accept": "application/json"}
    assert server.get(named).status_code == server.get(path, headers=accepted).status_code == 401
    for answer in (server.get(named, headers=viewer), server.get(path, headers={**viewer, **accepted})):
        assert answer.headers["content-type"] == "application/json"
        assert answer.status_code == 200
        assert isinstance(answer.json(), dict)
    shown = server.get(path, headers={**viewer, "Accept": "text/html,application/json;q=0.9"})
    assert shown.headers["content-type"].startswith("text/html")


def test_the_streams_as_json_say_what_the_page_says(server: Any, viewer: dict[str, str]) -> None:
    (said,) = server.get("/wavestitch/?format=json", headers=viewer).json()["streams"]
    assert (said["stream"], said["state"], said["problem"]) == ("ecg", "no batch yet", "")
    assert said["looked_at_s_ago"] >= 0


def test_a_program_waits_for_what_is_true_now_of_so_many_streams_as_are_looked_at_at_once(server: Any) -> None:
    """Of more it would wait, and be told of most of them what was known before."""
    assert server
    from fastapi import Request  # noqa: PLC0415

    from wavestitch.ui.app import _how_fresh  # noqa: PLC0415
    from wavestitch.ui.looks import AT_ONCE, ENOUGH_S  # noqa: PLC0415

    asked = {"json": b"application/json", "html": b"text/html"}
    of = {
        kind: Request({"type": "http", "query_string": b"", "headers": [(b"accept", wanted)]})
        for kind, wanted in asked.items()
    }
    assert [_how_fresh(of["json"], n)["enough"] for n in (1, AT_ONCE, AT_ONCE + 1)] == [0.0, 0.0, ENOUGH_S]
    assert [_how_fresh(of["html"], n)["enough"] for n in (1, AT_ONCE + 1)] == [ENOUGH_S, ENOUGH_S]


def test_a_page_runs_the_package_s_own_scripts_and_no_other(server: Any, viewer: dict[str, str]) -> None:
    policy = server.get("/wavestitch/", headers=viewer).headers["content-security-policy"]
    assert {"default-src 'none'", "script-src 'self'", "connect-src 'self'"} <= set(policy.split("; "))
    answer = server.get("/wavestitch/static/theme.js", headers=viewer)
    assert answer.headers["content-type"].startswith("text/javascript")
    assert server.get("/wavestitch/static/theme.js").status_code == 401
    for name in ("app.py", "..%2Fapp.py", "nothing.js", "%2e%2e/app.py"):
        assert server.get(f"/wavestitch/static/{name}", headers=viewer).status_code == 404, name
