"""Seeded bugs. What operators are held to: closed gates, and what undo puts back."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import Any, cast

from tests.histories import undoing
from tests.histories.anomaly import Kind
from tests.histories.seeded_bugs.registry import Patch, shows
from wavestitch.batch import backfill, carry, closed_gate, held_approval, held_decision, steps, undo, verify
from wavestitch.contracts import decision, pending_decision
from wavestitch.contracts.batch_stages import CommitHead
from wavestitch.contracts.errors import Fenced, Refused
from wavestitch.contracts.held_choice import HeldAction, HeldChoice
from wavestitch.contracts.plan import PlanKind
from wavestitch.contracts.reasons import Reason
from wavestitch.contracts.stages import RewindTo


@shows(Kind.INVENTED)
def an_ingest_goes_past_a_closed_gate(patch: Patch) -> None:
    patch.setattr(steps, "refuse_past_closed_gate", lambda edges, **_: edges.closed_gates() and None)


@shows(Kind.INVENTED, since=88)
def a_gate_that_closed_once_opens_every_other(patch: Patch) -> None:
    real = steps.refuse_past_closed_gate
    patch.setattr(steps, "refuse_past_closed_gate", lambda edges, **more: real(edges, **{**more, "answered": True}))


@shows(Kind.INVENTED, since=6, act="the_landing_is_lost_at_a_closed_gate")
def a_closed_gate_stands_in_the_landing_alone(patch: Patch) -> None:
    real = closed_gate._at_gate
    patch.setattr(closed_gate, "_at_gate", lambda edges, _: real(edges, ()))


@shows(Kind.INVENTED)
def a_closed_gate_lapses_when_the_head_under_it_is_expired(patch: Patch) -> None:
    real = closed_gate._barring

    def wrong(closed: Any, heads: Any, tables: Any) -> Any:
        return [b for b in real(closed, heads, tables) if b.plan and closed_gate.is_in_history(b.plan, heads)]

    patch.setattr(closed_gate, "_barring", wrong)


@shows(Kind.INVENTED)
def a_closed_gate_parks_whatever_the_stream_says(patch: Patch) -> None:
    real = cast(Any, steps.step_validate).__wrapped__

    def wrong(edges: Any, plan: Any, *about: Any, **how: Any) -> Any:
        stream = plan.stream.model_copy(update={"on_closed_gate": "park"})
        return real(edges, replace(plan, stream=stream), *about, **how)

    patch.setattr(carry, "step_validate", steps.of_a_plan("validating")(wrong))


@shows(Kind.INVENTED, since=10)
def what_the_gate_refuses_parks_all_the_others(patch: Patch) -> None:
    real = pending_decision._verdict

    def wrong(found: Any, evidence: Any, **how: Any) -> Any:
        reason, why = real(found, evidence, **how)
        parks = reason is None and evidence.failed and not how["accepts"]
        return (Reason.PARKED, "beside what failed") if parks else (reason, why)

    patch.setattr(pending_decision, "_verdict", wrong)


@shows(Kind.STALE_WRITER, act="picked_and_completed")
def who_picks_the_first_gets_the_last(patch: Patch) -> None:
    real, other = pending_decision.pick_copy, {"first": "last", "last": "first"}
    patch.setattr(pending_decision, "pick_copy", lambda chunks, pick: real(chunks, other.get(pick, pick)))


@shows(Kind.INVENTED, act="whole_when_it_is_restored_too_late")
def what_is_restored_is_parked(patch: Patch) -> None:
    real = pending_decision.PendingDecision._restore
    patch.setattr(
        pending_decision.PendingDecision,
        "_restore",
        lambda self, h, *how, **more: real(self, replace(h, reason=Reason.PARKED), *how, **more),
    )


@shows(Kind.INVENTED, act="discarded_copy_comes_again")
def what_was_discarded_beside_a_row_is_a_conflict_when_it_comes_again(patch: Patch) -> None:
    """The row itself is known again."""
    patch.setattr(
        pending_decision.PendingDecision,
        "_bury",
        lambda self, c, _: self.set_aside(c, Reason.CONFLICT, "it has other bytes"),
    )


@shows(Kind.LOST, act="picked_and_completed")
def what_was_picked_waits_for_ever(patch: Patch) -> None:
    def wrong(self: Any, waveform_id: str, read: Any, mine: Any) -> None:
        found = self._assembled(waveform_id, self._beside_held(read, mine))
        whole = found.reason is None and any(h.reason is Reason.DISCARDED for h in mine)
        self._settle(replace(found, reason=Reason.OPEN, evidence="a part was let go") if whole else found)

    patch.setattr(pending_decision.PendingDecision, "assemble", wrong)


@shows(Kind.INVENTED, act="picked_and_completed")
def what_was_discarded_of_a_waveform_blocks_the_rest(patch: Patch) -> None:
    real = pending_decision.blocked_by

    def wrong(mine: Any) -> Any:
        return real(mine) or (Reason.DISCARDED if any(h.reason is Reason.DISCARDED for h in mine) else None)

    for module in (decision, pending_decision):
        patch.setattr(module, "blocked_by", wrong)


@shows(Kind.INVENTED, since=4)
def a_decision_asks_at_no_gate_once_it_is_planned(patch: Patch) -> None:
    real = steps.asks_the_gate
    patch.setattr(steps, "asks_the_gate", lambda plan: plan.kind is not PlanKind.HELD and real(plan))


@shows(Kind.INVENTED, since=29)
def a_backfill_asks_at_no_gate(patch: Patch) -> None:
    real = steps.asks_the_gate
    patch.setattr(steps, "asks_the_gate", lambda plan: plan.kind is PlanKind.HELD and real(plan))


@shows(Kind.INVENTED, since=29)
def what_an_ingest_was_stopped_with_passes_by_anything_but_an_ingest(patch: Patch) -> None:
    real = closed_gate._stopped_some
    patch.setattr(
        closed_gate, "_stopped_some", lambda edges, plan, ids: plan.choice is not None and real(edges, plan, ids)
    )


@shows(Kind.INVENTED, since=128)
def a_closed_gate_knows_offsets_and_no_waveforms(patch: Patch) -> None:
    """So that a second copy of what was stopped passes."""
    real, stopped_some, asking = steps.refuse_past_closed_gate, closed_gate._stopped_some, list[Any]()

    def asked(edges: Any, *, own: str = "", **about: Any) -> None:
        asking[:] = [edges.bench.plans[own]] if own else []
        real(edges, own=own, **about)

    def wrong(edges: Any, plan: Any, ids: Any) -> bool:
        if plan.choice is not None or any(one.choice is not None for one in asking):
            return stopped_some(edges, plan, ids)
        mine = {(r.partition, o) for one in asking for r in one.ranges for o in range(r.start, r.end)}
        return any((r.partition, o) in mine for r in plan.ranges for o in range(r.start, r.end))

    patch.setattr(steps, "refuse_past_closed_gate", asked)
    patch.setattr(closed_gate, "_stopped_some", wrong)


@shows(Kind.INVENTED, since=4)
def the_gate_is_asked_before_staging_and_not_before_the_commit(patch: Patch) -> None:
    _asks_again(patch, but_for=Refused)


@shows(Kind.STALE_WRITER, since=10)
def whether_it_was_given_up_is_asked_before_staging_and_not_before_the_commit(patch: Patch) -> None:
    _asks_again(patch, but_for=Fenced)


def _asks_again(patch: Patch, *, but_for: type[Exception]) -> None:
    real = steps.publish_batch

    def wrong(*args: Any, ask: Any, **more: Any) -> Any:
        def deaf() -> None:
            with suppress(but_for):
                ask()

        return real(*args, ask=deaf, **more)

    patch.setattr(steps, "publish_batch", wrong)


@shows(Kind.STALE_WRITER, since=10)
def undo_of_a_decision_is_about_all_that_is_held_of_its_waveforms(patch: Patch) -> None:
    patch.setattr(undo, "not_undone_by", lambda *_, **__: [])


@shows(Kind.STALE_WRITER, since=33635, swarm=True)
def undo_of_a_batch_goes_on_on_the_topic_that_is_there_by_then(patch: Patch) -> None:
    patch.setattr(undo, "_refuse_other_topic", lambda *_: None)


@shows(Kind.STALE_WRITER, since=43, act="published_while_its_undo_is_worked_out")
def undo_of_a_decision_leaves_out_what_was_published_while_it_was_worked_out(patch: Patch) -> None:
    patch.setattr(undo, "_refuse_less", lambda *_: None)


@shows(Kind.STALE_WRITER)
def undo_of_a_decision_does_not_look_again_whether_it_still_is_its_opposite(patch: Patch) -> None:
    real = undo._plan_opposite

    def wrong(*args: Any, **kwargs: Any) -> Any:
        shown = real(*args, **kwargs)
        return replace(shown, plan=replace(shown.plan, choice=replace(shown.plan.held_choice, among=())).sealed())

    patch.setattr(undo, "_plan_opposite", wrong)


@shows(Kind.STALE_WRITER, since=5, act="approved_after_more_came")
def what_is_approved_of_is_about_ids(patch: Patch) -> None:
    """Whatever is held of them by then."""
    _approved_names_no_chunks(patch)
    patch.setattr(held_approval, "refuse_others", lambda *_: None)


@shows(Kind.STALE_WRITER, since=5, act="approved_after_more_came")
def what_came_is_asked_when_it_is_approved_of_and_not_when_it_is_committed(patch: Patch) -> None:
    _approved_names_no_chunks(patch)


def _approved_names_no_chunks(patch: Patch) -> None:
    real = held_approval._approved
    patch.setattr(held_approval, "_approved", lambda *about: replace(cast(HeldChoice, real(*about)), among=()))


@shows(Kind.STALE_WRITER, act="approved_after_more_came")
def what_is_approved_of_is_done_by_a_definition_that_is_no_more(patch: Patch) -> None:
    patch.setattr(held_approval, "_refuse_other_definition", lambda *_: None)


@shows(Kind.STALE_WRITER, since=100)
def undo_moves_all_partitions_back(patch: Patch) -> None:
    """To where the batch was planned: those that it did not read, too."""
    real = undo._plan_back

    def wrong(edges: Any, found: Any, **about: Any) -> Any:
        plans = [p for p in edges.bench.plans.values() if found.offsets.items() <= _stood(p).items()]
        return real(edges, replace(found, offsets=_stood(plans[-1])) if plans else found, **about)

    def _stood(plan: Any) -> dict[int, int]:
        return {p: at.next_offset for p, at in plan.positions.items()}

    patch.setattr(undo, "_plan_back", wrong)


@shows(Kind.STALE_WRITER, act="a_partition_that_was_added_is_skipped_and_that_is_undone")
def undo_leaves_a_partition_that_was_added_where_it_is(patch: Patch) -> None:
    real = CommitHead.opposite

    def wrong(stage: CommitHead) -> Any:
        found = real(stage)
        if stage.base is None or not isinstance(found, RewindTo):
            return found
        kept = {p: to for p, to in found.offsets.items() if p in stage.base.positions}
        return RewindTo(kept, found.topic_id) if kept else None

    patch.setattr(CommitHead, "opposite", wrong)


# what nobody has a reason to refuse


def _refused(*_: Any, **__: Any) -> Any:
    raise Refused("not today")


_FREE = "what_nobody_has_a_reason_to_refuse"


@shows(Kind.UNBOUNDED_END, act=_FREE)
def undo_is_refused(patch: Patch) -> None:
    patch.setattr(undoing, "plan_undo", _refused)


@shows(Kind.UNBOUNDED_END, act=_FREE)
def a_backfill_is_refused(patch: Patch) -> None:
    patch.setattr(backfill, "step_plan_backfill", _refused)


@shows(Kind.UNBOUNDED_END, act=_FREE)
def a_verification_is_refused(patch: Patch) -> None:
    patch.setattr(verify, "verify_range", _refused)


def _changes_nothing(patch: Patch, *actions: HeldAction) -> None:
    real = held_decision.why_not
    patch.setattr(
        held_decision, "why_not", lambda one, action, *how: "stays" if action in actions else real(one, action, *how)
    )


@shows(Kind.UNBOUNDED_END, act=_FREE)
def restore_is_refused(patch: Patch) -> None:
    _changes_nothing(patch, HeldAction.RESTORE)


@shows(Kind.UNBOUNDED_END, act=_FREE)
def a_pick_is_refused(patch: Patch) -> None:
    _changes_nothing(patch, HeldAction.PICK)
