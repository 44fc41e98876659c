"""Whether the table still says what Kafka said: what becomes of each waveform of a range that was stitched once more.

    log says           table says      it is
    whole              the same row    same
    whole              another row     differs, in named columns
    chunks             nothing         missing in the table, where a batch has read them; skipped, where an operator did
    the held chunks    held            held; discarded, where all of them are
    more, or others    a row           differs, where all chunks that the row names are there
    chunks are gone    held            held, gone from Kafka; lost, where the table has not their bytes either
    other chunks       held            not found in Kafka: where it is held from lies something else
    chunks are gone    a row           missing in Kafka (retention took them: no error of the table)
    other chunks       a row           not found in Kafka, though the offsets are there, or were cut off
    another copy       a row           as where the row's own chunks lie: that copy says nothing of the row
    fails today        a row           newly failing; accepted, where an operator had accepted it
    anything           a row           differs, where it does not agree with itself
    not all of it      anything        outside: it reaches over the range's edges

Pure: whoever compares has read both, the table at one snapshot. Publishes nothing, decides nothing about a waveform.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from types import MappingProxyType
from typing import NamedTuple

from wavestitch.contracts.assembly import Coordinate
from wavestitch.contracts.offset_range import OffsetRange, joined
from wavestitch.contracts.promotion import digest_of_pieces
from wavestitch.contracts.quantities import Offset, Partition
from wavestitch.contracts.reasons import Reason
from wavestitch.contracts.record_accounts import RecordIs
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
    LOST = "lost"
    HELD = "held"
    HELD_ALONE = "held, gone from Kafka"
    DISCARDED = "discarded"
    SKIPPED = "skipped"
    ACCEPTED = "accepted"
    OUTSIDE = "outside"


DIFFERENCES = frozenset(
    {Agreement.DIFFERS, Agreement.MISSING_IN_TABLE, Agreement.NOT_FOUND, Agreement.NEWLY_FAILING, Agreement.LOST},
)
"""What somebody has to look into."""
DIFFERENT = 6
"""The exit code where there is any."""


class LogChunk(NamedTuple):
    """What was read at a place, and which chunk of which waveform it says it is. `rejected`: why it is no valid chunk
    today; empty for one that is."""

    waveform_id: str | None
    seq: int | None
    piece: bytes
    timestamp_ms: int
    rejected: str = ""


@dataclass(frozen=True, slots=True)
class InLog:
    """What the range gives of one waveform today. `made`: the row that was stitched. `reason`, `evidence`: why it would
    not be published, if it would not; of one that lacks chunks, `OPEN`. `places`: of its chunks, as ranges. `read`:
    what the batch has read that found this."""

    waveform_id: str
    made: RowFace | None
    reason: Reason | None
    evidence: str
    places: tuple[OffsetRange, ...]
    read: tuple[OffsetRange, ...] = ()


@dataclass(frozen=True, slots=True)
class HeldNow:
    """Why chunks of a waveform are held at the snapshot, and what was said with it. `places`: topic id, partition and
    offset of each. `gone`: those that the log has no more; `without_bytes`: those of them whose bytes the table has
    not; `wrong`: those that lie in what was read, where the log has something else, as sentences."""

    reasons: tuple[Reason, ...]
    evidence: str
    places: tuple[Coordinate, ...] = ()
    gone: tuple[OffsetRange, ...] = ()
    without_bytes: tuple[OffsetRange, ...] = ()
    wrong: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class NotThere:
    """Where chunks of a waveform lie that the table has neither published nor held: `nowhere`: a batch has read them;
    `not_read`: the position is behind them, and no batch that the history knows has; `skipped`: nor has one, and an
    operator gave them up."""

    nowhere: tuple[OffsetRange, ...] = ()
    not_read: tuple[OffsetRange, ...] = ()
    skipped: tuple[OffsetRange, ...] = ()


NOTHING_LEFT = NotThere()


@dataclass(frozen=True, slots=True)
class LogExtent:
    """What was compared. `read`: offsets that were read, joined, in order. `log_start`: per partition, the first offset
    that the log still has. `ends`: per partition, the first offset that the log does not have yet, or no more."""

    topic_id: str
    read: tuple[OffsetRange, ...]
    log_start: Mapping[Partition, Offset]
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
    chunks lay that the log has no more. `passes`: whether the range gives it whole, and nothing refuses it today;
    `refused`: what does. `seen`: whether all that is held of it was looked at together with that: what was not may be a
    part of it, or contradict it. `was`, `made`: digests of the pieces of its one row, and of the one that the range
    gives where it passes; empty where there is none. `inside`: whether all that its row was made of was read, or makes
    the same again. `no_chunk`: where a chunk of its row is none any more, and what was stitched has it not either."""

    waveform_id: str
    found: Agreement
    why: str = ""
    columns: tuple[str, ...] = ()
    plan_id: str = ""
    lost: tuple[OffsetRange, ...] = ()
    passes: bool = False
    refused: str = ""
    seen: bool = True
    was: str = ""
    made: str = ""
    inside: bool = True
    no_chunk: str = ""


def compare(
    waveform_id: str,
    log: InLog | None,
    rows: Sequence[RowFace],
    held: HeldNow | None,
    extent: LogExtent,
    left: NotThere = NOTHING_LEFT,
) -> Compared:
    """`log`: None where no chunk of it was read. `rows`: of this id, of the one snapshot. `held`: all that is held of
    it; where there are rows, what of that is gone or wrong is enough."""
    passes = log is not None and log.made is not None and log.reason is None
    refused = "" if passes else "no valid chunk of it was read" if log is None else _said(log)
    found = _with_row(waveform_id, log, rows, extent) if rows else _without_row(waveform_id, log, held, left)
    if rows and left.nowhere and found.found not in DIFFERENCES:
        # What a batch has read of it is neither held nor in its row.
        where = _some([str(r) for r in left.nowhere])
        why = f"chunks: others of it are in the log in {where}, neither published nor held"
        found = Compared(waveform_id, Agreement.DIFFERS, why, ("chunks",), found.plan_id)
    if rows and held is not None and found.found not in DIFFERENCES:
        # Published, and what is held beside it contradicts it; that has a place, too.
        beside = _as_held(waveform_id, held)
        found = replace(beside, plan_id=found.plan_id) if beside.found in DIFFERENCES else found
    was = digest_of_pieces(p.piece for p in rows[0].pieces) if len(rows) == 1 else ""
    made = digest_of_pieces(p.piece for p in log.made.pieces) if log is not None and log.made and passes else ""
    inside = was == made or all(_was_read(p, extent) for row in rows for p in row.pieces)
    no_chunk = _no_chunk_today(rows[0], log, extent) if rows else ""
    said = replace(found, passes=passes, refused=refused, seen=_was_seen(held, log, extent))
    return replace(said, was=was, made=made, inside=inside, no_chunk=no_chunk)


def _was_seen(held: HeldNow | None, log: InLog | None, extent: LogExtent) -> bool:
    if held is None:
        return True
    at = extent if log is None else replace(extent, read=tuple(joined(log.read)))
    return not held.wrong and all(topic == extent.topic_id and at.was_read(p, o) for topic, p, o in held.places)


def _with_row(waveform_id: str, log: InLog | None, rows: Sequence[RowFace], extent: LogExtent) -> Compared:
    row = rows[0]
    if len(rows) > 1:
        why = f"is in the table {len(rows)} times"
        return Compared(waveform_id, Agreement.DIFFERS, why, ("waveform_id",), row.plan_id)
    if log is not None and log.made is not None and is_of_row(log.made, row.pieces):
        return _row_by_row(log, log.made, row, extent)
    if not row.agrees:
        # What the log makes of it was chosen by what the row names: that may be anything, and no proof.
        why = f"chunks: the {len(row.pieces)} that its row names, their number and its samples do not go together"
        return Compared(waveform_id, Agreement.DIFFERS, why, ("chunks",), row.plan_id)
    return _with_row_only(waveform_id, log, row, extent)


def is_of_row(made: RowFace, pieces: Sequence[RowPiece]) -> bool:
    """Whether it was made of what the row was made of, wherever that lay, or lies where the row says. Another copy,
    which contradicts the one that was published, says nothing of the row."""
    same = [p.piece for p in made.pieces] == [p.piece for p in pieces]
    return same or [p[:3] for p in made.pieces] == [p[:3] for p in pieces]


def _row_by_row(log: InLog, made: RowFace, row: RowFace, extent: LogExtent) -> Compared:
    columns = row.unlike(made)
    why = "" if not columns else f"{', '.join(columns)}: not what the log gives"
    if "chunks" not in columns and (wrong := _wrong_place(row, extent)):
        columns, why = [*columns, "chunks"], "; ".join(filter(None, (why, wrong)))
    if columns:
        why = why if log.reason is None else f"{why}; {_said(log)}"
        return Compared(log.waveform_id, Agreement.DIFFERS, why, tuple(columns), row.plan_id)
    if log.reason is not None:
        return Compared(log.waveform_id, Agreement.NEWLY_FAILING, _said(log), plan_id=row.plan_id)
    return Compared(log.waveform_id, Agreement.SAME, plan_id=row.plan_id)


def _wrong_place(row: RowFace, extent: LogExtent) -> str:
    """Of pieces that lie in what was read: whether the log has them there. Others may be of copies that lie elsewhere;
    their digests were compared."""
    for n, p in enumerate(row.pieces):
        if _was_read(p, extent) and not _says_so(row, n, p, extent):
            return f"chunk {n} is said to lie in {_place(p)}, where the log has it not"
    return ""


def _says_so(row: RowFace, n: int, p: RowPiece, extent: LogExtent) -> bool:
    """Of a record that is no chunk today nobody knows the piece: it says that it is this chunk, or it does not."""
    at = extent.chunks.get((p.partition, p.offset))
    named = at is not None and (at.waveform_id, at.seq) == (row.waveform_id, n)
    return named and at is not None and (bool(at.rejected) or at.piece == p.piece)


def _no_chunk_today(row: RowFace, log: InLog | None, extent: LogExtent) -> str:
    made = () if log is None or log.made is None else log.made.pieces
    for n, p in enumerate(row.pieces):
        at = extent.chunks.get((p.partition, p.offset)) if _was_read(p, extent) else None
        if at is not None and at.rejected and (n >= len(made) or made[n].piece != p.piece):
            return f"{_place(p)} ({at.rejected})"
    return ""


def _with_row_only(waveform_id: str, log: InLog | None, row: RowFace, extent: LogExtent) -> Compared:
    mine = [p for p in row.pieces if p.topic_id == extent.topic_id]
    lost = tuple((p.partition, p.offset) for p in mine if extent.is_gone(p.partition, p.offset))
    if lost:
        shown = _some([f"partition {p} offset {o}" for p, o in lost])
        why = f"{len(lost)} of {len(row.pieces)} chunks are gone from the log: {shown}"
        ranges = tuple(joined(OffsetRange(p, o, Offset(o + 1)) for p, o in lost))
        return Compared(waveform_id, Agreement.MISSING_IN_KAFKA, why, plan_id=row.plan_id, lost=ranges)
    now = [(p, at) for p in mine if (at := extent.chunks.get((p.partition, p.offset))) is not None]
    # What names another waveform is not what was published from there.
    rejected = next(((p, at.rejected) for p, at in now if at.rejected and at.waveform_id == waveform_id), None)
    if rejected is not None:
        why = f"{rejected[1]}: {_place(rejected[0])} is no valid chunk today"
        return Compared(waveform_id, Agreement.NEWLY_FAILING, why, plan_id=row.plan_id)
    cut_off = [p for p in mine if extent.is_cut_off(p.partition, p.offset)]
    if cut_off:
        first = cut_off[0].partition
        why = f"its row names {_some([_place(p) for p in cut_off])}; the log ends at {extent.ends.get(first, 0)} there"
        return Compared(waveform_id, Agreement.NOT_FOUND, why, plan_id=row.plan_id)
    absent = [p for p in mine if extent.was_read(p.partition, p.offset) and not _is_there(row, p, extent)]
    if absent or not row.pieces:
        shown = _some([_place(p) for p in absent]) or "no chunk at all"
        why = f"its row names {shown}; the offsets are there, and hold no such chunk"
        return Compared(waveform_id, Agreement.NOT_FOUND, why, plan_id=row.plan_id)
    if wrong := _wrong_place(row, extent):
        return Compared(waveform_id, Agreement.DIFFERS, f"chunks: {wrong}", ("chunks",), row.plan_id)
    beyond = [p for p in row.pieces if p not in mine or not extent.was_read(p.partition, p.offset)]
    if beyond:
        why = f"{len(beyond)} of {len(row.pieces)} chunks lie outside: {_some([_place(p) for p in beyond])}"
        return Compared(waveform_id, Agreement.OUTSIDE, why, plan_id=row.plan_id)
    if log is not None and log.reason is Reason.OPEN:
        # No definition makes that: it was whole once, by a record that was not read with these.
        why = f"all its chunks are there, and what says that these are all was not read with them: {_said(log)}"
        return Compared(waveform_id, Agreement.OUTSIDE, why, plan_id=row.plan_id)
    if log is not None and log.made is not None:
        # Whatever is said of what the log makes of them: these are not the chunks that the row is said to be made of.
        why = f"chunks: its row names {len(row.pieces)}, which are not the {len(log.made.pieces)} that the log gives"
        why = why if log.reason is None else f"{why}; {_said(log)}"
        return Compared(waveform_id, Agreement.DIFFERS, why, ("chunks",), row.plan_id)
    why = "all chunks are there, and make no waveform today" if log is None else _said(log)
    return Compared(waveform_id, Agreement.NEWLY_FAILING, why, plan_id=row.plan_id)


def _without_row(waveform_id: str, log: InLog | None, held: HeldNow | None, left: NotThere) -> Compared:
    if left.nowhere:
        now = "" if log is None else f", and today {'whole' if log.reason is None else f'refused ({_said(log)})'}"
        also = "" if held is None else f"; others of its chunks are held ({_as_held(waveform_id, held).why})"
        why = f"in the log in {_some([str(r) for r in left.nowhere])}{now}; neither published nor held{also}"
        return Compared(waveform_id, Agreement.MISSING_IN_TABLE, why)
    if held is not None:
        return _as_held(waveform_id, held)
    if left.skipped:
        why = f"an operator skipped {_some([str(r) for r in left.skipped])} by name"
        return Compared(waveform_id, Agreement.SKIPPED, why)
    if left.not_read:
        where = _some([str(r) for r in left.not_read])
        why = f"no batch that the history knows has read {where}, and published or held all of what it read"
        return Compared(waveform_id, Agreement.OUTSIDE, why)
    if log is None:
        return Compared(waveform_id, Agreement.OUTSIDE, "no chunk of it was read")
    return Compared(waveform_id, Agreement.OUTSIDE, f"{_some([str(r) for r in log.places])}: still to be read")


def _as_held(waveform_id: str, held: HeldNow) -> Compared:
    why = f"{', '.join(sorted(set(held.reasons)))}: {held.evidence}"
    if set(held.reasons) == {Reason.DISCARDED}:
        return Compared(waveform_id, Agreement.DISCARDED, why)
    if held.without_bytes:
        where = _some([str(r) for r in held.without_bytes])
        why = f"{where}: gone from the log, and the table has not the bytes; {why}"
        return Compared(waveform_id, Agreement.LOST, why, lost=held.without_bytes)
    if held.wrong:
        return Compared(waveform_id, Agreement.NOT_FOUND, f"held; {_some(held.wrong)}; {why}")
    if held.gone:
        where = _some([str(r) for r in held.gone])
        why = f"{where}: gone from the log, the table has the bytes; {why}"
        return Compared(waveform_id, Agreement.HELD_ALONE, why, lost=held.gone)
    return Compared(waveform_id, Agreement.HELD, why)


def accepted(found: Compared, note: str) -> Compared:
    """One that fails today, of which an operator said at the time that it is published all the same."""
    return replace(found, found=Agreement.ACCEPTED, why=f"{note}; today: {found.why}")


def counts_of(found: Sequence[Compared]) -> dict[str, int]:
    """Waveforms by what they were found to be; each of the list is there."""
    seen = Counter(one.found for one in found)
    return {kind.value: seen[kind] for kind in Agreement}


def exit_code(
    counts: Mapping[str, int],
    cut: Sequence[OffsetRange] = (),
    records: Mapping[str, int] = MappingProxyType({}),
    misplaced: Sequence[str] = (),
) -> int:
    """0: each one that could be compared is the same; 6: some are not; 7: none differs, but not all could be compared,
    or there was none. `cut`: what of the range ingests have read of a log that was cut off since. `records`: what they
    are, and `misplaced`: what is held from places where no waveform has it."""
    if any(counts.get(kind.value) for kind in DIFFERENCES) or records.get(RecordIs.NOWHERE) or misplaced:
        return DIFFERENT
    compared = counts.get(Agreement.SAME.value, 0) + counts.get(Agreement.ACCEPTED.value, 0)
    gone = counts.get(Agreement.MISSING_IN_KAFKA.value) or counts.get(Agreement.HELD_ALONE.value)
    return 7 if gone or cut or records.get(RecordIs.NOT_READ) or not compared else 0


def in_words(counts: Mapping[str, int], code: int) -> str:
    """The verdict in one sentence, and the waveforms by what they are."""
    verdicts = {
        0: "the table says what the log says",
        DIFFERENT: "the table and the log DIFFER",
        7: "no difference, but not all could be compared",
    }
    shown = ", ".join(f"{n} {name}" for name, n in counts.items() if n) or "no waveform"
    return f"{verdicts[code]}: {shown}"


def _was_read(p: RowPiece, extent: LogExtent) -> bool:
    return p.topic_id == extent.topic_id and extent.was_read(p.partition, p.offset)


def _is_there(row: RowFace, p: RowPiece, extent: LogExtent) -> bool:
    """Whether a chunk of the row's waveform, of these bytes, lies there: bytes alone may be another's."""
    at = extent.chunks.get((p.partition, p.offset))
    return at is not None and not at.rejected and (at.waveform_id, at.piece) == (row.waveform_id, p.piece)


def _said(log: InLog) -> str:
    return f"{log.reason.value if log.reason is not None else 'not whole'}: {log.evidence}"


def _place(p: RowPiece) -> str:
    return f"partition {p.partition} offset {p.offset}"


def _some(texts: Sequence[str]) -> str:
    more = f" and {len(texts) - _SHOWN} more" if len(texts) > _SHOWN else ""
    return ", ".join(texts[:_SHOWN]) + more
