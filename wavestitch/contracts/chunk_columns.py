"""Many records at once: chunks as nearly all are, in columns.

Decides nothing that `parse_chunk` does not: it says the same of every record of a run, or nothing of any of them. What
is said by all chunks of a waveform alike is looked at once; CRC and digest are of every record. Pure.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain, repeat
from operator import mod
from struct import pack
from typing import Any, NamedTuple

from wavestitch.contracts.chunk_header import (
    H_COUNT,
    H_CRC,
    H_DIGEST,
    H_ID,
    H_META,
    H_SEQ,
    H_VERSION,
    MOST_DIGITS,
    MOST_SHARED,
    VERSION,
    RecordHeaders,
    crc32,
    sequence_number,
    shared_claims,
)
from wavestitch.contracts.raw_headers import HEADER_OVERHEAD

_READ = (H_VERSION, H_ID, H_SEQ, H_COUNT, H_CRC, H_META, H_DIGEST)


class ChunkColumns(NamedTuple):
    """The fields of `Chunk`, each of all records in their order. `aside`: bytes of all keys and headers, as
    `kept_bytes` counts them."""

    waveform_ids: Sequence[str]
    seqs: Sequence[int]
    counts: Sequence[int | None]
    crcs: Sequence[int]
    lengths: Sequence[int]
    metas: Sequence[str]
    digests: Sequence[str | None]
    pieces: Sequence[bytes]
    aside: int


def parse_chunks(
    keys: Sequence[bytes | None], headers: Sequence[RecordHeaders], values: Sequence[bytes | None]
) -> ChunkColumns | None:
    """The chunks that these records are, without proofs beside the CRC; None: perhaps one of them is none. Then
    `parse_chunk` says of each what it is."""
    claims: list[dict[str, Any]] = list(map(dict, headers))
    contents = list(chain.from_iterable(map(dict.values, claims)))
    said: dict[str, list[Any]] = {name: [*map(dict.get, claims, repeat(name))] for name in _READ}
    whose = (keys, said[H_ID], said[H_COUNT], said[H_META], said[H_DIGEST])
    try:
        # What is null has no length.
        lengths: list[int] = list(map(len, values))  # type: ignore[arg-type]
        size = sum(map(len, contents)) + sum(map(len, filter(None, keys)))
        longest_seq, crc_sizes, _ = max(map(len, said[H_SEQ])), {*map(len, said[H_CRC])}, max(map(len, said[H_META]))
    except TypeError:
        return None
    # Whatever is remembered is small.
    longest = sum(max(map(len, filter(None, column)), default=0) for column in whose)
    twice = len(contents) < sum(map(len, headers))
    if twice or longest > MOST_SHARED or longest_seq > MOST_DIGITS or crc_sizes != {8}:
        return None
    shared = list(map(shared_claims, *whose)) if said[H_VERSION].count(VERSION) == len(claims) else [None]
    seqs: list[Any] = list(map(sequence_number, said[H_SEQ]))
    if None in shared or None in seqs:
        return None
    ids, counts, metas, digests, sample_bytes, heads, tails, begun = zip(*shared, strict=True)
    if any(count is not None and seq >= count for seq, count in zip(seqs, counts, strict=True)):
        return None
    if 0 in lengths or any(map(mod, lengths, sample_bytes)):
        return None
    crcs = _crcs(values, said[H_SEQ], heads, tails)
    if pack(f">{len(crcs)}I", *crcs).hex().encode() != b"".join(said[H_CRC]):
        return None
    named = len("".join(chain.from_iterable(claims)).encode()) + HEADER_OVERHEAD * len(contents)
    return ChunkColumns(ids, seqs, counts, crcs, lengths, metas, digests, _pieces(values, begun), named + size)


def _crcs(values: Sequence[Any], raw_seqs: Sequence[bytes], heads: Sequence[int], tails: Sequence[bytes]) -> list[int]:
    # Of small records one call over what was put together costs less than two.
    parts = zip(raw_seqs, tails, values, strict=True)
    return [crc32(b"".join(part), head) & 0xFFFFFFFF for part, head in zip(parts, heads, strict=True)]


def _pieces(values: Sequence[Any], begun: Sequence[Any]) -> list[bytes]:
    digests = [digest.copy() for digest in begun]
    for digest, value in zip(digests, values, strict=True):
        digest.update(value)
    return [digest.digest() for digest in digests]
