"""A stream in memory with an account of every effect: each operation's preview is compared with what it does."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from tests.builders.records import letter, metadata
from tests.fakes.account import keep_account
from tests.fakes.batch import Bench, Carrying, FakeEdges
from tests.fakes.fake_log import FakeLog
from wavestitch.batch.held_decision import carry_out, plan_held
from wavestitch.batch.held_waveforms import Selection
from wavestitch.batch.plan import NothingToDo, PlanRequest
from wavestitch.batch.results import Planned
from wavestitch.batch.rewind import Rewind, Target, apply_rewind, plan_rewind
from wavestitch.batch.run import RunOptions, Silent, run_batch
from wavestitch.batch.steps import step_plan
from wavestitch.batch.take_back import TakingBack, take_back
from wavestitch.batch.undo import committed_stages, plan_undo
from wavestitch.contracts.held_choice import HeldAction
from wavestitch.contracts.quantities import Offset, Partition
from wavestitch.contracts.stages import Stage
from wavestitch.contracts.stream import Stream

T = 1_767_614_400_000
STREAM = Stream(name="ecg", topic="waves", group="g")
INGEST = PlanRequest()
AFTER_PLANNING = ["read", "reassemble", "validate", "publish", "commit offsets"]


class World:
    """A stream in memory, with an account of every effect."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.bench = Bench(FakeLog("waves", 2))
        self.now_ms = T
        self.account = keep_account(patch)

    @property
    def where(self) -> dict[str, Any]:
        return {"log": self.bench.log, "tables": self.bench.tables}

    def edges(self, **how: Any) -> FakeEdges:
        return FakeEdges(self.bench, STREAM, self.now_ms, Carrying(**how))

    def send(self, name: str, *values: bytes, count: int = 2, first: int = 0) -> World:
        for seq, value in enumerate(values, first):
            one = letter(name, seq, value, meta=metadata(T), count=count)
            self.bench.log.append(Partition(0), T, one.key, one.headers, one.value)
        return self

    def shown(self, request: PlanRequest = INGEST) -> Planned | NothingToDo:
        found = step_plan(self.edges(), request, apply=False)
        assert self.account.effects == [], "a preview has no effects"
        assert self.account.stages == []
        return found

    def ingest(self, request: PlanRequest = INGEST, *, gate: Any = "stop", **how: Any) -> Any:
        """One batch, whose preview is compared with what it does."""
        self.now_ms += 1
        self.forget()
        shown = self.shown(request)
        done = run_batch(self.edges(**how), RunOptions(request, gate=gate, why=gate), watcher=Silent())
        assert self.account.names == [told.stage for told in shown.stages]
        assert self.account.unnamed == []
        said = done if isinstance(done, NothingToDo) else done.planned
        assert isinstance(said, NothingToDo | Planned)
        assert said.stages == shown.stages, "to the word"
        return done

    def decide(self, action: HeldAction, name: str, pick: str = "") -> None:
        self.forget()
        found = plan_held(self.edges(), action, Selection(ids=(name,)), who="ops", why="so it is", pick=pick)
        self.done(found.stages, lambda: carry_out(self.edges(), found.plan))

    def rewind(self, to: str = "earliest", **offsets: int) -> None:
        self.forget()
        target = (
            Target(offsets={Partition(int(p[1:])): Offset(o) for p, o in offsets.items()}) if offsets else Target(to)
        )
        found = plan_rewind(STREAM, target, **self.where, who="ops", why="so it is")
        self.done(found.stages, lambda: apply_rewind(STREAM, found, accept_skip=True, **self.where))

    def undo(self, plan_id: str | None = None) -> None:
        self.forget()
        found = plan_undo(self.edges(), committed_stages(self.edges(), plan_id), who="ops", why="back")
        if isinstance(found, Rewind):
            self.done(found.stages, lambda: apply_rewind(STREAM, found, accept_skip=True, **self.where))
        elif isinstance(found, TakingBack):
            self.done(found.stages, lambda: take_back(self.edges(), found))
        else:
            self.done(found.stages, lambda: carry_out(self.edges(), found.plan))

    def done(self, shown: Sequence[Stage], do: Callable[[], object]) -> None:
        assert self.account.effects == [], "a preview has no effects"
        do()
        assert self.account.names == [stage.name for stage in shown]
        assert self.account.unnamed == []

    def forget(self) -> None:
        self.account.stages.clear()
        self.account.effects.clear()

    def positions(self) -> dict[int, int]:
        return {p: at.next_offset for p, at in self.bench.tables.snapshots[-1].positions.items()}

    def held(self) -> set[str]:
        return {row.held.reason.value for row in self.bench.tables.held_rows()}
