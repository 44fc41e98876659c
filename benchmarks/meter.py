"""What processes use: CPU seconds of whole trees, and peak private memory (RssAnon) by kind of process.

CPU is read at the begin and the end from the kernel's own sums, children that have ended included; nothing is
estimated. Memory has no such sum and is looked at five times a second: more often would cost what it measures. Mapped
landing pages are page cache, not private memory.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from benchmarks.figures import Cost

_TICK = os.sysconf("SC_CLK_TCK")
_LOOK_SECONDS = 0.2


def tree(root: int, *, without: Iterable[int] = ()) -> Iterator[int]:
    """The process and all below it, except these and what is below them."""
    left_out = set(without)
    yield root
    for task in Path(f"/proc/{root}/task").glob("*/children"):
        try:
            children = task.read_text().split()
        except OSError:
            continue
        for child in map(int, children):
            if child not in left_out:
                yield from tree(child, without=left_out)


def tree_cpu(roots: Sequence[int], *, without: Iterable[int] = ()) -> float:
    """User and system seconds of these trees, with those of children that have ended and were waited for."""
    total = 0
    for root in roots:
        for pid in tree(root, without=without):
            try:
                stat = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            total += sum(map(int, stat[11:15]))
    return total / _TICK


def spent(*, without: Iterable[int] = ()) -> Cost:
    """Now, and what this process and all below it have used so far."""
    return Cost(time.monotonic(), tree_cpu([os.getpid()], without=without))


class Meter:
    """A context manager around a measured stretch; `cost` and `peak_mib` hold what it took."""

    def __init__(self, roots: Sequence[int], *, without: Iterable[int] = ()) -> None:
        self._roots, self._without = list(roots), set(without)
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self.peak_mib: dict[str, float] = {}
        self.cost = Cost(0.0, 0.0)

    def __enter__(self) -> Self:
        self._began = self._now()
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.cost = self._now() - self._began
        self._done.set()
        self._thread.join()

    def _now(self) -> Cost:
        return Cost(time.monotonic(), tree_cpu(self._roots, without=self._without))

    def _watch(self) -> None:
        while True:
            self._look()
            if self._done.wait(_LOOK_SECONDS):
                return

    def _look(self) -> None:
        for root in self._roots:
            for pid in tree(root, without=self._without):
                try:
                    status = Path(f"/proc/{pid}/status").read_text()
                    kind = _kind(pid, root)
                except OSError:
                    continue
                kib = next((int(x.split()[1]) for x in status.splitlines() if x.startswith("RssAnon")), 0)
                self.peak_mib[kind] = max(self.peak_mib.get(kind, 0.0), kib / 1024)


def _kind(pid: int, root: int) -> str:
    if os.readlink(f"/proc/{pid}/exe").endswith("java"):
        return "jvm"
    if pid == root:
        return "main"
    words = Path(f"/proc/{pid}/cmdline").read_bytes()
    if b"consumers.unit_process" in words:
        return "reader"
    return "spark worker" if b"pyspark" in words else "child"
