"""What the pages of waveforms say, for programs and for their own script: plain values. Pure.

Numbers that JSON's readers would round (samples of 64 bits, nanoseconds) are texts; a sample that is no number is None.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from wavestitch.contracts.chunk_metadata import SAMPLE_BYTES
from wavestitch.contracts.partial_waveform import Gap, PartialWaveform, PlacedChunk
from wavestitch.reading.waveform_view import View, chunk_bounds, physical, physical_extremes
from wavestitch.tables.lookup.paged_rows import PageOfRows, Place

CHUNKS_SHOWN = 100
_SEAMS_SHOWN = 500
_LISTED = (
    *("waveform_id", "source", "channel", "sampling_rate_hz", "sample_count", "sample_format", "units"),
    *("adc_gain", "baseline", "nonfinite_count", "chunk_count", "digest", "topic_id", "plan_id"),
)


def list_facts(stream: str, found: PageOfRows) -> dict[str, Any]:
    """`after`: what the next page is asked with."""
    return {
        "stream": stream,
        "waveforms": [row_said(row) for row in found.rows],
        "files": found.files,
        "opened": found.opened,
        "after": place_text(found.after),
    }


def row_said(row: Mapping[str, Any]) -> dict[str, Any]:
    return {
        **{name: row[name] for name in _LISTED},
        "start_time_ns": str(row["start_time_ns"]),
        "start_time": row["start_time"].isoformat(),
        "end_time": row["end_time"].isoformat(),
    }


def one_facts(stream: str, row: Mapping[str, Any], first_chunk: int) -> dict[str, Any]:
    """A waveform, and so many of its chunks from one of them on."""
    behind = min(len(row["chunks"]), first_chunk + CHUNKS_SHOWN)
    return {
        **row_said(row),
        "stream": stream,
        "meta": row["meta"],
        "chunks": chunks_said(row, first_chunk, behind),
        "next_chunk": behind if behind < len(row["chunks"]) else None,
    }


def chunks_said(row: Mapping[str, Any], first: int, behind: int) -> list[dict[str, Any]]:
    """Where each chunk lay, what it is, and which samples it brought; `batch`: the one that published all of them."""
    bounds = chunk_bounds(row)
    return [
        {
            "chunk": number,
            "start": int(bounds[number]),
            "end": int(bounds[number + 1]),
            "topic_id": chunk["topic_id"],
            "partition": chunk["partition"],
            "offset": chunk["offset"],
            "length": chunk["length"],
            "sha256": chunk["piece"].hex(),
            "batch": row["plan_id"],
        }
        for number, chunk in enumerate(row["chunks"][first:behind], first)
    ]


def view_facts(row: Mapping[str, Any], view: View) -> dict[str, Any]:
    """A part of a waveform as its plot shows it: `raw` samples, exact, as texts, and `physical` in its unit; or `least`
    and `greatest` of buckets of `width` samples, in its unit."""
    bounds = chunk_bounds(row)
    first = int(np.searchsorted(bounds, view.start, side="right")) - 1
    behind = int(np.searchsorted(bounds, view.end, side="left"))
    few = 0 <= first < behind <= first + CHUNKS_SHOWN
    return _view_said(row, view, bounds[1:-1]) | {"chunks": chunks_said(row, first, behind) if few else []}


def partial_view_facts(about: PartialWaveform, view: View) -> dict[str, Any]:
    """The same of a waveform that is held. `gaps`: where chunks miss, as samples and numbers of chunks; what misses is
    None among the samples, and no part of `lacking`."""
    row = about.metadata._asdict() | {"waveform_id": about.waveform_id, "sample_count": about.samples}
    chunks = [at for at in about.chunks if at.start < view.end and at.end > view.start]
    gaps = [gap for gap in about.gaps if gap.start < view.end and gap.end > view.start]
    said = _view_said(row, view, np.array(about.borders, np.int64))
    return said | {
        "lacking": [list(some) for some in _outside(view.lacking, gaps, said["width"])],
        "gaps_in_view": len(gaps),
        "gaps": [gap._asdict() for gap in gaps[:_SEAMS_SHOWN]],
        "chunks": [_placed_said(at) for at in chunks] if len(chunks) <= CHUNKS_SHOWN else [],
    }


def _view_said(row: Mapping[str, Any], view: View, seams: npt.NDArray[np.int64]) -> dict[str, Any]:
    inside = seams[(seams > view.start) & (seams < view.end)]
    said: dict[str, Any] = {
        "waveform_id": row["waveform_id"],
        "samples": int(row["sample_count"]),
        "start": view.start,
        "end": view.end,
        "units": row["units"],
        "lacking": [list(some) for some in view.lacking],
        "seams_in_view": len(inside),
        "seams": inside.tolist() if len(inside) <= _SEAMS_SHOWN else [],
    }
    if view.raw is not None:
        raw = zip(view.raw.tolist(), view.there.tolist(), strict=True)
        return said | {
            "width": 1,
            "raw": [repr(x) if there else None for x, there in raw],
            "physical": _known(np.where(view.there, physical(view.raw, row), np.nan)),
        }
    assert view.extremes is not None
    least, greatest = physical_extremes(view.extremes, row)
    return said | {"width": view.extremes.width, "least": _known(least), "greatest": _known(greatest)}


def _placed_said(at: PlacedChunk) -> dict[str, Any]:
    c = at.chunk
    return {
        "chunk": c.seq,
        "start": at.start,
        "end": at.end,
        "topic_id": c.topic_id,
        "partition": c.partition,
        "offset": c.offset,
        "length": c.length,
        "sha256": c.piece.hex(),
    }


def _outside(ranges: Iterable[tuple[int, int]], gaps: Sequence[Gap], width: int) -> Iterator[tuple[int, int]]:
    """What of the ranges no gap is told by: gaps, as whole buckets, are taken out of them."""
    for start, end in ranges:
        at = start
        for gap in gaps:
            first, behind = gap.start // width * width, -(-gap.end // width) * width
            if first < end and behind > at:
                if first > at:
                    yield at, first
                at = behind
        if at < end:
            yield at, end


def place_text(place: Place | None) -> str | None:
    return None if place is None else f"{place.snapshot_id}-{place.file}-{place.row}"


def sent_bytes_of(row: Mapping[str, Any]) -> int:
    return int(row["sample_count"]) * SAMPLE_BYTES[row["sample_format"]]


def _known(values: npt.NDArray[np.float64]) -> list[float | None]:
    return [None if lacks else value for value, lacks in zip(values.tolist(), np.isnan(values).tolist(), strict=True)]
