"""A stream in memory whose held waveforms somebody decides about: what is sent, what is said, and what all guarantees
say after each batch. Decides nothing.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from tests.builders.sending import send_chunk
from tests.builders.streams import make_stream
from tests.fakes.batch import Bench, Carrying, FakeEdges, run_batch
from tests.fakes.fake_log import FakeLog
from tests.fakes.sight import look_around
from tests.guarantees import Balanced, NoDuplicates, NoInvention, NoLoss
from tests.guarantees_of_runs import Fenced
from wavestitch.batch.held_decision import carry_out, plan_held
from wavestitch.batch.held_waveforms import Selection, select_held
from wavestitch.batch.plan import PlanRequest
from wavestitch.contracts.held_choice import HeldAction
from wavestitch.contracts.held_mark import HeldMark, held_bytes

T = 1_767_614_400_000
ONE, TWO, OTHER = b"\x01\x00", b"\x02\x00", b"\x07\x00"


class World:
    def __init__(self) -> None:
        self.bench = Bench(FakeLog("waves", 1))
        self.stream = make_stream()
        self.now_ms = T
        self.guarantees: tuple[Any, ...] = (NoLoss(), NoDuplicates(), NoInvention(), Fenced(), Balanced())

    def send(
        self, wid: str, seq: int, value: bytes, *, count: int | None = 2, at: int = T, meta: bytes | None = None
    ) -> None:
        send_chunk(self.bench.log, wid, seq, value, at_ms=at, start_ms=T, count=count, meta=meta)

    def ingest(self, **how: Any) -> Any:
        self.now_ms += 1
        done = run_batch(self.bench, self.stream, PlanRequest(), clock_ms=self.now_ms, how=Carrying(**how))
        self.check()
        return done

    def decide(self, action: HeldAction, *ids: str, pick: str = "", how: Carrying | None = None) -> Any:
        self.now_ms += 1
        edges = FakeEdges(self.bench, self.stream, self.now_ms, how or Carrying())
        found = plan_held(edges, action, Selection(ids=ids), who="ops", why="looked at it", pick=pick)
        done = carry_out(edges, found.plan)
        self.check()
        return done

    def check(self) -> None:
        sight = look_around(self.bench, allowed_lateness_ms=self.stream.allowed_lateness * 1000)
        for guarantee in self.guarantees:
            guarantee.check(sight)
        held = [h for one in select_held(self.bench.tables, self.stream, Selection()) for h in one.held]
        counts = dict(Counter(h.counted_as for h in held))
        mark = self.bench.tables.snapshots[-1].held
        assert (dict(mark.counts) if mark is not None else {}) == counts | self.junk_counts(), (
            "the head counts what is held"
        )
        size = sum(held_bytes(h.chunk, h.counted_as) for h in held)
        assert (mark.chunk_bytes if mark is not None else 0) == size, "the head knows the bytes of what is held"

    def mark(self) -> HeldMark:
        mark = self.bench.tables.snapshots[-1].held
        assert mark is not None
        return mark

    def junk_counts(self) -> dict[str, int]:
        return dict(Counter(r.held.reason.value for r in self.bench.tables.held_rows() if r.held.chunk.reason))

    def published(self) -> dict[str, bytes]:
        return {row.waveform_id: row.samples for _, row in self.bench.tables.rows}

    def held(self) -> dict[str, set[str]]:
        found = select_held(self.bench.tables, self.stream, Selection())
        return {one.waveform_id: {s.value for s in one.states} for one in found}


def parked(world: World) -> None:
    world.send("w", 0, ONE)
    world.send("w", 1, TWO)
    world.ingest(park=True)


def conflicting(world: World) -> None:
    world.send("w", 0, ONE)
    world.send("w", 1, TWO)
    world.send("w", 1, OTHER)
    world.ingest()
