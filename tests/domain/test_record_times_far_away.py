"""A record time is whatever a sender says: one that is far away keeps nothing open for ever, and blocks nobody."""

from __future__ import annotations

import pytest

from tests.builders.records import letter, metadata
from tests.fakes.batch import Bench, run_batch
from tests.fakes.fake_log import FakeLog
from wavestitch.batch.plan import PlanRequest
from wavestitch.contracts.quantities import Partition
from wavestitch.contracts.stream import Stream

T = 1_767_614_400_000
CENTURY_MS = 75 * 365 * 86_400_000
STREAM = Stream(name="ecg", topic="waves", group="g")


@pytest.mark.parametrize("at", [T + CENTURY_MS, T + 4 * CENTURY_MS, 1, 1 << 62])
@pytest.mark.parametrize("start_ms", [T, T + CENTURY_MS])
def test_an_incomplete_waveform_is_not_left_open_until_a_time_that_never_comes(at: int, start_ms: int) -> None:
    bench, now_ms = Bench(FakeLog("waves", 1)), T
    first, second = (letter("w", n, b"\1\0" * 4, meta=metadata(start_ms), count=2) for n in (0, 1))
    other = letter("other", 0, b"\1\0", meta=metadata(T), count=1)

    def ingest(one: object, at_ms: int) -> None:
        nonlocal now_ms
        now_ms += 1
        bench.log.append(Partition(0), at_ms, *one)  # type: ignore[misc]
        run_batch(bench, STREAM, PlanRequest(), clock_ms=now_ms)

    ingest(first, at)
    assert [h.held.reason.value for h in bench.tables.held_rows()] == ["implausible_time"]
    ingest(other, T)
    if start_ms == T:
        ingest(second, T)
        assert sorted(row.waveform_id for _, row in bench.tables.rows) == ["other", "w"]
    else:
        assert [row.waveform_id for _, row in bench.tables.rows] == ["other"]
