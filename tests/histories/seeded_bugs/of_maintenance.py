"""Seeded bugs. What maintenance tries and takes away, and what a catalog says in the words of its own library."""

from __future__ import annotations

from typing import Any

from tests.histories.anomaly import Kind
from tests.histories.seeded_bugs.registry import Patch, shows
from wavestitch.contracts.errors import Terminal
from wavestitch.contracts.quantities import EpochMs
from wavestitch.contracts.reasons import Reason
from wavestitch.maintain import leftovers, run, what_goes
from wavestitch.tables.access import reading

LATE = EpochMs(10**15)


@shows(Kind.UNBOUNDED_COST, act="readers_leave_files")
def what_killed_readers_left_stays(patch: Patch) -> None:
    patch.setattr(leftovers, "_scratch_files", lambda _: iter(()))


@shows(Kind.LOST, act="readers_leave_files")
def a_file_that_somebody_is_at_work_on_is_taken_for_a_leftover(patch: Patch) -> None:
    patch.setattr(leftovers, "is_held", lambda _: False)


@shows(Kind.LOST, act="junk_expires")
def junk_goes_before_its_time(patch: Patch) -> None:
    real = what_goes.junk_to_expire
    patch.setattr(what_goes, "junk_to_expire", lambda files, *, held_before: real(files, held_before=LATE))


@shows(Kind.LOST, act="junk_expires")
def chunks_that_are_held_expire_like_junk(patch: Patch) -> None:
    patch.setattr(what_goes, "JUNK", frozenset(Reason))


@shows(Kind.UNBOUNDED_COST, act="a_stage_fails")
def a_stage_of_maintenance_that_fails_ends_the_run(patch: Patch) -> None:
    def wrong(_: str, error: Exception) -> Any:
        raise error

    patch.setattr(run, "_failure", wrong)


@shows(Kind.UNBOUNDED_END, since=4, act="a_catalog_fails_at_an_ingest")
def an_error_of_a_catalog_that_is_in_no_list_is_let_through(patch: Patch) -> None:
    real = reading.meaning_of

    def wrong(error: Exception, *, name: str) -> Any:
        found = real(error, name=name)
        return None if type(found) is Terminal and found is not error else found

    patch.setattr(reading, "meaning_of", wrong)
