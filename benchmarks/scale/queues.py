"""Batches in queues: plan, read, stitch and commit, each of one stream after another, streams side by side. Pure.

A discrete simulation, and all it knows: a step has pieces; a piece takes a server of its station for some seconds, and
one of its pool at the same time, where it has one; of those for which all is free, who came first is served first. A
stream has one batch at a time. It takes what waits, up to its limit; where that left something behind, the next one
begins at once, otherwise when the stream is due again. So do `run --catch-up` and the DAG.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Work:
    """One step of a batch: so many pieces at once, each for so many seconds on a server of the station."""

    station: str
    pieces: int
    seconds: float
    lands: bool = False
    """From here on its bytes lie in the landing, until the batch ends."""
    pool: str | None = None
    """Another station, of which a piece has a server at the same time; while it waits for one it has neither."""

    @property
    def servers(self) -> tuple[str, ...]:
        return (self.station,) if self.pool is None else (self.station, self.pool)


@dataclass(frozen=True, slots=True)
class Source:
    """A stream: bytes a second that come, bytes that a batch takes at most, bytes that wait at the beginning, and how
    often it is due (seconds)."""

    rate: float
    most: float
    waiting: float = 0.0
    every: float = 0.0
    first: float = 0.0


@dataclass(frozen=True, slots=True)
class Batch:
    """Of which stream, when it was planned and when its offsets stood, and its bytes. `left`: what it left waiting."""

    source: int
    began: float
    ended: float
    size: float
    left: float


@dataclass(slots=True)
class Run:
    """`busy`: seconds of servers by station; `landed`: the most bytes that lay in the landing at once."""

    batches: list[Batch] = field(default_factory=list)
    busy: dict[str, float] = field(default_factory=dict)
    landed: float = 0.0


@dataclass(slots=True)
class _UnderWay:
    source: int
    began: float
    size: float
    left: float
    steps: deque[Work]
    pieces: int = 0
    landed: float = 0.0


Steps = Callable[[float], Sequence[Work]]
"""The steps of a batch of so many bytes."""


class _Stations:
    """Servers that are free, and pieces that wait for some of them, each in the row of what it waits for."""

    def __init__(self, servers: Mapping[str, int]) -> None:
        self.free = dict(servers)
        self._rows: dict[tuple[str, ...], deque[tuple[int, _UnderWay]]] = {}
        self._came = 0

    def wait(self, batch: _UnderWay, work: Work) -> None:
        row = self._rows.setdefault(work.servers, deque())
        row.extend((self._came + n, batch) for n in range(work.pieces))
        self._came += work.pieces

    def take(self) -> _UnderWay | None:
        """The next piece that can begin: its batch."""
        can = [(row[0][0], servers) for servers, row in self._rows.items() if row and all(map(self.free.get, servers))]
        if not can:
            return None
        servers = min(can)[1]
        for name in servers:
            self.free[name] -= 1
        return self._rows[servers].popleft()[1]

    def leave(self, work: Work) -> None:
        for name in work.servers:
            self.free[name] += 1


def simulate(sources: Sequence[Source], servers: Mapping[str, int], steps: Steps, *, until: float) -> Run:
    """What happens until then; batches that are under way at that time are not in it."""
    world = _World(sources, servers, steps)
    for source, about in enumerate(sources):
        world.at(about.first, source)
    while world.events and world.events[0][0] <= until:
        now, _, what = heapq.heappop(world.events)
        if isinstance(what, int):
            world.begin_batch(now, what)
        else:
            world.end_piece(now, what)
    return world.run


class _World:
    def __init__(self, sources: Sequence[Source], servers: Mapping[str, int], steps: Steps) -> None:
        self.sources, self.steps = sources, steps
        self.run, self.stations = Run(busy=dict.fromkeys(servers, 0.0)), _Stations(servers)
        self.events: list[tuple[float, int, _UnderWay | int]] = []
        self._taken, self._landed, self._number = [0.0] * len(sources), 0.0, 0

    def at(self, when: float, what: _UnderWay | int) -> None:
        """A stream is due, or a piece of a batch ends."""
        self._number += 1
        heapq.heappush(self.events, (when, self._number, what))

    def begin_batch(self, now: float, source: int) -> None:
        about = self.sources[source]
        waits = about.waiting + about.rate * now - self._taken[source]
        size = min(about.most, waits)
        if size <= 0:
            self.at(_due(about, now), source)
            return
        self._taken[source] += size
        self._begin_step(now, _UnderWay(source, now, size, waits - size, deque(self.steps(size))))

    def end_piece(self, now: float, batch: _UnderWay) -> None:
        self.stations.leave(batch.steps[0])
        batch.pieces -= 1
        self._serve(now)
        if not batch.pieces:
            batch.steps.popleft()
            if batch.steps:
                self._begin_step(now, batch)
            else:
                self._end_batch(now, batch)

    def _begin_step(self, now: float, batch: _UnderWay) -> None:
        step = batch.steps[0]
        if step.lands:
            batch.landed = batch.size
            self._landed += batch.size
            self.run.landed = max(self.run.landed, self._landed)
        batch.pieces = step.pieces
        self.stations.wait(batch, step)
        self._serve(now)

    def _serve(self, now: float) -> None:
        while (batch := self.stations.take()) is not None:
            work = batch.steps[0]
            for name in work.servers:
                self.run.busy[name] += work.seconds
            self.at(now + work.seconds, batch)

    def _end_batch(self, now: float, batch: _UnderWay) -> None:
        self._landed -= batch.landed
        self.run.batches.append(Batch(batch.source, batch.began, now, batch.size, batch.left))
        about = self.sources[batch.source]
        if batch.left > 0:
            self.at(now, batch.source)
        elif about.rate:
            self.at(_due(about, now), batch.source)


def _due(about: Source, now: float) -> float:
    """The next time at which the stream is looked at; at least a moment later, so that time goes on."""
    every = about.every or 1.0
    return about.first + (int((now - about.first) / every) + 1) * every
