"""Seeded bugs. Promotions: what is put in the place of what is there, and what is put back."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from typing import Any

from tests.fakes.fake_tables import FakeTables
from tests.histories.anomaly import Kind
from tests.histories.seeded_bugs.registry import Patch, shows
from wavestitch.batch import held_approval, promote, publish, take_back
from wavestitch.contracts import pending_decision, promotion, verification
from wavestitch.contracts.definition_change import Change
from wavestitch.contracts.held import PublishedWaveform

ACT = "what_was_promoted_is_taken_back"


@shows(Kind.LOST, act=ACT)
def what_a_promotion_takes_out_is_not_held(patch: Patch) -> None:
    real = publish._held_rows
    patch.setattr(publish, "_held_rows", lambda plan, *more: [] if plan.promotion is not None else real(plan, *more))


@shows(Kind.STALE_WRITER, since=66, act=ACT)
def a_promotion_is_about_ids_whatever_they_are_by_then(patch: Patch) -> None:
    patch.setattr(publish, "check_promotion", lambda *_, **__: None)
    patch.setattr(held_approval, "refuse_changed", lambda *_: None)


@shows(Kind.STALE_WRITER, since=10, act=ACT)
def a_promotion_leaves_the_stream_where_it_was_shown(patch: Patch) -> None:
    """Whatever an ingest has read since."""
    real = pending_decision.next_head

    def wrong(plan: Any, *more: Any, **others: Any) -> Any:
        head = real(plan, *more, **others)
        return replace(head, positions=plan.positions) if plan.promotion is not None else head

    patch.setattr(pending_decision, "next_head", wrong)


@shows(Kind.LOST, act="a_flat_line_is_cut_under_a_promotion")
def one_chunk_that_was_read_vouches_for_another_that_is_like_it(patch: Patch) -> None:
    def wrong(row: PublishedWaveform, read: Collection[tuple[str, int, bytes]]) -> bool:
        pieces = {(waveform_id, piece) for waveform_id, _, piece in read}
        return all((row.waveform_id, c.piece) in pieces for c in row.chunks)

    patch.setattr(promotion, "_was_read", wrong)


@shows(Kind.LOST, act="what_was_published_is_no_chunk_by_another_definition")
def what_is_no_chunk_by_the_definition_is_taken_out(patch: Patch) -> None:
    """And held as none: maintenance lets it go."""
    patch.setattr(promotion, "_was_read", lambda *_: True)
    patch.setattr(verification, "_no_chunk_today", lambda *_: "")


@shows(Kind.STALE_WRITER, act="another_truth_comes_under_a_promotion")
def a_promotion_takes_out_what_waits_for_a_decision(patch: Patch) -> None:
    for module in (promote, publish):
        patch.setattr(module, "held_back", lambda *_: {})
    patch.setattr(publish, "check_promotion", lambda *_, **__: None)


@shows(Kind.INVENTED, act="what_was_taken_out_is_discarded_and_taken_back")
def undo_of_a_promotion_puts_back_what_was_discarded_since(patch: Patch) -> None:
    patch.setattr(take_back, "_refuse_discarded", lambda *_: None)


@shows(Kind.STALE_WRITER, act=ACT)
def what_a_promotion_takes_out_stays_in_the_table(patch: Patch) -> None:
    real = FakeTables.commit
    patch.setattr(FakeTables, "commit", lambda self, base, new, files, **_: real(self, base, new, files))


@shows(Kind.DUPLICATE, act=ACT)
def undo_of_a_promotion_does_not_look_what_is_published_since(patch: Patch) -> None:
    patch.setattr(take_back, "rows_as_made", lambda *_: [])


@shows(Kind.STALE_WRITER, act=ACT)
def undo_of_a_promotion_takes_out_and_puts_nothing_back(patch: Patch) -> None:
    real = FakeTables.put_back

    def wrong(self: Any, base: Any, new: Any, *, ids: Any, **more: Any) -> Any:
        return real(self, base, new, ids=(), **more)

    patch.setattr(FakeTables, "put_back", wrong)


@shows(Kind.UNTRUE, act="another_truth_is_skipped_before_a_promotion")
def a_promotion_is_shown_that_its_batch_refuses(patch: Patch) -> None:
    patch.setattr(promote, "rehearse", lambda *_: {})


@shows(Kind.UNTRUE, act=ACT)
def a_promotion_that_was_taken_back_is_told_as_done(patch: Patch) -> None:
    patch.setattr(held_approval, "refuse_taken_back", lambda *_: None)


def _is_not_shown(patch: Patch, what: Change) -> None:
    real = promote.changed

    def wrong(one: Any) -> Any:
        to = real(one)
        return replace(to, change=Change.SAME) if to.change is what else to

    patch.setattr(promote, "changed", wrong)


@shows(Kind.UNTRUE, since=8, act=ACT)
def what_a_promotion_would_publish_is_shown_to_nobody(patch: Patch) -> None:
    _is_not_shown(patch, Change.NEWLY_PUBLISHED)


@shows(Kind.UNTRUE, act=ACT)
def what_a_promotion_would_take_out_is_shown_to_nobody(patch: Patch) -> None:
    _is_not_shown(patch, Change.NEWLY_FAILING)


@shows(Kind.UNTRUE, since=11, act=ACT)
def a_promotion_passes_over_what_nothing_is_wrong_with(patch: Patch) -> None:
    """By the name of a reason that it has not."""
    real = promote._why_not
    outside = "its row has chunks outside of what was compared; take a larger range"
    patch.setattr(promote, "_why_not", lambda one: real(one) or ("" if one.made else outside))
