"""Which functions of the product a file of tests runs, and the seconds that it takes.

Told by running all files of unit and domain tests once, so that no table has to be kept of what belongs together. It
stands in `.wavestitch/mutants`, a line for each file, and is made anew for files of tests that changed: where the
product or a rig did, it may be out of date until it is deleted. What is run in another process is not seen: what starts
a broker or a Spark is about something else, and a mutant lives in one process.
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


@dataclass(frozen=True, slots=True)
class Ran:
    """A file of tests as it was. `functions`: by file of the product, the qualified names."""

    file: str
    digest: str
    seconds: float
    functions: Mapping[str, Sequence[str]]


def test_files() -> list[Path]:
    return [p for folder in ("unit", "domain") for p in sorted((ROOT / "tests" / folder).glob("test_*.py"))]


def read_reach(path: Path = REACH) -> dict[str, Ran]:
    """By file of tests that is there, the last that was noted; also where it changed since."""
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    found = (Ran(**json.loads(line)) for line in lines if line.endswith("}"))
    return {ran.file: ran for ran in found if (ROOT / ran.file).is_file()}


def not_noted() -> list[str]:
    """Files of tests of which it is not noted what they run as they are now."""
    known = read_reach()
    return [_name(p) for p in test_files() if known.get(_name(p), _NOTHING).digest != _digest(p)]


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


_NOTHING = Ran("", "", 0.0, {})


def _name(path: Path) -> str:
    return str(path.relative_to(ROOT))


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()[:16]


class _Watch:
    """A plugin of pytest's: notes what runs, by file of tests."""

    def __init__(self, noted: Path) -> None:
        self._noted = noted
        # By the code's number: to compare codes is slow, and one that is kept keeps its number.
        self._seen: dict[int, CodeType] = {}
        self._file, self._began = "", 0.0

    def _profile(self, frame: FrameType, event: str, _arg: object) -> None:
        if event == "call":
            code = frame.f_code
            if id(code) not in self._seen:
                self._seen[id(code)] = code

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        file = str(item.path.relative_to(ROOT))
        if file != self._file:
            self.note()
            self._file, self._began = file, time.monotonic()
        threading.setprofile(self._profile)
        sys.setprofile(self._profile)
        try:
            return (yield)
        finally:
            sys.setprofile(None)
            threading.setprofile(None)  # type: ignore[arg-type]

    def note(self) -> None:
        if not self._file:
            return
        found: dict[str, set[str]] = defaultdict(set)
        for code in self._seen.values():
            path = Path(code.co_filename)
            if path.is_relative_to(ROOT) and (name := _name(path)).startswith(FOLDERS) and code.co_name != "<module>":
                found[name].add(code.co_qualname.partition(".<locals>")[0])
        ran = Ran(
            self._file,
            _digest(ROOT / self._file),
            round(time.monotonic() - self._began, 2),
            {name: sorted(functions) for name, functions in sorted(found.items())},
        )
        self._noted.parent.mkdir(parents=True, exist_ok=True)
        with self._noted.open("ab", buffering=0) as file:  # a line at once: others write beside us
            file.write(f"{json.dumps({f: getattr(ran, f) for f in Ran.__slots__})}\n".encode())
        self._seen.clear()

    def pytest_sessionfinish(self) -> None:
        self.note()


if __name__ == "__main__":
    noted, *files = sys.argv[1:] or [""]
    if Path(noted).suffix != REACH.suffix or not files:
        sys.exit(f"usage: python -m tests.mutants.reach NOTES{REACH.suffix} TESTS…")
    options = ["-q", "-W", "ignore", "-p", "no:cacheprovider", "-p", "no:xdist", "-p", "no:faulthandler"]
    options += ["-o", "addopts=--import-mode=importlib"]
    sys.exit(pytest.main([*options, *files], plugins=[_Watch(Path(noted))]))
