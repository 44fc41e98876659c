"""What the code imports is asked for by name: what only came along with something else may be gone tomorrow."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from collections.abc import Iterator, Sequence
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

from tests.conftest import ROOT

RUNTIME = ("wavestitch", "consumers", "spark_apps", "dags", "plugins")
OURS = {*RUNTIME, "tests", "benchmarks", "scripts"}
# Airflow's core, task SDK and providers are one package to whoever installs it, atheris is not for every machine.
OF_A_WHOLE = {"airflow": "apache-airflow", "atheris": "atheris"}


EXTRAS = {"polars", "duckdb", "xarray", "git"}


def test_the_extras_of_the_package_are_those_that_are_locked() -> None:
    """Each is a name that a sentence offers for `pip install`; the lock has it, here or for tests."""
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    locked = named_in("export.txt", "dev.txt")
    assert set(extras) == {"export", *EXTRAS}
    assert {*extras["export"], "xarray"} == named_in("export.in")
    assert {name for names in extras.values() for name in names} <= locked


def named_in(*files: str) -> set[str]:
    """The packages that these requirement files ask for themselves, as their index spells them."""
    lines = [line for name in files for line in (ROOT / "requirements" / name).read_text().splitlines()]
    words = (re.match(r"[A-Za-z0-9][A-Za-z0-9._-]*", line) for line in lines)
    return {spelled(word[0]) for word in words if word}


def spelled(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def imported(folders: Sequence[str]) -> Iterator[tuple[str, Path]]:
    """Every module of others that a file imports anywhere in it, by its first name."""
    for path in (p for folder in folders for p in (ROOT / folder).rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            match node:
                case ast.Import(names=names):
                    found = [alias.name for alias in names]
                case ast.ImportFrom(module=str(module), level=0):
                    found = [module]
                case _:
                    continue
            for name in found:
                first = name.partition(".")[0]
                if first not in sys.stdlib_module_names | OURS:
                    yield first, path.relative_to(ROOT)


@pytest.mark.parametrize(
    ("folders", "files"),
    [
        (RUNTIME, ["runtime.in", "export.in"]),
        (("tests", "benchmarks", "scripts"), ["runtime.in", "export.in", "dev.in"]),
    ],
    ids=["runtime", "dev"],
)
def test_every_package_that_is_imported_is_named_in_the_requirements(folders: Sequence[str], files: list[str]) -> None:
    asked, known = named_in(*files), packages_distributions()
    missing = {
        f"{module} (in {path}): add one of {sorted(packages)} to requirements/{files[-1]}"
        for module, path in imported(folders)
        if not (packages := {spelled(p) for p in known.get(module, [OF_A_WHOLE.get(module, module)])}) & asked
        and OF_A_WHOLE.get(module) not in asked
    }
    assert sorted(missing) == []
    assert len(asked) > 20


def test_the_package_asks_for_what_it_runs_on() -> None:
    """In an environment of somebody else's, whoever installs the wheel gets all that it imports, and no more."""
    said = tomllib.loads((ROOT / "pyproject.toml").read_text())
    lines = (ROOT / "requirements" / "runtime.in").read_text().splitlines()
    wanted = [line for line in lines if line and not line.startswith("#")]
    assert sorted([*said["project"]["dependencies"], *said["build-system"]["requires"]]) == sorted(wanted)
