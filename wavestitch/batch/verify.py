"""Verify a range: read it once more, stitch it, ask the gate, and compare with the table at one snapshot.

    what is meant -> its batches, each read, reassembled and validated by the steps of every batch -> those that read
    across their cuts -> each waveform compared with its row

Publishes nothing, holds nothing, moves no position, and leaves no landing behind; what it compares with is one
snapshot, whoever ingests meanwhile. Waveforms across the range's edges are outside, and said to be. Keeps I5: the
samples of a range are on disk, a batch at a time, and in memory are the digests of its rows.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from wavestitch.batch.carry import Watcher
from wavestitch.batch.cut_log import Earlier, earlier_positions, find_cuts
from wavestitch.batch.history import history_of, whole_history
from wavestitch.batch.located import locate, noted_starts
from wavestitch.batch.plan_request import Planning, PlanRequest
from wavestitch.batch.publishes_nothing import ComparingEdges
from wavestitch.batch.range_accounts import Accounted
from wavestitch.batch.range_look import Batches, RangeLook, Take
from wavestitch.batch.survey import Survey, size_of, survey_beside
from wavestitch.batch.unseen_partition import refuse_unknown
from wavestitch.batch.verify_request import VerifyRequest
from wavestitch.contracts.errors import BadInput, Refused
from wavestitch.contracts.held_choice import HeldAction
from wavestitch.contracts.offset_range import OffsetRange, joined, without
from wavestitch.contracts.plan import PlanKind
from wavestitch.contracts.quantities import Offset
from wavestitch.contracts.row_face import RowFace, RowPiece
from wavestitch.contracts.start_times import start_time_ns
from wavestitch.contracts.verification import (
    DIFFERENCES,
    Agreement,
    Compared,
    LogExtent,
    accepted,
    compare,
    counts_of,
    exit_code,
    in_words,
)

__all__ = ["Verified", "VerifyRequest", "verify_range"]
_AT_ONCE = 200_000


@dataclass(frozen=True, slots=True)
class Verified:
    """What came of it. `snapshot_id`, `sequence`: the head that was compared with. `asked`: what was meant, `read`:
    what of it was read; `lost`: what of it retention took; `cut`: what of it ingests have read, and was cut off since.
    `counts`: waveforms by what they were found to be; `waveforms`: each of them. `offsets`: those that were asked for,
    by what is there; `records`: those that were read, by what the table has of them, and `held` of these by reason:
    each is in one class, and they add up. `misplaced`: what is held of no waveform from places where something else
    lies, or more than the head counts. `remarks`: sentences that change nothing about it."""

    stream: str
    snapshot_id: int
    sequence: int
    asked: tuple[OffsetRange, ...]
    read: tuple[OffsetRange, ...]
    lost: tuple[OffsetRange, ...]
    cut: tuple[OffsetRange, ...]
    counts: Mapping[str, int]
    waveforms: tuple[Compared, ...]
    remarks: tuple[str, ...] = ()
    offsets: Mapping[str, int] = field(default_factory=dict)
    records: Mapping[str, int] = field(default_factory=dict)
    held: Mapping[str, int] = field(default_factory=dict)
    misplaced: tuple[str, ...] = ()

    @property
    def exit_code(self) -> int:
        return exit_code(self.counts, self.cut, self.records, self.misplaced)

    @property
    def said(self) -> str:
        return in_words(self.counts, self.exit_code)


@dataclass(frozen=True, slots=True)
class _Range:
    """`asked`: offsets, those that are gone included; `there`: those that are read. `why`: per partition."""

    here: Survey
    by: Planning
    asked: list[OffsetRange]
    there: list[OffsetRange]
    lost: list[OffsetRange]
    cut: list[OffsetRange]
    kind: PlanRequest


def verify_range(
    edges: ComparingEdges, request: VerifyRequest, *, watcher: Watcher, take: Take = lambda _: None
) -> Verified:
    """The proof: what the log gives today beside what the table says, waveform by waveform. `take`: is given what was
    read, each record once."""
    with edges.place():
        return _verify(edges, request, watcher, take)


def _verify(edges: ComparingEdges, request: VerifyRequest, watcher: Watcher, take: Take) -> Verified:
    watcher.begin("plan")
    meant = _range_of(edges, request)
    head, topic_id = edges.snapshot.head, meant.here.topic.topic_id
    watcher.say(f"compared with snapshot {head.snapshot_id} (head {head.sequence}); {_offsets(meant.there)} to read")
    claims = _claims(edges, request, meant, topic_id)
    look = RangeLook(edges, _batches(edges, meant), claims, watcher, take)
    look.read(meant.there)
    watcher.begin("compare")
    read, lost = without(meant.there, [*look.gone, *look.absent]), joined([*meant.lost, *look.gone])
    accounted = look.accounts.close(asked=meant.asked, read=read, lost=lost, claims=claims)
    ends = {p: end.stable_end for p, end in meant.here.ends.items()}
    extent = LogExtent(topic_id, tuple(joined(meant.there)), look.log_start, ends, look.chunks)
    ids = sorted({*claims, *look.logs, *accounted.nowhere, *_held_ids(request, accounted)})
    found = _compare(edges, ids, look, accounted, extent)
    return Verified(
        stream=edges.name,
        snapshot_id=head.snapshot_id or 0,
        sequence=head.sequence,
        asked=tuple(meant.asked),
        read=extent.read,
        lost=tuple(lost),
        cut=tuple(meant.cut),
        counts=counts_of(found),
        waveforms=tuple(found),
        remarks=tuple(_remarks(meant, look)),
        offsets=_offsets_by_what_is_there(meant, look, accounted),
        records=accounted.records,
        held=accounted.held,
        misplaced=(
            *(m.said for m in accounted.misplaced if m.held.chunk.reason is not None),
            *look.accounts.beyond_the_head(),
        ),
    )


def _range_of(edges: ComparingEdges, request: VerifyRequest) -> _Range:
    kind = PlanKind.MANUAL if request.scope is None else PlanKind.BACKFILL
    asked_as = PlanRequest(kind, scope=request.scope, only=request.only)
    by = Planning(edges.clock_ms(), edges.nonce(), edges.code_version, edges.reader_stops())
    head, log, tables = edges.snapshot.head, edges.log, edges.tables
    here = survey_beside(edges.stream, asked_as, head, log=log, tables=tables, clock_ms=by.clock_ms)
    asked = [r for r in _asked(edges, request, here) if asked_as.wants(r.partition) and r.size > 0]
    refuse_unknown(edges.name, here.topic, {r.partition for r in asked})
    covered = {p: OffsetRange(p, end.log_start, end.stable_end) for p, end in here.ends.items()}
    there = joined(cut for r in asked if (cut := r.cut(covered[r.partition])).size > 0)
    gone = [OffsetRange(p, Offset(0), end.log_start) for p, end in here.ends.items()]
    lost = without(asked, without(asked, gone))
    cut_off = _cut_off(here, asked, earlier_positions(edges.snapshot, here.topic.topic_id))
    return _Range(here, by, joined(asked), there, lost, cut_off, asked_as)


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


def _batches(edges: ComparingEdges, meant: _Range) -> Batches:
    mean, most = size_of(edges.stream, meant.kind.kind, meant.here, meant.there, meant.by.stops)
    return Batches(meant.here, meant.by, meant.kind, mean, most)


def _cut_off(here: Survey, asked: Sequence[OffsetRange], earlier: Earlier) -> list[OffsetRange]:
    """What of it ingests have read, and the log has no more, or may have written anew since."""
    read = {p: at for p, at in here.head.positions.items() if p in here.ends}
    cuts = find_cuts(here.topic.name, read, here.ends, here.log, earlier)
    there = {p: max(end.log_start, min(cuts.get(p, end.stable_end), end.stable_end)) for p, end in here.ends.items()}
    gone = [OffsetRange(p, there[p], at.next_offset) for p, at in read.items() if there[p] < at.next_offset]
    return joined(cut for r in asked for g in gone if g.partition == r.partition and (cut := r.cut(g)).size > 0)


def _claims(
    edges: ComparingEdges, request: VerifyRequest, meant: _Range, topic_id: str
) -> dict[str, Sequence[RowPiece]]:
    """What the table says of the range: its rows there, and where their chunks lay."""
    if request.scope is not None:
        found = edges.snapshot.rows_starting(request.scope)
    else:
        found = edges.snapshot.rows_from(meant.asked, topic_id)
    return dict(found)


def _compare(
    edges: ComparingEdges, ids: Sequence[str], look: RangeLook, accounted: Accounted, extent: LogExtent
) -> list[Compared]:
    found: list[Compared] = []
    for begin in range(0, len(ids), _AT_ONCE):
        some = ids[begin : begin + _AT_ONCE]
        rows: dict[str, list[RowFace]] = {}
        for face in edges.snapshot.faces(some):
            rows.setdefault(face.waveform_id, []).append(face)
        held = look.accounts.held_of(some, accounted)
        found += [
            compare(i, look.logs.get(i), rows.get(i, ()), held.get(i), extent, accounted.not_there(i)) for i in some
        ]
    return _with_decisions(edges, found)


def _held_ids(request: VerifyRequest, accounted: Accounted) -> set[str]:
    """The waveforms of the range that nothing else may name: what is held of them is not where it was."""
    odd = [h.chunk for h in (*accounted.gone, *(m.held for m in accounted.misplaced)) if h.chunk.reason is None]
    mine = [c for c in odd if request.scope is None or request.scope.owns(start_time_ns(c))]
    return {c.waveform_id for c in mine if c.waveform_id is not None}


def _offsets_by_what_is_there(meant: _Range, look: RangeLook, accounted: Accounted) -> dict[str, int]:
    """Each offset that was asked for is one of these."""
    there, lost, late = (sum(r.size for r in joined(some)) for some in (meant.there, meant.lost, look.gone))
    return {
        "records": sum(accounted.records.values()),
        "no record, as the broker proves": look.accounts.holes,
        "no record, and no proof": sum(r.size for r in joined(look.absent)),
        "gone": lost + late,
        "not in the log": sum(r.size for r in meant.asked) - there - lost,
    }


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


def _remarks(meant: _Range, look: RangeLook) -> list[str]:
    said = [f"{r} is gone from the log" for r in joined([*meant.lost, *look.gone])]
    said += [
        f"{r} is not what ingests have read, or not proven to be: the log was cut off (an unclean election?)"
        for r in meant.cut
    ]
    said += [f"{r} holds no record, although the log covers it" for r in joined(look.absent)]
    said += [f"asked as one batch, the gate would close today: {closed}" for closed in sorted(look.closed)]
    if not meant.there:
        said.append("nothing of the range is in the log, or the positions stand at its start: then name a range")
    return said


def _offsets(ranges: Sequence[OffsetRange]) -> str:
    return f"{sum(r.size for r in ranges)} offsets"


def shortened(done: Verified, *, waveforms: int, ranges: int) -> Verified:
    """So much of it, and no more, for places that keep what they are given: the differences first, none that is the
    same; the counts are of all."""
    unlike = [one for one in done.waveforms if one.found is not Agreement.SAME]
    first = sorted(unlike, key=lambda one: one.found not in DIFFERENCES)[:waveforms]
    return replace(
        done,
        asked=done.asked[:ranges],
        read=done.read[:ranges],
        lost=done.lost[:ranges],
        cut=done.cut[:ranges],
        waveforms=tuple(replace(one, lost=one.lost[:ranges]) for one in first),
        remarks=done.remarks[:ranges],
        misplaced=done.misplaced[:ranges],
    )


def verified_to_json(done: Verified) -> dict[str, Any]:
    """For scripts, for the report and for XCom: what JSON has, and nothing else."""
    plain: dict[str, Any] = json.loads(json.dumps(asdict(done)))
    return {**plain, "compared": done.said, "exit_code": done.exit_code}
