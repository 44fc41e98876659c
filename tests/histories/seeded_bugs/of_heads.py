"""Seeded bugs. Heads and commits, catalogs, and the group that shows them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from tests.fakes.fake_tables import FakeTables
from tests.histories.anomaly import Kind
from tests.histories.seeded_bugs.registry import Patch, shows
from wavestitch.batch import (
    begin_planning,
    closed_gate,
    commit_offsets,
    history,
    publish,
    reassemble,
    rebuilt_head,
    reconciled_head,
    rewind,
    rewind_target,
    steps,
    survey,
    walk,
)
from wavestitch.contracts import disagreement, protocol
from wavestitch.contracts.disagreement import Doubt
from wavestitch.contracts.ports import CommitConflict, TopicView
from wavestitch.contracts.position import Position
from wavestitch.maintain import doubts


@shows(Kind.COMMIT_AHEAD, since=19)
def the_group_is_put_one_too_far(patch: Patch) -> None:
    real = commit_offsets.project

    def wrong(stream: Any, head: Any, **edges: Any) -> str:
        far = {p: at._replace(next_offset=at.next_offset + 1) for p, at in head.positions.items()}
        return real(stream, replace(head, positions=far), **edges)

    patch.setattr(commit_offsets, "project", wrong)


@shows(Kind.COMMIT_AHEAD, since=148)
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
def the_group_moves_before_the_commit(patch: Patch) -> None:
    real = survey.reconcile_head

    def wrong(stream: Any, topic: Any, request: Any, *, walk: Any) -> Any:
        log, tables = walk.log, walk.tables
        head, why = real(stream, topic, request, walk=walk)
        if head.topic_id == topic.topic_id:
            ends = {p: Position(e.stable_end) for p, e in log.ends(topic.name, sorted(head.positions)).items()}
            log.commit_group(stream.group, topic.name, ends, head.tag(str(tables.table_uuid())).encode())
        return head, why

    patch.setattr(survey, "reconcile_head", wrong)


@shows(Kind.STALE_WRITER, since=26)
def the_fence_forgets_generations(patch: Patch) -> None:
    real = protocol.check_fence
    for module in (publish, reassemble):
        patch.setattr(
            module, "check_fence", lambda p, head, **kw: real(p, replace(head, generation=p.generation), **kw)
        )


@shows(Kind.STALE_WRITER, since=5)
def the_fence_lets_everybody_through(patch: Patch) -> None:
    for module in (publish, reassemble):
        patch.setattr(module, "check_fence", lambda *_, **__: None)


@shows(Kind.STALE_WRITER, since=7)
def a_commit_that_lost_is_put_on_top_of_what_won(patch: Patch) -> None:
    """What a library does whose retries a table's property allows."""
    real = FakeTables.commit

    def wrong(self: FakeTables, base: Any, new: Any, *rest: Any, **more: Any) -> Any:
        return real(self, self.snapshots[-1] if self.snapshots else None, new, *rest, **more)

    patch.setattr(FakeTables, "commit", wrong)


@shows(Kind.STALE_WRITER, since=10)
def a_lost_commit_is_tried_again_because_a_property_says_so(patch: Patch) -> None:
    real = FakeTables.commit

    def wrong(self: FakeTables, base: Any, new: Any, *rest: Any, **more: Any) -> Any:
        again = "commit.retry.num-retries" in self.properties and self.snapshots
        return real(self, self.snapshots[-1] if again else base, new, *rest, **more)

    patch.setattr(FakeTables, "commit", wrong)


@shows(Kind.LOST, since=191)
def a_conflict_with_oneself_is_believed_and_cleaned_up_after(patch: Patch) -> None:
    """What a library does that deletes what it wrote on every 409, the answer to a request that was sent twice too."""

    def wrong(self: FakeTables, made: Any) -> Any:
        self.rows = [(sequence, row) for sequence, row in self.rows if sequence != made.sequence]
        raise CommitConflict("the newest head is another one")

    patch.setattr(FakeTables, "_looked_up", wrong)


@shows(Kind.STALE_WRITER, since=5)
def finished_plans_are_forgotten(patch: Patch) -> None:
    for module in (publish, steps):
        patch.setattr(module, "find_committed", lambda *_: None)
    for module in (publish, reassemble):
        patch.setattr(module, "check_fence", lambda *_, **__: None)


@shows(Kind.STALE_WRITER)
def a_rewind_keeps_the_generation(patch: Patch) -> None:
    real = rewind.plan_rewind

    def wrong(*args: Any, **kwargs: Any) -> Any:
        found = real(*args, **kwargs)
        return replace(found, head=replace(found.head, generation=found.base.generation))

    patch.setattr(rewind, "plan_rewind", wrong)


@shows(Kind.STALE_WRITER, since=15)
def a_rewind_of_one_partition_moves_them_all(patch: Patch) -> None:
    real = rewind.wanted_offsets

    def wrong(target: Any, sight: Any, **edges: Any) -> Any:
        found = real(target, sight, **edges)
        if sight.head is None or not (target.only or target.parts):
            return found
        back = {p: max(sight.ends[p].log_start, at.next_offset - 1) for p, at in sight.head.positions.items()}
        return {p: to for p, to in back.items() if p in sight.ends} | found

    patch.setattr(rewind, "wanted_offsets", wrong)


@shows(Kind.STALE_WRITER, since=10)
def a_foreign_tag_is_overwritten(patch: Patch) -> None:
    patch.setattr(commit_offsets, "may_project", lambda *_, **__: True)


@shows(Kind.STALE_WRITER, since=31)
def a_head_is_written_over_a_reset_that_came_after_it(patch: Patch) -> None:
    patch.setattr(commit_offsets, "left_alone", lambda *_, **__: set())


@shows(Kind.STALE_WRITER, act="one_is_reset_and_another_one_rewound")
def a_rewind_of_some_partitions_is_the_answer_to_a_reset_of_any(patch: Patch) -> None:
    real = walk.show_head
    patch.setattr(walk, "show_head", lambda *args, **more: real(*args, **{**more, "moved": None}))


@shows(Kind.STALE_WRITER, act="two_are_reset")
def of_several_resets_one_is_taken_over(patch: Patch) -> None:
    """And the head is written over the others."""
    real = reconciled_head.reconcile

    def wrong(head: Any, group: Any, **how: Any) -> Any:
        found = real(head, group, **how)
        if found.adopt is None:
            return found
        moved = [p for p, at in sorted(found.adopt.positions.items()) if head.positions.get(p, at) != at]
        back = {p: head.positions[p] for p in moved[1:]}
        return replace(found, adopt=replace(found.adopt, positions={**found.adopt.positions, **back}))

    patch.setattr(reconciled_head, "reconcile", wrong)


@shows(Kind.STALE_WRITER, act="two_are_reset")
def a_reset_is_taken_over_of_a_stream_that_refuses_them(patch: Patch) -> None:
    real = reconciled_head.reconcile
    patch.setattr(reconciled_head, "reconcile", lambda *seen, **how: real(*seen, **{**how, "on_reset": "adopt"}))


@shows(Kind.STALE_WRITER, act="another_table_beside_a_rewind")
def what_another_table_wrote_into_the_group_is_written_over(patch: Patch) -> None:
    patch.setattr(protocol, "_is_of", lambda metadata, _: protocol.is_ours(metadata))


@shows(Kind.UNEXPLAINED_GAP, since=10)
def a_lost_catalog_passes_for_a_new_stream(patch: Patch) -> None:
    real = reconciled_head.find_disagreement

    def wrong(head: Any, group: Any, *, table: Any) -> Any:
        return None if head is None else real(head, group, table=table)

    patch.setattr(reconciled_head, "find_disagreement", wrong)


@shows(Kind.STALE_WRITER, since=8)
def a_tag_that_is_newer_than_the_head_passes_for_an_older_one(patch: Patch) -> None:
    real = disagreement._doubt

    def wrong(head: Any, **about: Any) -> Any:
        found = real(head, **about)
        return None if found is Doubt.RESTORED else found

    patch.setattr(disagreement, "_doubt", wrong)


@shows(Kind.STALE_WRITER, since=116)
def a_copy_of_the_table_that_goes_on_is_not_seen(patch: Patch) -> None:
    real = disagreement._doubt

    def wrong(head: Any, **about: Any) -> Any:
        found = real(head, **about)
        return None if found is Doubt.FORKED else found

    patch.setattr(disagreement, "_doubt", wrong)


@shows(Kind.UNEXPLAINED_GAP, since=16)
def a_head_is_rebuilt_at_the_end_of_the_log(patch: Patch) -> None:
    patch.setattr(rebuilt_head, "_position", lambda sight, p, *_: Position(sight.ends[p].stable_end))


# the history, of which somebody deletes rows


@shows(Kind.STALE_WRITER, since=96)
def only_the_history_knows_what_is_finished(patch: Patch) -> None:
    real = history.find_committed

    def wrong(known: Any, plan_id: str) -> Any:
        found = real(known, plan_id)
        return found if found is not None and known.tables.batches(plan_id=plan_id) else None

    for module in (closed_gate, publish, steps):
        patch.setattr(module, "find_committed", wrong)


@shows(Kind.UNEXPLAINED_GAP)
def rows_that_are_gone_from_the_history_are_not_written_again(patch: Patch) -> None:
    patch.setattr(history, "missing_rows", lambda *_, **__: [])
    patch.setattr(begin_planning, "missing_rows", lambda *_, **__: [])


@shows(Kind.STALE_WRITER, act="a_forged_tag")
def a_tag_is_believed_however_far_beyond_the_head_it_is(patch: Patch) -> None:
    """And the way out of the refusal leads to the generation that somebody made up."""
    patch.setattr(disagreement, "is_believable", lambda *_, **__: True)


@shows(Kind.LOST, act="a_catalog_is_set_back_beside_maintenance")
def maintenance_takes_any_catalog_for_the_one_that_its_files_belong_to(patch: Patch) -> None:
    patch.setattr(doubts, "find_disagreement", lambda *_, **__: None)


# where rewinds go


def _instead(patch: Patch, word: str, other: Callable[[Any, dict[Any, Any]], dict[Any, Any]]) -> None:
    """Of a rewind to this word. `other`: the offsets on what it is worked out on."""
    real = rewind_target._wanted

    def wrong(target: Any, sight: Any, **edges: Any) -> Any:
        found = real(target, sight, **edges)
        mine = sight.head is not None and (target.word or ("a time" if target.time_ms is not None else "")) == word
        return other(sight, found) if mine else found

    patch.setattr(rewind_target, "_wanted", wrong)


@shows(Kind.STALE_WRITER, act="rewound_to_a_time")
def a_time_means_what_comes_after_its_first_record(patch: Patch) -> None:
    _instead(patch, "a time", lambda sight, to: {p: min(at + 1, sight.ends[p].stable_end) for p, at in to.items()})


@shows(Kind.STALE_WRITER, act="one_is_rewound_to_its_end")
def the_end_of_the_log_means_one_before_it(patch: Patch) -> None:
    _instead(patch, "latest", lambda sight, to: {p: max(at - 1, sight.ends[p].log_start) for p, at in to.items()})


@shows(Kind.STALE_WRITER, act="rewound_to_the_group")
def where_the_group_stands_means_where_the_head_does(patch: Patch) -> None:
    _instead(patch, "group", lambda sight, _: {p: at.next_offset for p, at in sight.head.positions.items()})


@shows(Kind.STALE_WRITER, act="rewound_to_before")
def where_the_stream_stood_before_means_where_it_stood_first(patch: Patch) -> None:
    real = rewind_target.stood_elsewhere
    patch.setattr(rewind_target, "stood_elsewhere", lambda head, heads: real(head, list(heads)[::-1]))
