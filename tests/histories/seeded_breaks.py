"""Seeded bugs that undo a mend: of each break that was proven once what the product did then, and its kind.

Bugs of the world's own making (what a library or a catalog does) are put into the memory edges. See `seeded_bugs`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tests.fakes import batch as fake_batch
from tests.fakes import fake_reader
from tests.fakes.fake_tables import FakeTables
from tests.histories.anomaly import Kind
from tests.histories.seeded_bugs import Patch, shows
from wavestitch.batch import (
    closed_gate,
    cut_log,
    held_decision,
    publish,
    reassemble,
    rebuilt_head,
    reconciled_head,
    rewind,
    steps,
    stream_state,
)
from wavestitch.contracts import (
    assembly,
    chunk_header,
    decision,
    disagreement,
    held_quota,
    holes,
    pending_decision,
    protocol,
)
from wavestitch.contracts.assembly import ChunkFacts
from wavestitch.contracts.chunk_header import Chunk, Rejection
from wavestitch.contracts.disagreement import Doubt
from wavestitch.contracts.errors import DataLost
from wavestitch.contracts.held import HeldLook
from wavestitch.contracts.holes import Hole, Proof
from wavestitch.contracts.ports import CommitConflict
from wavestitch.contracts.position import Position
from wavestitch.contracts.reasons import Reason
from wavestitch.contracts.tombstones import Tombstones

# catalogs, heads, gates, partitions


@shows(Kind.UNEXPLAINED_GAP)
def a_lost_catalog_passes_for_a_new_stream(patch: Patch) -> None:
    real = reconciled_head.find_disagreement

    def wrong(head: Any, group: Any, *, table: Any) -> Any:
        return None if head is None else real(head, group, table=table)

    patch.setattr(reconciled_head, "find_disagreement", wrong)


@shows(Kind.STALE_WRITER)
def a_tag_that_is_newer_than_the_head_passes_for_an_older_one(patch: Patch) -> None:
    real = disagreement._doubt

    def wrong(head: Any, **about: Any) -> Any:
        found = real(head, **about)
        return None if found is Doubt.RESTORED else found

    patch.setattr(disagreement, "_doubt", wrong)


@shows(Kind.UNEXPLAINED_GAP)
def a_head_is_rebuilt_at_the_end_of_the_log(patch: Patch) -> None:
    patch.setattr(rebuilt_head, "_position", lambda sight, p, *_: Position(sight.ends[p].stable_end))


@shows(Kind.INVENTED)
def an_ingest_goes_past_a_closed_gate(patch: Patch) -> None:
    patch.setattr(steps, "refuse_past_closed_gate", lambda edges, **_: edges.closed_gates() and None)


@shows(Kind.INVENTED)
def a_closed_gate_lapses_when_the_head_under_it_is_expired(patch: Patch) -> None:
    real = closed_gate._standing

    def wrong(closed: Any, heads: Any, tables: Any) -> Any:
        return [plan for plan in real(closed, heads, tables) if closed_gate.is_in_history(plan, heads)]

    patch.setattr(closed_gate, "_standing", wrong)


@shows(Kind.STALE_WRITER)
def a_rewind_of_one_partition_moves_them_all(patch: Patch) -> None:
    real = rewind.wanted_offsets

    def wrong(target: Any, sight: Any, **edges: Any) -> Any:
        found = real(target, sight, **edges)
        if sight.head is None or not (target.only or target.parts):
            return found
        back = {p: max(sight.ends[p].log_start, at.next_offset - 1) for p, at in sight.head.positions.items()}
        return {p: to for p, to in back.items() if p in sight.ends} | found

    patch.setattr(rewind, "wanted_offsets", wrong)


# commits


@shows(Kind.STALE_WRITER)
def a_lost_commit_is_tried_again_because_a_property_says_so(patch: Patch) -> None:
    real = FakeTables.commit

    def wrong(self: FakeTables, base: Any, new: Any, *rest: Any) -> Any:
        again = "commit.retry.num-retries" in self.properties and self.snapshots
        return real(self, self.snapshots[-1] if again else base, new, *rest)

    patch.setattr(FakeTables, "commit", wrong)


@shows(Kind.LOST)
def a_conflict_with_oneself_is_believed_and_cleaned_up_after(patch: Patch) -> None:
    """What a library does that deletes what it wrote on every 409, the answer to a request that was sent twice too."""

    def wrong(self: FakeTables, made: Any) -> Any:
        self.rows = [(sequence, row) for sequence, row in self.rows if sequence != made.sequence]
        raise CommitConflict("the newest head is another one")

    patch.setattr(FakeTables, "_looked_up", wrong)


# what is held


@shows(Kind.LOST)
def a_held_chunk_is_known_by_its_coordinate_alone(patch: Patch) -> None:
    """Where an election cut the log off, another one lies there."""
    patch.setattr(ChunkFacts, "key", property(lambda c: (c.coordinate, (None, None, b""))))


@shows(Kind.INVENTED)
def a_chunk_that_comes_again_undoes_parking(patch: Patch) -> None:
    _never_blocked_by(patch, Reason.PARKED)


@shows(Kind.INVENTED)
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

    def wrong(waveform_id: str, pool: Any, limits: Any, *, accepted: bool = False) -> Any:
        found = real(waveform_id, pool, limits, accepted=accepted)
        lacks_its_end = [c.seq for c in found.pieces] == list(range(len(found.pieces)))
        return replace(found, reason=None) if accepted and found.reason is Reason.OPEN and lacks_its_end else found

    for module in (held_decision, pending_decision, reassemble):
        patch.setattr(module, "assemble_waveform", wrong)


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


@shows(Kind.LOST)
def what_finds_no_room_is_dropped(patch: Patch) -> None:
    real = publish._held_rows

    def wrong(plan: Any, *rest: Any) -> Any:
        return real(plan, *rest)[: plan.stream.limits.max_held_rows]

    patch.setattr(held_quota, "_refuse_beyond", lambda *_: None)
    patch.setattr(publish, "_held_rows", wrong)


@shows(Kind.LOST)
def junk_that_finds_no_room_is_not_even_named(patch: Patch) -> None:
    real = publish._held_rows

    def wrong(*what: Any) -> Any:
        return [row for row in real(*what) if row.held.stored or row.held.chunk.reason is None]

    patch.setattr(publish, "_held_rows", wrong)


# records


@shows(Kind.LOST)
def a_proof_is_asked_for_and_not_compared(patch: Patch) -> None:
    patch.setattr(chunk_header, "same", lambda *_: True)


@shows(Kind.ALTERED)
def nothing_seals_the_count(patch: Patch) -> None:
    """As in version 1 of the contract: a CRC that is right for another count is right."""
    real = fake_batch.parse_chunk

    def wrong(key: Any, headers: Any, value: Any, *proof: Any) -> Any:
        found = real(key, headers, value, *proof)
        said = dict(headers).get("ws-count")
        if not isinstance(found, Rejection) or found.reason is not Reason.CORRUPT or said is None:
            return found
        others = [h for h in headers if h[0] != "ws-count"]
        tried = (
            real(key, (*others, *more), value, *proof) for more in ((), *((("ws-count", b"%d" % n),) for n in range(9)))
        )
        right = next((one for one in tried if isinstance(one, Chunk)), None)
        return found if right is None else right._replace(count=int(said))

    patch.setattr(fake_batch, "parse_chunk", wrong)


@shows(Kind.LOST)
def the_record_time_of_any_repeat_counts(patch: Patch) -> None:
    """Whoever sends a chunk again at another time makes its waveform implausible."""
    real = assembly._judge

    def wrong(pieces: Any, copies: Any, *rest: Any, **more: Any) -> Any:
        latest = max(copies, key=lambda c: c.coordinate)
        return real(pieces, [c._replace(timestamp_ms=latest.timestamp_ms) for c in copies], *rest, **more)

    patch.setattr(assembly, "_judge", wrong)


# the log


@shows(Kind.UNEXPLAINED_GAP)
def an_offset_that_is_gone_passes_for_a_marker(patch: Patch) -> None:
    real = fake_reader.prove_holes

    def wrong(found: Any, **how: Any) -> Any:
        try:
            return real(found, **how)
        except DataLost:
            return [Hole(start, end, Proof.CONTROL) for start, end in found]

    patch.setattr(fake_reader, "prove_holes", wrong)


@shows(Kind.LOST)
def a_log_that_was_cut_off_and_written_anew_passes_for_the_one_that_was_read(patch: Patch) -> None:
    patch.setattr(fake_batch, "_start_epoch", lambda *_: None)
    for module in (cut_log, rewind):
        patch.setattr(module, "find_cuts", lambda *_: {})


@shows(Kind.LOST)
def the_way_past_a_bad_place_takes_in_the_other_partitions_too(patch: Patch) -> None:
    """Of two bad places each stands in the way past the other."""
    real = holes.past_bad_place

    def wrong(*what: Any) -> str:
        said = real(*what)
        before, command, rest = said.partition("--partitions ")
        return said if not command else before + rest.partition(" ")[2]

    patch.setattr(holes, "past_bad_place", wrong)


# the group


@shows(Kind.STALE_WRITER)
def what_another_table_wrote_into_the_group_is_written_over(patch: Patch) -> None:
    patch.setattr(protocol, "_is_of", lambda metadata, _: protocol.is_ours(metadata))
