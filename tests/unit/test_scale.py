"""Queues of batches: what waits for what, and what is refused. Nothing here is timed."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from typing import Any

import pytest

from benchmarks.scale.__main__ import read_committed
from benchmarks.scale.capacity import brokers, keeps_up
from benchmarks.scale.chains import Form, batch_seconds, chain_rate, reproduced
from benchmarks.scale.constants import Measured, read_constants
from benchmarks.scale.queues import Source, Work, simulate

STEPS = [Work("carry", 1, 1.0), Work("read", 2, 3.0, lands=True), Work("carry", 1, 2.0)]


def found(change: Callable[[Any], None] = lambda latest: None) -> Measured:
    latest, *others = read_committed()
    latest = copy.deepcopy(latest)
    change(latest["parts"])
    return read_constants(latest, *others)


def test_a_batch_alone_takes_the_sum_of_its_steps_and_pieces_wait_for_servers() -> None:
    one = [Source(0.0, 10.0, waiting=10.0)]
    assert simulate(one, {"carry": 1, "read": 2}, lambda _: STEPS, until=math.inf).batches[0].ended == 6.0
    assert simulate(one, {"carry": 1, "read": 1}, lambda _: STEPS, until=math.inf).batches[0].ended == 9.0


def test_what_a_batch_leaves_behind_starts_the_next_at_once_and_the_rest_waits_until_it_is_due() -> None:
    run = simulate([Source(1.0, 10.0, waiting=15.0, every=60.0)], {"carry": 1, "read": 2}, lambda _: STEPS, until=70.0)
    assert [(b.began, b.size, b.left) for b in run.batches] == [
        (0.0, 10.0, 5.0),
        (6.0, 10.0, 1.0),
        (12.0, 7.0, 0.0),
        (60.0, 10.0, 38.0),
    ]


def test_streams_that_share_servers_wait_for_each_other_and_their_landings_add_up() -> None:
    two = [Source(0.0, 10.0, waiting=10.0)] * 2
    run = simulate(two, {"carry": 2, "read": 2}, lambda _: STEPS, until=math.inf)
    assert [b.ended for b in run.batches] == [6.0, 9.0]
    assert run.landed == 20.0
    assert run.busy == {"carry": 6.0, "read": 12.0}


def test_a_stream_that_gets_more_than_its_chain_carries_does_not_keep_up() -> None:
    def kept(rate: float) -> bool:
        sources = [Source(rate, 10.0, every=1.0)]
        return keeps_up(simulate(sources, {"carry": 1, "read": 2}, lambda _: STEPS, until=600.0), sources)

    assert (kept(1.0), kept(2.0)) == (True, False)


def test_the_measured_growth_comes_out_and_more_readers_make_a_chain_faster_up_to_its_one_process() -> None:
    measured = found()
    assert max(abs(off) for row in reproduced(measured) for off in row.off) <= 0.15
    rates = [chain_rate(measured, Form(1 << 16, readers, 4e9)) for readers in (2, 8, 64)]
    assert rates == sorted(rates)
    bound = sum(s.per_gib.wall for name, s in measured.steps.items() if name not in ("read", "stitch"))
    assert rates[-1] < (1 << 30) / bound
    assert batch_seconds(measured, Form(1 << 10, 2, 1e9), 1e9) > batch_seconds(measured, Form(1 << 16, 2, 1e9), 1e9)


def slower(*path: str, by: float = 1.5) -> Callable[[Any], None]:
    def change(parts: Any) -> None:
        row = parts
        for name in path[:-1]:
            row = row[name]
        row[path[-1]] *= by

    return change


WARM = ("side-by-side", "sticky", "ours: end to end, warm", "steps")


@pytest.mark.parametrize(
    "path",
    [
        (*WARM, "Spark", "wall_s"),
        (*WARM, "Spark", "cpu_s"),
        (*WARM, "publish", "wall_s"),
        ("growth", "rows", "16 GiB", "cpu_s"),
        ("grown-table", "steps", "fresh", "read", "wall_s"),
        ("grown-table", "steps", "fresh", "whole", "wall_s"),
    ],
    ids="/".join,
)
def test_constants_that_somebody_has_changed_let_nothing_follow(path: tuple[str, ...]) -> None:
    with pytest.raises(ValueError, match="measured"):
        reproduced(found(slower(*path, by=3.0)))


def test_a_figure_that_its_own_rounds_contradict_is_refused() -> None:
    with pytest.raises(ValueError, match=r"'16 GiB' says .* its rounds say"):
        found(slower("growth", "rows", "16 GiB", "wall_s"))


def test_brokers_are_three_at_least_and_bought_for_twice_what_they_carry() -> None:
    assert (brokers(1e6), brokers(1e9), brokers(2e9)) == (3, 6, 12)
