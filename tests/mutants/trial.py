"""Tests run on one mutant after another, each in a child of its own that ends with the first failure.

The tests are collected once, and each child begins with what was collected: a mutant costs what the tests of its
function take until one fails, and those that failed before go first, then the short ones. A mutant of what a module
does as it is loaded is loaded anew.
"""

from __future__ import annotations

import gc
import json
import os
import resource
import select
import signal
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence, Set
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pytest
from _pytest.main import pytest_runtestloop
from hypothesis import Phase, settings

from tests.mutants.mutant import Mutant
from tests.mutants.planting import loaded_functions, plant_before_import, planted_in_functions
from tests.mutants.reach import ROOT
from tests.mutants.targets import Chosen

_SECONDS = 10
"""Of a processor, beside twice what the tests take, and for what they have set up together; of the clock ten times
that: a mutant that ends later is found out by whoever waits."""
_LOADING = 20.0
_MOST_BYTES = 4 << 30
_OPTIONS = (
    *("-x", "-q", "--tb=no", "-W", "ignore", "-p", "no:cacheprovider", "-p", "no:xdist"),
    # Its watchdog does not outlive a fork, and whoever ends it in the child would wait for ever; its settings are
    # unknown then, which `--strict-config` refuses.
    *("-p", "no:faulthandler", "-o", "addopts=--import-mode=importlib"),
)


@dataclass(frozen=True, slots=True)
class Trial:
    """A module, the tests of each of its functions in files below `root`, and where what the last of them printed is
    kept."""

    module: str
    path: Path
    tests: Chosen
    log: Path
    root: Path = ROOT

    @property
    def arguments(self) -> list[str]:
        files = sorted({test.partition("::")[0] for test in self.tests.tests})
        return [*_OPTIONS, f"--rootdir={self.root}", *(str(self.root / file) for file in files)]

    def killed(self, mutants: Sequence[Mutant]) -> Iterator[tuple[Mutant, bool]]:
        """Each mutant, and whether a test failed on it. Raises `RuntimeError` where they fail on the product as it
        is."""
        by_name, to_load = {m.name: m for m in mutants}, list[Mutant]()
        seconds = None
        session = _Child(self.log, lambda say: _Session(self, mutants, say).run())
        try:
            for line in session.lines():
                what, _, name = line.partition("\t")
                if what == "tests":
                    seconds = float(name)
                elif what == "load":
                    to_load.append(by_name[name])
                else:
                    yield by_name[name], what == "killed"
        finally:
            session.end()
        if seconds is None:
            raise RuntimeError(f"the tests of {self.module} fail on the product as it is; {self.log} says how")
        for mutant in to_load:
            # Loading takes as long as the tests may, and longer.
            yield mutant, _Child(self.log, self._loaded(mutant), tests=seconds + _LOADING).fails()

    def _loaded(self, mutant: Mutant) -> Callable[[Callable[[str], None]], int]:
        def run(say: Callable[[str], None]) -> int:
            plant_before_import(self.module, str(self.path), mutant.source)
            return int(pytest.main(self.arguments, plugins=[_FirstFailure(set(self.tests.of_all))]))

        return run


class _Child:
    """A process that begins as this one is, in a group of its own; what it says comes line by line."""

    def __init__(self, log: Path, run: Callable[[Callable[[str], None]], int], *, tests: float | None = None) -> None:
        """`tests`: the seconds of a processor that they take of a product that is right; None where nobody knows."""
        heard, said = os.pipe()
        self._heard = heard
        self._most = 3600 if tests is None else int(2 * tests) + _SECONDS
        self.cpu_seconds = 0.0
        self._pid = os.fork()
        if self._pid:
            os.close(said)
            return
        try:
            os.setsid()
            os.close(heard)
            log.parent.mkdir(parents=True, exist_ok=True)
            out = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
            for number in (1, 2):
                os.dup2(out, number)
            resource.setrlimit(resource.RLIMIT_DATA, (_MOST_BYTES, _MOST_BYTES))
            if tests is not None:
                resource.setrlimit(resource.RLIMIT_CPU, (self._most, self._most))
            os._exit(run(lambda line: void(os.write(said, f"{line}\n".encode()))))
        finally:
            os._exit(70)

    def lines(self) -> Iterator[str]:
        with os.fdopen(os.dup(self._heard), encoding="utf-8") as heard:
            for line in heard:
                yield line.rstrip("\n")

    def fails(self) -> bool:
        """Whether it ends otherwise than well, or not in time."""
        watched = os.pidfd_open(self._pid)
        try:
            in_time, _, _ = select.select([watched], [], [], 10 * self._most)
            return not in_time or self.end() != 0
        finally:
            os.close(watched)
            self.end()

    def end(self) -> int:
        """Kill what is left of it and all that it started."""
        if self._pid:
            done, status, used = os.wait4(self._pid, os.WNOHANG)
            with suppress(ProcessLookupError):
                os.killpg(self._pid, signal.SIGKILL)
            if not done:
                _, status, used = os.wait4(self._pid, 0)
            self._ended, self.cpu_seconds = status, used.ru_utime + used.ru_stime
            self._pid = 0
            os.close(self._heard)
        return self._ended


class _FirstFailure:
    """A plugin of pytest's that runs these tests alone. What fails is not made smaller, nobody reads it."""

    def __init__(self, tests: Set[str]) -> None:
        self._wanted = tests

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        items[:] = [item for item in items if item.nodeid in self._wanted]

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection(self) -> None:
        settings.register_profile("mutants", settings(), phases=[Phase.explicit, Phase.generate])
        settings.load_profile("mutants")


class _Session(_FirstFailure):
    """A plugin of pytest's that runs what was collected once for each mutant, and says what came of it."""

    def __init__(self, trial: Trial, mutants: Sequence[Mutant], say: Callable[[str], None]) -> None:
        super().__init__(trial.tests.tests)
        self._trial, self._mutants, self._say = trial, mutants, say

    def run(self) -> int:
        return int(pytest.main(self._trial.arguments, plugins=[self]))

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        path = self._trial.path
        source = path.read_text(encoding="utf-8")
        failed: Counter[str] = Counter()
        child = self._child(session, lambda: None, tests=None)
        if child.fails():
            return True
        seconds = child.cpu_seconds
        took: dict[str, float] = defaultdict(float)
        for name, duration, _ in self._reported():
            took[name] += duration
        items = {item.nodeid: item for item in session.items}
        self._say(f"tests\t{seconds}")
        loaded = loaded_functions(str(path))
        gc.freeze()  # nobody looks through all of this again, in child after child
        for mutant in self._mutants:
            plant = planted_in_functions(source, mutant.source, str(path), loaded)
            if plant is None:
                self._say(f"load\t{mutant.name}")
                continue
            session.items = [items[test] for test in self._trial.tests.of(mutant.name) if test in items]
            session.items.sort(key=lambda item: (-failed[item.nodeid], took[item.nodeid]))
            alone = sum(took[item.nodeid] for item in session.items)
            killed = self._child(session, plant, tests=min(seconds, alone)).fails()
            failed.update(name for name, _, is_good in self._reported() if not is_good)
            self._say(f"{'killed' if killed else 'survived'}\t{mutant.name}")
        return True

    def _child(self, session: pytest.Session, plant: Callable[[], None], *, tests: float | None) -> _Child:
        self._reports = self._trial.log.with_suffix(".reports")
        self._reports.unlink(missing_ok=True)

        def run(say: Callable[[str], None]) -> int:
            plant()
            with suppress(session.Failed, session.Interrupted):
                pytest_runtestloop(session)
            return min(session.testsfailed, 1)

        return _Child(self._trial.log, run, tests=tests)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        with self._reports.open("a") as file:
            file.write(json.dumps([report.nodeid, report.duration, not report.failed]) + "\n")

    def _reported(self) -> list[tuple[str, float, bool]]:
        """Of the last child: of the tests that it ran each part, the seconds of it, and whether it passed."""
        lines = self._reports.read_text().splitlines() if self._reports.exists() else []
        return [json.loads(line) for line in lines if line.endswith("]")]


def void(_: object) -> None:
    """Of a call, its effect."""
