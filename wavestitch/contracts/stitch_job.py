"""What the reassembly is told and what it answers: a job, and one result per assignment. JSON in write-once files.

The step that makes a job has read only the index: it decides which rows of which landing files make which waveform,
and how the waveforms are dealt out to tasks. Spark distributes names; payload bytes never pass through here.
"""

from __future__ import annotations

import json
import re
from dataclasses import asdict, dataclass

from wavestitch.contracts.payload_apart import PayloadPlace
from wavestitch.contracts.sample_kinds import Encoding, SampleType
from wavestitch.contracts.versioned import Versioned

STITCH_JOB_FORMAT = 4
_REPORT_FORMAT = 3
_STITCHED = re.compile(r"stitched-[0-9A-Za-z]{1,8}-([0-9a-f]{32}|[0-9a-f]{64})\.arrow")
_STAGED = re.compile(r"[0-9a-z]{1,16}-[0-9A-Za-z]{1,8}-([0-9a-f]{32}|[0-9a-f]{64})\.parquet")
_SHOWN = 120


@dataclass(frozen=True, slots=True)
class StitchJob:
    """`folder`: the plan's landing folder, where assignments are and results go. `files`: landing files by number (the
    file of held chunks included), `assignments`: assignment files; both relative to `folder`, or absolute.
    `payload`: where the payload of files is that have it apart; the login by reference."""

    plan_id: str
    topic_id: str
    folder: str
    output_folder: str
    samples: SampleType
    encoding: Encoding
    files: tuple[str, ...]
    assignments: tuple[str, ...]
    payload: PayloadPlace | None = None

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
STITCH_JOBS = Versioned(
    StitchJob,
    "the stitch job",
    _AGAIN,
    format=STITCH_JOB_FORMAT,
    upgrades={3: lambda fields: {**fields, "payload": None}},
)
STITCH_REPORTS = Versioned(StitchReport, "the stitch report", _AGAIN, format=_REPORT_FORMAT, wrong=_impossible)
