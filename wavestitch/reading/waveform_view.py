"""What a picture of a part of a waveform shows: its samples where they are few, else least and greatest of buckets.

Memory and what is shown are bounded whatever the length: samples pass a page at a time, and of each waveform that is
looked at as a whole the extremes of its blocks are kept, from which every wide view is made.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from threading import Lock
from typing import Any

import numpy as np
import numpy.typing as npt

from wavestitch.contracts.chunk_metadata import SAMPLE_BYTES
from wavestitch.contracts.sample_types import FORMAT_DTYPES, Values
from wavestitch.reading.extremes import Extremes, Placed, bucket_width, coarser, find_extremes, part_of

RAW_MOST = 4000
"""So many samples are shown one by one."""
MOST_BUCKETS = 2000
_BLOCK = 4096
_MOST_BLOCKS = 1 << 17
_KEPT_BYTES = 32 << 20

Parts = Callable[[int, int], Iterator[Placed]]
"""Gives the samples `[start, end)` of a waveform, as far as they are there, in the dtype that they were sent in, some
at a time."""


@dataclass(frozen=True, slots=True, eq=False)
class View:
    """Of samples `[start, end)`, which may be more than were asked for: buckets are whole. `raw`: the samples, or None;
    then `extremes` has their buckets. `there`: which of the samples are, shape as `raw`. `lacking`: half-open ranges in
    which samples are no finite number, or are not there, as exact as what is shown."""

    start: int
    end: int
    raw: Values | None
    there: npt.NDArray[np.bool_]
    extremes: Extremes | None
    lacking: tuple[tuple[int, int], ...]


class KeptBlocks:
    """Extremes of whole waveforms in blocks, those that were asked for last: so many bytes of them."""

    def __init__(self, most_bytes: int = _KEPT_BYTES) -> None:
        self._most = most_bytes
        self._lock = Lock()
        self._found: OrderedDict[tuple[Any, ...], Extremes] = OrderedDict()

    def of(self, key: tuple[Any, ...], make: Callable[[], Extremes]) -> Extremes:
        """`key`: names samples that never change."""
        with self._lock:
            if (known := self._found.get(key)) is not None:
                self._found.move_to_end(key)
                return known
        made = make()
        with self._lock:
            self._found[key] = made
            while len(self._found) > 1 and sum(map(_bytes, self._found.values())) > self._most:
                self._found.popitem(last=False)
        return made


def view_of(
    samples: int,
    wanted: tuple[int, int],
    *,
    buckets: int,
    sample_format: str,
    parts: Parts,
    kept: KeptBlocks,
    key: tuple[Any, ...],
) -> View:
    """The part `wanted` (samples, half-open, cut to what there is) of a waveform of so many samples, in at most so many
    buckets."""
    start = min(max(0, wanted[0]), max(0, samples - 1))
    end = min(samples, max(wanted[1], start + 1))
    dtype = np.dtype(FORMAT_DTYPES[sample_format])
    if end - start <= RAW_MOST:
        raw, there = np.zeros(end - start, dtype), np.zeros(end - start, np.bool_)
        for at, part in parts(start, end):
            inside = slice(at - start, at - start + len(part))
            raw[inside], there[inside] = part, True
        return View(start, end, raw, there, None, _ranges(~(there & np.isfinite(raw)), start, 1, end))
    width = bucket_width(end - start, most=buckets)
    block = max(_BLOCK, bucket_width(samples, most=_MOST_BLOCKS))
    if width >= block:
        whole = kept.of(key, lambda: find_extremes(parts(0, samples), start=0, end=samples, width=block, dtype=dtype))
        found = part_of(coarser(whole, width=width), start, end)
    else:
        begin, behind = start // width * width, min(samples, -(-end // width) * width)
        found = find_extremes(parts(begin, behind), start=begin, end=behind, width=width, dtype=dtype)
    none = np.empty(0, np.bool_)
    return View(found.start, found.end, None, none, found, _ranges(found.lacking > 0, found.start, width, found.end))


def physical(values: Values, row: Mapping[str, Any]) -> npt.NDArray[np.float64]:
    """In the row's units: (sample - baseline) / gain. What is no finite number then is NaN."""
    with np.errstate(all="ignore"):
        found = (values.astype(np.float64) - float(row["baseline"])) / float(row["adc_gain"])
    return np.where(np.isfinite(found), found, np.nan)


def physical_extremes(found: Extremes, row: Mapping[str, Any]) -> tuple[npt.NDArray[np.float64], ...]:
    """Least and greatest in the row's units: a gain below 0 turns them round. Of a bucket without a number, NaN."""
    nothing = found.least > found.greatest
    ends = [np.where(nothing, np.nan, physical(values, row)) for values in (found.least, found.greatest)]
    return (ends[0], ends[1]) if float(row["adc_gain"]) > 0 else (ends[1], ends[0])


def chunk_bounds(row: Mapping[str, Any]) -> npt.NDArray[np.int64]:
    """Shape (chunks + 1,): chunk i brought samples `[bounds[i], bounds[i + 1])`. One that a border cuts is told of the
    chunk that ends it."""
    lengths = np.array([0, *(int(chunk["length"]) for chunk in row["chunks"])], np.int64)
    bounds: npt.NDArray[np.int64] = np.cumsum(lengths) // SAMPLE_BYTES[row["sample_format"]]
    return bounds


def _ranges(lacking: npt.NDArray[np.bool_], start: int, width: int, end: int) -> tuple[tuple[int, int], ...]:
    padded = np.concatenate(([False], lacking, [False]))
    edges = np.flatnonzero(padded[1:] != padded[:-1]).reshape(-1, 2) * width + start
    return tuple((int(a), min(int(b), end)) for a, b in edges)


def _bytes(found: Extremes) -> int:
    return int(found.least.nbytes + found.greatest.nbytes + found.lacking.nbytes)
