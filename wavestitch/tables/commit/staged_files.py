"""Parquet files on their way into the table: checked, rewritten without some rows, made durable.

A staged file is never changed: what must not be published is left out in a new file with a new name. Keeps I3.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from wavestitch.contracts.chunk_table import TEXT, digests_of
from wavestitch.contracts.errors import Altered, BadInput
from wavestitch.contracts.ports import StagedFile
from wavestitch.contracts.row_check import StagedRows
from wavestitch.modes import sync_folder
from wavestitch.parquet.published_file import PublishedFile, pages_as_in, stored_groups
from wavestitch.parquet.sample_pages import typed_samples
from wavestitch.plain_files import open_plain
from wavestitch.write_once import digest_file, place_once, scratch_file, sync_file


def check_staged(path: Path, staged: StagedFile) -> None:
    """Raises `Altered` unless the file at `path` has the size and the digest that it was staged with."""
    try:
        with open_plain(path, step="the batch's reassemble step") as file:
            size = os.fstat(file.fileno()).st_size
    except FileNotFoundError:
        raise Altered(f"staged file {path} is gone; run the batch's reassemble step again", file=str(path)) from None
    if size != staged.bytes:
        raise Altered(
            f"staged file {path} has {size} bytes, {staged.bytes} were written; run the batch's reassemble step again",
            file=str(path),
        )
    _, digest = digest_file(path, large=True)
    if digest != staged.digest:
        raise Altered(
            f"staged file {path} has digest {digest}, {staged.digest} was written; run the batch's reassemble step "
            "again",
            file=str(path),
        )


def rewrite_without(path: Path, drop_ids: Collection[str], folder: Path) -> StagedFile:
    """A copy of a staged file without the rows of these waveforms, in `folder`.

    Named after the original and the copy's own digest. A row group that keeps all its rows is copied as it is: only of
    others samples are decoded, one group at a time. The same call makes the same file, so one that an earlier attempt
    left is taken as it is, if it is intact. Raises `BadInput` where no row is left: such a file is left out altogether.
    """
    drop = pa.array(sorted(drop_ids), pa.string())
    with scratch_file(folder) as scratch:
        rows = _copy_without(path, drop, scratch)
        if not rows:
            raise BadInput(f"nothing is left of staged file {path} without {len(drop)} waveforms; leave the file out")
        size, digest = digest_file(scratch, large=True)
        target = folder / f"{path.stem}-{digest[:16]}.parquet"
        staged = StagedFile(str(target), size, digest, rows)
        if not place_once(scratch, target):
            check_staged(target, staged)
    return staged


def _copy_without(path: Path, drop: Any, to: Path) -> int:
    """How many rows there are in the copy."""
    rows = 0
    with pq.ParquetFile(path) as source, to.open("wb") as sink:
        file = PublishedFile(sink, pages_as_in(path))
        for n, group in enumerate(stored_groups(path)):
            gone = pc.is_in(source.read_row_group(n, columns=["waveform_id"])["waveform_id"], value_set=drop)
            left = len(gone) - (pc.sum(gone).as_py() or 0)
            if left == len(gone):
                file.copy_group(group)
            elif left:
                kept = source.read_row_group(n).filter(pc.invert(gone)).combine_chunks()
                file.write_group(kept, typed_samples(kept["samples"].combine_chunks()))
            rows += left
        file.close()
    return rows


def read_rows(path: Path) -> Iterator[StagedRows]:
    """The rows of a staged file, a row group at a time, by its columns of ids and chunks alone."""
    with pq.ParquetFile(path) as source:
        for n in range(source.num_row_groups):
            group = source.read_row_group(n, columns=["waveform_id", "chunks"]).combine_chunks()
            lists = group["chunks"].combine_chunks()
            flat = lists.flatten()
            partition, offset, length = (np.asarray(flat.field(n), np.int64) for n in ("partition", "offset", "length"))
            sizes = np.asarray(pc.list_value_length(lists), np.int64)
            yield StagedRows(
                ids=group["waveform_id"].combine_chunks(),
                first=np.concatenate(([0], np.cumsum(sizes))),
                topic=flat.field("topic_id").cast(TEXT),
                partition=partition,
                offset=offset,
                length=length,
                piece=digests_of(flat.field("piece").cast(pa.binary(32))),
            )


def make_durable(paths: Iterable[Path]) -> None:
    """Sync the files, then the folders they are in."""
    folders: set[Path] = set()
    for path in paths:
        sync_file(path)
        folders.add(path.parent)
    for folder in sorted(folders):
        sync_folder(folder)
