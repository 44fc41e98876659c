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
from itertools import repeat
from pathlib import Path

import pyarrow as pa

from consumers.landed_file import read_index
from spark_apps.assignment import write_assignment
from wavestitch.batch.stream_state import StreamState, load_ground
from wavestitch.batch.work_folder import WorkFolder
from wavestitch.contracts.assembly import Assembly, ChunkFacts, assemble_waveform
from wavestitch.contracts.decision import Evidence, Stitched, decide
from wavestitch.contracts.held import HeldKey
from wavestitch.contracts.plan import Plan
from wavestitch.contracts.ports import Tables
from wavestitch.contracts.protocol import check_fence
from wavestitch.contracts.quantities import EpochMs
from wavestitch.contracts.reasons import Fate
from wavestitch.contracts.receipt import LandedSlice, Receipt, check_coverage
from wavestitch.contracts.rows import INDEX_COLUMNS, STITCHED, texts_of
from wavestitch.contracts.stitch_job import Codec, StitchJob, StitchReport, assign_waveforms
from wavestitch.tables.stream_tables import StreamTables

TASK_BYTES = 512 << 20


class _AllStitched(Mapping[str, Stitched]):
    """Before stitching: suppose that every whole waveform will be."""

    def __getitem__(self, waveform_id: str) -> Stitched:
        return Stitched(None, "")

    def __iter__(self):  # type: ignore[no-untyped-def]
        return iter(())

    def __len__(self) -> int:
        return 0


@dataclass(frozen=True, slots=True)
class Landed:
    """What a batch read: its landing files by number, the index of all of them, and what the receipts say.

    `reading`: payload bytes and seconds per partition.
    """

    files: list[str]
    chunks: list[ChunkFacts]
    seen_ms: dict[int, EpochMs]
    holes: dict[int, int]
    payload_bytes: int
    seconds: float
    reading: dict[int, tuple[int, float]] = field(default_factory=dict)


Facts = Callable[[LandedSlice, int], list[ChunkFacts]]
"""The index of a slice, as landing file of this number."""


def load_landed(plan: Plan, receipts: Sequence[Receipt], folder: WorkFolder) -> Landed:
    """The batch's index, after checking that every planned offset is there or explained."""
    shared: dict[str, str] = {}
    return gather_landed(plan, receipts, lambda s, file: index_facts(read_index(folder.path, s), file, shared=shared))


def gather_landed(plan: Plan, receipts: Sequence[Receipt], facts: Facts) -> Landed:
    """As `load_landed`, wherever the index is."""
    check_coverage(plan, receipts)
    slices = sorted((s for r in receipts for s in r.slices), key=lambda s: (s.partition, s.start))
    files: list[str] = []
    chunks: list[ChunkFacts] = []
    seen: dict[int, EpochMs] = {}
    holes: dict[int, int] = defaultdict(int)
    reading: dict[int, tuple[int, float]] = {}
    for s in slices:
        holes[s.partition] += sum(hole.end - hole.start for hole in s.holes)
        size, seconds = reading.get(s.partition, (0, 0.0))
        reading[s.partition] = (size + s.payload_bytes, round(seconds + s.seconds, 3))
        if s.seen_ms is not None:
            seen[s.partition] = s.seen_ms
        if s.file is not None:
            chunks += facts(s, len(files))
            files.append(s.file)
    return Landed(
        files,
        chunks,
        seen,
        dict(holes),
        sum(s.payload_bytes for s in slices),
        max((r.seconds for r in receipts), default=0.0),
        reading,
    )


def index_facts(index: pa.Table, file: int, *, shared: dict[str, str] | None = None) -> list[ChunkFacts]:
    """One `ChunkFacts` per row of a landing file's index, its record batches as they were written.

    Repeated texts (ids, metadata) are kept once, in `shared`.
    """
    shared = {} if shared is None else shared
    columns = {name: index.column(name).to_pylist() for name in INDEX_COLUMNS if name not in ("meta", "meta_row")}
    columns["meta"] = [text for batch in index.to_batches() for text in texts_of(batch)]
    for name in ("waveform_id", "meta", "evidence"):
        columns[name] = [None if v is None else shared.setdefault(v, v) for v in columns[name]]
    said = (columns[name] for name in _FACT_COLUMNS)
    return list(map(ChunkFacts._make, zip(*said, repeat(False), repeat(file), range(len(index)), repeat(""))))


_FACT_COLUMNS = (
    "partition",
    "offset",
    "timestamp_ms",
    "waveform_id",
    "seq",
    "count",
    "crc",
    "length",
    "meta",
    "digest",
    "piece",
    "reason",
    "evidence",
)


def decide_whole(plan: Plan, landed: Landed, *, tables: Tables) -> list[Assembly]:
    """What is to be stitched, as everything stands now. Raises `Fenced` where the plan is stale already."""
    now = load_ground(tables, plan, landed.chunks)
    check_fence(plan, now.head, base_in_ancestry=True)
    return find_whole(plan, landed, now)


def prepare_reassembly(
    plan: Plan,
    landed: Landed,
    whole: Sequence[Assembly],
    *,
    tables: StreamTables,
    folder: WorkFolder,
    codec: Codec,
) -> Path:
    """Write the job that Spark is to do; returns its path. Without a whole waveform it has no assignments."""
    carried = [_held_key(c, plan.topic_id) for a in whole for c in a.pieces if c.carried]
    files, placed = list(landed.files), list(whole)
    if carried:
        head = tables.head()
        name = hashlib.sha256("\n".join(sorted(map(repr, carried))).encode()).hexdigest()[:32]
        path = folder.path / f"held-{name}.arrow"
        rows = tables.held_payloads(head.held if head is not None else None, carried, path)
        placed = [_placed(a, len(files), rows, plan.topic_id) for a in whole]
        files.append(path.name)
    batches = assign_waveforms(placed, task_bytes=TASK_BYTES, tasks_at_least=plan.stream.reading.workers)
    job = StitchJob(
        plan_id=plan.plan_id,
        topic_id=plan.topic_id,
        folder=str(folder.path),
        output_folder=str(tables.data_folder()),
        codec=codec,
        files=tuple(files),
        assignments=tuple(write_assignment(folder.path, batch) for batch in batches),
    )
    return folder.write_digested("job", job.to_json())


def find_whole(plan: Plan, landed: Landed, now: StreamState) -> list[Assembly]:
    """The waveforms that the batch will publish if their bytes prove right and the gate lets them pass."""
    suppose = Evidence(chunks=landed.chunks, seen_ms=landed.seen_ms, stitched=_AllStitched())
    supposed = decide(plan, suppose, head=now.head, held=now.held, published=now.published)
    pieces: dict[str, list[ChunkFacts]] = defaultdict(list)
    for f in supposed.fates:
        # Repeats, too: one of them may carry the digest that the copy taken does not.
        if f.fate in (Fate.PUBLISHED, Fate.DUPLICATE) and f.chunk.waveform_id is not None:
            pieces[f.chunk.waveform_id].append(f.chunk)
    return [assemble_waveform(i, pieces[i], plan.stream.limits, accepted=plan.accepts) for i in supposed.publish]


def gather_stitched(folder: WorkFolder, report: StitchReport | None) -> pa.Table:
    """All rows of the report's result files, one per waveform that was to be stitched."""
    tables = []
    for result in report.results if report else ():
        with pa.memory_map(str(folder.intact(result.stitched, kind="stitched"))) as source:
            tables.append(pa.ipc.open_file(source).read_all())
    return pa.concat_tables(tables) if tables else STITCHED.empty_table()


def _held_key(c: ChunkFacts, topic_id: str) -> HeldKey:
    """As the held table has it, where every topic is named."""
    return c._replace(topic_id=c.topic_id or topic_id).key


def _placed(a: Assembly, file: int, rows: Mapping[HeldKey, int], topic_id: str) -> Assembly:
    """The assembly with its carried pieces pointing into the file of held payloads."""
    pieces = tuple(c._replace(file=file, row=rows[_held_key(c, topic_id)]) if c.carried else c for c in a.pieces)
    return replace(a, pieces=pieces)
