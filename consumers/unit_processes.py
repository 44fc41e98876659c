"""Several units read side by side, each in a process of its own: one Python process cannot keep up with two.

The children tell their progress, their receipt or their error; the first error ends all of them. Which process died
how is said in the error: killed from outside (out of memory?) may be tried again, a crash of our own may not.
"""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from queue import SimpleQueue
from types import TracebackType
from typing import Any, NamedTuple, Self

from consumers.client_settings import KafkaSettings
from wavestitch.contracts.errors import Terminal, Transient, error_from_json
from wavestitch.contracts.plan import Plan
from wavestitch.contracts.receipt import Receipt, receipt_from_json

_ARGV = (sys.executable, "-P", "-m", "consumers.unit_process")  # -P: nothing is imported from the working directory

OnProgress = Callable[[int, int, int], None]
"""Called with a unit and the records and bytes of it that were read so far."""


class Word(NamedTuple):
    """What a child said: `words` is one JSON line, None when it has ended."""

    unit: int
    words: dict[str, Any] | None


@dataclass(frozen=True, slots=True)
class _Child:
    process: subprocess.Popen[bytes]
    listener: threading.Thread

    def end(self) -> int:
        """Wait for it; returns its exit code. The listener ends with the child's output."""
        code = self.process.wait()
        self.listener.join()
        # What a child that died at once did not take is flushed by closing, and has nowhere to go.
        with contextlib.suppress(BrokenPipeError):
            if self.process.stdin is not None:
                self.process.stdin.close()
        if self.process.stdout is not None:
            self.process.stdout.close()
        return code


@dataclass
class UnitProcesses:
    """The running children. Use as a context manager: leaving it ends those that still run."""

    plan: Plan
    kafka: KafkaSettings
    folder: Path
    _children: dict[int, _Child] = field(default_factory=dict)
    _spoken: SimpleQueue[Word] = field(default_factory=SimpleQueue)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        for child in self._children.values():
            child.process.kill()
            child.end()
        self._children.clear()

    def read(
        self, units: Sequence[int], *, at_once: int, on_progress: Callable[[int, int, int], None]
    ) -> dict[int, Receipt]:
        """All receipts by unit. `on_progress(unit, records, bytes)`: sums of one unit so far."""
        waiting, receipts = list(units), dict[int, Receipt]()
        while waiting or self._children:
            while waiting and len(self._children) < at_once:
                self._start(waiting.pop(0))
            unit, words = self._spoken.get()
            if words is None:
                self._bury(unit, receipts)
            elif "progress" in words:
                on_progress(unit, *words["progress"])
            elif "receipt" in words:
                receipts[unit] = receipt_from_json(words["receipt"])
            else:
                raise error_from_json(words["error"])
        return receipts

    def _start(self, unit: int) -> None:
        child = subprocess.Popen(_ARGV, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        listener = threading.Thread(target=self._listen, args=(unit, child), daemon=True)
        self._children[unit] = _Child(child, listener)
        listener.start()
        job = {
            "plan": self.plan.to_json(),
            "unit": unit,
            "bootstrap": self.kafka.bootstrap,
            "options": dict(self.kafka.options),
            "folder": str(self.folder.absolute()),
        }
        if child.stdin is None:
            raise AssertionError("a child without the pipe that was asked for")
        try:
            # The pipe stays open behind the job: the child takes its end for our death.
            child.stdin.write(json.dumps(job).encode() + b"\n")
            child.stdin.flush()
        except BrokenPipeError:
            return  # it died at once; its end is told like any other's

    def _listen(self, unit: int, child: subprocess.Popen[bytes]) -> None:
        for line in child.stdout or ():
            self._spoken.put(Word(unit, json.loads(line)))
        self._spoken.put(Word(unit, None))

    def _bury(self, unit: int, receipts: dict[int, Receipt]) -> None:
        code = self._children.pop(unit).end()
        if code == 0 and unit in receipts:
            return
        what = f"the process that read unit {unit} of plan {self.plan.plan_id[:16]}"
        if code < 0:
            raise Transient(
                f"{what} was killed by signal {-code}; is there enough memory (about 300 MiB a reader)? Try again",
                unit=unit,
                signal=-code,
            )
        raise Terminal(f"{what} ended with exit code {code}; its own words are in the log above", unit=unit, code=code)
