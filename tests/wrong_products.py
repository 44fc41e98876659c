"""Products with one rule wrong that the schedules find out, most of them the state machine or the traces, too.

What the histories find out, too, is among the seeded bugs.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import pytest

from tests.fakes.fake_tables import FakeTables, held_files
from tests.fakes.faults import under_way
from wavestitch.batch import carry, commit_offsets, rewind, rewind_preview, steps
from wavestitch.contracts.errors import StateUnknown
from wavestitch.contracts.held_mark import mark_of
from wavestitch.contracts.ports import CommitConflict

Patch = pytest.MonkeyPatch


def held_rows_count_without_a_commit(patch: Patch) -> None:
    real = FakeTables.stage_held

    def wrong(self: Any, base: Any, rows: Any, *, staging: Any) -> Any:
        """On whatever was staged last, as a table that is simply appended to would be."""
        newest = max(self.held_snapshots, default=None)
        on = base if newest is None else mark_of(newest, held_files(self.held_snapshots[newest]), {}, 0)
        return real(self, on, rows, staging=staging)

    patch.setattr(FakeTables, "stage_held", wrong)


def the_gate_is_looked_at_when_planning_only(patch: Patch) -> None:
    real = steps.refuse_past_closed_gate
    patch.setattr(
        steps, "refuse_past_closed_gate", lambda edges, own="", **about: None if own else real(edges, **about)
    )


def a_conflict_after_two_commits_without_an_answer_is_taken_for_ones_own(patch: Patch) -> None:
    real, silent = FakeTables.commit, Counter[str]()

    def wrong(self: FakeTables, base: Any, new: Any, files: Any, **more: Any) -> Any:
        try:
            return real(self, base, new, files, **more)
        except StateUnknown:
            silent[under_way()] += 1
            raise
        except CommitConflict:
            if silent[under_way()] < 2:
                raise
            return self.head()

    patch.setattr(FakeTables, "commit", wrong)


def the_group_is_written_before_the_head_is_committed(patch: Patch) -> None:
    real = carry.step_publish

    def wrong(edges: Any, *args: Any, **more: Any) -> Any:
        commit, stream = edges.tables.commit, edges.stream

        def after_the_group(base: Any, new: Any, files: Any, **how: Any) -> Any:
            tag = new.tag(edges.tables.table_uuid()).encode()
            edges.log.commit_group(stream.group, stream.topic, new.positions, tag)
            return commit(base, new, files, **how)

        with pytest.MonkeyPatch.context() as inner:
            inner.setattr(edges.tables, "commit", after_the_group)
            return real(edges, *args, **more)

    patch.setattr(carry, "step_publish", wrong)


def whatever_the_group_shows_is_written_over(patch: Patch) -> None:
    """By a batch that ends: also what somebody set meanwhile, or a copy of the table."""
    patch.setattr(commit_offsets, "may_project", lambda *_, **__: True)


def a_preview_holds_in_every_generation(patch: Patch) -> None:
    real = rewind_preview._again

    def wrong(edges: Any, shown: Any, **how: Any) -> Any:
        return real(edges, replace(shown, generation=edges.tables.head().generation), **how)

    patch.setattr(rewind_preview, "_again", wrong)


def a_preview_is_worked_out_anew(patch: Patch) -> None:
    def wrong(edges: Any, shown: Any, *, who: str) -> Any:
        target = rewind_preview.rewind_target(shown.to, shown.partitions)
        return rewind.plan_rewind(edges.stream, target, log=edges.log, tables=edges.tables, who=who, why=shown.why)

    patch.setattr(rewind_preview, "_again", wrong)
