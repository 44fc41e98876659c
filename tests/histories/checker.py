"""One analysis of a history: every anomaly, by kind, with ids and offsets. Shares no code with the product.

Rests on the contract of a chunk as `tests.domain.oracle` reads it, and on docs/design.md. "Not yet seen" is not "lost":
a record that no head has passed counts as lost only once `Quiet` says that the last undisturbed runs are through.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from itertools import permutations

from tests.domain.oracle import Piece, Truth
from tests.histories.anomaly import Anomaly, Kind
from tests.histories.history import (
    Abandoned,
    CatalogSetBack,
    Committed,
    Coordinate,
    Ended,
    Event,
    GateClosed,
    GateSays,
    Held,
    HistoryLost,
    Loaded,
    Looked,
    Planned,
    Produced,
    Projected,
    Published,
    Quiet,
    Read,
    ReadBack,
    Recorded,
    Reset,
    Retained,
    Rewound,
    Shared,
    Started,
    TopicMade,
    Truncated,
)
from tests.histories.ledger import Ledger

MOVED_ON_PURPOSE = ("rewind", "adopted", "rebuilt")
FATES = ("published", "duplicate", "replay", "quarantined", "carried_out", "reported", "out_of_scope")
_ACTS = (Planned, Read, Held, Published, Committed, Recorded, Projected)
ENDS = frozenset(
    (
        *("done", "nothing to do", "killed"),
        *("Fenced", "Refused", "DataLost", "Transient", "StateUnknown", "GateClosed", "Terminal"),
    )
)


def analyse(history: Iterable[Event]) -> list[Anomaly]:
    """All anomalies, in the order in which they show."""
    checker = _Checker()
    for event in history:
        checker.take(event)
    checker.close()
    return sorted(checker.found, key=lambda a: a.event)


class _Checker:
    """`owed`: the records that a committed batch has passed after reading them, with the event, and whether they were
    durable then. `given_up`: by name. `before`: where the stream began."""

    def __init__(self) -> None:
        self.found: list[Anomaly] = []
        self.ledger = Ledger()
        self.at = -1
        self.owed: dict[Coordinate, tuple[int, bool]] = {}
        self.gaps: set[Coordinate] = set()
        self.given_up: dict[Coordinate, int] = {}
        self.before: dict[tuple[str, int], int] = {}
        self.runs: dict[str, Started] = {}
        self.looked: dict[tuple[str, str], int] = {}
        self.acted: dict[str, int] = {}
        self.accepted: set[str] = set()
        self.resets: dict[int, int] = {}
        self.heads_at: list[tuple[int, str]] = []
        self.topic_made_at = -1
        self.refused_by_gate: set[str] = set()
        self.quiet = False
        self.log_start: dict[tuple[str, int], int] = {}
        self.recorded: set[int] = set()
        """Heads whose rows stand in the history."""
        self.standing: dict[str, int] = {}
        """Plans at a closed gate, and since which event."""
        self.planned_at: dict[str, int] = {}
        self.touched: dict[str, set[Coordinate]] = defaultdict(set)
        """By run, the places that it read."""
        self.cuts: dict[tuple[str, int], tuple[int, int]] = {}
        """By partition, where an unclean election cut it off that no head has looked at, and since which event."""
        self.named: dict[str, tuple[int, ...]] = {}
        self.shown: dict[int, tuple[int, tuple[int, int]]] = {}
        """By partition, since when the group shows which head of today's table."""

    def say(
        self, kind: Kind, what: str, ids: Iterable[str] = (), at: Iterable[Coordinate] = (), event: int | None = None
    ) -> None:
        self.found.append(Anomaly(kind, what, tuple(ids), tuple(at), self.at if event is None else event))

    def take(self, event: Event) -> None:
        self.at += 1
        before = self.ledger.heads[-1] if self.ledger.heads else None
        if isinstance(event, Projected):
            self._projected(event)
        stood = self.ledger.group.get(event.partition) if isinstance(event, Reset) else None
        if not isinstance(event, CatalogSetBack):
            self.ledger.take(event)
        if isinstance(event, _ACTS):
            self.acted[event.run] = self.at
        match event:
            case Committed():
                self._follows(before, event)
                self._moves(before, event)
                self._past_a_cut(before, event)
                self._named_only(before, event)
                self._past_a_gate(event)
                self.heads_at.append((self.at, event.kind))
            case Published():
                self._row(event)
            case Held():
                self._held(event)
            case Planned():
                self.planned_at[event.plan_id] = self.at
            case Loaded():
                self._loaded(event)
            case Read():
                self.touched[event.run] |= {(event.topic_id, event.partition, o) for o in event.offsets}
            case Truncated():
                self._cut(event)
            case HistoryLost():
                self.recorded -= set(event.sequences)
            case ReadBack():
                self._read_back(event)
            case Recorded():
                self._audit(event)
            case Started():
                self.runs[event.run] = event
            case Ended():
                self._ended(event)
            case Looked():
                self.looked[event.run, event.what] = self.at
            case Rewound():
                if event.accepted:
                    self.accepted.add(event.run)
                if event.only is not None:
                    self.named[event.run] = event.only
            case CatalogSetBack():
                self._set_back(event.sequence)
            case Retained():
                self.log_start[event.topic_id, event.partition] = event.log_start
            case GateClosed() if self._can_still_commit(event.plan_id):
                self.standing[event.plan_id] = self.at
            case Abandoned():
                self.standing.pop(event.plan_id, None)
            case Reset() if event.offset is None:
                self.resets.pop(event.partition, None)
                self.shown.pop(event.partition, None)
            case Reset():
                self.shown.pop(event.partition, None)
                if stood != (event.offset, None):  # otherwise nobody can see that it was done once more
                    self.resets[event.partition] = self.at
            case Shared():
                self.shown.pop(event.partition, None)
                self.resets.pop(event.partition, None)
                if event.another:  # what a copy of this table wrote, nobody can tell from what this one wrote
                    self.resets[event.partition] = self.at
            case TopicMade():
                self.topic_made_at = self.at
                self.shown = {}
                self.resets = {}
            case GateSays():
                self.refused_by_gate.add(event.id)
            case Quiet():
                self.quiet = True
                self._held_for_ever(event)

    # heads

    def _follows(self, before: Committed | None, head: Committed) -> None:
        """A run commits only on what it was planned on, once, and nobody goes back in generation."""
        if before is None:
            return
        where = f"head {head.sequence} ({head.kind})"
        # What became of the heads that a rebuilt one stands for nobody knows; it must be beyond them all.
        if head.sequence != before.sequence + 1 and not (head.kind == "rebuilt" and head.sequence > before.sequence):
            self.say(Kind.STALE_WRITER, f"{where} follows head {before.sequence}")
        if not self._newer(before, head):
            self.say(Kind.STALE_WRITER, f"{where} is of generation {head.generation}, after {before.generation}")
        if not head.plan_id:
            return
        if any(h.plan_id == head.plan_id for h in self.ledger.heads[:-1]):
            self.say(Kind.STALE_WRITER, f"{where} commits plan {head.plan_id[:8]} again")
        plan = self.ledger.plans.get(head.plan_id)
        if plan is None:
            self.say(Kind.STALE_WRITER, f"{where} carries a plan that nobody made")
        elif [h for h in self.ledger.heads[:-1] if h.sequence > plan.base_sequence and h.kind in MOVED_ON_PURPOSE]:
            self.say(Kind.STALE_WRITER, f"{where} was planned before a rewind")
        elif plan.kind == "ingest" and plan.positions != before.positions:
            self.say(
                Kind.STALE_WRITER, f"{where} was planned at {plan.positions}, the head stood at {before.positions}"
            )

    def _newer(self, before: Committed, head: Committed) -> bool:
        """One generation further on purpose, none otherwise; after a set back beyond all that were lost."""
        step = head.generation - before.generation
        if head.kind not in MOVED_ON_PURPOSE:
            return step == 0
        known = max((h.generation for h in (before, *self.ledger.lost)), default=0)
        return step == 1 or 0 < step <= known + 1 - before.generation or (head.kind == "rebuilt" and step > 0)

    def _named_only(self, before: Committed | None, head: Committed) -> None:
        """A rewind of some partitions moves no other one."""
        only = self.named.get(head.run)
        if before is None or only is None or head.kind != "rewind":
            return
        moved = [p for p, at in before.positions.items() if p not in only and head.positions.get(p) != at]
        if moved:
            self.say(Kind.STALE_WRITER, f"head {head.sequence} moves partitions {moved}, only {only} were named")

    def _past_a_gate(self, head: Committed) -> None:
        """No ingest goes past a batch at a closed gate, which stands until it is committed, given up or fenced."""
        if head.kind in MOVED_ON_PURPOSE:
            self.standing.clear()
        mine = self.standing.pop(head.plan_id, None)
        looked = self.looked.get((head.run, "gates"), -1)
        if head.kind == "ingest" and mine is None and any(since < looked for since in self.standing.values()):
            self.say(Kind.INVENTED, f"head {head.sequence} goes past a batch that stands at a closed gate")
        if head.kind == "ingest":
            self.standing.clear()  # they are fenced

    def _can_still_commit(self, plan_id: str) -> bool:
        """Whether it is an ingest that nobody has fenced; a backfill stands in nobody's way."""
        plan, head = self.ledger.plans[plan_id], self.ledger.heads[-1]
        return (plan.kind, plan.generation, plan.positions) == ("ingest", head.generation, head.positions)

    def _set_back(self, to: int) -> None:
        kept = [at for (at, _), h in zip(self.heads_at, self.ledger.heads, strict=True) if h.sequence <= to]
        since = kept[-1] if kept else -1
        self.heads_at = self.heads_at[: len(kept)]
        self.ledger.set_back(to)
        self.owed = {c: found for c, found in self.owed.items() if found[0] <= since}
        self.given_up = {c: at for c, at in self.given_up.items() if at <= since}
        self.recorded = {n for n in self.recorded if n <= to}
        self.standing.clear()
        self.shown = self.shown if to else {}

    def _moves(self, before: Committed | None, head: Committed) -> None:
        """Every offset that this head passes was read and is durable, or is explained."""
        if before is None:
            if self.ledger.lost:
                # The catalog was lost: what lies before its first head is not read, so somebody must have said so, in
                # the rewind that began it or by setting the group there.
                for p, at in sorted(head.positions.items()):
                    if self.ledger.group.get(p) == (at, None):
                        self.given_up |= {(head.topic_id, p, o): self.at for o in range(at)}
                        continue
                    start = self.log_start.get((head.topic_id, p), 0)
                    self._skipped(head, [(head.topic_id, p, o) for o in range(start, at)])
            self.before = {
                (head.topic_id, p): self.log_start.get((head.topic_id, p), 0) if self.ledger.lost else at
                for p, at in head.positions.items()
            }
            return
        was = before.positions if before.topic_id == head.topic_id else {}
        for p, now in sorted(head.positions.items()):
            start = was.get(p, 0)
            if now < start and head.kind not in MOVED_ON_PURPOSE:
                self.say(Kind.STALE_WRITER, f"head {head.sequence} moved partition {p} back from {start} to {now}")
            passed = [(head.topic_id, p, o) for o in range(start, now)]
            if head.kind == "rebuilt":
                # What was held is not known, all is read again: or given up by name, like what was never read.
                # What was cut off since, or lay on a topic that was made anew, is gone with it (a limit).
                named = {(head.topic_id, q, o) for q, a, b in head.skipped for o in range(a, b)}
                again = {
                    c for c in self.owed if (c[:2] == (head.topic_id, p) and c[2] >= now) or c[0] != head.topic_id
                } | named
                self.owed = {c: f for c, f in self.owed.items() if c not in again or self.ledger.durable(c)}
            if head.kind == "rebuilt" and before.sequence not in self.recorded:
                # That the head before was a rewind is written nowhere any more; what was read then is not read again.
                passed = [c for c in passed if c not in self.owed]
            if head.kind in MOVED_ON_PURPOSE:
                self._skipped(head, passed)
            else:
                self._passed(head, passed)

    def _skipped(self, head: Committed, passed: list[Coordinate]) -> None:
        named = {(head.topic_id, p, o) for p, a, b in head.skipped for o in range(a, b)}
        silent = [c for c in passed if c not in named or head.run not in self.accepted]
        if silent:
            self.gaps.update(silent)
            self.say(Kind.UNEXPLAINED_GAP, f"head {head.sequence} ({head.kind}) skips what nobody gave up", at=silent)
        self.given_up |= {c: self.at for c in passed if c in named}

    def _passed(self, head: Committed, passed: list[Coordinate]) -> None:
        read, landed = self.ledger.reads.get(head.plan_id, set()), self.ledger.landed.get(head.plan_id, set())
        gap = [c for c in passed if c not in landed and not self._empty(c)]
        if gap:
            self.gaps.update(gap)
            self.say(Kind.UNEXPLAINED_GAP, f"head {head.sequence} passes offsets that its batch did not read", at=gap)
        for place in [place for c in passed for place in self.ledger.places(c)]:
            if place in read and self.ledger.committed(place):
                self.owed.setdefault(place, (self.at, self.ledger.durable(place)))

    def _past_a_cut(self, before: Committed | None, head: Committed) -> None:
        """Whoever moves the head on purpose over a cut is not told what was written anew before there (a limit, see
        docs/guarantees.md); an ingest from beyond one is, and whoever begins before it reads all."""
        for (topic_id, p), (end, since) in list(self.cuts.items()):
            at = head.positions.get(p, 0) if head.topic_id == topic_id else 0
            if head.kind in (*MOVED_ON_PURPOSE, "first") and at > end:
                self.given_up |= {(topic_id, p, o): self.at for o in range(end, at)}
            elif head.kind in (*MOVED_ON_PURPOSE, "first") or self._began_before(before, head, p, end, since):
                del self.cuts[topic_id, p]

    def _began_before(self, before: Committed | None, head: Committed, p: int, end: int, since: int) -> bool:
        planned = self.planned_at.get(head.plan_id, -1)
        return head.kind == "ingest" and planned > since and before is not None and before.positions.get(p, 0) <= end

    def _empty(self, coordinate: Coordinate) -> bool:
        """Whether readers of committed data ever had nothing to find there."""
        seen = self.ledger.seen
        return any(seen.get(c) in ("marker", "aborted") for c in self.ledger.places(coordinate))

    def _cut(self, event: Truncated) -> None:
        """What was cut off and is owed stays owed; what comes at its offsets is new, whatever was said of them."""
        moved = self.ledger.moved
        self.owed = {moved.get(c, c): found for c, found in self.owed.items()}
        self.gaps = {moved.get(c, c) for c in self.gaps}
        at = event.topic_id, event.partition
        self.cuts[at] = min(event.end, self.cuts.get(at, (event.end, 0))[0]), self.at
        self.given_up = {c: n for c, n in self.given_up.items() if c[:2] != at or c[2] < event.end}

    def _audit(self, row: Recorded) -> None:
        self.recorded.add(row.sequence)
        for p, n in sorted(row.partitions.items()):
            fates = sum(n[f] for f in FATES)
            if n["read"] + n["carried_in"] != fates or n["planned"] != n["read"] + n["holes"]:
                self.say(
                    Kind.UNEXPLAINED_GAP, f"the audit of head {row.sequence} does not balance on partition {p}: {n}"
                )

    # rows

    def _row(self, row: Published) -> None:
        if len(self.ledger.published[row.id]) > 1:
            self.say(Kind.DUPLICATE, f"published again with head {row.sequence}", [row.id])
        where: list[Coordinate] = [(t, p, o) for t, p, o, _, _ in row.chunks]
        found = [self._piece_of(row, n) for n in range(len(where))]
        unknown = [c for c, piece in zip(where, found, strict=True) if piece is None]
        pieces = [p for _, p in filter(None, found)]
        if unknown or not pieces:
            self.say(Kind.INVENTED, "published from where no visible chunk of it was produced", [row.id], unknown)
            return
        action = self._decided(row)
        self._nobody_decided(row, pieces, action)
        order, values = [p.seq for p in pieces], [p.value for p in pieces]
        known = self.ledger.truths(self._known(row, {c for c, _ in filter(None, found)}))[row.id]
        counts = {p.count for p in known.pieces if p.count is not None}
        truth = _picked(known, pieces) if action == "pick" else known
        kept = [(length, proof) for _, _, _, length, proof in row.chunks]
        if order != sorted(order) or (row.samples != b"".join(values) and _shuffled(row.samples, values)):
            self.say(Kind.ORDER, f"its chunks stand in the order {order}", [row.id], where)
        elif row.samples != b"".join(values) or kept != [(len(p.value), p.proof.hex()) for p in pieces]:
            self.say(Kind.ALTERED, "its bytes are not those of its chunks", [row.id], where)
        elif order != list(range(len(order))) or len(order) not in counts:
            self.say(Kind.ALTERED, f"it was cut short: chunks {order}, of {sorted(counts)}", [row.id], where)
        elif truth.contradicts_itself:
            self.say(Kind.ALTERED, "of copies that contradict each other one was taken", [row.id], where)
        elif not truth.keeps_its_word and action != "accept":
            self.say(Kind.INVENTED, "published although it is not what it says", [row.id], where)

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
        if row.id in self.refused_by_gate and action != "accept":
            self.say(Kind.INVENTED, "published although the gate refuses it", [row.id])
        if action:
            return
        blocked, gone = self.ledger.blocked(row.id), self.ledger.discarded(row.id)
        if blocked:
            self.say(Kind.INVENTED, f"published although it is held as {blocked} and nobody decided", [row.id])
        elif any(p.same in gone for p in pieces):
            self.say(Kind.INVENTED, "published from a chunk that an operator discarded", [row.id])

    def _known(self, row: Published, own: set[Coordinate]) -> list[Produced]:
        """The records that a row was decided on: what its batch read, what was held then, and its own; what an
        operator discarded is not among them."""
        known = own | self.ledger.held_records() | self.ledger.reads.get(row.plan_id, set())
        records = [self.ledger.records[c] for c in known if self.ledger.committed(c)]
        gone = self.ledger.discarded(row.id)
        if not gone:
            return records
        mine = {self.ledger.records[c] for c in own}
        return [r for r in records if r in mine or (p := self.ledger.piece(r)) is None or p.same not in gone]

    def _held(self, row: Held) -> None:
        values = [self.ledger.records[c].value for c in self.ledger.places(row.coordinate) if self.ledger.committed(c)]
        if not values:
            self.say(Kind.INVENTED, "held where no visible record was produced", at=[row.coordinate])
        elif row.payload is not None and row.payload not in values:
            self.say(Kind.ALTERED, "held with other bytes than were produced", at=[row.coordinate])

    def _loaded(self, event: Loaded) -> None:
        strange = set(event.strange) - self.touched[event.run]
        if strange:
            what = f"{event.run} loaded {len(strange)} held records that are no chunks, from where it read nothing"
            self.say(Kind.UNBOUNDED_COST, what, at=sorted(strange))

    def _held_for_ever(self, event: Quiet) -> None:
        waiting = {row.id for rows in self.ledger.held.values() for row in rows if event.decided and row.valid}
        stuck = sorted(i for i in waiting if i is not None and self.ledger.undecided(i))
        if stuck:
            self.say(Kind.HELD_FOR_EVER, "held still, though operators let everything go", stuck)

    def _read_back(self, event: ReadBack) -> None:
        found = dict(event.rows)
        for waveform_id, rows in sorted(self.ledger.published.items()):
            if waveform_id not in found:
                self.say(Kind.LOST, "published, and not in the table any more", [waveform_id])
            elif found[waveform_id] not in [row.samples for row in rows]:
                self.say(Kind.ALTERED, "readers find other bytes than were published", [waveform_id])

    def _visible(self) -> Iterator[Produced]:
        return (r for c, r in self.ledger.records.items() if self.ledger.committed(c))

    # the group

    def _projected(self, event: Projected) -> None:
        fresh = not self._could_not_know(event.run, "topic", self.topic_made_at)
        version = event.generation, event.sequence
        for p, offset in sorted(event.offsets.items()):
            since, newest = self.shown.get(p, (self.at, version))
            if version < newest and not self._could_not_know(event.run, "group", since):
                what = f"head {version} was shown over head {newest} on partition {p}, by a run that could see that"
                self.say(Kind.STALE_WRITER, what, at=[(event.topic_id, p, offset)])
            self.shown[p] = self.at, version
            if fresh and offset > self.ledger.furthest(p):
                self.say(
                    Kind.COMMIT_AHEAD,
                    f"the group was put to {offset} on partition {p}, no head beyond {self.ledger.furthest(p)}",
                    at=[(event.topic_id, p, offset)],
                )
            reset_at = self.resets.pop(p, None)
            if reset_at is None or self._could_not_know(event.run, "group", reset_at):
                continue
            if not any(at > reset_at and kind in (*MOVED_ON_PURPOSE, "first") for at, kind in self.heads_at):
                what = f"a reset of the group on partition {p} was written over and never taken over"
                self.say(Kind.STALE_WRITER, what, at=[(event.topic_id, p, offset)])

    def _could_not_know(self, run: str, what: str, happened: int) -> bool:
        """Who looked, then writes, and in between it happened, cannot be fenced by anyone. Who has done anything but
        look since then has no such excuse."""
        return self.acted.get(run, -1) < self.looked.get((run, what), -1) < happened

    # runs

    def _ended(self, event: Ended) -> None:
        started = self.runs.pop(event.run, None)
        if started is None:
            self.say(Kind.UNBOUNDED_END, f"{event.run} ended without having begun, or twice")
        elif event.at > started.deadline:
            self.say(Kind.UNBOUNDED_END, f"{event.run} ({started.what}) ended at {event.at}, due at {started.deadline}")
        elif event.reason not in ENDS:
            self.say(Kind.UNBOUNDED_END, f"{event.run} ({started.what}) ended by no known reason: {event.reason}")

    # the end

    def close(self) -> None:
        self.at += 1
        for run, started in self.runs.items():
            self.say(Kind.UNBOUNDED_END, f"{run} ({started.what}) never ended")
        self._what_is_owed()
        if self.quiet:
            self._what_was_never_seen()
            self._what_was_never_published()
            self._where_the_group_was_left()

    def _what_is_owed(self) -> None:
        lost, late = defaultdict(list), defaultdict(list)
        altered = {c for a in self.found if a.kind in (Kind.ALTERED, Kind.ORDER) for c in a.coordinates}
        for coordinate, (event, durable) in self.owed.items():
            if coordinate in altered:
                continue
            if not self.ledger.durable(coordinate):
                lost[event].append(coordinate)
            elif not durable:
                late[event].append(coordinate)
        for event, where in lost.items():
            self.say(Kind.LOST, "passed by a head, and neither published nor held", self._ids(where), where, event)
        for event, where in late.items():
            self.say(Kind.COMMIT_AHEAD, "passed by a head before it was durable", self._ids(where), where, event)

    def _what_was_never_seen(self) -> None:
        topic_id = self.ledger.topic_id
        known = self.owed.keys() | self.given_up.keys() | self.gaps
        # Of what was cut off, nobody can read any more what was not read before.
        unseen = [
            c
            for c in self.ledger.records
            if c[0] == topic_id
            and c not in known
            and self.ledger.committed(c)
            and c[2] >= self.before.get((topic_id, c[1]), 0)
        ]
        if unseen:
            self.say(Kind.LOST, "never seen, though quiet runs ended", self._ids(unseen), unseen)

    def _what_was_never_published(self) -> None:
        lost = {
            c for a in self.found if a.kind in (Kind.LOST, Kind.ALTERED, Kind.UNEXPLAINED_GAP) for c in a.coordinates
        }
        # Of what is kept: a repeat with a count where the kept copy has none is not understood (docs/guarantees.md).
        kept = self.ledger.held_records() - lost
        passed = self.ledger.truths(self.ledger.records[c] for c in kept if self.ledger.committed(c))
        for waveform_id, truth in self.ledger.truths(self._visible()).items():
            seen = passed.get(waveform_id)
            if waveform_id in self.ledger.published or waveform_id in self.refused_by_gate:
                continue
            if self.ledger.blocked(waveform_id) or self.ledger.discarded(waveform_id):
                continue  # somebody has to decide, or has
            if truth.publishable and seen is not None and seen.publishable:
                self.say(Kind.LOST, "whole and sound, and never published", [waveform_id])

    def _where_the_group_was_left(self) -> None:
        if not self.ledger.heads:
            return
        head = self.ledger.heads[-1]
        for p, at in sorted(head.positions.items()):
            offset, version = self.ledger.group.get(p, (None, None))
            if (offset, version) != (at, (head.generation, head.sequence)):
                kind = Kind.COMMIT_AHEAD if offset is not None and offset > at else Kind.STALE_WRITER
                what = f"quiet runs left the group at {offset} (tag {version}), the head stands at {at}"
                self.say(kind, what, at=[(head.topic_id, p, at)])

    def _ids(self, where: Iterable[Coordinate]) -> list[str]:
        return sorted(self.ledger.truths(self.ledger.records[c] for c in where))


def _picked(known: Truth, pieces: list[Piece]) -> Truth:
    """Of copies that contradict each other, the one that was picked, with the times of all that repeat it."""
    mine = {p.same for p in pieces}
    digests = {p.digest for p in pieces if p.digest is not None}
    others = [p._replace(digest=None, count=None) for p in known.pieces if p.same in mine and p.digest not in digests]
    return Truth((*pieces, *others))


def _shuffled(samples: bytes, values: list[bytes]) -> bool:
    """Whether the same pieces were joined in another order."""
    if len(samples) != sum(map(len, values)) or len(values) > 6:
        return False
    return any(b"".join(p) == samples for p in permutations(values))
