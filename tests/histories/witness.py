"""Keeps the history of a `Bench`: listens at its edges, right after every effect, and writes down what was done there.

Sees effects, not intentions: what a run believes or returns is never asked.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tests.fakes.batch import Bench
from tests.fakes.fake_rows import PublishedRow, StoredHeld
from tests.fakes.fake_tables import FakeTables
from tests.fakes.faults import under_way
from tests.fakes.kept_partition import Record, Visibility
from tests.histories.events import (
    Abandoned,
    Answered,
    Asks,
    Committed,
    Forged,
    GateClosed,
    Held,
    Looked,
    LostOffset,
    Planned,
    Produced,
    Projected,
    Published,
    Read,
    ReadBack,
    Recorded,
    Reset,
    Retained,
    Settled,
    Shared,
    TopicMade,
    Truncated,
)
from tests.histories.history import History
from tests.histories.maintenance_events import Cleared, JunkGoes, LeftBehind, StageBegun
from tests.histories.promotion_events import Replaced
from tests.histories.reading_events import Loaded, Opened
from tests.histories.sealing import is_proven
from tests.histories.table_events import CatalogSetBack, Deleted, Forgotten, HistoryLost, TakenOut
from wavestitch.contracts.chunk_proof import ProofKind
from wavestitch.contracts.position import HeadKind
from wavestitch.contracts.quantities import Partition

Proof = tuple[ProofKind, bytes, str]


class Witness:
    """Listens from now on; call it before the first record is produced."""

    def __init__(self, bench: Bench, history: History, *, goes_on: bool = False, asked: Proof | None = None) -> None:
        """`goes_on`: the history has a beginning already, and somebody else says what becomes of the log. `asked`: what
        is asked of chunks, kind, key and topic, some day; the bench's where it is asked already."""
        self._log = bench.log
        self._tables = bench.tables
        self._epochs: set[tuple[Partition, int]] = set()
        self._found: list[tuple[int, PublishedRow]] = []
        """What a reader found when it looked last."""
        self._written: dict[tuple[str, Partition, int], int] = {}
        """By the plan that read it: in which leader epoch what lay there had been written."""
        self.history = history
        self.asked: Proof = asked or (bench.proof.kind, bench.proof.key, bench.proof.topic)
        for edge in (bench, bench.tables) if goes_on else (bench, bench.log, bench.tables):
            edge.tell = self._hear  # type: ignore[method-assign]
        if not goes_on:
            self._topic_made()

    def will_be_asked(self, kind: ProofKind, key: bytes, topic: str) -> None:
        """Some day, and not yet."""
        self.asked = kind, key, topic
        self.history.append(Asks(False))

    def _hear(self, what: str, /, **facts: Any) -> None:
        getattr(self, "_" + what.replace(" ", "_"))(**facts)
        self._a_reader_looks()

    def _a_reader_looks(self) -> None:
        """After every effect and every look of anybody; what it finds is told where it is not what it was. Who looks at
        an older catalog, while that is in place, finds what it names."""
        if self._tables.rows != self._found and not self._tables.on_disk:
            self._found = list(self._tables.rows)
            self.read_back()

    def _looked_at_gates(self) -> None:
        """A look changes nothing."""

    def _produced(self, record: Record, seen: str) -> None:
        at = (record.topic_id, record.partition, record.offset, record.timestamp_ms)
        proven, epoch = is_proven(record, *self.asked), self._log.epoch_of(record)
        self.history.append(Produced(*at, record.key, record.headers, record.value, seen, proven, epoch))

    def _stage_begun(self, stage: str) -> None:
        self.history.append(StageBegun(under_way(), stage))

    def _junk_goes(self, rows: list[StoredHeld], now_ms: int) -> None:
        what = tuple((_row_of(row), row.held_ms, row.held.chunk.reason is None) for row in rows)
        self.history.append(JunkGoes(under_way(), now_ms, what))

    def _left_behind(self, name: str, at_ms: int, alive: bool) -> None:
        self.history.append(LeftBehind(name, at_ms, alive))

    def _cleared(self, left: list[str], now_ms: int) -> None:
        self.history.append(Cleared(under_way(), now_ms, tuple(left)))

    def _settled(self, partition: int, offsets: list[int], outcome: str) -> None:
        self.history.append(Settled(self._log.topic_id, partition, tuple(offsets), outcome))

    def _topic_made(self) -> None:
        self.history.append(TopicMade(self._log.topic_id))

    def _retained(self, partition: int, log_start: int) -> None:
        self.history.append(Retained(self._log.topic_id, partition, log_start))

    def _truncated(self, partition: int, end: int, backup: bool) -> None:
        self.history.append(Truncated(self._log.topic_id, partition, end, backup))

    def _lost(self, partition: int, offset: int) -> None:
        p = Partition(partition)
        stands = self._tables.snapshots[-1].positions.get(p) if self._tables.snapshots else None
        told = None if stands is None else self._told(p, stands)
        self.history.append(LostOffset(self._log.topic_id, partition, offset, told))

    def _loaded(self, strange: list[Any]) -> None:
        if strange:
            self.history.append(Loaded(under_way(), tuple(strange)))

    def _opened(self, idle: list[str]) -> None:
        if idle:
            self.history.append(Opened(under_way(), tuple(idle)))

    def _history_lost(self, sequences: list[int]) -> None:
        self.history.append(HistoryLost(tuple(sequences)))

    def _reset(self, partition: int, offset: int) -> None:
        self.history.append(Reset(self._log.topic_id, partition, offset))

    def _shared(self, partition: int, offset: int, another: bool, version: tuple[int, int]) -> None:
        self.history.append(Shared(self._log.topic_id, partition, offset, another, *version))

    def _forged(self, partition: int, offset: int) -> None:
        self.history.append(Forged(self._log.topic_id, partition, offset))

    def _expired(self, partition: int) -> None:
        self.history.append(Reset(self._log.topic_id, partition, None))

    def _looked(self, what: str, hidden: tuple[int, ...] = (), shown: int | None = None) -> None:
        self.history.append(Looked(under_way(), what, hidden, shown))

    def _projected(self, offsets: dict[int, int], metadata: str) -> None:
        _, _, generation, sequence = metadata.split(" ")
        version = int(generation[1:]), int(sequence[1:])
        self.history.append(Projected(under_way(), self._log.topic_id, offsets, *version))

    def _planned(self, plan: Any) -> None:
        stands = {p: at.next_offset for p, at in plan.positions.items()}
        ranges = tuple((r.partition, r.start, r.end) for r in plan.ranges)
        facts = (plan.plan_id, plan.kind.value, plan.generation, plan.base_sequence, plan.topic_id)
        held = plan.held_choice
        action, ids = ("", ()) if held is None else (held.action.value, held.ids)
        asks = plan.stream.proof == self.asked[0]
        scope = None if plan.scope is None else tuple(plan.scope)
        said = (action, ids, asks, scope, plan.after)
        most = plan.stream.limits.max_batch_bytes
        self._epochs |= {(p, at.epoch) for p, at in self._log.partitions.items()}
        self.history.append(
            Planned(
                under_way(),
                *facts,
                stands,
                ranges,
                *said,
                most_bytes=most,
                epochs={p: at.epoch for p, at in self._log.partitions.items()},
                epoch_ends=self._epoch_ends() if scope is not None and not plan.after else (),
                told=self._told_of(plan),
                pick="" if held is None else held.pick,
                parks=plan.stream.on_closed_gate == "park",
                clock_ms=plan.clock_ms,
                idle_ms=int(plan.stream.idle * 1000),
            )
        )

    def _epoch_ends(self) -> tuple[tuple[int, int, int], ...]:
        there = [(p, e) for p, e in sorted(self._epochs) if p in self._log.partitions]
        return tuple((p, e, self._end_of(p, e)) for p, e in there)

    def _told_of(self, plan: Any) -> tuple[tuple[int, int], ...]:
        if plan.topic_id != self._log.topic_id:
            return ()
        places = {p: self._told(p, at) for p, at in plan.positions.items()}
        return tuple((p, place) for p, place in places.items() if place is not None)

    def _read(self, plan_id: str, wanted: Any, records: list[Record]) -> None:
        offsets = tuple(r.offset for r in records)
        gone = [r for r in records if not self._log.lies_there(r)]
        former, later = tuple(r.offset for r in gone), tuple(self._log.cut_off_after(r) for r in gone)
        self._written |= {(plan_id, r.partition, r.offset): self._log.epoch_of(r) for r in records}
        self.history.append(Read(under_way(), plan_id, self._log.topic_id, *wanted, offsets, former, later))  # type: ignore[call-arg]

    def _held(self, row: StoredHeld) -> None:
        held = row.held
        chunk = held.chunk
        facts = (chunk.waveform_id, chunk.seq, chunk.length, chunk.piece.hex(), chunk.reason is None)
        why = (held.reason.value, held.decision, row.payload, row.stored, held.sequence, held.proof == self.asked[0])
        said = (chunk.count, chunk.digest), held.before.value if held.before is not None else ""
        self.history.append(Held(under_way(), *chunk.coordinate, *facts, *why, *said))  # type: ignore[arg-type]

    def _committed(self, head: Any, rows: list[PublishedRow]) -> None:
        gone = [row.waveform_id for went, _, row in self._tables.replaced if went == head.sequence]
        if gone:
            self.history.append(Replaced(under_way(), head.sequence, tuple(sorted(gone))))
        for row in rows:
            chunks = tuple(
                (topic_id, c.partition, c.offset, c.length, c.piece.hex())
                for topic_id, c in zip(row.topic_ids, row.chunks, strict=True)
            )
            self.history.append(
                Published(under_way(), head.plan_id, head.sequence, row.waveform_id, row.samples, chunks)
            )
        self._without(head)
        self.history.append(
            Committed(
                under_way(),
                head.sequence,
                head.generation,
                head.kind.value,
                head.topic_id,
                head.plan_id,
                head.decision,
                {p: at.next_offset for p, at in head.positions.items()},
                tuple((r.partition, r.start, r.end) for r in head.skipped),
                tuple(sorted({row.held.decision for row in self._tables.held_rows()})),
                head.note,
                self._unproven(head),
                self._earlier(head),
                tuple(sorted(head.held.counts.items())) if head.held is not None else (),
                head.watermark_ms,
                {p: at.seen_ms for p, at in head.positions.items() if at.seen_ms is not None},
            )
        )

    def _unproven(self, head: Any) -> tuple[tuple[int, int], ...]:
        if head.topic_id != self._log.topic_id:
            return ()
        if head.kind is not HeadKind.REBUILT:
            bare = {p: at for p, at in head.positions.items() if self._is_lost(p, at.next_offset - 1)}
        elif self._tables.expired >= len(self._tables.snapshots) - 1:
            left = self._tables.left
            stood = {} if left is None or left.topic_id != head.topic_id else left.positions
            kept = {p: at.next_offset for p, at in stood.items() if at.last_batch is not None}
            bare = {p: at for p, at in head.positions.items() if kept.get(p, -1) < at.next_offset}
        else:
            return ()
        ends = {
            p: self._told_anew(p, at) if head.kind is HeadKind.REBUILT else self._told(p, at) for p, at in bare.items()
        }
        return tuple((p, at.next_offset if (end := ends[p]) is None else end) for p, at in bare.items())

    def _earlier(self, head: Any) -> tuple[int, ...]:
        bare = {p for p, _ in self._unproven(head)} if head.kind is HeadKind.REBUILT else set()
        now = self._log.partitions
        there = {p: at for p, at in head.positions.items() if p in bare and at.last_batch is None}
        return tuple(p for p, at in there.items() if at.leader_epoch != now[p].epoch)

    def _is_lost(self, p: Partition, offset: int) -> bool:
        here = self._log.partitions[p]
        return 0 <= offset < here.end and here.seen[offset] is Visibility.GONE

    def _told(self, p: Partition, at: Any) -> int | None:
        """Where the leader epoch of a position says that the log was cut off before that."""
        epoch = at.leader_epoch
        end = None if epoch in (None, self._log.partitions[p].epoch) else self._end_of(p, epoch)
        return end if end is not None and end < at.next_offset else None

    def _told_anew(self, p: Partition, at: Any) -> int | None:
        """The same under a head that was made anew: the epoch that the group shows there says it, too, and the one in
        which what lies in front of it had been written when it was read last, by what is left of the history."""
        found = self._log.group.get(p)
        epochs = [at.leader_epoch]
        if found is not None and found.offset == at.next_offset > self._log.partitions[p].log_start:
            epochs += [found.leader_epoch, self._written_in_front(p, at.next_offset, found.metadata)]
        said = (self._told(p, at._replace(leader_epoch=epoch)) for epoch in epochs)
        return min((end for end in said if end is not None), default=None)

    def _written_in_front(self, p: Partition, end: int, tag: str) -> int | None:
        """`tag`: of the head by which the group came to stand there; what was read later is nothing to it. Of a group
        that somebody set by hand meanwhile nobody knows it."""
        last = tag.rpartition(" s")[2]
        if not last.isdecimal():
            return None
        ingests = [b for b in self._tables.history if b.kind == HeadKind.INGEST and b.sequence <= int(last)]
        for row in sorted(ingests, key=lambda b: b.sequence, reverse=True):
            if any(r.partition == p and r.start < end <= r.end for r in row.read_ranges):
                return self._written.get((row.plan_id, p, end - 1))
        return None

    def _end_of(self, p: Partition, epoch: int) -> int:
        """Of one that a log does not know, which was put back from before it, all is gone."""
        here = self._log.partitions[p]
        return here.end_of_epoch(epoch) if epoch <= here.epoch else here.log_start

    def _without(self, head: Any) -> None:
        """Where anything was ever taken out: what is not there of what maintenance has seen."""
        if not self._tables.taken_out:
            return
        there = set(map(_row_of, self._tables.held_rows()))
        gone = {_row_of(row) for rows in self._tables.taken_out.values() for row in rows} - there
        self.history.append(TakenOut(under_way(), head.sequence, tuple(sorted(gone))))

    def _deleted(self, ids: list[str]) -> None:
        self.history.append(Deleted(tuple(ids)))

    def _recorded(self, row: Any) -> None:
        counts = {int(p): dict(n) for p, n in row.partitions.items()}
        starts = tuple((int(p), int(b[0]), int(b[1])) for p, blocks in row.starts.items() for b in blocks)
        published = row.waveforms.get("published")
        self.history.append(Recorded(under_way(), row.sequence, row.decision, counts, starts, published))

    def _restored(self, sequence: int) -> None:
        self.history.append(CatalogSetBack(sequence))

    def _gate_closed(self, plan_id: str, ids: list[str]) -> None:
        self.history.append(GateClosed(plan_id, tuple(ids)))

    def _answered(self, plan_id: str) -> None:
        self.history.append(Answered(plan_id))

    def _abandoned(self, plan_id: str) -> None:
        self.history.append(Abandoned(plan_id))

    def read_back(self) -> None:
        """What a reader finds; between head and table nothing may be lost."""
        self.history.append(ReadBack(tuple((row.waveform_id, row.samples) for _, row in self._tables.rows)))

    @contextmanager
    def looking_away(self, rows: list[tuple[int, PublishedRow]]) -> Iterator[None]:
        """While these rows are in place of those that were published, no reader says what it finds."""
        was, self._found = self._found, rows
        yield
        self._found = was

    def catalog_lost(self, tables: FakeTables) -> None:
        """Another one is in its place; of the one before nobody hears any more."""
        self._tables = tables
        tables.tell = self._hear  # type: ignore[method-assign]
        self.history.append(CatalogSetBack(0))
        self._a_reader_looks()

    def table_dropped(self) -> None:
        """The published table is gone; what is held, and the history, are there still."""
        self.history.append(CatalogSetBack(0, dropped=True))
        self._a_reader_looks()

    def _forgotten(self, head: Any) -> None:
        self.history.append(Forgotten(head.sequence, head.decision, under_way()))


def _row_of(row: StoredHeld) -> tuple[str, int, int, str, str]:
    chunk = row.held.chunk
    return *chunk.coordinate, chunk.piece.hex(), row.held.decision
