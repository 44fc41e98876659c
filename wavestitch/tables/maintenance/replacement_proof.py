"""Proves that files which are to replace others hold the same rows, byte for byte, before anything names them.

Compares every column of every row, read back from the files as they lie there. Changes nothing. Keeps I1 and I3.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import pyarrow as pa
import xxhash
from pyiceberg.manifest import DataFile
from pyiceberg.table import Table

from wavestitch.contracts.errors import Altered
from wavestitch.contracts.sample_types import sent_bytes
from wavestitch.tables.lookup.file_scans import stream_file

_WRAP = (1 << 128) - 1


@dataclass(frozen=True, slots=True)
class RowSum:
    """Rows in any order: how many, and the sum of their digests. Of fixed size, however many they are."""

    rows: int
    digests: int


def sum_of_files(table: Table, files: Iterable[DataFile]) -> RowSum:
    return sum_of_rows(batch for file in files for batch in stream_file(table, file))


def sum_of_rows(batches: Iterable[pa.RecordBatch]) -> RowSum:
    rows = digests = 0
    for batch in batches:
        rows += batch.num_rows
        digests += sum(_digests(batch))
    return RowSum(rows, digests & _WRAP)


def prove_same(name: str, before: RowSum, after: RowSum) -> None:
    """Raises `Altered` where the rows that were written are not those that were read. The table is as it was."""
    if before != after:
        stream = name.partition(".")[0]
        raise Altered(
            f"of table {name}, {before.rows} rows were read to be put together and {after.rows} were found in the "
            "files that were written: they are not the same. The table was not touched, the files go with the next "
            f"maintenance; look for a faulty disk, and run `wavestitch verify-table {stream}`",
            table=name,
        )


def _digests(batch: pa.RecordBatch) -> Iterator[int]:
    """XXH3-128 of each row, all columns; of samples the bytes as they were sent, however they are encoded now."""
    for n in range(batch.num_rows):
        seen = xxhash.xxh3_128()
        for name, column in zip(batch.schema.names, batch.columns, strict=True):
            value = column[n]
            if name == "samples":
                sent = sent_bytes(value, batch["sample_format"][n].as_py())
                seen.update(b"%d:" % len(sent))
                seen.update(sent)
            elif pa.types.is_binary(value.type) or pa.types.is_large_binary(value.type):
                raw = value.as_buffer()
                seen.update(b"none" if raw is None else f"{raw.size}:".encode())
                seen.update(b"" if raw is None else raw)
            else:
                seen.update(repr(value.as_py()).encode())
            seen.update(b"\0")
        yield seen.intdigest()
