"""A recording: what a producer has before it is cut into chunks, with its metadata in one canonical text.

Decides how `ws-meta` is spelled: sorted keys, no blanks, ASCII, whole numbers without a fraction. The same facts
always give the same bytes, so that a recording sent twice is a replay and not a conflict. Never does I/O.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from wavestitch.contracts.chunk_header import MAX_ID_BYTES, MAX_META_BYTES
from wavestitch.contracts.chunk_metadata import Metadata, parse_metadata
from wavestitch.contracts.errors import BadInput

_EXACT_INT = 1 << 53
"""Up to here every whole float is the integer it looks like."""


@dataclass(frozen=True, slots=True)
class Recording:
    """One waveform, whole. `meta` is the exact text of `ws-meta`, `samples` raw little-endian bytes.

    Raises `BadInput` where the three could not make valid chunks: id not of 1 to 256 bytes of UTF-8, metadata that
    the contract refuses or that are too long, samples that are empty, not whole or not as many as `sample_count`.
    """

    waveform_id: str
    meta: str
    samples: bytes

    def __post_init__(self) -> None:
        _check_id(self.waveform_id)
        found = parse_metadata(self.meta)
        if isinstance(found, str):
            raise BadInput(f"recording {self.waveform_id}: {found}")
        if len(self.meta.encode()) > MAX_META_BYTES:
            raise BadInput(
                f"recording {self.waveform_id}: its metadata take {len(self.meta.encode())} bytes; "
                f"allowed are {MAX_META_BYTES}, drop some of the further keys"
            )
        count, rest = divmod(len(self.samples), found.sample_bytes)
        if rest or not count:
            raise BadInput(
                f"recording {self.waveform_id}: {len(self.samples)} bytes of samples; "
                f"it needs at least one, and whole samples of {found.sample_bytes} bytes ({found.sample_format})"
            )
        if found.sample_count not in (None, count):
            raise BadInput(f"recording {self.waveform_id}: {count} samples, but its metadata say {found.sample_count}")

    @property
    def metadata(self) -> Metadata:
        """The interpreted part of `meta`."""
        found = parse_metadata(self.meta)
        assert isinstance(found, Metadata), "checked when the recording was made"
        return found

    @property
    def sample_count(self) -> int:
        return len(self.samples) // self.metadata.sample_bytes


def make_recording(
    *,
    waveform_id: str,
    source: str,
    channel: str,
    start_time_ns: int,
    sampling_rate_hz: float,
    sample_format: str,
    units: str,
    adc_gain: float,
    baseline: float,
    samples: bytes,
    further: Mapping[str, Any] | None = None,
) -> Recording:
    """A recording with canonical metadata; `sample_count` is counted, `further` keys are kept as they are.

    `start_time_ns`: of the first sample, ns since 1970 UTC. `sampling_rate_hz` in Hz, `adc_gain` in counts per unit,
    `baseline` in counts: physical = (sample - baseline) / adc_gain. `samples`: raw bytes in `sample_format`.
    Raises `BadInput` (see `Recording`), also for a further key that the contract already uses or is not JSON.
    """
    fields: dict[str, Any] = {
        "source": source,
        "channel": channel,
        "start_time_ns": start_time_ns,
        "sampling_rate_hz": _shortest(sampling_rate_hz),
        "sample_format": sample_format,
        "units": units,
        "adc_gain": _shortest(adc_gain),
        "baseline": _shortest(baseline),
    }
    probe = parse_metadata(json.dumps(fields))
    if isinstance(probe, str):
        raise BadInput(f"recording {waveform_id}: {probe}")
    fields["sample_count"] = len(samples) // probe.sample_bytes
    taken = sorted(fields.keys() & (further or {}).keys())
    if taken:
        raise BadInput(f"recording {waveform_id}: further keys {', '.join(taken)} are the contract's own; rename them")
    return Recording(waveform_id, canonical_json({**fields, **(further or {})}, waveform_id=waveform_id), samples)


def canonical_json(fields: Mapping[str, Any], *, waveform_id: str) -> str:
    """One spelling of `fields`: sorted, compact, ASCII. Raises `BadInput` for what JSON cannot say (NaN, bytes)."""
    try:
        return json.dumps(fields, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise BadInput(f"recording {waveform_id}: its metadata are not JSON: {error}") from None


def _shortest(number: float) -> float | int:
    """360.0 and 360 must not be two texts for one rate."""
    return int(number) if isinstance(number, float) and number.is_integer() and abs(number) < _EXACT_INT else number


def _check_id(waveform_id: str) -> None:
    try:
        length = len(waveform_id.encode())
    except UnicodeEncodeError:
        raise BadInput(f"waveform id {ascii(waveform_id)[:120]} is not valid Unicode text") from None
    if not 1 <= length <= MAX_ID_BYTES:
        raise BadInput(f"waveform id {waveform_id[:40]!r} has {length} bytes; allowed are 1 to {MAX_ID_BYTES}")
