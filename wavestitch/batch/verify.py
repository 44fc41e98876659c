"""Verify a range: read it once more, stitch it, ask the gate, and compare with the table at one snapshot.

    what is meant -> its batches, each read, reassembled and validated by the steps of every batch -> those that read
    across their cuts -> each waveform compared with its row

Publishes nothing, holds nothing, moves no position, and leaves no landing behind; what it compares with is one
snapshot, whoever ingests meanwhile. Waveforms across the range's edges are outside, and said to be. Keeps I5: the
samples of a range are on disk, a batch at a time, and in memory are the digests of its rows.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from wavestitch.batch.begin_planning import begin_planning
from wavestitch.batch.carry import NOTHING_READ, Carried, How, Watcher, carry_through
from wavestitch.batch.history import history_of, whole_history
from wavestitch.batch.located import locate, noted_starts
from wavestitch.batch.plan_request import Planning, PlanRequest
from wavestitch.batch.publishes_nothing import ComparingEdges
from wavestitch.batch.results import Reassembled, Validated, needed
from wavestitch.batch.survey import Made, Survey, plan_of, size_of, survey
from wavestitch.batch.verify_request import VerifyRequest
from wavestitch.contracts.assembly import assemble
from wavestitch.contracts.batch_stages import ReadUnits, Reassemble, Validate
from wavestitch.contracts.chunk_table import ChunkTable
from wavestitch.contracts.errors import BadInput, DataLost, Refused
from wavestitch.contracts.held import HeldChunk
from wavestitch.contracts.held_choice import HeldAction
from wavestitch.contracts.offset_range import OffsetRange, cut_links, joined, pack_groups, without
from wavestitch.contracts.plan import Plan, PlanKind
from wavestitch.contracts.quantities import Offset, Partition
from wavestitch.contracts.reasons import Reason
from wavestitch.contracts.row_face import RowFace, RowPiece
from wavestitch.contracts.start_times import start_time_ns
from wavestitch.contracts.verdict import Verdict
from wavestitch.contracts.verification import (
    Agreement,
    Compared,
    Ground,
    HeldNow,
    InLog,
    LogChunk,
    accepted,
    compare,
    counts_of,
    exit_code,
    in_words,
)

__all__ = ["Verified", "VerifyRequest", "verify_range"]
_AT_ONCE = 200_000
_TRIES = 100
_STAGES = (ReadUnits, Reassemble, Validate)


@dataclass(frozen=True, slots=True)
class Verified:
    """What came of it. `snapshot_id`, `sequence`: the head that was compared with. `asked`: what was meant, `read`:
    what of it was read; `lost`: what of it the log has no more. `counts`: waveforms by what they were found to be;
    `waveforms`: each of them. `remarks`: sentences that change nothing about it."""

    stream: str
    snapshot_id: int
    sequence: int
    asked: tuple[OffsetRange, ...]
    read: tuple[OffsetRange, ...]
    lost: tuple[OffsetRange, ...]
    counts: Mapping[str, int]
    waveforms: tuple[Compared, ...]
    remarks: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Range:
    """`asked`: offsets, those that are gone included; `there`: those that are read. `why`: per partition."""

    here: Survey
    by: Planning
    asked: list[OffsetRange]
    there: list[OffsetRange]
    lost: list[OffsetRange]
    kind: PlanRequest


def verify_range(edges: ComparingEdges, request: VerifyRequest, *, watcher: Watcher) -> Verified:
    """The proof: what the log gives today beside what the table says, waveform by waveform."""
    with edges.place():
        return _verify(edges, request, watcher)


def _verify(edges: ComparingEdges, request: VerifyRequest, watcher: Watcher) -> Verified:
    watcher.begin("plan")
    meant = _range_of(edges, request)
    head, topic_id = edges.snapshot.head, meant.here.topic.topic_id
    watcher.say(f"compared with snapshot {head.snapshot_id} (head {head.sequence}); {_offsets(meant.there)} to read")
    claims = _claims(edges, request, meant, topic_id)
    look = _Look(edges, meant, {(p.partition, p.offset) for pieces in claims.values() for p in pieces}, watcher)
    look.read(_links(edges, meant))
    watcher.begin("compare")
    positions = {p: at.next_offset for p, at in head.positions.items()}
    ground = Ground(topic_id, tuple(joined(meant.there)), look.log_start, positions, look.chunks)
    found = _compare(edges, sorted({*claims, *look.logs}), look.logs, ground)
    return Verified(
        stream=edges.name,
        snapshot_id=head.snapshot_id or 0,
        sequence=head.sequence,
        asked=tuple(meant.asked),
        read=ground.read,
        lost=tuple(meant.lost),
        counts=counts_of(found),
        waveforms=tuple(found),
        remarks=tuple(_remarks(meant, look)),
    )


def _range_of(edges: ComparingEdges, request: VerifyRequest) -> _Range:
    kind = PlanKind.MANUAL if request.scope is None else PlanKind.BACKFILL
    asked_as = PlanRequest(kind, scope=request.scope, only=request.only)
    # Nothing is applied: it stands on the snapshot's head as it is.
    walk, by = begin_planning(edges, apply=False)
    here = survey(edges.stream, asked_as, walk=walk, clock_ms=by.clock_ms)
    asked = [r for r in _asked(edges, request, here) if asked_as.wants(r.partition) and r.size > 0]
    unknown = {r.partition for r in asked} - set(here.topic.partitions)
    if unknown:
        raise BadInput(
            f"stream {edges.name}: partition {min(unknown)} was named; topic {here.topic.name} has "
            f"{len(here.topic.partitions)} partitions, counted from 0"
        )
    log = {p: OffsetRange(p, end.log_start, end.stable_end) for p, end in here.ends.items()}
    there = joined(cut for r in asked if (cut := r.cut(log[r.partition])).size > 0)
    gone = [OffsetRange(p, Offset(0), end.log_start) for p, end in here.ends.items()]
    lost = without(asked, without(asked, gone))
    return _Range(here, by, joined(asked), there, lost, asked_as)


def _asked(edges: ComparingEdges, request: VerifyRequest, here: Survey) -> Sequence[OffsetRange]:
    if request.scope is not None:
        known = noted_starts(here, request.scope)
        found = locate(edges.stream, request.scope, topic=here.topic, ends=here.ends, log=here.log, known=known)
        return [*found.ranges, *found.lost, *found.read_before]
    if request.ranges:
        return request.ranges
    if request.batch:
        return _ranges_of_batch(edges, request.batch, here.topic.topic_id)
    return [OffsetRange(p, here.ends[p].log_start, at.next_offset) for p, at in here.head.positions.items()]


def _ranges_of_batch(edges: ComparingEdges, batch: str, topic_id: str) -> list[OffsetRange]:
    rows = {row.plan_id: row for row in whole_history(history_of(edges)) if row.plan_id.startswith(batch)}
    if len(rows) != 1:
        raise BadInput(f"{len(rows)} batches begin with {batch!r}; `wavestitch batches {edges.name}` lists them")
    (row,) = rows.values()
    if not row.ranges or row.topic_id not in ("", topic_id):
        read = "read another topic than there is now" if row.ranges else "read nothing, or its record was lost"
        raise Refused(f"batch {row.plan_id[:16]} of stream {edges.name} {read}; name --offsets or --interval instead")
    return list(row.read_ranges)


def _links(edges: ComparingEdges, meant: _Range) -> list[Plan]:
    mean, most = size_of(edges.stream, meant.kind.kind, meant.here, meant.there, meant.by.stops)
    made = Made(meant.kind, mean, meant.by)
    return [_plan(edges, meant, made, part) for part in cut_links(meant.there, most=most)]


def _plan(edges: ComparingEdges, meant: _Range, made: Made, ranges: Sequence[OffsetRange]) -> Plan:
    why = dict.fromkeys(meant.here.topic.partitions, "verified")
    return plan_of(edges.stream, meant.here, made, ranges, why=why)


def _claims(
    edges: ComparingEdges, request: VerifyRequest, meant: _Range, topic_id: str
) -> dict[str, Sequence[RowPiece]]:
    """What the table says of the range: its rows there, and where their chunks lay."""
    if request.scope is not None:
        found = edges.snapshot.rows_starting(request.scope)
    else:
        found = edges.snapshot.rows_from(meant.asked, topic_id)
    return dict(found)


class _Look:
    """What the log gives of a range, gathered batch by batch."""

    def __init__(self, edges: ComparingEdges, meant: _Range, places: set[tuple[int, int]], watcher: Watcher) -> None:
        """`places`: those that rows of the table name."""
        self._edges, self._meant, self._places, self._watcher = edges, meant, places, watcher
        self.logs: dict[str, InLog] = {}
        self.chunks: dict[tuple[int, int], LogChunk] = {}
        self.closed: set[str] = set()
        self.absent: list[OffsetRange] = []
        self.log_start = {p: end.log_start for p, end in meant.here.ends.items()}
        self._cut: dict[str, list[OffsetRange]] = {}

    def read(self, links: Sequence[Plan]) -> None:
        for plan in links:
            self._read_one(plan)
        across = {i: r for i, r in self._cut.items() if len(r) > 1 and self.logs[i].made is None}
        if len(links) < 2 or not across:
            return
        self._watcher.say(f"{len(across)} waveforms lie across the cuts between batches, and are read together")
        mean, most = links[0].mean_record_bytes, max(plan.records for plan in links)
        # Under a nonce of its own: it may read what one of the others has read.
        made = Made(self._meant.kind, mean, replace(self._meant.by, nonce=self._edges.nonce()))
        for part in pack_groups(across.values(), most=most):
            self._read_one(_plan(self._edges, self._meant, made, part), only=across.keys())

    def _read_one(self, plan: Plan, *, only: Iterable[str] | None = None) -> None:
        """A batch; without the offsets that the log turns out not to deliver, which no batch may pass over."""
        for _ in range(_TRIES):
            try:
                return self._carry(plan, only)
            except DataLost as error:
                left = without(plan.ranges, self._note_gone(error))
                if not left:
                    return None
                by = replace(self._meant.by, nonce=self._edges.nonce())
                plan = _plan(self._edges, self._meant, Made(self._meant.kind, plan.mean_record_bytes, by), left)
        raise Refused(
            f"stream {self._edges.name}: the log delivered other offsets than it says it has {_TRIES} times; look at "
            "the brokers, or verify a smaller range"
        )

    def _note_gone(self, error: DataLost) -> list[OffsetRange]:
        partition, intervals = error.facts.get("partition"), error.facts.get("offsets")
        if not isinstance(partition, int) or not intervals:
            raise error
        at = Partition(partition)
        gone = [OffsetRange(at, start, end) for start, end in intervals]
        if (start := error.facts.get("log_start")) is not None:
            self.log_start[at] = max(start, self.log_start.get(at, 0))
        else:
            self.absent += gone
        return gone

    def _carry(self, plan: Plan, only: Iterable[str] | None) -> None:
        edges = self._edges
        edges.begin(plan)
        how = How("accept", "verified", watcher=self._watcher)
        done = carry_through(_STAGES, edges, Carried(plan.plan_id, (NOTHING_READ,)), how, total=plan.records)
        stitched = needed(done.of(Reassembled), plan.plan_id)
        verdict = edges.verdict(plan, needed(done.of(Validated), plan.plan_id).verdict)
        self.closed |= set(verdict.closed)
        chunks = ChunkTable.of(edges.landed(plan, stitched.receipts).chunks)
        self._note_places(chunks)
        wanted = None if only is None else set(only)
        for one in _logs(edges, plan, stitched.report, verdict, chunks):
            if wanted is None or one.waveform_id in wanted:
                self._take(one)
        edges.free(plan.plan_id)

    def _take(self, one: InLog) -> None:
        """Of several batches that have read of it the one that has it whole."""
        self._cut.setdefault(one.waveform_id, []).extend(one.places)
        known = self.logs.get(one.waveform_id)
        if known is None or known.made is None:
            self.logs[one.waveform_id] = one

    def _note_places(self, chunks: ChunkTable) -> None:
        at = zip(chunks.partition.tolist(), chunks.offset.tolist(), strict=True)
        rows = [n for n, place in enumerate(at) if place in self._places]
        for fact in chunks.facts(rows):
            said = LogChunk(fact.piece, fact.timestamp_ms, fact.reason or "")
            self.chunks[fact.partition, fact.offset] = said


def _logs(
    edges: ComparingEdges, plan: Plan, report: str | None, verdict: Verdict, chunks: ChunkTable
) -> Iterable[InLog]:
    """Each waveform of which a batch has read valid chunks, and that the range owns."""
    outcomes = edges.stitching(plan, report).outcomes
    made = {face.waveform_id: face for face in edges.faces(plan, report)}
    places = _places_of(chunks)
    for waveform_id, stitched in outcomes.items():
        failed = verdict.failed.get(waveform_id)
        reason = stitched.reason or (Reason.FAILED_EXPECTATION if failed else None)
        evidence = "; ".join(failed) if failed and not stitched.reason else stitched.evidence
        yield InLog(waveform_id, made.get(waveform_id), reason, evidence, places.get(waveform_id, ()))
    others = [i for i in places if i not in outcomes]
    facts = chunks.facts(chunks.rows_of(others)) if others else []
    if plan.scope is not None:
        owned = {c.waveform_id for c in facts if c.reason is None and plan.scope.owns(start_time_ns(c))}
        facts = [c for c in facts if c.waveform_id in owned]
    for waveform_id, found in assemble(facts, plan.stream.limits).items():
        yield InLog(waveform_id, None, found.reason or Reason.OPEN, found.evidence, places[waveform_id])


def _places_of(chunks: ChunkTable) -> dict[str, tuple[OffsetRange, ...]]:
    """Where the valid chunks of each waveform lie, those side by side as one range."""
    found: dict[str, list[OffsetRange]] = {}
    rows = chunks.valid.nonzero()[0].tolist()
    names = chunks.ids.to_pylist()
    for n in rows:
        p, offset = int(chunks.partition[n]), int(chunks.offset[n])
        found.setdefault(names[chunks.waveform[n]], []).append(
            OffsetRange(Partition(p), Offset(offset), Offset(offset + 1))
        )
    return {i: tuple(joined(places)) for i, places in found.items()}


def _compare(edges: ComparingEdges, ids: Sequence[str], logs: Mapping[str, InLog], ground: Ground) -> list[Compared]:
    found: list[Compared] = []
    for begin in range(0, len(ids), _AT_ONCE):
        some = ids[begin : begin + _AT_ONCE]
        rows: dict[str, list[RowFace]] = {}
        for face in edges.snapshot.faces(some):
            rows.setdefault(face.waveform_id, []).append(face)
        held = _held(edges, [i for i in some if i not in rows])
        found += [compare(i, logs.get(i), rows.get(i, ()), held.get(i), ground) for i in some]
    return _with_decisions(edges, found)


def _held(edges: ComparingEdges, ids: Sequence[str]) -> dict[str, HeldNow]:
    found: dict[str, list[HeldChunk]] = {}
    for h in edges.snapshot.held(ids) if ids else ():
        found.setdefault(h.chunk.waveform_id or "", []).append(h)
    said = {i: next((h for h in some if h.reason is Reason.DISCARDED), some[0]) for i, some in found.items()}
    return {i: HeldNow(tuple(h.reason for h in some), said[i].evidence) for i, some in found.items()}


def _with_decisions(edges: ComparingEdges, found: Sequence[Compared]) -> list[Compared]:
    """What fails today, and was published because somebody accepted it."""
    failing = {one.plan_id for one in found if one.found is Agreement.NEWLY_FAILING}
    notes: dict[str, str] = {}
    for plan_id in sorted(failing):
        for row in whole_history(history_of(edges), plan_id=plan_id):
            if row.note.startswith(f"{HeldAction.ACCEPT} by "):
                notes[plan_id] = row.note
    return [
        accepted(one, notes[one.plan_id]) if one.found is Agreement.NEWLY_FAILING and one.plan_id in notes else one
        for one in found
    ]


def _remarks(meant: _Range, look: _Look) -> list[str]:
    said = [f"{r} is gone from the log" for r in meant.lost]
    said += [f"{r} holds no record, although the log covers it" for r in joined(look.absent)]
    said += [f"asked as one batch, the gate would close today: {closed}" for closed in sorted(look.closed)]
    if not meant.there:
        said.append("nothing of the range is in the log")
    return said


def _offsets(ranges: Sequence[OffsetRange]) -> str:
    return f"{sum(r.size for r in ranges)} offsets"


def verified_to_json(done: Verified) -> dict[str, Any]:
    """For scripts, for the report and for XCom: what JSON has, and nothing else."""
    plain: dict[str, Any] = json.loads(json.dumps(asdict(done)))
    return {**plain, "compared": in_words(done.counts), "exit_code": exit_code(done.counts)}
