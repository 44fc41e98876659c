"""`wavestitch check`: what is wrong about several streams together is said, too."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from wavestitch.cli import app


def checked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, groups: dict[str, str], *, more: str = "", said: str = "problems"
) -> tuple[int, list[str]]:
    (tmp_path / "streams").mkdir()
    for name, group in groups.items():
        (tmp_path / "streams" / f"{name}.yaml").write_text(f"topic: t.{name}\ngroup: {group}\n{more}")
    settings = tmp_path / "wavestitch.toml"
    settings.write_text(
        f'landing = "{tmp_path}/l"\ndocs = "{tmp_path}/d"\ncache = "{tmp_path}/c"\nstreams = "{tmp_path}/streams"\n'
        f'[kafka]\nbootstrap = "127.0.0.1:1"\n[tables]\nuri = "sqlite:///{tmp_path}/t.db"\nwarehouse = "file://{tmp_path}/w"\n'
    )
    monkeypatch.setenv("WAVESTITCH_CONFIG", str(settings))
    done = CliRunner().invoke(app, ["check", "--json"])
    return done.exit_code, json.loads(done.stdout)[said]


def test_a_stream_that_names_another_one_s_group_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    code, problems = checked(tmp_path, monkeypatch, {"ecg": "g", "eeg": "g", "emg": "own"})
    assert code == 2
    assert problems == ["streams ecg, eeg all name the consumer group g; give each one of its own"]


def test_streams_with_groups_of_their_own_are_sound(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert checked(tmp_path, monkeypatch, {"ecg": "g", "eeg": "h"}) == (0, [])


def test_a_backfill_that_may_miss_waveforms_is_no_problem_but_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    code, remarks = checked(tmp_path, monkeypatch, {"ecg": "g"}, more="backfill_by: record_time\n", said="remarks")
    assert code == 0
    assert [r.partition(" ")[0] for r in remarks] == ["streams/ecg.yaml:"]
    assert "search_margin (3600 s)" in remarks[0]
