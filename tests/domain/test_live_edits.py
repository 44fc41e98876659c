"""Whoever edits a stream's YAML while it runs: the next plan counts with it, one that is under way keeps what it was
planned with, and each plan says which definition was its own.
"""

from __future__ import annotations

from tests.builders.records import metadata
from tests.builders.streams import make_stream
from tests.fakes.batch import Bench, Carrying, FakeEdges
from tests.fakes.fake_log import FakeLog
from wavestitch.batch.plan import PlanRequest
from wavestitch.batch.results import Planned
from wavestitch.batch.run import RunOptions, Silent, run_batch
from wavestitch.batch.steps import step_plan
from wavestitch.contracts.chunk_header import encode_headers
from wavestitch.contracts.chunk_proof import NO_PROOF
from wavestitch.contracts.plan import plan_from_json
from wavestitch.contracts.quantities import Partition
from wavestitch.contracts.reasons import Reason

NOW_MS = 1_767_614_400_000


def send(bench: Bench, name: str) -> None:
    """A waveform of one chunk of two bytes, without a proof."""
    meta = metadata(NOW_MS).decode()
    said = encode_headers(waveform_id=name, seq=0, count=1, meta=meta, value=b"\1\0", digest=None, proof=NO_PROOF)
    bench.log.append(Partition(0), NOW_MS, name.encode(), said, b"\1\0")


def test_an_edit_counts_from_the_next_plan_on_and_a_plan_that_was_made_keeps_its_definition() -> None:
    bench = Bench(FakeLog("waves", 1))
    lax, strict = make_stream(), make_stream(limits={"max_waveform_bytes": 1})
    send(bench, "w0")
    before = FakeEdges(bench, lax, NOW_MS, Carrying())
    planned = step_plan(before, PlanRequest())
    assert isinstance(planned, Planned)

    after = FakeEdges(bench, strict, NOW_MS, Carrying())
    kept = after.plan(planned.plan_id)
    assert (kept.stream, kept.stream.digest()) == (lax, lax.digest())
    run_batch(after, RunOptions(plan_id=planned.plan_id), watcher=Silent())
    assert [row.waveform_id for _, row in bench.tables.rows] == ["w0"]

    send(bench, "w1")
    run_batch(after, RunOptions(), watcher=Silent())
    assert [row.waveform_id for _, row in bench.tables.rows] == ["w0"]
    assert bench.tables.head().held.counts == {Reason.TOO_LARGE.value: 1}
    last = bench.tables.head()
    assert last is not None
    assert plan_from_json(after.plan(last.plan_id).to_json()).stream == strict
