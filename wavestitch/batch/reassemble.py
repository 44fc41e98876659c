"""Step 3: put waveforms back together. Decides from the index which are whole; Spark moves the bytes.

Before Spark: the index columns of all landing files (never payload) and what is held go through the same `decide`
that the commit will use, so that nothing is stitched that is published already, and nothing is missed. Then a job of
assignments is written; Spark distributes their names. After Spark: its slim rows, one per waveform, are gathered.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType

import pyarrow as pa

from consumers.landed_file import read_index
from spark_apps.assignment import write_assignment
from wavestitch.batch.stream_state import StreamState, load_for_batch
from wavestitch.batch.work_folder import WorkFolder
from wavestitch.contracts.assembly import Assembly, ChunkFacts, assemble_waveform
from wavestitch.contracts.chunk_table import ChunkTable
from wavestitch.contracts.copies import Copy
from wavestitch.contracts.decision import Evidence, decide
from wavestitch.contracts.fates import AllStitched
from wavestitch.contracts.held import HeldKey, bare_keys
from wavestitch.contracts.held_mark import HeldMark
from wavestitch.contracts.payload_apart import PayloadPlace
from wavestitch.contracts.plan import Plan
from wavestitch.contracts.ports import Tables
from wavestitch.contracts.protocol import check_fence
from wavestitch.contracts.quantities import EpochMs, Partition
from wavestitch.contracts.reasons import Fate
from wavestitch.contracts.receipt import LandedSlice, Receipt, check_coverage
from wavestitch.contracts.rows import STITCHED
from wavestitch.contracts.stitch_job import StitchJob, StitchReport
from wavestitch.contracts.whole_waveforms import StitchTable, WholeWaveforms, deal_out
from wavestitch.contracts.written import NO_EPOCH, Written, runs_of
from wavestitch.mapped_file import fetch_besides, map_sparsely
from wavestitch.tables.stream_tables import StreamTables

TASK_BYTES = 512 << 20


@dataclass(frozen=True, slots=True)
class Landed:
    """What a batch read: its landing files by number, the index of all of them, and what the receipts say.

    `reading`: payload bytes and seconds per partition. `written`: in which leader epochs all of it was, per partition.
    """

    files: list[str]
    chunks: ChunkTable
    seen_ms: dict[Partition, EpochMs]
    holes: dict[Partition, int]
    payload_bytes: int
    seconds: float
    reading: dict[int, tuple[int, float]] = field(default_factory=dict)
    written: dict[Partition, list[Written]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ToStitch:
    """`held`: what the head named as held when it was decided what is `whole`. There are the bytes of what is carried
    into the batch: a head that came since may have let go of them."""

    whole: Sequence[Assembly]
    held: HeldMark | None


Elsewhere = Mapping[str, Sequence[Copy]]
Facts = Callable[[LandedSlice, int], ChunkTable]
"""The index of a slice, as landing file of this number."""


def load_landed(plan: Plan, receipts: Sequence[Receipt], folder: WorkFolder) -> Landed:
    """The batch's index, after checking that every planned offset is there or explained."""

    def facts(landed: LandedSlice, file: int) -> ChunkTable:
        # Landing files have left the page cache when they were written.
        fetch_besides(folder.path / str(landed.file), "payload")
        return ChunkTable.of_index(read_index(folder.path, landed), file)

    return gather_landed(plan, receipts, facts)


def gather_landed(plan: Plan, receipts: Sequence[Receipt], facts: Facts) -> Landed:
    """As `load_landed`, wherever the index is."""
    check_coverage(plan, receipts)
    slices = sorted((s for r in receipts for s in r.slices), key=lambda s: (s.partition, s.start))
    landed = [s for s in slices if s.file is not None]
    chunks = [facts(s, number) for number, s in enumerate(landed)]
    seen: dict[Partition, EpochMs] = {}
    holes: dict[Partition, int] = defaultdict(int)
    reading: dict[int, tuple[int, float]] = {}
    written: dict[Partition, list[Written]] = defaultdict(list)
    for s in slices:
        holes[s.partition] += sum(hole.end - hole.start for hole in s.holes)
        size, seconds = reading.get(s.partition, (0, 0.0))
        reading[s.partition] = (size + s.payload_bytes, round(seconds + s.seconds, 3))
        written[s.partition] += s.written or [Written(s.start, NO_EPOCH)]
        if s.seen_ms is not None:
            seen[s.partition] = s.seen_ms
    return Landed(
        [str(s.file) for s in landed],
        ChunkTable.joined(chunks),
        seen,
        dict(holes),
        sum(s.payload_bytes for s in slices),
        max((r.seconds for r in receipts), default=0.0),
        reading,
        {p: runs_of(runs) for p, runs in written.items()},
    )


def decide_whole(
    plan: Plan, landed: Landed, *, tables: Tables, elsewhere: Elsewhere = MappingProxyType({})
) -> ToStitch:
    """What is to be stitched, as everything stands now; `elsewhere`: as in the evidence. Raises `Fenced` where the
    plan is stale already."""
    now = load_for_batch(tables, plan, landed.chunks)
    check_fence(plan, now.head, base_in_ancestry=True)
    return ToStitch(find_whole(plan, landed, now, elsewhere), now.head.held)


def prepare_reassembly(
    plan: Plan,
    landed: Landed,
    what: ToStitch,
    *,
    tables: StreamTables,
    folder: WorkFolder,
    payload: PayloadPlace | None = None,
) -> Path:
    """Write the job that Spark is to do; returns its path. Without a whole waveform it has no assignments. `payload`:
    where that of landing files is that have it apart."""
    whole = what.whole
    others = whole.others if isinstance(whole, WholeWaveforms) else whole
    carried = [c.in_topic(plan.topic_id).key for a in others for c in a.pieces if c.carried]
    files, placed = list(landed.files), whole
    if carried:
        name = hashlib.sha256("\n".join(sorted(map(repr, carried))).encode()).hexdigest()[:32]
        path = folder.path / f"held-{name}.arrow"
        rows = tables.held_payloads(what.held, carried, path)
        mine = [_placed(a, len(files), rows, plan.topic_id) for a in others]
        placed = WholeWaveforms(whole.plain, mine, plan.stream.limits) if isinstance(whole, WholeWaveforms) else mine
        files.append(path.name)
    waves = StitchTable.of(placed)
    tasks = deal_out(waves, task_bytes=TASK_BYTES, tasks_at_least=plan.stream.reading.workers)
    job = StitchJob(
        plan_id=plan.plan_id,
        topic_id=plan.topic_id,
        folder=str(folder.path),
        output_folder=str(tables.data_folder(folder.path)),
        samples=plan.stream.samples,
        encoding=plan.stream.encoding,
        files=tuple(files),
        assignments=tuple(write_assignment(folder.path, waves.chosen(task)) for task in tasks),
        payload=payload,
    )
    return folder.write_digested("job", job.to_json())


def find_whole(
    plan: Plan, landed: Landed, now: StreamState, elsewhere: Elsewhere = MappingProxyType({})
) -> WholeWaveforms:
    """The waveforms that the batch will publish if their bytes prove right and the gate lets them pass."""
    suppose = Evidence(chunks=landed.chunks, seen_ms=landed.seen_ms, stitched=AllStitched(), elsewhere=elsewhere)
    supposed = decide(plan, suppose, head=now.head, held=now.held, published=now.published, sealed=False)
    pieces: dict[str, list[ChunkFacts]] = defaultdict(list)
    for f in supposed.fates.others:
        # Repeats, too: one of them may carry the digest that the copy taken does not.
        if f.fate in (Fate.PUBLISHED, Fate.DUPLICATE) and f.chunk.waveform_id is not None:
            pieces[f.chunk.waveform_id].append(f.chunk)
    limits, publish = plan.stream.limits, set(supposed.publish)
    bare, ids = bare_keys(now.held), sorted(publish & pieces.keys())
    others = [assemble_waveform(i, pieces[i], limits, accepted=plan.accepts, bare=bare) for i in ids]
    return WholeWaveforms(supposed.fates.plain, others, limits)


def gather_stitched(folder: WorkFolder, report: StitchReport | None) -> pa.Table:
    """All rows of the report's result files, one per waveform that was to be stitched."""
    tables = []
    for result in report.results if report else ():
        source = map_sparsely(folder.intact(result.stitched, kind="stitched"))
        tables.append(pa.ipc.open_file(source).read_all())
    return pa.concat_tables(tables) if tables else STITCHED.empty_table()


def _placed(a: Assembly, file: int, rows: Mapping[HeldKey, int], topic_id: str) -> Assembly:
    """The assembly with its carried pieces pointing into the file of held payloads."""
    pieces = ((c, rows[c.in_topic(topic_id).key] if c.carried else None) for c in a.pieces)
    return replace(a, pieces=tuple(c if row is None else c._replace(file=file, row=row) for c, row in pieces))
