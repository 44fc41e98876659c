"""What a task tells the driver: a result, or an error that is still of its own class on the other side.

An error travels as a value. Raised in a Python worker it would arrive as text inside an exception of Spark's, and
Spark would try a task again whose input is damaged; whether to try again is the step's decision.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from spark_apps.stitching import stitch_assignment
from wavestitch.contracts.errors import Terminal, Transient, WavestitchError, error_from_json
from wavestitch.contracts.stitch_job import STITCH_REPORTS, StitchJob, StitchResult


def run_task(job: StitchJob, assignment: str) -> str:
    """Stitch one assignment; the outcome as JSON. What is no fault of data or disk is a bug, and is raised."""
    try:
        return json.dumps({"result": json.loads(stitch_assignment(job, assignment).to_json())})
    except WavestitchError as error:
        return json.dumps(error.to_json())
    except OSError as error:
        return json.dumps(disk_trouble(error, f"stitching {assignment}").to_json())
    except MemoryError as error:
        sentence = f"stitching {assignment} ran out of memory ({error}); give the workers more, or run fewer at once"
        return json.dumps(Transient(sentence, assignment=assignment).to_json())


def read_outcomes(outcomes: Sequence[str]) -> tuple[StitchResult, ...]:
    """The results, in order. Raises the first terminal error, or else the first error, of the tasks that failed."""
    found = [_read(outcome) for outcome in outcomes]
    errors = [f for f in found if isinstance(f, WavestitchError)]
    if errors:
        raise next((e for e in errors if isinstance(e, Terminal)), errors[0])
    return tuple(f for f in found if isinstance(f, StitchResult))


def _read(outcome: str) -> StitchResult | WavestitchError:
    """Checked like a report's results: names of files are in it."""
    try:
        said = json.loads(outcome)
    except (ValueError, RecursionError):
        said = None
    if isinstance(said, dict) and "error" in said:
        return error_from_json(said)
    result = said.get("result") if isinstance(said, dict) else None
    return STITCH_REPORTS.of({"format": STITCH_REPORTS.format, "plan_id": "", "results": [result]}).results[0]


def disk_trouble(error: OSError, doing: str) -> Transient:
    where = f" at {error.filename}" if error.filename else ""
    return Transient(
        f"{doing} failed: {error.strerror or error}{where}; look after space and rights there, then run the step again",
        errno=error.errno,
    )
