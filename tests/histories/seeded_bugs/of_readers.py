"""Seeded bugs. What readers see while somebody writes: each of them is over when the writer is done, unless it dies."""

from __future__ import annotations

from typing import Any

from tests.fakes.fake_tables import FakeTables
from tests.histories.anomaly import Kind
from tests.histories.seeded_bugs.registry import Patch, shows
from wavestitch.contracts.position import HeadKind


@shows(Kind.LOST)
def a_decision_writes_the_table_anew_in_two_commits(patch: Patch) -> None:
    real = FakeTables.commit

    def wrong(self: Any, base: Any, new: Any, files: Any, **more: Any) -> Any:
        if new.kind is not HeadKind.HELD:
            return real(self, base, new, files, **more)
        kept, self.rows = self.rows, []
        try:
            return real(self, base, new, files, **more)
        finally:
            self.rows = [*kept, *self.rows]

    patch.setattr(FakeTables, "commit", wrong)


@shows(Kind.DUPLICATE, since=15)
def maintenance_puts_files_beside_those_that_they_stand_for(patch: Patch) -> None:
    real = FakeTables.drop_snapshots

    def wrong(self: Any, numbers: Any) -> None:
        together = list(self.rows)
        self.rows = [*self.rows, *together]
        real(self, numbers)
        self.rows = self.rows[len(together) :]

    patch.setattr(FakeTables, "drop_snapshots", wrong)


@shows(Kind.INVENTED, since=105)
def rows_are_there_before_their_head_is(patch: Patch) -> None:
    """And go with it, where it is not committed."""
    commit, snapshot = FakeTables.commit, FakeTables._snapshot

    def without_early(self: Any) -> None:
        self.rows = [one for one in self.rows if one[0] >= 0]

    def wrong(self: Any, base: Any, new: Any, files: Any, **more: Any) -> Any:
        self.rows = [*self.rows, *((-1, row) for file in files for row in self.files.staged[file.path])]
        try:
            return commit(self, base, new, files, **more)
        finally:
            without_early(self)

    def committed(self: Any, new: Any, rows: Any, **more: Any) -> Any:
        without_early(self)
        return snapshot(self, new, rows, **more)

    patch.setattr(FakeTables, "commit", wrong)
    patch.setattr(FakeTables, "_snapshot", committed)
