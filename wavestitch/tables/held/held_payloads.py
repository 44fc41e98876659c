"""The bytes of held chunks, fetched out of the table into one landing file that a batch can stitch from.

The file's content follows from places and pieces alone (the bytes of a piece never change; at one place there can be
several, after an unclean election), so its rows are in their order and a second attempt finds the first one's file as
good as its own. Keeps I3 and I5: one held file in memory at a
time, out again in batches of about 16 MiB.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
from pyiceberg.table import FileScanTask, Table

from wavestitch.contracts.assembly import Coordinate, no_chunk
from wavestitch.contracts.errors import Altered, Terminal
from wavestitch.contracts.held import HeldKey
from wavestitch.contracts.rows import LANDING
from wavestitch.mapped_file import map_sparsely
from wavestitch.tables.held.held_files import held_files_of
from wavestitch.tables.lookup.file_scans import read_file
from wavestitch.write_once import place_once, scratch_file

_BATCH_BYTES = 16 << 20
_PLACE = ("topic_id", "partition", "offset")
_LAY_THERE = ("waveform_id", "seq", "piece", "count", "digest")
_PIECE = _LAY_THERE.index("piece")
_HELD_NAMES = {"reason": "record_reason", "evidence": "evidence_of_record"}


class _Pick(NamedTuple):
    """Where a piece's bytes are. Of several stored rows the first decision's: later ones change nothing."""

    order: int
    file: int
    row: int


def write_payloads(table: Table, snapshot_id: int, chunks: Collection[HeldKey], to: Path) -> dict[HeldKey, int]:
    """Write the chunks to `to`; row number by place and piece. Raises `Terminal` where one is not in this snapshot."""
    ordered = sorted(set(chunks), key=_order)
    if not to.exists():
        with scratch_file(to.parent) as spool, scratch_file(to.parent) as sorted_file:
            spooled = _spool(table, snapshot_id, ordered, spool)
            if spooled != ordered:
                _sort(spool, {c: n for n, c in enumerate(spooled)}, ordered, sorted_file)
            place_once(spool if spooled == ordered else sorted_file, to)
    _check(to, ordered)
    return {c: n for n, c in enumerate(ordered)}


def _order(key: HeldKey) -> tuple[Coordinate, str]:
    """Orders places and pieces, whose parts may be missing."""
    return key[0], repr(key[1])


def _spool(table: Table, snapshot_id: int, ordered: list[HeldKey], to: Path) -> list[HeldKey]:
    """Write the rows in the order in which the table has them; returns that order."""
    spooled: list[HeldKey] = []
    with pa.OSFile(str(to), "wb") as sink, pa.ipc.new_file(sink, LANDING) as writer:
        for task, wanted in find_rows(table, snapshot_id, ordered):
            for batch in _rows_of(table, task, [row for row, _ in wanted]):
                writer.write_batch(batch)
            spooled.extend(c for _, c in wanted)
    return spooled


def find_rows(
    table: Table, snapshot_id: int, chunks: Collection[HeldKey]
) -> list[tuple[FileScanTask, list[tuple[int, HeldKey]]]]:
    """Where the bytes of these chunks are: files, and of each the numbers of its rows, ascending, as a scan sees them.
    Raises `Terminal` where one has none in this snapshot."""
    ordered = sorted(set(chunks), key=_order)
    files = _files(table, snapshot_id, ordered)
    rows: dict[int, list[tuple[int, HeldKey]]] = defaultdict(list)
    for key, pick in _find(table, files, ordered).items():
        rows[pick.file].append((pick.row, key))
    # Each file was appended in order of coordinate: taken by their first, the files mostly follow each other.
    by_place = sorted(rows, key=lambda n: min(_order(k) for _, k in rows[n]))
    return [(files.tasks[n], sorted(rows[n], key=lambda row: row[0])) for n in by_place]


class _Files(NamedTuple):
    """`chunks`: how many of them have chunks; the rest have records that are none, of which there may be millions."""

    tasks: list[FileScanTask]
    chunks: int


def _files(table: Table, snapshot_id: int, ordered: list[HeldKey]) -> _Files:
    if not ordered:
        return _Files([], 0)
    live = held_files_of(table, snapshot_id)
    there = live.near([coordinate for coordinate, _ in ordered]) & live.with_bytes()
    chunks, others = live.tasks(there & live.of_chunks()), live.tasks(there & ~live.of_chunks())
    return _Files([*chunks, *others], len(chunks))


def _find(table: Table, files: _Files, ordered: list[HeldKey]) -> dict[HeldKey, _Pick]:
    wanted = set(ordered)
    picks: dict[HeldKey, _Pick] = {}
    for n, task in enumerate(files.tasks):
        if n == files.chunks and picks.keys() == wanted:
            break  # nobody asked for a record that is no chunk
        row = -1
        for batch in read_file(table, task, (*_PLACE, *_LAY_THERE, "stored", "sequence")):
            places = zip(*(batch[name].to_pylist() for name in _PLACE), strict=True)
            lies = zip(*(batch[name].to_pylist() for name in _LAY_THERE), strict=True)
            more = (batch[name].to_pylist() for name in ("stored", "sequence"))
            for place, what, stored, sequence in zip(places, lies, *more, strict=True):
                row += 1
                key = place, what if n < files.chunks else no_chunk(what[_PIECE])
                if stored and key in wanted:
                    pick = _Pick(sequence, n, row)
                    picks[key] = min(pick, picks.get(key, pick))
    missing = sorted(wanted - picks.keys(), key=_order)
    if missing:
        topic_id, partition, offset = missing[0][0]
        raise Terminal(
            f"{len(missing)} of {len(wanted)} held chunks have no bytes in table {'.'.join(table.name())}, first topic "
            f"{topic_id} partition {partition} offset {offset}: restore the table, rewind to where the log has them, "
            "so that they are held with their bytes again, or discard their waveforms",
            missing=len(missing),
        )
    return picks


def _rows_of(table: Table, task: FileScanTask, rows: list[int]) -> Iterator[pa.RecordBatch]:
    """These rows (ascending) of one file, as landing rows."""
    # Only the bytes are taken from this file: what its rows say of themselves stands in the held rows.
    fields = [f for f in LANDING if f.name not in ("meta", "meta_row")]
    names = [_HELD_NAMES.get(f.name, f.name) for f in fields]
    start, at = 0, 0
    for batch in read_file(table, task, names):
        here: list[int] = []
        while at < len(rows) and rows[at] < start + batch.num_rows:
            here.append(rows[at] - start)
            at += 1
        start += batch.num_rows
        if here:
            taken = batch.take(pa.array(here, pa.int64()))
            known = {f.name: taken[n].cast(f.type) for n, f in zip(names, fields, strict=True)}
            columns = [known[f.name] if f.name in known else pa.nulls(len(here), f.type) for f in LANDING]
            yield from _cut(pa.record_batch(columns, schema=LANDING))


def _cut(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    step = max(1, batch.num_rows * _BATCH_BYTES // max(1, batch.nbytes))
    for start in range(0, batch.num_rows, step):
        yield batch.slice(start, step)


def _sort(spool: Path, row_of: dict[HeldKey, int], ordered: list[HeldKey], to: Path) -> None:
    """Copy the spooled rows in order of coordinate."""
    with (
        pa.memory_map(str(spool)) as source,
        pa.ipc.open_file(source) as reader,
        pa.OSFile(str(to), "wb") as sink,
        pa.ipc.new_file(sink, LANDING) as writer,
    ):
        batches = [reader.get_batch(n) for n in range(reader.num_record_batches)]
        places = [(batch, row) for batch in batches for row in range(batch.num_rows)]
        gathered: list[pa.RecordBatch] = []
        size = 0
        for key in ordered:
            batch, row = places[row_of[key]]
            one = batch.slice(row, 1)
            gathered.append(one)
            size += one.nbytes
            if size >= _BATCH_BYTES:
                writer.write_batch(_joined(gathered))
                gathered, size = [], 0
        if gathered:
            writer.write_batch(_joined(gathered))


def _joined(batches: list[pa.RecordBatch]) -> pa.RecordBatch:
    return pa.Table.from_batches(batches).combine_chunks().to_batches()[0]


def _check(path: Path, ordered: list[HeldKey]) -> None:
    """Raises `Altered` unless the file's rows are these chunks, in this order."""
    found: list[tuple[int, int, bytes]] = []
    with pa.ipc.open_file(map_sparsely(path)) as reader:
        for n in range(reader.num_record_batches):
            batch = reader.get_batch(n)
            found.extend(zip(*(batch[name].to_pylist() for name in ("partition", "offset", "piece")), strict=True))
    if found != [(partition, offset, piece) for (_, partition, offset), (_, _, piece, *_) in ordered]:
        raise Altered(f"{path} was there already and holds other chunks; remove it, or name another file")
