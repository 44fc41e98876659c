"""A plan is carried through stage by stage: who looks on hears of each, and what an operator says reaches the gate."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest

from tests.builders.sending import send_chunk
from tests.builders.streams import make_stream
from tests.fakes.batch import Bench, Carrying, FakeEdges
from tests.fakes.fake_log import FakeLog
from wavestitch.batch.carry import Carried, How, carry_through
from wavestitch.batch.plan import PlanRequest
from wavestitch.batch.results import Planned
from wavestitch.batch.steps import step_plan
from wavestitch.contracts.batch_stages import BATCH
from wavestitch.contracts.errors import GateClosed

NOW = 1_767_614_400_000
NAMES = ["read", "reassemble", "validate", "publish", "commit offsets"]


@dataclass
class Onlooker:
    """`begun`: stages, and how many offsets there are to read."""

    begun: list[tuple[str, int | None]] = field(default_factory=list)

    def begin(self, step: str, total: int | None = None) -> None:
        self.begun.append((step, total))

    def say(self, text: str) -> None: ...

    def progress(self, records: int, size: int) -> None: ...


class CountedEdges(FakeEdges):
    """Those of the bench; `told` has how many batches the history had whenever figures were to be told."""

    told: list[int]

    def tell_metrics(self) -> None:
        self.told.append(len(self.bench.tables.history))


def edges_of(*spoiled: str) -> CountedEdges:
    bench = Bench(FakeLog("waves", 1))
    for name in ("good", "bad"):
        send_chunk(bench.log, name, at_ms=NOW, count=1)
    made = CountedEdges(bench, make_stream(), NOW, Carrying(spoiled=set(spoiled)))
    made.told = []
    return made


def planned(edges: FakeEdges) -> Planned:
    found = step_plan(edges, PlanRequest())
    assert isinstance(found, Planned)
    return found


def test_who_looks_on_hears_of_each_stage_before_it_and_after_it() -> None:
    edges, onlooker, done = edges_of(), Onlooker(), list[str]()
    plan = planned(edges)
    how = How(watcher=onlooker)
    carry_through(BATCH, edges, Carried(plan.plan_id), how, total=2, after=done.append)
    assert onlooker.begun == [("read", 2), *((name, None) for name in NAMES[1:])]
    assert done == NAMES


def test_figures_are_told_once_right_after_something_was_published() -> None:
    edges = edges_of()
    plan = planned(edges)
    before = len(edges.bench.tables.history)
    carry_through(BATCH, edges, Carried(plan.plan_id), How())
    assert edges.told == [before + 1] == [len(edges.bench.tables.history)]


@pytest.mark.parametrize(("gate", "published"), [("accept", {"good", "bad"}), ("park", set())])
def test_what_an_operator_says_to_a_closed_gate_reaches_it(gate: Any, published: set[str]) -> None:
    edges = edges_of("bad")
    plan = planned(edges)
    with pytest.raises(GateClosed):
        carry_through(BATCH, edges, Carried(plan.plan_id), How())
    assert edges.told == []
    carry_through(BATCH, edges, Carried(plan.plan_id), How(gate=gate, why="looked at"))
    assert {row.waveform_id for _, row in edges.bench.tables.rows} == published
    assert "looked at" in edges.bench.tables.history[-1].note
