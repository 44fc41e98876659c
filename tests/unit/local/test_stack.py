"""Where the embedded stack keeps what it makes."""

from __future__ import annotations

from pathlib import Path

from wavestitch.local.folders import ROOT, state_folder


def test_nothing_is_kept_in_the_folder_that_python_installs_packages_in(tmp_path: Path) -> None:
    installed, here = tmp_path / "lib" / "python3.11" / "site-packages", tmp_path / "work"
    installed.mkdir(parents=True)
    assert state_folder(installed, started_in=here) == here / ".wavestitch"
    assert state_folder(ROOT, started_in=here) == ROOT / ".wavestitch"
