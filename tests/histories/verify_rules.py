"""Verifications: what is said of each waveform of a range is what became of it, none is left out, and who verifies
writes nothing.

    rows   of the log in the range                            it is
    two                                                       differs
    one    its chunks, all of them, and no other              same; differs where the row was altered, or its places are
                                                              not where they lie; newly failing where it is refused
    one    its chunks, all of them, and others, too           differs
    one    whatever lies there, where it lacks its last one   differs
    one    not all: some lay before the log's beginning       missing in Kafka
    one    not all: some are not where the row says           not found in Kafka
    one    not all: the others lie elsewhere                  outside; differs, where one says another number
    none   some that an ingest has read, held from nowhere    missing in the table
    none   all of them held from where they lie               held; discarded, where each of them is
    none   held, from where it lies no more                   held, gone from Kafka, where that is before the log's
                                                              beginning; else not found in Kafka; lost, where the
                                                              table has no bytes of it
    none   none that was to be read yet                       outside

Where copies contradict each other, or what they say cannot be, it is asked only that something is said.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import replace

from tests.domain.oracle import Piece, Truth, piece_of
from tests.histories.anomaly import Kind
from tests.histories.case import Case, Rule
from tests.histories.events import (
    Committed,
    Coordinate,
    Event,
    Held,
    Projected,
    Published,
    Recorded,
    Started,
    Truncated,
)
from tests.histories.ledger import Identity, identity
from tests.histories.table_events import CatalogSetBack, HistoryLost
from tests.histories.verify_events import Verified

_ANYTHING: set[str] = set()
_ALONE, _LOST, _NOT_FOUND = "held, gone from Kafka", "lost", "not found in Kafka"
Lies = tuple[Coordinate, Piece]


class VerifyRules(Rule):
    """`verifying`: runs that do. `read`: what ingests have read whose heads are there, and by which; `vanished`: heads
    whose rows were lost, and stand in no history again. `readable`: what the log has now."""

    def __init__(self, case: Case) -> None:
        super().__init__(case)
        self.verifying: set[str] = set()
        self.read: dict[Coordinate, set[int]] = defaultdict(set)
        self.vanished: set[int] = set()
        self.readable: set[Coordinate] = set()

    def take(self, event: Event, before: Committed | None) -> None:
        match event:
            case Started() if event.what == "verify":
                self.verifying.add(event.run)
            case HistoryLost():
                self.vanished |= set(event.sequences)
            case CatalogSetBack():
                kept = {c: {n for n in by if n <= event.sequence} for c, by in self.read.items()}
                self.read = defaultdict(set, {c: by for c, by in kept.items() if by})
            case Truncated():
                where = (event.topic_id, event.partition)
                gone = [c for c in self.read if c[:2] == where and c[2] >= event.end]
                for c in gone:
                    del self.read[c]
            case Committed() | Projected() | Held() | Recorded() if event.run in self.verifying:
                self.case.say(Kind.STALE_WRITER, f"{event.run} verifies, and writes {type(event).__name__}")
            case Recorded():
                self.vanished.discard(event.sequence)
            case Committed() if event.kind == "ingest":
                for c in self.ledger.reads.get(event.plan_id, ()):
                    self.read[c].add(event.sequence)
            case Verified():
                self._verified(event)

    def _verified(self, event: Verified) -> None:
        self.readable = self.ledger.readable()
        found, lies = dict(event.found), self._lies(event.read)
        unread = [c for c in self.readable if _is_in(c, event.asked) and not _is_in(c, event.read)]
        if unread:
            self.case.say(Kind.UNTRUE, f"{event.run} leaves out what is there", at=unread)
        known = {r.id for rows in self.ledger.published.values() for r in rows if self._touches(r, event.asked)}
        held = self._held_from(event) - self.ledger.published.keys()
        for waveform_id in sorted((known - set(event.deleted)) | held | lies.keys() | found.keys()):
            here = lies.get(waveform_id, [])
            wanted = self._expected(waveform_id, here, event)
            if wanted and waveform_id in self.ledger.published and waveform_id not in event.deleted:
                wanted |= self._beside(waveform_id, event)
            said = found.get(waveform_id, "nothing")
            if wanted and said not in wanted:
                what = f"{event.run} says {said!r}, and it is {' or '.join(sorted(wanted))}"
                self.case.say(Kind.UNTRUE, what, [waveform_id])

    def _lies(self, ranges: tuple[tuple[int, int, int], ...]) -> dict[str, list[Lies]]:
        found: dict[str, list[Lies]] = defaultdict(list)
        for c in sorted(c for c in self.readable if _is_in(c, ranges)):
            piece = self.ledger.piece(self.ledger.records[c])
            if piece is not None:
                found[piece.id].append((c, piece))
        return found

    def _held_from(self, event: Verified) -> set[str]:
        """Waveforms of which a chunk is held from where it lies no more."""
        rows = (row for rows in self.ledger.held.values() for row in rows if row.valid and self.ledger.counts(row))
        return {row.id for row in rows if row.id is not None and self._away([row], event)}

    def _touches(self, row: Published, ranges: tuple[tuple[int, int, int], ...]) -> bool:
        return any(t == self.ledger.topic_id and _is_in((t, p, o), ranges) for t, p, o, _, _ in row.chunks)

    def _expected(self, waveform_id: str, lies: list[Lies], event: Verified) -> set[str]:
        """The words that are right; none: whatever is said."""
        rows = [] if waveform_id in event.deleted else self.ledger.published.get(waveform_id, [])
        truth = Truth(tuple(piece for _, piece in lies))
        if waveform_id in event.doubled:
            return {"differs"}
        if not rows:
            return self._without_row(waveform_id, lies, event)
        row = rows[-1]
        if waveform_id in event.cut:
            # Whatever the log has of it: it does not agree with itself. Only by what it still names is it found.
            left = replace(row, chunks=row.chunks[:-1])
            return {"differs"} if lies or self._touches(left, event.asked) else {"differs", "nothing"}
        wanted = [(row.id, n, length, bytes.fromhex(proof)) for n, (*_, length, proof) in enumerate(row.chunks)]
        copies = {piece.same for _, piece in lies}
        if copies - set(wanted) or (lies and truth.contradicts_itself):
            return _ANYTHING
        if not copies >= set(wanted):
            # A copy that says another number than there were is none of the row's, and nobody has held it.
            disagrees = any(piece.count not in (None, len(row.chunks)) for _, piece in lies)
            return self._not_all(row, lies, event) | ({"differs"} if disagrees else set())
        if not truth.whole:
            return _ANYTHING  # nothing of the range says how many there are
        refused = waveform_id in self.case.refused or not truth.keeps_its_word
        # Of what nothing is stitched today, what became of the chunks that its row names comes first.
        of_its_chunks = self._not_all(row, lies, event) if refused else set()
        if refused and not of_its_chunks:
            return _ANYTHING
        others = {"newly failing", "accepted", *of_its_chunks} if refused else set()
        if waveform_id in event.altered or self._elsewhere(row, lies, event):
            return {"differs", *others}
        return others or {"same"}

    def _elsewhere(self, row: Published, lies: list[Lies], event: Verified) -> bool:
        """Whether a place that the row names was read, and its chunk is not there."""
        there = {c: piece.proof.hex() for c, piece in lies}
        places = [((t, p, o), proof) for t, p, o, _, proof in row.chunks if t == self.ledger.topic_id]
        return any(_is_in(c, event.read) and there.get(c) != proof for c, proof in places)

    def _beyond_the_end(self, place: Coordinate) -> bool:
        """For readers of committed data, to whom a transaction that is open is the end."""
        seen, (topic_id, p, offset) = self.ledger.seen, place
        return place not in seen or any(
            what == "open" and c[:2] == (topic_id, p) and c[2] <= offset for c, what in seen.items()
        )

    def _not_all(self, row: Published, lies: list[Lies], event: Verified) -> set[str]:
        there = {c: piece.proof.hex() for c, piece in lies}
        mine = [((t, p, o), proof) for t, p, o, _, proof in row.chunks if t == self.ledger.topic_id]
        if any(c[2] < self.ledger.log_start.get(c[:2], 0) for c, _ in mine):
            return {"missing in Kafka"}
        if any(c in self.ledger.records and self.ledger.piece(self.ledger.records[c]) is None for c, _ in mine):
            return _ANYTHING
        if any(self._beyond_the_end(c) for c, _ in mine):
            return {"not found in Kafka"}  # what was read there was cut off since
        absent = any(_is_in(c, event.read) and there.get(c) != proof for c, proof in mine)
        return {"not found in Kafka"} if absent else {"outside"}

    def _without_row(self, waveform_id: str, lies: list[Lies], event: Verified) -> set[str]:
        held = self.ledger.newest(waveform_id)
        copies = {identity(row) for row in held}
        head = self.ledger.heads[-1]
        beyond = {c for c, _ in lies if c[2] >= head.positions.get(c[1], 0)}
        loose = [c for c, piece in lies if piece.same not in copies and c not in beyond]
        # What is a chunk today is taken for the record that is held from there (docs/guarantees.md).
        taken_for_another = {c for c, _ in lies if self._was_no_chunk(c)}
        if loose:
            owed = all(self.read.get(c, set()) - self.vanished for c in loose)
            # Where no head is left that proves that it is the log that was read (docs/guarantees.md). What is held of
            # it comes before that.
            skipped = any(_is_in(c, head.skipped) for c in loose)
            passed = (self._as_held(held, event) if held else {"skipped"}) if skipped else set()
            if taken_for_another.issuperset(loose):
                passed |= {"held"}
            return {"missing in the table", *passed} if owed else _ANYTHING
        if not held:
            return _ANYTHING if taken_for_another else {"outside"} if lies else {"outside", "nothing"}
        return self._as_held(held, event) | ({"held"} if taken_for_another else set())

    def _as_held(self, held: list[Held], event: Verified) -> set[str]:
        standing = [row for row in held if row.reason != "discarded"]
        if not standing:
            return {"discarded"}
        away = self._away(standing, event)
        if self._are_others((r.coordinate, identity(r)) for r in standing) or any(map(self._is_taken_for, standing)):
            return {"held", _ALONE, _LOST, _NOT_FOUND}
        return {next((word for word in (_LOST, _NOT_FOUND, _ALONE) if word in away), "held")}

    def _away(self, rows: list[Held], event: Verified) -> set[str]:
        """What is to be said of those that are held from where they lie no more."""
        mine = [row for row in rows if row.topic_id == self.ledger.topic_id and _is_in(row.coordinate, event.asked)]
        found: set[str] = set()
        for row in (row for row in mine if not (self._is_there(row, event) or self._is_taken_for(row))):
            gone = row.offset < self.ledger.log_start.get(row.coordinate[:2], 0)
            found.add(_ALONE if gone else _NOT_FOUND)
            if not self.ledger.stands(identity(row)):
                found.add(_LOST)
        return found

    def _is_there(self, row: Held, event: Verified) -> bool:
        """Whether it lies where it is held from, also as what is no chunk by what is asked since."""
        c = row.coordinate
        piece = piece_of(self.ledger.records[c]) if c in self.readable and _is_in(c, event.read) else None
        return piece is not None and piece.same == identity(row)

    def _is_taken_for(self, row: Held) -> bool:
        """Whether what lies there now is no chunk, of the record time of what lay there before: it may be taken for
        that (docs/guarantees.md)."""
        c = row.coordinate
        record = self.ledger.records.get(c)
        if record is None or self.ledger.piece(record) is not None:
            return False
        return any(self.ledger.records[f].timestamp_ms == record.timestamp_ms for f in self.ledger.former.get(c, ()))

    def _was_no_chunk(self, c: Coordinate) -> bool:
        """Whether a record that is no chunk is held from this place, which has another one since."""
        there = self.ledger.held.get(c, ())
        return any(self.ledger.counts(row) and not row.valid for row in there)

    def _beside(self, waveform_id: str, event: Verified) -> set[str]:
        """What may come first of a waveform that is published: what is held beside that, and lies there no more. That
        it is gone from Kafka is no difference."""
        held = self.ledger.newest(waveform_id)
        if self._are_others((row.coordinate, identity(row)) for row in held):
            return {_LOST, _NOT_FOUND}
        return self._away(held, event) - {_ALONE}

    def _are_others(self, known: Iterable[tuple[Coordinate, Identity]]) -> bool:
        """Whether at any of these places the same lies, and lay before, sent at another time: what is held may be of
        that."""

        def is_same(place: Coordinate, same: Identity) -> bool:
            piece = piece_of(self.ledger.records[place])
            return piece is not None and piece.same == same

        records, former = self.ledger.records, self.ledger.former
        return any(
            is_same(c, same) and is_same(f, same) and records[f].timestamp_ms != records[c].timestamp_ms
            for c, same in known
            if c in records
            for f in former.get(c, ())
        )


def _is_in(c: Coordinate, ranges: tuple[tuple[int, int, int], ...]) -> bool:
    return any(p == c[1] and start <= c[2] < end for p, start, end in ranges)
