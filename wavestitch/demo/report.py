"""The demo's proof: what the tables hold, sample by sample against the source, and the report of it all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import pyarrow as pa

from wavestitch.contracts.batch_row import BatchRow
from wavestitch.contracts.reasons import Fate
from wavestitch.tables.read_waveforms import each_row, physical_samples, raw_samples

mpl.use("Agg")


def compare_samples(table: pa.Table, expected: Mapping[str, bytes]) -> dict[str, Any]:
    """Every published sample against the source, bit for bit; and every id exactly once."""
    compared = differing = 0
    seen: list[str] = []
    for row in each_row(table):
        seen.append(row["waveform_id"])
        source = expected.get(row["waveform_id"])
        found = raw_samples(row)
        want = np.frombuffer(source or b"", dtype=found.dtype)
        compared += max(found.size, want.size)
        same = min(found.size, want.size)
        differing += int((found[:same] != want[:same]).sum()) + abs(found.size - want.size)
    return {
        "samples_compared": compared,
        "samples_differing": differing,
        "missing": sorted(expected.keys() - set(seen)),
        "unexpected": sorted(set(seen) - expected.keys()),
        "twice": sorted({i for i in seen if seen.count(i) > 1}),
    }


def describe_row(row: BatchRow) -> dict[str, Any]:
    """One batch of the report."""
    return {
        **asdict(row),
        "published": row.waveforms.get("published", 0),
        "open": row.waveforms.get("open", 0),
        "quarantined": row.waveforms.get("quarantined", 0),
        "duplicates": row.counts.get(Fate.DUPLICATE.value, 0),
        "replays": row.counts.get(Fate.REPLAY.value, 0),
        "identity_balances": row.identity_balances,
        "mb_per_second": {
            step: round(row.bytes.get("read", 0) / 1e6 / max(spent, 1e-3), 2) for step, spent in row.seconds.items()
        },
    }


def plot_waveform(row: Mapping[str, Any], chunks: Sequence[int], path: Path) -> None:
    """A PNG of one stitched waveform in physical units; `chunks`: first sample of each chunk, drawn as a seam."""
    import matplotlib.pyplot as plt  # noqa: PLC0415 - after the backend was chosen

    values = physical_samples(row)
    seconds = np.arange(values.size) / row["sampling_rate_hz"]
    figure, axes = plt.subplots(figsize=(12, 3.2), dpi=120, layout="constrained")
    axes.plot(seconds, values, linewidth=0.7, color="#0b5394")
    for first in chunks[1:]:
        axes.axvline(first / row["sampling_rate_hz"], color="#cc4125", linewidth=0.8, linestyle=":")
    axes.set(
        title=f"{row['waveform_id']}: {row['sample_count']} samples from {row['chunk_count']} chunks (dotted: seams)",
        xlabel="s",
        ylabel=row["units"],
        xlim=(0, float(seconds[-1])),
    )
    axes.grid(alpha=0.25)
    figure.savefig(path)
    plt.close(figure)
