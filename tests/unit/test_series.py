"""Waveforms joined to a series: every sample at its time, at every rate that producers may name."""

from __future__ import annotations

from datetime import UTC, datetime

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from wavestitch.contracts.errors import BadInput
from wavestitch.reading.series import Series, lay_out
from wavestitch.reading.waveform import Waveform

NOON_NS = 1_782_907_200 * 10**9


def waveform(name: str, start_ns: int, rate_hz: float, samples: np.ndarray) -> Waveform:
    about = {"sample_count": len(samples), "samples": samples.astype("<i4"), "nonfinite_count": 0}
    start = datetime.fromtimestamp(start_ns // 10**9, UTC)
    return Waveform(name, "s", "c", start, start_ns, rate_hz, "V", "i32le", 1.0, 0.0, about)


def join(found: list[Waveform], **asked: int) -> Series:
    rows = [
        {
            "waveform_id": one.id,
            "source": one.source,
            "channel": one.channel,
            "start_time_ns": one.start_ns,
            "sample_count": len(one),
            "sampling_rate_hz": one.rate_hz,
            "units": one.units,
        }
        for one in found
    ]
    layout = lay_out(rows, **asked)
    assert layout is not None
    return layout.fill(found)


@given(
    st.sampled_from([1e-3, 0.1, 1.0, 100.0, 250.0, 360.0, 4096.0, 44_100.0, 1e6, 1e7, 1e8]),
    st.integers(-(10**18), 2 * 10**18),
    st.lists(st.tuples(st.integers(1, 40), st.integers(0, 9)), min_size=1, max_size=5),
    st.integers(-3, 60),
    st.integers(0, 60),
)
# Half a nanosecond decides about the sample behind the end, rounded to the even one.
@example(4096.0, 0, [(1, 0), (1, 1), (40, 9), (5, 0)], 0, 56)
@example(4096.0, 0, [(60, 0)], 4, 8)
def test_a_series_has_each_sample_whose_time_is_asked_for_at_its_time(rate, start_ns, parts, skip, length):
    """Against a reckoning sample by sample: each has a place on one grid and a time, rounded to a nanosecond."""
    place, found, expected = 0, [], {}
    begin = start_ns + round(skip * 10**9 / rate)
    end = start_ns + round((skip + length) * 10**9 / rate)
    for n, (size, gap) in enumerate(parts):
        one = waveform(f"w{n}", start_ns + round(place * 10**9 / rate), rate, np.arange(place, place + size))
        found.append(one)
        for k, time in enumerate(one.times.view(np.int64).tolist()):
            if begin <= time < end:
                expected[place + k] = time
        place += size + gap
    made = join(found, start_ns=begin, end_ns=end)
    values = made.physical[np.isfinite(made.physical)].astype(int).tolist()
    assert values == sorted(expected)
    if expected:
        first = min(expected)
        assert made.physical.tolist()[0] == first
        assert np.flatnonzero(np.isfinite(made.physical)).tolist() == [p - first for p in sorted(expected)]
        assert np.abs(made.times.view(np.int64)[0] - expected[first]) <= 1
        assert sum(b - a for a, b in made.gaps) == len(made.physical) - len(values)
    else:
        assert made.start_ns == begin


def test_a_series_may_begin_with_the_epoch():
    made = join([waveform("a", 0, 1.0, np.arange(3))], start_ns=-(10**12), end_ns=10**12)
    assert made.start_ns == 0


def test_a_gap_as_long_as_a_producer_likes_is_refused_before_it_takes_memory():
    pair = [waveform(n, NOON_NS + k * 60 * 10**9, 1e12, np.arange(1)) for k, n in enumerate("ab")]
    with pytest.raises(BadInput, match=r"60,000,000,000,001 samples at 1e\+12 Hz, 2 of them recorded"):
        join(pair, start_ns=NOON_NS, end_ns=NOON_NS + 10**12)
    slow = [waveform(n, NOON_NS + k * 60 * 10**9, 1.0, np.arange(1)) for k, n in enumerate("ab")]
    with pytest.raises(BadInput, match="allowed are 60"):
        join(slow, start_ns=NOON_NS, end_ns=NOON_NS + 10**12, most=60)
    assert len(join(slow, start_ns=NOON_NS, end_ns=NOON_NS + 10**12, most=61).physical) == 61


def test_what_overlaps_is_refused_by_name():
    pair = [waveform("a", NOON_NS, 100.0, np.arange(10)), waveform("b", NOON_NS + 90_000_000, 100.0, np.arange(3))]
    with pytest.raises(BadInput, match="'b' begins 1 samples before"):
        join(pair, start_ns=NOON_NS, end_ns=NOON_NS + 10**12)


def test_what_has_no_sample_in_what_is_asked_for_has_no_say_in_it():
    fast = waveform("fast", NOON_NS, 5e6, np.arange(3))
    slow = waveform("slow", NOON_NS + 600, 2.5e6, np.arange(4))
    asked = {"start_ns": NOON_NS + 500, "end_ns": NOON_NS + 10_000}
    for found in ([fast, slow], [slow, fast]):
        made = join(found, **asked)
        assert (made.waveforms, made.rate_hz, made.physical.tolist()) == (("slow",), 2.5e6, [0, 1, 2, 3])
    nothing = join([fast], **asked)
    assert (nothing.rate_hz, nothing.waveforms, nothing.start_ns) == (5e6, (), NOON_NS + 500)


def test_how_far_a_waveform_was_moved_onto_the_grid_is_said():
    pair = [waveform("a", NOON_NS, 1 / 60, np.arange(10)), waveform("b", NOON_NS + 629 * 10**9, 1 / 60, np.arange(3))]
    made = join(pair, start_ns=NOON_NS, end_ns=NOON_NS + 10**13)
    assert made.moved_ns == (0, -29 * 10**9)
    assert made.times[10] == pair[1].times[0] + np.timedelta64(made.moved_ns[1], "ns")
    cut = join(pair, start_ns=NOON_NS + 540 * 10**9, end_ns=NOON_NS + 10**13)
    assert (cut.waveforms, cut.moved_ns) == (("a", "b"), (0, -29 * 10**9))


def test_of_channels_or_rates_that_differ_one_is_to_be_chosen_and_of_no_rows_there_is_nothing():
    pair = [waveform("a", NOON_NS, 1.0, np.arange(3)), waveform("b", NOON_NS + 10**10, 2.0, np.arange(3))]
    with pytest.raises(BadInput, match=r"'b' has 2\.0 Hz and 'V', 'a' has 1\.0 Hz and 'V'; choose one"):
        join(pair, start_ns=NOON_NS, end_ns=NOON_NS + 10**11)
    assert lay_out([], start_ns=0, end_ns=1) is None
