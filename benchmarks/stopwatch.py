"""What every step of a batch costs: wall and CPU seconds of this process and all below it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from benchmarks.figures import Cost
from benchmarks.meter import spent
from wavestitch.batch.run import Silent


class Stopwatch(Silent):
    """A `Watcher` that notes what every step costs."""

    def __init__(self) -> None:
        self.costs: dict[str, Cost] = {}
        self._step = ""
        self._since = spent()

    def begin(self, step: str, total: int | None = None) -> None:
        now = spent()
        if self._step:
            self.costs[self._step] = now - self._since
        self._step, self._since = step, spent()

    def timed(self, name: str, act: Callable[[Path, Path], None]) -> Callable[[Path, Path], None]:
        def call(job: Path, result: Path) -> None:
            began = spent()
            act(job, result)
            self.costs[name] = spent() - began

        return call
