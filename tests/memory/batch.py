"""A batch from plan to offsets over the memory edges: the product's steps, and between them the least that joins them.

Reading is `MemoryLog.read` and `parse_chunk` on the record's own bytes, stitching is a join of bytes in plain Python.
Wrapped in `faults.Steps` a run stops before each effect, so that a test can interleave, kill or fail it anywhere.
"""

from __future__ import annotations

import zlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import xxhash

from tests.memory.memory_log import MemoryLog, Record
from tests.memory.memory_staging import MemoryStaging, landing_name
from tests.memory.memory_tables import MemoryFiles, MemoryTables, PublishedRow
from wavestitch.batch import commit_offsets as commit_step
from wavestitch.batch import plan as plan_step
from wavestitch.batch import publish as publish_step
from wavestitch.batch import standing as standing_step
from wavestitch.contracts import decision as decision_contract
from wavestitch.contracts.assembly import ChunkFacts
from wavestitch.contracts.chunk_header import Chunk, parse_chunk
from wavestitch.contracts.decision import Evidence, Stitched
from wavestitch.contracts.held import PublishedChunk
from wavestitch.contracts.plan import Plan
from wavestitch.contracts.reasons import Fate, Reason
from wavestitch.contracts.receipt import LandedSlice, Receipt, check_coverage
from wavestitch.contracts.stream import Stream


@dataclass
class Bench:
    """The memory edges of one stream, and every plan that was made on them."""

    log: MemoryLog
    files: MemoryFiles = field(default_factory=MemoryFiles)
    plans: dict[str, Plan] = field(default_factory=dict)
    tables: MemoryTables = field(init=False)

    def __post_init__(self) -> None:
        self.tables = MemoryTables(self.files)


@dataclass(frozen=True)
class Carrying:
    """How a plan is carried through: `failing` names the waveforms whose rows the gate refuses."""

    failing: Collection[str] = frozenset()
    park: bool = False


def run_batch(
    bench: Bench, stream: Stream, request: plan_step.PlanRequest, *, clock_ms: int, how: Carrying | None = None
) -> Any:
    """Plan, then carry through; returns what `publish_batch` returned, or `NothingToDo`."""
    publish_step.repair_history(bench.tables, stream=stream.name, kept=bench.files.kept.get, now_ms=clock_ms)
    plan = plan_step.plan_batch(
        stream,
        request,
        log=bench.log,
        tables=bench.tables,
        clock_ms=clock_ms,
        nonce=str(len(bench.plans)),
        code_version="test",
    )
    if not isinstance(plan, Plan):
        return plan
    bench.plans[plan.plan_id] = plan
    return carry_through(bench, plan, how or Carrying())


def carry_through(bench: Bench, plan: Plan, how: Carrying) -> Any:
    """All steps after the plan. The same plan may be carried through again, by a second run at the same time, too."""
    done = publish_step.find_committed(bench.tables, plan.plan_id)
    if done is None:
        evidence, rows, holes = _read_and_stitch(bench, plan, how)
        done = publish_step.publish_batch(
            plan,
            evidence,
            tables=bench.tables,
            staging=MemoryStaging(plan.plan_id, bench.files, rows),
            audit=publish_step.Audit(holes=holes, committed_ms=plan.clock_ms, seconds={}, sizes={}),
        )
    commit_step.commit_offsets(plan.stream, log=bench.log, tables=bench.tables)
    return done


def _read_and_stitch(
    bench: Bench, plan: Plan, how: Carrying
) -> tuple[Evidence, dict[str, PublishedRow], dict[int, int]]:
    chunks, seen_ms, receipt = _land(bench, plan)
    check_coverage(plan, [receipt])
    holes: dict[int, int] = {}
    for s in receipt.slices:
        holes[s.partition] = holes.get(s.partition, 0) + sum(b - a for a, b in s.holes)
    stitched, rows = _stitch(bench, plan, chunks)
    failed = {i: ("the gate says no",) for i in stitched if i in how.failing}
    return Evidence(chunks, seen_ms, stitched, failed, how.park, "parked" if how.park else ""), rows, holes


def _land(bench: Bench, plan: Plan) -> tuple[list[ChunkFacts], dict[int, int], Receipt]:
    chunks: list[ChunkFacts] = []
    seen_ms: dict[int, int] = {}
    slices: list[LandedSlice] = []
    for file, wanted in enumerate(sorted(s for unit in plan.units for s in unit)):
        records = bench.log.read(plan.topic_id, wanted)
        bench.files.landings[landing_name(plan.plan_id, file)] = [r.value for r in records]
        chunks += [facts_of(r, file, row) for row, r in enumerate(records)]
        there = {r.offset for r in records}
        holes = [[o, o + 1] for o in range(wanted.start, wanted.end) if o not in there]
        last = records[-1].timestamp_ms if records else None
        if last is not None:
            seen_ms[wanted.partition] = last
        slices.append(LandedSlice(*wanted, f"{file}", 0, "", len(records), 0, last, holes))
    return chunks, seen_ms, Receipt(plan.plan_id, 0, slices, 0.0)


def facts_of(record: Record, file: int, row: int) -> ChunkFacts:
    """The index row of one record, as landing makes it."""
    found = parse_chunk(record.key, record.headers, record.value)
    place = (record.partition, record.offset, record.timestamp_ms)
    if isinstance(found, Chunk):
        return ChunkFacts(*place, *found, reason=None, evidence=None, file=file, row=row)
    value = record.value or b""
    claims = (found.waveform_id, found.seq, None, zlib.crc32(value), len(value), None, None)
    return ChunkFacts(*place, *claims, reason=found.reason, evidence=found.evidence, file=file, row=row)


class _AllStitched(Mapping[str, Stitched]):
    """Says of every waveform that it was stitched: what `decide` then publishes are the candidates."""

    def __getitem__(self, key: str) -> Stitched:
        return Stitched(None, "")

    def __iter__(self) -> Iterator[str]:
        return iter(())

    def __len__(self) -> int:
        return 0


def _stitch(
    bench: Bench, plan: Plan, chunks: Sequence[ChunkFacts]
) -> tuple[dict[str, Stitched], dict[str, PublishedRow]]:
    """Join what is whole, from landing and held, as both stand now; a digest that disagrees is said so."""
    ids = {c.waveform_id for c in chunks if c.waveform_id is not None}
    now = standing_step.look(bench.tables, topic_id=plan.topic_id, ids=ids)
    candidates = decision_contract.decide(
        plan, Evidence(chunks, {}, _AllStitched()), head=now.head, held=now.held, published=now.published
    )
    stitched: dict[str, Stitched] = {}
    rows: dict[str, PublishedRow] = {}
    for waveform_id in candidates.publish:
        mine = [f for f in candidates.fates if f.chunk.waveform_id == waveform_id and f.chunk.reason is None]
        pieces = sorted((f.chunk for f in mine if f.fate is Fate.PUBLISHED), key=lambda c: c.seq or 0)
        samples = b"".join(_payload(bench, plan, c) for c in pieces)
        digests = {f.chunk.digest for f in mine if f.chunk.digest is not None}
        if digests - {xxhash.xxh3_128_hexdigest(samples)}:
            stitched[waveform_id] = Stitched(Reason.DIGEST_MISMATCH, "the digest is another")
            continue
        stitched[waveform_id] = Stitched(None, "")
        kept = tuple(PublishedChunk(c.partition, c.offset, c.length, c.crc) for c in pieces)
        topics = tuple(c.topic_id or plan.topic_id for c in pieces)
        rows[waveform_id] = PublishedRow(waveform_id, samples, topics, kept)
    return stitched, rows


def _payload(bench: Bench, plan: Plan, chunk: ChunkFacts) -> bytes:
    if chunk.carried:
        topic_id, partition, offset = chunk.coordinate
        found = bench.tables.payload((topic_id or plan.topic_id, partition, offset))
    else:
        found = bench.files.landings[landing_name(plan.plan_id, chunk.file)][chunk.row]
    assert found is not None, f"no payload for {chunk.place}"
    return found
