"""What the reassembly is told and what it answers: a job, and one result per assignment. JSON in write-once files.

The step that makes a job has read only the index: it decides which rows of which landing files make which waveform,
and how the waveforms are dealt out to tasks. Spark distributes names; payload bytes never pass through here.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Literal

from wavestitch.contracts.versioned import Versioned

if TYPE_CHECKING:
    # Only for annotations: every Spark worker imports this module, and the model behind `Assembly` is slow to load.
    from wavestitch.contracts.assembly import Assembly

STITCH_JOB_FORMAT = 2
_DAY_NS = 86_400 * 10**9
_STITCHED = re.compile(r"stitched-[0-9A-Za-z]{1,8}-([0-9a-f]{32}|[0-9a-f]{64})\.arrow")
_STAGED = re.compile(r"[0-9a-z]{1,16}-[0-9A-Za-z]{1,8}-([0-9a-f]{32}|[0-9a-f]{64})\.parquet")
_SHOWN = 120

Codec = Literal["zstd", "none"]


@dataclass(frozen=True, slots=True)
class StitchJob:
    """`folder`: the plan's landing folder, where assignments are and results go. `files`: landing files by number (the
    file of held chunks included), `assignments`: assignment files; both relative to `folder`, or absolute."""

    plan_id: str
    topic_id: str
    folder: str
    output_folder: str
    codec: Codec
    files: tuple[str, ...]
    assignments: tuple[str, ...]

    def to_json(self) -> str:
        return STITCH_JOBS.text(self)


@dataclass(frozen=True, slots=True)
class StitchResult:
    """What one assignment came to.

    `stitched`: name of its `STITCHED` file in the job's folder. `file`: name of the Parquet file in the output folder,
    None where no row was written; `file_digest`: XXH3-128 of it. `rows` were written, `refused` were not (each has its
    reason in `stitched`).
    """

    assignment: str
    stitched: str
    file: str | None
    file_bytes: int
    file_digest: str
    rows: int
    refused: int
    chunks: int
    payload_bytes: int

    def to_json(self) -> str:
        return json.dumps(asdict(self), sort_keys=True)


@dataclass(frozen=True, slots=True)
class StitchReport:
    """All results of a job, in the order of its assignments. Says nothing of time: a second run writes the same."""

    plan_id: str
    results: tuple[StitchResult, ...]

    def to_json(self) -> str:
        return STITCH_REPORTS.text(self)


def stitch_job_from_json(text: str) -> StitchJob:
    """Raises `BadInput` where the text is no job."""
    return STITCH_JOBS.read(text)


def stitch_report_from_json(text: str) -> StitchReport:
    """Raises `BadInput` where the text is no report, or names a file that no stitching leaves."""
    return STITCH_REPORTS.read(text)


def assign_waveforms(assemblies: Sequence[Assembly], *, task_bytes: int, tasks_at_least: int) -> list[list[Assembly]]:
    """Whole waveforms dealt out to tasks; each list is one task and becomes one output file.

    A task's waveforms start on one UTC day. Tasks hold about equal bytes, about `task_bytes` at most (one larger
    waveform is a task of its own), and there are about `tasks_at_least` of them where there are as many waveforms.
    Waveforms that lie together on disk stay together. The order of the argument does not matter.
    """
    for a in assemblies:
        if a.reason is not None:
            raise ValueError(f"waveform {a.waveform_id!r} is {a.reason}; only whole waveforms are assigned")
    ordered = sorted(assemblies, key=lambda a: (_day(a), a.pieces[0].file, a.pieces[0].row, a.waveform_id))
    total = sum(a.byte_length for a in ordered)
    target = max(1, min(task_bytes, -(-total // max(1, tasks_at_least))))
    return [task for _, day in groupby(ordered, key=_day) for task in _cut(list(day), target)]


def _day(assembly: Assembly) -> int:
    """UTC day of the first sample, in days since 1970."""
    return assembly.metadata.start_time_ns // _DAY_NS


def _cut(waveforms: list[Assembly], target: int) -> list[list[Assembly]]:
    """The sequence cut into parts of about equal bytes. A waveform falls into the part where its middle lies."""
    sizes = [a.byte_length for a in waveforms]
    total = max(1, sum(sizes))
    parts: list[list[Assembly]] = [[] for _ in range(-(-total // target))]
    before = 0
    for a, size in zip(waveforms, sizes, strict=True):
        parts[min(len(parts) - 1, (2 * before + size) * len(parts) // (2 * total))].append(a)
        before += size
    return [p for p in parts if p]


def _impossible(report: StitchReport) -> str | None:
    """What is wrong with a report that no stitching writes, or None. Files are plain names: never paths."""
    for r in report.results:
        if min(r.file_bytes, r.rows, r.refused, r.chunks, r.payload_bytes) < 0:
            return f"a number of {ascii(r.assignment)[:_SHOWN]} is less than 0"
        if not _STITCHED.fullmatch(r.stitched):
            return f"{ascii(r.stitched)[:_SHOWN]} is not the name of a file of rows"
        if r.file is not None and not _STAGED.fullmatch(r.file):
            return f"{ascii(r.file)[:_SHOWN]} is not the name of a staged file"
    return None


_AGAIN = "run the batch's reassemble step again"
STITCH_JOBS = Versioned(StitchJob, "the stitch job", _AGAIN, format=STITCH_JOB_FORMAT)
STITCH_REPORTS = Versioned(StitchReport, "the stitch report", _AGAIN, format=STITCH_JOB_FORMAT, wrong=_impossible)
