"""A waveform as a picture, for looking at: in its unit, over seconds, each sample. Decides nothing."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from wavestitch.contracts.errors import BadInput
from wavestitch.contracts.harmless import harmless
from wavestitch.reading.waveform import Waveform
from wavestitch.write_once import disk_errors, place_once, scratch_file

_FURTHEST = 1e300
"""Near the largest doubles Matplotlib's own reckoning of its axis is beyond them."""


def draw(waveform: Waveform, into: Path) -> None:
    """Write a PNG. What is no number is left out of the line. Raises `BadInput` where the name is taken, by a link that
    leads nowhere, too, and for values that no axis reaches."""
    finite = np.isfinite(waveform.physical)
    reach = np.max(np.abs(waveform.physical), initial=0, where=finite)
    if reach > _FURTHEST:
        raise BadInput(
            f"waveform {waveform.id!r} reaches to {reach:g} {waveform.units}; a picture's axis goes to {_FURTHEST:g}: "
            "draw it in dots, without --into"
        )
    figure = Figure(figsize=(12, 3.2), dpi=120, layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    seconds = np.arange(len(waveform)) / waveform.rate_hz
    axes.plot(seconds, np.where(finite, waveform.physical, np.nan), linewidth=0.7)
    # Names come from producers: a pair of dollars would be read as a formula.
    title = f"{waveform.id} · {waveform.source} {waveform.channel} · {waveform.start:%Y-%m-%d %H:%M:%S} UTC"
    axes.set_title(harmless(title), parse_math=False)
    axes.set_xlabel("s")
    axes.set_ylabel(harmless(waveform.units), parse_math=False)
    axes.grid(alpha=0.25)
    with disk_errors(f"drawing {into}"), scratch_file(into.parent) as scratch:
        figure.savefig(scratch, format="png")
        if not place_once(scratch, into):
            raise BadInput(f"{into} exists; name another file with --into")
