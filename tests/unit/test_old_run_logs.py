"""Log files that nothing has changed for long go; what is younger, elsewhere, or not empty stays."""

from __future__ import annotations

import os
from pathlib import Path

from wavestitch.flows.old_runs_process import remove_old_files

OLD, NEW = 1_000_000.0, 2_000_000.0
BEFORE = 1_500_000.0


def written(path: Path, at: float, text: str = "said") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    os.utime(path, (at, at))
    return path


def aged(*folders: Path) -> None:
    for folder in folders:
        os.utime(folder, (OLD, OLD))


def test_old_files_go_with_the_old_folders_that_they_leave_empty_and_young_ones_stay(tmp_path: Path) -> None:
    logs = tmp_path / "logs"
    gone = written(logs / "dag_id=a" / "run_id=1" / "task_id=plan" / "attempt=1.log", OLD, "12345")
    kept = written(logs / "dag_id=a" / "run_id=2" / "attempt=1.log", NEW)
    beside = written(logs / "dag_id=a" / "run_id=3" / "old.log", OLD).parent
    written(beside / "new.log", NEW)
    young = logs / "dag_id=a" / "run_id=4"
    young.mkdir()
    aged(gone.parent, gone.parent.parent, beside, logs / "dag_id=a")
    assert remove_old_files(logs, BEFORE) == (2, 9)
    assert sorted(path.relative_to(logs).as_posix() for path in logs.rglob("*")) == [
        "dag_id=a",
        "dag_id=a/run_id=2",
        "dag_id=a/run_id=2/attempt=1.log",
        "dag_id=a/run_id=3",
        "dag_id=a/run_id=3/new.log",
        "dag_id=a/run_id=4",
    ]
    assert kept.read_text() == "said"


def test_a_link_goes_and_what_it_leads_to_stays(tmp_path: Path) -> None:
    theirs = written(tmp_path / "theirs" / "data", OLD).parent
    logs = tmp_path / "logs"
    logs.mkdir()
    for name, to in (("folder", theirs), ("file", theirs / "data")):
        (logs / name).symlink_to(to)
        os.utime(logs / name, (OLD, OLD), follow_symlinks=False)
    aged(theirs)
    assert remove_old_files(logs, BEFORE)[0] == 2
    assert list(logs.iterdir()) == []
    assert (theirs / "data").read_text() == "said"


def test_a_folder_that_is_not_there_has_no_old_files(tmp_path: Path) -> None:
    assert remove_old_files(tmp_path / "none", BEFORE) == (0, 0)
