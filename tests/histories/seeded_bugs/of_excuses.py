"""Seeded bugs. What an excuse of the checker once hid: they were planted, and nothing was said."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tests.histories.anomaly import Kind
from tests.histories.seeded_bugs.registry import Patch, shows
from wavestitch.batch import backlog, links, located, reconciled_head, rewind, rewind_target, verify
from wavestitch.contracts import start_index
from wavestitch.contracts.held_choice import HeldAction
from wavestitch.contracts.pending_decision import PendingDecision, after
from wavestitch.contracts.plan import PlanKind
from wavestitch.contracts.quantities import Offset
from wavestitch.contracts.reasons import Reason


@shows(Kind.INVENTED)
def what_comes_too_late_is_discarded_by_nobody(patch: Patch) -> None:
    real = PendingDecision._keep_open

    def wrong(self: Any, found: Any, why: Any) -> None:
        if not (self._plan.holds and self._after.watermark_ms > after(found.newest_ms, self._lateness)):
            real(self, found, why)
            return
        for c in (*found.pieces, *found.lessons):
            self.set_aside(c, Reason.DISCARDED, why)

    patch.setattr(PendingDecision, "_keep_open", wrong)


@shows(Kind.INVENTED, since=10)
def what_is_repeated_is_a_conflict(patch: Patch) -> None:
    """Of whole waveforms, some."""
    real = PendingDecision._assembled

    def wrong(self: Any, waveform_id: str, pool: Any) -> Any:
        found = real(self, waveform_id, pool)
        again = found.reason is None and found.repeats and not self._plan.accepts and waveform_id[-1] in "37"
        return replace(found, reason=Reason.CONFLICT, evidence="repeated") if again else found

    patch.setattr(PendingDecision, "_assembled", wrong)


def _does_nothing(patch: Patch, action: HeldAction) -> None:
    real = PendingDecision.choose

    def wrong(self: Any, choice: Any, waveform_id: str, mine: Any, known: Any) -> None:
        if choice.action is not action or known is not None:
            real(self, choice, waveform_id, mine, known)
        else:
            self._leave_all([h.chunk for h in mine if h.reason is not Reason.DISCARDED])

    patch.setattr(PendingDecision, "choose", wrong)


@shows(Kind.UNTRUE)
def who_accepts_does_nothing(patch: Patch) -> None:
    _does_nothing(patch, HeldAction.ACCEPT)


@shows(Kind.UNTRUE)
def who_redrives_does_nothing(patch: Patch) -> None:
    _does_nothing(patch, HeldAction.REDRIVE)


@shows(Kind.UNTRUE)
def who_picks_does_nothing(patch: Patch) -> None:
    _does_nothing(patch, HeldAction.PICK)


@shows(Kind.LOST)
def a_backfill_finds_nothing(patch: Patch) -> None:
    real = links.locate
    patch.setattr(links, "locate", lambda *a, **k: real(*a, **k)._replace(ranges=[], lost=(), read_before=()))


@shows(Kind.UNEXPLAINED_GAP, act="left_and_taken")
def what_a_backfill_has_read_counts_as_held(patch: Patch) -> None:
    patch.setattr(start_index, "_KEEPING", frozenset(PlanKind))


@shows(Kind.UNEXPLAINED_GAP, act="left_and_cut_off")
def what_was_cut_off_is_named_by_no_backfill(patch: Patch) -> None:
    real = located.known_starts

    def wrong(*args: Any) -> Any:
        return {p: known._replace(cut_off=()) for p, known in real(*args).items()}

    patch.setattr(located, "known_starts", wrong)


@shows(Kind.UNEXPLAINED_GAP, since=4, act="taken_before_it_is_read_across_the_cuts")
def what_retention_takes_before_it_is_read_across_the_cuts_is_not_named(patch: Patch) -> None:
    real = links.still_there
    patch.setattr(links, "still_there", lambda *a: (real(*a)[0], []))


@shows(Kind.UNEXPLAINED_GAP)
def a_head_forgets_what_was_given_up_behind_it(patch: Patch) -> None:
    for module in (rewind, reconciled_head):
        patch.setattr(module, "still_skipped", lambda *_: ())


@shows(Kind.STALE_WRITER)
def the_earliest_is_one_further(patch: Patch) -> None:
    real = rewind_target._wanted

    def wrong(target: Any, sight: Any, **how: Any) -> Any:
        found = real(target, sight, **how)
        if target.word != "earliest":
            return found
        return {p: Offset(min(at + 1, sight.ends[p].stable_end)) for p, at in found.items()}

    patch.setattr(rewind_target, "_wanted", wrong)


@shows(Kind.UNTRUE)
def a_verification_leaves_out_the_last_offset(patch: Patch) -> None:
    real = verify._asked
    patch.setattr(verify, "_asked", lambda *a: [r._replace(end=max(r.start, Offset(r.end - 1))) for r in real(*a)])


@shows(Kind.UNTRUE)
def a_batch_of_named_offsets_reads_half(patch: Patch) -> None:
    real = backlog._named

    def wrong(*args: Any) -> Any:
        ranges, why = real(*args)
        return [r._replace(end=Offset(r.start + (r.size + 1) // 2)) for r in ranges], why

    patch.setattr(backlog, "_named", wrong)
