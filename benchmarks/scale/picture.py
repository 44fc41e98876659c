"""The picture of docs/scale.md: what was measured beside what is simulated, and what one stream's chain reaches."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Sequence

import matplotlib as mpl
from matplotlib.figure import Figure

from benchmarks.figures import GIB
from benchmarks.scale.chains import Form, batch_seconds
from benchmarks.scale.constants import LANES
from benchmarks.scale.page import CHUNKS, RATES, Chain, Findings

_STYLES = {CHUNKS[0]: "#1f6f8b", CHUNKS[1]: "#c06014", CHUNKS[2]: "#6b4e9b"}
_LINES = ("-", ":", "-.", "--")


def digest_of(all_: Findings) -> str:
    """Of every figure that is drawn; the picture carries it."""
    drawn = [[(c.name, c.measured, c.simulated) for c in all_.compared], [(c.name, c.rates) for c in all_.chains]]
    return hashlib.sha256(repr(drawn).encode()).hexdigest()


def draw(all_: Findings) -> bytes:
    with mpl.rc_context({"svg.hashsalt": "wavestitch", "svg.fonttype": "none", "font.size": 9}):
        figure = Figure(figsize=(12, 4.2), layout="constrained")
        left, right = figure.subplots(1, 2)
        _growth(left, all_)
        _one_stream(right, all_.chains)
        out = io.BytesIO()
        figure.savefig(out, format="svg", metadata={"Date": None, "Description": f"figures {digest_of(all_)}"})
    return out.getvalue()


def _growth(axes: mpl.axes.Axes, all_: Findings) -> None:
    measured = [all_.found.growth[c.name] for c in all_.compared]
    sizes = [0.0625 * 2 ** (n / 4) for n in range(33)]
    forms = [Form(all_.found.chunk, LANES, LANES, gib * GIB) for gib in sizes]
    axes.plot(sizes, [batch_seconds(all_.found, f, f.most) for f in forms], label="simulated", color="#1f6f8b", lw=1.2)
    for name, marker, color, rows in (
        ("measured: constants are of these", "s", "#888", [row for row in measured if row.fitted]),
        ("measured: held out", "o", "#c06014", [row for row in measured if row.held]),
        ("measured: topics of their own", "x", "#6b4e9b", [row for row in measured if not row.fitted and not row.held]),
    ):
        axes.scatter([r.gib for r in rows], [r.cost.wall for r in rows], label=name, marker=marker, color=color)
    axes.set(xscale="log", yscale="log", xlabel="GiB a batch", ylabel="s", title="Batches on two cores")
    axes.legend(loc="lower right")
    axes.grid(alpha=0.25)


def _one_stream(axes: mpl.axes.Axes, chains: Sequence[Chain]) -> None:
    for n, chain in enumerate(chains):
        label = f"{chain.chunk >> 10} KiB: {chain.name}"
        rates = [rate / 1e6 for rate in chain.rates.values()]
        axes.plot(
            [readers for readers, _ in chain.rates],
            rates,
            _LINES[n % len(_LINES)],
            marker=".",
            color=_STYLES[chain.chunk],
            label=label,
        )
    axes.axhline(RATES[0] / 1e6, color="#888", linewidth=0.8)
    axes.text(2, RATES[0] / 1e6 * 1.05, "1 GB/s", color="#555")
    axes.set(
        xscale="log",
        yscale="log",
        xlabel="readers, and cores of Spark's, a batch",
        ylabel="MB/s",
        title="One stream, extrapolated",
    )
    axes.set_xticks([2, 16, 64], ["2", "16", "64"])
    axes.minorticks_off()
    axes.legend(fontsize=7, loc="center left", bbox_to_anchor=(1.0, 0.5))
    axes.grid(alpha=0.25)
