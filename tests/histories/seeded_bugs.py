"""Seeded bugs: a function of the product replaced by a wrong one, and the kind of anomaly that it must show as.

Each stands for a rule of the product that was forgotten. `mutants` puts them in place and hunts them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import pytest

from consumers import range_scan
from tests.fakes.batch import FakeEdges
from tests.fakes.fake_tables import FakeTables
from tests.fakes.faults import under_way
from tests.histories.anomaly import Kind
from wavestitch.batch import (
    commit_offsets,
    plan,
    publish,
    reassemble,
    rewind,
    steps,
    stream_state,
)
from wavestitch.contracts import assembly, decision, holes, pending_decision, protocol
from wavestitch.contracts.assembly import ChunkFacts
from wavestitch.contracts.decision import Evidence
from wavestitch.contracts.pending_decision import PendingDecision
from wavestitch.contracts.plan import Plan
from wavestitch.contracts.ports import TopicView
from wavestitch.contracts.position import HeadKind, Position
from wavestitch.contracts.reasons import Fate, Reason
from wavestitch.contracts.stop_rule import StopRule

Patch = pytest.MonkeyPatch


class Mutant(NamedTuple):
    """`make` puts the bug in place."""

    kind: Kind
    make: Callable[[Patch], None]


MUTANTS: dict[str, Mutant] = {}


def shows(kind: Kind) -> Callable[[Callable[[Patch], None]], Callable[[Patch], None]]:
    def enter(make: Callable[[Patch], None]) -> Callable[[Patch], None]:
        MUTANTS[make.__name__.replace("_", " ")] = Mutant(kind, make)
        return make

    return enter


# lost


@shows(Kind.LOST)
def held_rows_are_not_written(patch: Patch) -> None:
    patch.setattr(publish, "_held_rows", lambda *_: [])


@shows(Kind.LOST)
def what_is_no_chunk_is_dropped(patch: Patch) -> None:
    real = PendingDecision.set_aside

    def wrong(self: Any, c: ChunkFacts, reason: Reason, why: str) -> None:
        if c.reason is not None:
            self._judge(c, Fate.REPORTED, reason, why)
        else:
            real(self, c, reason, why)

    patch.setattr(PendingDecision, "set_aside", wrong)


@shows(Kind.LOST)
def a_partition_is_not_looked_at(patch: Patch) -> None:
    real = plan.find_backlog

    def wrong(stream: Any, head: Any, request: Any, *rest: Any) -> Any:
        ranges, why = real(stream, head, request, *rest)
        return [r for r in ranges if r.partition != 1], why

    patch.setattr(plan, "find_backlog", wrong)


@shows(Kind.LOST)
def what_is_held_open_is_forgotten_by_the_next_batch(patch: Patch) -> None:
    real = stream_state.load_ground

    def wrong(*args: Any, **kwargs: Any) -> Any:
        found = real(*args, **kwargs)
        return replace(found, held=[h for h in found.held if h.reason is not Reason.OPEN])

    for module in (publish, reassemble, stream_state):
        patch.setattr(module, "load_ground", wrong)


@shows(Kind.LOST)
def of_two_copies_with_other_bytes_the_first_is_taken(patch: Patch) -> None:
    real = assembly.assemble_waveform

    def wrong(waveform_id: str, pool: Any, limits: Any, **how: Any) -> Any:
        firsts: dict[Any, Any] = {}
        for c in sorted(pool, key=lambda c: (not c.carried, c.coordinate)):
            firsts.setdefault(c.seq, c)
        found = real(waveform_id, list(firsts.values()), limits, **how)
        taken = {p.coordinate for p in found.pieces}
        return replace(found, repeats=tuple(c for c in pool if c.coordinate not in taken))

    for module in (pending_decision, reassemble):
        patch.setattr(module, "assemble_waveform", wrong)


@shows(Kind.LOST)
def copies_are_told_apart_by_their_checksum(patch: Patch) -> None:
    patch.setattr(ChunkFacts, "identity", property(lambda c: (c.seq, c.crc if c.count is None else 0, c.length)))


# duplicate


@shows(Kind.DUPLICATE)
def what_is_published_is_not_looked_up(patch: Patch) -> None:
    real = decision.decide
    for module in (publish, reassemble):
        patch.setattr(module, "decide", lambda *a, **kw: real(*a, **{**kw, "published": {}}))


# altered


@shows(Kind.ALTERED)
def a_waveform_is_whole_without_its_last_chunk(patch: Patch) -> None:
    real = assembly.assemble_waveform

    def wrong(waveform_id: str, pool: Any, limits: Any, **how: Any) -> Any:
        found = real(waveform_id, pool, limits, **how)
        counts = {c.count for c in pool if c.count is not None}
        short = found.reason is Reason.OPEN and counts == {len(found.pieces) + 1}
        whole = [c.seq for c in found.pieces] == list(range(len(found.pieces)))
        return replace(found, reason=None, evidence="") if short and whole else found

    for module in (pending_decision, reassemble):
        patch.setattr(module, "assemble_waveform", wrong)


@shows(Kind.ALTERED)
def a_held_chunk_gets_its_neighbours_bytes(patch: Patch) -> None:
    real = publish._held_rows

    def wrong(*args: Any) -> Any:
        rows = real(*args)
        fresh = [r.row for r in rows if r.landing is not None]
        return [replace(r, row=max(r.row - 1, 0)) if r.landing is not None and fresh else r for r in rows]

    patch.setattr(publish, "_held_rows", wrong)


# invented


@shows(Kind.INVENTED)
def aborted_records_are_read(patch: Patch) -> None:
    real = range_scan.open_consumer

    def wrong(*args: Any, **kwargs: Any) -> Any:
        return real(*args, **{**kwargs, "isolation": "read_uncommitted"})

    patch.setattr(range_scan, "open_consumer", wrong)


@shows(Kind.INVENTED)
def what_the_gate_refuses_is_published(patch: Patch) -> None:
    real = decision.decide

    def wrong(plan_: Plan, evidence: Evidence, **kwargs: Any) -> Any:
        return real(plan_, replace(evidence, failed={}), **kwargs)

    patch.setattr(publish, "decide", wrong)


# order


@shows(Kind.ORDER)
def chunks_are_stitched_in_the_order_of_their_offsets(patch: Patch) -> None:
    """The row names the chunks in their order all the same: otherwise the check before the commit would find it out."""
    real = FakeEdges.stitch

    def wrong(self: Any, plan_: Any, landed: Any, whole: Any, *, say: Any) -> Any:
        # The digest would find it out, so that nothing is published at all.
        bare = [replace(a, pieces=tuple(c._replace(digest=None) for c in a.pieces), repeats=()) for a in whole]
        moved = [replace(a, pieces=tuple(sorted(a.pieces, key=lambda c: (c.partition, c.offset)))) for a in bare]
        right, name = real(self, plan_, landed, bare, say=say), real(self, plan_, landed, moved, say=say)
        if name is not None:
            rows = self.bench.reports[right].rows
            made = self.bench.reports[name]
            mended = {i: replace(r, chunks=rows[i].chunks, topic_ids=rows[i].topic_ids) for i, r in made.rows.items()}
            self.bench.reports[name] = replace(made, rows=mended)
        return name

    patch.setattr(FakeEdges, "stitch", wrong)


# unexplained gap


@shows(Kind.UNEXPLAINED_GAP)
def any_batch_that_covers_a_hole_is_taken_for_its_proof(patch: Patch) -> None:
    patch.setattr(holes, "_proof", lambda *_: holes.Proof.CONTROL)


@shows(Kind.UNEXPLAINED_GAP)
def what_a_rewind_skips_is_not_recorded(patch: Patch) -> None:
    real = rewind.plan_rewind

    def wrong(*args: Any, **kwargs: Any) -> Any:
        found = real(*args, **kwargs)
        return replace(found, head=replace(found.head, skipped=found.base.skipped))

    patch.setattr(rewind, "plan_rewind", wrong)


@shows(Kind.UNEXPLAINED_GAP)
def a_batch_ends_one_offset_too_far(patch: Patch) -> None:
    real = plan._ends

    def wrong(head: Any, ranges: Any, *rest: Any) -> Any:
        after = real(head, ranges, *rest)
        far = {r.partition: after[r.partition]._replace(next_offset=r.end + 1) for r in ranges}
        return after | far

    patch.setattr(plan, "_ends", wrong)


@shows(Kind.UNEXPLAINED_GAP)
def a_skip_needs_no_acceptance(patch: Patch) -> None:
    real = rewind.apply_rewind
    patch.setattr(rewind, "apply_rewind", lambda *a, **kw: real(*a, **{**kw, "accept_skip": True}))


@shows(Kind.UNEXPLAINED_GAP)
def a_position_that_retention_overtook_moves_silently(patch: Patch) -> None:
    real = plan.find_backlog

    def wrong(stream: Any, head: Any, request: Any, topic: Any, ends: Any, log: Any) -> Any:
        ahead = {p: Position(max(at.next_offset, ends[p].log_start)) for p, at in head.positions.items() if p in ends}
        return real(stream, replace(head, positions=ahead), request, topic, ends, log)

    patch.setattr(plan, "find_backlog", wrong)


# commit ahead


@shows(Kind.COMMIT_AHEAD)
def the_group_is_put_one_too_far(patch: Patch) -> None:
    real = commit_offsets.project

    def wrong(stream: Any, head: Any, **edges: Any) -> str:
        far = {p: at._replace(next_offset=at.next_offset + 1) for p, at in head.positions.items()}
        return real(stream, replace(head, positions=far), **edges)

    patch.setattr(commit_offsets, "project", wrong)


@shows(Kind.COMMIT_AHEAD)
def a_topic_that_was_made_anew_gets_the_offsets_of_the_old_one(patch: Patch) -> None:
    real = commit_offsets.project

    class Blind:
        def __init__(self, log: Any, topic_id: str) -> None:
            self.commit_group = log.commit_group
            self.topic = lambda name: TopicView(name, topic_id, (), False, 0, "producer")

    def wrong(stream: Any, head: Any, *, log: Any, **more: Any) -> str:
        return real(stream, head, log=Blind(log, head.topic_id), **more)  # type: ignore[arg-type]

    patch.setattr(commit_offsets, "project", wrong)


@shows(Kind.COMMIT_AHEAD)
def held_rows_are_written_after_the_commit(patch: Patch) -> None:
    real = steps.publish_batch

    class Late:
        def __init__(self, tables: Any) -> None:
            self._tables = tables
            self._waiting: list[Any] = []

        def __getattr__(self, name: str) -> Any:
            return getattr(self._tables, name)

        def stage_held(self, base: Any, rows: Any, *, staging: Any) -> Any:
            self._waiting = [(rows, staging)] if rows else []
            return base

        def commit(self, base: Any, new: Any, files: Any) -> Any:
            head = self._tables.commit(base, new, files)
            for rows, staging in self._waiting:
                mark = self._tables.stage_held(head.held, rows, staging=staging)
                head = self._tables.commit(head, head.next(kind=HeadKind.MAINTENANCE, held=mark), [])
            return head

    def wrong(*args: Any, tables: Any, **kwargs: Any) -> Any:
        return real(*args, tables=Late(tables), **kwargs)

    patch.setattr(steps, "publish_batch", wrong)


@shows(Kind.COMMIT_AHEAD)
def the_group_moves_before_the_commit(patch: Patch) -> None:
    real = plan.reconcile_head

    def wrong(stream: Any, topic: Any, kind: Any, *, walk: Any) -> Any:
        log, tables = walk.log, walk.tables
        head, why = real(stream, topic, kind, walk=walk)
        if head.topic_id == topic.topic_id:
            ends = {p: Position(e.stable_end) for p, e in log.ends(topic.name, sorted(head.positions)).items()}
            log.commit_group(stream.group, topic.name, ends, head.tag(str(tables.table_uuid())).encode())
        return head, why

    patch.setattr(plan, "reconcile_head", wrong)


# stale writer


@shows(Kind.STALE_WRITER)
def the_fence_forgets_generations(patch: Patch) -> None:
    real = protocol.check_fence
    for module in (publish, reassemble):
        patch.setattr(
            module, "check_fence", lambda p, head, **kw: real(p, replace(head, generation=p.generation), **kw)
        )


@shows(Kind.STALE_WRITER)
def the_fence_lets_everybody_through(patch: Patch) -> None:
    for module in (publish, reassemble):
        patch.setattr(module, "check_fence", lambda *_, **__: None)


@shows(Kind.STALE_WRITER)
def a_commit_that_lost_is_put_on_top_of_what_won(patch: Patch) -> None:
    """What a library does whose retries a table's property allows."""
    real = FakeTables.commit

    def wrong(self: FakeTables, base: Any, new: Any, *rest: Any) -> Any:
        return real(self, self.snapshots[-1] if self.snapshots else None, new, *rest)

    patch.setattr(FakeTables, "commit", wrong)


@shows(Kind.STALE_WRITER)
def a_foreign_tag_is_overwritten(patch: Patch) -> None:
    patch.setattr(commit_offsets, "may_project", lambda *_, **__: True)


@shows(Kind.STALE_WRITER)
def a_head_is_written_over_a_reset_that_came_after_it(patch: Patch) -> None:
    patch.setattr(commit_offsets, "left_alone", lambda *_, **__: set())


@shows(Kind.STALE_WRITER)
def a_rewind_keeps_the_generation(patch: Patch) -> None:
    real = rewind.plan_rewind

    def wrong(*args: Any, **kwargs: Any) -> Any:
        found = real(*args, **kwargs)
        return replace(found, head=replace(found.head, generation=found.base.generation))

    patch.setattr(rewind, "plan_rewind", wrong)


@shows(Kind.STALE_WRITER)
def finished_plans_are_forgotten(patch: Patch) -> None:
    for module in (publish, steps):
        patch.setattr(module, "find_committed", lambda *_: None)
    for module in (publish, reassemble):
        patch.setattr(module, "check_fence", lambda *_, **__: None)


# unbounded end


@shows(Kind.UNBOUNDED_END)
def an_open_transaction_is_waited_for(patch: Patch) -> None:
    """The end of a range is asked of all readers, and the stop rule takes silence for nothing."""
    real = plan.find_backlog

    def wrong(stream: Any, head: Any, request: Any, topic: Any, ends: Any, log: Any) -> Any:
        highest = {p: e._replace(stable_end=e.high_watermark) for p, e in ends.items()}
        return real(stream, head, request, topic, highest, log)

    patch.setattr(plan, "find_backlog", wrong)
    judge = StopRule.judge
    patch.setattr(StopRule, "judge", lambda self, *, position, now: judge(self, position=position, now=0))


@shows(Kind.UNBOUNDED_END)
def a_lost_race_is_run_again_for_ever_without_looking(patch: Patch) -> None:
    real = publish.load_ground
    seen: dict[tuple[int, str], Any] = {}

    def wrong(tables: Any, *what: Any) -> Any:
        key = id(tables), under_way()
        seen.setdefault(key, (tables, real(tables, *what)))
        return seen[key][1]

    patch.setattr(publish, "load_ground", wrong)
    patch.setattr(publish, "_TRIES", 10**6)
    for module in (publish, reassemble):
        patch.setattr(module, "check_fence", lambda *_, **__: None)


@shows(Kind.UNBOUNDED_END)
def a_lost_race_is_an_error_of_its_own(patch: Patch) -> None:
    class Nobody(Exception):
        pass

    patch.setattr(publish, "CommitConflict", Nobody)
