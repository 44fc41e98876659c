"""Seeded bugs. Heads that are made anew, and what is missing under them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tests.histories.anomaly import Kind
from tests.histories.seeded_bugs.registry import Patch, shows
from wavestitch.batch import rebuilt_head, rewind
from wavestitch.contracts.pending_decision import PendingDecision


def _passed_over(patch: Patch, what: str, *, known: bool) -> None:
    """Of what is missing, this is not looked for: `known` which it is, or not."""
    real = rewind.find_held

    def wrong(*args: Any, **kwargs: Any) -> Any:
        found = real(*args, **kwargs)
        kept = [m for m in found.missing if what not in m.what or ("not known" in m.what) is known]
        return replace(found, missing=tuple(kept))

    patch.setattr(rewind, "find_held", wrong)


@shows(Kind.STALE_WRITER, act="discards_are_deleted")
def what_is_held_is_compared_by_place_and_not_by_what_was_decided(patch: Patch) -> None:
    _passed_over(patch, "the last word", known=True)


@shows(Kind.STALE_WRITER, act="discards_are_deleted_with_what_the_head_names")
def what_is_held_is_counted_and_not_for_what_reason(patch: Patch) -> None:
    _passed_over(patch, "the last word", known=False)


@shows(Kind.LOST, act="rows_with_bytes_are_deleted")
def held_rows_without_bytes_are_taken_for_what_is_held(patch: Patch) -> None:
    _passed_over(patch, "the bytes of", known=True)


@shows(Kind.LOST, act="rows_with_bytes_are_deleted")
def what_is_read_again_is_a_replay_of_what_is_held_without_its_bytes(patch: Patch) -> None:
    patch.setattr(PendingDecision, "_lacks_bytes", lambda *_: False)
    patch.setattr(PendingDecision, "_brings_bytes", lambda *_: False)


@shows(Kind.LOST, act="a_published_row_is_deleted_beside_one_that_the_history_lacks")
def rows_that_are_missing_are_counted_in_all_and_not_by_batch(patch: Patch) -> None:
    real = rebuilt_head.missing_published

    def wrong(remains: Any, history: Any, by_plan: Any) -> Any:
        recorded = sum(b.waveforms.get("published", 0) for b in history)
        return () if remains.rows >= recorded else real(remains, history, by_plan)

    patch.setattr(rebuilt_head, "missing_published", wrong)


@shows(Kind.UNEXPLAINED_GAP, act="set_back_under_a_batch_and_expired")
def a_tag_is_believed_though_its_number_is_of_another_head_by_now(patch: Patch) -> None:
    patch.setattr(rebuilt_head, "_denied", lambda *_: "")


@shows(Kind.LOST, act="read_in_a_later_epoch_and_expired")
def a_head_is_rebuilt_in_the_epoch_in_which_something_was_read_and_not_written(patch: Patch) -> None:
    patch.setattr(rebuilt_head, "_written", lambda *_: None)


@shows(Kind.LOST, act="put_back_into_the_epoch_in_which_it_was_written_and_expired")
def a_rebuilt_head_is_of_the_epoch_of_writing_though_the_log_has_not_come_to_that_of_reading(patch: Patch) -> None:
    real = rebuilt_head._written

    def wrong(sight: Any, partition: Any, *more: Any) -> Any:
        there = {partition: sight.ends[partition]._replace(leader_epoch=None)}
        return real(replace(sight, ends={**sight.ends, **there}), partition, *more)

    patch.setattr(rebuilt_head, "_written", wrong)


@shows(Kind.LOST, act="put_back_into_an_epoch_in_which_nothing_was_written_and_expired", since=5)
def a_rebuilt_head_asks_the_last_ingest_alone_in_which_epoch_something_was_written(patch: Patch) -> None:
    real = rebuilt_head._written

    def wrong(sight: Any, partition: Any, tag: Any, ingests: Any) -> Any:
        last = [b for b in ingests if b.sequence == tag.sequence]
        return real(sight, partition, tag, last)

    patch.setattr(rebuilt_head, "_written", wrong)
