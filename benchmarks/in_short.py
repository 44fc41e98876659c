"""What a newcomer wants to know first, from the figures: five lines and one chart. Pure but for drawing.

A line whose figures are missing says that they are. The chart carries the digest of what it shows: the bytes of a
picture differ between versions of what draws it.
"""

from __future__ import annotations

import hashlib
import io
from collections.abc import Mapping
from typing import Any

import matplotlib as mpl
from matplotlib.figure import Figure

from benchmarks.figures import GIB, pick
from benchmarks.headline import BY_HAND, SINK, SPARK, TYPED_SPARK, WHOLE

_BARS = {
    WHOLE: ("Wavestitch", "#1f6f8b"),
    BY_HAND: ("a script by hand, no checks, no recovery", "#c06014"),
    SPARK: ("Spark's Kafka source, bytes, no checks", "#8f8f8f"),
    TYPED_SPARK: ("the same, numbers", "#bdbdbd"),
    SINK: ("Kafka Connect's Iceberg sink, not stitched", "#6b4e9b"),
}
_GROUPS = {
    "sticky": "chunks of 64 KiB",
    "pages": "chunks of 4 KiB",
    "device": "chunks of 512 B",
    "pairs": "two chunks of 512 B\na waveform",
}
_BESIDE = {
    "end_to_end_of_typed_spark_sticky": "Spark's own Kafka source that writes numbers, too, and checks nothing",
    "end_to_end_of_spark_sticky": "the same where it writes bytes",
    "end_to_end_of_by_hand_sticky": "a script written by hand, which neither checks nor recovers",
    "end_to_end_of_sink_sticky": "Kafka Connect's Iceberg sink, which does not stitch",
}
_SMALL = {
    "end_to_end_of_spark_pages": "with 4 KiB each",
    "end_to_end_of_spark_device": "with 512 bytes each",
    "end_to_end_of_spark_pairs": "with two of 512 bytes a waveform",
}
_LATER = "not measured yet"


def five_lines(results: Mapping[str, Any]) -> str:
    ratios, amounts = results.get("ratios", {}), results.get("amounts", {})
    whole = pick(results, "parts", "side-by-side", "sticky", WHOLE)
    seconds = None if whole is None else whole["wall_s"] / (whole["bytes"] / GIB)
    beside = [f"{ratios[name]:.1f} times as fast as {whom}" for name, whom in _BESIDE.items() if ratios.get(name)]
    small = [f"{how} {ratios[name]:.1f} times" for name, how in _SMALL.items() if ratios.get(name)]
    mseed = f"{1 / ratios['small_of_mseed']:.0%}" if ratios.get("small_of_mseed") else _LATER
    small_batch, fresh = (_number(amounts.get(name), "s") for name in ("small_batch_there_s", "fresh_p99_s"))
    lines = [
        f"**From Kafka to a table**: a GiB of chunks takes {_number(seconds, 's')} on two cores, with the broker on "
        "them, every byte checked, stitched to waveforms, committed, offsets moved.",
        f"**Beside others**, in waveforms of 1 MiB: {'; '.join(beside) or _LATER}.",
        f"**Small chunks**, as devices send them, beside Spark's source: {'; '.join(small) or _LATER}.",
        f"**Little and often**: a batch of 1 MB with a Spark that is there: {small_batch}. At 20 MB/s, from a "
        f"waveform's last chunk until it can be queried, 99 of 100: {fresh}.",
        f"**On disk**, a seismogram beside the same as miniSEED: {mseed} of its bytes. Files of a day's 576 that one "
        f"id opens: {_number(amounts.get('files_of_one_id'), '')}.",
    ]
    return "\n".join(f"{n}. {line}" for n, line in enumerate(lines, 1))


def _number(value: float | None, unit: str) -> str:
    if value is None:
        return _LATER
    return f"{value} {unit}".strip() if isinstance(value, int) else f"{value:.1f} {unit}".strip()


def shown(results: Mapping[str, Any]) -> list[tuple[str, str, float]]:
    """Group, contender and MB/s of each bar."""
    side = pick(results, "parts", "side-by-side") or {}
    return [
        (group, name, side[group][name]["mb_s"])
        for group in _GROUPS
        for name in _BARS
        if pick(side, group, name, "mb_s") is not None
    ]


def digest_of(results: Mapping[str, Any]) -> str:
    return hashlib.sha256(repr(shown(results)).encode()).hexdigest()


def draw(results: Mapping[str, Any]) -> bytes:
    """An SVG. Raises `ValueError` where nothing was measured side by side."""
    bars = shown(results)
    if not bars:
        raise ValueError("nothing was measured side by side; `make bench` does")
    groups = [g for g in _GROUPS if any(bar[0] == g for bar in bars)]
    names = [n for n in _BARS if any(bar[1] == n for bar in bars)]
    with mpl.rc_context({"svg.hashsalt": "wavestitch", "svg.fonttype": "none", "font.size": 9}):
        figure = Figure(figsize=(9, 0.9 + 0.24 * len(bars) + 0.3 * len(groups)), layout="constrained")
        axes = figure.subplots()
        at, ticks = 0.0, []
        for group in groups:
            mine = [(name, speed) for g, name, speed in bars if g == group]
            ticks.append(at + (len(mine) - 1) / 2)
            for name, speed in mine:
                axes.barh(at, speed, height=0.85, color=_BARS[name][1])
                axes.text(speed, at, f" {speed:.0f}", va="center")
                at += 1
            at += 0.8
        axes.set_yticks(ticks, [_GROUPS[g] for g in groups])
        axes.invert_yaxis()
        axes.set(xlabel="MB/s of samples, from Kafka to a table on disk, two cores (longer is better)")
        axes.legend(
            [mpl.patches.Patch(color=_BARS[n][1]) for n in names], [_BARS[n][0] for n in names], loc="lower right"
        )
        axes.spines[["top", "right"]].set_visible(False)
        out = io.BytesIO()
        told = {"Date": None, "Description": f"figures {digest_of(results)}"}
        figure.savefig(out, format="svg", metadata=told)
    return out.getvalue()
