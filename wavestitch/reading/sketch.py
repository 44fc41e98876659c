"""A waveform as a few lines of text, for a terminal: in dots of Braille, each column from its least to its greatest
sample. For looking at; decides nothing."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from wavestitch.reading.waveform import Waveform

# Bits of a cell's dots, by column and row from below.
_DOTS = np.array([[0x40, 0x04, 0x02, 0x01], [0x80, 0x20, 0x10, 0x08]])
_NO_DOT = 0x2800


def sketch(waveform: Waveform, *, width: int = 72, height: int = 10) -> list[str]:
    """`height` lines of `width` cells, greatest first, with the values at both ends, and a line about time."""
    values = waveform.physical
    finite = values[np.isfinite(values)]
    low, high = (float(finite.min()), float(finite.max())) if len(finite) else (0.0, 0.0)
    dots = _dots(values, low, high, columns=2 * width, rows=4 * height)
    named = {0: f"{high:g}", height - 1: f"{low:g}"}
    margin = max(map(len, named.values()))
    cells = [f"{named.get(n, ''):>{margin}} {line}" for n, line in enumerate(_cells(dots))]
    seconds = len(waveform) / waveform.rate_hz
    about = f"{waveform.units}, {seconds:g} s from {waveform.start:%Y-%m-%d %H:%M:%S} UTC"
    return [*cells, f"{'':>{margin}} {about}"]


def _dots(
    values: npt.NDArray[np.float64], low: float, high: float, *, columns: int, rows: int
) -> npt.NDArray[np.bool_]:
    """Shape (columns, rows), the lowest row first. A column without a number has no dot."""
    found = np.zeros((columns, rows), np.bool_)
    edges = np.linspace(0, len(values), columns + 1).astype(np.int64)
    # Halved first: the distance of two floats may be none.
    span = high / 2 - low / 2
    for n, (start, end) in enumerate(zip(edges[:-1], np.maximum(edges[1:], edges[:-1] + 1), strict=True)):
        some = values[start:end]
        some = some[np.isfinite(some)]
        if not len(some):
            continue
        places = [(end / 2 - low / 2) / span if span else 0.5 for end in (float(some.min()), float(some.max()))]
        first, last = (min(rows - 1, int(p * rows)) for p in places)
        found[n, first : last + 1] = True
    return found


def _cells(dots: npt.NDArray[np.bool_]) -> Iterator[str]:
    columns, rows = dots.shape
    codes = (dots.reshape(columns // 2, 2, rows // 4, 4) * _DOTS[:, None, :]).sum(axis=(1, 3))
    for line in codes.T[::-1]:
        # The empty cell is a blank of its own, which terminals may show as anything.
        yield "".join(chr(_NO_DOT + int(code)) if code else " " for code in line)
