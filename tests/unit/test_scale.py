"""Queues of batches: what waits for what, and what is refused. Nothing here is timed."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from typing import Any

import pytest

from benchmarks.scale.__main__ import read_committed
from benchmarks.scale.capacity import brokers, keeps_up, rounds_of_airflow
from benchmarks.scale.chains import Form, batch_seconds, chain_rate, reproduced
from benchmarks.scale.constants import SUBMIT, Measured, read_constants
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


def test_a_piece_that_waits_for_its_pool_keeps_nobody_from_the_station() -> None:
    steps = [Work("slots", 1, 1.0), Work("slots", 1, 4.0, pool="sparks"), Work("slots", 1, 1.0)]
    three = [Source(0.0, 10.0, waiting=10.0)] * 3
    run = simulate(three, {"slots": 2, "sparks": 1}, lambda _: steps, until=math.inf)
    assert [b.ended for b in run.batches] == [6.0, 10.0, 14.0]
    assert run.busy == {"slots": 18.0, "sparks": 12.0}
    wide = simulate(three, {"slots": 2, "sparks": 2}, lambda _: steps, until=math.inf)
    assert [b.ended for b in wide.batches] == [7.0, 8.0, 10.0]


def test_streams_in_airflow_wait_for_the_pool_of_spark_however_many_tasks_there_may_be() -> None:
    measured = found()

    def last(slots: int, sparks: int) -> float:
        run = rounds_of_airflow(measured, SUBMIT, streams=40, every=300.0, slots=slots, sparks=sparks)
        assert run.in_time is (run.last < 300.0)
        return run.last

    of_one = 40 * measured.in_airflow[SUBMIT]["stitch"]
    assert of_one <= last(200, 1) <= last(8, 1)
    assert of_one / 4 <= last(8, 4) < last(8, 1) / 3
    assert last(8, 8) < last(8, 4)


def test_a_stream_that_gets_more_than_its_chain_carries_does_not_keep_up() -> None:
    def kept(rate: float) -> bool:
        sources = [Source(rate, 10.0, every=1.0)]
        return keeps_up(simulate(sources, {"carry": 1, "read": 2}, lambda _: STEPS, until=600.0), sources)

    assert (kept(1.0), kept(2.0)) == (True, False)


def test_the_measured_growth_comes_out_and_more_readers_make_a_chain_faster_up_to_its_one_process() -> None:
    measured = found()
    assert max(abs(off) for row in reproduced(measured) if row.held for off in row.off) <= 0.15
    rates = [chain_rate(measured, Form(1 << 16, servers, servers, 4e9)) for servers in (2, 8, 64)]
    assert rates == sorted(rates)
    bound = sum(s.per_gib.wall for name, s in measured.steps.items() if name not in ("read", "stitch"))
    assert rates[-1] < (1 << 30) / bound
    small, large = (batch_seconds(measured, Form(chunk, 2, 2, 1e9), 1e9) for chunk in (1 << 10, 1 << 16))
    assert small > large


def test_readers_without_cores_of_sparks_are_no_faster_than_these() -> None:
    measured = found()
    few, more = (chain_rate(measured, Form(1 << 16, 16, cores, 4e9)) for cores in (2, 16))
    stitch = measured.steps["stitch"].per_gib.wall * 2
    assert few < (1 << 30) / (stitch / 2) < more


def test_of_two_machines_one_twice_as_slow_comes_out_as_well_as_the_other() -> None:
    def slow(parts: Any) -> None:
        for row in parts["growth"]["rows"].values():
            row["wall_s_rounds"] = [2 * wall for wall in row["wall_s_rounds"]]
            row["mb_s"] /= 2
            for cost in (row, *row["steps"].values()):
                cost["wall_s"], cost["cpu_s"] = 2 * cost["wall_s"], 2 * cost["cpu_s"]

    for as_measured, slower in zip(reproduced(found()), reproduced(found(slow)), strict=True):
        assert slower.off == pytest.approx(as_measured.off)


def test_without_a_row_that_no_constant_is_of_nothing_follows() -> None:
    with pytest.raises(ValueError, match="no batch of the measured growth is held"):
        reproduced(found(lambda parts: parts["growth"].update(held_out=[])))


def found_names(kind: str) -> list[str]:
    return list(read_committed()[0]["parts"]["growth"][kind])


def slower(*path: str, by: float = 1.5) -> Callable[[Any], None]:
    def change(parts: Any) -> None:
        row = parts
        for name in path[:-1]:
            row = row[name]
        row[path[-1]] *= by

    return change


TINY, SMALL = (("growth", "rows", name) for name in found_names("fitted"))
HELD = ("growth", "rows", found_names("held_out")[-1])


@pytest.mark.parametrize(
    "path",
    [
        (*SMALL, "steps", "Spark", "wall_s"),
        (*SMALL, "steps", "Spark", "cpu_s"),
        (*SMALL, "steps", "read", "wall_s"),
        (*SMALL, "cpu_s"),
        (*TINY, "cpu_s"),
        (*TINY, "steps", "Spark", "wall_s"),
        (*HELD, "cpu_s"),
    ],
    ids="/".join,
)
def test_constants_that_somebody_has_changed_let_nothing_follow(path: tuple[str, ...]) -> None:
    with pytest.raises(ValueError, match="measured"):
        reproduced(found(slower(*path, by=3.0)))


def test_a_figure_that_its_own_rounds_contradict_is_refused() -> None:
    with pytest.raises(ValueError, match=r"'4 GiB' says .* its rounds say"):
        found(slower("growth", "rows", "4 GiB", "wall_s"))


def test_brokers_are_three_at_least_and_bought_for_twice_what_they_carry() -> None:
    assert (brokers(1e6), brokers(1e9), brokers(2e9)) == (3, 6, 12)
