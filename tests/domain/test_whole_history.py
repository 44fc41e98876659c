"""The history is whole wherever it is used: a crash right after a commit leaves no gap in what people see."""

from __future__ import annotations

from tests.builders.records import cut, metadata
from tests.builders.streams import make_stream
from tests.fakes.batch import Bench, Carrying, FakeEdges, carry_through, run_batch
from tests.fakes.fake_log import FakeLog
from tests.fakes.faults import Fault, Killed, Steps
from wavestitch.batch.history import find_committed, history_of, missing_rows, repair_history, whole_history
from wavestitch.batch.plan import PlanRequest
from wavestitch.batch.run import RunOptions, Silent
from wavestitch.batch.run import run_batch as run_edges
from wavestitch.batch.steps import step_plan
from wavestitch.contracts.plan import PlanKind, Scope
from wavestitch.contracts.quantities import Partition

CLOCK_MS = 1_700_000_000_000
STREAM = make_stream("waves", group="waves-batches")
ALL_TIME = PlanRequest(PlanKind.BACKFILL, scope=Scope(0, 1 << 62))


def bench_with(*names: str) -> Bench:
    bench = Bench(FakeLog(partitions=1))
    send(bench, *names)
    return bench


def send(bench: Bench, *names: str) -> None:
    for name in names:
        for one in cut(name, [b"ab", b"cd"], meta=metadata(CLOCK_MS), live=False, digest=None, keyed=True):
            bench.log.append(Partition(0), CLOCK_MS, *one)


def edges(bench: Bench) -> FakeEdges:
    return FakeEdges(bench, STREAM, CLOCK_MS, Carrying())


def dies_right_after_its_commit(bench: Bench) -> str:
    """An ingest; returns its plan."""
    run = Steps(lambda: run_batch(bench, STREAM, PlanRequest(), clock_ms=CLOCK_MS))
    while run.at != "tables.commit" or not bench.plans:  # the first head's commit comes before the plan
        assert run.advance()
    run.advance(Fault.KILL_AFTER)
    assert isinstance(run.error, Killed)
    return list(bench.plans)[-1]


def recorded(bench: Bench) -> set[int]:
    return {row.sequence for row in bench.tables.history}


def test_who_looks_sees_the_row_that_a_crash_prevented_and_writes_nothing() -> None:
    bench = bench_with("w1")
    plan_id = dies_right_after_its_commit(bench)
    before = list(bench.tables.history)
    newest, first = whole_history(history_of(edges(bench)))
    assert (newest.plan_id, newest.waveforms["published"], newest.identity_balances) == (plan_id, 1, True)
    assert first.kind == "first"
    assert [r.plan_id for r in whole_history(history_of(edges(bench)), plan_id=plan_id)] == [plan_id]
    assert whole_history(history_of(edges(bench)), since=2) == [newest]
    assert bench.tables.history == before


def test_a_batch_that_is_carried_through_again_after_it_knows_its_figures() -> None:
    bench = bench_with("w1")
    plan_id = dies_right_after_its_commit(bench)
    found = find_committed(history_of(edges(bench)), plan_id)
    assert found is not None
    assert found.row.waveforms["published"] == 1


def test_a_commit_repairs_what_a_crash_between_its_plan_and_itself_has_left() -> None:
    bench = bench_with("w1")
    run_batch(bench, STREAM, PlanRequest(), clock_ms=CLOCK_MS)
    backfill = step_plan(edges(bench), ALL_TIME)
    send(bench, "w2")
    dies_right_after_its_commit(bench)
    assert recorded(bench) == {1, 2}
    (planned,) = [p for p in bench.plans.values() if p.plan_id == backfill.plan_id]  # type: ignore[union-attr]
    carry_through(bench, planned, Carrying())
    assert recorded(bench) == {1, 2, 3, 4}
    died = next(r for r in bench.tables.history if r.sequence == 3)
    assert died.waveforms["published"] == 1, "the row that it had kept, not the little that the head tells"


def test_a_lost_row_is_told_by_the_head_and_repaired_once() -> None:
    bench = bench_with("w1")
    run_edges(edges(bench), RunOptions(), watcher=Silent())
    bench.tables.history.clear()
    bench.files.kept.clear()
    history = history_of(edges(bench))
    assert [(r.sequence, r.kind) for r in whole_history(history)] == [(2, "ingest"), (1, "first")]
    assert repair_history(history) == 2
    assert repair_history(history) == 0
    assert [(r.sequence, r.kind) for r in bench.tables.history] == [(1, "first"), (2, "ingest")]


def test_a_history_whose_head_was_expired_is_still_shown() -> None:
    bench = bench_with("w1")
    run_edges(edges(bench), RunOptions(), watcher=Silent())
    send(bench, "w2")
    run_edges(edges(bench), RunOptions(), watcher=Silent())
    bench.tables.expire_head()
    assert 2 in {r.sequence for r in whole_history(history_of(edges(bench)))}


def test_rows_that_miss_from_a_head_on_are_those_of_it_and_of_what_came_after_it() -> None:
    bench = bench_with("w1")
    dies_right_after_its_commit(bench)
    history = history_of(edges(bench))
    first, newest = missing_rows(history)
    assert (first.kind, newest.sequence) == ("first", first.sequence + 1)
    assert missing_rows(history, since=newest.sequence) == [newest]
    assert repair_history(history, since=newest.sequence) == 1
    assert recorded(bench) == {newest.sequence}
    assert missing_rows(history) == [first]
