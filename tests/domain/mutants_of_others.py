"""Mutants of the state machine that other harnesses find out, too: they are written down once, and the rules that show
them to the machine stand here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tests import wrong_products
from tests.domain.machine_mutants import Plant, mutant
from tests.fakes.faults import Fault
from tests.histories.seeded_bugs import of_chunks, of_heads, of_held, of_offsets, of_operators, of_requests
from wavestitch.batch.rewind import Target

_CUT_OFF = ("accident", "start_rewind", "follow_advice")
_NEEDS: dict[Plant, tuple[str, ...]] = {
    of_heads.the_fence_lets_everybody_through: (),
    of_heads.the_fence_forgets_generations: ("backfill", "start_rewind"),
    of_chunks.what_is_published_is_not_looked_up: ("start_rewind",),
    wrong_products.held_rows_count_without_a_commit: ("produce_scattered", "disturb"),
    of_heads.a_foreign_tag_is_overwritten: ("accident",),
    of_held.held_rows_are_not_written: ("produce_scattered",),
    of_offsets.what_a_rewind_skips_is_not_recorded: ("start_rewind",),
    of_heads.the_group_is_put_one_too_far: (),
    of_heads.a_rewind_keeps_the_generation: ("start_rewind",),
    of_held.a_chunk_that_comes_again_undoes_parking: ("send_again_what_is_held",),
    of_held.a_chunk_that_comes_again_brings_back_what_was_discarded: ("decide_held", "send_again_what_is_held"),
    wrong_products.the_gate_is_looked_at_when_planning_only: (),
    of_heads.a_head_is_written_over_a_reset_that_came_after_it: ("start_rewind", "accident"),
    of_heads.a_tag_that_is_newer_than_the_head_passes_for_an_older_one: ("another_catalog",),
    of_heads.a_copy_of_the_table_that_goes_on_is_not_seen: ("another_catalog", "backfill"),
    of_offsets.a_log_that_was_cut_off_and_written_anew_passes_for_the_one_that_was_read: _CUT_OFF,
    of_offsets.a_rewind_forward_over_a_cut_names_only_what_it_passes: _CUT_OFF,
    of_heads.a_lost_commit_is_tried_again_because_a_property_says_so: (),
    of_heads.a_conflict_with_oneself_is_believed_and_cleaned_up_after: ("disturb",),
    of_requests.a_commit_without_an_answer_is_taken_to_have_failed_and_cleaned_up_after: (
        "disturb",
        "a_late_effect_lands",
    ),
    of_heads.a_head_is_rebuilt_at_the_end_of_the_log: ("another_engine_expires_the_head", "follow_advice"),
    of_operators.undo_of_a_decision_is_about_all_that_is_held_of_its_waveforms: (
        "undo",
        "decide_held",
        "produce_scattered",
        "produce_oddly",
    ),
    of_chunks.of_two_copies_with_other_bytes_the_first_is_taken: ("produce_oddly",),
    of_heads.finished_plans_are_forgotten: ("carry_plan_again", "carry_finished_plan_again"),
    of_operators.an_ingest_goes_past_a_closed_gate: (),
    of_held.what_is_held_open_is_forgotten_by_the_next_batch: ("produce_scattered", "produce_oddly"),
    of_heads.a_lost_catalog_passes_for_a_new_stream: ("another_catalog",),
    of_operators.undo_moves_all_partitions_back: ("undo", "ingest_a_part"),
    wrong_products.a_preview_holds_in_every_generation: ("show_a_rewind", "answer_what_was_shown", "start_rewind"),
    wrong_products.a_preview_is_worked_out_anew: ("show_a_rewind", "answer_what_was_shown"),
    of_operators.what_is_approved_of_is_about_ids: (
        *("show_a_decision", "answer_what_was_shown"),
        *("produce_scattered", "produce_oddly", "send_again_what_is_held"),
    ),
}
_CUT_OFF_BY_AN_ELECTION = {"accident": {"what": "election"}}
_DRAWS: dict[Plant, Mapping[str, Mapping[str, Any]]] = {
    of_heads.a_foreign_tag_is_overwritten: {"accident": {"what": "reset"}},
    of_heads.a_head_is_written_over_a_reset_that_came_after_it: {"accident": {"what": "reset"}},
    of_offsets.a_log_that_was_cut_off_and_written_anew_passes_for_the_one_that_was_read: {
        **_CUT_OFF_BY_AN_ELECTION,
        "begin": {"partitions": 1},
    },
    of_offsets.a_rewind_forward_over_a_cut_names_only_what_it_passes: {
        **_CUT_OFF_BY_AN_ELECTION,
        "begin": {"partitions": 1},
        "start_rewind": {"to": Target("latest"), "accept": True},
    },
    of_heads.a_lost_commit_is_tried_again_because_a_property_says_so: {"begin": {"retries": True}},
    of_heads.a_conflict_with_oneself_is_believed_and_cleaned_up_after: {"disturb": {"fault": Fault.RESENT}},
    of_requests.a_commit_without_an_answer_is_taken_to_have_failed_and_cleaned_up_after: {
        "ingest": {"until": "tables.commit"},
        "disturb": {"fault": Fault.LATE},
    },
}
"""Of what these rules draw, what shows a bug soon that is met late among all that they can."""

for plant, needs in _NEEDS.items():
    mutant(*needs, **_DRAWS.get(plant, {}))(plant)
