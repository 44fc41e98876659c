"""Many records at once: chunks as nearly all are, in columns.

Decides nothing that `parse_chunk` does not: it says the same of every record of a run, or nothing of any of them. What
is said by all chunks of a waveform alike is looked at once; CRC and digest are of every record. Pure.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain, repeat
from operator import mod
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
    if None in values or None in contents or list(map(len, claims)) != list(map(len, headers)):
        return None
    said = {name: [*map(dict.get, claims, repeat(name))] for name in _READ}
    raw_seqs: list[Any] = said[H_SEQ]
    raw_crcs, raw_metas = said[H_CRC], said[H_META]
    if said[H_VERSION].count(VERSION) != len(claims) or any(
        None in column for column in (raw_seqs, raw_crcs, raw_metas)
    ):
        return None
    whose = (keys, said[H_ID], said[H_COUNT], raw_metas, said[H_DIGEST])
    # Whatever is remembered is small.
    longest = sum(max([len(text) for text in column if text], default=0) for column in whose)
    if longest > MOST_SHARED or max(map(len, raw_seqs)) > MOST_DIGITS:
        return None
    shared = list(map(shared_claims, *whose))
    seqs: list[Any] = list(map(sequence_number, raw_seqs))
    if None in shared or None in seqs:
        return None
    ids, counts, metas, digests, sample_bytes, heads, tails, begun = zip(*shared, strict=True)
    if any(count is not None and seq >= count for seq, count in zip(seqs, counts, strict=True)):
        return None
    lengths = [len(value or b"") for value in values]
    if 0 in lengths or any(map(mod, lengths, sample_bytes)):
        return None
    crcs, pieces = _of_bytes(values, raw_seqs, heads, tails, begun)
    if [b"%08x" % crc for crc in crcs] != raw_crcs:
        return None
    named = len("".join(chain.from_iterable(claims)).encode()) + HEADER_OVERHEAD * len(contents)
    aside = named + sum(len(key or b"") for key in keys) + sum(map(len, contents))
    return ChunkColumns(ids, seqs, counts, crcs, lengths, metas, digests, pieces, aside)


def _of_bytes(
    values: Sequence[Any], raw_seqs: Sequence[bytes], heads: Sequence[bytes], tails: Sequence[bytes], begun: Any
) -> tuple[list[int], list[bytes]]:
    """CRC and digest of every chunk."""
    crcs, pieces = [], []
    for value, raw_seq, head, tail, digest in zip(values, raw_seqs, heads, tails, begun, strict=True):
        crcs.append(crc32(value, crc32(b"%b%b%b" % (head, raw_seq, tail))) & 0xFFFFFFFF)
        whole = digest.copy()
        whole.update(value)
        pieces.append(whole.digest())
    return crcs, pieces
