"""Intervals: where a backfill ended well, what the log had whole of its interval when it was planned is published."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import NamedTuple

from tests.domain.oracle import Piece, Truth
from tests.histories.anomaly import Kind
from tests.histories.case import Case, Rule
from tests.histories.events import Committed, Coordinate, Event, Held, Looked, Planned, Started, Truncated, Where
from tests.histories.interval_events import Backfilled
from tests.histories.ledger import BLOCKS, Ledger
from tests.histories.promotion_events import GateSays, Replaced
from tests.histories.table_events import CatalogSetBack, HistoryLost

_DECIDES = {*BLOCKS, "discarded"}
_LOOKS_BACK_MS = 7 * 86400 * 1000
"""So much earlier than the interval a chunk's record time may be (`max_clock_skew`)."""


class Noted(NamedTuple):
    """Offsets `[start, end)` that a batch of this generation, committed as this head, has read, which was planned in
    this leader epoch."""

    sequence: int
    generation: int
    epoch: int
    start: int
    end: int

    def behind(self, cut: int) -> Noted:
        return self._replace(start=max(self.start, cut))


class IntervalRules(Rule):
    """`looked`: by run that backfills, what readers of committed data could find whenever it looked at the topic;
    `there`: by the first plan of a backfill, what its run had seen so; `refused`: what the gate has refused since;
    `stood`: by the same, what stood for somebody's decision, or was let go by one, at any time since: its batches may
    have left it out, whatever was decided afterwards. `ever`: what ever did. `noted`: by partition, what batches have
    read that moved no position; `written_over`: what of it lay on a disk that was put back since; `reach`: how far any
    batch has read, by partition and leader epoch, and by head, as the history knows."""

    hears = (Looked,)

    def __init__(self, case: Case) -> None:
        super().__init__(case)
        self.backfills: set[str] = set()
        self.looked: dict[str, set[Coordinate]] = {}
        self.there: dict[str, set[Coordinate]] = {}
        self.refused: dict[str, set[str]] = {}
        self.stood: dict[str, set[str]] = {}
        self.ever: set[str] = set()
        self.noted: dict[Where, list[Noted]] = defaultdict(list)
        self.written_over: dict[Where, list[Noted]] = defaultdict(list)
        self.reach: dict[tuple[Where, int], dict[int, int]] = defaultdict(dict)

    def take(self, event: Event, before: Committed | None) -> None:
        match event:
            case Started() if event.what.startswith("backfill"):
                self.backfills.add(event.run)
                self._begins(event.run)
            case Looked() if event.what == "topic" and event.run in self.backfills:
                # What the head has is waited for.
                stands = before.positions if before is not None and before.topic_id == self.ledger.topic_id else {}
                unknown = set(event.hidden) - stands.keys()
                found = {c for c in self.ledger.readable() if c[1] not in unknown}
                # It may plan by its first look, and by a later one write the group of a head that it had to make.
                self.looked[event.run] = self.looked.get(event.run, found) & found
            case Planned() if event.scope is not None and not event.after:
                ends = {(p, epoch): end for p, epoch, end in event.epoch_ends}
                self.there[event.plan_id] = self.looked.get(event.run, set()) - self._left_out(event, ends)
                self._begins(event.plan_id)
            case Held(id=str(waveform_id)) if event.reason in _DECIDES:
                for stood in (self.ever, *self.stood.values()):
                    stood.add(waveform_id)
            case Replaced():
                # A chain that is carried again has published them when it passed: it reads nothing twice.
                for stood in self.stood.values():
                    stood |= set(event.ids)
            case GateSays(refuses=True):
                for refused in self.refused.values():
                    refused.add(event.id)
            case Committed(kind="ingest" | "backfill" | "manual") if event.plan_id in self.ledger.plans:
                plan = self.ledger.plans[event.plan_id]
                for p, start, end in plan.ranges:
                    where, epoch = (event.topic_id, p), plan.epochs.get(p, 0)
                    self.reach[where, epoch][event.sequence] = max(end, self.reach[where, epoch].get(event.sequence, 0))
                    if event.kind != "ingest":
                        self.noted[where].append(Noted(event.sequence, event.generation, epoch, start, end))
            case HistoryLost():
                for by_head in self.reach.values():
                    for sequence in event.sequences:
                        by_head.pop(sequence, None)
            case CatalogSetBack():
                self._set_back(event.sequence)
            case Truncated():
                where = event.topic_id, event.partition
                if event.backup:
                    self.written_over[where] += [n.behind(event.end) for n in self.noted[where] if n.end > event.end]
                for there in (*self.looked.values(), *self.there.values()):
                    # What is written anew there nobody has seen.
                    there -= {c for c in there if c[:2] == where and c[2] >= event.end}
            case Backfilled() if event.first in self.there:
                with self.ledger.as_planned(event.first):
                    self._published(event, self.there[event.first], event.first)
            case Backfilled(first="") if event.run in self.looked and before is not None:
                there = self.looked[event.run] - self._left_out(before, {})
                self._published(event, there, event.run)

    def _begins(self, what: str) -> None:
        self.refused[what] = set(self.case.refused)
        self.stood[what] = {i for i in self.ever if self._is_held(i)}

    def _set_back(self, to: int) -> None:
        """What was read by heads that are gone is noted nowhere any more."""
        for by_place in (self.noted, self.written_over):
            for where, noted in by_place.items():
                by_place[where] = [n for n in noted if n.sequence <= to]
        for place, by_head in self.reach.items():
            self.reach[place] = {sequence: end for sequence, end in by_head.items() if sequence <= to}

    def _left_out(self, plan: Planned | Committed, ends: Mapping[tuple[int, int], int]) -> set[Coordinate]:
        """What another batch had read ahead of the ingest, in this generation, of a disk that was put back, and the log
        covers again: leader epochs do not tell that it was written anew (docs/guarantees.md)."""
        found: set[Coordinate] = set()
        # Where the position itself is on another log, which it tells, nothing that was noted behind it is believed.
        told = [at for at in self.written_over if not self.case.kept.is_another(at)]
        for (topic_id, p), noted in ((at, self.written_over[at]) for at in told):
            goes = max((c[2] + 1 for c in self.ledger.records if c[:2] == (topic_id, p)), default=0)
            for n in noted:
                reach = max(self.reach[(topic_id, p), n.epoch].values(), default=n.end)
                if n.generation == plan.generation and reach <= ends.get((p, n.epoch), goes):
                    found |= {(topic_id, p, o) for o in range(max(n.start, plan.positions.get(p, 0)), n.end)}
        return found

    def _published(self, event: Backfilled, there: set[Coordinate], began: str) -> None:
        """`there`: what it had seen; `began`: its first plan, or its run."""
        found: dict[str, list[Piece]] = defaultdict(list)
        places: dict[str, set[Coordinate]] = defaultdict(set)
        for c in there:
            piece = piece_of_interval(self.ledger, c, event.scope)
            if piece is not None:
                found[piece.id].append(piece)
                places[piece.id].add(c)
        whole = {i for i, pieces in found.items() if Truth(tuple(pieces)).publishable}
        # What somebody has deleted stays away, unless it is read again.
        again = self._read_by(event)
        deleted = {i for i in self.ledger.deleted if not places[i] <= again}
        excused = self.refused[began] | self.stood[began] | deleted
        waits = {i for i in whole if i in excused or self._is_held(i)}
        missing = whole - waits - self.ledger.published.keys()
        if missing:
            # Of all that was ever sent, so that nothing contradicts it, wherever that lies.
            ever = self.ledger.truths(r for c, r in self.ledger.records.items() if self.ledger.committed(c))
            lost = sorted(i for i in missing if i in ever and ever[i].publishable)
            now, named = self.ledger.readable(), {(p, o) for p, a, b in event.lost for o in range(a, b)}
            if left := [i for i in lost if places[i] <= now]:
                self.case.say(Kind.LOST, "whole in the log, of an interval whose backfill ended well", left)
            # What retention takes before it was read, also across the cuts, is named.
            if gone := [i for i in lost if not places[i] <= now and not {c[1:] for c in places[i]} & named]:
                what = "whole when its backfill was planned, gone since, and neither published nor named"
                self.case.say(Kind.UNEXPLAINED_GAP, what, gone)

    def _read_by(self, event: Backfilled) -> set[Coordinate]:
        """What its batches have read."""
        mine = {i for i, plan in self.ledger.plans.items() if event.first and event.first in (i, *plan.after)}
        return {c for plan_id in mine for c in self.ledger.reads.get(plan_id, ())}

    def _is_held(self, waveform_id: str) -> bool:
        """So that somebody has to decide, or has."""
        return bool(self.ledger.blocked(waveform_id) or self.ledger.discarded(waveform_id))


def piece_of_interval(ledger: Ledger, c: Coordinate, scope: tuple[int, int]) -> Piece | None:
    """The chunk that lies there, where a backfill of this interval is to find it."""
    record = ledger.records[c]
    piece = ledger.piece(record)
    owned = piece is not None and scope[0] <= piece.start_ns < scope[1]
    return piece if owned and record.timestamp_ms >= scope[0] // 10**6 - _LOOKS_BACK_MS else None
