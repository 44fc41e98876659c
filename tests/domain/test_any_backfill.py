"""Whatever backfills there are, overlapping, repeated, beside ingests and killed anywhere: each waveform once, and the
positions where ingests put them."""

from __future__ import annotations

from functools import partial
from itertools import pairwise
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tests.builders.sending import send_chunk
from tests.builders.streams import make_stream
from tests.domain.effort import effort
from tests.domain.running_machine import LOUD
from tests.fakes.batch import Bench, Carrying, FakeEdges, run_batch
from tests.fakes.fake_log import FakeLog
from tests.fakes.faults import Steps
from wavestitch.batch.backfill import run_backfill
from wavestitch.batch.plan import PlanRequest
from wavestitch.batch.run import RunOptions, Silent
from wavestitch.contracts.plan import Scope
from wavestitch.contracts.stream import Stream

NOW_MS = 1_767_614_400_000
DAY = 86_400_000
BEGAN = NOW_MS - 1000 * DAY
DAYS = 6
Run = tuple[str, int, int, int]


@st.composite
def archives(draw: st.DrawFn) -> tuple[FakeLog, set[str]]:
    """Recordings of six days long ago, their chunks scattered over two partitions, and some sent again."""
    log = FakeLog("waves", 2)
    sizes = draw(st.lists(st.tuples(st.integers(0, DAYS - 1), st.integers(1, 4)), min_size=1, max_size=6))
    chunks = [(n, day, count, seq) for n, (day, count) in enumerate(sizes) for seq in range(count)]
    again = draw(st.lists(st.sampled_from(chunks), max_size=3))
    for to, (n, day, count, seq) in enumerate(draw(st.permutations([*chunks, *again]))):
        start_ms = BEGAN + day * DAY
        send_chunk(log, f"w{n}", seq, at_ms=NOW_MS, start_ms=start_ms, count=count, partition=to % 2)
    return log, {f"w{n}" for n in range(len(sizes))}


def limited(most: int) -> Stream:
    limits = {"max_clock_skew": "36500 d", "max_batch_records": most}
    return make_stream(limits=limits, reading={"min_slice": 1})


def carry(bench: Bench, what: str, first: int, span: int, most: int) -> Any:
    if what == "ingest":
        return run_batch(bench, limited(most), PlanRequest(), clock_ms=NOW_MS)
    start = BEGAN + first * DAY
    scope = Scope(start * 1_000_000, (start + span * DAY) * 1_000_000)
    edges = FakeEdges(bench, limited(most), NOW_MS, Carrying())
    return run_backfill(edges, scope, RunOptions(), watcher=Silent())


def published(bench: Bench) -> list[str]:
    return sorted(row.waveform_id for _, row in bench.tables.rows)


runs = st.tuples(
    st.sampled_from(["ingest", "backfill", "backfill"]),
    st.integers(0, DAYS - 1),
    st.integers(1, DAYS),
    st.sampled_from([1, 2, 3, 5, 1000]),
)
pairs = st.tuples(runs, runs, st.lists(st.integers(0, 1), max_size=80), st.sampled_from([None, None, 0, 1]))


@effort(40)
@given(archives(), st.lists(pairs, max_size=4), runs)
def test_any_backfills_beside_ingests_leave_each_waveform_once_and_the_positions_to_ingests(
    archive: tuple[FakeLog, set[str]], played: list[tuple[Run, Run, list[int], int | None]], last: Run
) -> None:
    log, sent = archive
    bench = Bench(log)
    for first, second, turns, dies in played:
        both = [Steps(partial(carry, bench, *run), f"{run[0]} {n}") for n, run in enumerate((first, second))]
        for turn in turns:
            both[turn].advance()
        if dies is not None:
            both[dies].kill()
        for run in both:
            run.finish()
            assert run.error is None or isinstance(run.error, LOUD), repr(run.error)
    done = carry(bench, "backfill", 0, DAYS, last[-1])
    assert published(bench) == sorted(sent)
    assert (done.incomplete, done.lost) == ((), ())
    heads = bench.tables.snapshots
    assert all(a.positions == b.positions for a, b in pairwise(heads) if b.kind == "backfill")
