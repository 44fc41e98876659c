"""Whether anything grows without bound: fitted slopes of the second half, against what the data themselves explain.

Pure. A limit has these parts: what every byte that was sent may leave behind, what every batch may, a share of the
level itself, and how uncertain the fitted line is (what maintenance lets go of makes a saw of most figures). What is
bounded by design may have the last two alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from statistics import median
from typing import Any

MIB = 1 << 20
LEAST_SAMPLES = 8
_UNCERTAIN = 3


@dataclass(frozen=True)
class Allowance:
    """What a figure may grow by: bytes (or counts) per byte sent, per batch, a share of its median, and a floor."""

    per_byte: float = 0.0
    per_batch: float = 0.0
    noise: float = 0.15
    floor: float = 0.0


ALLOWED: dict[str, Allowance] = {
    # The soak itself remembers a digest and an id for each waveform, about 20 kB of samples each.
    "rss_soak": Allowance(per_byte=0.02, noise=0.10, floor=24 * MIB),
    # The JVM fills the heap that it was given (512 MiB) before it tidies up.
    "rss_broker": Allowance(per_byte=0.05, noise=0.15, floor=48 * MIB),
    "handles_soak": Allowance(floor=12),
    "handles_broker": Allowance(floor=16),
    # Every table commit changes files until the snapshots and orphans are let go; the level saws between two runs.
    "landing_bytes": Allowance(noise=0.15, floor=16 * MIB),
    "landing_files": Allowance(noise=0.15, floor=400),
    "receipts": Allowance(noise=0.15, floor=60),
    "warehouse_bytes": Allowance(per_byte=3.0, per_batch=20_000, noise=0.1, floor=16 * MIB),
    "warehouse_files": Allowance(per_batch=1.0, noise=0.15, floor=400),
    "docs_bytes": Allowance(per_batch=200, floor=MIB),
    "kafka_bytes": Allowance(per_byte=1.6, per_batch=4000, noise=0.02, floor=32 * MIB),
    "id_index_bytes": Allowance(per_byte=0.01, floor=MIB),
    "catalog_bytes": Allowance(floor=64 * 1024),
    "snapshots_waveforms": Allowance(noise=0.15, floor=40),
    "snapshots_held": Allowance(noise=0.15, floor=40),
    "snapshots_batches": Allowance(noise=0.15, floor=40),
    "metadata_bytes_waveforms": Allowance(noise=0.15, floor=96 * 1024),
    "metadata_bytes_held": Allowance(noise=0.15, floor=96 * 1024),
    "metadata_bytes_batches": Allowance(noise=0.15, floor=96 * 1024),
}


@dataclass(frozen=True)
class Trend:
    """`grew`: by the fitted line over the second half. `allowed`: what of that the data explain."""

    figure: str
    level: float
    per_hour: float
    grew: float
    allowed: float

    @property
    def bounded(self) -> bool:
        return self.grew <= self.allowed

    def to_json(self) -> dict[str, Any]:
        return {**asdict(self), "bounded": self.bounded}


def judge_growth(samples: Sequence[Mapping[str, float]]) -> list[Trend]:
    """A trend for every figure that has an allowance. Raises `ValueError` for too few samples to say anything."""
    half = samples[len(samples) // 2 :]
    if len(half) < LEAST_SAMPLES:
        raise ValueError(f"{len(half)} samples in the second half; at least {LEAST_SAMPLES} are needed for a verdict")
    sent = half[-1]["sent_bytes"] - half[0]["sent_bytes"]
    batches = half[-1]["batches_run"] - half[0]["batches_run"]
    times = [s["seconds"] for s in half]
    trends = []
    for figure, allowance in ALLOWED.items():
        values = [s.get(figure, 0.0) for s in half]
        rate = slope(times, values)
        level = median(values)
        span = times[-1] - times[0]
        allowed = allowance.per_byte * sent + allowance.per_batch * batches + allowance.noise * level + allowance.floor
        allowed += _UNCERTAIN * span * slope_error(times, values)
        trends.append(Trend(figure, level, rate * 3600, rate * span, allowed))
    return trends


def slope(times: Sequence[float], values: Sequence[float]) -> float:
    """Of the least-squares line, per second."""
    mean_t, mean_v = sum(times) / len(times), sum(values) / len(values)
    spread = sum((t - mean_t) ** 2 for t in times)
    return sum((t - mean_t) * (v - mean_v) for t, v in zip(times, values, strict=True)) / spread if spread else 0.0


def slope_error(times: Sequence[float], values: Sequence[float]) -> float:
    """Standard error of that slope, from what lies off the line."""
    mean_t, mean_v, rate = sum(times) / len(times), sum(values) / len(values), slope(times, values)
    spread = sum((t - mean_t) ** 2 for t in times)
    off = sum((v - mean_v - rate * (t - mean_t)) ** 2 for t, v in zip(times, values, strict=True))
    return float((off / max(1, len(times) - 2) / spread) ** 0.5) if spread else 0.0


def judge_data(truth: Mapping[str, bytes], published: Sequence[tuple[str, bytes]], unbalanced: int) -> dict[str, int]:
    """Lost, published twice, altered, invented, and batches whose audit does not balance: all must be 0."""
    ids = [i for i, _ in published]
    return {
        "lost": len(truth.keys() - set(ids)),
        "twice": len(ids) - len(set(ids)),
        "altered": sum(1 for i, digest in published if i in truth and truth[i] != digest),
        "invented": sum(1 for i in set(ids) if i not in truth),
        "unbalanced": unbalanced,
    }
