"""Seeded bugs. Backfills: batches of one interval, one after the other, and the catalog that they stand on."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tests.fakes import fake_tables
from tests.histories.anomaly import Kind
from tests.histories.seeded_bugs.registry import Patch, shows
from wavestitch.batch import (
    backfill,
    held_decision,
    history,
    links,
    located,
    publish,
    read_and_kept,
    reconciled_head,
    steps,
    survey,
)
from wavestitch.contracts import start_index
from wavestitch.contracts.offset_range import joined
from wavestitch.contracts.quantities import Generation


@shows(Kind.LOST, since=104)
def what_lies_across_the_cuts_of_a_backfill_is_left(patch: Patch) -> None:
    real = backfill.step_plan_seams

    def wrong(edges: Any, planned: Any) -> Any:
        return replace(real(edges, planned), plans=())

    patch.setattr(backfill, "step_plan_seams", wrong)


@shows(Kind.UNBOUNDED_END, act="half_a_chain")
def what_a_batch_of_a_backfill_left_is_kept_after_its_commit(patch: Patch) -> None:
    """So that nobody knows it where the batch died in between, and no batch after it can be carried."""
    real = steps.publish_batch

    def wrong(*args: Any, keep: Any, **more: Any) -> Any:
        made: list[Any] = []
        found = real(*args, keep=made.append, **more)
        for decision in made[-1:]:
            keep(decision)
        return found

    patch.setattr(steps, "publish_batch", wrong)


@shows(Kind.ALTERED, since=104)
def a_batch_of_a_backfill_knows_nothing_of_what_those_before_it_have_read(patch: Patch) -> None:
    """So that the cut decides between copies that contradict each other."""
    patch.setattr(steps, "known_elsewhere", lambda *_: {})


@shows(Kind.STALE_WRITER, since=9, act="another_catalog_beside")
def nobody_asks_whose_the_catalog_is_where_no_position_moves(patch: Patch) -> None:
    for module in (steps, held_decision):
        patch.setattr(module, "look_at_group", lambda *_, **__: None)
    real = reconciled_head.reconcile_head

    def wrong(stream: Any, topic: Any, request: Any, *, walk: Any) -> Any:
        head = walk.tables.head()
        ingest = head is None or request.kind == "ingest"
        return real(stream, topic, request, walk=walk) if ingest else (head, {})

    patch.setattr(reconciled_head, "reconcile_head", wrong)
    patch.setattr(survey, "reconcile_head", wrong)


@shows(Kind.STALE_WRITER, act="another_catalog_beside")
def whose_the_catalog_is_is_asked_by_who_plans_and_not_before_the_commit(patch: Patch) -> None:
    patch.setattr(steps, "look_at_group", lambda *_, **__: None)


@shows(Kind.LOST, since=970, act="another_catalog_beside")
def a_history_beside_another_table_is_believed(patch: Patch) -> None:
    """What it says to be finished is in no table any more."""
    patch.setattr(fake_tables, "rows_of", lambda _, rows: list(rows))
    patch.setattr(history, "rows_behind", lambda _, rows: list(rows))


@shows(Kind.LOST, since=145993, swarm=True)
def what_the_history_has_of_a_table_that_was_there_before_counts(patch: Patch) -> None:
    """The first head takes its numbers again, and no row says whose it is."""
    for module in (fake_tables, read_and_kept):
        patch.setattr(module, "rows_of", lambda _, rows: list(rows))
    patch.setattr(reconciled_head, "first_version", lambda _: (1, Generation(1)))


@shows(Kind.LOST, since=6, act="a_backfill_is_planned_by_a_broker_that_lags")
def a_partition_of_the_head_that_a_broker_does_not_show_yet_is_left_out(patch: Patch) -> None:
    """So that a backfill ends well without it."""
    patch.setattr(reconciled_head, "refuse_unseen", lambda *_: None)


@shows(Kind.UNBOUNDED_END, since=21811, swarm=True)
def what_lies_across_the_cuts_of_a_backfill_is_read_on_a_topic_made_in_the_others_place(patch: Patch) -> None:
    patch.setattr(links, "_refuse_other_view", lambda *_: None)


@shows(Kind.LOST, since=45043, swarm=True)
def what_was_noted_behind_the_end_of_a_log_that_was_put_back_is_believed(patch: Patch) -> None:
    """In the leader epoch that it goes on in: what is written there anew is not looked at."""
    real = located.find_cuts_since

    def wrong(topic: str, read: Any, ends: Any, log: Any) -> Any:
        goes_on = {p: at.leader_epoch for p, at in ends.items()}
        return {(p, e): cut for (p, e), cut in real(topic, read, ends, log).items() if e != goes_on[p]}

    patch.setattr(located, "find_cuts_since", wrong)


@shows(Kind.UNEXPLAINED_GAP, since=41, swarm=True)
def what_is_gone_and_was_read_by_nobody_is_not_named_by_a_backfill(patch: Patch) -> None:
    patch.setattr(start_index.Known, "lost", lambda *_: [])


@shows(Kind.LOST, act="read_in_a_later_epoch_and_put_back")
def what_was_noted_behind_where_a_position_is_on_another_log_is_believed(patch: Patch) -> None:
    real = located.known_starts
    patch.setattr(located, "known_starts", lambda rows, head, scope, cuts, _: real(rows, head, scope, cuts))


@shows(Kind.UNEXPLAINED_GAP, act="read_in_a_later_epoch_put_back_and_taken")
def what_was_noted_behind_where_a_position_is_on_another_log_is_believed_of_what_is_gone(patch: Patch) -> None:
    real = located.known_starts

    def wrong(rows: Any, head: Any, scope: Any, cuts: Any, anew: Any) -> Any:
        right = real(rows, head, scope, cuts, anew)
        return {
            p: right.get(p, start_index.Known())._replace(held=known.held, elsewhere=known.elsewhere)
            for p, known in real(rows, head, scope, cuts).items()
        }

    patch.setattr(located, "known_starts", wrong)


@shows(Kind.UNEXPLAINED_GAP, since=4, act="read_ahead_cut_off_and_taken")
def what_was_noted_of_what_retention_has_passed_is_believed_in_whichever_epoch(patch: Patch) -> None:
    """As far as a leader tells."""
    asked, known = located.find_cuts_since, located.known_starts
    told: dict[Any, Any] = {}

    def tells(*args: Any) -> Any:
        told.clear()
        told.update(asked(*args))
        return dict(told)

    patch.setattr(located, "find_cuts_since", tells)
    patch.setattr(located, "known_starts", lambda rows, head, scope, _, anew: known(rows, head, scope, told, anew))


@shows(Kind.UNEXPLAINED_GAP, act="planned_and_cut_off_before_it_reads")
def what_came_in_place_of_what_was_planned_is_noted_as_of_then(patch: Patch) -> None:
    """So that what an earlier backfill had left there, and was cut off, counts as held."""
    real = publish.describe_batch
    patch.setattr(publish, "describe_batch", lambda *args, **more: real(*args, **{**more, "written": {}}))


@shows(Kind.UNEXPLAINED_GAP, since=7, act="left_cut_off_and_taken")
def whoever_holds_what_was_written_anew_holds_what_had_lain_there(patch: Patch) -> None:
    """Where retention has taken both."""
    real = start_index.Known.lost
    patch.setattr(start_index.Known, "lost", lambda self, gone: real(self._replace(left=()), gone))


@shows(Kind.UNEXPLAINED_GAP, act="deleted_accepted_and_taken")
def what_was_read_before_something_was_accepted_as_missing_counts_as_held(patch: Patch) -> None:
    patch.setattr(start_index, "ACCEPTED_MISSING", "nobody ever accepts this")


@shows(Kind.UNEXPLAINED_GAP, since=7, act="cut_off_skipped_and_taken")
def what_was_read_where_somebody_skipped_what_was_written_anew_counts_as_held(patch: Patch) -> None:
    real = start_index._Noted.known

    def wrong(self: Any, head: Any) -> Any:
        return real(self, head)._replace(held=tuple(joined(self.held)))

    patch.setattr(start_index._Noted, "known", wrong)


@shows(Kind.UNTRUE, act="read_and_taken")
def a_backfill_names_all_that_is_gone_of_the_log(patch: Patch) -> None:
    """Whoever holds it."""
    patch.setattr(start_index.Known, "lost", lambda _, gone: [gone] if gone.size > 0 else [])
