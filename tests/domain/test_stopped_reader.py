"""A reader stopped at its budget: every way out that the refusal names leads out, for every kind of plan (I5)."""

from __future__ import annotations

import re

import pytest

from tests.builders.ranges import span
from tests.builders.sending import send_chunk
from tests.builders.streams import make_stream
from tests.fakes.batch import Bench, Carrying, run_batch
from tests.fakes.fake_log import FakeLog
from wavestitch.batch.plan import NothingToDo, PlanRequest
from wavestitch.contracts.batch_size import ReaderStop
from wavestitch.contracts.errors import Refused
from wavestitch.contracts.plan import PlanKind, Scope
from wavestitch.contracts.quantities import Partition
from wavestitch.contracts.stream import Stream

MS = 1_767_614_400_000
LIMIT = 1 << 28
RANGE = span(0, 0, 40)
REQUESTS = {
    PlanKind.BACKFILL: PlanRequest(PlanKind.BACKFILL, Scope(MS * 1_000_000, (MS + 1) * 1_000_000)),
    PlanKind.MANUAL: PlanRequest(PlanKind.MANUAL, ranges=(RANGE,)),
    PlanKind.INGEST: PlanRequest(),
}


def stream(size: int = LIMIT, records: int = 1_000_000) -> Stream:
    limits = {"max_batch_bytes": size, "max_batch_records": records}
    return make_stream(limits=limits)


@pytest.fixture
def bench() -> Bench:
    made = Bench(FakeLog("waves", 1))
    for n in range(40):
        send_chunk(made.log, f"w{n}", 0, b"\1\0" * 100, at_ms=MS)
    return made


def run(bench: Bench, kind: PlanKind, definition: Stream) -> object:
    return run_batch(bench, definition, REQUESTS[kind], clock_ms=MS, how=Carrying())


def stopped(bench: Bench, kind: PlanKind, limit: int = LIMIT) -> None:
    """Ten of forty offsets took all of it."""
    head = bench.tables.head()
    stands = {} if head is None else {p: at.next_offset for p, at in head.positions.items()}
    bench.stops.append(ReaderStop("x" * 32, kind.value, (RANGE,), limit, 0, 10, 40, limit + 1, 40, stands))


@pytest.mark.parametrize("kind", [PlanKind.BACKFILL, PlanKind.MANUAL])
def test_the_limits_that_the_refusal_names_are_enough(bench: Bench, kind: PlanKind) -> None:
    run(bench, PlanKind.INGEST, stream())
    stopped(bench, kind)
    with pytest.raises(Refused, match="covers 40 offsets") as refused:
        run(bench, kind, stream(records=39))
    named = dict(re.findall(r"limits\.(max_batch_\w+) to (\d+)", refused.value.message))
    assert set(named) == {"max_batch_bytes", "max_batch_records"}
    done = run(bench, kind, stream(int(named["max_batch_bytes"]), int(named["max_batch_records"])))
    assert not isinstance(done, NothingToDo)


def test_a_manual_plan_of_fewer_offsets_goes_through(bench: Bench) -> None:
    run(bench, PlanKind.INGEST, stream())
    stopped(bench, PlanKind.MANUAL)
    with pytest.raises(Refused, match="name fewer offsets"):
        run(bench, PlanKind.MANUAL, stream())
    fewer = PlanRequest(PlanKind.MANUAL, ranges=(span(0, 0, 8),))
    assert not isinstance(run_batch(bench, stream(), fewer, clock_ms=MS, how=Carrying()), NothingToDo)


@pytest.mark.parametrize("kind", list(REQUESTS))
@pytest.mark.parametrize("other", list(REQUESTS))
def test_a_stop_says_nothing_of_another_kind(bench: Bench, kind: PlanKind, other: PlanKind) -> None:
    run(bench, PlanKind.INGEST, stream())
    if kind is PlanKind.INGEST:
        bench.log.append(Partition(0), MS, b"junk", [], b"x")
    stopped(bench, other)
    if kind is other and kind is not PlanKind.INGEST:
        with pytest.raises(Refused):
            run(bench, kind, stream())
        return
    assert not isinstance(run(bench, kind, stream()), NothingToDo)
