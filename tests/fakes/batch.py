"""The edges of a stream's batches in memory: the product's own steps carry a batch through over these.

Reading is the product's loop over a memory consumer, the gate refuses what a test names, and stitching is a join of
bytes in plain Python. Wrapped in `faults.Steps` a run stops before each effect, so that a test can interleave, kill or
fail it anywhere.
"""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Collection, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import xxhash

from consumers.byte_budget import ByteBudget, budget_of
from consumers.unit_reader import _newest_epoch, _start_epoch
from tests.fakes.fake_log import FakeLog
from tests.fakes.fake_previews import FakePreviews, KeptPreviews
from tests.fakes.fake_reader import read_slice, source_of
from tests.fakes.fake_rows import FakeFiles, PublishedRow
from tests.fakes.fake_staging import FakeStaging, landing_name
from tests.fakes.fake_tables import FakeTables
from tests.fakes.faults import may_land_late
from tests.fakes.kept_partition import Record
from wavestitch.batch.backfill import Backfilled, run_backfill
from wavestitch.batch.closed_gate import stands_at_its_gate
from wavestitch.batch.edges import Progress, Say, Stitching
from wavestitch.batch.gate_in_head import stand_at_gate
from wavestitch.batch.plan import NothingToDo, PlanRequest
from wavestitch.batch.reassemble import Landed, ToStitch, gather_landed
from wavestitch.batch.request import Gate
from wavestitch.batch.results import BatchDone
from wavestitch.batch.run import RunOptions, Silent
from wavestitch.batch.run import run_batch as run_edges
from wavestitch.contracts.assembly import Assembly, ChunkFacts
from wavestitch.contracts.batch_row import BatchRow
from wavestitch.contracts.batch_size import ReaderStop
from wavestitch.contracts.chunk_header import Chunk, parse_chunk, record_digest
from wavestitch.contracts.chunk_proof import NO_PROOF, ChunkProof
from wavestitch.contracts.chunk_table import ChunkTable
from wavestitch.contracts.decision import Stitched
from wavestitch.contracts.errors import BadInput, Fenced, Transient
from wavestitch.contracts.held import HeldKey, PublishedChunk
from wavestitch.contracts.id_partitions import ANYWHERE, IdBinding
from wavestitch.contracts.offset_range import OffsetRange
from wavestitch.contracts.parts_index import PartsIndex, merged
from wavestitch.contracts.plan import Plan, Scope
from wavestitch.contracts.position import AtGate
from wavestitch.contracts.quantities import EpochMs
from wavestitch.contracts.raw_headers import kept_bytes
from wavestitch.contracts.reasons import Reason
from wavestitch.contracts.receipt import LandedSlice, Receipt
from wavestitch.contracts.sample_types import misfit
from wavestitch.contracts.seams import Parts
from wavestitch.contracts.stream import Stream
from wavestitch.contracts.verdict import Verdict, would_publish


@dataclass
class Bench(KeptPreviews):
    """The memory edges of one stream, and all that its batches ever left."""

    log: FakeLog
    files: FakeFiles = field(default_factory=FakeFiles)
    plans: dict[str, Plan] = field(default_factory=dict)
    landed_records: dict[str, tuple[Record, ...]] = field(default_factory=dict)
    receipts: dict[str, Receipt] = field(default_factory=dict)
    reports: dict[str, FakeStitching] = field(default_factory=dict)
    verdicts: dict[str, Verdict] = field(default_factory=dict)
    gates: dict[str, Plan] = field(default_factory=dict)
    """Plans whose gate closed."""
    at_gates: dict[str, list[tuple[str | None, str]]] = field(default_factory=dict)
    """By plan id, the names of the report and the verdict each time; none where a test has damaged that."""
    abandoned: set[str] = field(default_factory=set)
    stops: list[ReaderStop] = field(default_factory=list)
    parts: dict[str, dict[Parts, None]] = field(default_factory=dict)
    indexes: dict[str, dict[PartsIndex, None]] = field(default_factory=dict)
    proof: ChunkProof = NO_PROOF
    """What its stream demands of the chunks, the key looked up."""
    landing: Path | None = None
    """A folder on a disk, where a history has readers that leave files."""
    gathered: dict[tuple[object, ...], Landed] = field(default_factory=dict)
    """What was landed, by all that it follows from: each step of a batch asks for it."""
    tables: FakeTables = field(init=False)

    def __post_init__(self) -> None:
        self.tables = FakeTables(self.files)

    def copied(self) -> Bench:
        """The tables and what lies beside them, as they are now, over the same log."""
        made = copy(self)
        made.files = self.files.copied()
        for name in ("plans", "landed_records", "receipts", "reports", "verdicts", "gates", "previews", "decisions"):
            setattr(made, name, dict(getattr(self, name)))
        for name in ("at_gates", "parts", "indexes"):
            setattr(made, name, {i: copy(found) for i, found in getattr(self, name).items()})
        made.abandoned, made.stops, made.tables = set(self.abandoned), list(self.stops), self.tables.copied(made.files)
        return made


@dataclass(frozen=True)
class Carrying:
    """How a plan is carried through: `failing` names the waveforms whose rows the gate refuses; it closes where
    `spoiled` ones are at least half of what would be published, and where an expectation is `unsure`: it could not be
    judged in time. `gate`: what an operator says to that."""

    failing: Collection[str] = frozenset()
    park: bool = False
    spoiled: Collection[str] = frozenset()
    gate: Gate = "stop"
    unsure: bool = False


@dataclass(frozen=True)
class FakeStitching:
    """Implements `wavestitch.batch.edges.Stitching`. `rows`: of every waveform that was stitched."""

    plan_id: str
    files: FakeFiles
    outcomes: Mapping[str, Stitched]
    rows: Mapping[str, PublishedRow]

    def staging(self, landed: Landed) -> FakeStaging:
        return FakeStaging(self.plan_id, self.files, self.rows, landed.files)


@dataclass(frozen=True)
class FakeEdges(FakePreviews):
    """Implements `wavestitch.batch.edges.Edges`. `now_ms`: the clock, which stands."""

    bench: Bench
    stream: Stream
    now_ms: int
    how: Carrying

    @property
    def name(self) -> str:
        return self.stream.name

    @property
    def log(self) -> FakeLog:
        return self.bench.log

    @property
    def tables(self) -> FakeTables:
        return self.bench.tables

    @property
    def code_version(self) -> str:
        return "test"

    def clock_ms(self) -> EpochMs:
        return EpochMs(self.now_ms)

    def seconds(self) -> float:
        return 0.0

    def nonce(self) -> str:
        return str(len(self.bench.plans))

    def kept(self, decision: str) -> BatchRow | None:
        return self.bench.files.kept.get(decision)

    # the files of one batch

    @may_land_late
    def begin(self, plan: Plan) -> None:
        with self.bench.act("folder.begin", error=Transient):
            self.bench.plans[plan.plan_id] = plan
            self.bench.tell("planned", plan=plan)

    def plan(self, plan_id: str, *, committed: bool = False) -> Plan:
        self.bench.tell("looked", what="abandoned")
        if plan_id in self.bench.abandoned and not committed:
            raise Fenced(f"batch {plan_id} was abandoned")
        if plan_id not in self.bench.plans:
            raise BadInput(f"no plan {plan_id}")
        return self.bench.plans[plan_id]

    def keep_receipt(self, receipt: Receipt) -> str:
        return kept_once(self.bench.receipts, f"receipt-u{receipt.unit:03d}", receipt)

    def landed(self, plan: Plan, receipts: Sequence[str]) -> Landed:
        known = (plan.plan_id, *receipts, str(self.stream.id_partitions), self.stream.proof, self.bench.proof)
        if known not in self.bench.gathered:
            found = gather_landed(plan, [self.bench.receipts[name] for name in receipts], self._facts)
            self.bench.gathered[known] = found
        return self.bench.gathered[known]

    def stitching(self, plan: Plan, report: str | None) -> FakeStitching:
        return FakeStitching(plan.plan_id, self.bench.files, {}, {}) if report is None else self.bench.reports[report]

    def keep_verdict(self, plan: Plan, verdict: Verdict) -> str:
        return kept_once(self.bench.verdicts, f"verdict-{plan.plan_id}", verdict)

    def verdict(self, plan: Plan, name: str) -> Verdict:
        return self.bench.verdicts[name]

    def close_gate(self, plan: Plan, *, report: str | None, verdict: str) -> None:
        self._close(plan, report, verdict)
        if stands_at_its_gate(plan):
            stand_at_gate(plan, log=self.log, tables=self.tables)

    @may_land_late
    def _close(self, plan: Plan, report: str | None, verdict: str) -> None:
        with self.bench.act("folder.close_gate", error=Transient):
            self.bench.gates[plan.plan_id] = plan
            self.bench.at_gates.setdefault(plan.plan_id, []).append((report, verdict))
            self.bench.tell("gate closed", plan_id=plan.plan_id, ids=sorted(self.stopped(plan) or ()))

    def closed_gates(self) -> list[Plan]:
        with self.bench.act("folder.closed_gates", error=Transient):
            self.bench.tell("looked", what="gates")
            return [p for i, p in sorted(self.bench.gates.items()) if i not in self.bench.abandoned]

    def named_at_gate(self) -> tuple[AtGate, ...]:
        """In one with what comes next: the folders."""
        tables = self.bench.tables
        return tables.snapshots[-1].at_gate if tables.snapshots and not tables.headless else ()

    def stopped(self, plan: Plan) -> set[str] | None:
        found = self.bench.at_gates.get(plan.plan_id)
        if found is None:
            return None
        return set().union(
            *(would_publish(self.stitching(plan, r).outcomes, self.verdict(plan, v).failed) for r, v in found)
        )

    def reader_stops(self) -> list[ReaderStop]:
        return list(self.bench.stops)

    def keep_parts(self, parts: Parts, index: PartsIndex) -> None:
        with self.bench.act("folder.parts", error=Transient):
            self.bench.parts.setdefault(parts.plan_id, {})[parts] = None
        with self.bench.act("folder.index", error=Transient):
            self.bench.indexes.setdefault(parts.plan_id, {})[index] = None

    def parts(self, plan_id: str) -> Parts:
        if plan_id not in self.bench.parts:
            raise BadInput(f"no parts of plan {plan_id}")
        return Parts(plan_id, tuple(part for parts in self.bench.parts[plan_id] for part in parts.parts))

    def parts_index(self, plan_id: str) -> PartsIndex:
        if plan_id not in self.bench.indexes:
            raise BadInput(f"no index of plan {plan_id}")
        return merged(self.bench.indexes[plan_id])

    def free(self, plan_id: str) -> int:
        """Nothing: a zombie of the batch may still be at work on its landing, as the history may want to show."""
        return 0

    def tell_metrics(self) -> None:
        """Nobody draws anything of it."""

    # what moves data

    def read(self, plan: Plan, units: Sequence[int], *, progress: Progress) -> list[Receipt]:
        budget = FakeBudget.of(self.bench, plan, units)
        return [
            Receipt(plan.plan_id, unit, [self._land(plan, wanted, budget) for wanted in plan.units[unit]], 0.0)
            for unit in units
        ]

    def stitch(self, plan: Plan, landed: Landed, what: ToStitch, *, say: Say) -> str | None:
        """Join what is whole, from landing and held; a digest that disagrees is said so."""
        outcomes: dict[str, Stitched] = {}
        rows: dict[str, PublishedRow] = {}
        carried = any(c.carried for one in what.whole for c in one.pieces)
        held = self.bench.tables.bytes_of_held(what.held) if carried else {}
        for one in what.whole:
            samples = b"".join(self._payload(plan, landed.files, c, held) for c in one.pieces)
            if one.digest not in (None, xxhash.xxh3_128_hexdigest(samples)):
                outcomes[one.waveform_id] = Stitched(Reason.DIGEST_MISMATCH, "the digest is another")
                continue
            why = misfit(samples, one.metadata.sample_format, plan.stream.samples)
            if why is not None:
                outcomes[one.waveform_id] = Stitched(Reason.MISFIT, why)
                continue
            outcomes[one.waveform_id] = Stitched(None, "")
            kept = tuple(PublishedChunk(c.partition, c.offset, c.length, c.piece) for c in one.pieces)
            topics = topics_of(one, plan.topic_id)
            rows[one.waveform_id] = PublishedRow(one.waveform_id, samples, topics, kept)
        if not outcomes:
            return None
        made = FakeStitching(plan.plan_id, self.bench.files, outcomes, rows)
        return kept_once(self.bench.reports, f"report-{plan.plan_id}", made)

    def judge(self, plan: Plan, stitching: Stitching) -> Verdict:
        good = [i for i, s in stitching.outcomes.items() if s.reason is None]
        failed = {i: ("the gate says no",) for i in good if i in self.how.failing}
        spoiled = [i for i in good if i in self.how.spoiled]
        half = spoiled and 2 * len(spoiled) >= len(good)
        found = {"half of it is spoiled": half, "it could not be judged in time": good and self.how.unsure}
        closed = tuple(said for said, so in found.items() if so)
        if self.how.park or self.how.gate != "stop":
            self.bench.tell("answered", plan_id=plan.plan_id)
        return Verdict(failed=failed, closed=closed, reported=(), rows=len(good), expectations=1)

    def findings(self, plan_id: str) -> str:
        return "memory"

    def _land(self, plan: Plan, wanted: OffsetRange, budget: ByteBudget) -> LandedSlice:
        epochs = {"start_epoch": _start_epoch(plan, wanted), "newest_epoch": _newest_epoch(plan, wanted)}
        records, holes, written = read_slice(self.bench.log, source_of(plan), wanted, **epochs)
        for r in records:
            budget.add(kept_bytes(r.key, r.headers, r.value))
        name = landing_name(plan.plan_id, wanted, hashlib.sha256(repr(records).encode()).hexdigest()[:16])
        self.bench.files.landings.setdefault(name, tuple(r.value for r in records))
        self.bench.landed_records.setdefault(name, tuple(records))
        self.bench.tell("read", plan_id=plan.plan_id, wanted=wanted, records=records)
        seen_ms = records[-1].timestamp_ms if records else None
        return LandedSlice(*wanted, name, 0, "", "", len(records), 0, EpochMs(seen_ms), holes, written=written)

    def _facts(self, landed: LandedSlice, file: int) -> ChunkTable:
        records = self.bench.landed_records[str(landed.file)]
        ids = IdBinding(self.stream.id_partitions)
        proof = self.bench.proof if self.stream.proof != "none" else NO_PROOF
        return ChunkTable.of([facts_of(r, file, row, proof, ids) for row, r in enumerate(records)])

    def _payload(
        self, plan: Plan, files: Sequence[str], chunk: ChunkFacts, held: Mapping[HeldKey, bytes | None]
    ) -> bytes:
        if chunk.carried:
            found = held[chunk.in_topic(plan.topic_id).key]
        else:
            found = self.bench.files.landings[files[chunk.file]][chunk.row]
        assert found is not None, f"no payload for {chunk.place}"
        return found


def topics_of(one: Assembly, topic_id: str) -> tuple[str, ...]:
    """Of each piece; of what the batch read, this one."""
    return tuple(c.in_topic(topic_id).topic_id for c in one.pieces)


class FakeBudget(ByteBudget):
    """The product's own; what a reader had seen when it stopped is kept on the bench."""

    bench: Bench

    @classmethod
    def of(cls, bench: Bench, plan: Plan, units: Sequence[int]) -> FakeBudget:
        made = cls(plan, tuple(units), Path(), budget_of(plan, units, Path()).allowed)
        made.bench = bench
        return made

    def keep(self, seen: ReaderStop) -> None:
        with self.bench.act("folder.reader_stopped", error=Transient):
            self.bench.stops.append(seen)


def kept_once(where: dict[str, Any], stem: str, what: Any) -> str:
    """Keep a value under a name with its digest."""
    name = f"{stem}-{hashlib.sha256(repr(what).encode()).hexdigest()[:16]}"
    where.setdefault(name, what)
    return name


def run_batch(
    bench: Bench, stream: Stream, request: PlanRequest, *, clock_ms: int, how: Carrying | None = None
) -> BatchDone | NothingToDo:
    """Plan, then carry through."""
    how = how or Carrying()
    return run_edges(FakeEdges(bench, stream, clock_ms, how), RunOptions(request, **_gate(how)), watcher=Silent())


def run_interval(
    bench: Bench, stream: Stream, scope: Scope, *, clock_ms: int, how: Carrying | None = None
) -> Backfilled:
    """A backfill: as many batches as the stream's limits make of it, and what lies across their cuts."""
    how = how or Carrying()
    edges = FakeEdges(bench, stream, clock_ms, how)
    return run_backfill(edges, scope, RunOptions(**_gate(how)), watcher=Silent())


def carry_through(bench: Bench, plan: Plan, how: Carrying) -> BatchDone | NothingToDo:
    """All steps after the plan. The same plan may be carried through again, by a second run at the same time, too."""
    edges = FakeEdges(bench, plan.stream, plan.clock_ms, how)
    return run_edges(edges, RunOptions(plan_id=plan.plan_id, **_gate(how)), watcher=Silent())


def _gate(how: Carrying) -> dict[str, Any]:
    gate = "park" if how.park else how.gate
    return {"gate": gate, "why": gate} if gate != "stop" else {}


def facts_of(
    record: Record, file: int, row: int, proof: ChunkProof = NO_PROOF, ids: IdBinding = ANYWHERE
) -> ChunkFacts:
    """The index row of one record, as landing makes it."""
    found = ids.judge(parse_chunk(record.key, record.headers, record.value, proof), record.partition)
    place = (record.partition, record.offset, record.timestamp_ms)
    if isinstance(found, Chunk):
        return ChunkFacts(*place, *found, reason=None, evidence=None, file=file, row=row)  # type: ignore[arg-type]
    value = record.value or b""
    kept = kept_bytes(record.key, record.headers, record.value)
    claims = (found.waveform_id, found.seq, None, zlib.crc32(value), kept, None, None)
    piece = record_digest(record.key, record.headers, record.value)
    return ChunkFacts(*place, *claims, piece, reason=found.reason, evidence=found.evidence, file=file, row=row)  # type: ignore[arg-type]
