"""Contenders as child processes that stand ready before the clock starts: a line of JSON in, a line of JSON out.

A contender is started once and runs many times, so that what is warm stays warm. Its start-up is never measured here.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import traceback
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from types import FrameType, TracebackType
from typing import Any, Self

from benchmarks.figures import Run
from benchmarks.meter import Meter

Json = dict[str, Any]
ROOT = Path(__file__).resolve().parents[1]


class Child:
    """A running contender. What it prints beside its answers goes to `log`."""

    def __init__(self, argv: Sequence[str], *, log: Path, env: Mapping[str, str] | None = None) -> None:
        self.name = argv[-1]
        self._log_path = log
        self._log = log.open("ab")
        self.process = subprocess.Popen(
            list(argv),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            cwd=ROOT,
            start_new_session=True,  # it is ended by its input's end, not by what a terminal or a deadline signals
            env={**os.environ, **(env or {})},
        )
        self.receive()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    @property
    def pid(self) -> int:
        return self.process.pid

    def send(self, job: Mapping[str, Any]) -> None:
        if self.process.stdin is None:
            raise AssertionError("a child without the pipe that was asked for")
        self.process.stdin.write(json.dumps(job).encode() + b"\n")
        self.process.stdin.flush()

    def receive(self) -> Json:
        """The next answer. Raises `RuntimeError` with its own words where it has none."""
        for line in self.process.stdout or ():
            if line.startswith(b"{"):
                answer: Json = json.loads(line)
                if "error" in answer:
                    raise RuntimeError(f"{self.name}: {answer['error']}")
                return answer
        words = "\n".join(self._log_path.read_text(errors="replace").splitlines()[-12:])
        raise RuntimeError(f"{self.name} ended with exit code {self.process.wait()}; the end of its log:\n{words}")

    def ask(self, job: Mapping[str, Any]) -> Json:
        """Send a job and wait for its answer; not measured."""
        self.send(job)
        return self.receive()

    def close(self) -> None:
        if self.process.stdin is not None and not self.process.stdin.closed:
            self.process.stdin.close()
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        if self.process.stdout is not None:
            self.process.stdout.close()
        self._log.close()


def start(module: str, *, folder: Path, env: Mapping[str, str] | None = None) -> Child:
    """A contender that is a module of ours."""
    argv = [sys.executable, "-P", "-m", module]
    path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    return Child(argv, log=folder / f"{module.rpartition('.')[2]}.log", env={"PYTHONPATH": path, **(env or {})})


def race(
    children: Sequence[Child],
    jobs: Sequence[Mapping[str, Any]],
    *,
    size: int,
    check: Callable[[list[Json]], None] = lambda _: None,
    without: Iterable[int] = (),
) -> Run:
    """All children do their jobs side by side; from the word to the last answer. `check` is outside the clock."""
    os.sync()  # what the one before left unwritten is not to be charged to this one
    with Meter([c.pid for c in children], without=without) as meter:
        for child, job in zip(children, jobs, strict=True):
            child.send(job)
        answers = [child.receive() for child in children]
    check(answers)
    return Run(meter.cost, size, meter.peak_mib, answers[0] if len(answers) == 1 else {"each": answers})


def end_in_order() -> None:
    """A run that is told to end must still stop what it started, and is told twice by some: the second is not heard."""

    def interrupt(_signal: int, _frame: FrameType | None) -> None:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        raise KeyboardInterrupt

    signal.signal(signal.SIGTERM, interrupt)


def serve(act: Callable[[Json], Json]) -> None:
    """A contender's main loop: say that it is ready, then a job a line until the input ends."""
    out = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # whatever a library prints must not end up between the answers
    out.write("{}\n")
    for line in sys.stdin:
        try:
            answer = act(json.loads(line))
        except Exception as error:  # told to whoever asked, who decides
            traceback.print_exc()
            answer = {"error": f"{type(error).__name__}: {error}"[:2000]}
        out.write(json.dumps(answer) + "\n")
