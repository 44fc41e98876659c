"""Whether the table still says what Kafka said: what becomes of each waveform of a range that was stitched once more.

    log says           table says      it is
    whole              the same row    same
    whole              another row     differs, in named columns
    whole              nothing         held or discarded, where a decision said so; else missing in the table
    chunks are gone    a row           missing in Kafka (retention took them: no error of the table)
    other chunks       a row           not found in Kafka, though the offsets are there, or were cut off
    another copy       a row           as where the row's own chunks lie: that copy says nothing of the row
    fails today        a row           newly failing; accepted, where an operator had accepted it
    not all of it      anything        outside: it reaches over the range's edges

Pure: whoever compares has read both, the table at one snapshot. Publishes nothing, decides nothing about a waveform.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import NamedTuple

from wavestitch.contracts.offset_range import OffsetRange, joined
from wavestitch.contracts.quantities import Offset, Partition
from wavestitch.contracts.reasons import Reason
from wavestitch.contracts.row_face import RowFace, RowPiece

_SHOWN = 8


class Agreement(StrEnum):
    """What a waveform is found to be."""

    SAME = "same"
    DIFFERS = "differs"
    MISSING_IN_TABLE = "missing in the table"
    MISSING_IN_KAFKA = "missing in Kafka"
    NOT_FOUND = "not found in Kafka"
    NEWLY_FAILING = "newly failing"
    HELD = "held"
    DISCARDED = "discarded"
    ACCEPTED = "accepted"
    OUTSIDE = "outside"


DIFFERENCES = frozenset(
    {Agreement.DIFFERS, Agreement.MISSING_IN_TABLE, Agreement.NOT_FOUND, Agreement.NEWLY_FAILING},
)
"""What somebody has to look into."""


class LogChunk(NamedTuple):
    """What was read at a place. `rejected`: why it is no valid chunk today; empty for one that is."""

    piece: bytes
    timestamp_ms: int
    rejected: str = ""


@dataclass(frozen=True, slots=True)
class InLog:
    """What the range gives of one waveform today. `made`: the row that was stitched. `reason`, `evidence`: why it would
    not be published, if it would not; of one that lacks chunks, `OPEN`. `places`: of its chunks, as ranges."""

    waveform_id: str
    made: RowFace | None
    reason: Reason | None
    evidence: str
    places: tuple[OffsetRange, ...]


@dataclass(frozen=True, slots=True)
class HeldNow:
    """Why chunks of a waveform are held at the snapshot, and what was said with it."""

    reasons: tuple[Reason, ...]
    evidence: str


@dataclass(frozen=True, slots=True)
class Ground:
    """What was compared. `read`: offsets that were read, joined, in order. `log_start`: per partition, the first offset
    that the log still has. `positions`: per partition, the next offset that an ingest reads, at the snapshot. `ends`:
    per partition, the first offset that the log does not have yet, or no more."""

    topic_id: str
    read: tuple[OffsetRange, ...]
    log_start: Mapping[Partition, Offset]
    positions: Mapping[Partition, Offset]
    ends: Mapping[Partition, Offset]
    chunks: Mapping[tuple[int, int], LogChunk] = field(default_factory=dict)
    """What was read at the places that rows of the table name."""

    def was_read(self, partition: Partition, offset: Offset) -> bool:
        at = bisect_right(self.read, (partition, offset), key=lambda r: (r.partition, r.start)) - 1
        return at >= 0 and self.read[at].partition == partition and offset < self.read[at].end

    def is_gone(self, partition: Partition, offset: Offset) -> bool:
        return offset < self.log_start.get(partition, 0)

    def is_cut_off(self, partition: Partition, offset: Offset) -> bool:
        return offset >= self.ends.get(partition, 0)


@dataclass(frozen=True, slots=True)
class Compared:
    """One waveform. `columns`: in which its row differs. `plan_id`: the batch that published it. `lost`: where its
    chunks lay that the log has no more. `passes`: whether the range gives it whole, and nothing refuses it today."""

    waveform_id: str
    found: Agreement
    why: str = ""
    columns: tuple[str, ...] = ()
    plan_id: str = ""
    lost: tuple[OffsetRange, ...] = ()
    passes: bool = False


def compare(
    waveform_id: str, log: InLog | None, rows: Sequence[RowFace], held: HeldNow | None, ground: Ground
) -> Compared:
    """`log`: None where no chunk of it was read. `rows`: of this id, of the one snapshot."""
    passes = log is not None and log.made is not None and log.reason is None
    return replace(_compare(waveform_id, log, rows, held, ground), passes=passes)


def _compare(
    waveform_id: str, log: InLog | None, rows: Sequence[RowFace], held: HeldNow | None, ground: Ground
) -> Compared:
    if not rows:
        return _without_row(waveform_id, log, held, ground)
    row = rows[0]
    if len(rows) > 1:
        why = f"is in the table {len(rows)} times"
        return Compared(waveform_id, Agreement.DIFFERS, why, ("waveform_id",), row.plan_id)
    if log is not None and log.made is not None and is_of_row(log.made, row.pieces):
        return _row_by_row(log, log.made, row, ground)
    return _with_row_only(waveform_id, log, row, ground)


def is_of_row(made: RowFace, pieces: Sequence[RowPiece]) -> bool:
    """Whether it was made of what the row was made of, wherever that lay, or lies where the row says. Another copy,
    which contradicts the one that was published, says nothing of the row."""
    same = [p.piece for p in made.pieces] == [p.piece for p in pieces]
    return same or [p[:3] for p in made.pieces] == [p[:3] for p in pieces]


def _row_by_row(log: InLog, made: RowFace, row: RowFace, ground: Ground) -> Compared:
    columns = row.unlike(made)
    why = "" if not columns else f"{', '.join(columns)}: not what the log gives"
    if "chunks" not in columns and (wrong := _wrong_place(row, ground)):
        columns, why = [*columns, "chunks"], "; ".join(filter(None, (why, wrong)))
    if columns:
        why = why if log.reason is None else f"{why}; {_said(log)}"
        return Compared(log.waveform_id, Agreement.DIFFERS, why, tuple(columns), row.plan_id)
    if log.reason is not None:
        return Compared(log.waveform_id, Agreement.NEWLY_FAILING, _said(log), plan_id=row.plan_id)
    return Compared(log.waveform_id, Agreement.SAME, plan_id=row.plan_id)


def _wrong_place(row: RowFace, ground: Ground) -> str:
    """Of pieces that lie in what was read: whether the log has them where the row says. Others may be of copies that
    lie elsewhere; their digests were compared."""
    for n, p in enumerate(row.pieces):
        if p.topic_id == ground.topic_id and ground.was_read(p.partition, p.offset) and not _is_there(p, ground):
            return f"chunk {n} is said to lie in {_place(p)}, where the log has it not"
    return ""


def _with_row_only(waveform_id: str, log: InLog | None, row: RowFace, ground: Ground) -> Compared:
    mine = [p for p in row.pieces if p.topic_id == ground.topic_id]
    lost = tuple((p.partition, p.offset) for p in mine if ground.is_gone(p.partition, p.offset))
    if lost:
        shown = _some([f"partition {p} offset {o}" for p, o in lost])
        why = f"{len(lost)} of {len(row.pieces)} chunks are gone from the log: {shown}"
        ranges = tuple(joined(OffsetRange(p, o, Offset(o + 1)) for p, o in lost))
        return Compared(waveform_id, Agreement.MISSING_IN_KAFKA, why, plan_id=row.plan_id, lost=ranges)
    rejected = [p for p in mine if (at := ground.chunks.get((p.partition, p.offset))) is not None and at.rejected]
    if rejected:
        at = ground.chunks[rejected[0].partition, rejected[0].offset]
        why = f"{at.rejected}: {_place(rejected[0])} is no valid chunk today"
        return Compared(waveform_id, Agreement.NEWLY_FAILING, why, plan_id=row.plan_id)
    cut_off = [p for p in mine if ground.is_cut_off(p.partition, p.offset)]
    if cut_off:
        first = cut_off[0].partition
        why = f"its row names {_some([_place(p) for p in cut_off])}; the log ends at {ground.ends.get(first, 0)} there"
        return Compared(waveform_id, Agreement.NOT_FOUND, why, plan_id=row.plan_id)
    absent = [p for p in mine if ground.was_read(p.partition, p.offset) and not _is_there(p, ground)]
    if absent or not row.pieces:
        shown = _some([_place(p) for p in absent]) or "no chunk at all"
        why = f"its row names {shown}; the offsets are there, and hold no such chunk"
        return Compared(waveform_id, Agreement.NOT_FOUND, why, plan_id=row.plan_id)
    beyond = [p for p in row.pieces if p not in mine or not ground.was_read(p.partition, p.offset)]
    if beyond:
        why = f"{len(beyond)} of {len(row.pieces)} chunks lie outside: {_some([_place(p) for p in beyond])}"
        return Compared(waveform_id, Agreement.OUTSIDE, why, plan_id=row.plan_id)
    why = "all chunks are there, and make no waveform today" if log is None else _said(log)
    return Compared(waveform_id, Agreement.NEWLY_FAILING, why, plan_id=row.plan_id)


def _without_row(waveform_id: str, log: InLog | None, held: HeldNow | None, ground: Ground) -> Compared:
    if held is not None:
        discarded = Reason.DISCARDED in held.reasons
        why = f"{', '.join(sorted(set(held.reasons)))}: {held.evidence}"
        return Compared(waveform_id, Agreement.DISCARDED if discarded else Agreement.HELD, why)
    if log is None:
        return Compared(waveform_id, Agreement.OUTSIDE, "no chunk of it was read")
    unread = [r for r in log.places if r.end > ground.positions.get(r.partition, 0)]
    if unread:
        why = f"no ingest has read {unread[0]} yet"
        return Compared(waveform_id, Agreement.OUTSIDE, why)
    if log.reason is Reason.OPEN:
        return Compared(waveform_id, Agreement.OUTSIDE, f"{log.evidence}; nothing of it is published or held")
    fails = "whole" if log.reason is None else f"refused today ({_said(log)})"
    why = f"in the log {fails}, in {_some([str(r) for r in log.places])}; neither published nor held"
    return Compared(waveform_id, Agreement.MISSING_IN_TABLE, why)


def accepted(found: Compared, note: str) -> Compared:
    """One that fails today, of which an operator said at the time that it is published all the same."""
    return replace(found, found=Agreement.ACCEPTED, why=f"{note}; today: {found.why}")


def counts_of(found: Sequence[Compared]) -> dict[str, int]:
    """Waveforms by what they were found to be; each of the list is there."""
    seen = Counter(one.found for one in found)
    return {kind.value: seen[kind] for kind in Agreement}


def exit_code(counts: Mapping[str, int], cut: Sequence[OffsetRange] = ()) -> int:
    """0: each one that could be compared is the same; 6: some are not; 7: none differs, but not all could be compared,
    or there was none. `cut`: what of the range ingests have read of a log that was cut off since."""
    if any(counts.get(kind.value) for kind in DIFFERENCES):
        return 6
    compared = counts.get(Agreement.SAME.value, 0) + counts.get(Agreement.ACCEPTED.value, 0)
    return 7 if counts.get(Agreement.MISSING_IN_KAFKA.value) or cut or not compared else 0


def in_words(counts: Mapping[str, int], cut: Sequence[OffsetRange] = ()) -> str:
    """The verdict in one sentence, and the waveforms that are something else, by what they are."""
    verdicts = {
        0: "the table says what the log says",
        6: "the table and the log DIFFER",
        7: "no difference, but not all could be compared",
    }
    shown = ", ".join(f"{n} {name}" for name, n in counts.items() if n) or "no waveform"
    return f"{verdicts[exit_code(counts, cut)]}: {shown}"


def _is_there(p: RowPiece, ground: Ground) -> bool:
    at = ground.chunks.get((p.partition, p.offset))
    return at is not None and not at.rejected and at.piece == p.piece


def _said(log: InLog) -> str:
    return f"{log.reason.value if log.reason is not None else 'not whole'}: {log.evidence}"


def _place(p: RowPiece) -> str:
    return f"partition {p.partition} offset {p.offset}"


def _some(texts: Sequence[str]) -> str:
    more = f" and {len(texts) - _SHOWN} more" if len(texts) > _SHOWN else ""
    return ", ".join(texts[:_SHOWN]) + more
