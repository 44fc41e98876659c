"""One partition, and all that moves a position or the log under it: groups that are set by hand, rewinds, undos,
batches of a part, elections that cut it off, brokers that are put back from a backup, retention. Whatever the log has
in the end is published, or given up by name: random histories of a small world, which come to corners that a large one
seldom has.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest

from tests.builders.records import cut, metadata
from tests.domain.test_cut_log import CLOCK_MS, go_by, ingest, rewind, undo
from tests.fakes.batch import Bench
from tests.fakes.fake_log import FakeLog
from tests.fakes.kept_partition import KeptPartition
from wavestitch.batch import cut_log, reconciled_head
from wavestitch.batch import rewind as rewinding
from wavestitch.batch.plan import NothingToDo, PlanRequest
from wavestitch.batch.rewind import Target
from wavestitch.contracts.errors import WavestitchError
from wavestitch.contracts.quantities import Offset, Partition

P0 = Partition(0)
_SEEDS = 60
_WAYS = 14
"""So many refusals in a row an operator follows."""


class World:
    """`acts`: what may come next, as often as it stands there."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.bench = Bench(FakeLog())
        self.sent = 0
        self.acts: list[Callable[[], Any]] = [
            *(self.produce,) * 4,
            *(lambda: ingest(self.bench),) * 4,
            *(self.set_group,) * 2,
            *(self.put_back,) * 2,
            self.ingest_a_part,
            self.rewind,
            lambda: undo(self.bench),
            lambda: self.bench.log.truncate(P0, self.offset(self.log.end)),
            lambda: self.bench.log.restart(P0),
            lambda: self.bench.log.retain_from(P0, self.offset(self.log.end)),
        ]

    @property
    def log(self) -> KeptPartition:
        return self.bench.log.partitions[P0]

    @property
    def stands(self) -> Offset:
        heads = self.bench.tables.snapshots
        return heads[-1].positions[P0].next_offset if heads else Offset(0)

    def offset(self, most: int, least: int = 0) -> Offset:
        return Offset(self.random.randint(least, most))

    def produce(self) -> None:
        for _ in range(self.random.randint(1, 3)):
            self.sent += 1
            for one in cut(f"w{self.sent}", [b"%8d" % self.sent], meta=metadata(CLOCK_MS)):
                self.bench.log.append(P0, CLOCK_MS, *one)

    def ingest_a_part(self) -> None:
        ingest(self.bench, PlanRequest(until={P0: self.offset(self.log.end)}))

    def set_group(self) -> None:
        self.bench.log.reset_group(P0, self.offset(max(self.stands, self.log.end)))

    def rewind(self) -> None:
        rewind(self.bench, Target(offsets={P0: self.offset(max(self.stands, self.log.end))}))

    def put_back(self) -> None:
        """A backup of some time: in no epoch before that of what it has."""
        end = self.offset(self.log.end, self.log.log_start)
        first = max(self.log.epochs[:end], default=0)
        epoch = self.random.randint(first, max(first, self.log.epoch))
        self.bench.log.put_back(P0, end, epoch, elected=self.random.random() < 0.6)

    def live(self) -> None:
        self.produce()
        ingest(self.bench)  # else it may begin where somebody has set the group
        for _ in range(self.random.randint(5, 15)):
            with suppress(WavestitchError):
                self.random.choice(self.acts)()

    def heal(self) -> None:
        """By the ways out that refusals name."""
        for _ in range(_WAYS):
            try:
                if isinstance(ingest(self.bench), NothingToDo):
                    return
            except WavestitchError as refusal:
                said = refusal
            else:
                continue
            with suppress(WavestitchError):
                go_by(self.bench, said)
        raise AssertionError("the ways out do not lead out")

    def passed_over(self) -> list[int]:
        """Offsets of what the log has for readers, and nobody has published or given up by name."""
        found = {row.samples for _, row in self.bench.tables.rows}
        skipped = self.bench.tables.snapshots[-1].skipped
        return [
            o
            for o in range(self.log.log_start, self.log.end)
            if self.log.records[o].value not in found and not any(r.start <= o < r.end for r in skipped)
        ]


def passed_over(seed: int) -> list[int]:
    world = World(seed)
    world.live()
    world.heal()
    return world.passed_over()


@pytest.mark.parametrize("first", range(0, 8 * _SEEDS, _SEEDS))
def test_what_the_log_has_in_the_end_is_published_or_given_up_by_name(first: int) -> None:
    assert {seed: found for seed in range(first, first + _SEEDS) if (found := passed_over(seed))} == {}


# products that are wrong

Wrong = Callable[[pytest.MonkeyPatch], None]


def knows_no_cuts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cut_log, "find_cuts", lambda *_, **__: {})


def believes_what_lies_where_it_goes_back_to(monkeypatch: pytest.MonkeyPatch) -> None:
    real = cut_log.with_last_batches

    def wrong(topic: str, positions: Any, ends: Any, log: Any, **_: Any) -> Any:
        return real(topic, positions, ends, log)

    for module in (reconciled_head, rewinding):
        monkeypatch.setattr(module, "with_last_batches", wrong)


@pytest.mark.parametrize(
    ("wrong", "first"),
    [(knows_no_cuts, 100), (believes_what_lies_where_it_goes_back_to, 500)],
)
def test_a_product_that_is_wrong_about_that_is_found_out(
    wrong: Wrong, first: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    wrong(monkeypatch)
    assert any(passed_over(seed) for seed in range(first, first + 100))
