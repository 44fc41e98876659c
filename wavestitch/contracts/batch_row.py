"""One committed decision in the history for people: the audit in figures. Not an authority; the head is."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from wavestitch.contracts.freshness import Waits
from wavestitch.contracts.offset_range import OffsetRange
from wavestitch.contracts.plan import Plan
from wavestitch.contracts.position import Head, HeadKind
from wavestitch.contracts.quantities import (
    BEGINNING,
    NONE_YET,
    EpochMs,
    Generation,
    LeaderEpoch,
    Offset,
    Partition,
    following,
)
from wavestitch.contracts.reasons import Fate
from wavestitch.contracts.stream import spoken_definition
from wavestitch.contracts.versioned import Versioned
from wavestitch.contracts.written import NO_EPOCH, Written

if TYPE_CHECKING:
    # Only for annotations: Airflow parses its DAGs again and again, and pyarrow is slow to load.
    from wavestitch.contracts.decided import Decision


Version = tuple[Generation, int]
"""Generation and number of a head."""


@dataclass(frozen=True, slots=True)
class BatchRow:
    """`counts`: chunks by fate, and `read`, `carried_in`. `partitions`: the same per partition, with `holes` (offsets
    that were planned and hold no record, explained). `reasons`: chunks per reason. `waveforms`: published, open,
    quarantined. `seconds` and `bytes`: per step. `reading`: payload bytes and seconds per partition. `without_bytes`:
    of records that are no chunks and were held without their bytes, per partition how many, the first offset and the
    one after the last. `held`: how many chunks are held after it, by reason; None where nobody wrote it down. `starts`:
    per partition, blocks of offsets of topic `topic_id`, and between which times their waveforms start (`StartBlock`).
    `epochs`: per partition that was read the leader epoch when that was planned; none where the broker gave none, or
    the row is of a version that kept none. `definition`: the stream's that it was planned by (`spoken_definition`);
    empty where nobody wrote it down. `waits`: how long what an ingest published had waited (`Waits`); None where it
    published nothing that was read for the first time, or the row is of a version that did not measure it. `table`: the
    UUID of the published table that it was written beside; empty where none says so. `written`: per partition in which
    leader epochs what was read had been written, each from an offset on (`Written`); none where no broker said so, or
    the row is of a version that kept none. Times in ms since the epoch."""

    plan_id: str
    decision: str
    sequence: int
    generation: Generation
    kind: str
    stream: str
    committed_ms: EpochMs
    ranges: list[list[int]] = field(default_factory=list)
    slices: list[list[int]] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=dict)
    partitions: dict[str, dict[str, int]] = field(default_factory=dict)
    reasons: dict[str, int] = field(default_factory=dict)
    waveforms: dict[str, int] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)
    bytes: dict[str, int] = field(default_factory=dict)
    reading: dict[str, list[float]] = field(default_factory=dict)
    without_bytes: dict[str, list[int]] = field(default_factory=dict)
    note: str = ""
    held: dict[str, int] | None = None
    topic_id: str = ""
    starts: dict[str, list[list[int]]] = field(default_factory=dict)
    epochs: dict[str, int] = field(default_factory=dict)
    definition: dict[str, Any] = field(default_factory=dict)
    waits: Waits | None = None
    table: str = ""
    written: dict[str, list[list[int]]] = field(default_factory=dict)

    @property
    def read_ranges(self) -> tuple[OffsetRange, ...]:
        """What the batch read."""
        return tuple(OffsetRange(Partition(p), Offset(start), Offset(end)) for p, start, end in self.ranges)

    def written_in(self, partition: Partition) -> list[Written]:
        """In which leader epochs what it read of a partition had been written, by runs."""
        runs = self.written.get(str(partition), ())
        return [Written(Offset(start), LeaderEpoch(epoch)) for start, epoch in runs]

    @property
    def identity_balances(self) -> bool:
        """read + carried in = all fates, in every partition. What a row does not say is none, so that one of a version
        that knew fewer fates still balances, and one that somebody cut does not."""
        return all(map(_balances, self.partitions.values()))

    @property
    def left_nothing(self) -> bool:
        """Whether all that a batch that holds nothing read was published by it, or before. Of what it did not read, the
        chunks that were carried in, nothing follows: what becomes of them is counted with the others."""
        left = sum(self.counts.get(fate.value, 0) for fate in (Fate.REPORTED, Fate.OUT_OF_SCOPE))
        return "read" in self.counts and self.identity_balances and not left

    def to_json(self) -> str:
        return BATCH_ROWS.line(self)


def _balances(counted: Mapping[str, int]) -> bool:
    read, ended = counted.get("read", 0), sum(counted.get(fate.value, 0) for fate in Fate)
    return read + counted.get("carried_in", 0) == ended and counted.get("planned", 0) == read + counted.get("holes", 0)


def batch_row_from_json(text: str) -> BatchRow:
    """A row of the history, of this version or an older one."""
    return BATCH_ROWS.read(text)


def rows_of(table: str | None, rows: Iterable[BatchRow]) -> list[BatchRow]:
    """Without those that say that they are of another table, which was there before or is now."""
    return [row for row in rows if row.table in ("", table)]


def rows_behind(version: Version, rows: Iterable[BatchRow]) -> list[BatchRow]:
    """The rows of what the head of this version follows, oldest first; not those of a table that was set back since.

    Nobody takes a row out of the history where the table beside it is set back. But numbers and generations of heads
    only grow, so a row beyond the head, or at or beyond another one of a later generation, is behind no head any more.
    Nor is one before a first head: it is of a table that was there before.
    """
    behind: list[BatchRow] = []
    newest, last = version
    generation = 0
    for row in sorted(rows, key=lambda r: (r.sequence, -r.generation)):
        if row.sequence <= last and generation <= row.generation <= newest:
            behind = [] if row.kind == HeadKind.FIRST else behind
            behind.append(row)
        generation = max(generation, row.generation)
    return behind


def first_version(history: Iterable[BatchRow]) -> tuple[int, Generation]:
    """Number and generation of a stream's first head: 1 and 1, or beyond all that a table had that was there before.
    The history knows a row by its number, and none of before is behind a head that begins beyond them."""
    had = list(history)
    number = max((row.sequence for row in had), default=0) + 1
    return number, following(max((row.generation for row in had), default=NONE_YET))


def _wrong(row: BatchRow) -> str | None:
    """What whoever plans by a row would stumble over."""
    per_partition = {name: getattr(row, name) for name in _PER_PARTITION}
    for name, found in per_partition.items():
        if odd := next((p for p in found if not _NUMBER.fullmatch(p)), None):
            return f"names a partition of {name} that is no number: {ascii(odd)[:_SHOWN]}"
    if any(len(figures) != 2 for figures in row.reading.values()):
        return "has under reading something else than bytes and seconds"
    if any("planned" not in row.partitions.get(p, {}) for p in row.reading):
        return "has a partition under reading of which it does not say what was planned"
    if any(len(b) not in (2, 4) or not 0 <= b[0] < b[1] for blocks in row.starts.values() for b in blocks):
        return "has a block of starts that is none"
    if any(len(r) != 3 or not 0 <= r[1] <= r[2] or r[0] < 0 for r in (*row.ranges, *row.slices)):
        return "has a range of offsets that is none"
    if any(len(run) != 2 for runs in row.written.values() for run in runs):
        return "has under written something else than offsets and leader epochs"
    if any(len(counted) != 3 for counted in row.without_bytes.values()):
        return "has under without_bytes something else than a count and two offsets"
    return None


_PER_PARTITION = ("partitions", "reading", "without_bytes", "starts", "epochs", "written")
_NUMBER = re.compile(r"0|[1-9][0-9]{0,9}")
_SHOWN = 40

BATCH_ROWS = Versioned(
    BatchRow,
    "a row of the history",
    "it is for people alone: delete it, and it is made anew from the head",
    format=6,
    upgrades={
        1: lambda fields: {**fields, "epochs": {}},
        2: lambda fields: {**fields, "definition": {}},
        3: lambda fields: {**fields, "waits": None},
        4: lambda fields: {**fields, "table": ""},
        5: lambda fields: {**fields, "written": {}},
    },
    wrong=_wrong,
)


def describe_batch(
    plan: Plan,
    decision: Decision,
    *,
    holes: Mapping[Partition, int],
    committed_ms: EpochMs,
    seconds: Mapping[str, float],
    sizes: Mapping[str, int],
    reading: Mapping[int, tuple[int, float]] = MappingProxyType({}),
    without_bytes: Mapping[str, list[int]] = MappingProxyType({}),
    starts: Mapping[str, list[list[int]]] = MappingProxyType({}),
    waits: Waits | None = None,
    written: Mapping[Partition, Sequence[Written]] = MappingProxyType({}),
) -> BatchRow:
    """The audit of a decision. `holes` and `reading` per partition, from the receipts; `starts`, `waits`,
    `written`: as in the row."""
    partitions: dict[int, Counter[str]] = defaultdict(Counter)
    for (p, carried, fate), n in decision.fates.by_partition().items():
        partitions[p]["read"] += 0 if carried else n
        partitions[p][fate.value] += n
    # Counted from what is held, so that the identity sees a held chunk that was forgotten.
    for p, n in decision.carried_in.items():
        partitions[p]["carried_in"] += n
    for r in plan.ranges:
        partitions[r.partition]["planned"] += r.size
        partitions[r.partition]["holes"] = holes.get(r.partition, 0)
    names = ["planned", "holes", "read", "carried_in", *(f.value for f in Fate)]
    totals: Counter[str] = sum(partitions.values(), Counter())
    waiting = decision.waveforms(Fate.CARRIED_OUT)
    return BatchRow(
        plan_id=plan.plan_id,
        decision=decision.digest,
        sequence=decision.head.sequence,
        generation=decision.head.generation,
        kind=plan.kind.value,
        stream=plan.stream.name,
        committed_ms=committed_ms,
        ranges=[list(r) for r in plan.ranges],
        slices=[list(s) for unit in plan.units for s in unit],
        counts={n: totals[n] for n in names},
        partitions={str(p): {n: row[n] for n in names} for p, row in sorted(partitions.items())},
        reasons={r.value: n for r, n in sorted(decision.reasons().items())},
        waveforms={
            "published": len(decision.publish),
            "open": len(waiting),
            "quarantined": len(decision.waveforms(Fate.QUARANTINED) - waiting),
        },
        seconds=dict(seconds),
        bytes=dict(sizes),
        reading={str(p): [size, spent] for p, (size, spent) in sorted(reading.items())},
        without_bytes=dict(without_bytes),
        note=decision.head.note,
        held=dict(decision.held_counts),
        topic_id=plan.topic_id,
        starts=dict(starts),
        epochs=_epochs(plan),
        definition=spoken_definition(plan.stream),
        waits=waits,
        written={str(p): [list(run) for run in runs] for p, runs in sorted(written.items()) if _says(runs)},
    )


def _says(runs: Sequence[Written]) -> bool:
    return any(run.epoch != NO_EPOCH for run in runs)


def _epochs(plan: Plan) -> dict[str, int]:
    found = {r.partition: plan.ends[r.partition].leader_epoch for r in plan.ranges}
    return {str(p): epoch for p, epoch in sorted(found.items()) if epoch is not None}


def describe_head(head: Head, *, stream: str) -> BatchRow:
    """The little that a head alone can tell, for a decision whose own record was lost in a crash or that had none."""
    return BatchRow(
        plan_id=head.plan_id,
        decision=head.decision,
        sequence=head.sequence,
        generation=head.generation,
        kind=head.kind.value,
        stream=stream,
        committed_ms=head.committed_ms or BEGINNING,
        note=head.note,
        held=dict(head.held.counts) if head.held is not None else {},
        topic_id=head.topic_id,
    )
