"""A waveform as least and greatest samples of buckets: what a picture of a few hundred columns can show of any length.

Buckets are powers of two wide and begin at multiples of their width, whatever part is looked at: a picture that is
moved shows the same values again, and coarser buckets are made of finer ones exactly. No sample is left out, so that
the shortest spike is seen at every width. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from wavestitch.contracts.sample_types import Values

Placed = tuple[int, Values]
"""The number of a sample, and the samples from it on."""


@dataclass(frozen=True, slots=True, eq=False)
class Extremes:
    """Of samples `[start, end)` in buckets: the i-th has samples `[start + i * width, start + (i + 1) * width)`, as far
    as there are some. `least`, `greatest`: shape (n,), in the samples' dtype; what is no finite number, or not there,
    does not count, and where nothing counts, `least` is above `greatest`. `lacking`: shape (n,), how many do not."""

    start: int
    end: int
    width: int
    least: Values
    greatest: Values
    lacking: npt.NDArray[np.int64]


def bucket_width(samples: int, *, most: int) -> int:
    """The least power of two of which at most `most` buckets cover so many samples, wherever they begin."""
    width = 1
    while samples // width + 2 > most:
        width *= 2
    return width


def in_a_row(parts: Iterable[Values], start: int, end: int) -> Iterator[Placed]:
    """The samples `[start, end)`, which `parts` has one behind the other, as `find_extremes` wants them. Raises
    `ValueError` where the parts have more or fewer."""
    at = start
    for part in parts:
        if at + len(part) > end:
            raise ValueError(f"there are more than {end - start} samples")
        yield at, part
        at += len(part)
    if at != end:
        raise ValueError(f"of {end - start} samples there are {at - start}")


def find_extremes(parts: Iterable[Placed], *, start: int, end: int, width: int, dtype: np.dtype[Any]) -> Extremes:
    """Of the samples `[start, end)`, as far as `parts` has them, in any order, each at most once; memory is that of a
    part and the answer. Raises `ValueError` for samples that are not of these."""
    count = -(-(end - start) // width)
    limits: Any = np.finfo(dtype) if dtype.kind == "f" else np.iinfo(dtype)
    low, high = (-np.inf, np.inf) if dtype.kind == "f" else (limits.min, limits.max)
    least, greatest = np.full(count, high, dtype), np.full(count, low, dtype)
    lacking = np.minimum(width, end - start - np.arange(count, dtype=np.int64) * width)
    for at, part in parts:
        if not len(part):
            continue
        first, behind = (at - start) // width, (at - start + len(part) - 1) // width + 1
        if at < start or at + len(part) > end:
            raise ValueError(f"samples {at} to {at + len(part)} are none of {start} to {end}")
        # Where each bucket begins in the part; the first may have begun before.
        cuts = np.maximum(np.arange(first, behind, dtype=np.int64) * width + start - at, 0)
        lows, highs, counted = part, part, np.diff(cuts, append=len(part))
        if part.dtype.kind == "f" and not (finite := np.isfinite(part)).all():
            counted = np.add.reduceat(finite, cuts, dtype=np.int64)
            lows, highs = np.where(finite, part, high), np.where(finite, part, low)
        lacking[first:behind] -= counted
        found = np.minimum.reduceat(lows, cuts), np.maximum.reduceat(highs, cuts)
        least[first:behind] = np.minimum(least[first:behind], found[0])
        greatest[first:behind] = np.maximum(greatest[first:behind], found[1])
    return Extremes(start, end, width, least, greatest, lacking)


def coarser(found: Extremes, *, width: int) -> Extremes:
    """The same in wider buckets; `width` is a multiple of theirs."""
    cuts = np.arange(0, len(found.least), width // found.width)
    if not len(cuts):
        return Extremes(found.start, found.end, width, found.least, found.greatest, found.lacking)
    return Extremes(
        found.start,
        found.end,
        width,
        np.minimum.reduceat(found.least, cuts),
        np.maximum.reduceat(found.greatest, cuts),
        np.add.reduceat(found.lacking, cuts),
    )


def part_of(found: Extremes, start: int, end: int) -> Extremes:
    """The buckets that samples `[start, end)` lie in."""
    first, behind = (start - found.start) // found.width, -(-(end - found.start) // found.width)
    return Extremes(
        found.start + first * found.width,
        min(found.end, found.start + behind * found.width),
        found.width,
        found.least[first:behind],
        found.greatest[first:behind],
        found.lacking[first:behind],
    )
