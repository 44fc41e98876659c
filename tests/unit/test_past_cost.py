"""What the history says of the next batch: the weights that share out its reading, and the forecast of a lag."""

from __future__ import annotations

from typing import Any

import pytest

from tests.builders.heads import make_row
from tests.builders.plans import make_plan
from tests.builders.ranges import span
from wavestitch.contracts.batch_row import BatchRow
from wavestitch.contracts.offset_range import pack_units
from wavestitch.contracts.past_cost import RECENT, forecast, reading_seconds, reading_weights
from wavestitch.contracts.quantities import Partition

MIB = 1 << 20


def row(reading: dict[str, list[float]], *, offsets: int = 100, **changes: Any) -> BatchRow:
    known = {
        "reading": reading,
        "partitions": {p: {"planned": offsets} for p in reading},
        "bytes": {"read": int(sum(size for size, _ in reading.values()))},
    }
    return make_row(**{**known, **changes})


def test_without_history_all_partitions_weigh_the_same():
    assert reading_weights([]) == {}
    assert reading_weights([row({})]) == {}


def test_what_was_read_too_fast_to_be_measured_weighs_by_its_bytes():
    found = reading_weights([row({"0": [3 * MIB, 0.01], "1": [1 * MIB, 0.02]})])
    assert found == pytest.approx({0: 1.5, 1: 0.5})


def test_what_took_a_telling_time_weighs_by_its_seconds():
    found = reading_weights([row({"0": [1 * MIB, 6.0], "1": [1 * MIB, 2.0]})])
    assert found == pytest.approx({0: 1.5, 1: 0.5})


def test_a_partition_measured_too_shortly_weighs_by_its_bytes_at_the_rate_of_the_others():
    found = reading_weights([row({"0": [8 * MIB, 4.0], "1": [2 * MIB, 0.1]})])
    assert found[Partition(0)] == pytest.approx(4 * found[Partition(1)])


def test_what_is_long_past_does_not_count():
    recent = row({"0": [1 * MIB, 0.0], "1": [1 * MIB, 0.0]})
    assert reading_weights([recent] * RECENT + [row({"0": [99 * MIB, 0.0], "1": [1, 0.0]})]) == {0: 1.0, 1: 1.0}


def test_units_share_out_cost_and_not_records():
    slices = [span(0, 0, 100), span(1, 0, 100), span(2, 0, 100), span(3, 0, 100)]
    weights = reading_weights([row({"0": [90 * MIB, 0.0], **{p: [30 * MIB, 0.0] for p in "123"}})])
    assert pack_units(slices, workers=2, weight={}) == [(slices[0], slices[2]), (slices[1], slices[3])]
    assert pack_units(slices, workers=2, weight=weights) == [(slices[0],), tuple(slices[1:])]


class TestForecast:
    """A chain of bounded batches, and when it will be through."""

    def test_a_batch_that_leaves_nothing_behind_is_the_whole_chain(self):
        made = make_plan()
        assert made.left == 0
        found = forecast(made, [])
        assert (found.batches, found.offsets, found.seconds) == (1, made.records, None)

    def test_what_is_left_is_cut_into_batches_of_the_same_size(self):
        made = make_plan(left=make_plan().records * 2 + 1, mean_record_bytes=1000.0)
        found = forecast(made, [])
        assert found.batches == 4
        assert found.offsets == made.records * 3 + 1
        assert found.bytes == found.offsets * 1000

    def test_seconds_follow_the_start_up_and_the_bytes_of_past_batches(self):
        made = make_plan(left=make_plan().records, mean_record_bytes=1000.0)
        past = [
            row({"0": [10_000_000, 0.0]}, seconds={"read": 2.0, "reassemble": 10.0}),
            row({"0": [30_000_000, 0.0]}, seconds={"read": 6.0, "reassemble": 10.0}),
        ]
        expected = 2 * 10.0 + 2 * made.records * 1000 * 2e-7
        assert forecast(made, past).seconds == pytest.approx(expected, abs=0.1)

    def test_from_a_single_batch_it_is_at_least_as_long_as_that_for_each(self):
        made = make_plan(left=make_plan().records * 3, mean_record_bytes=1.0)
        past = [row({"0": [10_000_000, 0.0]}, seconds={"read": 2.0, "reassemble": 10.0})]
        assert forecast(made, past).seconds == pytest.approx(48.0)


@pytest.mark.parametrize(
    ("batches", "size", "seconds"), [(0, 0, 0.0), (0, 500, 0.0), (1, 1000, 10.3), (2, 1000, 20.5), (1, 3000, 30.8)]
)
def test_what_a_verification_will_take_is_told_to_a_tenth_of_a_second(batches: int, size: int, seconds: float):
    past = [row({"0": [1000.0, 0.0]}, seconds={"read": 4.26, "reassemble": 6.0})]
    assert reading_seconds(past, batches=batches, size=size) == seconds


def test_what_a_verification_will_take_is_not_told_where_no_batch_read_anything():
    assert reading_seconds([], batches=1, size=9) is None
    assert reading_seconds([row({}, seconds={"read": 4.0})], batches=1, size=9) is None
    assert reading_seconds([], batches=0, size=0) == 0.0
