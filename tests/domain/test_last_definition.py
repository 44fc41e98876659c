"""What a definition is held against is what the last few heads of its stream have noted, and nothing before them."""

from __future__ import annotations

from tests.builders.sending import send_chunk
from tests.builders.streams import make_stream
from tests.fakes.batch import Bench, run_batch
from tests.fakes.fake_log import FakeLog
from wavestitch.batch.last_definition import recent_batches, refuse_torn
from wavestitch.batch.plan import PlanRequest
from wavestitch.contracts.past_cost import RECENT

T = 1_767_614_400_000


def test_so_many_heads_are_looked_at_and_the_newest_comes_first() -> None:
    bench, stream = Bench(FakeLog("waves", 1)), make_stream()
    assert recent_batches(bench.tables, None) == []
    for n in range(RECENT + 3):
        send_chunk(bench.log, f"w{n}", at_ms=T + n)
        run_batch(bench, stream, PlanRequest(), clock_ms=T + n)
    head = bench.tables.head()
    assert head is not None
    found = recent_batches(bench.tables, head)
    assert [row.sequence for row in found] == [head.sequence - n for n in range(RECENT)]
    assert refuse_torn(stream, bench.tables) == found
