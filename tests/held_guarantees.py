"""What is held, decision by decision: nothing of it changes without somebody's word, and every word can be taken back.

Derived from the rows of the held snapshot that the newest head names, which are never rewritten, from the heads, and
from what operators' plans say. Shares no code with the product.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

from tests.domain.oracle import piece_of
from tests.fakes.fake_log import FOR_EVER
from tests.guarantees import HeldRow, Passed, Row, Sight

FOR_PEOPLE = frozenset({"conflict", "parked", "discarded"})
"""What stays until somebody decides."""
PUBLISH = frozenset({"redrive", "accept", "pick"})


class Decided:
    """Held: what was parked, is in conflict or was discarded changes only by a decision about that waveform, a restored
    chunk is held as it was before, and nothing is published that waits for a decision, was discarded, or is one of
    several copies that contradict each other.

    Remembers what it has looked at, so that it can be asked after every step.
    """

    def __init__(self) -> None:
        self._rows = 0
        self._published: set[tuple[str, int]] = set()

    def check(self, sight: Sight) -> None:
        choices = {h.sequence: sight.plans[h.plan_id].choice for h in sight.heads if h.plan_id in sight.plans}
        rows = [r for r in sight.held if r.valid]
        if len(rows) != self._rows:
            self._rows = len(rows)
            for some in _by(rows, lambda r: r.key).values():
                for n, (before, row) in enumerate(pairwise(some)):
                    self._changed(some[: n + 1], before, row, choices.get(row.sequence))
        by_id = _by(rows, lambda r: r.id)
        for made in sight.published:
            if (made.id, made.sequence) not in self._published:
                self._published.add((made.id, made.sequence))
                self._was_published(sight, made, by_id.get(made.id, []), choices.get(made.sequence))

    def _changed(self, known: Sequence[HeldRow], before: HeldRow, row: HeldRow, choice: Any) -> None:
        where = f"held: what is at {row.coordinate} of {row.id} was {before.reason}, and {row.reason} at {row.sequence}"
        action = choice.action.value if choice is not None and row.id in choice.ids else ""
        if before.reason in FOR_PEOPLE:
            assert action, f"{where}: nobody decided that"
        if row.reason == "discarded":
            assert action in ("discard", "pick"), f"{where}: nobody discarded it"
        if before.reason == "discarded":
            assert action == "restore", f"{where}: nobody restored it"
            was = [r.reason for r in known if r.reason != "discarded"]
            assert not was or was[-1] == row.reason, f"{where}: it was {was[-1]} when it was discarded"

    def _was_published(self, sight: Sight, row: Row, mine: Sequence[HeldRow], choice: Any) -> None:
        where = f"held: {row.id} was published at {row.sequence}"
        action = choice.action.value if choice is not None and row.id in choice.ids else ""
        before = _newest(r for r in mine if r.sequence < row.sequence)
        reasons = {r.reason for r in before}
        waited = reasons & {"conflict", "parked"} or reasons == {"discarded"}
        assert not waited or action in PUBLISH, f"{where}, though it was held as {sorted(reasons)}: nobody decided that"
        pieces = {(seq, length, piece) for seq, (_, length, piece) in enumerate(row.chunks)}
        now = _newest(r for r in mine if r.sequence <= row.sequence)
        standing = {r.piece for r in now if r.reason != "discarded"}
        discarded = {r.piece for r in now if r.reason == "discarded"} - standing
        assert not pieces & discarded, f"{where}, and was discarded"
        read = _read(sight, row)
        others = (standing | read) - pieces - discarded
        assert not others, f"{where}, of copies that contradict each other"


def _read(sight: Sight, row: Row) -> set[tuple[int | None, int, bytes]]:
    """The pieces of this waveform that the batch read which published it."""
    plan_id = next((h.plan_id for h in sight.heads if h.sequence == row.sequence), "")
    plan = sight.plans.get(plan_id)
    if plan is None:
        return set()
    found: dict[Any, list[Any]] = {}
    passed = Passed(sight.heads)
    for record in sight.records:
        lives = sight.lives.get(record)
        # What was cut off since may have been gone before this batch read there; what a head went past was there.
        if lives is not None and all(end < FOR_EVER for _, end in lives) and not passed.there(record, lives):
            continue
        topic_id, partition, offset = record.coordinate
        if topic_id == plan.topic_id and any(
            r.partition == partition and r.start <= offset < r.end for r in plan.ranges
        ):
            found.setdefault(record.coordinate, []).append(piece_of(record))
    # Where a place was used again nobody can tell from here which of the two was read.
    certain = [some[0] for some in found.values() if len(some) == 1]
    return {(p.seq, len(p.value), p.proof) for p in certain if p is not None and p.id == row.id}


def _newest(rows: Any) -> list[HeldRow]:
    newest: dict[Any, HeldRow] = {}
    for r in sorted(rows, key=lambda r: r.sequence):
        newest[r.key] = r
    return list(newest.values())


def _by(rows: Sequence[HeldRow], key: Any) -> Mapping[Any, list[HeldRow]]:
    found: dict[Any, list[HeldRow]] = {}
    for r in sorted(rows, key=lambda r: r.sequence):
        found.setdefault(key(r), []).append(r)
    return found
