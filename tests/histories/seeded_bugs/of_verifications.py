"""Seeded bugs. Verifications: what people are told of the rows of a range who have them compared with the log."""

from __future__ import annotations

from typing import Any

from tests.histories.anomaly import Kind
from tests.histories.seeded_bugs.registry import Patch, shows
from wavestitch.batch import verify
from wavestitch.contracts import verification
from wavestitch.contracts.row_face import RowFace
from wavestitch.contracts.verification import Ground


@shows(Kind.UNTRUE)
def of_a_row_the_chunks_are_compared_and_not_the_samples(patch: Patch) -> None:
    real = RowFace.unlike
    patch.setattr(RowFace, "unlike", lambda self, other: [c for c in real(self, other) if c != "samples"])


@shows(Kind.UNTRUE)
def of_a_row_that_is_there_twice_one_is_compared(patch: Patch) -> None:
    real = verification._compare
    patch.setattr(verification, "_compare", lambda i, log, rows, *rest: real(i, log, rows[:1], *rest))


@shows(Kind.UNTRUE)
def what_is_held_is_told_as_missing(patch: Patch) -> None:
    patch.setattr(verify, "_held", lambda *_: {})


@shows(Kind.UNTRUE, since=20)
def what_retention_took_is_told_as_something_else(patch: Patch) -> None:
    patch.setattr(Ground, "is_gone", lambda *_: False)


@shows(Kind.UNTRUE)
def what_no_ingest_has_read_is_told_as_missing(patch: Patch) -> None:
    real = verify.Ground

    def wrong(topic_id: Any, read: Any, log_start: Any, _: Any, ends: Any, *rest: Any) -> Any:
        return real(topic_id, read, log_start, ends, ends, *rest)

    patch.setattr(verify, "Ground", wrong)
