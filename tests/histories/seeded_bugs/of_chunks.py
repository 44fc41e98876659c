"""Seeded bugs. What a chunk is, what becomes of it, and how a waveform is made of several."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from consumers import range_scan
from tests.fakes import batch as fake_batch
from tests.histories.anomaly import Kind
from tests.histories.seeded_bugs.registry import Patch, shows
from wavestitch.batch import publish, reassemble
from wavestitch.contracts import assembly, chunk_header, decision, pending_decision
from wavestitch.contracts.assembly import Assembly, ChunkFacts
from wavestitch.contracts.chunk_header import Chunk, Rejection
from wavestitch.contracts.decision import Evidence
from wavestitch.contracts.pending_decision import PendingDecision
from wavestitch.contracts.plan import Plan
from wavestitch.contracts.reasons import Fate, Reason
from wavestitch.tables.lookup.id_store import IdStore


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


@shows(Kind.LOST, since=10)
def copies_are_told_apart_by_their_checksum(patch: Patch) -> None:
    patch.setattr(ChunkFacts, "identity", property(lambda c: (c.seq, c.crc if c.count is None else 0, c.length)))


@shows(Kind.DUPLICATE, since=14)
def what_is_published_is_not_looked_up(patch: Patch) -> None:
    real = decision.decide
    for module in (publish, reassemble):
        patch.setattr(module, "decide", lambda *a, **kw: real(*a, **{**kw, "published": {}}))


@shows(Kind.DUPLICATE, since=80)
def an_index_of_ids_is_believed_whatever_became_of_it(patch: Patch) -> None:
    def wrong(self: IdStore, numbers: Any) -> Any:
        return dict(self._rows("SELECT number, body FROM bucket WHERE number IN ({})", list(numbers)))

    patch.setattr(IdStore, "_bodies", wrong)


@shows(Kind.DUPLICATE, since=86)
def an_index_of_ids_answers_for_files_that_it_has_never_seen(patch: Patch) -> None:
    real = IdStore.known_parts

    def wrong(self: IdStore, names: Any) -> Any:
        asked = list(names)
        found = real(self, asked)
        return dict.fromkeys(asked, np.zeros(0, "<u4")) | found if found else found

    patch.setattr(IdStore, "known_parts", wrong)


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


@shows(Kind.INVENTED, since=5)
def aborted_records_are_read(patch: Patch) -> None:
    real = range_scan.open_consumer

    def wrong(*args: Any, **kwargs: Any) -> Any:
        return real(*args, **{**kwargs, "isolation": "read_uncommitted"})

    patch.setattr(range_scan, "open_consumer", wrong)


@shows(Kind.INVENTED, since=7)
def what_the_gate_refuses_is_published(patch: Patch) -> None:
    real = decision.decide

    def wrong(plan_: Plan, evidence: Evidence, **kwargs: Any) -> Any:
        return real(plan_, replace(evidence, failed={}), **kwargs)

    patch.setattr(publish, "decide", wrong)


@shows(Kind.ORDER, since=18)
def chunks_are_stitched_in_the_order_of_their_offsets(patch: Patch) -> None:
    """And nobody compares the row with the decision, or the producer's digest, which would find it out."""
    real = assembly.assemble_waveform

    def wrong(waveform_id: str, pool: Any, limits: Any, **how: Any) -> Any:
        found = real(waveform_id, pool, limits, **how)
        moved = tuple(sorted(found.pieces, key=lambda c: (c.partition, c.offset)))
        return found if found.reason is not None else replace(found, pieces=moved)

    patch.setattr(Assembly, "digest", property(lambda _: None))
    patch.setattr(publish, "check_rows", lambda *_, **__: None)
    for module in (pending_decision, reassemble):
        patch.setattr(module, "assemble_waveform", wrong)


@shows(Kind.LOST, since=810)
def a_proof_is_asked_for_and_not_compared(patch: Patch) -> None:
    patch.setattr(chunk_header, "same", lambda *_: True)


@shows(Kind.INVENTED, since=115)
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


@shows(Kind.LOST, since=160)
def the_record_time_of_any_repeat_counts(patch: Patch) -> None:
    """Whoever sends a chunk again at another time makes its waveform implausible."""
    real = assembly._judge

    def wrong(pieces: Any, copies: Any, *rest: Any, **more: Any) -> Any:
        latest = max(copies, key=lambda c: c.coordinate)
        return real(pieces, [c._replace(timestamp_ms=latest.timestamp_ms) for c in copies], *rest, **more)

    patch.setattr(assembly, "_judge", wrong)


@shows(Kind.LOST, since=25)
def the_count_that_a_repeat_brings_is_not_learnt(patch: Patch) -> None:
    """So that what was sent before its length was known waits for ever."""
    real = assembly._judge

    def wrong(pieces: Any, copies: Any, *rest: Any, **more: Any) -> Any:
        first = {id(c) for c in pieces}
        return real(pieces, [c if id(c) in first else c._replace(count=None) for c in copies], *rest, **more)

    patch.setattr(assembly, "_judge", wrong)


@shows(Kind.INVENTED, act="a_topic_is_made_anew_under_what_is_parked")
def every_chunk_is_said_to_lie_in_the_topic_that_its_batch_read(patch: Patch) -> None:
    """And nobody compares the row with the decision, which would find it out."""
    patch.setattr(publish, "check_rows", lambda *_, **__: None)
    patch.setattr(fake_batch, "topics_of", lambda one, topic_id: tuple(topic_id for _ in one.pieces))
