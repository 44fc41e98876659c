"""A task in the Python of a Spark that is there already: the stitching of `outcome`, and nothing of it but outcomes.

What the server's Python has loaded is what would stitch: where that is not what the step has, nothing is stitched.
"""

from __future__ import annotations

import json
import os
import resource
from collections.abc import Iterable, Iterator

import pyarrow as pa

from spark_apps.outcome import run_task
from wavestitch.contracts.errors import BadInput
from wavestitch.contracts.stitch_job import stitch_job_from_json
from wavestitch.modes import masked

from spark_apps.loaded_code import LOADED_CODE  # isort: skip - after what it speaks of: newer code is not loaded then

OUTCOME = "outcome"
NUMBER = "id"


def stitch_numbers(job: str, code: str, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """For each assignment's number, its outcome. `code`: of the step's process."""
    # The worker has payload in memory, which has no place in a core file.
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    found = None
    for batch in batches:
        outcomes = []
        for number in batch.column(NUMBER).to_pylist():
            if code != LOADED_CODE:
                outcomes.append(json.dumps(_other_code(code).to_json()))
                continue
            found = found or stitch_job_from_json(job)
            # Its mask is the server's, and the server somebody else's.
            with masked():
                outcomes.append(run_task(found, found.assignments[number]))
        yield pa.record_batch([pa.array(outcomes, pa.string())], names=[OUTCOME])


def _other_code(code: str) -> BadInput:
    return BadInput(
        f"the Spark that is there runs other code of ours ({LOADED_CODE[:12]} in process {os.getpid()}) than "
        f"this step ({code[:12]}); install the same version for both and start that Spark again (`make down` and "
        "`make up` here)"
    )
