"""Seeded bugs. Which offsets are read, passed, explained and given up."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tests.fakes import batch as fake_batch
from tests.histories.anomaly import Kind
from tests.histories.seeded_bugs.registry import Patch, shows
from wavestitch.batch import backlog, cut_log, plan, rebuilt_head, reconciled_head, rewind, survey
from wavestitch.contracts import holes
from wavestitch.contracts.holes import Proof
from wavestitch.contracts.position import Position
from wavestitch.contracts.quantities import Offset


@shows(Kind.LOST)
def a_partition_is_not_looked_at(patch: Patch) -> None:
    real = plan.find_backlog

    def wrong(stream: Any, head: Any, request: Any, *rest: Any) -> Any:
        ranges, why = real(stream, head, request, *rest)
        return [r for r in ranges if r.partition != 1], why

    patch.setattr(plan, "find_backlog", wrong)


@shows(Kind.UNEXPLAINED_GAP)
def the_very_first_head_begins_at_the_end(patch: Patch) -> None:
    """Whatever the stream says, and where no head was ever lost."""
    real = reconciled_head._first_head

    def wrong(stream: Any, topic: Any, log: Any, group: Any, tables: Any) -> Any:
        anew = bool(tables.batches(every_table=True))
        return real(stream if anew else stream.model_copy(update={"start": "latest"}), topic, log, group, tables)

    patch.setattr(reconciled_head, "_first_head", wrong)


@shows(Kind.STALE_WRITER, since=35, swarm=True)
def the_very_first_head_does_not_begin_where_the_group_stands(patch: Patch) -> None:
    real = reconciled_head._first_head

    def wrong(stream: Any, topic: Any, log: Any, group: Any, tables: Any) -> Any:
        return real(stream, topic, log, group if tables.batches(every_table=True) else {}, tables)

    patch.setattr(reconciled_head, "_first_head", wrong)


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
    real = survey.ends_after

    def wrong(head: Any, ranges: Any, *rest: Any) -> Any:
        after = real(head, ranges, *rest)
        far = {r.partition: after[r.partition]._replace(next_offset=r.end + 1) for r in ranges}
        return after | far

    patch.setattr(survey, "ends_after", wrong)


@shows(Kind.UNEXPLAINED_GAP, since=27)
def a_skip_needs_no_acceptance(patch: Patch) -> None:
    real = rewind.apply_rewind
    patch.setattr(rewind, "apply_rewind", lambda *a, **kw: real(*a, **{**kw, "accept_skip": True}))


@shows(Kind.UNEXPLAINED_GAP, since=15)
def a_position_that_retention_overtook_moves_silently(patch: Patch) -> None:
    real = plan.find_backlog

    def wrong(stream: Any, head: Any, request: Any, topic: Any, ends: Any, *rest: Any) -> Any:
        ahead = {p: Position(max(at.next_offset, ends[p].log_start)) for p, at in head.positions.items() if p in ends}
        return real(stream, replace(head, positions=ahead), request, topic, ends, *rest)

    patch.setattr(plan, "find_backlog", wrong)


@shows(Kind.UNEXPLAINED_GAP, since=6)
def an_offset_that_is_gone_passes_for_a_marker(patch: Patch) -> None:
    real = holes._join
    patch.setattr(holes, "_join", lambda found: [(a, b, p or Proof.CONTROL) for a, b, p in real(found)])


@shows(Kind.LOST, since=5)
def a_log_that_was_cut_off_and_written_anew_passes_for_the_one_that_was_read(patch: Patch) -> None:
    patch.setattr(fake_batch, "_start_epoch", lambda *_: None)
    for module in (cut_log, rewind):
        patch.setattr(module, "find_cuts", lambda *_: {})


@shows(Kind.LOST, since=90)
def the_way_past_a_bad_place_takes_in_the_other_partitions_too(patch: Patch) -> None:
    """Of two bad places each stands in the way past the other."""
    real = holes.past_bad_place

    def wrong(*what: Any) -> str:
        said = real(*what)
        before, command, rest = said.partition("--partitions ")
        return said if not command else before + rest.partition(" ")[2]

    patch.setattr(holes, "past_bad_place", wrong)


@shows(Kind.LOST, act="put_back_from_a_backup")
def a_log_is_known_by_its_leader_epochs_alone(patch: Patch) -> None:
    patch.setattr(cut_log, "_compared", lambda topic, positions, *_: ({}, dict(positions)))


def _by_epochs(topic: Any, positions: Any, ends: Any, log: Any, _: Any) -> Any:
    return cut_log._ends_of_epochs(topic, positions, ends, log)


@shows(Kind.LOST, act="put_back_and_restarted_more_often")
def where_a_log_was_cut_off_is_where_an_epoch_of_that_number_ends(patch: Patch) -> None:
    patch.setattr(cut_log, "last_proven", _by_epochs)


@shows(Kind.LOST, act="put_back_into_the_very_epoch")
def an_epoch_that_is_there_still_is_believed_to_have_ended_where_it_ends_today(patch: Patch) -> None:
    """Where a batch of it is proven to be there, and in epoch 0: it may have gone on after disks were put back."""
    real = cut_log.last_proven

    def wrong(topic: Any, positions: Any, ends: Any, log: Any, earlier: Any) -> Any:
        proven = real(topic, positions, ends, log, earlier)
        known = {p: at for p, at in positions.items() if p in proven or not at.leader_epoch}
        return proven | _by_epochs(topic, known, ends, log, earlier)

    patch.setattr(cut_log, "last_proven", wrong)


@shows(Kind.LOST, since=213)
def whoever_goes_back_behind_a_cut_hides_it(patch: Patch) -> None:
    """A position that is set is of the epoch and the batch of now, wherever it is."""
    real = cut_log.with_last_batches
    for module in (reconciled_head, rewind):
        patch.setattr(module, "with_last_batches", lambda topic, at, ends, log, **_: real(topic, at, ends, log))
        patch.setattr(module, "moved_position", lambda to, *, here, **_: Position(to, leader_epoch=here.leader_epoch))


@shows(Kind.LOST, act="forward_over_a_cut")
def a_rewind_forward_over_a_cut_names_only_what_it_passes(patch: Patch) -> None:
    patch.setattr(rewind, "find_cuts", lambda *_: {})


@shows(Kind.UNEXPLAINED_GAP, since=10)
def what_is_read_again_goes_on_being_named_as_skipped(patch: Patch) -> None:
    for module in (reconciled_head, rewind, rebuilt_head):
        patch.setattr(module, "still_skipped", lambda skipped, _: tuple(skipped))


@shows(Kind.LOST, act="back_over_a_cut_that_retention_passed")
def whoever_goes_back_to_the_logs_beginning_is_told_of_no_cut(patch: Patch) -> None:
    """And what retention has taken of what was written anew is named by nobody."""
    real = rewind._passed

    def wrong(sight: Any, target: Any, wanted: Any) -> Any:
        return {p: at for p, at in real(sight, target, wanted).items() if wanted[p] > at.next_offset}

    patch.setattr(rewind, "_passed", wrong)


@shows(Kind.UNEXPLAINED_GAP, since=111)
def the_way_past_retention_goes_to_the_end_of_what_was_planned(patch: Patch) -> None:
    """Over what the log still has."""
    real = holes.past_retention
    patch.setattr(holes, "past_retention", lambda kind, stream, slice_, *_: real(kind, stream, slice_, slice_.end))


@shows(Kind.UNEXPLAINED_GAP, since=12)
def the_way_past_what_retention_overtook_goes_to_the_end(patch: Patch) -> None:
    real, accepting = backlog.named, backlog.accepting
    patch.setattr(backlog, "named", lambda of, where, **more: real(of, where.replace("earliest", "latest"), **more))
    patch.setattr(backlog, "accepting", lambda lost: accepting([r._replace(end=Offset(1 << 40)) for r in lost]))


@shows(Kind.UNEXPLAINED_GAP, since=6)
def the_way_past_a_bad_place_goes_to_the_end_of_what_was_planned(patch: Patch) -> None:
    """Over what lies behind it."""
    real = holes.past_bad_place

    def wrong(kind: Any, stream: str, slice_: Any, bad: Any, begins: Any = None) -> str:
        return real(kind, stream, slice_, [(bad[0][0], slice_.end)], begins)

    patch.setattr(holes, "past_bad_place", wrong)


@shows(Kind.UNEXPLAINED_GAP, act="rewound_before_its_way_out_is_followed")
def who_accepts_that_some_offsets_are_skipped_accepts_all_that_are(patch: Patch) -> None:
    """Also what somebody has gone back for since these were named."""
    real = rewind.not_accepted
    patch.setattr(rewind, "not_accepted", lambda skipped, accepted: real(skipped, bool(accepted)))


@shows(Kind.UNEXPLAINED_GAP, act="further_than_its_way_out_goes")
def who_accepts_that_some_offsets_are_skipped_accepts_all_behind_them(patch: Patch) -> None:
    """And those of other partitions."""
    real = rewind.not_accepted

    def wrong(skipped: Any, accepted: Any) -> Any:
        first = min((r.start for r in accepted), default=None) if not isinstance(accepted, bool) else None
        return real([r for r in skipped if first is None or r.start < first], accepted)

    patch.setattr(rewind, "not_accepted", wrong)
