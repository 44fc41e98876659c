"""What a batch has on disk at its commit: checks it, leaves out what may not be published, makes it durable."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from wavestitch.batch.work_folder import WorkFolder
from wavestitch.contracts.batch_row import BatchRow
from wavestitch.contracts.ports import StagedFile
from wavestitch.contracts.row_check import StagedRows
from wavestitch.contracts.stitch_job import StitchReport
from wavestitch.tables.commit.staged_files import check_staged, make_durable, read_rows, rewrite_without

_CHECKED_AT_ONCE = 4


class DiskStaging:
    """The `Staging` of a real batch. `stitched`: the rows of `STITCHED`, one table for all results of `report`;
    `landing`: file names by number."""

    def __init__(
        self,
        folder: WorkFolder,
        landing: Sequence[str],
        stitched: pa.Table,
        report: StitchReport | None,
        *,
        data_folder: Path,
    ) -> None:
        self._folder = folder
        self._landing = landing
        self._data_folder = data_folder
        self._staged = {
            r.file: StagedFile(str(data_folder / r.file), r.file_bytes, r.file_digest, r.rows)
            for r in (report.results if report else ())
            if r.file is not None
        }
        self._rows = stitched.select(["file", "waveform_id"])
        # They are read from the disk, which needs no interpreter: meanwhile it is decided what of them is published.
        pool = ThreadPoolExecutor(_CHECKED_AT_ONCE)
        self._checks = {name: pool.submit(check_staged, Path(s.path), s) for name, s in self._staged.items()}
        pool.shutdown(wait=False)

    def files_for(self, publish: Sequence[str]) -> list[StagedFile]:
        files, ids = self._rows["file"], self._rows["waveform_id"]
        wanted = pc.is_in(ids, value_set=pa.array(publish, ids.type))
        dropped: dict[str, list[str]] = defaultdict(list)
        for row in self._rows.filter(pc.invert(wanted)).to_pylist():
            dropped[row["file"]].append(row["waveform_id"])
        names = sorted(n for n in files.filter(wanted).unique().to_pylist() if n is not None)
        for name in names:
            self._checks[name].result()
        files = [
            rewrite_without(Path(self._staged[name].path), dropped[name], self._data_folder)
            if dropped[name]
            else self._staged[name]
            for name in names
        ]
        make_durable([Path(f.path) for f in files])
        return files

    def rows_in(self, files: Sequence[StagedFile]) -> Iterator[StagedRows]:
        for file in files:
            yield from read_rows(Path(file.path))

    def landing_of(self, file: int) -> str:
        return str(self._folder.path / self._landing[file])

    def keep(self, row: BatchRow) -> None:
        self._folder.keep(row)
