"""How old records are, by asking the log which offset belongs to a time: needs no right to read them.

Decides nothing. What lies behind an open transaction counts: it is there, and retention reckons with it.
"""

from __future__ import annotations

from collections.abc import Mapping

from wavestitch.contracts.open_transaction import LONG, OpenTransaction
from wavestitch.contracts.ports import Log, PartitionEnds
from wavestitch.contracts.quantities import EpochMs, Milliseconds, Offset, Partition, before

_YOUNGEST_MS, _OLDEST_MS = 1_000, 100 * 365 * 86_400_000
_STEPS = 12
"""Each halves what is not known of an age's order of magnitude: after these it is known to about half a percent."""


def ages_of(
    log: Log, topic: str, offsets: Mapping[Partition, Offset], *, now: EpochMs
) -> dict[Partition, Milliseconds]:
    """How long ago the newest record up to and including each offset was written, as retention reckons; a partition
    whose records have no time is not in it."""
    known = {p: float(_OLDEST_MS) for p in offsets}
    known = {p: age for p, age in known.items() if p in _as_young(log, topic, offsets, known, now)}
    young = dict.fromkeys(known, float(_YOUNGEST_MS))
    for _ in range(_STEPS if known else 0):
        middle = {p: (young[p] * known[p]) ** 0.5 for p in known}
        reached = _as_young(log, topic, offsets, middle, now)
        known |= {p: middle[p] for p in reached}
        young |= {p: middle[p] for p in middle.keys() - reached}
    return {p: Milliseconds(round(age)) for p, age in known.items()}


def open_transactions(
    log: Log, topic: str, ends: Mapping[Partition, PartitionEnds], *, now: EpochMs
) -> tuple[OpenTransaction, ...]:
    """Those that have been open for `LONG`, by partition."""
    held = {p: at.stable_end for p, at in sorted(ends.items()) if at.high_watermark > at.stable_end}
    if not held:
        return ()
    at_work = _as_young(log, topic, held, dict.fromkeys(held, float(LONG)), now)
    hang = {p: offset for p, offset in held.items() if p not in at_work}
    ages = ages_of(log, topic, hang, now=now)
    return tuple(OpenTransaction(p, at, ends[p].high_watermark, ages.get(p)) for p, at in hang.items())


def _as_young(
    log: Log, topic: str, offsets: Mapping[Partition, Offset], ages: Mapping[Partition, float], now: EpochMs
) -> frozenset[Partition]:
    """The partitions of which some record up to the offset is no older than that."""
    if not ages:
        return frozenset()
    times = {p: before(now, Milliseconds(round(age))) for p, age in ages.items()}
    found = log.offsets_at(topic, times, committed=False)
    return frozenset(p for p, offset in found.items() if offset <= offsets[p])
