"""Tests run on one mutant after another, each in a child of its own that ends with the first failure.

The tests of all modules are collected once, and each child begins with what was collected: a mutant costs what the
tests of its function take until one fails, and those that failed before go first, then the closest. A test counts
that passes on the product as it is, which is tried when it has failed. A mutant of what a module does as it is loaded
is loaded anew.
"""

from __future__ import annotations

import gc
import json
import os
import resource
import select
import signal
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence, Set
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
_END = "end"
_MOST_BYTES = 4 << 30
_OPTIONS = (
    *("-x", "-q", "--tb=no", "-W", "ignore", "-p", "no:cacheprovider", "-p", "no:xdist"),
    # Its watchdog does not outlive a fork, and whoever ends it in the child would wait for ever; its settings are
    # unknown then, which `--strict-config` refuses.
    *("-p", "no:faulthandler", "-o", "addopts=--import-mode=importlib"),
)


@dataclass(frozen=True, slots=True)
class Subject:
    """A module (by its dotted name), the tests of each of its functions, and the mutants that are tried."""

    module: str
    path: Path
    tests: Chosen
    mutants: Sequence[Mutant]


@dataclass(frozen=True, slots=True)
class Trial:
    """`log`: where what the last child printed is kept. `root`: what the names of tests begin at."""

    subjects: Sequence[Subject]
    log: Path
    root: Path = ROOT

    def arguments(self, tests: Collection[str]) -> list[str]:
        files = sorted({test.partition("::")[0] for test in tests})
        return [*_OPTIONS, f"--rootdir={self.root}", *(str(self.root / file) for file in files)]

    def killed(self) -> Iterator[tuple[Subject, Mutant, bool]]:
        """Each mutant, and whether a test failed on it. Raises `RuntimeError` at the end where it cannot be told of
        some, since their tests fail on the product as it is."""
        to_load: list[tuple[Subject, Mutant]] = []
        unknown: list[str] = []
        is_whole = False
        session = _Child(self.log, lambda say: _Session(self, say).run())
        try:
            for line in session.lines():
                if line == _END:
                    is_whole = True
                    continue
                what, subject_number, number = line.split("\t")
                subject = self.subjects[int(subject_number)]
                mutant = subject.mutants[int(number)]
                if what == "load":
                    to_load.append((subject, mutant))
                elif what == "unknown":
                    unknown.append(f"{subject.module} ({mutant.name})")
                else:
                    yield subject, mutant, what == "killed"
        finally:
            session.end()
        if not is_whole:
            raise RuntimeError(f"the tests ended before all were tried; {self.log} says how")
        sound: dict[str, bool] = {}
        for subject, mutant in to_load:
            if subject.module not in sound:
                as_it_is = subject.path.read_text(encoding="utf-8")
                sound[subject.module] = not self._child(subject, as_it_is).fails()
            if sound[subject.module]:
                yield subject, mutant, self._child(subject, mutant.source).fails()
            else:
                unknown.append(f"{subject.module} ({mutant.name})")
        if unknown:
            raise RuntimeError(f"tests fail on the product as it is, {self.log} says how: {', '.join(unknown)}")

    def _child(self, subject: Subject, source: str) -> _Child:
        tests = subject.tests.of_all

        def run(say: Callable[[str], None]) -> int:
            plant_before_import(subject.module, str(subject.path), source)
            return int(pytest.main(self.arguments(tests), plugins=[_FirstFailure(set(tests))]))

        return _Child(self.log, run, tests=sum(subject.tests.seconds.get(t, 0.0) for t in tests) + _LOADING)


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
            # Nobody looks through all of this again, in child after child; and what the parent is done with is its own
            # to end: a finalizer may wait for threads that no child has.
            gc.freeze()
            os.setsid()
            os.close(heard)
            log.parent.mkdir(parents=True, exist_ok=True)
            out = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
            for number in (1, 2):
                os.dup2(out, number)
            _, hard = resource.getrlimit(resource.RLIMIT_DATA)
            most = _MOST_BYTES + _bytes_of_data()  # what it begins with is the parent's
            most = most if hard == resource.RLIM_INFINITY else min(most, hard)
            resource.setrlimit(resource.RLIMIT_DATA, (most, most))
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


def _bytes_of_data() -> int:
    said = Path("/proc/self/status").read_text(encoding="ascii")
    return next(int(line.split()[1]) << 10 for line in said.splitlines() if line.startswith("VmData:"))


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

    def __init__(self, trial: Trial, say: Callable[[str], None]) -> None:
        super().__init__({test for subject in trial.subjects for test in subject.tests.tests})
        self._trial, self._say = trial, say
        self._reports = trial.log.with_suffix(".reports")
        self._failed: Counter[str] = Counter()
        self._sound: dict[tuple[str, ...], bool] = {}
        self._unsound: set[str] = set()
        """Tests that fail here on the product as it is: they say nothing."""

    def run(self) -> int:
        return int(pytest.main(self._trial.arguments(self._wanted), plugins=[self]))

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        self._items = {item.nodeid: item for item in session.items}
        loaded = loaded_functions({str(subject.path) for subject in self._trial.subjects})
        for n, subject in enumerate(self._trial.subjects):
            source, path = subject.path.read_text(encoding="utf-8"), str(subject.path)
            for m, mutant in enumerate(subject.mutants):
                plant = planted_in_functions(source, mutant.source, path, loaded[path])
                self._say(f"{'load' if plant is None else self._tried(session, subject, mutant, plant)}\t{n}\t{m}")
        self._say(_END)
        return True

    def _tried(self, session: pytest.Session, subject: Subject, mutant: Mutant, plant: Callable[[], None]) -> str:
        wanted, seconds = [t for t in subject.tests.of(mutant.name) if t in self._items], subject.tests.seconds
        while tests := [t for t in wanted if t not in self._unsound]:
            tests.sort(key=lambda test: -self._failed[test])
            if not self._fail(session, tests, seconds, plant):
                return "survived"
            # Where it hung or died, nobody has said which it was.
            culprits = tuple(self._that_failed() or tests)
            if culprits not in self._sound:
                self._sound[culprits] = not self._fail(session, culprits, seconds, lambda: None)
            if self._sound[culprits]:
                self._failed.update(culprits if len(culprits) == 1 else ())
                return "killed"
            self._unsound.update(culprits)
        return "unknown"

    def _fail(
        self, session: pytest.Session, tests: Sequence[str], seconds: Mapping[str, float], plant: Callable[[], None]
    ) -> bool:
        self._reports.unlink(missing_ok=True)
        session.items = [self._items[test] for test in tests]

        def run(say: Callable[[str], None]) -> int:
            plant()
            with suppress(session.Failed, session.Interrupted):
                pytest_runtestloop(session)
            return min(session.testsfailed, 1)

        return _Child(self._trial.log, run, tests=sum(seconds.get(test, 0.0) for test in tests)).fails()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            with self._reports.open("a") as file:
                file.write(f"{json.dumps(report.nodeid)}\n")

    def _that_failed(self) -> list[str]:
        """In the last child."""
        return [json.loads(line) for line in self._reports.read_text().splitlines()] if self._reports.exists() else []


def void(_: object) -> None:
    """Of a call, its effect."""
