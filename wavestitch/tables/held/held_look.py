"""Looks into the held table: the rows that somebody asks for, of the snapshot that the head names, and no others.

What is found is proven against the head's mark before a row of it is believed. Files are ruled out by their partition
(the reason), by the index of ids and by their bounds, row groups by theirs: a look costs what it asks for, not what was
ever held (I5). Never decides which rows count: that is `effective_held`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.expressions import BooleanExpression
from pyiceberg.table import FileScanTask, Table

from wavestitch.contracts.assembly import Coordinate
from wavestitch.contracts.held import HeldChunk, HeldKey, HeldLook, IdsLook
from wavestitch.contracts.held_mark import JUNK, HeldFile, HeldMark, check_mark
from wavestitch.contracts.read_places import spans_of
from wavestitch.contracts.reasons import Reason
from wavestitch.tables.held.held_files import HeldFiles, Mask, held_files_of
from wavestitch.tables.held.held_rows import FACTS, held_chunk
from wavestitch.tables.held.held_waiting import Released, key_of
from wavestitch.tables.lookup.file_scans import read_file
from wavestitch.tables.lookup.id_index import IdIndex
from wavestitch.tables.lookup.row_filter import EVERY_ROW, all_of, any_of, at_least, below, equals, is_in

_MOST_IN_FILTER = 200
_REPEATED = (
    *("topic_id", "waveform_id", "meta", "record_reason", "evidence_of_record"),
    *("reason", "evidence", "decision", "proof"),
)
"""Texts that many rows have, and a producer chooses how long they are."""


def live_files(table: Table, snapshot_id: int) -> list[HeldFile]:
    """Raises as `held_files_of`."""
    return list(held_files_of(table, snapshot_id).held)


def look_at_held(
    table: Table,
    mark: HeldMark,
    look: HeldLook,
    *,
    index: IdIndex | None = None,
    released: Released | None = None,
) -> list[HeldChunk]:
    """Every row that is asked for, payload aside, and all rows about the same places and pieces.

    `index`: says which files have which ids; without it, each file that can have one of them by its bounds is opened.
    `released`: knows what of it waits no more; without it, whatever is open counts as waiting.
    """
    files = held_files_of(table, mark.snapshot_id)
    check_mark(mark, files.held, table=".".join(table.name()))
    if look.open_since is not None and look.unreleased and released is not None:
        waits = _still_waiting(table, mark, look.open_since, files, released)
        look = replace(look, open_since=None, ids=look.ids | waits)
    return _rows_of(_asked_for(table, mark, look, files, index))


def _rows_of(batches: Iterable[pa.RecordBatch]) -> list[HeldChunk]:
    found: dict[tuple[HeldKey, int], HeldChunk] = {}
    texts = Texts()
    for batch in batches:
        for held in _chunks(batch, texts):
            found[held.key, held.sequence] = held
    return list(found.values())


def _still_waiting(table: Table, mark: HeldMark, since: int, files: HeldFiles, released: Released) -> frozenset[str]:
    """The waveforms with an open chunk that is not older, of which something that is held is not released. What was not
    known of a file is noted."""
    which = files.of_reasons({Reason.OPEN.value}) & files.since(since)
    about = [files.held[n] for n in np.flatnonzero(which).tolist()]
    known = released.note_of(table, about)
    ids_of: dict[str, Collection[str]] = {}
    for file, task in zip(about, files.tasks(which), strict=True):
        key = key_of(file)
        ids_of[key] = known[key].waits if key in known else _ids_in(table, task)
    ids = frozenset[str]().union(*ids_of.values())
    tasks = files.tasks(_may_have(table, mark, ids, files, released.index)) if ids else ()
    rows = _rows_of(_of_waveforms(table, ids, tasks))
    now = released.noted(ids_of, rows, known)
    if now != known:
        released.keep(table, now)
    late = {h.chunk.waveform_id for h in rows if h.reason is Reason.OPEN and h.chunk.timestamp_ms >= since}
    return frozenset[str]().union(*(noted.waits & late for noted in now.values()))


def _ids_in(table: Table, task: FileScanTask) -> set[str]:
    some = (pc.unique(b["waveform_id"].drop_null()) for b in read_file(table, task, ("waveform_id",)))
    return {i for ids in some for i in ids.to_pylist()}


def ids_held(table: Table, mark: HeldMark, look: IdsLook, *, index: IdIndex | None = None) -> dict[str, int]:
    """The waveforms that are asked for, and how many such rows each has, by the id column alone. How many are held is
    for a producer to say: of those that are asked for the first `most` are in memory, and as many again."""
    files = held_files_of(table, mark.snapshot_id)
    check_mark(mark, files.held, table=".".join(table.name()))
    meant = files.of_chunks() & (files.of_reasons({r.value for r in look.reasons}) if look.reasons else True)
    if look.since_ms is not None:
        meant &= files.since(look.since_ms)
    if look.ids:
        meant &= _may_have(table, mark, look.ids, files, index)
    found: Counter[str] = Counter()
    for task in files.tasks(meant):
        for batch in read_file(table, task, ("waveform_id",), _of_ids(look), repeated=("waveform_id",)):
            for value in pc.value_counts(batch["waveform_id"].drop_null()).to_pylist():
                if value["values"] > look.after and (not look.ids or value["values"] in look.ids):
                    found[value["values"]] += value["counts"]
            if look.most is not None and len(found) > 2 * look.most:
                found = _first(found, look.most)
    return dict(_first(found, len(found) if look.most is None else look.most))


def _of_ids(look: IdsLook) -> BooleanExpression:
    return all_of(
        is_in("reason", {r.value for r in look.reasons}) if look.reasons else EVERY_ROW,
        EVERY_ROW if look.since_ms is None else at_least("timestamp_ms", look.since_ms),
        is_in("waveform_id", look.ids) if 0 < len(look.ids) <= _MOST_IN_FILTER else EVERY_ROW,
    )


def _first(found: Counter[str], most: int) -> Counter[str]:
    """One that is left out once has so many before it for good: what comes of it later is left out, too."""
    return Counter(dict(sorted(found.items())[:most]))


def near(coordinates: Collection[Coordinate]) -> BooleanExpression:
    """What every row at one of these places meets, and hardly another."""
    named, spans = spans_of(coordinates)
    topics = is_in("topic_id", named)
    if len(spans) > _MOST_IN_FILTER:
        whole = (min(a for a, _ in spans.values()), max(b for _, b in spans.values()))
        return all_of(topics, at_least("offset", whole[0]), below("offset", whole[1]))
    return all_of(
        topics,
        any_of(
            *(all_of(equals("partition", p), at_least("offset", a), below("offset", b)) for p, (a, b) in spans.items())
        ),
    )


def _whole(table: Table, look: HeldLook, files: HeldFiles) -> Iterator[pa.RecordBatch]:
    for task in files.tasks(files.every() if look.everything else files.of_chunks()):
        yield from read_file(table, task, FACTS, repeated=_REPEATED)


def _asked_for(
    table: Table, mark: HeldMark, look: HeldLook, files: HeldFiles, index: IdIndex | None
) -> Iterator[pa.RecordBatch]:
    if look.everything or look.chunks:
        yield from _whole(table, look, files)
        return
    ids = look.ids
    if look.open_since is not None:
        waiting = IdsLook(frozenset({Reason.OPEN}), look.open_since)
        ids = ids | ids_held(table, mark, waiting).keys()
    if ids:
        yield from _of_waveforms(table, ids, files.tasks(_may_have(table, mark, ids, files, index)))
    if look.coordinates:
        yield from _at_places(table, files, look.coordinates)


def _may_have(table: Table, mark: HeldMark, ids: frozenset[str], files: HeldFiles, index: IdIndex | None) -> Mask:
    """The files that may have chunks of these waveforms."""
    if index is None:
        return files.with_ids(ids) & files.of_chunks()
    named = index.files_of(table, ids, snapshot_id=mark.snapshot_id, without=JUNK)
    return files.named(named) & files.of_chunks()


def _of_waveforms(table: Table, ids: frozenset[str], files: Sequence[FileScanTask]) -> Iterator[pa.RecordBatch]:
    """The valid chunks of these waveforms."""
    values = pa.array(sorted(ids), pa.string())
    few = is_in("waveform_id", ids) if len(ids) <= _MOST_IN_FILTER else EVERY_ROW
    for task in files:
        for batch in read_file(table, task, FACTS, few, repeated=_REPEATED):
            yield batch.filter(pc.is_in(batch["waveform_id"], value_set=values))


def _at_places(table: Table, files: HeldFiles, coordinates: Collection[Coordinate]) -> Iterator[pa.RecordBatch]:
    wanted = near(coordinates)
    for task in files.tasks(files.near(coordinates)):
        for batch in read_file(table, task, FACTS, wanted, repeated=_REPEATED):
            columns = (batch[name].to_pylist() for name in ("topic_id", "partition", "offset"))
            rows = [n for n, place in enumerate(zip(*columns, strict=True)) if place in coordinates]
            if rows:
                yield batch.take(pa.array(rows, pa.int64()))


class Texts(dict[str, str]):
    """Each text once, however many rows of a look have it."""

    def __missing__(self, text: str) -> str:
        self[text] = text
        return text

    def of(self, column: pa.Array) -> list[str | None]:
        coded = column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
        known = [None if text is None else self[text] for text in coded.dictionary.to_pylist()]
        return [None if n is None else known[n] for n in coded.indices.to_pylist()]


def _chunks(batch: pa.RecordBatch, texts: Texts) -> Sequence[HeldChunk]:
    columns = [texts.of(batch[name]) if name in _REPEATED else batch[name].to_pylist() for name in FACTS]
    return [held_chunk(dict(zip(FACTS, row, strict=True))) for row in zip(*columns, strict=True)]
