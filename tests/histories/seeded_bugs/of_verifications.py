"""Seeded bugs. Verifications: what people are told of the rows of a range who have them compared with the log."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tests.histories.anomaly import Kind
from tests.histories.seeded_bugs.registry import Patch, shows
from wavestitch.batch.publishes_nothing import PinnedTables
from wavestitch.contracts import verification
from wavestitch.contracts.reasons import Reason
from wavestitch.contracts.row_face import RowFace
from wavestitch.contracts.verification import Agreement, LogExtent


@shows(Kind.UNTRUE, since=15)
def of_a_row_the_chunks_are_compared_and_not_the_samples(patch: Patch) -> None:
    real = RowFace.unlike
    patch.setattr(RowFace, "unlike", lambda self, other: [c for c in real(self, other) if c != "samples"])


@shows(Kind.UNTRUE, since=7)
def of_a_row_that_is_there_twice_one_is_compared(patch: Patch) -> None:
    real = verification._with_row
    patch.setattr(verification, "_with_row", lambda i, log, rows, *rest: real(i, log, rows[:1], *rest))


@shows(Kind.UNTRUE)
def what_is_held_is_looked_at_by_nobody_who_verifies(patch: Patch) -> None:
    real = verification._without_row
    patch.setattr(verification, "_without_row", lambda i, log, _, *rest: real(i, log, None, *rest))


@shows(Kind.UNTRUE, since=30)
def what_retention_took_is_told_as_something_else(patch: Patch) -> None:
    patch.setattr(LogExtent, "is_gone", lambda *_: False)


@shows(Kind.UNTRUE, since=19)
def what_is_nowhere_is_told_as_skipped(patch: Patch) -> None:
    """As if an operator had left it out by name."""
    real = verification._without_row

    def wrong(waveform_id: str, log: Any, held: Any, left: Any) -> Any:
        return real(waveform_id, log, held, replace(left, nowhere=(), skipped=(*left.skipped, *left.nowhere)))

    patch.setattr(verification, "_without_row", wrong)


@shows(Kind.UNTRUE, since=485)
def a_row_that_lacks_a_chunk_is_told_as_refused_today(patch: Patch) -> None:
    """As if its definition had been changed on purpose. Nobody looks whether it agrees with itself."""
    real, whole = verification._with_row_only, verification._with_row

    def wrong(waveform_id: str, log: Any, row: Any, extent: LogExtent) -> Any:
        return real(waveform_id, log and replace(log, made=None), row, extent)

    def believed(waveform_id: str, log: Any, rows: Any, extent: LogExtent) -> Any:
        return whole(waveform_id, log, [replace(row, agrees=True) for row in rows], extent)

    patch.setattr(verification, "_with_row_only", wrong)
    patch.setattr(verification, "_with_row", believed)


@shows(Kind.UNTRUE, since=740)
def one_discarded_chunk_makes_its_waveform_discarded(patch: Patch) -> None:
    real = verification._as_held

    def wrong(waveform_id: str, held: Any) -> Any:
        some = (Reason.DISCARDED,) if Reason.DISCARDED in held.reasons else held.reasons
        return real(waveform_id, replace(held, reasons=some))

    patch.setattr(verification, "_as_held", wrong)


@shows(Kind.UNTRUE, since=54875, swarm=True)
def who_verifies_knows_no_head_but_the_newest(patch: Patch) -> None:
    """What stands in no history yet, as its batch was killed right after the commit, nobody has read then."""
    patch.setattr(PinnedTables, "heads", lambda self: list(self.pinned[:1]))


def _held_is_told_as(patch: Patch, told: Agreement, meant: Agreement) -> None:
    real = verification._as_held

    def wrong(waveform_id: str, held: Any) -> Any:
        found = real(waveform_id, held)
        return replace(found, found=told) if found.found is meant else found

    patch.setattr(verification, "_as_held", wrong)


@shows(Kind.UNTRUE, act="held_and_taken")
def what_is_held_and_gone_from_kafka_is_told_as_lost(patch: Patch) -> None:
    """Though the table has its bytes."""
    _held_is_told_as(patch, Agreement.LOST, Agreement.HELD_ALONE)


@shows(Kind.UNTRUE, act="held_and_written_anew")
def what_is_held_where_something_else_lies_is_told_as_gone_from_kafka(patch: Patch) -> None:
    """As if retention had taken it."""
    _held_is_told_as(patch, Agreement.HELD_ALONE, Agreement.NOT_FOUND)


@shows(Kind.UNTRUE, act="held_without_bytes_and_taken")
def what_is_lost_is_told_as_held_and_gone_from_kafka(patch: Patch) -> None:
    """As if the table had its bytes."""
    _held_is_told_as(patch, Agreement.HELD_ALONE, Agreement.LOST)
