"""Rows: what is published is what was sent, once, and nothing that waits for somebody; what is held has its bytes.

What is whole and sound is published in the end, and what somebody let go is held no longer.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Set
from itertools import permutations

from tests.domain.oracle import Piece, Truth
from tests.histories.anomaly import Kind
from tests.histories.case import Case, Rule
from tests.histories.events import (
    Abandoned,
    Committed,
    Coordinate,
    Event,
    Held,
    Produced,
    Published,
    Quiet,
    ReadBack,
    Truncated,
)
from tests.histories.ledger import Identity
from tests.histories.promotion_events import Replaced
from tests.histories.table_events import Deleted

Chunk = tuple[str, int, int, int, str]
_PUBLISH = ("redrive", "accept", "pick")


class RowRules(Rule):
    def __init__(self, case: Case) -> None:
        super().__init__(case)
        self._misread: set[str] = set()
        self._given_up: set[str] = set()
        """Of which somebody has given up a decision before it was committed, and nothing was decided since."""
        self._replaced: dict[str, set[Identity]] = {}
        """Of rows that a head takes out, by waveform, what they were made of."""
        self._judged: dict[str, list[tuple[bytes, tuple[Chunk, ...]]]] = defaultdict(list)
        """Rows that batches ever published."""
        self._refused: set[str] = set()
        """What was held while the gate refused it: whoever lets it pass redrives it."""
        self._deleted: dict[str, int] = {}
        """When somebody deleted their rows last."""
        self._read_at: dict[Coordinate, int] = {}
        """When an ingest was committed that read it last."""

    def first_look(self, event: Event) -> None:
        if isinstance(event, Replaced):
            rows = {i: self.ledger.published[i][-1] for i in event.ids if self.ledger.published.get(i)}
            self._replaced = {i: {p.same for _, p in filter(None, self._pieces_of(row))} for i, row in rows.items()}

    def take(self, event: Event, before: Committed | None) -> None:
        match event:
            case Published():
                if len(self.ledger.published[event.id]) > 1:
                    self.case.say(Kind.DUPLICATE, f"published again with head {event.sequence}", [event.id])
                if not event.plan_id:
                    self._put_back(event)
                    return
                self._judged[event.id].append((event.samples, event.chunks))
                with self.ledger.as_planned(event.plan_id):
                    self._row(event)
            case Committed():
                self._replaced = {}
                if event.kind == "ingest":
                    self._read_at |= dict.fromkeys(self.ledger.reads.get(event.plan_id, ()), self.case.at)
            case Deleted():
                self._deleted |= dict.fromkeys(event.ids, self.case.at)
            case Truncated():
                self._read_at = {self.ledger.moved.get(c, c): at for c, at in self._read_at.items()}
            case Held():
                self._held(event)
                self._refused |= {event.id or ""} & self.case.refused
                self._given_up.discard(event.id or "")
            case ReadBack():
                self._read_back(event)
            case Abandoned() if (plan := self.ledger.plans.get(event.plan_id)) is not None:
                self._given_up |= set(plan.ids) if plan.action in _PUBLISH else set()
            case Quiet():
                self._held_for_ever(event)

    def close(self) -> None:
        if self.case.quiet:
            self._what_was_never_published()

    def _row(self, row: Published) -> None:
        where: list[Coordinate] = [(t, p, o) for t, p, o, _, _ in row.chunks]
        found = self._pieces_of(row)
        unknown = [c for c, piece in zip(where, found, strict=True) if piece is None]
        pieces = [p for _, p in filter(None, found)]
        if unknown or not pieces:
            self.case.say(Kind.INVENTED, "published from where no visible chunk of it was produced", [row.id], unknown)
            return
        action = self._decided(row)
        self._nobody_decided(row, pieces, action)
        order, values = [p.seq for p in pieces], [p.value for p in pieces]
        known = self.ledger.truths(self._known(row, {c for c, _ in filter(None, found)}))[row.id]
        counts = {p.count for p in known.pieces if p.count is not None}
        truth = _picked(known, pieces) if action == "pick" else known
        kept = [(length, proof) for _, _, _, length, proof in row.chunks]
        if order != sorted(order) or (row.samples != b"".join(values) and _shuffled(row.samples, values)):
            self.case.say(Kind.ORDER, f"its chunks stand in the order {order}", [row.id], where)
        elif row.samples != b"".join(values) or kept != [(len(p.value), p.proof.hex()) for p in pieces]:
            self.case.say(Kind.ALTERED, "its bytes are not those of its chunks", [row.id], where)
        elif order != list(range(len(order))) or len(order) not in counts:
            self.case.say(Kind.ALTERED, f"it was cut short: chunks {order}, of {sorted(counts)}", [row.id], where)
        elif truth.contradicts_itself:
            self.case.say(Kind.ALTERED, "of copies that contradict each other one was taken", [row.id], where)
        elif not truth.keeps_its_word and action != "accept":
            self.case.say(Kind.INVENTED, "published although it is not what it says", [row.id], where)

    def _put_back(self, row: Published) -> None:
        """All else was looked at when it was published."""
        if (row.samples, row.chunks) not in self._judged[row.id]:
            self.case.say(Kind.INVENTED, "put back as it never was", [row.id])
        pieces = {(row.id, n, c[3], bytes.fromhex(c[4])) for n, c in enumerate(row.chunks)}
        if pieces & self.ledger.discarded(row.id):
            self.case.say(Kind.INVENTED, "put back though an operator discarded it", [row.id])

    def _pieces_of(self, row: Published) -> list[tuple[Coordinate, Piece] | None]:
        return [self._piece_of(row, n) for n in range(len(row.chunks))]

    def _piece_of(self, row: Published, number: int) -> tuple[Coordinate, Piece] | None:
        """Of what lay at the place of a published piece the chunk that it says it is, or any chunk of the waveform."""
        *where, _, proof = row.chunks[number]
        found = self.ledger.pieces_at(tuple(where), row.id)  # type: ignore[arg-type]
        return next((one for one in found if one[1].proof.hex() == proof), found[0] if found else None)

    def _decided(self, row: Published) -> str:
        """What an operator decided about this waveform with the batch that published it."""
        plan = self.ledger.plans.get(row.plan_id)
        return plan.action if plan is not None and row.id in plan.ids else ""

    def _nobody_decided(self, row: Published, pieces: list[Piece], action: str) -> None:
        """What the gate refuses, and what waits for a decision, is published by nobody else."""
        if row.id in self.case.refused and action != "accept":
            self.case.say(Kind.INVENTED, "published although the gate refuses it", [row.id])
        if action:
            return
        blocked, gone = self.ledger.blocked(row.id), self.ledger.discarded(row.id)
        # What was published of what is held was decided about then: who replaces that by the same decides nothing.
        if blocked and not {p.same for p in pieces} <= self._replaced.get(row.id, set()):
            self.case.say(Kind.INVENTED, f"published although it is held as {blocked} and nobody decided", [row.id])
        elif any(p.same in gone for p in pieces):
            self.case.say(Kind.INVENTED, "published from a chunk that an operator discarded", [row.id])

    def _known(self, row: Published, own: set[Coordinate]) -> list[Produced]:
        """The records that a row was decided on: what its batch read, what was held then, and its own; what an
        operator discarded is not among them."""
        known = own | self.ledger.held_records() | self.ledger.reads.get(row.plan_id, set()) | self._before_it(row)
        known |= {f for c in own for f in self._sent_again_there(c)}
        records = [self.ledger.records[c] for c in known if self.ledger.committed(c)]
        return self._without_let_go(row.id, records, own={self.ledger.records[c] for c in own})

    def _without_let_go(
        self, waveform_id: str, records: list[Produced], *, own: Set[Produced] = frozenset()
    ) -> list[Produced]:
        """Without the copies of a waveform that an operator let go."""
        if not self.ledger.discarded_words(waveform_id):
            return records
        pieces = {r: p for r in records if (p := self.ledger.piece(r)) is not None and p.id == waveform_id}
        return [r for r in records if r in own or r not in pieces or not self.ledger.is_let_go(pieces[r])]

    def _sent_again_there(self, c: Coordinate) -> list[Coordinate]:
        """What lay at the same place before, or does since, and is the same but for when it was sent: whatever is held
        from there may be of either."""
        record = self.ledger.records[c]
        piece = self.ledger.piece(record)
        there = self.ledger.pieces_at(record.coordinate, piece.id) if piece is not None else []
        return [f for f, other in there if piece is not None and other._replace(time_ms=piece.time_ms) == piece]

    def _before_it(self, row: Published) -> set[Coordinate]:
        """What the batches of its backfill that come before it have read of its interval."""
        plan = self.ledger.plans.get(row.plan_id)
        if plan is None or plan.scope is None or not plan.after:
            return set()
        start, end = plan.scope
        read = {c for one in plan.after for c in self.ledger.reads.get(one, ()) if self.ledger.committed(c)}
        mine = {c: self.ledger.piece(self.ledger.records[c]) for c in read}
        return {c for c, p in mine.items() if p is not None and p.id == row.id and start <= p.start_ns < end}

    def _held(self, row: Held) -> None:
        values = [self.ledger.records[c].value for c in self.ledger.places(row.coordinate) if self.ledger.committed(c)]
        if not values:
            self.case.say(Kind.INVENTED, "held where no visible record was produced", at=[row.coordinate])
        elif row.payload is not None and row.payload not in values:
            self.case.say(Kind.ALTERED, "held with other bytes than were produced", at=[row.coordinate])

    def _held_for_ever(self, event: Quiet) -> None:
        waiting = {row.id for rows in self.ledger.held.values() for row in rows if event.decided and row.valid}
        stuck = sorted(i for i in waiting if i is not None and self.ledger.undecided(i))
        if stuck:
            self.case.say(Kind.HELD_FOR_EVER, "held still, though operators let everything go", stuck)

    def _read_back(self, event: ReadBack) -> None:
        """Monotone: what was published is there, as it was, once, and nothing else is. Of a waveform the first that is
        wrong is said."""
        found: dict[str, list[bytes]] = defaultdict(list)
        for waveform_id, samples in event.rows:
            found[waveform_id].append(samples)
        for waveform_id in sorted(found.keys() | self.ledger.published.keys()):
            kind, what = self._read(found[waveform_id], self.ledger.published.get(waveform_id, []))
            if kind is not None and waveform_id not in self._misread:
                self._misread.add(waveform_id)
                self.case.say(kind, what, [waveform_id])

    @staticmethod
    def _read(found: list[bytes], published: list[Published]) -> tuple[Kind | None, str]:
        if not published:
            return Kind.INVENTED, "readers find it, and no head published it"
        if not found:
            return Kind.LOST, "published, and not in the table any more"
        if any(samples not in [row.samples for row in published] for samples in found):
            return Kind.ALTERED, "readers find other bytes than were published"
        if len(found) > len(published):
            return Kind.DUPLICATE, "readers find it more often than it was published"
        return None, ""

    def _visible(self) -> Iterator[Produced]:
        return (r for c, r in self.ledger.records.items() if self.ledger.committed(c))

    def _what_was_never_published(self) -> None:
        lost = {
            c
            for a in self.case.found
            if a.kind in (Kind.LOST, Kind.ALTERED, Kind.UNEXPLAINED_GAP)
            for c in a.coordinates
        }
        # Of what is kept: a repeat with a count where the kept copy has none is not understood (docs/guarantees.md).
        kept = self.ledger.held_records() - lost
        passed = self._by_waveform(self.ledger.records[c] for c in kept if self.ledger.committed(c))
        for waveform_id, sent in self._by_waveform(self._visible()).items():
            if waveform_id in self.ledger.published or waveform_id in self._refused | self.case.refused:
                continue
            if waveform_id in self.ledger.deleted and not self._read_again(waveform_id):
                continue  # what somebody has deleted stays away, unless it is read again
            if self.ledger.blocked(waveform_id):
                continue  # somebody has to decide, or has
            if waveform_id in self._given_up:
                continue  # nobody takes up again what waits no longer, but who decides about it
            # What was picked goes on without the copies that were not.
            owed = [self.ledger.truths(self._without_let_go(waveform_id, some)) for some in (sent, passed[waveform_id])]
            if all(waveform_id in truth and truth[waveform_id].publishable for truth in owed):
                self.case.say(Kind.LOST, "whole and sound, and never published", [waveform_id])

    def _by_waveform(self, records: Iterable[Produced]) -> dict[str, list[Produced]]:
        found: dict[str, list[Produced]] = defaultdict(list)
        for r in records:
            if (piece := self.ledger.piece(r)) is not None:
                found[piece.id].append(r)
        return found

    def _read_again(self, waveform_id: str) -> bool:
        """Whether all that there is of it was read since its row was deleted."""
        pieces = {c: self.ledger.piece(r) for c, r in self.ledger.records.items() if self.ledger.committed(c)}
        mine = [c for c, piece in pieces.items() if piece is not None and piece.id == waveform_id]
        return all(self._read_at.get(c, -1) > self._deleted[waveform_id] for c in mine)


def _picked(known: Truth, pieces: list[Piece]) -> Truth:
    """Of copies that contradict each other, the one that was picked, with the times of all that repeat it."""
    mine = {p.same for p in pieces}
    repeat = [p for p in known.pieces if p.same in mine]
    return Truth((*pieces, *(p._replace(digest=None, count=None) for p in repeat)))


def _shuffled(samples: bytes, values: list[bytes]) -> bool:
    """Whether the same pieces were joined in another order."""
    if len(samples) != sum(map(len, values)) or len(values) > 6:
        return False
    return any(b"".join(p) == samples for p in permutations(values))
