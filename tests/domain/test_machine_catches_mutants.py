"""The state machine is worth something: with one rule of the product dropped it finds a broken invariant.

Each mutant is a function of the product replaced by a wrong one, and the examples are the same every time.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis.internal.conjecture import providers
from hypothesis.stateful import RULE_MARKER, run_state_machine_as_test

from tests import both_ways
from tests.domain import mutants_of_accidents
from tests.domain.effort import effort
from tests.domain.machine_mutants import ALWAYS, MUTANTS, RULES, Patch, mutant
from tests.domain.protocol_machine import ProtocolMachine
from tests.fakes.fake_tables import FakeTables, held_files
from wavestitch.batch import commit_offsets, publish, reassemble, rewind, steps, survey
from wavestitch.contracts import assembly, decision, disagreement, pending_decision, protocol
from wavestitch.contracts.assembly import ChunkFacts
from wavestitch.contracts.held_mark import mark_of
from wavestitch.contracts.pending_decision import PendingDecision
from wavestitch.contracts.plan import Plan
from wavestitch.contracts.position import HeadKind, Position
from wavestitch.contracts.reasons import Reason


@mutant()
def the_fence_lets_everybody_through(patch: Patch) -> None:
    for module in (publish, reassemble):
        patch.setattr(module, "check_fence", lambda *_, **__: None)


@mutant("backfill", "start_rewind")
def the_fence_forgets_generations(patch: Patch) -> None:
    real = protocol.check_fence
    for module in (publish, reassemble):
        patch.setattr(
            module, "check_fence", lambda p, head, **kw: real(p, replace(head, generation=p.generation), **kw)
        )


@mutant("start_rewind")
def decide_ignores_what_is_published(patch: Patch) -> None:
    real = decision.decide
    for module in (decision, publish, reassemble):
        patch.setattr(module, "decide", lambda *a, **kw: real(*a, **{**kw, "published": {}}))


@mutant("produce_scattered", "disturb")
def held_rows_count_without_a_commit(patch: Patch) -> None:
    real = FakeTables.stage_held

    def wrong(self: Any, base: Any, rows: Any, *, staging: Any) -> Any:
        """On whatever was staged last, as a table that is simply appended to would be."""
        newest = max(self.held_snapshots, default=None)
        on = base if newest is None else mark_of(newest, held_files(self.held_snapshots[newest]), {}, 0)
        return real(self, on, rows, staging=staging)

    patch.setattr(FakeTables, "stage_held", wrong)


@mutant("accident")
def a_foreign_tag_is_overwritten(patch: Patch) -> None:
    patch.setattr(commit_offsets, "may_project", lambda *_, **__: True)


@mutant("accident")
def an_expired_group_means_latest(patch: Patch) -> None:
    real = survey.reconcile_head

    def wrong(stream: Any, topic: Any, kind: Any, *, walk: Any) -> Any:
        log, tables = walk.log, walk.tables
        head = tables.head()
        if head is not None and head.topic_id == topic.topic_id:
            group = log.group_offsets(stream.group, topic.name, sorted(head.positions))
            ends = log.ends(topic.name, topic.partitions)
            gone = {p: Position(ends[p].stable_end) for p, at in group.items() if at is None}
            if gone:
                kinds = {"kind": HeadKind.ADOPTED, "generation": head.generation + 1}
                head = tables.commit(head, head.next(**kinds, positions={**head.positions, **gone}), [])
                log.commit_group(stream.group, topic.name, head.positions, head.tag(str(tables.table_uuid())).encode())
        return real(stream, topic, kind, walk=walk)

    patch.setattr(survey, "reconcile_head", wrong)


@mutant("produce_scattered")
def held_rows_are_lost(patch: Patch) -> None:
    patch.setattr(publish, "_held_rows", lambda *_: [])


@mutant("backfill")
def a_backfill_moves_the_positions(patch: Patch) -> None:
    patch.setattr(Plan, "moves_positions", property(lambda _: True))


@mutant("produce_oddly")
def of_conflicting_chunks_the_first_is_taken(patch: Patch) -> None:
    real = assembly.assemble_waveform

    def wrong(waveform_id: str, pool: Any, limits: Any, **how: Any) -> Any:
        firsts: dict[Any, Any] = {}
        for c in sorted(pool, key=lambda c: (not c.carried, c.coordinate)):
            firsts.setdefault(c.seq, c._replace(meta=pool[0].meta))
        found = real(waveform_id, list(firsts.values()), limits, **how)
        return replace(
            found, repeats=tuple(c for c in pool if c.coordinate not in {p.coordinate for p in found.pieces})
        )

    patch.setattr(pending_decision, "assemble_waveform", wrong)


@mutant("produce_oddly")
def a_chunk_is_known_by_its_place_alone(patch: Patch) -> None:
    patch.setattr(ChunkFacts, "identity", property(lambda c: (c.seq, 0, c.length)))


@mutant("produce_scattered", "produce_oddly")
def a_repeat_that_says_more_adds_nothing(patch: Patch) -> None:
    patch.setattr(assembly.Said, "learn", lambda *_: False)


@mutant("produce_scattered", "produce_oddly", "backfill")
def a_row_is_stitched_of_other_copies_than_the_decision_publishes(patch: Patch) -> None:
    real = reassemble.find_whole

    def wrong(*args: Any) -> Any:
        whole = list(real(*args))
        for n, a in enumerate(whole):
            other = {c.seq: c for c in a.repeats if not c.carried}
            whole[n] = replace(a, pieces=tuple(other.get(c.seq, c) for c in a.pieces))
        return whole

    patch.setattr(reassemble, "find_whole", wrong)


@mutant("carry_plan_again", "carry_finished_plan_again")
def finished_plans_are_forgotten(patch: Patch) -> None:
    for module in (publish, steps):
        patch.setattr(module, "find_committed", lambda *_: None)


@mutant("produce_scattered", "produce_oddly")
def open_waveforms_are_not_carried_in(patch: Patch) -> None:
    patch.setattr(pending_decision, "open_deadlines", lambda *_, **__: {})


@mutant("start_rewind")
def what_a_rewind_skips_is_not_recorded(patch: Patch) -> None:
    real = rewind.plan_rewind

    def wrong(*args: Any, **kwargs: Any) -> Any:
        found = real(*args, **kwargs)
        return replace(found, head=replace(found.head, skipped=found.base.skipped))

    patch.setattr(rewind, "plan_rewind", wrong)


@mutant()
def the_group_is_put_one_too_far(patch: Patch) -> None:
    real = commit_offsets.project

    def wrong(stream: Any, head: Any, **edges: Any) -> str:
        far = {p: at._replace(next_offset=at.next_offset + 1) for p, at in head.positions.items()}
        return real(stream, replace(head, positions=far), **edges)

    patch.setattr(commit_offsets, "project", wrong)


@mutant("start_rewind")
def a_rewind_keeps_the_generation(patch: Patch) -> None:
    real = rewind.plan_rewind

    def wrong(*args: Any, **kwargs: Any) -> Any:
        found = real(*args, **kwargs)
        return replace(found, head=replace(found.head, generation=found.base.generation))

    patch.setattr(rewind, "plan_rewind", wrong)


@mutant("send_again_what_is_held")
def what_was_parked_is_decided_afresh(patch: Patch) -> None:
    real = pending_decision.blocked_by

    def wrong(mine: Any) -> Any:
        found = real(mine)
        return None if found is Reason.PARKED else found

    for module in (decision, pending_decision):
        patch.setattr(module, "blocked_by", wrong)


@mutant("decide_held", "send_again_what_is_held")
def what_was_discarded_comes_back_by_a_replay(patch: Patch) -> None:
    real = pending_decision.blocked_by

    def wrong(mine: Any) -> Any:
        found = real(mine)
        return None if found is Reason.DISCARDED else found

    patch.setattr(pending_decision.Tombstones, "cover", lambda *_: False)
    for module in (decision, pending_decision):
        patch.setattr(module, "blocked_by", wrong)


@mutant("decide_held")
def what_is_restored_is_a_conflict(patch: Patch) -> None:
    real = PendingDecision._restore
    patch.setattr(PendingDecision, "_restore", lambda self, h, _, note: real(self, h, Reason.CONFLICT, note))


@mutant("decide_held")
def a_redrive_passes_over_expectations(patch: Patch) -> None:
    patch.setattr(Plan, "accepts", property(lambda plan: plan.choice is not None))


@mutant("decide_held")
def a_pick_keeps_the_other_copies_too(patch: Patch) -> None:
    """As they were: what was picked is published, and nobody sees that another copy was held."""
    real = pending_decision.pick_copy
    patch.setattr(pending_decision, "pick_copy", lambda chunks, pick: (real(chunks, pick)[0], []))


@mutant()
def a_closed_gate_bars_nobody(patch: Patch) -> None:
    patch.setattr(steps, "refuse_past_closed_gate", lambda *_, **__: None)


@mutant()
def the_gate_is_looked_at_when_planning_only(patch: Patch) -> None:
    real = steps.refuse_past_closed_gate
    patch.setattr(
        steps, "refuse_past_closed_gate", lambda edges, own="", **about: None if own else real(edges, **about)
    )


@mutant()
def what_is_parked_is_not_held(patch: Patch) -> None:
    real = publish._held_rows

    def wrong(*args: Any) -> Any:
        return [row for row in real(*args) if row.held.reason is not Reason.PARKED]

    patch.setattr(publish, "_held_rows", wrong)


@mutant("ingest_a_part")
def an_ingest_of_one_partition_moves_all(patch: Patch) -> None:
    real = survey.ends_after

    def wrong(head: Any, ranges: Any, ends: Any, topic: Any) -> Any:
        after = real(head, ranges, ends, topic)
        return {p: at._replace(next_offset=ends[p].stable_end) for p, at in after.items()}

    patch.setattr(survey, "ends_after", wrong)


@mutant("start_rewind", "accident")
def a_rewind_of_one_partition_writes_all(patch: Patch) -> None:
    patch.setattr(commit_offsets, "left_alone", lambda *_, **__: set())


@mutant("another_catalog")
def a_lost_catalog_is_a_new_stream(patch: Patch) -> None:
    real = disagreement._doubt

    def wrong(head: Any, *, tag: Any, table: Any, **at: Any) -> Any:
        return None if head is None or tag.table != table else real(head, tag=tag, table=table, **at)

    patch.setattr(disagreement, "_doubt", wrong)


@mutant("another_catalog")
def a_newer_tag_is_taken_for_an_older_one(patch: Patch) -> None:
    real = disagreement._doubt

    def wrong(*args: Any, **at: Any) -> Any:
        found = real(*args, **at)
        return None if found is disagreement.Doubt.RESTORED else found

    patch.setattr(disagreement, "_doubt", wrong)


@mutant("another_catalog", "backfill")
def a_fork_is_not_seen(patch: Patch) -> None:
    real = disagreement._doubt

    def wrong(*args: Any, **at: Any) -> Any:
        found = real(*args, **at)
        return None if found is disagreement.Doubt.FORKED else found

    patch.setattr(disagreement, "_doubt", wrong)


@mutant("another_catalog", "follow_advice", "start_rewind")
def a_settled_head_is_not_newer_than_the_group(patch: Patch) -> None:
    patch.setattr(rewind, "next_generation", lambda head, *_, **__: (head.generation if head else 0) + 1)


@mutant("accident", "produce_scattered")
def the_history_says_what_is_held(patch: Patch) -> None:
    real = FakeTables.held

    def wrong(self: Any, mark: Any, look: Any) -> Any:
        known = {row.decision for row in self.history}
        return [h for h in real(self, mark, look) if h.decision in known]

    patch.setattr(FakeTables, "held", wrong)


assert mutants_of_accidents, "it has mutants, too"


@pytest.fixture(autouse=True)
def the_same_examples_in_every_session(monkeypatch: Patch) -> None:
    """Hypothesis draws from the constants that it finds in the modules of a session, too; here it finds none."""
    monkeypatch.setattr(providers, "_get_local_constants", providers.Constants)


def test_every_rule_of_the_machine_can_be_left_out() -> None:
    found = {name for name in dir(ProtocolMachine) if hasattr(getattr(ProtocolMachine, name), RULE_MARKER)}
    assert found == ALWAYS | RULES


@pytest.mark.parametrize("name", MUTANTS)
def test_a_dropped_rule_is_found_out(name: str, monkeypatch: Patch) -> None:
    monkeypatch.setattr(decision, "decide_beside", both_ways.as_the_product_does)
    MUTANTS[name].plant(monkeypatch)
    # By a guarantee, or by a run that ends as no run of the product may.
    with pytest.raises(AssertionError, match=r"I\d:|audit|live:|reset:|held:|gate:|doubt:|undo:|ended with"):
        # It ends with the first finding.
        run_state_machine_as_test(MUTANTS[name].machine, settings=effort(20_000, steps=40, shrink=False, fixed=True))
