"""Products with one rule wrong that both the state machine and the schedules find out.

What the histories find out, too, is among the seeded bugs.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.fakes.fake_tables import FakeTables, held_files
from wavestitch.batch import carry, rewind, rewind_preview, steps
from wavestitch.contracts.held_mark import mark_of

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


def the_group_is_written_before_the_head_is_committed(patch: Patch) -> None:
    real = carry.step_publish

    def wrong(edges: Any, *args: Any, **more: Any) -> Any:
        commit, stream = edges.tables.commit, edges.stream

        def after_the_group(base: Any, new: Any, files: Any, **how: Any) -> Any:
            tag = new.tag(edges.tables.uuid).encode()
            edges.log.commit_group(stream.group, stream.topic, new.positions, tag)
            return commit(base, new, files, **how)

        with pytest.MonkeyPatch.context() as inner:
            inner.setattr(edges.tables, "commit", after_the_group)
            return real(edges, *args, **more)

    patch.setattr(carry, "step_publish", wrong)


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
