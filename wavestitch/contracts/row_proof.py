"""Whether a published row still says what was sent: each column against the bytes or metadata that it was made of.

A row carries its own proof. The digest is that of its samples as they came; the SHA-256 of each chunk is over the
metadata and that chunk's bytes, so that metadata and samples prove each other; and what other columns say is in the
metadata, or follows from the samples. Pure. Keeps I3.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import xxhash

from wavestitch.contracts.chunk_header import piece_digest
from wavestitch.contracts.chunk_metadata import Metadata, parse_metadata
from wavestitch.contracts.sample_metrics import measure_waveform

FROM_METADATA: Mapping[str, Callable[[Metadata, int], Any]] = {
    "source": lambda said, _: said.source,
    "channel": lambda said, _: said.channel,
    "start_time": lambda said, _: said.start_time_ns // 1000,
    "start_time_ns": lambda said, _: said.start_time_ns,
    "end_time": lambda said, count: said.end_time_ns(count) // 1000,
    "sampling_rate_hz": lambda said, _: said.sampling_rate_hz,
    "sample_format": lambda said, _: said.sample_format,
    "units": lambda said, _: said.units,
    "adc_gain": lambda said, _: said.adc_gain,
    "baseline": lambda said, _: said.baseline,
}
"""Columns that say what the metadata say, of a waveform of so many samples. Times in microseconds, but `_ns`."""
PROVEN = (
    *("waveform_id", "sample_count", "meta", "digest", "nonfinite_count", "chunk_count", "chunks"),
    *("sample_min", "sample_max", *FROM_METADATA),
)
"""What `row_problem` looks at, and whose row it is."""
MAY_LACK = ("sample_min", "sample_max")


def row_problem(row: Mapping[str, Any], sent: memoryview, count: int) -> str:
    """What is wrong with a row whose `count` samples were sent as `sent`; empty where nothing is. Names no sample.

    `row` has the columns of `PROVEN`, times as whole microseconds, chunks as a list of dictionaries.
    """
    if not count:
        return "has no samples, of which every waveform has one at least"
    if count != row["sample_count"]:
        return f"has {count} samples, sample_count says {row['sample_count']}"
    if (seen := xxhash.xxh3_128_hexdigest(sent)) != row["digest"]:
        return f"digest says {row['digest']}, its samples give {seen}"
    said = parse_metadata(row["meta"])
    if isinstance(said, str):
        return f"its metadata are none that were sent: {said}"
    for name, of in FROM_METADATA.items():
        if row[name] != of(said, count):
            return f"{name} is {row[name]!r}, its metadata give {of(said, count)!r}"
    return _measured_otherwise(row, sent) or _pieces_otherwise(row, sent)


def _measured_otherwise(row: Mapping[str, Any], sent: memoryview) -> str:
    found = measure_waveform(sent, row["sample_format"])
    named = ("sample_min", "sample_max", "nonfinite_count")
    wrong = [name for name, seen in zip(named, found, strict=True) if row[name] != seen]
    return f"{', '.join(wrong)} are not those of its samples" if wrong else ""


def _pieces_otherwise(row: Mapping[str, Any], sent: memoryview) -> str:
    chunks, claims, at = row["chunks"], row["meta"].encode(), 0
    for n, chunk in enumerate(chunks):
        if piece_digest(claims, sent[at : at + chunk["length"]]) != chunk["piece"]:
            return f"chunk {n} was another: its SHA-256 is not that of the metadata and its samples"
        at += chunk["length"]
    if at != len(sent) or len(chunks) != row["chunk_count"]:
        has, says = f"its {len(chunks)} chunks have {at} bytes", f"chunk_count says {row['chunk_count']}"
        return f"{has}; {says}, its samples are {len(sent)} bytes"
    return ""
