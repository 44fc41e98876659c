"""Seeded bugs. Figures: what heads and the history count, and how far a head says that the data have come."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tests.histories.anomaly import Kind
from tests.histories.seeded_bugs.registry import Patch, shows
from wavestitch.batch import publish, take_back
from wavestitch.contracts import next_head
from wavestitch.contracts.pending_decision import PendingDecision


@shows(Kind.UNTRUE)
def a_head_counts_one_more_than_is_held(patch: Patch) -> None:
    real = PendingDecision._held_after

    def wrong(self: PendingDecision) -> Any:
        counts, size = real(self)
        return {reason: n + (reason == min(counts)) for reason, n in counts.items()}, size

    patch.setattr(PendingDecision, "_held_after", wrong)


@shows(Kind.UNTRUE, act="what_was_promoted_is_taken_back")
def what_is_held_is_counted_as_before_a_promotion_was_taken_back(patch: Patch) -> None:
    patch.setattr(take_back, "_mark_after", lambda _, mark, *more, **others: mark)


def _says_published(patch: Patch, change: Any) -> None:
    real = publish.describe_batch

    def wrong(*what: Any, **more: Any) -> Any:
        row = real(*what, **more)
        return replace(row, waveforms={**row.waveforms, "published": change(row.waveforms["published"])})

    patch.setattr(publish, "describe_batch", wrong)


@shows(Kind.UNTRUE)
def a_row_of_the_history_says_that_nothing_was_published(patch: Patch) -> None:
    _says_published(patch, lambda _: 0)


@shows(Kind.UNTRUE)
def a_row_of_the_history_says_that_one_more_was_published(patch: Patch) -> None:
    _says_published(patch, lambda n: n + 1)


@shows(Kind.UNTRUE)
def the_watermark_never_moves(patch: Patch) -> None:
    """So that nothing that waits ever waits too long."""
    patch.setattr(next_head, "advance_watermark", lambda _, previous_ms, **__: previous_ms)


@shows(Kind.UNTRUE)
def the_watermark_is_the_clock(patch: Patch) -> None:
    """So that whatever comes late has waited too long."""
    patch.setattr(next_head, "advance_watermark", lambda _, clock_ms, **__: clock_ms)


@shows(Kind.UNTRUE)
def a_partition_that_is_idle_holds_the_watermark_back(patch: Patch) -> None:
    real = next_head.advance_watermark
    patch.setattr(next_head, "advance_watermark", lambda at, **how: real(at, **{**how, "idle": 10**12}))
