"""Several units read side by side, each in a process of its own: one Python process cannot keep up with two.

The children tell their progress, their receipt or their error; the first error ends all of them. One that is done waits
for the next unit, of this batch or of the next one, since starting it takes as long as reading some hundred MiB. Which
process died how is said in the error: killed from outside may be tried again, a crash of our own may not. One that
ended for want of memory has its unit read once more, carefully.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from queue import SimpleQueue
from types import TracebackType
from typing import NamedTuple, Self

from consumers.byte_budget import budget_of
from consumers.read_job import READ_JOBS, ReadJob, UnitProgress, UnitRead, UnitWord, word_from_line
from wavestitch.child_environment import child_environment
from wavestitch.contracts.chunk_proof import ChunkProof
from wavestitch.contracts.errors import BadInput, Terminal, Transient, error_from_json
from wavestitch.contracts.payload_apart import PayloadPlace
from wavestitch.contracts.plan import Plan
from wavestitch.contracts.receipt import Receipt, receipt_from_json
from wavestitch.contracts.way_past import past_unknown_place
from wavestitch.kafka.client_settings import KafkaSettings

_ARGV = (sys.executable, "-P", "-m", "consumers.unit_process")  # -P: nothing is imported from the working directory
# The client has threads of its own for each slice. With a heap for each of them, too, freed memory stays in pieces. And
# numpy's algebra, which is not used, would take 40 MiB for each processor of the machine.
_FEW_HEAPS = {"MALLOC_ARENA_MAX": "2", "OPENBLAS_NUM_THREADS": "1"}

_NO_ROOM = (-signal.SIGABRT, -signal.SIGKILL)
"""How a reader ends that found no room: by itself, at its own bound, or by the kernel, where the machine has less than
that. Somebody else's SIGKILL looks the same; then it is read carefully for nothing, once."""
OnProgress = Callable[[int, int, int], None]
"""Called with a unit and the records and bytes of it that were read so far."""


class _Heard(NamedTuple):
    """What a child said; `word` is None when it has ended, an error where it is none of ours."""

    child: _Child
    word: UnitWord | BadInput | None


@dataclass(eq=False, slots=True)
class _Child:
    """A process and who listens to it. `job`: what it reads. `spoke`: whether it has said anything about that. `used`:
    whether it has read something before."""

    process: subprocess.Popen[bytes]
    job: ReadJob
    used: bool = False
    spoke: bool = False
    listener: threading.Thread | None = None

    def end(self) -> int:
        """Wait for it; returns its exit code. The listener ends with the child's output."""
        code = self.process.wait()
        if self.listener is not None:
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
    """The children that read and those that wait. Use as a context manager: leaving it ends them."""

    _reading: set[_Child] = field(default_factory=set)
    _idle: list[_Child] = field(default_factory=list)
    _spoken: SimpleQueue[_Heard] = field(default_factory=SimpleQueue)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._end()

    def read(
        self,
        plan: Plan,
        units: Sequence[int],
        *,
        kafka: KafkaSettings,
        folder: Path,
        proof: ChunkProof,
        payload: PayloadPlace | None,
        at_once: int,
        on_progress: Callable[[int, int, int], None],
    ) -> dict[int, Receipt]:
        """All receipts by unit. `on_progress(unit, records, bytes)`: sums of one unit so far."""
        budget = budget_of(plan, units, folder)
        counts: dict[int, Sequence[int]] = {}
        text = plan.to_json()
        waiting = [
            ReadJob(
                plan=text,
                unit=unit,
                folder=str(folder.absolute()),
                budget=budget.allowed,
                bootstrap=kafka.bootstrap,
                options=dict(kafka.options),
                token=kafka.token,
                proof_key=proof.key.hex(),
                payload=payload,
            )
            for unit in units
        ]
        receipts = dict[int, Receipt]()
        try:
            while waiting or self._reading:
                while waiting and len(self._reading) < at_once:
                    self._give(waiting.pop(0))
                child, word = self._spoken.get()
                if word is None:
                    waiting += self._bury(child, plan)
                    continue
                if isinstance(word, BadInput):
                    raise word
                child.spoke = True
                if isinstance(word, UnitProgress):
                    counts[child.job.unit] = word.counts
                    budget.see(counts)
                    on_progress(child.job.unit, word.records, word.bytes)
                elif isinstance(word, UnitRead):
                    receipts[child.job.unit] = receipt_from_json(word.receipt)
                    self._reading.remove(child)
                    self._idle.append(child)
                else:
                    raise error_from_json(word.error)
        finally:
            if self._reading:
                self._end()
        return receipts

    def _give(self, job: ReadJob) -> None:
        """Have a child read a unit: one that waits, or a new one."""
        self._idle = [c for c in self._idle if c.process.poll() is None]  # one that died had done its work
        if self._idle:
            child = self._idle.pop()
            child.job, child.used, child.spoke = job, True, False
        else:
            process = subprocess.Popen(
                _ARGV,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                env={**_FEW_HEAPS, **child_environment(os.environ)},
            )
            child = _Child(process, job)
            child.listener = threading.Thread(target=self._listen, args=(child,), daemon=True)
            child.listener.start()
        self._reading.add(child)
        if child.process.stdin is None:
            raise AssertionError("a child without the pipe that was asked for")
        # A child that died is told like any other's end. The pipe stays open: its end is our death.
        with contextlib.suppress(BrokenPipeError):
            child.process.stdin.write(READ_JOBS.line(job).encode() + b"\n")
            child.process.stdin.flush()

    def _listen(self, child: _Child) -> None:
        for line in child.process.stdout or ():
            if line.endswith(b"\n"):  # one that it was killed over says nothing, and how it ended is told by its end
                self._spoken.put(_Heard(child, _word_of(line)))
        self._spoken.put(_Heard(child, None))

    def _bury(self, child: _Child, plan: Plan) -> list[ReadJob]:
        """What is to be read again: the job of a child that died before it began, or that ended for want of memory. Any
        other end is raised."""
        code = child.end()
        if child not in self._reading:
            return []
        self._reading.remove(child)
        if child.used and not child.spoke:
            return [child.job]  # it died while it waited, and was not noticed before it was given this
        if code in _NO_ROOM and not child.job.careful:
            return [replace(child.job, careful=True)]
        self._reading.add(child)
        what = f"the process that read unit {child.job.unit} of plan {plan.plan_id[:16]}"
        if child.job.careful and code < 0:
            slices = ", ".join(str(s) for s in plan.units[child.job.unit])
            raise Transient(
                f"{what} was ended by signal {-code} although it read carefully: topic {plan.stream.topic} {slices}. "
                f"Give readers more memory and try again; or {past_unknown_place(plan.kind, plan.stream.name)}",
                unit=child.job.unit,
                signal=-code,
            )
        if code < 0:
            raise Transient(
                f"{what} was killed by signal {-code}. Try again",
                unit=child.job.unit,
                signal=-code,
            )
        raise Terminal(
            f"{what} ended with exit code {code}; its own words are in the log above", unit=child.job.unit, code=code
        )

    def _end(self) -> None:
        for child in (*self._reading, *self._idle):
            child.process.kill()
            child.end()
        self._reading.clear()
        self._idle.clear()
        self._spoken = SimpleQueue()


def _word_of(line: bytes) -> UnitWord | BadInput:
    """An error is for whoever waits for the child: raised here, it would end the listener alone."""
    try:
        return word_from_line(line)
    except BadInput as error:
        return error
