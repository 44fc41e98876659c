"""What the demo sends, and when. Pure: recordings and chunks in, two deliveries a stream out.

The first delivery leaves things open: recordings that straddle its end, a chunk that comes late, a corrupted one, one
that is sent twice, and one that is sent twice with other bytes. The second heals what can be healed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from wavestitch.contracts.chunk_header import encode_headers
from wavestitch.producers.chunking import ChunkRecord, cut_recording
from wavestitch.producers.recording import Recording


@dataclass(frozen=True, slots=True)
class Story:
    """Two deliveries, and what must have been published after both: waveform id -> raw samples."""

    first: list[ChunkRecord]
    second: list[ChunkRecord]
    published: dict[str, bytes]


def tell_ecg(recordings: Sequence[Recording], *, chunk_bytes: int) -> Story:
    """Ten recordings of which one ends as a conflict."""
    cut = [cut_recording(r, chunk_bytes) for r in recordings]
    *plain, straddling, late, corrupted, conflicting = cut
    first = [chunk for chunks in plain for chunk in chunks]
    first.insert(3, first[2])  # sent twice: a duplicate
    first += straddling[: len(straddling) // 2]
    first += [c for i, c in enumerate(late) if i != 2]
    first += [_flipped(c) if i == 1 else c for i, c in enumerate(corrupted)]
    first += [*conflicting, _rewritten(conflicting[1], recordings[-1], seq=1, count=len(conflicting))]
    second = [*straddling[len(straddling) // 2 :], late[2], corrupted[1]]
    published = {r.waveform_id: bytes(r.samples) for r in recordings[:-1]}
    return Story(first, second, published)


def tell_seismic(recordings: Sequence[Recording], *, chunk_bytes: int) -> Story:
    """Every channel in several recordings; the last of each straddles the end of the first batch."""
    cut = [cut_recording(r, chunk_bytes) for r in recordings]
    *plain, a, b, c = cut
    first = [chunk for chunks in plain for chunk in chunks]
    second: list[ChunkRecord] = []
    for chunks in (a, b, c):
        first += chunks[: len(chunks) // 2]
        second += chunks[len(chunks) // 2 :]
    return Story(first, second, {r.waveform_id: bytes(r.samples) for r in recordings})


def _flipped(chunk: ChunkRecord) -> ChunkRecord:
    """One bit of the value flipped on its way, the headers as they were."""
    value = bytearray(chunk.value)
    value[0] ^= 1
    return replace(chunk, value=memoryview(bytes(value)))


def _rewritten(chunk: ChunkRecord, recording: Recording, *, seq: int, count: int) -> ChunkRecord:
    """The same place with other bytes, and headers that prove them: two truths about one chunk."""
    value = bytes(len(chunk.value))
    headers = encode_headers(
        waveform_id=recording.waveform_id, seq=seq, count=count, meta=recording.meta, value=value, digest=None
    )
    return replace(chunk, value=memoryview(value), headers=tuple(headers))
