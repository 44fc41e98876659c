"""Mutants of the state machine about what others do: elections that cut logs off, edited properties, expired heads,
requests that are sent twice or land late; and about undo.
"""

from __future__ import annotations

from typing import Any

from tests.domain.machine_mutants import Patch, mutant
from tests.fakes import batch as fake_batch
from tests.fakes.fake_tables import FakeTables
from wavestitch.batch import cut_log, rebuilt_head, rewind, undo
from wavestitch.contracts import batch_stages
from wavestitch.contracts.errors import StateUnknown
from wavestitch.contracts.ports import CommitConflict
from wavestitch.contracts.position import Position
from wavestitch.contracts.stages import RewindTo

# logs that were cut off


@mutant("accident", "start_rewind", "follow_advice")
def a_log_that_was_cut_off_passes_for_the_one_that_was_read(patch: Patch) -> None:
    patch.setattr(fake_batch, "_start_epoch", lambda *_: None)
    for module in (cut_log, rewind):
        patch.setattr(module, "find_cuts", lambda *_: {})


@mutant("accident", "start_rewind", "follow_advice")
def what_was_written_anew_is_passed_over_by_a_rewind_forward_without_a_name(patch: Patch) -> None:
    patch.setattr(rewind, "find_cuts", lambda *_: {})


# commits


@mutant()
def a_lost_commit_is_tried_again_because_a_property_says_so(patch: Patch) -> None:
    real = FakeTables.commit

    def wrong(self: FakeTables, base: Any, new: Any, *rest: Any) -> Any:
        again = "commit.retry.num-retries" in self.properties and self.snapshots
        return real(self, self.snapshots[-1] if again else base, new, *rest)

    patch.setattr(FakeTables, "commit", wrong)


@mutant("disturb")
def a_conflict_with_oneself_is_believed_and_cleaned_up_after(patch: Patch) -> None:
    """What a library does that deletes what it wrote on every 409, the answer to a request that was sent twice too."""

    def wrong(self: FakeTables, made: Any) -> Any:
        self.rows = [(sequence, row) for sequence, row in self.rows if sequence != made.sequence]
        raise CommitConflict("the newest head is another one")

    patch.setattr(FakeTables, "_looked_up", wrong)


@mutant("disturb", "a_late_effect_lands")
def a_commit_without_an_answer_is_taken_to_have_failed_and_cleaned_up_after(patch: Patch) -> None:
    real = FakeTables.commit

    def wrong(self: FakeTables, base: Any, new: Any, files: Any) -> Any:
        try:
            return real(self, base, new, files)
        except StateUnknown:
            for file in files:
                self.files.staged[file.path] = []
            raise

    patch.setattr(FakeTables, "commit", wrong)


# heads that others expire


@mutant("another_engine_expires_the_head", "follow_advice")
def a_head_is_rebuilt_at_the_end_of_the_log(patch: Patch) -> None:
    patch.setattr(rebuilt_head, "_position", lambda sight, p, *_: Position(sight.ends[p].stable_end))


@mutant("another_engine_expires_the_head", "follow_advice", "accident", "start_rewind")
def a_head_is_rebuilt_in_a_generation_that_was(patch: Patch) -> None:
    patch.setattr(rebuilt_head, "_generation", lambda *_: 1)


# undo


@mutant("undo", "decide_held", "produce_scattered", "produce_oddly")
def an_undo_takes_back_what_others_decided(patch: Patch) -> None:
    patch.setattr(undo, "not_undone_by", lambda *_, **__: [])


@mutant("undo", "ingest_a_part")
def an_undo_of_a_batch_goes_back_to_where_all_partitions_stood(patch: Patch) -> None:
    real = batch_stages.Publish.opposite

    def wrong(self: Any) -> Any:
        plan = self.plan
        if plan.choice is not None:
            return real(self)
        back = {p: at.next_offset for p, at in plan.positions.items()} if plan.moves_positions else {}
        return RewindTo(back, plan.topic_id) if back else None

    patch.setattr(batch_stages.Publish, "opposite", wrong)
