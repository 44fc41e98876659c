"""What the log gives of a range today: read, stitched and judged batch by batch, on edges that publish nothing.

Keeps I5: a batch's samples are on disk at a time, and where a reader stops at its budget the rest is read in smaller
batches. Compares nothing.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from wavestitch.batch.carry import NOTHING_READ, Carried, How, Watcher, carry_through
from wavestitch.batch.plan_request import Planning, PlanRequest
from wavestitch.batch.publishes_nothing import ComparingEdges
from wavestitch.batch.range_accounts import RangeAccounts
from wavestitch.batch.results import Reassembled, Validated, needed
from wavestitch.batch.survey import Made, Survey, plan_of
from wavestitch.contracts.assembly import assemble
from wavestitch.contracts.batch_size import OVER_BUDGET
from wavestitch.contracts.batch_stages import ReadUnits, Reassemble, Validate
from wavestitch.contracts.chunk_table import ChunkTable
from wavestitch.contracts.errors import DataLost, Refused
from wavestitch.contracts.offset_range import OffsetRange, cut_links, joined, without
from wavestitch.contracts.plan import Plan
from wavestitch.contracts.quantities import Offset, Partition
from wavestitch.contracts.reasons import MAY_BE_CHUNKS, Reason
from wavestitch.contracts.row_face import RowPiece
from wavestitch.contracts.start_times import start_time_ns
from wavestitch.contracts.verdict import Verdict
from wavestitch.contracts.verification import InLog, LogChunk, is_of_row

Take = Callable[[ChunkTable], None]
_TRIES = 100
_STAGES = (ReadUnits, Reassemble, Validate)


@dataclass(frozen=True, slots=True)
class Batches:
    """Of what the batches of a range are planned. `mean`: bytes of a record; `most`: offsets of a batch, at first."""

    here: Survey
    by: Planning
    kind: PlanRequest
    mean: float
    most: int


class RangeLook:
    """`logs`: each waveform that was found; `chunks`: what lies where rows say that theirs lay; `closed`: expectations
    about the whole for which a batch's gate would close; `absent`: offsets that the log covers and does not deliver;
    `gone`: those that retention took meanwhile; `accounts`: of the records that were read."""

    def __init__(
        self, edges: ComparingEdges, of: Batches, claims: Mapping[str, Sequence[RowPiece]], watcher: Watcher, take: Take
    ) -> None:
        """`claims`: by waveform, where the table says that its chunks lay. `take`: is given what was read, each record
        once."""
        self._edges, self._of, self._claims, self._watcher, self._give = edges, of, claims, watcher, take
        self.logs: dict[str, InLog] = {}
        self.chunks: dict[tuple[int, int], LogChunk] = {}
        self.closed: set[str] = set()
        self.absent: list[OffsetRange] = []
        self.gone: list[OffsetRange] = []
        self.log_start = {p: end.log_start for p, end in of.here.ends.items()}
        self._places = {(p.partition, p.offset) for pieces in claims.values() for p in pieces}
        self.accounts = RangeAccounts(edges, of.here.topic.topic_id)
        self._cut: dict[str, list[tuple[OffsetRange, ...]]] = {}
        self._most = of.most
        self._batches = 0

    def read(self, ranges: Sequence[OffsetRange]) -> None:
        left = deque(cut_links(ranges, most=self._most))
        while left:
            part, *more = cut_links(left.popleft(), most=self._most)
            left.extendleft(reversed(more))
            if not self._fits(part):
                left.appendleft(part)
        # Of what has no row, another batch may have read a copy that contradicts the whole one.
        across = [
            (i, [r for places in parts for r in places])
            for i, parts in self._cut.items()
            if len(parts) > 1 and not (i in self._claims and self._is_whole(i))
        ]
        if not across:
            return
        self._watcher.say(f"{len(across)} waveforms lie across the cuts between batches, and are read together")
        together = deque([across])
        while together:
            some = together.popleft()
            places = joined(r for _, ranges in some for r in ranges)
            small = len(some) == 1 or sum(r.size for r in places) <= self._most
            if not (small and self._fits(places, only=[i for i, _ in some])):
                half = -(-len(some) // 2)
                together.extendleft([some[half:], some[:half]])

    def _fits(self, ranges: Sequence[OffsetRange], *, only: Sequence[str] = ()) -> bool:
        """Read it as one batch; whether a reader had the room. Raises `Refused` where it cannot be less."""
        try:
            self._read_one(ranges, only)
        except Refused as error:
            size = sum(r.size for r in ranges)
            if error.facts.get("over") != OVER_BUDGET or len(only) == 1 or size < 2:
                raise
            self._most = max(1, min(self._most, size // 2))
            self._watcher.say(
                f"its records are larger than was expected; from here on a batch has {self._most} offsets"
            )
            return False
        return True

    def _read_one(self, ranges: Sequence[OffsetRange], only: Sequence[str]) -> None:
        """A batch; without the offsets that the log turns out not to deliver, which no batch may pass over."""
        left = list(ranges)
        for _ in range(_TRIES):
            try:
                return self._carry(self._plan(left), only)
            except DataLost as error:
                left = without(left, self._note_gone(error))
                if not left:
                    return None
        raise Refused(
            f"stream {self._edges.name}: the log delivered other offsets than it says it has {_TRIES} times; look at "
            "the brokers, or verify a smaller range"
        )

    def _plan(self, ranges: Sequence[OffsetRange]) -> Plan:
        """Under a nonce of its own: it may read what one of the others has read."""
        of = self._of
        made = Made(of.kind, of.mean, replace(of.by, nonce=self._edges.nonce()))
        why = dict.fromkeys(of.here.topic.partitions, "verified")
        return plan_of(self._edges.stream, of.here, made, ranges, why=why)

    def _note_gone(self, error: DataLost) -> list[OffsetRange]:
        partition, intervals = error.facts.get("partition"), error.facts.get("offsets")
        if not isinstance(partition, int) or not intervals:
            raise error
        at = Partition(partition)
        gone = [OffsetRange(at, start, end) for start, end in intervals]
        if (start := error.facts.get("log_start")) is not None:
            self.log_start[at] = max(start, self.log_start.get(at, 0))
            self.gone += gone
        else:
            self.absent += gone
        return gone

    def _carry(self, plan: Plan, only: Sequence[str]) -> None:
        edges = self._edges
        edges.begin(plan)
        how = How("accept", "verified", watcher=self._watcher)
        try:
            done = carry_through(_STAGES, edges, Carried(plan.plan_id, (NOTHING_READ,)), how, total=plan.records)
        except (DataLost, Refused):
            edges.free(plan.plan_id)
            raise
        self._batches += 1
        stitched = needed(done.of(Reassembled), plan.plan_id)
        verdict = edges.verdict(plan, needed(done.of(Validated), plan.plan_id).verdict)
        self.closed |= set(verdict.closed)
        chunks = ChunkTable.of(edges.landed(plan, stitched.receipts).chunks)
        every = edges.every_record(plan, stitched.receipts)
        self._note_places(every.chunks)
        if not only:
            self._give(ChunkTable.of(every.chunks))
            self.accounts.note(every.chunks, plan.ranges, holes=sum(every.holes.values()))
        wanted = set(only)
        for one in _logs(edges, plan, stitched.report, verdict, chunks):
            if not wanted or one.waveform_id in wanted:
                self._take(one, together=bool(only))
        edges.free(plan.plan_id)

    def _take(self, one: InLog, *, together: bool) -> None:
        """Of several batches that have read of it the one that has it whole, and of several copies the row's. Where
        there is no row, what was read together counts: copies may contradict each other."""
        self._cut.setdefault(one.waveform_id, []).append(one.places)
        better = not self._is_whole(one.waveform_id) and (one.made is not None or self._has_nothing(one.waveform_id))
        if better or (together and one.waveform_id not in self._claims):
            self.logs[one.waveform_id] = one

    def _has_nothing(self, waveform_id: str) -> bool:
        known = self.logs.get(waveform_id)
        return known is None or known.made is None

    def _is_whole(self, waveform_id: str) -> bool:
        """Of what the table has of it, where it has a row."""
        known, claimed = self.logs.get(waveform_id), self._claims.get(waveform_id)
        return known is not None and known.made is not None and (claimed is None or is_of_row(known.made, claimed))

    def _note_places(self, chunks: ChunkTable) -> None:
        at = zip(chunks.partition.tolist(), chunks.offset.tolist(), strict=True)
        rows = [n for n, place in enumerate(at) if place in self._places]
        for fact in chunks.facts(rows):
            place = fact.partition, fact.offset
            # What no definition makes a chunk is not what was published from there.
            rejected = fact.reason or "" if fact.reason in MAY_BE_CHUNKS else ""
            self.chunks[place] = LogChunk(fact.waveform_id, fact.seq, fact.piece, fact.timestamp_ms, rejected)


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
        where = places.get(waveform_id, ())
        yield InLog(waveform_id, made.get(waveform_id), reason, evidence, where, plan.ranges)
    others = [i for i in places if i not in outcomes]
    facts = chunks.facts(chunks.rows_of(others)) if others else []
    if plan.scope is not None:
        owned = {c.waveform_id for c in facts if c.reason is None and plan.scope.owns(start_time_ns(c))}
        facts = [c for c in facts if c.waveform_id in owned]
    for waveform_id, found in assemble(facts, plan.stream.limits).items():
        where = places[waveform_id]
        yield InLog(waveform_id, None, found.reason or Reason.OPEN, found.evidence, where, plan.ranges)


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
