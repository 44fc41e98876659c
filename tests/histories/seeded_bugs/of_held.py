"""Seeded bugs. What is held: written, counted, decided, and not loaded for nothing."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tests.fakes import fake_maintenance
from tests.histories.anomaly import Kind
from tests.histories.seeded_bugs.registry import Patch, shows
from wavestitch.batch import held_decision, publish, reassemble, steps, stream_state
from wavestitch.contracts import assembly, decision, held_quota, pending_decision
from wavestitch.contracts.assembly import ChunkFacts
from wavestitch.contracts.belief import Belief
from wavestitch.contracts.held import HeldLook
from wavestitch.contracts.held_choice import HeldAction
from wavestitch.contracts.position import HeadKind
from wavestitch.contracts.reasons import Reason
from wavestitch.contracts.tombstones import Tombstones
from wavestitch.maintain import what_goes


@shows(Kind.LOST)
def held_rows_are_not_written(patch: Patch) -> None:
    patch.setattr(publish, "_held_rows", lambda *_: [])


@shows(Kind.LOST, since=33)
def what_is_held_open_is_forgotten_by_the_next_batch(patch: Patch) -> None:
    real = stream_state.load_for_batch

    def wrong(*args: Any, **kwargs: Any) -> Any:
        found = real(*args, **kwargs)
        return replace(found, held=[h for h in found.held if h.reason is not Reason.OPEN])

    for module in (publish, reassemble, stream_state):
        patch.setattr(module, "load_for_batch", wrong)


@shows(Kind.LOST, since=45)
def of_a_waveform_that_was_sent_under_two_counts_one_chunk_of_the_second_is_held(patch: Patch) -> None:
    """What is kept of repeats is what says of the whole something that nobody said yet, of whatever piece."""
    real = assembly.Said.learn

    def wrong(self: assembly.Said, c: ChunkFacts) -> bool:
        return real(self, c._replace(seq=None, piece=b""))

    patch.setattr(assembly.Said, "learn", wrong)


@shows(Kind.LOST, since=5)
def what_is_held_counts_as_long_as_the_history_has_its_row(patch: Patch) -> None:
    real = stream_state._load

    def wrong(tables: Any, *what: Any, **more: Any) -> Any:
        found = real(tables, *what, **more)
        known = {row.decision for row in tables.history}
        return replace(found, held=[h for h in found.held if h.decision in known])

    patch.setattr(stream_state, "_load", wrong)


@shows(Kind.ALTERED)
def a_held_chunk_gets_its_neighbours_bytes(patch: Patch) -> None:
    real = publish._held_rows

    def wrong(*args: Any) -> Any:
        rows = real(*args)
        fresh = [r.row for r in rows if r.landing is not None]
        return [replace(r, row=max(r.row - 1, 0)) if r.landing is not None and fresh else r for r in rows]

    patch.setattr(publish, "_held_rows", wrong)


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

        def commit(self, base: Any, new: Any, files: Any, **more: Any) -> Any:
            head = self._tables.commit(base, new, files, **more)
            for rows, staging in self._waiting:
                mark = self._tables.stage_held(head.held, rows, staging=staging)
                head = self._tables.commit(head, head.next(kind=HeadKind.MAINTENANCE, held=mark), [])
            return head

    def wrong(*args: Any, tables: Any, **kwargs: Any) -> Any:
        return real(*args, tables=Late(tables), **kwargs)

    patch.setattr(steps, "publish_batch", wrong)


@shows(Kind.LOST, since=15)
def a_held_chunk_is_known_by_its_coordinate_alone(patch: Patch) -> None:
    """Where an election cut the log off, another one lies there."""
    patch.setattr(ChunkFacts, "key", property(lambda c: (c.coordinate, (None, None, b""))))


@shows(Kind.INVENTED)
def a_chunk_that_comes_again_undoes_parking(patch: Patch) -> None:
    _never_blocked_by(patch, Reason.PARKED)


@shows(Kind.INVENTED, since=27)
def a_chunk_that_comes_again_brings_back_what_was_discarded(patch: Patch) -> None:
    _never_blocked_by(patch, Reason.DISCARDED)
    patch.setattr(Tombstones, "cover", lambda *_: False)


def _never_blocked_by(patch: Patch, reason: Reason) -> None:
    real = pending_decision.blocked_by

    def wrong(mine: Any) -> Any:
        found = real(mine)
        return None if found is reason else found

    for module in (decision, pending_decision):
        patch.setattr(module, "blocked_by", wrong)


@shows(Kind.ALTERED)
def who_accepts_a_waveform_accepts_that_its_end_is_missing(patch: Patch) -> None:
    real = assembly.assemble_waveform

    def wrong(waveform_id: str, pool: Any, limits: Any, *, accepted: bool = False, **how: Any) -> Any:
        found = real(waveform_id, pool, limits, accepted=accepted, **how)
        lacks_its_end = [c.seq for c in found.pieces] == list(range(len(found.pieces)))
        return replace(found, reason=None) if accepted and found.reason is Reason.OPEN and lacks_its_end else found

    for module in (held_decision, pending_decision, reassemble):
        patch.setattr(module, "assemble_waveform", wrong)


@shows(Kind.LOST, since=4, act="whole_when_it_is_restored_too_late")
def what_may_wait_no_longer_is_redriven_by_nobody(patch: Patch) -> None:
    """Though it is whole: it became so while it was discarded."""
    real = held_decision.why_not

    def wrong(one: Any, action: Any, *how: Any) -> str:
        late = action is HeldAction.REDRIVE and Reason.INCOMPLETE in one.states
        return "is incomplete" if late else real(one, action, *how)

    patch.setattr(held_decision, "why_not", wrong)


@shows(Kind.HELD_FOR_EVER)
def what_is_parked_can_be_decided_by_nobody(patch: Patch) -> None:
    real = held_decision.why_not
    patch.setattr(
        held_decision, "why_not", lambda one, *how: "is parked" if Reason.PARKED in one.states else real(one, *how)
    )


@shows(Kind.UNBOUNDED_COST)
def a_look_loads_whatever_was_ever_held(patch: Patch) -> None:
    real = stream_state._load

    def wrong(tables: Any, head: Any, look: Any, **more: Any) -> Any:
        return real(tables, head, HeldLook(everything=True), **more)

    patch.setattr(stream_state, "_load", wrong)


@shows(Kind.LOST, since=4)
def what_finds_no_room_is_dropped(patch: Patch) -> None:
    real = publish._held_rows

    def wrong(plan: Any, *rest: Any) -> Any:
        return real(plan, *rest)[: plan.stream.limits.max_held_rows]

    patch.setattr(held_quota, "_refuse_beyond", lambda *_: None)
    patch.setattr(publish, "_held_rows", wrong)


@shows(Kind.LOST, since=7)
def junk_that_finds_no_room_is_not_even_named(patch: Patch) -> None:
    real = publish._held_rows

    def wrong(*what: Any) -> Any:
        return [row for row in real(*what) if row.held.stored or row.held.chunk.reason is None]

    patch.setattr(publish, "_held_rows", wrong)


@shows(Kind.INVENTED, since=20)
def what_was_held_before_a_proof_was_asked_for_is_believed(patch: Patch) -> None:
    patch.setattr(Belief, "believes", lambda *_: True)


# what maintenance lets go


@shows(Kind.LOST, since=342)
def held_rows_go_as_soon_as_their_waveforms_id_is_published(patch: Patch) -> None:
    """A late copy with other bytes, too, which nobody has decided about."""
    real = what_goes.held_to_delete

    def wrong(places: Any, *, published: Any, under_way: Any) -> Any:
        going = real(places, published=published, under_way=under_way)
        for p in places:
            if p.held.chunk.reason is None and any(p.held.chunk.waveform_id in some for some in published):
                going.setdefault(p.file, set()).add(p.row)
        return going

    patch.setattr(what_goes, "held_to_delete", wrong)


@shows(Kind.UNEXPLAINED_GAP, since=32)
def snapshots_go_before_their_heads_stand_in_the_history(patch: Patch) -> None:
    real = what_goes.snapshots_to_expire

    def wrong(table: Any, **about: Any) -> Any:
        return real(table, **about | {"recorded": {(s.head.sequence, s.head.decision) for s in table.main}})

    patch.setattr(fake_maintenance, "repair_history", lambda _: 0)
    patch.setattr(what_goes, "snapshots_to_expire", wrong)
