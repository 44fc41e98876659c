"""What people are shown of a stream, as plain values. Asks the tables and the log; moves nothing, commits nothing."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from wavestitch.batch.deployment import Deployment
from wavestitch.batch.headroom import measure_room
from wavestitch.batch.held_waveforms import Crowd, HeldWaveform, open_waveforms
from wavestitch.batch.history import whole_history
from wavestitch.batch.kept_told import kept_told
from wavestitch.contracts.batch_row import BatchRow
from wavestitch.contracts.errors import BadInput, Transient, WavestitchError
from wavestitch.contracts.headroom import Room
from wavestitch.contracts.held_quota import said_of_junk
from wavestitch.contracts.position import Head
from wavestitch.contracts.quantities import EpochMs, Offset, Partition, epoch_ms
from wavestitch.contracts.reasons import Reason

NOT_BEGUN = "no batch yet"
_BATCHES = 15
_DISCARDED = Reason.DISCARDED.value


@dataclass(frozen=True, slots=True)
class PartitionFacts:
    """Where the stream stands in a partition; `end` and `log_start` are None where the log did not answer. `end`: the
    high watermark, since what waits behind an open transaction is unread, too."""

    partition: Partition
    position: int
    log_start: Offset | None
    end: int | None

    @property
    def backlog(self) -> int | None:
        return None if self.end is None else max(0, self.end - self.position)


@dataclass(frozen=True, slots=True)
class StreamFacts:
    """`problem`: a sentence where something could not be found out. `open`, `quarantined`: held chunks; where not
    `counted`, the open ones that were counted, and None. `remarks`: what others have changed about the tables, and what
    open transactions keep from being read. `room`: how long unread records stay; None where the log did not answer.
    `waiting`: how many open waveforms were counted; `waiting_since`: the earliest record time of theirs."""

    name: str
    problem: str = ""
    topic: str = ""
    head: Head | None = None
    partitions: tuple[PartitionFacts, ...] = ()
    open: int = 0
    quarantined: int | None = 0
    counted: bool = True
    batches: tuple[BatchRow, ...] = ()
    documented: frozenset[str] = frozenset()
    remarks: tuple[str, ...] = ()
    room: Room | None = None
    waiting: int = 0
    waiting_since: EpochMs | None = None

    @property
    def backlog(self) -> int | None:
        """Offsets not yet read; None where the log did not answer."""
        found = [p.backlog for p in self.partitions]
        return None if None in found else sum(b for b in found if b is not None)


def stream_facts(deployment: Deployment, name: str) -> StreamFacts:
    """Never raises an error of ours: what is wrong is what is asked for."""
    return with_ends(deployment, table_facts(deployment, name))


def table_facts(deployment: Deployment, name: str) -> StreamFacts:
    """What the tables and the disk know of a stream, or the sentence why not; the log is not asked."""
    try:
        return see_tables(deployment, name)
    except WavestitchError as error:
        return StreamFacts(name, error.message)


@dataclass(frozen=True, slots=True)
class _Waiting:
    """What waits. `counted`: all of it was."""

    waveforms: int = 0
    chunks: int = 0
    since: EpochMs | None = None
    counted: bool = True


def see_tables(deployment: Deployment, name: str, *, most: int | None = None) -> StreamFacts:
    """The same; raises what the definition or the tables cannot be read for. `most`: about so many open chunks are
    counted; all, but for whoever has no time for that."""
    stream, tables = deployment.stream(name), deployment.tables(name)
    head = tables.head()
    if head is None:
        return StreamFacts(name, NOT_BEGUN, stream.topic)
    # What waits is looked at; how much is held beside it is what the head says, of which that is taken.
    waiting = _count(open_waveforms(tables, stream, head, most=most), most=most)
    rows = tuple(whole_history(deployment.history(name), since=head.sequence - _BATCHES + 1))
    odd = tables.shown_batches(since=head.sequence - _BATCHES + 1).odd
    remarks = tuple(filter(None, (*tables.remarks(), *odd, said_of_junk(stream, head.held, rows))))
    counts = head.held.counts if head.held is not None else {}
    all_held = sum(n for reason, n in counts.items() if reason != _DISCARDED)
    return StreamFacts(
        name=name,
        topic=stream.topic,
        head=head,
        partitions=tuple(PartitionFacts(p, at.next_offset, None, None) for p, at in sorted(head.positions.items())),
        open=waiting.chunks,
        quarantined=all_held - waiting.chunks if waiting.counted else None,
        counted=waiting.counted,
        batches=rows,
        remarks=remarks,
        waiting=waiting.waveforms,
        waiting_since=waiting.since,
        documented=frozenset(r.plan_id for r in rows if _has_docs(deployment, name, r.plan_id)),
    )


def _count(found: Iterable[HeldWaveform | Crowd], *, most: int | None) -> _Waiting:
    """Some at a time: how many there are is for a producer to say."""
    all_of_it = _Waiting()
    for one in found:
        if isinstance(one, Crowd) or (most is not None and all_of_it.chunks >= most):
            return replace(all_of_it, counted=False)
        waits = [h.chunk for h, state in zip(one.held, one.states, strict=True) if state is Reason.OPEN]
        if waits:
            since = min(chunk.timestamp_ms for chunk in waits)
            before = all_of_it.since
            all_of_it = _Waiting(
                all_of_it.waveforms + 1,
                all_of_it.chunks + len(waits),
                since if before is None else min(since, before),
            )
    return all_of_it


def _has_docs(deployment: Deployment, stream: str, plan_id: str) -> bool:
    try:
        return (deployment.docs_folder(stream, plan_id) / "index.html").is_file()
    except BadInput:
        return False  # a link: none of ours


def with_ends(deployment: Deployment, known: StreamFacts) -> StreamFacts:
    """`known` with what the log says of its partitions, or with the sentence of a log that does not answer."""
    try:
        return see_ends(deployment, known)
    except WavestitchError as error:
        return replace(known, problem=error.message)


def see_ends(deployment: Deployment, known: StreamFacts) -> StreamFacts:
    """`known` with what the log says of its partitions. Raises what the next plan would be refused with, `Transient`
    where the log does not answer; a stream that has not begun is asked about for the first alone."""
    if known.head is None and known.problem != NOT_BEGUN:
        return known
    try:
        room = _room(deployment, known.name, known.batches)
    except Transient:
        if known.head is None:
            return known
        raise
    if room is None:
        return known
    partitions = tuple(PartitionFacts(p.partition, p.position, p.log_start, p.end) for p in room.partitions)
    return replace(known, partitions=partitions, remarks=(*known.remarks, *room.remarks), room=room)


def _room(deployment: Deployment, name: str, past: Sequence[BatchRow]) -> Room | None:
    settings = deployment.settings
    return measure_room(
        deployment.stream(name),
        log=deployment.log,
        tables=deployment.tables(name),
        past=past,
        now=epoch_ms(time.time_ns()),
        thresholds=settings.notify.thresholds,
        told=kept_told(settings.landing, name),
    )
