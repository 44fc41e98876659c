"""What a fetch of raw batches brings is handed on to the end of a slice, and the silence between is told from work."""

from __future__ import annotations

from typing import Any

import pytest

from consumers.batch_scan import Delivery, Silence, hand_over
from consumers.range_scan import Source
from tests.builders.ranges import span
from tests.builders.raw_batches import (
    FAR,
    Sent,
    batch_of,
    raw_batch,
    side_by_side,
    waveform,
)
from wavestitch.contracts.errors import Terminal
from wavestitch.contracts.offset_range import OffsetRange
from wavestitch.contracts.quantities import Offset
from wavestitch.contracts.record_batches import AbortedTransaction
from wavestitch.kafka.raw_log import Fetched


def delivery_of(slice_: OffsetRange, *, took: float = 0.0, passes: float = 0.0) -> tuple[Delivery, Silence, list[int]]:
    """One that notes the offsets that it hands on. `took`: how long somebody looks at some of them; `passes`: so much
    time between two looks at the clock."""
    taken: list[int] = []

    def take_columns(records: Any, _epoch: int) -> int:
        taken.extend(records.offsets.tolist())
        now[0] += took
        return 0

    def clock() -> float:
        now[0] += passes
        return now[0]

    now = [0.0]
    source = Source("ecg", "t", "", "g", 5.0)
    delivery = Delivery(slice_, source, lambda *_: 0, take_columns, lambda *_: None, lambda _: None)
    return delivery, Silence(source, slice_, clock), taken


def test_a_slice_whose_last_offsets_lie_between_two_batches_comes_to_its_end() -> None:
    letters = waveform("w", 40)
    first = batch_of([Sent(r, n, 1000) for n, r in enumerate(letters)])
    behind = batch_of([Sent(r, 60 + n, 1000) for n, r in enumerate(letters)])
    delivery, silence, taken = delivery_of(span(0, 0, 50))
    hand_over(Fetched([first, behind], [], 100), delivery, silence, where="here")
    assert delivery.reached == 50
    assert taken == list(range(40))
    assert delivery.holes.close(Offset(50)) == [(40, 50)]


def test_nothing_behind_the_end_of_a_slice_is_looked_into() -> None:
    """What a cleaner has been at is found by inflating all of it: that is nobody's work but of who reads it."""
    letters = waveform("w", 40)
    first = batch_of([Sent(r, n, 1000) for n, r in enumerate(letters)])
    behind = raw_batch(b"no gzip", base=40, attributes=1, delta=99, records=3)
    delivery, silence, taken = delivery_of(span(0, 0, 40))
    hand_over(Fetched([first, behind], [], 140), delivery, silence, where="here")
    assert (delivery.reached, taken) == (40, list(range(40)))


def test_a_slice_before_the_first_batch_that_is_left_is_a_hole() -> None:
    behind = batch_of([Sent(r, 60 + n, 1000) for n, r in enumerate(waveform("w", 40))])
    delivery, silence, taken = delivery_of(span(0, 10, 50))
    hand_over(Fetched([behind], [], 100), delivery, silence, where="here")
    assert (delivery.reached, taken, delivery.holes.close(Offset(50))) == (50, [], [(10, 50)])


def test_what_looking_at_records_takes_is_no_silence() -> None:
    delivery, silence, taken = delivery_of(FAR, took=60.0)
    hand_over(Fetched(side_by_side(waveform("w", 40)), [], 100), delivery, silence, where="here")
    assert taken
    assert not silence.is_over


def test_aborted_records_are_silence_however_many_fetches_bring_them() -> None:
    aborted = batch_of([Sent(r, n, 1000) for n, r in enumerate(waveform("w", 3))], attributes=16)
    delivery, silence, taken = delivery_of(FAR, passes=2.0)
    fetch = Fetched([aborted], [AbortedTransaction(-1, Offset(0))], 100)
    for _ in range(2):
        hand_over(fetch, delivery, silence, where="here")
    with pytest.raises(Terminal, match="nothing was committed"):
        hand_over(fetch, delivery, silence, where="here")
    assert taken == []
