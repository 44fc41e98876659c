"""A copy of a stream's catalog that somebody works on, beside the one that is meant: one log, one group, two tables.

Both sides have a history of their own, which ends where nobody works on the copy any more: what one of them shows in
the group, the other one sees as somebody else's. Judges nothing.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import partial
from typing import Any

from tests.fakes.batch import Bench, Carrying, run_batch, run_interval
from tests.fakes.faults import Steps, under_way
from tests.fakes.way_out import GoTo, way_out
from tests.histories.events import Ended, Rewound, Shared, Started
from tests.histories.history import History
from tests.histories.running import DEADLINE, how_it_ended
from tests.histories.witness import Witness
from wavestitch.batch.plan import PlanRequest
from wavestitch.batch.rewind import apply_rewind, plan_rewind
from wavestitch.contracts.plan import Scope
from wavestitch.contracts.position import parse_tag
from wavestitch.contracts.stream import Stream

THEIRS = "copy-"
"""How the names of runs on the copy begin."""


class Fork:
    """`history`: of the copy, from the beginning of the stream on. `run`: the one under way on it."""

    def __init__(
        self, bench: Bench, history: History, witness: Witness, *, under_way: list[Steps], chance: random.Random
    ) -> None:
        """`under_way`: runs, which nobody hears of any more on the copy."""
        self.bench = bench.copied()
        self.history = History(history)
        for run in under_way:
            self.history.append(Ended(run.name, "killed", len(run.trace)))
        self._ours, self._meant = witness, bench
        self._theirs = Witness(self.bench, self.history, goes_on=True, asked=witness.asked)
        bench.log.tell = self._hear  # type: ignore[method-assign]
        self.random = chance
        self.run: Steps | None = None
        self._launched = 0
        self._advice = ""

    # what both see of the log

    def _hear(self, what: str, /, **facts: Any) -> None:
        theirs = under_way().startswith(THEIRS)
        mine, other = (self._theirs, self._ours) if theirs else (self._ours, self._theirs)
        mine._hear(what, **facts)
        if what == "projected":
            self._shown(other, uuid=(self._meant if theirs else self.bench).tables.uuid, **facts)
        elif what != "looked":
            other._hear(what, **facts)

    def _shown(self, other: Witness, *, uuid: str, offsets: dict[int, int], metadata: str) -> None:
        tag = parse_tag(metadata)
        assert tag is not None
        for p, offset in sorted(offsets.items()):
            other.history.append(
                Shared(self.bench.log.topic_id, p, offset, tag.table != uuid, tag.generation, tag.sequence)
            )

    # who works on the copy

    def goes_on(self, stream: Stream, clock_ms: int, how: Carrying) -> None:
        """Some effects further; what is refused is followed, or tried again."""
        if self.run is None:
            way = way_out(self._advice) if self._advice and self.random.random() < 0.5 else None
            self._advice = ""
            if way is None:
                self._launch(
                    "ingest", partial(run_batch, self.bench, stream, PlanRequest(), clock_ms=clock_ms, how=how)
                )
            else:
                self.history.append(Rewound(f"{THEIRS}{self._launched + 1}", way.target.word or "parts", True, None))
                self._launch("rewind", partial(self._rewound, stream, way))
        run = self.run
        assert run is not None
        for _ in range(self.random.choice([1, 5, 20, DEADLINE, DEADLINE])):
            if not run.advance():
                break
        self._settle(run)

    def backfills(self, stream: Stream, scope: Scope, clock_ms: int, how: Carrying) -> None:
        """Whoever works on the copy backfills an interval: heads that move no position."""
        if self.run is None:
            call = partial(run_interval, self.bench, stream, scope, clock_ms=clock_ms, how=how)
            self._launch("backfill", call, deadline=5 * DEADLINE)
            assert self.run is not None
            self.run.finish()
            self._settle(self.run)

    def _launch(self, what: str, call: Callable[[], Any], *, deadline: int = DEADLINE) -> None:
        self._launched += 1
        name = f"{THEIRS}{self._launched}"
        self.history.append(Started(name, what, deadline))
        self.run = Steps(call, name)

    def _settle(self, run: Steps) -> None:
        if run.done:
            reason, self._advice = how_it_ended(run)
            self.history.append(Ended(run.name, reason, len(run.trace), self._advice))
            self.run = None

    def _rewound(self, stream: Stream, way: GoTo) -> Any:
        edges: dict[str, Any] = {"log": self.bench.log, "tables": self.bench.tables}
        found = plan_rewind(stream, way.target, **edges, who="copy", why="to see")
        return apply_rewind(stream, found, accept_skip=way.accepts, accept_missing=True, **edges)

    def stops(self) -> None:
        """Somebody has noticed."""
        if self.run is not None:
            self.run.kill()
            self._settle(self.run)
        self._meant.log.tell = self._ours._hear  # type: ignore[method-assign]
