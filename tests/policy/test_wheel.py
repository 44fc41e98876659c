"""The wheel, apart from the checkout: it holds all that is imported and read, and its command works anywhere."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

from tests.conftest import ROOT
from wavestitch import __version__
from wavestitch.child_environment import child_environment
from wavestitch.cli_init import Answers, written

ENTRY_POINT = (
    "EntryPoint(name='wavestitch', value='wavestitch.ui.airflow_plugin:WavestitchPlugin', group='airflow.plugins')"
)
PACKAGES = ("wavestitch", "consumers", "spark_apps")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_wheel(tmp_path_factory.mktemp("wheel"))


def build_wheel(folder: Path) -> Path:
    """By the backend that is installed here, from what is in the checkout."""
    words = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(words, cwd=ROOT, check=True, capture_output=True, env=child_environment(os.environ))
    (made,) = folder.glob("*.whl")
    return made


@pytest.fixture
def elsewhere(wheel: Path, tmp_path: Path) -> dict[str, str]:
    """An environment in which our packages are those of the wheel, and nothing of the checkout is on Python's path."""
    with zipfile.ZipFile(wheel) as packed:
        packed.extractall(tmp_path / "site")
    return {**child_environment(os.environ), "PYTHONPATH": str(tmp_path / "site"), "NO_COLOR": "1"}


def test_it_holds_every_file_of_the_packages_and_nothing_else(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as packed:
        held = {name for name in packed.namelist() if ".dist-info/" not in name}
    wanted = {
        path.relative_to(ROOT).as_posix()
        for package in PACKAGES
        for path in (ROOT / package).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    wanted |= {f"wavestitch/dags/{path.name}" for path in (ROOT / "dags").glob("*.py")}
    assert held == wanted
    assert {"wavestitch/templates/layout.html", "wavestitch/local/jars.sha256"} <= held


def test_the_command_works_in_an_empty_folder_with_what_init_wrote(elsewhere: dict[str, str], tmp_path: Path) -> None:
    home = tmp_path / "empty"
    home.mkdir()
    where = "import wavestitch; print(wavestitch.__file__)"
    found = run(["-c", where], home, elsewhere)
    assert found.stdout.strip() == str(tmp_path / "site" / "wavestitch" / "__init__.py")
    words = ["--stream", "bench", "--topic", "bench", "--group", "g", "--schedule", "", "--data", "data"]
    made = run(["-m", "wavestitch", "init", "--bootstrap", "127.0.0.1:1", *words], home, elsewhere)
    assert made.returncode == 0, made.stderr
    shown = run(["-m", "wavestitch", "batches", "bench", "--json"], home, elsewhere)
    assert shown.returncode == 0, shown.stderr
    assert json.loads(shown.stdout) == []


def test_an_airflow_that_knows_no_checkout_has_the_pages_and_by_a_file_of_two_lines_the_dags(
    elsewhere: dict[str, str], tmp_path: Path
) -> None:
    home = tmp_path / "airflow"
    (home / "dags").mkdir(parents=True)
    # The same that the image has.
    two_lines = (ROOT / "docker" / "config" / "airflow" / "dags" / "wavestitch_dags.py").read_text()
    (home / "dags" / "waves.py").write_text(two_lines)
    written(Answers("127.0.0.1:1", "bench", "bench", "g", "0 3 * * *", Path("data")), folder=home)
    asked = (
        "import json, wavestitch.airflow as w; from airflow import plugins_manager as m; "
        "from airflow.dag_processing.dagbag import DagBag; bag = DagBag('dags'); "
        "print(json.dumps({'from': [str(p) for p in w.dag_files()], 'errors': bag.import_errors, "
        "'dags': {d.dag_id: d.fileloc for d in bag.dags.values()}, 'plugin errors': m.get_import_errors(), "
        "'plugin': [str(p.source) for p in m._get_plugins()[0] if p.name == 'wavestitch'], "
        "'pages': [a['url_prefix'] for a in m.get_fastapi_plugins()[0]]}))"
    )
    own = {"AIRFLOW_HOME": str(home), "AIRFLOW__CORE__LOAD_EXAMPLES": "False"}
    found = run(["-c", asked], home, {**elsewhere, **own})
    assert found.returncode == 0, found.stderr
    said = json.loads(found.stdout.splitlines()[-1])
    assert said["errors"] == {}
    # The environment has the checkout's entry point beside the wheel's: the second of the two is not taken.
    assert set(said["plugin errors"].values()) <= {"Plugin 'wavestitch' already registered, skipping"}
    assert {Path(p).parent for p in said["from"]} == {tmp_path / "site" / "wavestitch" / "dags"}
    assert {"ingest_bench", "maintain"} <= said["dags"].keys()
    assert set(said["dags"].values()) == {"dags/waves.py"}
    assert said["plugin"] == [f"wavestitch=={__version__}: {ENTRY_POINT}"]
    assert "/wavestitch" in said["pages"]


def test_somebody_else_s_package_of_one_of_our_names_is_named_before_a_step_needs_ours(
    elsewhere: dict[str, str], tmp_path: Path
) -> None:
    by_itself = "from wavestitch.own_packages import refuse_foreign_packages as r; r()"
    in_airflow = "from wavestitch.airflow import dags; dags()"
    assert run(["-c", by_itself], tmp_path, elsewhere).returncode == 0
    for ask, module in ((by_itself, "consumers/__init__.py"), (in_airflow, "spark_apps.py")):
        folder = tmp_path / module.replace("/", "-")
        (folder / module).parent.mkdir(parents=True)
        (folder / module).touch()
        told = run(["-c", ask], tmp_path, {**elsewhere, "PYTHONPATH": f"{folder}:{elsewhere['PYTHONPATH']}"})
        assert f"{folder / module}, not that of Wavestitch in {tmp_path / 'site'}" in told.stderr


def test_the_names_that_the_wheel_takes_are_those_that_the_readme_says(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as packed:
        taken = {name.split("/")[0] for name in packed.namelist() if ".dist-info/" not in name}
    (said,) = [line for line in (ROOT / "README.md").read_text().splitlines() if "**three names**" in line]
    assert taken == set(PACKAGES) == {word for word in said.split("`") if word in {*taken, "wavestitch"}}


def test_an_operator_is_told_where_settings_are_looked_for(elsewhere: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "nothing").mkdir()
    told = run(["-m", "wavestitch", "batches", "ecg"], tmp_path / "nothing", elsewhere)
    assert told.returncode == 2
    assert "no wavestitch.toml found" in told.stderr.replace("\n", " ")


def run(words: list[str], folder: Path, environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *words],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_package_image_and_changes_are_of_one_version() -> None:
    assert tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"] == __version__
    assert f":-wavestitch:{__version__}}}" in (ROOT / "docker" / "compose.yaml").read_text()
    assert f"\n## {__version__}" in (ROOT / "CHANGELOG.md").read_text()
