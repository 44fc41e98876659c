"""One published waveform, as the table has it: its samples, what they mean, and where they come from."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from wavestitch.contracts.sample_types import as_sent, list_values


@dataclass(frozen=True)
class Provenance:
    """Where a waveform comes from. `topic_id`: the topic that its batch read. `chunks`: topic, partition, offset,
    length in bytes and SHA-256 of each, in order; what was held before may lie in another topic."""

    topic_id: str
    chunks: tuple[Mapping[str, Any], ...]
    plan_id: str
    digest: str


@dataclass(frozen=True)
class Waveform:
    """One recording of one channel without a break in time.

    `start`: of the first sample, UTC, whole microseconds; `start_ns`: ns since 1970, exact. `rate_hz`: samples a
    second. `units`: UCUM. `format`: what was sent, e.g. `i16le`.
    """

    id: str
    source: str
    channel: str
    start: datetime
    start_ns: int
    rate_hz: float
    units: str
    format: str
    gain: float
    baseline: float
    row: Mapping[str, Any]

    @cached_property
    def samples(self) -> npt.NDArray[Any]:
        """Raw, as recorded: shape (n,), the dtype of `format`, read-only. Its bytes are what the producer sent."""
        found = as_sent(list_values(self.row["samples"]), self.format)
        found.flags.writeable = False
        return found

    @cached_property
    def physical(self) -> npt.NDArray[np.float64]:
        """In `units`: shape (n,), float64, (sample - baseline) / gain. 64-bit integers beyond 2**53 are rounded."""
        return (self.samples.astype(np.float64) - self.baseline) / self.gain

    @cached_property
    def times(self) -> npt.NDArray[np.datetime64]:
        """Of each sample: shape (n,), datetime64[ns], UTC. Each is rounded by itself; no error adds up."""
        return (self.start_ns + ns_after(np.arange(len(self)), self.rate_hz)).view("datetime64[ns]")

    @cached_property
    def gaps(self) -> list[tuple[int, int]]:
        """Half-open ranges of samples that are no finite number; none of whole numbers."""
        if self.samples.dtype.kind != "f" or not self.row["nonfinite_count"]:
            return []
        missing = np.concatenate(([False], ~np.isfinite(self.samples), [False]))
        edges = np.flatnonzero(missing[1:] != missing[:-1])
        return [(int(a), int(b)) for a, b in edges.reshape(-1, 2)]

    @cached_property
    def metadata(self) -> dict[str, Any]:
        """All that the producer said (`ws-meta`), with keys that Wavestitch does not know."""
        found: dict[str, Any] = json.loads(self.row["meta"])
        return found

    @cached_property
    def provenance(self) -> Provenance:
        row = self.row
        return Provenance(row["topic_id"], tuple(row["chunks"]), row["plan_id"], row["digest"])

    @property
    def end_ns(self) -> int:
        """Time of the sample that would come next, ns since 1970."""
        return self.start_ns + int(ns_after(len(self), self.rate_hz))

    def __len__(self) -> int:
        return int(self.row["sample_count"])

    def __repr__(self) -> str:
        return f"<Waveform {self.id!r}: {len(self)} samples of {self.source!r} {self.channel!r} from {self.start}>"


def ns_after(samples: npt.ArrayLike, rate_hz: float) -> npt.NDArray[np.int64]:
    """How long after the first sample the one with this number is, in whole nanoseconds: the one place that rounds."""
    return np.round(np.asarray(samples) * 1e9 / rate_hz).astype(np.int64)


def waveform_of(row: Mapping[str, Any]) -> Waveform:
    """Of a row with all columns; its samples as Arrow has them."""
    return Waveform(
        id=row["waveform_id"],
        source=row["source"],
        channel=row["channel"],
        start=row["start_time"],
        start_ns=row["start_time_ns"],
        rate_hz=row["sampling_rate_hz"],
        units=row["units"],
        format=row["sample_format"],
        gain=row["adc_gain"],
        baseline=row["baseline"],
        row=row,
    )
