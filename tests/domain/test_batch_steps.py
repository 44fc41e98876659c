"""The steps of a batch over memory edges: what each asks first, and what comes between two of them."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from tests.builders.records import cut, letter, metadata
from tests.builders.streams import make_stream
from tests.fakes.batch import Bench, Carrying, FakeEdges, carry_through, run_batch
from tests.fakes.fake_log import FakeLog
from tests.fakes.faults import Fault, Steps
from wavestitch.batch.plan import PlanRequest
from wavestitch.batch.results import (
    BatchDone,
    Finished,
    Planned,
    Published,
    read_tasks,
    result_from_json,
    result_to_json,
)
from wavestitch.batch.run import planned_to_json
from wavestitch.batch.steps import step_commit_offsets, step_plan
from wavestitch.contracts.errors import Fenced, StateUnknown, Transient
from wavestitch.contracts.quantities import Offset, Partition

CLOCK_MS = 1_700_000_000_000
STREAM = make_stream("waves", group="waves-batches")
META = metadata(CLOCK_MS)


def bench_with_a_waveform() -> Bench:
    bench = Bench(FakeLog(partitions=1))
    for one in cut("w1", [b"ab", b"cd"], meta=META, live=False, digest=None, keyed=True):
        bench.log.append(Partition(0), CLOCK_MS, *one)
    return bench


def planned(bench: Bench) -> Planned:
    found = step_plan(FakeEdges(bench, STREAM, CLOCK_MS, Carrying()), PlanRequest())
    assert isinstance(found, Planned)
    return found


def test_a_committed_plan_ends_at_once_and_reads_nothing_also_when_retention_has_passed() -> None:
    bench = bench_with_a_waveform()
    run_batch(bench, STREAM, PlanRequest(), clock_ms=CLOCK_MS)
    (plan,) = bench.plans.values()
    bench.log.retain_from(Partition(0), Offset(2))
    again = Steps(lambda: carry_through(bench, plan, Carrying()))
    again.finish()
    assert again.error is None
    assert isinstance(again.result, BatchDone)
    assert isinstance(again.result.published, Finished)
    assert "log.read" not in again.trace
    assert "log.ends" not in again.trace


@pytest.mark.parametrize("compression", ["producer", "gzip", "snappy", "lz4", "zstd", "uncompressed"])
@pytest.mark.parametrize("trusted", [False, True])
def test_a_plan_remarks_once_that_the_topic_takes_compressed_batches_unless_its_producers_are_trusted(
    compression: str, trusted: bool
) -> None:
    bench = bench_with_a_waveform()
    bench.log.compression = compression
    stream = STREAM.model_copy(update={"trusted_producers": trusted})
    found = step_plan(FakeEdges(bench, stream, CLOCK_MS, Carrying()), PlanRequest())
    assert isinstance(found, Planned)
    (kept,) = bench.plans.values()
    assert list(found.remarks) == planned_to_json(found)["remarks"] == list(kept.remarks)
    assert len(found.remarks) == (not trusted and compression != "uncompressed")
    assert all(f"compression.type={compression}" in remark for remark in found.remarks)
    assert result_from_json(json.loads(json.dumps(result_to_json(found))), Planned) == found


@pytest.mark.parametrize(
    ("fault", "times", "told", "said"),
    [
        (Fault.FAIL_BEFORE, 3, StateUnknown, r"^tables\.commit: injected"),
        (Fault.CONFLICT, 10, Transient, "10 times the head changed"),
    ],
)
def test_a_commit_that_never_comes_through_ends_with_what_was_said_of_it(
    fault: Fault, times: int, told: type[Exception], said: str
) -> None:
    bench = bench_with_a_waveform()
    plan = bench.plans[planned(bench).plan_id]
    run = Steps(lambda: carry_through(bench, plan, Carrying()))
    while run.advance(fault if run.at == "tables.commit" else None):
        pass
    assert run.trace.count("tables.commit") == times
    with pytest.raises(told, match=said):
        raise run.error or AssertionError("it came through")


def test_parking_a_batch_that_passed_keeps_its_reason() -> None:
    bench = bench_with_a_waveform()
    run_batch(bench, STREAM, PlanRequest(), clock_ms=CLOCK_MS, how=Carrying(park=True))
    assert bench.tables.rows == []
    assert "gate: park; park" in bench.tables.history[-1].note


def test_a_plan_whose_head_was_put_back_and_committed_again_is_fenced() -> None:
    """The same number, and another snapshot: what the plan stood on is not what stands there now."""
    bench = bench_with_a_waveform()
    plan = bench.plans[planned(bench).plan_id]
    head = bench.tables.snapshots[-1]
    bench.tables.snapshots[-1] = replace(head, snapshot_id=(head.snapshot_id or 0) + 999)
    with pytest.raises(Fenced, match="has left the table's history"):
        carry_through(bench, plan, Carrying())
    assert bench.tables.rows == []


def test_a_topic_that_is_made_anew_while_offsets_are_committed_is_left_alone() -> None:
    for moment in range(30):
        bench = bench_with_a_waveform()
        run_batch(bench, STREAM, PlanRequest(), clock_ms=CLOCK_MS)
        edges = FakeEdges(bench, STREAM, CLOCK_MS, Carrying())
        (plan_id,) = bench.plans
        run = Steps(lambda edges=edges, plan_id=plan_id: step_commit_offsets(edges, plan_id))  # type: ignore[misc]
        if not all(run.advance() for _ in range(moment)) or run.at == "log.commit_group":
            break  # who is about to write cannot be fenced, by anyone
        bench.log.recreate(1)
        run.finish()
        assert bench.log.group == {}, f"at {moment}, {run.trace}"
    else:
        raise AssertionError("it never came to the group")
    assert moment > 2


def test_a_digest_that_only_a_repeat_carries_is_checked() -> None:
    bench = Bench(FakeLog(partitions=1))
    bench.log.append(Partition(0), CLOCK_MS, *letter("w1", 0, b"ab", meta=META, count=1))
    (wrong,) = cut("w1", [b"ab"], meta=META, live=False, digest="0" * 32, keyed=True)
    bench.log.append(Partition(0), CLOCK_MS, *wrong)
    run_batch(bench, STREAM, PlanRequest(), clock_ms=CLOCK_MS)
    assert bench.tables.rows == []
    assert {row.held.reason.value for row in bench.tables.held_rows()} == {"digest_mismatch"}


def test_units_have_a_reader_each_where_they_are_worth_its_start() -> None:
    slices = (("a", "b"), ("c",), ("d",))
    small = Planned("p", "ingest", "waves", 1, slices, 3, 32 << 20, ((0, 1, 2),), {Partition(0): "x"}, 0)
    two = [{"units": [0, 2], "slices": "a, b; d"}, {"units": [1], "slices": "c"}]
    assert read_tasks(replace(small, estimated_bytes=(32 << 20) - 1)) == [{"units": [0, 1, 2], "slices": "a, b; c; d"}]
    assert read_tasks(small) == read_tasks(replace(small, estimated_bytes=0, records=20_000)) == two
    assert [t["units"] for t in read_tasks(replace(small, records=1_000_000))] == [[0], [1], [2]]


def test_a_batch_that_reads_nothing_is_not_nothing_to_do() -> None:
    some = Planned("p", "ingest", "waves", 1, (("a", "b"), ("c",)), 3, 4, ((0, 1, 2),), {Partition(0): "x"}, 0)
    nothing = [{"units": [], "slices": "nothing to read"}]
    assert read_tasks(replace(some, slices=())) == nothing
    assert read_tasks(Finished("p", Published("p", 1, {}, {}, {}, True))) == nothing
