"""What a plan covers, its inputs made as they come in life: by producers, open transactions, late records."""

from __future__ import annotations

from typing import Any

import pytest

from tests.builders.ranges import span
from tests.builders.sending import send_chunk
from tests.builders.streams import make_stream
from tests.fakes.batch import Bench, run_batch
from tests.fakes.fake_log import FakeLog
from tests.fakes.faults import Steps
from tests.fakes.kept_partition import Visibility
from wavestitch.batch.plan import NothingToDo, PlanRequest
from wavestitch.contracts.errors import Fenced, Transient
from wavestitch.contracts.plan import PlanKind, Scope
from wavestitch.contracts.quantities import Offset, Partition

START_MS = 1_767_614_400_000
STREAM = make_stream(search_margin=60)
MINUTE = 60_000


def send(
    bench: Bench, waveform_id: str, *, at_ms: int = 0, start_ms: int = 0, seen: Visibility = Visibility.COMMITTED
) -> None:
    send_chunk(bench.log, waveform_id, at_ms=START_MS + at_ms, start_ms=START_MS + start_ms, seen=seen)


def published(bench: Bench) -> set[str]:
    return {row.waveform_id for _, row in bench.tables.rows}


def test_a_batch_ends_where_an_open_transaction_begins_and_goes_on_when_it_has_ended() -> None:
    bench = Bench(FakeLog("waves", 1))
    send(bench, "before")
    send(bench, "inside", seen=Visibility.OPEN)
    send(bench, "behind")
    run_batch(bench, STREAM, PlanRequest(), clock_ms=START_MS)
    assert published(bench) == {"before"}
    plan = list(bench.plans.values())[-1]
    assert [tuple(r) for r in plan.ranges] == [(0, 0, 1)]
    with pytest.raises(Transient, match=r"behind an open transaction \(partition 0: stable end 1, high watermark 3\)"):
        run_batch(bench, STREAM, PlanRequest(), clock_ms=START_MS)
    bench.log.end_transactions(Visibility.COMMITTED, START_MS)
    run_batch(bench, STREAM, PlanRequest(), clock_ms=START_MS)
    assert published(bench) == {"before", "inside", "behind"}


@pytest.mark.parametrize("late_ms", [-MINUTE, 0, 2 * MINUTE, 3 * MINUTE - 1])
def test_a_backfill_finds_what_came_earlier_or_later_by_the_search_margin(late_ms: int) -> None:
    """The interval is about start times; records of its waveforms may bear other times."""
    bench = Bench(FakeLog("waves", 1))
    send(bench, "long before", at_ms=-10 * MINUTE, start_ms=-10 * MINUTE)
    send(bench, "wanted", at_ms=late_ms, start_ms=MINUTE)
    send(bench, "long after", at_ms=10 * MINUTE, start_ms=10 * MINUTE)
    scope = Scope(START_MS * 1_000_000, (START_MS + 2 * MINUTE) * 1_000_000)
    found = run_batch(bench, STREAM, PlanRequest(PlanKind.BACKFILL, scope), clock_ms=START_MS)
    assert not isinstance(found, NothingToDo)
    assert published(bench) == {"wanted"}


@pytest.mark.parametrize("bound", [{}, {"id_partitions": {"hashed_over": [2]}}])
@pytest.mark.parametrize(
    "asked",
    [
        PlanRequest(),
        PlanRequest(only=frozenset({Partition(0)})),
        PlanRequest(only=frozenset({Partition(1)})),
        PlanRequest(until={Partition(1): Offset(1)}),
        PlanRequest(PlanKind.MANUAL, ranges=(span(1, 0, 1),)),
        PlanRequest(PlanKind.BACKFILL, Scope(START_MS * 10**6, (START_MS + 1) * 10**6)),
    ],
)
def test_a_partition_of_the_head_that_a_broker_does_not_show_yet_is_waited_for(
    asked: PlanRequest, bound: dict[str, Any]
) -> None:
    """It is neither left out nor told as one that the topic does not have."""
    bench = Bench(FakeLog("waves", 2))
    stream = make_stream(search_margin=60, **bound)
    run_batch(bench, stream, PlanRequest(), clock_ms=START_MS)
    for p in (0, 1):
        send_chunk(bench.log, f"w{p}", at_ms=START_MS, start_ms=START_MS, partition=p)
    bench.log.lag(9, shows=1)
    before = bench.tables.head()
    with pytest.raises(Transient, match=r"shows no partition 1 of topic waves, .* view of the topic is older .* try"):
        run_batch(bench, stream, asked, clock_ms=START_MS)
    assert bench.tables.head() == before


def ingest(bench: Bench) -> Any:
    return run_batch(bench, STREAM, PlanRequest(), clock_ms=START_MS)


@pytest.mark.parametrize("effects", range(20))
def test_a_partition_that_another_batch_began_meanwhile_stays_in_the_head(effects: int) -> None:
    """Whenever the topic grows beside an ingest, which may have looked at it before, and at the head since."""
    bench = Bench(FakeLog("waves", 1))
    send(bench, "a")
    ingest(bench)
    send(bench, "b")
    late = Steps(lambda: ingest(bench), "late")
    for _ in range(effects):
        late.advance()
    bench.log.add_partition()
    send_chunk(bench.log, "c", at_ms=START_MS, start_ms=START_MS, partition=1)
    ingest(bench)
    begun = bench.tables.snapshots[-1].positions[Partition(1)]
    send(bench, "d")
    late.finish()
    assert late.error is None or isinstance(late.error, Fenced | Transient)
    assert bench.tables.snapshots[-1].positions[Partition(1)] == begun
    ingest(bench)
    assert published(bench) == {"a", "b", "c", "d"}
    assert sum(r.partition == 1 for plan in bench.plans.values() for r in plan.ranges) == 1, "nor is it read again"
