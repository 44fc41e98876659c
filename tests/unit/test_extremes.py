"""Least and greatest samples of buckets, against a reduction that looks at one sample after the other."""

from __future__ import annotations

import math
import random
from typing import Any

import numpy as np
import pytest

from wavestitch.reading.extremes import Extremes, bucket_width, coarser, find_extremes, in_a_row, part_of

DTYPES = ("<i2", "<i4", "<i8", "<f4", "<f8")


def drawn(rng: random.Random, dtype: str, count: int) -> np.ndarray:
    kind = np.dtype(dtype)
    if kind.kind == "i":
        least, greatest = np.iinfo(kind).min, np.iinfo(kind).max
        return np.array([rng.choice([least, greatest, 0, rng.randint(least, greatest)]) for _ in range(count)], kind)
    odd = [math.nan, math.inf, -math.inf, 0.0, -0.0, float(np.finfo(kind).max), 5e-324]
    mixed = [rng.choice(odd) if rng.random() < 0.4 else rng.uniform(-9, 9) for _ in range(count)]
    with np.errstate(all="ignore"):
        return np.array(mixed, "<f8").astype(kind)


def cut(rng: random.Random, values: np.ndarray) -> list[np.ndarray]:
    at = sorted(rng.choices(range(len(values) + 1), k=rng.randint(0, 6)))
    return [values[a:b] for a, b in zip([0, *at], [*at, len(values)], strict=True)]


def one_by_one(values: list[Any], width: int) -> list[tuple[Any, Any, int]]:
    """The oracle: Python's own numbers, a bucket at a time."""
    found = []
    for n in range(0, len(values), width):
        some = values[n : n + width]
        finite = [v for v in some if isinstance(v, int) or math.isfinite(v)]
        found.append((min(finite, default=None), max(finite, default=None), len(some) - len(finite)))
    return found


def as_told(found: Extremes) -> list[tuple[Any, Any, int]]:
    columns = (found.least.tolist(), found.greatest.tolist(), found.lacking.tolist())
    rows = list(zip(*columns, strict=True))
    widths = [min(found.width, found.end - found.start - n * found.width) for n in range(len(rows))]
    return [(None, None, n) if n == width else (a, b, n) for (a, b, n), width in zip(rows, widths, strict=True)]


@pytest.mark.parametrize("dtype", DTYPES)
def test_buckets_have_the_least_and_greatest_that_an_oracle_finds_however_the_samples_come(dtype: str) -> None:
    rng = random.Random(f"extremes {dtype}")
    with np.errstate(all="raise", over="ignore"):
        for _ in range(300):
            values = drawn(rng, dtype, rng.randint(0, 70))
            width, start = 2 ** rng.randint(0, 7), 128 * rng.randint(0, 5)
            end = start + len(values)
            found = find_extremes(
                in_a_row(cut(rng, values), start, end), start=start, end=end, width=width, dtype=np.dtype(dtype)
            )
            assert as_told(found) == one_by_one(values.tolist(), width)
            assert found.least.dtype == found.greatest.dtype == np.dtype(dtype)
            wider = width * 2 ** rng.randint(0, 3)
            assert as_told(coarser(found, width=wider)) == one_by_one(values.tolist(), wider)


def test_a_part_has_the_buckets_that_its_samples_lie_in() -> None:
    values = np.arange(100, dtype="<i4")
    found = find_extremes([(0, values)], start=0, end=100, width=8, dtype=values.dtype)
    for start, end in ((0, 100), (7, 9), (8, 16), (96, 100), (99, 100), (50, 50)):
        part = part_of(found, start, end)
        assert part.start <= start
        assert part.end >= end
        assert as_told(part) == one_by_one(values[part.start : part.end].tolist(), 8)
        assert part.end - part.start < end - start + 16


@pytest.mark.parametrize("there", [9, 11])
def test_another_number_of_samples_than_said_is_an_error(there: int) -> None:
    with pytest.raises(ValueError, match="samples"):
        list(in_a_row([np.zeros(there, "<i2")], 0, 10))


@pytest.mark.parametrize("dtype", DTYPES)
def test_what_is_not_there_counts_for_nothing_whatever_the_order_of_the_parts(dtype: str) -> None:
    rng = random.Random(f"gaps {dtype}")
    for _ in range(100):
        values, width = drawn(rng, dtype, rng.randint(0, 70)), 2 ** rng.randint(0, 6)
        parts = [part for part in in_a_row(cut(rng, values), 0, len(values)) if rng.random() < 0.6]
        there = {at + n: value for at, part in parts for n, value in enumerate(part.tolist())}
        rng.shuffle(parts)
        with np.errstate(all="raise", over="ignore"):
            found = find_extremes(parts, start=0, end=len(values), width=width, dtype=values.dtype)
        wanted = one_by_one([there.get(n, math.nan) for n in range(len(values))], width)
        assert as_told(found) == wanted
        assert (found.least > found.greatest).tolist() == [least is None for least, _, _ in wanted]


@pytest.mark.parametrize("at", [-1, 8])
def test_a_part_of_something_else_is_an_error(at: int) -> None:
    with pytest.raises(ValueError, match="none of 0 to 10"):
        find_extremes([(at, np.zeros(3, "<i2"))], start=0, end=10, width=4, dtype=np.dtype("<i2"))


def test_so_many_buckets_suffice_wherever_they_begin() -> None:
    for samples in (0, 1, 2, 999, 1000, 1001, 4096, 10**6, 1 << 40):
        width = bucket_width(samples, most=1000)
        assert width & (width - 1) == 0
        for begin in (0, 1, width - 1):
            assert -(-(begin + samples) // width) <= 1000
        assert width == 1 or samples // (width // 2) + 2 > 1000
