"""What many texts of metadata say, as columns: those that differ in their start alone are told apart by arithmetic.

Decides nothing that `parse_metadata` does not. Texts of one length in which a number follows the name of the start are
compared byte by byte with the number left out; where two of them with two starts say these starts as they stand, every
other one says its own (see there). All else is read one text after the other. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from wavestitch.contracts.chunk_metadata import MAX_TIME_NS, Metadata, parse_metadata

Rows = npt.NDArray[np.int64]
_Bytes = npt.NDArray[np.uint8]
_NOTHING = -1
_START = re.compile(rb'"start_time_ns":\s*([1-9][0-9]{0,18})[\s,}]')
_MOST_BYTES = 600
_AT_ONCE = 1 << 14
_WORTH = 8
"""Fewer texts of one length are read one by one."""
_MOST_PLACES = 4
"""In so many places of texts of one length the start is looked for."""
_WEIGHTS = np.cumprod(np.full(-(-_MOST_BYTES // 8), 0x9E3779B97F4A7C15, np.uint64))
"""Odd numbers with no pattern."""


@dataclass(frozen=True, slots=True, eq=False)
class MetadataColumns:
    """Text `n` says `said[form[n]]`, but that it starts at `start_ns[n]`. `form` is negative, and the start 0, where
    the text is none that a reader lets through."""

    said: list[Metadata]
    form: Rows
    start_ns: Rows

    def of_each(self, what: Callable[[Metadata], Any], dtype: Any, silent: Any = 0) -> npt.NDArray[Any]:
        """What is said beside the start, of every text; `silent`: of those that say nothing."""
        return np.array([*map(what, self.said), silent], dtype)[self.form]

    def taken(self, at: Rows) -> MetadataColumns:
        """Of these texts, in this order; of a negative number nothing is said."""
        form, start = np.append(self.form, _NOTHING), np.append(self.start_ns, 0)
        return MetadataColumns(self.said, form[at], start[at])


def read_metadata(texts: pa.Array) -> MetadataColumns:
    """What each of these texts says; none is null."""
    large = texts.cast(pa.large_string())
    _, ends, data = large.buffers()
    bounds = (
        np.frombuffer(ends, np.int64)[large.offset : large.offset + len(large) + 1]
        if len(large)
        else np.zeros(1, np.int64)
    )
    return read_texts(np.frombuffer(data if data is not None else b"", np.uint8), bounds)


def read_texts(raw: _Bytes, bounds: Rows) -> MetadataColumns:
    """The same of texts that lie one behind the other; text `n` is `raw[bounds[n]:bounds[n + 1]]`."""
    sizes = np.diff(bounds)
    found = _Found([], np.full(len(sizes), _NOTHING, np.int64), np.zeros(len(sizes), np.int64))
    order = np.argsort(sizes, kind="stable")
    alone = [np.empty(0, np.int64)]
    for same in np.split(order, np.flatnonzero(np.diff(sizes[order])) + 1):
        if len(same) < _WORTH or not 0 < sizes[same[0]] <= _MOST_BYTES:
            alone.append(same)
            continue
        windows = np.lib.stride_tricks.sliding_window_view(raw, int(sizes[same[0]]))
        for begin in range(0, len(same), _AT_ONCE):
            rows = same[begin : begin + _AT_ONCE]
            alone += found.take(rows, windows[bounds[rows]])
    for n in np.sort(np.concatenate(alone)).tolist():
        one = parse_metadata(raw[bounds[n] : bounds[n + 1]].tobytes())
        if isinstance(one, Metadata):
            found.form[n], found.start_ns[n] = len(found.said), one.start_time_ns
            found.said.append(one)
    return MetadataColumns(found.said, found.form, found.start_ns)


@dataclass(frozen=True, slots=True, eq=False)
class _Found:
    said: list[Metadata]
    form: Rows
    start_ns: Rows
    numbers: dict[tuple[int, int, bytes], int] = field(default_factory=dict)
    """Of what is proven of all starts, its number: by where the start stands, and the text without it."""

    def take(self, rows: Rows, texts: _Bytes) -> Iterator[Rows]:
        """Take in texts of one length; gives those that have to be read alone. `texts`: shape (rows, bytes)."""
        for _ in range(_MOST_PLACES):
            if not len(rows):
                return
            place = _START.search(texts[0].tobytes())
            if place is None:
                yield rows[:1]
                rows, texts = rows[1:], texts[1:]
                continue
            begin, end = place.span(1)
            named = (texts[:, place.start() : begin] == texts[0, place.start() : begin]).all(axis=1)
            named &= texts[:, end] == texts[0, end]
            digits = texts[:, begin:end] - np.uint8(ord("0"))
            named &= (digits <= 9).all(axis=1) & ((digits[:, 0] > 0) | (end - begin == 1))
            here = np.flatnonzero(named)
            starts = digits[here].astype(np.int64) @ 10 ** np.arange(end - begin - 1, -1, -1, dtype=np.int64)
            yield from self._alike(rows[here], texts[here], starts, begin, end)
            rows, texts = rows[~named], texts[~named]
        yield rows

    def _alike(self, rows: Rows, texts: _Bytes, starts: Rows, begin: int, end: int) -> Iterator[Rows]:
        """The same of texts whose start, if it is theirs, stands at `[begin, end)`."""
        rest = np.zeros((len(texts), -(-texts.shape[1] // 8) * 8), np.uint8)
        rest[:, : texts.shape[1]] = texts
        rest[:, begin:end] = 0
        words = rest.view(np.uint64)
        sums = words @ _WEIGHTS[: words.shape[1]]
        _, first, group = np.unique(sums, return_index=True, return_inverse=True)
        # The sums only say which are worth comparing.
        same = (words == words[first[group]]).all(axis=1) & (starts >= 0) & (starts <= MAX_TIME_NS)
        other = first.copy()
        differs = np.flatnonzero(same & (starts != starts[first[group]]))
        other[group[differs]] = differs
        forms = np.full(len(first), _NOTHING, np.int64)
        for n, (a, b) in enumerate(zip(first.tolist(), other.tolist(), strict=True)):
            key = (begin, end, rest[a, : texts.shape[1]].tobytes())
            known = self.numbers.get(key)
            if known is None and a != b:
                known = self._proven(key, [(texts[m].tobytes(), int(starts[m])) for m in (a, b)])
            forms[n] = _NOTHING if known is None else known
        known_here = same & (forms[group] != _NOTHING)
        self.form[rows[known_here]] = forms[group[known_here]]
        self.start_ns[rows[known_here]] = starts[known_here]
        yield rows[~known_here]

    def _proven(self, key: tuple[int, int, bytes], two: list[tuple[bytes, int]]) -> int | None:
        read = [parse_metadata(text) for text, _ in two]
        said = [m for m in read if isinstance(m, Metadata)]
        if [m.start_time_ns for m in said] != [start for _, start in two]:
            return None
        self.numbers[key] = len(self.said)
        self.said.append(said[0])
        return self.numbers[key]
