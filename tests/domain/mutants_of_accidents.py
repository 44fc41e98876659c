"""Mutants of the state machine about heads that others have expired, and about undo."""

from __future__ import annotations

from typing import Any

from tests.domain.machine_mutants import Patch, mutant
from wavestitch.batch import rebuilt_head
from wavestitch.contracts import batch_stages
from wavestitch.contracts.stages import RewindTo

# heads that others expire


@mutant("another_engine_expires_the_head", "follow_advice", "accident", "start_rewind")
def a_head_is_rebuilt_in_a_generation_that_was(patch: Patch) -> None:
    patch.setattr(rebuilt_head, "_generation", lambda *_: 1)


# undo


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
