"""Whoever writes the group looks right before: what others did to group and topic meanwhile stands, at every moment."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.builders.records import cut, metadata
from tests.builders.streams import make_stream
from tests.fakes.batch import Bench, Carrying, FakeEdges, run_batch
from tests.fakes.fake_log import FakeLog
from tests.fakes.faults import Steps
from wavestitch.batch.commit_offsets import commit_offsets
from wavestitch.batch.plan import PlanRequest
from wavestitch.batch.rewind import Target, apply_rewind, plan_rewind
from wavestitch.batch.steps import step_plan
from wavestitch.contracts.position import GroupOffset, HeadKind, is_ours
from wavestitch.contracts.quantities import Offset, Partition

CLOCK_MS = 1_700_000_000_000
ANOTHER_TABLE = "6d0f4f0e-0000-4000-8000-00000000beef"
STREAM = make_stream("waves", group="waves-batches")
TAKEN_OVER = {HeadKind.FIRST, HeadKind.ADOPTED, HeadKind.REWIND}


def make_bench() -> Bench:
    bench = Bench(FakeLog(partitions=2))
    for n in range(6):
        for one in cut(f"w{n}", [bytes([n, 0])], meta=metadata(CLOCK_MS)):
            bench.log.append(Partition(n % 2), CLOCK_MS, *one)
    return bench


def with_a_batch() -> Bench:
    bench = make_bench()
    run_batch(bench, STREAM, PlanRequest(), clock_ms=CLOCK_MS)
    return bench


def reset_before() -> Bench:
    bench = with_a_batch()
    bench.log.reset_group(Partition(0), Offset(1))
    return bench


def expired_before() -> Bench:
    bench = with_a_batch()
    bench.log.expire_group(Partition(0))
    return bench


def plans(bench: Bench) -> Any:
    return step_plan(FakeEdges(bench, STREAM, CLOCK_MS, Carrying()), PlanRequest())


def rewinds(target: Target) -> Callable[[Bench], Any]:
    def call(bench: Bench) -> Any:
        edges: dict[str, Any] = {"log": bench.log, "tables": bench.tables}
        found = plan_rewind(STREAM, target, **edges, who="a test", why="to see")
        return apply_rewind(STREAM, found, accept_skip=True, **edges)

    return call


WRITERS: dict[str, tuple[Callable[[], Bench], Callable[[Bench], Any]]] = {
    "a first plan": (make_bench, plans),
    "a plan that takes a reset over": (reset_before, plans),
    "a plan that shows an expired offset again": (expired_before, plans),
    "a rewind": (with_a_batch, rewinds(Target("earliest"))),
    "a rewind of one partition": (with_a_batch, rewinds(Target(offsets={Partition(0): Offset(0)}))),
    "a rewind to where somebody reset the group": (reset_before, rewinds(Target("group"))),
    "committing offsets": (
        with_a_batch,
        lambda bench: commit_offsets(STREAM, log=bench.log, tables=bench.tables),
    ),
}


def every_moment(name: str) -> Iterator[tuple[Bench, Steps]]:
    """The writer, stopped before each of its effects."""
    make, write = WRITERS[name]
    moment = 0
    while True:
        bench = make()
        run = Steps(lambda bench=bench: write(bench))  # type: ignore[misc]
        if not all(run.advance() for _ in range(moment)):
            break
        yield bench, run
        moment += 1
    assert "log.commit_group" in run.trace, "it never came to the group"


@pytest.mark.parametrize("name", WRITERS)
def test_a_reset_stays_until_a_later_head_takes_it_over(name: str) -> None:
    for bench, run in every_moment(name):
        nobody_can = run.at == "log.commit_group" or (run.at == "log.topic" and run.trace[-2] == "log.group_offsets")
        bench.log.reset_group(Partition(0), Offset(2))
        heads = len(bench.tables.snapshots)
        run.finish()
        since = {h.kind for h in bench.tables.snapshots[heads:]}
        stays = not is_ours(bench.log.group[Partition(0)].metadata)
        assert nobody_can or stays or since & TAKEN_OVER, f"written over at {run.trace}"


@pytest.mark.parametrize("name", WRITERS)
def test_what_another_deployment_wrote_stays_until_a_rewind_settles_it(name: str) -> None:
    for bench, run in every_moment(name):
        nobody_can = run.at == "log.commit_group" or (run.at == "log.topic" and run.trace[-2] == "log.group_offsets")
        # To go on where the group stands, whoever wrote that, is what this one is asked for.
        settles_it = "where somebody reset" in name and "log.group_offsets" not in run.trace[:-1]
        theirs = GroupOffset(Offset(2), f"wavestitch/2 {ANOTHER_TABLE} g1 s1")
        bench.log.group[Partition(0)] = theirs
        run.finish()
        assert nobody_can or settles_it or bench.log.group[Partition(0)] == theirs, f"written over at {run.trace}"


@pytest.mark.parametrize("name", WRITERS)
def test_no_offset_is_written_on_a_topic_that_was_made_anew(name: str) -> None:
    for bench, run in every_moment(name):
        if run.at == "log.commit_group":
            continue  # who is about to write cannot be fenced, by anyone
        new = bench.log.incarnation + 1
        bench.log.recreate(2)
        run.finish()
        head = bench.tables.snapshots[-1] if bench.tables.snapshots else None
        knows = head is not None and head.topic_id == f"topic-{new}"
        assert bench.log.group == {} or knows, f"written at {run.trace}"
