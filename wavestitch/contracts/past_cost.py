"""What past batches cost, and what that says of the next: how to share out its reading, and when a lag will be gone.

Pure. Only figures of the history go in, never a clock; an estimate is never more than that, and nothing is decided by
it but the packing of units of work and what is shown to people.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import linear_regression

from wavestitch.contracts.batch_row import BatchRow
from wavestitch.contracts.plan import Plan
from wavestitch.contracts.quantities import Partition

RECENT = 16
"""So many batches back is recent: a partition that changed its habits is followed within them."""
_TELLING_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class Forecast:
    """What it takes to reach the end of the log as it was at planning. `batches`: this one and those after it.

    `seconds`: None where the history has no batch to go by.
    """

    batches: int
    offsets: int
    bytes: int
    seconds: float | None


def reading_weights(past: Sequence[BatchRow]) -> dict[Partition, float]:
    """What an offset of each partition costs to read, relative to the mean of all: by bytes, and where recent batches
    spent a telling time on a partition, by seconds. Partitions without history are not in it."""
    offsets: dict[Partition, int] = defaultdict(int)
    sizes: dict[Partition, int] = defaultdict(int)
    seconds: dict[Partition, float] = defaultdict(float)
    for row in past[:RECENT]:
        for name, (size, spent) in row.reading.items():
            p = Partition(int(name))
            offsets[p] += row.partitions[name]["planned"]
            sizes[p] += int(size)
            seconds[p] += spent
    known = [p for p, n in offsets.items() if n > 0 and sizes[p] > 0]
    telling = [p for p in known if seconds[p] >= _TELLING_SECONDS]
    # Bytes stand for seconds where too few were measured, at the rate of all others.
    rate = sum(seconds[p] for p in telling) / sum(sizes[p] for p in telling) if telling else 1.0
    cost = {p: (seconds[p] if p in telling else rate * sizes[p]) / offsets[p] for p in known}
    mean = sum(cost.values()) / len(cost) if cost else 1.0
    return {p: c / mean for p, c in cost.items()}


def forecast(plan: Plan, past: Sequence[BatchRow]) -> Forecast:
    """The chain of bounded batches from this plan to the end of the log."""
    batches = 1 + (-(-plan.left // plan.records) if plan.records else 0)
    offsets = plan.records + plan.left
    size = round(offsets * plan.mean_record_bytes)
    seconds = _seconds(past, batches=batches, size=size)
    return Forecast(batches, offsets, size, None if seconds is None else round(seconds, 1))


def reading_seconds(past: Sequence[BatchRow], *, batches: int, size: int) -> float | None:
    """What batches of so many bytes together will take, as recent ones went; None where there are none to go by."""
    seconds = _seconds(past, batches=batches, size=size) if batches else 0.0
    return None if seconds is None else round(seconds, 1)


def _seconds(past: Sequence[BatchRow], *, batches: int, size: int) -> float | None:
    """A line through recent batches: so much for any batch, so much for each byte."""
    spent = [(float(r.bytes["read"]), sum(r.seconds.values())) for r in past[:RECENT] if r.bytes.get("read")]
    if not spent:
        return None
    sizes = [s for s, _ in spent]
    seconds = [s for _, s in spent]
    if len(set(sizes)) > 1:
        line = linear_regression(sizes, seconds)
        if line.slope > 0 and line.intercept > 0:
            return float(batches * line.intercept + size * line.slope)
    return max(batches * min(seconds), size * sum(seconds) / sum(sizes))
