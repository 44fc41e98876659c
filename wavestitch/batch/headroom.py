"""How long a stream's unread records stay: asks the log for times and sizes, and the history how long reading takes.

Needs no right to read records: when the first unread one was written is found by asking which offset belongs to a time.
Decides nothing; `contracts.headroom` does.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from wavestitch.contracts.batch_row import BatchRow
from wavestitch.contracts.batch_size import batch_offsets
from wavestitch.contracts.headroom import Alarm, Retention, Room, Thresholds, Unread, judge_room
from wavestitch.contracts.past_cost import reading_seconds
from wavestitch.contracts.ports import Log, PartitionEnds, TopicView
from wavestitch.contracts.position import Head
from wavestitch.contracts.quantities import EpochMs, Milliseconds, before
from wavestitch.contracts.stream import Stream

_YOUNGEST_MS, _OLDEST_MS = 1_000, 100 * 365 * 86_400_000
_STEPS = 12
"""Each halves what is not known of an age's order of magnitude: after these it is known to about half a percent."""
_WINDOWS_MS = (60_000, 600_000)


def measure_room(
    stream: Stream,
    head: Head,
    *,
    log: Log,
    past: Sequence[BatchRow],
    now: EpochMs,
    thresholds: Thresholds,
    told: Alarm = Alarm.GREEN,
) -> Room:
    """`told`: the colour that was last told. Raises `Refused` where the topic is gone, `Transient` where the log does
    not answer."""
    topic = log.topic(stream.topic)
    ends = log.ends(topic.name, topic.partitions)
    # A partition that was added since is read from its beginning.
    at = {p: head.positions[p].next_offset if p in head.positions else ends[p].log_start for p in topic.partitions}
    unread = {p: max(start, ends[p].log_start) for p, start in at.items() if start < ends[p].stable_end}
    ages = ages_of(log, topic.name, unread, now=now)
    rates = _rates(log, topic, {p: ends[p] for p in unread}, now=now)
    seen = [
        Unread(p, at[p], ends[p].log_start, ends[p].stable_end, ages.get(p), rates.get(p, 0.0))
        for p in sorted(topic.partitions)
    ]
    return judge_room(
        seen,
        retention=Retention(_ms(topic.retention_ms), topic.retention_bytes),
        mean_bytes=head.mean_record_bytes,
        reading_s=_reading(stream, head, past, sum(u.end - unread[u.partition] for u in seen if u.partition in unread)),
        thresholds=thresholds,
        before=told,
    )


def ages_of(log: Log, topic: str, offsets: Mapping[int, int], *, now: EpochMs) -> dict[int, Milliseconds]:
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


def _as_young(
    log: Log, topic: str, offsets: Mapping[int, int], ages: Mapping[int, float], now: EpochMs
) -> frozenset[int]:
    """The partitions of which some record up to the offset is no older than that."""
    found = log.offsets_at(topic, {p: before(now, Milliseconds(round(age))) for p, age in ages.items()})
    return frozenset(p for p, offset in found.items() if offset <= offsets[p])


def _rates(log: Log, topic: TopicView, ends: Mapping[int, PartitionEnds], *, now: EpochMs) -> dict[int, float]:
    """Offsets a second, written lately; asked only where it is needed to say how long bytes last."""
    if topic.retention_bytes is None or not ends:
        return {}
    rates = dict.fromkeys(ends, 0.0)
    for window in _WINDOWS_MS:
        found = log.offsets_at(topic.name, dict.fromkeys(ends, before(now, Milliseconds(window))))
        rates = {p: max(rate, (ends[p].stable_end - found[p]) * 1000 / window) for p, rate in rates.items()}
    return rates


def _reading(stream: Stream, head: Head, past: Sequence[BatchRow], backlog: int) -> float | None:
    mean = head.mean_record_bytes
    if not backlog or mean is None:
        return None
    most = batch_offsets(stream.limits, mean=mean, stops=())
    return reading_seconds(past, batches=-(-backlog // most), size=round(backlog * mean))


def _ms(length: int | None) -> Milliseconds | None:
    return None if length is None else Milliseconds(length)
