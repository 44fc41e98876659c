"""Reads miniSEED (version 2 and 3) as recordings: records that follow each other are joined, a gap begins a new one.

Joining is the format's own library's: a record continues the one before it where its time is off by less than half a
sample, whatever the order in the file. Samples are taken as they are, in counts; a physical scale is not part of the
format.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import pymseed

from wavestitch.contracts.chunk_metadata import MAX_TIME_NS
from wavestitch.contracts.errors import BadInput
from wavestitch.producers.recording import Recording, make_recording
from wavestitch.producers.recording_spans import cut_spans, sample_time_ns

_FORMATS = {"i": ("i32le", "<i4"), "f": ("f32le", "<f4"), "d": ("f64le", "<f8")}
_SID = "FDSN:"


@dataclass(frozen=True, slots=True)
class Segment:
    """One run of samples without a gap. `start_time_ns`: of the first sample, ns since 1970 UTC."""

    source_id: str
    start_time_ns: int
    sampling_rate_hz: float
    sample_format: str
    sample_bytes: int
    samples: bytes


def read_miniseed(path: Path, *, seconds_per_recording: float, start_time_ns: int | None = None) -> list[Recording]:
    """The file's recordings, by channel and time. Ids are source identifier and start: `IU_COLA_00_B_H_Z-2010…Z`.

    `start_time_ns` moves the whole file so that its earliest sample is there; the time that the file says is then
    kept as the further key `recorded_start_time_ns`. Units are `{count}`, gain 1, baseline 0. Raises `BadInput` for
    a file that cannot be read, holds no samples, or holds the same channel and time twice.
    """
    segments = read_segments(path)
    shift = 0 if start_time_ns is None else start_time_ns - min(s.start_time_ns for s in segments)
    recordings = [
        recording
        for segment in segments
        for recording in _cut_segment(
            segment, seconds=seconds_per_recording, shift_ns=shift, moved=start_time_ns is not None
        )
    ]
    twice = [name for name, times in Counter(r.waveform_id for r in recordings).items() if times > 1]
    if twice:
        raise BadInput(
            f"{path}: {len(twice)} recordings would have the same channel and start, the first is {twice[0]}; "
            "the file overlaps itself, remove what it holds twice"
        )
    return recordings


def read_segments(path: Path) -> list[Segment]:
    """All runs of samples in the file, by source identifier and time; never empty. Raises `BadInput`."""
    try:
        # The trace list passes over a record that the file ends in the middle of; reading record by record does not.
        for _ in pymseed.MS3Record.from_file(path):
            pass
        with pymseed.MS3TraceList.from_file(path, unpack_data=True) as traces:
            segments = [_segment(trace.sourceid, part, path) for trace in traces for part in trace if part.numsamples]
    except (pymseed.PymseedError, OSError, ValueError) as error:
        raise BadInput(f"{path} cannot be read as miniSEED: {error}") from None
    if not segments:
        raise BadInput(f"{path}: there are no samples in it")
    return segments


def _segment(source_id: str, part: pymseed.MS3TraceSeg, path: Path) -> Segment:
    known = _FORMATS.get(part.sampletype)
    if known is None:
        raise BadInput(f"{path}: {source_id} holds samples of type {part.sampletype!r}; known are {' '.join(_FORMATS)}")
    sample_format, dtype = known
    values = part.np_datasamples.astype(dtype)
    return Segment(source_id, part.starttime, part.samprate, sample_format, values.itemsize, values.tobytes())


def _cut_segment(segment: Segment, *, seconds: float, shift_ns: int, moved: bool) -> list[Recording]:
    rate, width = segment.sampling_rate_hz, segment.sample_bytes
    recordings = []
    for start, end in cut_spans(len(segment.samples) // width, sampling_rate_hz=rate, seconds=seconds):
        recorded = sample_time_ns(segment.start_time_ns, start, sampling_rate_hz=rate)
        at = recorded + shift_ns
        recordings.append(
            make_recording(
                waveform_id=f"{segment.source_id.removeprefix(_SID)}-{_compact_time(at)}",
                source=segment.source_id,
                channel="_".join(segment.source_id.split("_")[-3:]),
                start_time_ns=at,
                sampling_rate_hz=rate,
                sample_format=segment.sample_format,
                units="{count}",
                adc_gain=1,
                baseline=0,
                samples=segment.samples[start * width : end * width],
                further={"recorded_start_time_ns": recorded} if moved else None,
            )
        )
    return recordings


def _compact_time(time_ns: int) -> str:
    """ISO 8601 basic format with nanoseconds, e.g. 20100227T065000.019539000Z."""
    if abs(time_ns) > MAX_TIME_NS:
        raise BadInput(f"a start time of {time_ns} ns; allowed is up to {MAX_TIME_NS} ns before or after 1970")
    seconds, rest = divmod(time_ns, 1_000_000_000)
    return f"{datetime.fromtimestamp(seconds, UTC):%Y%m%dT%H%M%S}.{rest:09d}Z"
