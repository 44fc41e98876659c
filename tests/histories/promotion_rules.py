"""Promotions: exactly what was shown is put in the place of what is there, and what was shown is so.

What a head takes out of the table is published with it again, or held; the positions stay. Undone, each row is there
again as it was, and what had come in its place is not; and nobody is told any more that it is done.
"""

from __future__ import annotations

import hashlib

from tests.histories.anomaly import Kind
from tests.histories.approval_events import Approved, Declared
from tests.histories.case import Case, Rule
from tests.histories.events import (
    Answered,
    Asks,
    Committed,
    Coordinate,
    Ended,
    Event,
    Looked,
    Planned,
    Produced,
    Published,
    Read,
    Started,
    Undone,
)
from tests.histories.ledger import BLOCKS, Identity, identity
from tests.histories.promotion_events import Offered, Replaced
from tests.histories.table_events import CatalogSetBack, TakenOut

Row = tuple[bytes, tuple[tuple[str, int, int, int, str], ...]]
"""Of a published waveform its samples and chunks."""


_NOTHING = "there is nothing to promote. A definition"
"""Of a refusal that passes nothing over either."""
_WHY = (
    "is no chunk by the definition",
    "contradicts its row",
    "contradicts what is held of it",
    "the batch would make something else of it",
)


class PromotionRules(Rule):
    """`offered`: by preview, of each waveform which row is there and which is to be, and by which definition; `asked`:
    by run, what it was approved to do, and by which; `begun`: by plan. `out`, `put`: of the head that is about to be
    committed; `waiting`: what of `out` waits for a decision that nobody made; `done`: of heads that were committed, by
    plan. `undoing`: by run. `stood`: of runs at work, whether what they were to do was so at any moment since.
    `answered`: plans at whose gate somebody has. `shows`: the run that shows one; `its_range`: what it read for that.
    `fresh`: the preview since which nothing happened but what `at_once` did, the run that was begun on it."""

    hears = (Produced, Looked)

    def __init__(self, case: Case) -> None:
        super().__init__(case)
        self.offered: dict[str, tuple[dict[str, tuple[str, str]], int]] = {}
        self.asked: dict[str, tuple[str, int]] = {}
        self.begun: dict[str, tuple[str, int]] = {}
        self.out: dict[str, Row] = {}
        self.put: dict[str, Row] = {}
        self.waiting: list[str] = []
        self.done: dict[str, tuple[dict[str, Row], dict[str, Row]]] = {}
        self.undoing: dict[str, Undone] = {}
        self.stood: dict[str, bool] = {}
        self.fresh = self.at_once = self.shows = ""
        self.its_range: set[Coordinate] = set()
        self.answered: set[str] = set()
        self.definition = 0

    def first_look(self, event: Event) -> None:
        if isinstance(event, Replaced):
            self.out = {i: _row(rows[-1]) for i in event.ids if (rows := self.ledger.published.get(i))}
            self.waiting = sorted(i for i, row in self.out.items() if self._waits(i, row))

    def take(self, event: Event, before: Committed | None) -> None:
        self._look_what_stands(event)
        self._can_be_done(event)
        match event:
            case Declared() | Asks():
                self.definition += 1
            case Started(what="promote: shown"):
                self.shows, self.its_range = event.run, set()
            case Read(run=self.shows):
                self.its_range |= {(event.topic_id, event.partition, o) for o in event.offsets}
            case Offered():
                rows = {i: (was, made) for i, was, made in event.rows}
                self.offered[event.preview] = rows, self.definition
                self._is_so(event.preview, rows)
                passed = dict(event.passed)
                self._is_all(event.preview[:8], rows.keys() | passed.keys())
                self._is_passed_over(event.preview[:8], passed)
            case Ended(run=self.shows) if _NOTHING in event.text:
                self._is_all(event.run, set())
            case Answered():
                self.answered.add(event.plan_id)
            case Approved():
                self.asked[event.run] = event.preview, self.definition
            case Planned(kind="promote") if event.run in self.asked:
                self.begun.setdefault(event.plan_id, self.asked[event.run])
            case Undone():
                self.undoing[event.run] = event
            case Published():
                self.put[event.id] = _row(event)
            case Committed():
                self._committed(before, event)
                self.out, self.put, self.waiting = {}, {}, []

    def _is_so(self, preview: str, rows: dict[str, tuple[str, str]]) -> None:
        """As of now: the row that is said to be there is, and what is to come is what the log has, and nothing else
        says otherwise."""
        readable = self.ledger.readable()
        there = self.ledger.truths(self.ledger.records[c] for c in readable)
        # By the records of its range alone, what only a repeat elsewhere makes plausible is none (docs/guarantees.md).
        here = self.ledger.truths(self.ledger.records[c] for c in readable & self.its_range)
        timeless = {i for i, truth in here.items() if not truth.is_of_its_time}
        for waveform_id, (was, made) in rows.items():
            known = self.ledger.published.get(waveform_id)
            truth = there.get(waveform_id)
            sound = truth is not None and truth.publishable and waveform_id not in self.case.refused
            if was != (_digest(_row(known[-1])) if known else ""):
                self._say(Kind.UNTRUE, f"{preview[:8]} names another row than the one that is there", waveform_id)
            elif not made and sound and waveform_id not in timeless:
                self._say(Kind.UNTRUE, f"{preview[:8]} would take out what nothing refuses", waveform_id)
            elif made and waveform_id in self.case.refused:
                self._say(Kind.UNTRUE, f"{preview[:8]} would publish what the gate refuses", waveform_id)

    def _is_all(self, who: str, named: set[str]) -> None:
        """What the range has whole, and would be published otherwise than it is, is offered or passed over by name."""
        seen = self.ledger.readable() & self.its_range
        here = self.ledger.truths(self.ledger.records[c] for c in seen)
        whole = sorted(i for i, truth in here.items() if truth.publishable and i not in named)
        if left := [i for i in whole if (self._goes(i, seen) if i in self.ledger.published else self._comes(i, seen))]:
            self._say(Kind.UNTRUE, f"{who} leaves out what would change", *left)

    def _goes(self, waveform_id: str, seen: set[Coordinate]) -> bool:
        """Whether nothing but the gate says anything of a row, and nobody has accepted that."""
        row = self.ledger.published[waveform_id][-1]
        plan = self.ledger.plans.get(row.plan_id)
        accepted = row.plan_id in self.answered or plan is None or plan.action == "accept"
        mine = set(_pieces(waveform_id, _row(row)))
        others = [one for one in self.ledger.newest(waveform_id) if identity(one) not in mine]
        there = {c for c in seen if (piece := self.ledger.piece(self.ledger.records[c])) and piece.same in mine}
        lies = {chunk[:3] for chunk in row.chunks} <= there
        return waveform_id in self.case.refused and lies and not (accepted or others)

    def _comes(self, waveform_id: str, seen: set[Coordinate]) -> bool:
        """Whether all of it is held from where it lies in the range, and waits for nobody."""
        held = self.ledger.newest(waveform_id)
        lies = [(c, piece.same) for c in seen if (piece := self.ledger.piece(self.ledger.records[c])) is not None]
        mine = {(c, same) for c, same in lies if same[0] == waveform_id}
        waits = waveform_id in self.case.refused or any(one.reason in (*BLOCKS, "discarded") for one in held)
        return {(one.coordinate, identity(one)) for one in held} == mine and not waits

    def _is_passed_over(self, who: str, passed: dict[str, str]) -> None:
        for waveform_id, why in passed.items():
            row = self.ledger.published.get(waveform_id)
            outside = row is not None and not {chunk[:3] for chunk in row[-1].chunks} <= self.its_range
            held = any(one.reason in why for one in self.ledger.newest(waveform_id))
            known = {"chunks outside": outside, "chunks of it are held as": held}
            said = next((so for words, so in known.items() if words in why), any(words in why for words in _WHY))
            if not said:
                self._say(Kind.UNTRUE, f"{who} passes over what it says nothing true of: {why}", waveform_id)

    def _look_what_stands(self, event: Event) -> None:
        """Whoever ends well has committed it, which others judge, or has found it done, and what it did still there."""
        match event:
            case Approved():
                self.stood[event.run] = self._stands(event.preview)
            case Committed() | CatalogSetBack() | TakenOut():
                mine = event.run if isinstance(event, Committed) else ""
                for run in self.stood:
                    self.stood[run] |= run == mine or self._stands(self.asked[run][0])
            case Ended() if event.run in self.stood:
                if not self.stood.pop(event.run) and event.reason == "done":
                    self._say(Kind.UNTRUE, f"{event.run} is told that it is done, and it is not so")

    def _can_be_done(self, event: Event) -> None:
        """What was shown is done by whoever does it right away, since nothing has changed."""
        match event:
            case Offered():
                self.fresh, self.at_once = event.preview, ""
            case Approved() if not self.at_once and event.preview == self.fresh:
                self.at_once = event.run
            case Ended(run=self.at_once, reason="Refused") if "not what was shown any more" in event.text:
                self._say(Kind.UNTRUE, f"{self.fresh[:8]} was shown, and is refused at once: {event.text}")
            case _ if not self.at_once or getattr(event, "run", "") != self.at_once:
                self.fresh = self.at_once = ""

    def _stands(self, preview: str) -> bool:
        rows, _ = self.offered.get(preview, ({}, 0))
        there = {i: self.ledger.published.get(i) for i in rows}
        return all(made == (_digest(_row(known[-1])) if (known := there[i]) else "") for i, (_, made) in rows.items())

    def _committed(self, before: Committed | None, head: Committed) -> None:
        if head.kind != "promote":
            if self.out:
                self._say(Kind.LOST, f"head {head.sequence} ({head.kind}) takes published rows out", *self.out)
            return
        if before is None or head.positions != before.positions:
            self._say(Kind.STALE_WRITER, f"head {head.sequence} (promote) moves the positions")
        if head.plan_id:
            if self.waiting:
                self._say(Kind.STALE_WRITER, f"head {head.sequence} replaces what waits for a decision", *self.waiting)
            self.done[head.plan_id] = dict(self.out), dict(self.put)
            self._is_what_was_shown(head)
        elif head.run in self.undoing:
            self._puts_back(head, self.undoing[head.run])
        else:
            self._say(Kind.STALE_WRITER, f"head {head.sequence} (promote) is of no plan, and nobody undid one")
        lost = sorted(i for i, row in self.out.items() if not all(map(self.ledger.stands, _pieces(i, row))))
        if lost:
            self._say(Kind.LOST, f"head {head.sequence} takes out what is neither published nor held then", *lost)

    def _waits(self, waveform_id: str, row: Row) -> bool:
        mine = set(_pieces(waveform_id, row))
        return any(one.reason in BLOCKS and identity(one) not in mine for one in self.ledger.newest(waveform_id))

    def _is_what_was_shown(self, head: Committed) -> None:
        preview, definition = self.begun.get(head.plan_id, ("", -1))
        rows, shown_by = self.offered.get(preview, ({}, -1))
        did = {i: tuple(_digest(some[i]) if i in some else "" for some in (self.out, self.put)) for i in rows}
        others = sorted({i for i in rows if did[i] != rows[i]} | (self.out.keys() | self.put.keys()) - rows.keys())
        if not rows or others:
            self._say(Kind.STALE_WRITER, f"head {head.sequence} promotes what nobody was shown", *others)
        elif definition != shown_by:
            self._say(Kind.STALE_WRITER, f"head {head.sequence} promotes by a definition that nobody was shown", *rows)

    def _puts_back(self, head: Committed, asked: Undone) -> None:
        plan_id = asked.plan_id or next((h.plan_id for h in self.ledger.heads if h.sequence == asked.of), "")
        out, put = self.done.get(plan_id, ({}, {}))
        others = sorted(i for i in out.keys() | self.put.keys() if out.get(i) != self.put.get(i))
        others += sorted(put.keys() ^ self.out.keys())
        if plan_id not in self.done or others:
            what = f"undo, as head {head.sequence}: the rows are not those of before head {asked.of or plan_id[:8]}"
            self._say(Kind.STALE_WRITER, what, *others)

    def _say(self, kind: Kind, what: str, *ids: str) -> None:
        self.case.say(kind, f"promotion: {what}", ids)


def _row(event: Published) -> Row:
    return event.samples, event.chunks


def _pieces(waveform_id: str, row: Row) -> list[Identity]:
    return [(waveform_id, n, length, bytes.fromhex(proof)) for n, (*_, length, proof) in enumerate(row[1])]


def _digest(row: Row) -> str:
    return hashlib.sha256(b"".join(bytes.fromhex(proof) for *_, proof in row[1])).hexdigest()
