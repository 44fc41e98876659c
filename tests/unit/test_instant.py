"""Instants as people and libraries say them: to the nanosecond, or refused."""

from __future__ import annotations

from datetime import UTC, date, datetime
from typing import Any

import numpy as np
import pandas
import pytest

from wavestitch.contracts.errors import BadInput
from wavestitch.contracts.instant import instant_ns, parse_time

NOON_NS = 1_767_614_400 * 10**9


@pytest.mark.parametrize(
    ("said", "after"),
    [
        ("2026-01-05T12:00:00Z", 0),
        (" 2026-01-05T13:00:00+01:00 ", 0),
        ("2026-01-05T12:00:00.5Z", 500_000_000),
        ("2026-01-05T12:00:00.000000001Z", 1),
        ("2026-01-05T13:00:00,1234567+01:00", 123_456_700),
        ("2026-01-05T12:00:00.123456789000Z", 123_456_789),
        (datetime(2026, 1, 5, 12, 0, 0, 7, UTC), 7000),
        (np.datetime64(NOON_NS + 900, "ns"), 900),
        (np.datetime64("2026-01-05T12:00"), 0),
        (pandas.Timestamp(NOON_NS + 501, tz="Europe/Berlin"), 501),
    ],
)
def test_an_instant_is_taken_to_the_nanosecond(said: Any, after: int) -> None:
    assert instant_ns(said) == NOON_NS + after


def test_before_1970_nanoseconds_count_on() -> None:
    assert parse_time("1969-12-31T23:59:59.999999999Z") == -1


@pytest.mark.parametrize(
    ("said", "why"),
    [
        ("noon", "is not a time"),
        ("2026-01-05", "no time zone"),
        ("2026-01-05T12:00:00.123456789", "no time zone"),
        ("2026-01-05T12:00:00.1234567891Z", "more than nanoseconds"),
        (datetime(2026, 1, 5), "no time zone"),
        (date(2026, 1, 5), "is not a time"),
        (1_767_614_400, "is not a time"),
        (pandas.NaT, "no time zone"),
        (np.datetime64("NaT"), "is not a time in whole nanoseconds"),
        (np.datetime64("3000-01-01"), "between 1678 and 2262"),
        (np.datetime64(1, "ps"), "is not a time in whole nanoseconds"),
    ],
)
def test_what_is_no_instant_is_refused_and_nothing_is_cut(said: Any, why: str) -> None:
    with pytest.raises(BadInput, match=why):
        instant_ns(said)
