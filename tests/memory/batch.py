"""A batch from plan to offsets over the memory edges: the product's steps, and between them the least that joins them.

Reading is the product's loop over a memory consumer, `find_whole` says what is to be stitched, and stitching is a join
of bytes in plain Python.
Wrapped in `faults.Steps` a run stops before each effect, so that a test can interleave, kill or fail it anywhere.
"""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Any

import xxhash

from tests.memory.faults import Edge
from tests.memory.memory_log import MemoryLog, Record
from tests.memory.memory_reader import read_slice, source_of
from tests.memory.memory_staging import MemoryStaging, landing_name
from tests.memory.memory_tables import MemoryFiles, MemoryTables, PublishedRow
from wavestitch.batch import commit_offsets as commit_step
from wavestitch.batch import plan as plan_step
from wavestitch.batch import publish as publish_step
from wavestitch.batch import reassemble as reassemble_step
from wavestitch.batch import stream_state as stream_state_step
from wavestitch.contracts.assembly import ChunkFacts
from wavestitch.contracts.chunk_header import Chunk, parse_chunk, record_digest
from wavestitch.contracts.decision import Evidence, Stitched
from wavestitch.contracts.held import PublishedChunk
from wavestitch.contracts.plan import Plan
from wavestitch.contracts.reasons import Reason
from wavestitch.contracts.receipt import LandedSlice, Receipt, check_coverage
from wavestitch.contracts.stream import Stream


@dataclass
class Bench(Edge):
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
    bench.tell("planned", plan=plan)
    return carry_through(bench, plan, how or Carrying())


def carry_through(bench: Bench, plan: Plan, how: Carrying) -> Any:
    """All steps after the plan. The same plan may be carried through again, by a second run at the same time, too."""
    done = publish_step.find_committed(bench.tables, plan.plan_id)
    if done is None:
        landed = _land(bench, plan)
        stitched, rows = _stitch(bench, plan, landed)
        failed = {i: ("the gate says no",) for i in stitched if i in how.failing}
        note = "parked" if how.park else ""
        done = publish_step.publish_batch(
            plan,
            Evidence(landed.chunks, landed.seen_ms, stitched, failed, how.park, note),
            tables=bench.tables,
            staging=MemoryStaging(plan.plan_id, bench.files, rows, landed.files),
            audit=publish_step.Audit(holes=landed.holes, committed_ms=plan.clock_ms, seconds={}, sizes={}),
        )
    commit_step.commit_offsets(plan.stream, log=bench.log, tables=bench.tables)
    return done


def _land(bench: Bench, plan: Plan) -> reassemble_step.Landed:
    landed = reassemble_step.Landed([], [], {}, {}, 0, 0.0)
    slices: list[LandedSlice] = []
    for file, wanted in enumerate(sorted(s for unit in plan.units for s in unit)):
        records, holes = read_slice(bench.log, source_of(plan), wanted)
        payload = tuple(r.value for r in records)
        landed.files.append(landing_name(plan.plan_id, file, hashlib.sha256(repr(payload).encode()).hexdigest()[:16]))
        bench.files.landings.setdefault(landed.files[-1], payload)
        bench.tell("read", plan_id=plan.plan_id, wanted=wanted, offsets=[r.offset for r in records])
        landed.chunks.extend(facts_of(r, file, row) for row, r in enumerate(records))
        p = wanted.partition
        landed.holes[p] = landed.holes.get(p, 0) + sum(hole.end - hole.start for hole in holes)
        if records:
            landed.seen_ms[p] = records[-1].timestamp_ms
        slices.append(LandedSlice(*wanted, f"{file}", 0, "", "", len(records), 0, landed.seen_ms.get(p), holes))
    check_coverage(plan, [Receipt(plan.plan_id, 0, slices, 0.0)])
    return landed


def facts_of(record: Record, file: int, row: int) -> ChunkFacts:
    """The index row of one record, as landing makes it."""
    found = parse_chunk(record.key, record.headers, record.value)
    place = (record.partition, record.offset, record.timestamp_ms)
    if isinstance(found, Chunk):
        return ChunkFacts(*place, *found, reason=None, evidence=None, file=file, row=row)
    value = record.value or b""
    claims = (found.waveform_id, found.seq, None, zlib.crc32(value), len(value), None, None)
    piece = record_digest(record.key, record.headers, record.value)
    return ChunkFacts(*place, *claims, piece, reason=found.reason, evidence=found.evidence, file=file, row=row)


def _stitch(
    bench: Bench, plan: Plan, landed: reassemble_step.Landed
) -> tuple[dict[str, Stitched], dict[str, PublishedRow]]:
    """Join what is whole, from landing and held, as both stand now; a digest that disagrees is said so."""
    ids = {c.waveform_id for c in landed.chunks if c.waveform_id is not None}
    now = stream_state_step.load_state(bench.tables, topic_id=plan.topic_id, ids=ids)
    stitched: dict[str, Stitched] = {}
    rows: dict[str, PublishedRow] = {}
    for whole in reassemble_step.find_whole(plan, landed, now):
        samples = b"".join(_payload(bench, plan, landed.files, c) for c in whole.pieces)
        digests = {c.digest for c in (*whole.pieces, *whole.repeats) if c.digest is not None}
        if digests - {xxhash.xxh3_128_hexdigest(samples)}:
            stitched[whole.waveform_id] = Stitched(Reason.DIGEST_MISMATCH, "the digest is another")
            continue
        stitched[whole.waveform_id] = Stitched(None, "")
        kept = tuple(PublishedChunk(c.partition, c.offset, c.length, c.piece) for c in whole.pieces)
        topics = tuple(c.topic_id or plan.topic_id for c in whole.pieces)
        rows[whole.waveform_id] = PublishedRow(whole.waveform_id, samples, topics, kept)
    return stitched, rows


def _payload(bench: Bench, plan: Plan, files: Sequence[str], chunk: ChunkFacts) -> bytes:
    if chunk.carried:
        topic_id, partition, offset = chunk.coordinate
        found = bench.tables.payload((topic_id or plan.topic_id, partition, offset))
    else:
        found = bench.files.landings[files[chunk.file]][chunk.row]
    assert found is not None, f"no payload for {chunk.place}"
    return found
