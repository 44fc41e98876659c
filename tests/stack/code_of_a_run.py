"""DAGs from a Git repository: a run goes on with the commit that it began with.

By `make test-airflow`, since it takes an Airflow of its own.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.postgresql import Postgresql
from tests.stack.live_airflow import FIRST, SECONDS, LiveAirflow, comes_true, start_live
from wavestitch.local.broker import Broker

OURS = "from wavestitch.airflow import dags\nglobals().update(dags())\n"
SPOKEN = """
import time
from datetime import timedelta
from pathlib import Path
from airflow.sdk import DAG, task
from word_of_a_module_beside import WORD

with DAG("spoken", schedule=None):

    @task(execution_timeout=timedelta(seconds={seconds}))
    def begin():
        Path({begun!r}).touch()
        while not Path({go_on!r}).exists():
            time.sleep(0.2)
        return WORD

    @task
    def end(first):
        return [first, WORD]

    end(begin())
"""


@dataclass(frozen=True)
class Repository:
    """A bare one in `folder`, and a clone to write in."""

    folder: Path

    @property
    def bare(self) -> Path:
        return self.folder / "code.git"

    def make(self) -> None:
        self._git(self.folder, "init", "--quiet", "--bare", "--initial-branch=main", str(self.bare))
        self._git(self.folder, "clone", "--quiet", str(self.bare), "written")

    def push(self, files: dict[str, str]) -> str:
        """The commit's name."""
        written = self.folder / "written"
        for name, content in files.items():
            (written / name).parent.mkdir(exist_ok=True)
            (written / name).write_text(content)
        self._git(written, "add", ".")
        self._git(written, "commit", "--quiet", "--message", "as a test wants it")
        self._git(written, "push", "--quiet", "origin", "HEAD:main")
        return self._git(written, "rev-parse", "HEAD").strip()

    def _git(self, where: Path, *words: str) -> str:
        who = {f"GIT_{of}_{what}": "a-test" for of in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
        env = {"PATH": os.environ["PATH"], "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull, **who}
        return subprocess.run(["git", *words], cwd=where, env=env, check=True, capture_output=True, text=True).stdout


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    found = Repository(tmp_path)
    found.make()
    return found


@pytest.fixture
def from_git(
    repository: Repository,
    tmp_path: Path,
    broker: Broker,
    postgresql: Postgresql,
    java_home: Path,
    topic_factory: Any,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[tuple[LiveAirflow, str]]:
    """An Airflow whose DAGs are that repository's, and its first commit."""
    said = {"seconds": SECONDS, "begun": str(tmp_path / "begun"), "go_on": str(tmp_path / "go-on")}
    first = repository.push(
        {
            "dags/ours.py": OURS,
            "dags/spoken.py": SPOKEN.format(**said),
            "dags/word_of_a_module_beside.py": 'WORD = "old"\n',
        }
    )
    bundle = {
        "name": "code",
        "classpath": "airflow.providers.git.bundles.git.GitDagBundle",
        "kwargs": {"repo_url": str(repository.bare), "tracking_ref": "main", "subdir": "dags", "refresh_interval": 5},
    }
    live = start_live(
        tmp_path_factory.mktemp("code"),
        broker,
        java_home=java_home,
        topics=topic_factory,
        database=postgresql.address(postgresql.new_database()),
        more={
            "AIRFLOW__DAG_PROCESSOR__DAG_BUNDLE_CONFIG_LIST": json.dumps([bundle]),
            "AIRFLOW__DAG_PROCESSOR__DAG_BUNDLE_STORAGE_PATH": str(tmp_path / "bundles"),
            "AIRFLOW__DAG_PROCESSOR__MIN_FILE_PROCESS_INTERVAL": "10",
        },
    )
    try:
        yield live, first
    finally:
        live.stop()


def test_a_run_that_began_with_a_commit_ends_with_it_and_the_next_one_has_the_next_commit(
    from_git: tuple[LiveAirflow, str], repository: Repository, tmp_path: Path
) -> None:
    live, first = from_git
    with live.airflow.login() as api:

        def version(path: str) -> Any:
            return api.request("GET", f"/api/v2/{path}")["bundle_version"]

        api.wait_for_dag(f"ingest_{FIRST}", seconds=SECONDS)  # ours are there, too, by their two lines
        api.wait_for_dag("spoken", seconds=SECONDS)
        assert (version("dags/spoken"), version(f"dags/ingest_{FIRST}")) == (first, first)
        old = api.trigger("spoken")
        assert comes_true((tmp_path / "begun").exists)
        second = repository.push(
            {"dags/word_of_a_module_beside.py": 'WORD = "new"\n', "dags/spoken.py": _with_a_word(repository)}
        )
        assert comes_true(lambda: version("dags/spoken") == second)
        (tmp_path / "go-on").touch()
        assert api.wait("spoken", old, seconds=SECONDS) == "success"
        assert api.xcom("spoken", old, "end") == ["old", "old"]
        new = api.trigger("spoken")
        assert api.wait("spoken", new, seconds=SECONDS) == "success"
        assert api.xcom("spoken", new, "end") == ["new", "new"]
        assert [version(f"dags/spoken/dagRuns/{run}") for run in (old, new)] == [first, second]


def _with_a_word(repository: Repository) -> str:
    """The same DAG, by a file that is not the same."""
    return (repository.folder / "written" / "dags" / "spoken.py").read_text() + "# and another line\n"
