"""Many records at once: chunks as nearly all are, in columns.

Decides nothing that `parse_chunk` does not: of each record it says the same, or nothing. What all chunks of a waveform
say alike is looked at once; CRC and digest are of every record. Pure.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import reduce
from itertools import compress
from operator import attrgetter
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from wavestitch.contracts.chunk_header import (
    H_COUNT,
    H_CRC,
    H_DIGEST,
    H_ID,
    H_META,
    H_SEQ,
    H_VERSION,
    KNOWN,
    MAX_CHUNKS,
    MAX_META_BYTES,
    MOST_DIGITS,
    MOST_SHARED,
    VERSION,
    SharedClaims,
    claims_with,
    crc32,
    is_digest,
    sequence_number,
)
from wavestitch.contracts.metadata_columns import read_texts
from wavestitch.contracts.raw_headers import HEADER_OVERHEAD
from wavestitch.contracts.record_columns import Ints, Places, RecordColumns, bytes_at, number_texts

_CLAIMS = {n.encode(): n for n in KNOWN}
_CRC_DIGITS = 8
_MOST_BESIDE = MOST_SHARED - MAX_META_BYTES
_NEVER = SharedClaims("", -1, "", 1, 0, b"", None)
"""In the place of what is no chunk's: a count that no sequence number is below."""

Mask = npt.NDArray[np.bool_]


class ChunkColumns(NamedTuple):
    """The fields of `Chunk`, each of all records in their order."""

    waveform_ids: Sequence[str]
    seqs: Sequence[int]
    counts: Sequence[int | None]
    crcs: Sequence[int]
    lengths: Sequence[int]
    metas: Sequence[str]
    digests: Sequence[str | None]
    pieces: Sequence[bytes]

    def part(self, some: slice) -> ChunkColumns:
        return ChunkColumns._make(column[some] for column in self)


class FoundChunks(NamedTuple):
    """`plain`: which records are chunks, as nearly all are; of the others `parse_chunk` says what they are. All else is
    of these alone: `aside`, bytes of key and headers as `kept_bytes` counts them; `values`, where the bytes lie."""

    plain: Mask
    chunks: ChunkColumns
    aside: Ints
    values: list[memoryview]


def parse_chunks(records: RecordColumns) -> FoundChunks:
    """The chunks among these records, without proofs beside the CRC."""
    claims, plain = _claims_of(records)
    shared, whose = _shared_of(records, claims)
    versions, seqs, digests = (number_texts(records.data, claims[n]) for n in (H_VERSION, H_SEQ, H_DIGEST))
    # Of null the number is -1: the last one.
    said_seqs = [*(_sequence_number(raw) for raw in seqs.said), -1]
    seq = np.array(said_seqs, np.int64)[seqs.numbers]
    below = np.array([_limit(s) for s in shared], np.int64)[whose]
    sample_bytes = np.array([s.sample_bytes for s in shared], np.int64)[whose]
    length = records.values.size
    plain &= np.array([*(raw == VERSION for raw in versions.said), False])[versions.numbers]
    plain &= np.array([*map(is_digest, digests.said), True])[digests.numbers]
    plain &= (
        (claims[H_CRC].size == _CRC_DIGITS) & (seq >= 0) & (seq < below) & (length > 0) & (length % sample_bytes == 0)
    )
    rows = np.flatnonzero(plain)
    values = _values(records, rows)
    by_record = [shared[n] for n in whose[rows].tolist()]
    raw_seqs = [seqs.said[n] for n in seqs.numbers[rows].tolist()]
    raw_digests = [*digests.said, b""]
    found = _crcs(values, raw_seqs, by_record, [raw_digests[n] for n in digests.numbers[rows].tolist()])
    said = bytes_at(records.data, claims[H_CRC].begin[rows], _CRC_DIGITS)
    right = (said == _digits(found)).all(axis=1)
    if not right.all():
        plain[rows] &= right
        rows = rows[right]
        by_record, values, found = (list(compress(column, right)) for column in (by_record, values, found))
    said_digests = [*(raw.decode("latin-1") for raw in digests.said), None]
    chunks = ChunkColumns(
        [s.waveform_id for s in by_record],
        seq[rows].tolist(),
        [s.count for s in by_record],
        found,
        length[rows].tolist(),
        [s.meta for s in by_record],
        [said_digests[n] for n in digests.numbers[rows].tolist()],
        _pieces(values, by_record),
    )
    return FoundChunks(plain, chunks, _aside(records)[rows], values)


def _claims_of(records: RecordColumns) -> tuple[dict[str, Places], Mask]:
    """Where what each header of the contract says lies, and which records have none of them null or twice."""
    plain = np.ones(len(records), np.bool_)
    found = {n: Places(np.zeros(len(records), np.int64), np.full(len(records), -1)) for n in _CLAIMS.values()}
    for rows, name_places, contents in records.headers:
        names = number_texts(records.data, name_places)
        plain[rows] &= np.array([*map(_is_text, names.said), False])[names.numbers]
        for number, name in _known_of(names.said):
            which = np.flatnonzero(names.numbers == number)
            begin, size = found[name]
            plain[rows[which]] &= (size[rows[which]] < 0) & (contents.size[which] >= 0)
            begin[rows[which]], size[rows[which]] = contents.at(which)
    return found, plain


def _known_of(names: Sequence[bytes]) -> Iterator[tuple[int, str]]:
    """Those that the contract has: however many others there are, these are few."""
    for number, raw in enumerate(names):
        if (name := _CLAIMS.get(raw)) is not None:
            yield number, name


def _is_text(raw: bytes) -> bool:
    try:
        raw.decode()
    except UnicodeDecodeError:
        return False
    return True


def _shared_of(records: RecordColumns, claims: dict[str, Places]) -> tuple[list[SharedClaims], Ints]:
    """What the chunks of a waveform say alike, each once, and which of that each record says."""
    places = (records.keys, *(claims[n] for n in (H_ID, H_COUNT, H_META)))
    texts = [number_texts(records.data, p) for p in places]
    # Neighbours say the same more often than not: only where something changes it is looked up.
    changes = reduce(np.logical_or, (np.diff(t.numbers, prepend=-2) != 0 for t in texts))
    numbers = zip(*(t.numbers[changes].tolist() for t in texts), strict=True)
    first: dict[tuple[int, ...], int] = {}
    heads = [first.setdefault(said, len(first)) for said in numbers]
    ids, headers, counts, raw_metas = ([*t.said, None] for t in texts)
    metas, sample_bytes = _metadata_of(texts[-1].said)
    shared = [_shared(ids[i], headers[h], counts[c], raw_metas[m], metas[m], sample_bytes[m]) for i, h, c, m in first]
    return shared, np.array(heads, np.int64)[np.cumsum(changes) - 1]


def _metadata_of(raw: Sequence[bytes]) -> tuple[list[str], list[int]]:
    """Of each the text, and the bytes of a sample: 0 where it is none that a reader lets through. And of none."""
    read = [one if len(one) <= MAX_META_BYTES else b"" for one in raw]
    bounds = np.concatenate(([0], np.cumsum([len(one) for one in read], dtype=np.int64)))
    found = read_texts(np.frombuffer(b"".join(read), np.uint8), bounds)
    sample_bytes = found.of_each(attrgetter("sample_bytes"), np.int64).tolist()
    texts = [one.decode() if size else "" for one, size in zip(read, sample_bytes, strict=True)]
    return [*texts, ""], [*sample_bytes, 0]


def _shared(
    key: bytes | None,
    header: bytes | None,
    count: bytes | None,
    raw_meta: bytes | None,
    meta: str,
    sample_bytes: int,
) -> SharedClaims:
    # Whatever is remembered is small.
    if not sample_bytes or raw_meta is None or len(key or b"") + len(header or b"") + len(count or b"") > _MOST_BESIDE:
        return _NEVER
    return claims_with(key, header, count, raw_meta, meta=meta, sample_bytes=sample_bytes) or _NEVER


def _sequence_number(raw: bytes) -> int:
    found = sequence_number(raw) if len(raw) <= MOST_DIGITS else None
    return -1 if found is None else found


def _limit(said: SharedClaims) -> int:
    return MAX_CHUNKS if said.count is None else said.count


def _values(records: RecordColumns, rows: Ints) -> list[memoryview]:
    begin, size = records.values.at(rows)
    whole = memoryview(records.data)
    return [whole[at:end] for at, end in zip(begin.tolist(), (begin + size).tolist(), strict=True)]


def _crcs(
    values: Sequence[Any], seqs: Sequence[bytes], shared: Sequence[SharedClaims], digests: Sequence[bytes]
) -> list[int]:
    said = zip(values, seqs, shared, digests, strict=True)
    return [crc32(value, crc32(b"%b%b%b\0" % (seq, s.tail, digest), s.head)) for value, seq, s, digest in said]


def _digits(crcs: Sequence[int]) -> Any:
    """As `ws-crc` has them."""
    text = np.array(crcs, ">u4").tobytes().hex().encode()
    return np.frombuffer(text, np.uint8).reshape(-1, _CRC_DIGITS)


def _pieces(values: Sequence[Any], shared: Sequence[SharedClaims]) -> list[bytes]:
    digests = [said.begun.copy() for said in shared]
    for digest, value in zip(digests, values, strict=True):
        digest.update(value)
    return [digest.digest() for digest in digests]


def _aside(records: RecordColumns) -> Ints:
    size = np.maximum(records.keys.size, 0) + HEADER_OVERHEAD * records.header_counts
    for rows, names, contents in records.headers:
        size[rows] += names.size + np.maximum(contents.size, 0)
    return size
