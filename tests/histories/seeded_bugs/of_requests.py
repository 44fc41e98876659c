"""Seeded bugs. Requests that somebody has given up on, and that take effect all the same: later, and perhaps twice. No
other fault shows them: who was killed or failed before believes nothing, and who goes on late is one that looks.
"""

from __future__ import annotations

from typing import Any

from tests.fakes.fake_tables import FakeTables
from tests.fakes.faults import may_land_late
from tests.histories.anomaly import Kind
from tests.histories.seeded_bugs.registry import Patch, shows
from wavestitch.contracts.errors import StateUnknown


@shows(Kind.LOST, since=40, swarm=True)
def a_commit_without_an_answer_is_taken_to_have_failed_and_cleaned_up_after(patch: Patch) -> None:
    real = FakeTables.commit

    def wrong(self: FakeTables, base: Any, new: Any, files: Any, **more: Any) -> Any:
        try:
            return real(self, base, new, files, **more)
        except StateUnknown:
            for file in files:
                self.files.staged[file.path] = []
            raise

    patch.setattr(FakeTables, "commit", wrong)


@shows(Kind.STALE_WRITER, since=10, swarm=True)
def a_commit_that_comes_a_second_time_is_put_on_top_of_itself(patch: Patch) -> None:
    """What a catalog does that knows a request by what it wants to write, and not by what that is to follow."""
    real = FakeTables.__dict__["commit"].__wrapped__

    def wrong(self: FakeTables, base: Any, new: Any, files: Any, **more: Any) -> Any:
        newest = self.snapshots[-1] if self.snapshots else None
        mine = newest is not None and newest.version == new.version and newest.plan_id == new.plan_id
        return real(self, newest if mine else base, new, files, **more)

    patch.setattr(FakeTables, "commit", may_land_late(wrong))
