"""The work of one Spark task: an assignment in, one Parquet file and one slim result file out. Runs without Spark.

Decides nothing about which chunks belong together; that is in the assignment. Never holds more than two groups of
payload, or one large waveform once. The same assignment gives the same bytes under the same names,
so that a retried or speculated task is harmless (I3, I6).
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from spark_apps.assignment import Assignment, read_assignment
from spark_apps.gathering import Gatherer, Group, Refusal
from spark_apps.stitched_rows import describe_waveforms, published_rows, stitched_rows
from wavestitch.contracts.rows import STITCHED
from wavestitch.contracts.sample_metrics import MetricColumns, measure_samples
from wavestitch.contracts.stitch_job import StitchJob, StitchResult
from wavestitch.modes import make_folder
from wavestitch.parquet.published_file import PublishedFile
from wavestitch.parquet.sample_pages import SamplePages, SentSamples
from wavestitch.payload_store import open_payload_store
from wavestitch.write_once import DigestingFile, write_digested

GROUP_BYTES = 32 << 20
"""Payload per Parquet row group."""


def stitch_assignment(job: StitchJob, assignment: str) -> StitchResult:
    """Stitch, prove, measure and write the waveforms of one assignment file.

    Raises `Altered` where bytes on disk are not those that were landed, `OSError` where the disk does not take them.
    """
    folder = Path(job.folder)
    task = _Task(job, read_assignment(folder / assignment))
    file, file_bytes, file_digest = task.write_waveforms(assignment)
    stitched = task.write_results(folder, assignment, file)
    return StitchResult(
        assignment=assignment,
        stitched=stitched,
        file=file,
        file_bytes=file_bytes,
        file_digest=file_digest,
        rows=task.written,
        refused=len(task.refused),
        chunks=len(task.assignment.pieces["row"]),
        payload_bytes=int(task.assignment.sizes.sum()),
    )


class _Task:
    """What is known of an assignment's waveforms while its groups pass by, all by ordinal."""

    def __init__(self, job: StitchJob, assignment: Assignment) -> None:
        self.job = job
        self.assignment = assignment
        self.waves = describe_waveforms(assignment)
        self.metrics = MetricColumns.unmeasured(len(assignment.sizes))
        self.rows = np.full(len(assignment.sizes), -1, np.int64)
        self.written = 0
        self.refused: dict[int, Refusal] = {}

    def write_waveforms(self, assignment: str) -> tuple[str | None, int, str]:
        """Name, bytes and digest of the Parquet file; no name where no waveform was to be written."""
        files = [Path(self.job.folder) / f for f in self.job.files]
        store = None if self.job.payload is None else open_payload_store(self.job.payload)
        gatherer = Gatherer(
            self.assignment,
            files,
            self.waves.formats,
            samples=self.job.samples,
            group_bytes=GROUP_BYTES,
            payload=store,
        )
        output = Path(self.job.output_folder)
        make_folder(output)
        stem = f"{self.job.plan_id[:16]}-{_short(assignment)}"
        name, size, digest = write_digested(
            output,
            lambda digest: f"{stem}-{digest}.parquet" if self.written else None,
            lambda staged: self._write_groups(gatherer, staged),
            large=True,
        )
        return (name, size, digest) if name is not None else (None, 0, "")

    def write_results(self, folder: Path, assignment: str, file: str | None) -> str:
        table = stitched_rows(self.waves, self.metrics, rows=self.rows, refused=self.refused, file=file)

        def fill(results: DigestingFile) -> None:
            with pa.ipc.new_file(results, STITCHED) as writer:
                writer.write_table(table)

        return str(write_digested(folder, lambda digest: f"stitched-{_short(assignment)}-{digest}.arrow", fill)[0])

    def _write_groups(self, gatherer: Gatherer, staged: DigestingFile) -> None:
        file = PublishedFile(staged, SamplePages(self.job.samples, self.job.encoding))
        for group in gatherer.groups():
            formats = self.waves.formats[group.waveforms]
            self._take(group, formats)
            if len(group.waveforms):
                rows = published_rows(
                    self.waves, group, self.metrics, topic_id=self.job.topic_id, plan_id=self.job.plan_id
                )
                file.write_group(rows, SentSamples(group.data, group.bounds, formats, self.job.samples))
        file.close()

    def _take(self, group: Group, formats: npt.NDArray[np.str_]) -> None:
        self.refused |= group.refused
        self.metrics.put(group.waveforms, measure_samples(group.data, group.bounds, formats))
        before, self.written = self.written, self.written + len(group.waveforms)
        self.rows[group.waveforms] = np.arange(before, self.written)


def _short(assignment: str) -> str:
    """First digits of the digest in an assignment's name."""
    return Path(assignment).stem.removeprefix("assignment-")[:8]
