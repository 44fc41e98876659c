"""The state machine is worth something: with one rule of the product dropped it finds a broken invariant.

Each mutant is a function of the product replaced by a wrong one, and the examples are the same every time.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis.stateful import run_state_machine_as_test

from tests.domain.effort import effort
from tests.domain.protocol_machine import ProtocolMachine
from tests.memory.memory_tables import MemoryTables, held_files
from wavestitch.batch import commit_offsets, plan, publish, reassemble, rewind, steps
from wavestitch.contracts import assembly, decision, pending_decision, protocol
from wavestitch.contracts.assembly import ChunkFacts
from wavestitch.contracts.held_mark import mark_of
from wavestitch.contracts.plan import Plan
from wavestitch.contracts.position import HeadKind, Position

Patch = pytest.MonkeyPatch
MUTANTS: dict[str, Callable[[Patch], None]] = {}


def mutant(make: Callable[[Patch], None]) -> Callable[[Patch], None]:
    MUTANTS[make.__name__.replace("_", " ")] = make
    return make


@mutant
def the_fence_lets_everybody_through(patch: Patch) -> None:
    for module in (publish, reassemble):
        patch.setattr(module, "check_fence", lambda *_, **__: None)


@mutant
def the_fence_forgets_generations(patch: Patch) -> None:
    real = protocol.check_fence
    for module in (publish, reassemble):
        patch.setattr(
            module, "check_fence", lambda p, head, **kw: real(p, replace(head, generation=p.generation), **kw)
        )


@mutant
def decide_ignores_what_is_published(patch: Patch) -> None:
    real = decision.decide
    for module in (decision, publish, reassemble):
        patch.setattr(module, "decide", lambda *a, **kw: real(*a, **{**kw, "published": {}}))


@mutant
def held_rows_count_without_a_commit(patch: Patch) -> None:
    real = MemoryTables.stage_held

    def wrong(self: Any, base: Any, rows: Any, *, staging: Any) -> Any:
        """On whatever was staged last, as a table that is simply appended to would be."""
        newest = max(self.held_snapshots, default=None)
        on = base if newest is None else mark_of(newest, held_files(self.held_snapshots[newest]), {}, 0)
        return real(self, on, rows, staging=staging)

    patch.setattr(MemoryTables, "stage_held", wrong)


@mutant
def a_foreign_tag_is_overwritten(patch: Patch) -> None:
    patch.setattr(commit_offsets, "may_project", lambda *_, **__: True)


@mutant
def an_expired_group_means_latest(patch: Patch) -> None:
    real = plan.reconcile_head

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

    patch.setattr(plan, "reconcile_head", wrong)


@mutant
def held_rows_are_lost(patch: Patch) -> None:
    patch.setattr(publish, "_held_rows", lambda *_: [])


@mutant
def a_backfill_moves_the_positions(patch: Patch) -> None:
    patch.setattr(Plan, "moves_positions", property(lambda _: True))


@mutant
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


@mutant
def a_chunk_is_known_by_its_place_alone(patch: Patch) -> None:
    patch.setattr(ChunkFacts, "identity", property(lambda c: (c.seq, 0, c.length)))


@mutant
def a_repeat_that_says_more_adds_nothing(patch: Patch) -> None:
    patch.setattr(assembly.Said, "learn", lambda *_: False)


@mutant
def a_row_is_stitched_of_other_copies_than_the_decision_publishes(patch: Patch) -> None:
    real = reassemble.find_whole

    def wrong(*args: Any) -> Any:
        whole = real(*args)
        for n, a in enumerate(whole):
            other = {c.seq: c for c in a.repeats if not c.carried}
            whole[n] = replace(a, pieces=tuple(other.get(c.seq, c) for c in a.pieces))
        return whole

    patch.setattr(reassemble, "find_whole", wrong)


@mutant
def finished_plans_are_forgotten(patch: Patch) -> None:
    for module in (publish, steps):
        patch.setattr(module, "find_committed", lambda *_: None)


@mutant
def open_waveforms_are_not_carried_in(patch: Patch) -> None:
    patch.setattr(pending_decision, "open_deadlines", lambda *_, **__: {})


@mutant
def what_a_rewind_skips_is_not_recorded(patch: Patch) -> None:
    real = rewind.plan_rewind

    def wrong(*args: Any, **kwargs: Any) -> Any:
        found = real(*args, **kwargs)
        return replace(found, head=replace(found.head, skipped=found.base.skipped))

    patch.setattr(rewind, "plan_rewind", wrong)


@mutant
def the_group_is_put_one_too_far(patch: Patch) -> None:
    real = commit_offsets.project

    def wrong(stream: Any, head: Any, **edges: Any) -> str:
        far = {p: at._replace(next_offset=at.next_offset + 1) for p, at in head.positions.items()}
        return real(stream, replace(head, positions=far), **edges)

    patch.setattr(commit_offsets, "project", wrong)


@mutant
def a_rewind_keeps_the_generation(patch: Patch) -> None:
    real = rewind.plan_rewind

    def wrong(*args: Any, **kwargs: Any) -> Any:
        found = real(*args, **kwargs)
        return replace(found, head=replace(found.head, generation=found.base.generation))

    patch.setattr(rewind, "plan_rewind", wrong)


@pytest.mark.parametrize("name", MUTANTS)
def test_a_dropped_rule_is_found_out(name: str, monkeypatch: Patch) -> None:
    MUTANTS[name](monkeypatch)
    # By a guarantee, or by a run that ends as no run of the product may.
    with pytest.raises(AssertionError, match=r"I\d:|audit|live:|reset:|ended with"):
        # It ends with the first finding. How soon that comes depends on all modules of a session: Hypothesis draws
        # from the constants that it finds in them.
        run_state_machine_as_test(ProtocolMachine, settings=effort(20_000, steps=40, shrink=False, fixed=True))
