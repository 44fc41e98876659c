"""The records of raw batches (format 2) in columns: where the key, the value and each header of every record lie.

Bytes stay where they are; what is found are places in them, for all records at once. Says what a record's fields are,
never what they mean; and nothing at all of bytes that are not exactly as the format has them, or too large to be many:
of those `consumers/batch_scan.py` says record by record what they are. Pure.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from wavestitch.contracts.quantities import Offset

Ints = npt.NDArray[np.int64]
_WINDOW = 16
"""So many bytes are behind the last record, so that whatever is looked at in one piece lies in the text."""
_MOST_HEADERS = 16
_MOST_VARINT = 9
"""Bytes of a number: of ten it might not fit 63 bits."""
_NULL = -1


class Places(NamedTuple):
    """Of a field of each record where it begins and how long it is, int64 each; `size` is -1 where it is null."""

    begin: Ints
    size: Ints

    def at(self, rows: Any) -> Places:
        return Places(self.begin[rows], self.size[rows])


class Texts(NamedTuple):
    """Texts by number: `numbers[i]` is the place in `said` of what record i says, -1 for null."""

    numbers: Ints
    said: list[bytes]


class BatchBody(NamedTuple):
    """The inflated records of one batch, and what its head says of them. `append_time`: of all its records, or None."""

    body: bytes | memoryview
    records: int
    base_offset: int
    last_offset_delta: int
    first_timestamp: int
    append_time: int | None


class Header(NamedTuple):
    """The n-th header of the records `rows`."""

    rows: Ints
    names: Places
    values: Places

    def between(self, low: int, high: int) -> Header:
        """Of the records `[low, high)`, counted from the first of them."""
        begin, end = np.searchsorted(self.rows, (low, high)).tolist()
        some = slice(begin, end)
        return Header(self.rows[some] - low, self.names.at(some), self.values.at(some))


@dataclass(frozen=True, slots=True)
class RecordColumns:
    """Records in the order of their offsets. `data`: the bytes that all places are in. `times_ms`: since the epoch, 0
    where a record has none, or one before it. `headers`: the first, the second, … header of the records that have so
    many."""

    data: bytes
    offsets: Ints
    times_ms: Ints
    keys: Places
    values: Places
    header_counts: Ints
    headers: list[Header]

    def __len__(self) -> int:
        return len(self.offsets)

    def between(self, start: Offset, end: Offset) -> RecordColumns:
        """Those of the offsets `[start, end)`."""
        low, high = np.searchsorted(self.offsets, (start, end)).tolist()
        if (low, high) == (0, len(self)):
            return self
        rows = slice(low, high)
        return RecordColumns(
            self.data,
            self.offsets[rows],
            self.times_ms[rows],
            self.keys.at(rows),
            self.values.at(rows),
            self.header_counts[rows],
            [header.between(low, high) for header in self.headers],
        )

    def headers_of(self, row: int) -> list[tuple[bytes, bytes | None]]:
        """Names and values, as they came."""
        found = []
        for rows, names, values in self.headers[: self.header_counts[row]]:
            n = int(np.searchsorted(rows, row))
            found.append((self.text(names, n) or b"", self.text(values, n)))
        return found

    def text(self, places: Places, n: int) -> bytes | None:
        """What lies at the n-th of these places."""
        begin, size = int(places.begin[n]), int(places.size[n])
        return None if size < 0 else self.data[begin : begin + size]


class _Odd(Exception):
    """The bytes are not as nearly all are."""


def find_records(batches: Sequence[BatchBody]) -> RecordColumns | None:
    """The records of some batches, one behind the other; None: look at them one by one."""
    data = b"".join((*(b.body for b in batches), bytes(_WINDOW)))
    counts = [b.records for b in batches]
    try:
        starts, ends = _bounds(data, batches)
        found = _fields(data, starts, ends)
    except _Odd:
        return None
    since, deltas = found.times_ms, found.offsets
    base, last = _spread([(b.base_offset, b.last_offset_delta) for b in batches], counts)
    first, stamp = _spread([(b.first_timestamp, _none(b.append_time)) for b in batches], counts)
    times = np.where(stamp == _NULL, first + since, stamp)  # a sum beyond 64 bits wraps, as in brokers and in clients
    offsets = base + deltas
    if (deltas < 0).any() or (deltas > last).any() or (np.diff(offsets) <= 0).any():
        return None
    return replace(found, offsets=offsets, times_ms=np.maximum(times, 0))


def number_texts(data: bytes, places: Places) -> Texts:
    """The texts at these places, each different one once. By Python's own hash, for which nobody can make texts that
    collide."""
    if (alike := _said_by_all(data, places)) is not None:
        return alike
    begin, size = places
    first: dict[bytes, int] = {}
    spans = zip(begin.tolist(), (begin + size).tolist(), strict=True)
    numbers = [first.setdefault(data[at:end], len(first)) if at <= end else _NULL for at, end in spans]
    return Texts(np.array(numbers, np.int64), list(first))


def bytes_at(data: bytes, begin: Ints, width: int) -> npt.NDArray[np.uint8]:
    """`width` bytes at each place, one row a record."""
    if not width:
        return np.empty((len(begin), 0), np.uint8)
    return np.lib.stride_tricks.sliding_window_view(np.frombuffer(data, np.uint8), width)[begin]


def _said_by_all(data: bytes, places: Places) -> Texts | None:
    """Where all say the same, which most headers do, there is nothing to be numbered."""
    begin, size = places
    if not len(size) or (size != size[0]).any():
        return None
    if size[0] < 0:
        return Texts(size, [])
    first, last = (data[at : at + size[0]] for at in (begin[0], begin[-1]))
    if first != last or (bytes_at(data, begin, size[0]) != np.frombuffer(first, np.uint8)).any():
        return None
    return Texts(np.zeros(len(size), np.int64), [first])


def _none(time: int | None) -> int:
    return _NULL if time is None else max(time, 0)


def _spread(values: Sequence[tuple[int, int]], counts: Sequence[int]) -> Any:
    """What is said of a batch, said of each of its records: two columns."""
    return np.repeat(np.array(values, np.int64).T, counts, axis=1)


def _bounds(data: bytes, batches: Sequence[BatchBody]) -> tuple[Ints, Ints]:
    """Where each record begins, behind its length, and where it ends. A record's length says where the next one is, so
    this is found step by step. Less than 1 MiB each."""
    ends: list[int] = []
    at = until = 0
    for batch in batches:
        until += len(batch.body)
        try:
            at = _follow(data, at, batch.records, ends)
        except IndexError:
            raise _Odd from None
        if at != until:
            raise _Odd
    end = np.array(ends, np.int64)
    lengths, start = _numbers(np.frombuffer(data, np.uint8), np.concatenate(([0], end[:-1])))
    if (lengths < 0).any() or (start + lengths != end).any():
        raise _Odd
    return start, end


def _follow(data: bytes, at: int, records: int, ends: list[int]) -> int:
    """Note the end of each record from `at` on, and return the last. In as few steps as there are: it is the one loop
    over all records. Raises `IndexError` behind the end."""
    note = ends.append
    for _ in range(records):
        size = data[at]
        if size < 0x80:
            at += 1 + (size >> 1)
        else:
            more = data[at + 1]
            if more < 0x80:
                at += 2 + ((size & 0x7F | more << 7) >> 1)
            else:
                at += 3 + ((size & 0x7F | (more & 0x7F) << 7 | data[at + 2] << 14) >> 1)
        note(at)
    return at


def _fields(data: bytes, starts: Ints, ends: Ints) -> RecordColumns:
    """With the times and offsets as they are written: since the first one of the batch."""
    text = np.frombuffer(data, np.uint8)
    since, at = _numbers(text, starts + 1)  # behind the attributes, of which there are none
    deltas, at = _numbers(text, at)
    keys, at = _bytes(text, at, ends)
    values, at = _bytes(text, at, ends)
    counts, at = _numbers(text, at)
    if len(counts) and not 0 <= counts.min() <= counts.max() <= _MOST_HEADERS:
        raise _Odd
    headers: list[Header] = []
    for n in range(int(counts.max(initial=0))):
        rows = np.flatnonzero(counts > n)
        names, behind = _bytes(text, at[rows], ends[rows])
        contents, behind = _bytes(text, behind, ends[rows])
        at[rows] = behind
        headers.append(Header(rows, names, contents))
    if (at != ends).any():
        raise _Odd
    return RecordColumns(data, deltas, since, keys, values, counts, headers)


def _bytes(text: npt.NDArray[np.uint8], at: Ints, ends: Ints) -> tuple[Places, Ints]:
    """A field that says its length, and what is behind it."""
    sizes, begin = _numbers(text, at)
    behind = begin + np.maximum(sizes, 0)
    # No sum of the two is beyond 64 bits: a number here has at most 63.
    if (sizes < _NULL).any() or (behind > ends).any():
        raise _Odd
    return Places(begin, sizes), behind


def _numbers(text: npt.NDArray[np.uint8], at: Ints) -> tuple[Ints, Ints]:
    """Numbers of variable length (zigzag), and the places behind them. Whoever calls looks whether these are still in
    the record; what would lie behind the text is read as its end."""
    byte = text.take(at, mode="clip").astype(np.int64)
    value, more, behind = byte & 0x7F, np.flatnonzero(byte & 0x80), at + 1
    bits = 7
    while len(more):
        if bits == 7 * _MOST_VARINT:
            raise _Odd
        byte = text.take(behind[more], mode="clip").astype(np.int64)
        value[more] |= (byte & 0x7F) << bits
        behind[more] += 1
        more, bits = more[byte >= 0x80], bits + 7
    return (value >> 1) ^ -(value & 1), behind
