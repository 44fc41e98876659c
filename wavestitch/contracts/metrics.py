"""What is measured of a stream, for programs that draw and warn: names, labels, values. Pure.

Names and labels are Prometheus' own conventions. Never a label whose values have no bound: no id, no source, no topic.
Invariant: a counter counts each commit once, whoever looks how often, and never goes back.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import NamedTuple, TypeVar

from wavestitch.contracts.batch_row import BatchRow
from wavestitch.contracts.freshness import Freshness
from wavestitch.contracts.headroom import Alarm, Room
from wavestitch.contracts.held_mark import AFTER_DISCARD
from wavestitch.contracts.position import HeadKind
from wavestitch.contracts.quantities import BEGINNING, EpochMs, apart
from wavestitch.contracts.reasons import Fate, Reason
from wavestitch.contracts.versioned import Versioned

N = TypeVar("N", int, float)
V = TypeVar("V")


class MetricKind(StrEnum):
    GAUGE = "gauge"
    COUNTER = "counter"


class Metric(NamedTuple):
    """`labels`: those beside `stream`."""

    name: str
    kind: MetricKind
    says: str
    labels: tuple[str, ...] = ()


def _gauge(name: str, says: str, *labels: str) -> Metric:
    return Metric(f"wavestitch_{name}", MetricKind.GAUGE, says, labels)


def _counter(name: str, says: str, *labels: str) -> Metric:
    return Metric(f"wavestitch_{name}_total", MetricKind.COUNTER, says, labels)


UP = _gauge("up", "1 where log and tables answered the last look, 0 where one of them did not")
LOOKED = _gauge("look_timestamp_seconds", "when this was looked at")
LAG = _gauge("lag_offsets", "offsets that are not read yet", "partition")
LAG_SECONDS = _gauge("lag_seconds", "how old the first unread record is", "partition")
HEADROOM = _gauge(
    "headroom_seconds", "until retention may take what is unread; none where it takes nothing", "partition"
)
ALARM = _gauge("headroom_alarm", "colour of the headroom: 0 green, 1 amber, 2 red")
LOST = _gauge("lost_offsets", "offsets that retention took unread, as long as the position is before them", "partition")
LATE = _gauge(
    "freshness_alarm", "1 where the stream is later than it declares, 0 where not; none where it declares none"
)
DECLARED = _gauge("freshness_declared_seconds", "what the stream declares: the p99 from last chunk to commit")
P99 = _gauge("freshness_seconds", "the p99 of the newest batch within the hour, as it was measured")
WAITING = _gauge(
    "freshness_unread_seconds", "how old the first record is that nobody has ever read; none where there is none"
)
OPEN = _gauge("open_waveforms", "waveforms that wait for missing chunks")
OPEN_AGE = _gauge("open_age_seconds", "how long ago the first chunk that waits was recorded; 0 where none waits")
HELD = _gauge("held_chunks", "chunks that are held, by the reason they were held for", "reason")
COMMITTED = _gauge("last_commit_timestamp_seconds", "when the newest head was committed")
LAST_SECONDS = _gauge("last_batch_seconds", "how long the newest batch took, by step", "step")
COMMITS = _counter("commits", "heads committed, by what wrote them: batches, rewinds, decisions, maintenance", "kind")
RECORDS = _counter("read_records", "records read", "partition")
BYTES = _counter("read_bytes", "bytes of payload read", "partition")
CHUNKS = _counter("chunks", "chunks, by what became of them in a batch", "fate")
WAVEFORMS = _counter("waveforms", "waveforms, by what became of them in a batch: published or quarantined", "outcome")
SECONDS = _counter("step_seconds", "time that batches took, by step", "step")
METRICS = (
    *(
        UP,
        LOOKED,
        LAG,
        LAG_SECONDS,
        HEADROOM,
        ALARM,
        LOST,
        LATE,
        DECLARED,
        P99,
        WAITING,
        OPEN,
        OPEN_AGE,
        HELD,
        COMMITTED,
        LAST_SECONDS,
    ),
    *(COMMITS, RECORDS, BYTES, CHUNKS, WAVEFORMS, SECONDS),
)

_OUTCOMES = ("published", "quarantined")
"""What is still open is open after the next batch, too: added up it would be counted again and again."""
_MOST_OF_ONE = 1 << 53
_KINDS = frozenset(k.value for k in HeadKind)
_STEPS = ("read", "reassemble", "validate", "publish")
_REASONS = frozenset({AFTER_DISCARD, *Reason})


class Sample(NamedTuple):
    """`labels`: values of those of its metric, in their order."""

    metric: Metric
    labels: tuple[str, ...]
    value: float


@dataclass(frozen=True, slots=True)
class Counted:
    """What the commits of a stream come to, head number `sequence` being the last; `since_ms`: when counting began. By
    kind, partition, fate, outcome and step."""

    sequence: int = -1
    since_ms: EpochMs = BEGINNING
    commits: dict[str, int] = field(default_factory=dict)
    records: dict[str, int] = field(default_factory=dict)
    bytes: dict[str, int] = field(default_factory=dict)
    chunks: dict[str, int] = field(default_factory=dict)
    waveforms: dict[str, int] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)

    def beginning_at(self, head: int) -> Counted:
        """As it goes on under this head: of what was before the first look, the newest commit alone counts, and what
        was counted of heads that are no more (a table that was set back) stays counted."""
        if self.sequence < 0:
            return replace(self, sequence=head - 1)
        return replace(self, sequence=min(self.sequence, head))

    def with_rows(self, rows: Iterable[BatchRow], *, until: int, partitions: Collection[int]) -> Counted:
        """With those of them that are not counted yet, up to head number `until`. `partitions`: those of the topic.
        What a row says of others, or does not say, counts nothing, and stops nothing."""
        own = frozenset(str(p) for p in partitions)
        new = [r for r in rows if self.sequence < r.sequence <= until]
        return Counted(
            sequence=max(self.sequence, until),
            since_ms=self.since_ms,
            commits=_added(self.commits, [{r.kind: 1} for r in new if r.kind in _KINDS]),
            records=_added(self.records, [_of(own, r.partitions, lambda n: n.get("read", 0)) for r in new]),
            bytes=_added(self.bytes, [_of(own, r.reading, _bytes_read) for r in new]),
            chunks=_added(self.chunks, [{f.value: r.counts.get(f, 0) for f in Fate} for r in new]),
            waveforms=_added(self.waveforms, [{o: r.waveforms.get(o, 0) for o in _OUTCOMES} for r in new]),
            seconds=_added(self.seconds, [{s: r.seconds.get(s, 0.0) for s in _STEPS} for r in new]),
        )


COUNTED = Versioned(Counted, "what was counted for the metrics", "delete the file: counting begins anew")


@dataclass(frozen=True, slots=True)
class Seen:
    """What one look at a stream saw. `room`: None where the log did not answer; `held`: chunks by reason; `open_ms`:
    when the first chunk that waits was recorded; `last`: seconds of the newest batch, by step."""

    up: bool
    room: Room | None = None
    open: int = 0
    open_ms: EpochMs | None = None
    held: Mapping[str, int] = field(default_factory=dict)
    committed_ms: EpochMs | None = None
    last: Mapping[str, float] = field(default_factory=dict)


def samples_of(seen: Seen, counted: Counted, *, now: EpochMs) -> list[Sample]:
    """What is not known has no sample: a figure that looks like good news must be one."""
    found = [Sample(UP, (), float(seen.up)), Sample(LOOKED, (), now / 1000)]
    if seen.room is not None:
        found += _of_room(seen.room)
    if seen.committed_ms is not None:
        waited = 0.0 if seen.open_ms is None else apart(now, seen.open_ms) / 1000
        found += [
            Sample(OPEN, (), seen.open),
            Sample(OPEN_AGE, (), waited),
            Sample(COMMITTED, (), seen.committed_ms / 1000),
        ]
    held = {reason: n for reason, n in seen.held.items() if reason in _REASONS}
    last = {step: seen.last[step] for step in _STEPS if step in seen.last}
    by: list[tuple[Metric, Mapping[str, float]]] = [
        (HELD, held),
        (LAST_SECONDS, last),
        (COMMITS, counted.commits),
        (RECORDS, counted.records),
        (BYTES, counted.bytes),
        (CHUNKS, counted.chunks),
        (WAVEFORMS, counted.waveforms),
        (SECONDS, counted.seconds),
    ]
    return found + [Sample(metric, (label,), n) for metric, ns in by for label, n in sorted(ns.items())]


def text_of(stream: str, samples: Sequence[Sample]) -> str:
    """In the text format of Prometheus. `stream`, and all other values of labels, are plain words of ours."""
    lines = []
    for metric in METRICS:
        own = [s for s in samples if s.metric is metric]
        if own:
            lines += [f"# HELP {metric.name} {metric.says}", f"# TYPE {metric.name} {metric.kind}"]
        lines += [f"{metric.name}{{{_labels(stream, s)}}} {s.value!r}" for s in own]
    return "".join(f"{line}\n" for line in lines)


def labels_of(stream: str, sample: Sample) -> dict[str, str]:
    return {"stream": stream, **dict(zip(sample.metric.labels, sample.labels, strict=True))}


def _of_room(room: Room) -> list[Sample]:
    found = [Sample(ALARM, (), tuple(Alarm).index(room.alarm))] if room.begun else []
    for p in room.partitions:
        label = (str(p.partition),)
        found += [Sample(LAG, label, p.backlog), Sample(LOST, label, p.lost)]
        behind = p.behind_s if p.backlog else 0.0
        found += [Sample(LAG_SECONDS, label, behind)] if behind is not None else []
        found += [Sample(HEADROOM, label, p.left_s)] if p.left_s is not None else []
    return found + ([] if room.freshness is None else _of_freshness(room.freshness))


def _of_freshness(of: Freshness) -> list[Sample]:
    found = [Sample(LATE, (), float(of.alarmed)), Sample(DECLARED, (), of.declared_s)]
    found += [Sample(P99, (), of.p99_s)] if of.p99_s is not None else []
    return found + ([Sample(WAITING, (), of.unread_s)] if of.unread_s is not None else [])


def _labels(stream: str, sample: Sample) -> str:
    return ",".join(f'{name}="{value}"' for name, value in labels_of(stream, sample).items())


def _of(own: Collection[str], by_partition: Mapping[str, V], figure: Callable[[V], int]) -> dict[str, int]:
    """Whatever somebody else wrote into the history: a label is never a stranger's word, and there are not many."""
    return {p: figure(found) for p, found in by_partition.items() if p in own}


def _bytes_read(found: Sequence[float]) -> int:
    """Of a partition's bytes and seconds in the history."""
    return int(found[0]) if found and 0 <= found[0] <= _MOST_OF_ONE else 0


def _added(known: Mapping[str, N], more: Iterable[Mapping[str, N]]) -> dict[str, N]:
    """Counters never go back, and no single row is believed to bring more than a number that receivers can take."""
    total = dict(known)
    for each in more:
        for label, n in each.items():
            if 0 <= n <= _MOST_OF_ONE:
                total[label] = total[label] + n if label in total else n
    return total
