"""Which functions of the product each test runs, and the seconds that it takes.

Told by running the files of unit and domain tests once, and the histories that are made on purpose, so that no table
has to be kept of what belongs together. It stands in `.wavestitch/mutants`, a line for each file, and is made anew for
files of tests that changed: where the product or a rig did, it may be out of date until it is deleted. What is run in
another process is not seen: what starts a broker or a Spark is about something else, and a mutant lives in one process
(`in_copy` is for modules that run nowhere else).
"""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import CodeType, FrameType

import pytest

ROOT = Path(__file__).resolve().parents[2]
REACH = ROOT / ".wavestitch" / "mutants" / "reach.jsonl"
FOLDERS = (
    *("wavestitch/contracts", "wavestitch/batch", "wavestitch/tables", "wavestitch/maintain"),
    *("consumers", "spark_apps"),
)
_FILES_AT_ONCE = 12


_HISTORIES = "tests/histories/test_histories.py"


@dataclass(frozen=True, slots=True)
class RanTest:
    """A test that passes. `functions`: of the product, each `FILE:QUALIFIED NAME`; those of what its file or class has
    set up for it, too."""

    name: str
    seconds: float
    functions: frozenset[str]


@dataclass(frozen=True, slots=True)
class RanFile:
    """A file of tests as it was."""

    file: str
    digest: str
    tests: Sequence[RanTest]

    def to_json(self) -> str:
        """Of each test its functions by number: most run the same ones."""
        names = sorted(set().union(*(test.functions for test in self.tests)))
        numbers = {name: n for n, name in enumerate(names)}
        tests = [(t.name, t.seconds, sorted(numbers[f] for f in t.functions)) for t in self.tests]
        return json.dumps([self.file, self.digest, names, tests])


def _ran_file(line: str) -> RanFile:
    file, digest, names, tests = json.loads(line)
    return RanFile(
        file, digest, [RanTest(name, seconds, frozenset(names[n] for n in some)) for name, seconds, some in tests]
    )


def test_files() -> list[Path]:
    found = [p for folder in ("unit", "domain") for p in sorted((ROOT / "tests" / folder).glob("test_*.py"))]
    return [*found, ROOT / _HISTORIES]


def read_reach(path: Path = REACH) -> dict[str, RanFile]:
    """By file of tests that is there, the last that was noted; also where it changed since."""
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    found = (_ran_file(line) for line in lines if line.endswith("]"))
    return {ran.file: ran for ran in found if (ROOT / ran.file).is_file()}


def not_noted() -> list[str]:
    """Files of tests of which it is not noted what they run as they are now."""
    known = {ran.file: ran.digest for ran in read_reach().values()}
    return [_name(p) for p in test_files() if known.get(_name(p)) != _digest(p)]


def find_reach(*, until: float, workers: int = 2) -> bool:
    """Run those that are not noted, some in each process, `workers` side by side; begin none after `until`
    (`time.monotonic`). Whether all were begun; those that could not be noted are named."""
    left = not_noted()
    parts = [left[n : n + _FILES_AT_ONCE] for n in range(0, len(left), _FILES_AT_ONCE)]

    def run(part: list[str]) -> bool:
        if time.monotonic() > until:
            return False
        command = [sys.executable, "-m", "tests.mutants.reach", str(REACH), *part]
        subprocess.run(command, cwd=ROOT, stdout=subprocess.DEVNULL, check=False)
        return True

    begun = 0
    with ThreadPoolExecutor(workers) as pool:
        for part, ended in zip(parts, pool.map(run, parts), strict=True):
            begun += len(part) if ended else 0
            print(f"what tests run: {begun} of {len(left)} files of tests were looked at", flush=True)
    if begun < len(left):
        return False
    if without := not_noted():
        print(f"what these run is not known, `pytest` says why: {', '.join(without)}", flush=True)
    return True


def _name(path: Path) -> str:
    return str(path.relative_to(ROOT))


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()[:16]


@cache
def _module(path: str) -> str:
    """Of the product; empty for others."""
    name = _name(Path(path)) if Path(path).is_relative_to(ROOT) else ""
    return name if name.startswith(FOLDERS) else ""


class _Watch:
    """A plugin of pytest's: notes what runs, by file of tests."""

    def __init__(self, noted: Path) -> None:
        self._noted = noted
        # By the code's number: to compare codes is slow, and one that is kept keeps its number.
        self._seen: dict[int, CodeType] = {}
        self._set_up: dict[object, dict[int, CodeType]] = {}
        """By what is set up for more than one test, what ran for it."""
        self._tests: dict[str, list[RanTest]] = defaultdict(list)
        self._passes = False

    def _profile(self, frame: FrameType, event: str, _arg: object) -> None:
        if event == "call":
            code = frame.f_code
            if id(code) not in self._seen:
                self._seen[id(code)] = code

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef: pytest.FixtureDef[object]) -> Iterator[None]:
        before, self._seen = self._seen, {}
        try:
            return (yield)
        finally:
            if fixturedef.scope != "function":
                self._set_up[fixturedef] = self._seen
            self._seen = before | self._seen

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        began, self._passes, self._seen = time.monotonic(), True, {}
        threading.setprofile(self._profile)
        sys.setprofile(self._profile)
        try:
            return (yield)
        finally:
            sys.setprofile(None)
            threading.setprofile(None)  # type: ignore[arg-type]
            info: Mapping[str, Sequence[object]] = item._fixtureinfo.name2fixturedefs  # type: ignore[attr-defined]
            for definition in (one for several in info.values() for one in several):
                self._seen |= self._set_up.get(definition, {})
            ran = RanTest(item.nodeid, round(time.monotonic() - began, 3), self._functions())
            if self._passes and ran.functions:
                self._tests[str(item.path.relative_to(ROOT))].append(ran)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.outcome != "passed":
            self._passes = False

    def _functions(self) -> frozenset[str]:
        ours = ((_module(code.co_filename), code) for code in self._seen.values() if code.co_name != "<module>")
        return frozenset(f"{name}:{code.co_qualname.partition('.<locals>')[0]}" for name, code in ours if name)

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        self._noted.parent.mkdir(parents=True, exist_ok=True)
        for file in {str(item.path.relative_to(ROOT)) for item in session.items}:
            line = RanFile(file, _digest(ROOT / file), self._tests[file]).to_json()
            with self._noted.open("ab", buffering=0) as noted:  # a line at once: others write beside us
                noted.write(f"{line}\n".encode())


if __name__ == "__main__":
    noted, *files = sys.argv[1:] or [""]
    if Path(noted).suffix != REACH.suffix or not files:
        sys.exit(f"usage: python -m tests.mutants.reach NOTES{REACH.suffix} TESTS…")
    options = ["-q", "-W", "ignore", "-p", "no:cacheprovider", "-p", "no:xdist", "-p", "no:faulthandler"]
    options += ["-o", "addopts=--import-mode=importlib"]
    sys.exit(pytest.main([*options, *files], plugins=[_Watch(Path(noted))]))
