"""The state machine is worth something: with one rule of the product dropped it finds a broken invariant.

Each mutant is a function of the product replaced by a wrong one, and the examples are the same every time. Those that
chance meets late have a course of their own.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis.internal.conjecture import providers
from hypothesis.stateful import RULE_MARKER, run_state_machine_as_test

from tests import both_ways
from tests.domain import mutants_of_others
from tests.domain.effort import effort
from tests.domain.machine_courses import COURSES, take
from tests.domain.machine_mutants import ALWAYS, MUTANTS, RULES, Patch, mutant
from tests.domain.protocol_machine import ProtocolMachine
from tests.fakes.fake_tables import FakeTables
from wavestitch.batch import publish, reassemble, rebuilt_head, rewind, survey
from wavestitch.contracts import assembly, decision, pending_decision
from wavestitch.contracts.assembly import ChunkFacts
from wavestitch.contracts.pending_decision import PendingDecision
from wavestitch.contracts.plan import Plan
from wavestitch.contracts.position import HeadKind, Position
from wavestitch.contracts.reasons import Reason


@mutant("accident")
def an_expired_group_means_latest(patch: Patch) -> None:
    real = survey.reconcile_head

    def wrong(stream: Any, topic: Any, request: Any, *, walk: Any) -> Any:
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
        return real(stream, topic, request, walk=walk)

    patch.setattr(survey, "reconcile_head", wrong)


@mutant("backfill")
def a_backfill_moves_the_positions(patch: Patch) -> None:
    patch.setattr(Plan, "moves_positions", property(lambda _: True))


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


@mutant("decide_held")
def what_is_restored_is_a_conflict(patch: Patch) -> None:
    real = PendingDecision._restore

    def wrong(self: Any, h: Any, note: str, **how: Any) -> None:
        real(self, replace(h, reason=Reason.CONFLICT), note, **how)

    patch.setattr(PendingDecision, "_restore", wrong)


@mutant("decide_held")
def a_redrive_passes_over_expectations(patch: Patch) -> None:
    patch.setattr(Plan, "accepts", property(lambda plan: plan.choice is not None))


@mutant("decide_held")
def a_pick_keeps_the_other_copies_too(patch: Patch) -> None:
    """As they were: what was picked is published, and nobody sees that another copy was held."""
    real = pending_decision.pick_copy
    patch.setattr(pending_decision, "pick_copy", lambda chunks, pick: (real(chunks, pick)[0], []))


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


@mutant("another_catalog", "follow_advice", "start_rewind")
def a_settled_head_is_not_newer_than_the_group(patch: Patch) -> None:
    patch.setattr(rewind, "next_generation", lambda head, *_, **__: (head.generation if head else 0) + 1)


@mutant("accident", "produce_scattered", accident={"what": "history"})
def the_history_says_what_is_held(patch: Patch) -> None:
    real = FakeTables.held

    def wrong(self: Any, mark: Any, look: Any) -> Any:
        known = {row.decision for row in self.history}
        return [h for h in real(self, mark, look) if h.decision in known]

    patch.setattr(FakeTables, "held", wrong)


@mutant("another_engine_expires_the_head", "follow_advice", "accident", "start_rewind")
def a_head_is_rebuilt_in_a_generation_that_was(patch: Patch) -> None:
    patch.setattr(rebuilt_head, "_generation", lambda *_: 1)


assert mutants_of_others, "it has some that others know, too"


@pytest.fixture(autouse=True)
def the_same_examples_in_every_session(monkeypatch: Patch) -> None:
    """Hypothesis draws from the constants that it finds in the modules of a session, too; here it finds none."""
    monkeypatch.setattr(providers, "_get_local_constants", providers.Constants)


def test_every_rule_of_the_machine_can_be_left_out() -> None:
    found = {name for name in dir(ProtocolMachine) if hasattr(getattr(ProtocolMachine, name), RULE_MARKER)}
    assert found == ALWAYS | RULES


def play(name: str) -> None:
    """Where it has a course, that; else until the first finding."""
    if name in COURSES:
        take(COURSES[name])
        return
    run_state_machine_as_test(MUTANTS[name].machine, settings=effort(20_000, steps=40, shrink=False, fixed=True))


@pytest.mark.parametrize("name", MUTANTS)
def test_a_dropped_rule_is_found_out(name: str, monkeypatch: Patch) -> None:
    monkeypatch.setattr(decision, "decide_beside", both_ways.as_the_product_does)
    MUTANTS[name].plant(monkeypatch)
    # By a guarantee, or by a run that ends as no run of the product may.
    with pytest.raises(AssertionError, match=r"I\d:|audit|live:|reset:|held:|gate:|doubt:|undo:|preview:|ended with"):
        play(name)


@pytest.mark.parametrize("name", COURSES)
def test_a_course_shows_nothing_where_the_product_is_sound(name: str) -> None:
    assert name in MUTANTS
    take(COURSES[name])
