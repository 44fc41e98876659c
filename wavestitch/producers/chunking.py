"""Cuts a recording into the chunks that carry it: whole samples, in order, numbered, checked, the last one digested.

Pure: nothing is sent here, and no sample is copied (the values are views of the recording). Keeps I3 from the
producer's side: what comes out parses as valid chunks, and joins to exactly what went in.
"""

from __future__ import annotations

from dataclasses import dataclass

import xxhash

from wavestitch.contracts.chunk_header import H_ID, MAX_CHUNKS, encode_headers
from wavestitch.contracts.chunk_proof import NO_PROOF, ChunkProof
from wavestitch.contracts.errors import BadInput
from wavestitch.contracts.stream import Limits
from wavestitch.producers.recording import Recording

DEFAULT_LIMITS = Limits()


@dataclass(frozen=True, slots=True)
class ChunkRecord:
    """One Kafka record to be. `key` is None where the id travels in `ws-id`; `value` is a view of the samples."""

    waveform_id: str
    key: bytes | None
    value: memoryview
    headers: tuple[tuple[str, bytes], ...]


def cut_recording(
    recording: Recording,
    chunk_bytes: int,
    *,
    keyed: bool = True,
    limits: Limits = DEFAULT_LIMITS,
    proof: ChunkProof = NO_PROOF,
) -> list[ChunkRecord]:
    """The chunks of `recording`, each of at most `chunk_bytes` bytes (rounded down to whole samples), in order.

    All carry `ws-count`, the last one `ws-digest` (XXH3-128 of all values in order). With `keyed` false the key is
    None and the id is a header. `proof`: what the stream demands of each.
    Raises `BadInput` for a chunk smaller than a sample, for a waveform over
    `limits.max_waveform_bytes`, and for more chunks than `limits.max_chunks`.
    """
    total = len(recording.samples)
    sample_bytes = recording.metadata.sample_bytes
    piece = chunk_bytes - chunk_bytes % sample_bytes
    if piece < sample_bytes:
        raise BadInput(
            f"chunks of {chunk_bytes} bytes cannot hold a sample of {sample_bytes} bytes; choose at least that"
        )
    if total > limits.max_waveform_bytes:
        raise BadInput(
            f"recording {recording.waveform_id} has {total} bytes; the stream allows {limits.max_waveform_bytes} "
            "(max_waveform_bytes): cut it into shorter recordings"
        )
    count = -(-total // piece)
    most = min(limits.max_chunks, MAX_CHUNKS)
    if count > most:
        raise BadInput(
            f"recording {recording.waveform_id} would be {count} chunks of {piece} bytes; allowed are {most}: "
            "choose larger chunks or shorter recordings"
        )
    digest = xxhash.xxh3_128_hexdigest(recording.samples)
    raw_id = recording.waveform_id.encode()
    view = memoryview(recording.samples)
    records = []
    for seq in range(count):
        value = view[seq * piece : (seq + 1) * piece]
        headers = encode_headers(
            waveform_id=recording.waveform_id,
            seq=seq,
            count=count,
            meta=recording.meta,
            value=value,
            digest=digest if seq == count - 1 else None,
            proof=proof,
        )
        if not keyed:
            headers.append((H_ID, raw_id))
        records.append(ChunkRecord(recording.waveform_id, raw_id if keyed else None, value, tuple(headers)))
    return records
