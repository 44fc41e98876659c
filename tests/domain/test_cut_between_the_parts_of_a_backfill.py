"""A backfill in several batches whose log an election cuts off while it is at work: what lay across its cuts is named,
and nothing that is published."""

from __future__ import annotations

import itertools
from functools import partial

import pytest

from tests.builders.ranges import span
from tests.builders.sending import send_chunk
from tests.builders.streams import make_stream
from tests.domain.backfill_rig import DAY, SKEW, START_MS, backfill, days, ingest, published, send
from tests.fakes.batch import Bench
from tests.fakes.fake_log import FakeLog
from tests.fakes.faults import Steps
from wavestitch.contracts.errors import DataLost
from wavestitch.contracts.quantities import Offset, Partition
from wavestitch.contracts.stream import Stream

IN_SMALL_BATCHES = make_stream(limits={**SKEW, "max_batch_records": 2}, reading={"min_slice": 1, "workers": 2})


@pytest.mark.parametrize("anew", [0, 1, 4])
def test_what_an_election_cuts_off_of_a_waveform_across_the_cuts_of_a_backfill_is_named(anew: int) -> None:
    """Whenever that is, once it was read: by this backfill, until that plans what it reads together, else by the next
    one."""
    stream = IN_SMALL_BATCHES
    named: list[bool] = []
    for looks in itertools.count():
        bench = one_across_the_cuts()
        run = Steps(partial(backfill, bench, stream, days(1, 2)))
        if not all(run.advance() for _ in range(looks)):
            break
        was_noted = any(block[1] > 3 for row in bench.tables.history for block in row.starts.get("0", ()))
        bench.log.truncate(Partition(0), Offset(3))
        for n in range(anew):
            send(bench, f"new{n}", day=9)
        run.finish()
        if was_noted and run.error is None and "across" not in published(bench) and run.result.incomplete:
            named.append(span(0, 3, 4) in run.result.lost)
            assert named[-1] or was_read_late(bench, stream), (looks, run.at, run.result)
    assert any(named)


def test_what_an_ingest_has_published_meanwhile_is_not_named_as_lost() -> None:
    """Whenever it commits, and the log is cut off right after that."""
    ends: set[str] = set()
    for looks in itertools.count():
        bench = one_across_the_cuts()
        run = Steps(partial(backfill, bench, IN_SMALL_BATCHES, days(1, 2)))
        if not all(run.advance() for _ in range(looks)):
            break
        ingest(bench)
        assert sorted(published(bench)) == ["a", "across", "b"]
        bench.log.truncate(Partition(0), Offset(0))
        for name in ("new", "newer"):
            send(bench, name, day=9)
        run.finish()
        ends.add(type(run.error).__name__)
        assert run.error is not None or not run.result.lost, (looks, run.at, run.result)
    assert "Transient" in ends


def one_across_the_cuts() -> Bench:
    """Its chunks are in the first and the second batch of a backfill."""
    bench = Bench(FakeLog("waves", 1))
    ingest(bench)
    begins = START_MS - 999 * DAY
    send_chunk(bench.log, "across", 0, at_ms=START_MS, start_ms=begins, count=2)
    for name in ("a", "b"):
        send(bench, name, day=1)
    send(bench, "across", day=1, chunks=2, first=1)
    return bench


def was_read_late(bench: Bench, stream: Stream) -> bool:
    """Whether the next backfill names it, or the cut, which bars it."""
    try:
        return span(0, 3, 4) in backfill(bench, stream, days(1, 2)).lost
    except DataLost as lost:
        return any(start <= 3 < end for start, end in lost.facts.get("offsets", ())) or "cut off" in str(lost)
