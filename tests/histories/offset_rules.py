"""Offsets: each that a head has passed was read and is durable, or is explained by name; none is never seen.

`owed`: records that a committed batch has passed after reading them, with the event, and whether they were durable
then. `given_up`: by name, and since when; `taken_back`: when, and what. `before`: where the stream began. `gaps`: what
is said to be wrong already.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence, Set
from dataclasses import replace

from tests.histories.anomaly import Kind
from tests.histories.case import MOVED_ON_PURPOSE, Case, Rule
from tests.histories.disks import Disks
from tests.histories.events import (
    Committed,
    Coordinate,
    Event,
    Looked,
    LostOffset,
    Planned,
    Recorded,
    Retained,
    Rewound,
    Truncated,
    Undone,
)
from tests.histories.retention import Retention
from tests.histories.table_events import CatalogSetBack, Deleted, HistoryLost

FATES = ("published", "duplicate", "replay", "quarantined", "carried_out", "reported", "out_of_scope")
_MISSING = re.compile(r"(?<!last word on )\b(\d+) held (?:chunks|records)")


class OffsetRules(Rule):
    """`recorded`: heads whose rows stand in the history. `cuts`: by partition, where an unclean election cut it off
    that no head has looked at, and since which event, the last and the `first_cut`; `read_over`: those that one has,
    when, and which. `accepted`: of runs whose skips an operator has accepted, those by name, None for all.
    `starts_over`: runs that begin anew with what the broker shows; `hidden`: by run, what the one it asked last does
    not show; `saw_group`: by run, what the group was when it looked; `made_at`: of heads; `forgotten`: by partition
    that a head does not know any more, where it had stood; `had`: what is owed and was durable before somebody deleted
    rows."""

    hears = (Looked,)

    def __init__(self, case: Case) -> None:
        super().__init__(case)
        self.owed: dict[Coordinate, tuple[int, bool]] = {}
        self.gaps: set[Coordinate] = set()
        self.given_up: dict[Coordinate, int] = {}
        self.taken_back: list[tuple[int, dict[Coordinate, int]]] = []
        self.before: dict[tuple[str, int], int] = {}
        self.accepted: dict[str, Sequence[tuple[int, int, int]] | None] = {}
        self.retention = Retention()
        self.recorded: set[int] = set()
        self.planned_at: dict[str, int] = {}
        self.made_at: dict[int, int] = {}
        self.cuts: dict[tuple[str, int], tuple[int, int]] = {}
        self.first_cut: dict[tuple[str, int], int] = {}
        self.read_over: list[tuple[int, int, tuple[str, int], tuple[int, int]]] = []
        self.disks = Disks()
        self.starts_over: set[str] = set()
        self.hidden: dict[str, frozenset[int]] = {}
        self.saw_group: dict[str, list[dict[int, tuple[int, tuple[int, int] | None]]]] = defaultdict(list)
        self.forgotten: dict[tuple[str, int], int] = {}
        self.had: set[Coordinate] = set()

    def first_look(self, event: Event) -> None:
        if isinstance(event, Deleted):
            self.had = {c for c in self.owed if self.ledger.durable(c)}

    def take(self, event: Event, before: Committed | None) -> None:
        match event:
            case Committed():
                self._moves(before, event)
                self.made_at[event.sequence] = self.case.at
                self._past_a_cut(before, event)
                if event.kind in MOVED_ON_PURPOSE:
                    self._believed(event, self.case.kept.taken_by_any_head)
                    self.retention.moved(event, looked=self.case.known.last(event.run, "topic"), at=self.case.at)
                planned = self.planned_at.get(event.plan_id, -1)
                cuts = {at: since for at, (_, since) in self.cuts.items()}
                self.disks.committed(before, event, planned=planned, cuts=cuts)
                self._names_truly(before, event)
            case Planned():
                self.planned_at[event.plan_id] = self.case.at
                if event.kind == "ingest":
                    self._believed(event, self.case.kept.taken_for_what_lay_there)
                self.disks.planned(event)
            case Truncated():
                self._cut(event)
            case LostOffset() if before is not None:
                self.disks.lost(event, before)
            case Recorded():
                self._audit(event)
            case HistoryLost():
                self.recorded -= set(event.sequences)
            case Looked(what="topic"):
                self.hidden[event.run] = frozenset(event.hidden)
            case Looked(what="group"):
                self.saw_group[event.run].append(dict(self.ledger.group))
            case Rewound() | Undone():
                if event.accepted:
                    self.accepted[event.run] = event.accepts if isinstance(event, Rewound) else None
                if isinstance(event, Rewound) and event.word == "start-over":
                    self.starts_over.add(event.run)
            case Retained():
                head = self.ledger.heads[-1] if self.ledger.heads else None
                self.retention.retained(event, head, at=self.case.at)
            case CatalogSetBack():
                self._set_back(event.sequence)
            case Deleted():
                self._deleted(set(event.ids))

    def _deleted(self, ids: set[str]) -> None:
        """What only these rows had is owed no more: whoever deleted them answers for it."""
        mine = {c for c in self.had if (piece := self.ledger.piece(self.ledger.records[c])) and piece.id in ids}
        gone = {c for c in mine if not self.ledger.durable(c)}
        self.owed = {c: found for c, found in self.owed.items() if c not in gone}
        self.given_up |= dict.fromkeys(gone, self.case.at)

    def _set_back(self, to: int) -> None:
        since = self.case.kept_until
        self.owed = {c: found for c, found in self.owed.items() if found[0] <= since}
        for at, back in self.taken_back:  # by a head that is in no table any more
            for c, when in (back if at > since else {}).items():
                self.given_up[c] = min(when, self.given_up.get(c, when))
        self._looks_again([one for one in self.read_over if one[0] > since])
        self.taken_back = [(at, back) for at, back in self.taken_back if at <= since]
        stands = self.ledger.heads[-1].positions if self.ledger.heads else {}
        self.disks.set_back(stands)
        topic_id = self.ledger.topic_id
        self.retention.set_back(topic_id, stands, at=self.case.at)
        self.given_up = {c: at for c, at in self.given_up.items() if at <= since}
        self.recorded = {n for n in self.recorded if n <= to}

    # where heads move

    def _moves(self, before: Committed | None, head: Committed) -> None:
        """Every offset that this head passes was read and is durable, or is explained."""
        if before is None:
            self._begins(head)
            return
        if head.kind == "rebuilt":
            self._begins_anew(head)
        was = before.positions if before.topic_id == head.topic_id else {}
        if forgotten := {p: at for p, at in sorted(was.items()) if p not in head.positions}:
            self._forgets(head, forgotten)
        for p, now in sorted(head.positions.items()):
            stood = self.forgotten.pop((head.topic_id, p), 0)
            # The group's tag may still prove where it stood.
            start = was.get(p, stood if head.kind == "rebuilt" and now >= stood else 0)
            if stood and not start:
                self._takes_back(head.topic_id, p, 0)
            passed = [(head.topic_id, p, o) for o in range(start, now)]
            if head.kind not in MOVED_ON_PURPOSE:
                if now < start:
                    what = f"head {head.sequence} moved partition {p} back from {start} to {now}"
                    self.case.say(Kind.STALE_WRITER, what)
                self._passed(head, passed)
                continue
            self._takes_back(head.topic_id, p, now)
            group = self.saw_group[head.run]
            if head.kind == "adopted" and now != start and group and not any(g.get(p, (-1,))[0] == now for g in group):
                what = f"head {head.sequence} takes over {now} on partition {p}, where the group did not stand"
                self.case.say(Kind.STALE_WRITER, what)
            if head.kind == "rebuilt" and before.sequence not in self.recorded:
                # That the head before was a rewind is written nowhere any more; what was read then is not read again.
                # Where the log was cut off, its next plan is told.
                known = [c for c in passed if c in self.owed or self._written_anew(c) or self._empty(c)]
                passed = [c for c in passed if c not in known]
                passed = self._given_up_as_before(before, passed)
            self._skipped(head, passed)

    def _given_up_as_before(self, before: Committed, passed: list[Coordinate]) -> list[Coordinate]:
        """What a head took back that stands in no table and no history any more is given up as it was."""
        back = {
            c: since for at, some in self.taken_back if at == self.made_at[before.sequence] for c, since in some.items()
        }
        mine = {c: back[c] for c in passed if c in back}
        self.given_up |= mine
        return [c for c in passed if c not in mine]

    def _forgets(self, head: Committed, forgotten: dict[int, int]) -> None:
        """Whoever begins anew by a broker that does not show them stands at 0 in them."""
        anew = head.kind == "rebuilt" or head.run in self.starts_over
        if not (anew and self.hidden.get(head.run, frozenset()).issuperset(forgotten)):
            what = f"head {head.sequence} ({head.kind}) knows nothing of partitions {list(forgotten)} any more"
            self.case.say(Kind.STALE_WRITER, what)
        self.forgotten |= {(head.topic_id, p): at for p, at in forgotten.items()}

    def _begins(self, head: Committed) -> None:
        if self.ledger.lost:
            # The catalog was lost: what lies before its first head is not read, so somebody must have said so, in the
            # rewind that began it or by setting the group there, also where it is set elsewhere since.
            groups = self.saw_group[head.run] or [self.ledger.group]
            for p, at in sorted(head.positions.items()):
                if any(group.get(p) == (at, None) for group in groups):
                    self.given_up |= {(head.topic_id, p, o): self.case.at for o in range(at)}
                    continue
                start = self.retention.begins(head.topic_id, p)
                self._skipped(head, [(head.topic_id, p, o) for o in range(start, at)])
        self.before = {
            (head.topic_id, p): self.retention.begins(head.topic_id, p) if self.ledger.lost else at
            for p, at in head.positions.items()
        }

    def _begins_anew(self, head: Committed) -> None:
        """What was held and is not under a rebuilt head is read again, or given up by name. What the log has no more
        (of a topic that was made anew, or cut off) is gone with it: as many as the head says are missing."""
        self._looks_again([one for one in self.read_over if one[1] not in self.recorded])
        named = _named(head)
        gone = [c for c in self.owed if not self.ledger.durable(c)]
        again = {c for c in gone if c in named or (c[0] == head.topic_id and c[2] >= head.positions.get(c[1], 0))}
        # Nor is what is held still, without its bytes, read again by itself.
        for_good = [c for c in gone if c[0] != head.topic_id or self.ledger.is_held(c)]
        said = sum(int(n) for n in _MISSING.findall(head.note))
        if len(for_good) <= said:
            again |= set(for_good)
        self.owed = {c: found for c, found in self.owed.items() if c not in again}
        if head.run in self.accepted:  # what the head before had passed, and was held nowhere yet that tells
            self._gives_up(again & named)

    def _takes_back(self, topic_id: str, partition: int, now: int) -> None:
        """Whoever goes back takes back what was given up behind there: it is there to be read again."""
        back = {c for c in self.given_up if c[:2] == (topic_id, partition) and c[2] >= now}
        self.taken_back.append((self.case.at, {c: self.given_up.pop(c) for c in back}))

    def _skipped(self, head: Committed, passed: list[Coordinate]) -> None:
        named = _named(head)
        silent = [c for c in passed if c not in named or not self._is_accepted(head.run, c)]
        if silent:
            self.gaps.update(silent)
            what = f"head {head.sequence} ({head.kind}) skips what nobody gave up"
            self.case.say(Kind.UNEXPLAINED_GAP, what, at=silent)
        self._gives_up({c for c in passed if c in named})

    def _is_accepted(self, run: str, c: Coordinate) -> bool:
        said = self.accepted.get(run, ())
        return said is None or any(p == c[1] and start <= c[2] < end for p, start, end in said)

    def _gives_up(self, what: Iterable[Coordinate]) -> None:
        """What was given up before was so since then: a catalog that is set back to in between knows of it."""
        self.given_up = dict.fromkeys(what, self.case.at) | self.given_up

    def _passed(self, head: Committed, passed: list[Coordinate]) -> None:
        read = self.ledger.read_by.get((head.plan_id, head.run), set())
        landed = self.ledger.landed.get(head.plan_id, set())
        gap = [c for c in passed if c not in landed and not self._empty(c)]
        if gap:
            self.gaps.update(gap)
            what = f"head {head.sequence} passes offsets that its batch did not read"
            self.case.say(Kind.UNEXPLAINED_GAP, what, at=gap)
        for place in [place for c in passed for place in self.ledger.places(c)]:
            if place in read and self.ledger.committed(place):
                self.owed.setdefault(place, (self.case.at, self.ledger.durable(place)))

    def _empty(self, coordinate: Coordinate) -> bool:
        """Whether readers of committed data ever had nothing to find there."""
        seen = self.ledger.seen
        return any(seen.get(c) in ("marker", "aborted") for c in self.ledger.places(coordinate))

    def _names_truly(self, before: Committed | None, head: Committed) -> None:
        """A head names as given up what somebody went over, and not what is read again."""
        beyond = [(p, a, b) for p, a, b in head.skipped if b > head.positions.get(p, 0)]
        if beyond:
            what = f"head {head.sequence} ({head.kind}) names {beyond} as given up, and has not gone past that"
            self.case.say(Kind.UNEXPLAINED_GAP, what)
        if before is not None and head.kind in ("rewind", "adopted") and head.topic_id == before.topic_id:
            passed = {c for c in _named(before) if c[2] < head.positions.get(c[1], 0)}
            if forgotten := sorted(passed - _named(head)):
                what = f"head {head.sequence} ({head.kind}) does not say any more what was given up behind it"
                self.case.say(Kind.UNEXPLAINED_GAP, what, at=forgotten)
        if before is not None and head.kind not in MOVED_ON_PURPOSE and head.skipped != before.skipped:
            what = f"head {head.sequence} ({head.kind}) names other offsets as given up than the head before"
            self.case.say(Kind.UNEXPLAINED_GAP, what)

    # elections

    def _looks_again(self, forgotten: list[tuple[int, int, tuple[str, int], tuple[int, int]]]) -> None:
        """Heads that are in no table any more, and stand in no history, have looked at no cut."""
        for one in forgotten:
            where, cut = one[2:]
            self.read_over.remove(one)
            self.cuts[where] = min(cut, self.cuts.get(where, cut))

    def _written_anew(self, coordinate: Coordinate) -> bool:
        """Whether it lies behind a cut that no head has looked at."""
        cut = self.cuts.get(coordinate[:2])
        return cut is not None and coordinate[2] >= cut[0]

    def _past_a_cut(self, before: Committed | None, head: Committed) -> None:
        """Whoever goes on over a cut is told by the next plan, but who gives up by name what was written anew there.
        Whoever begins before it reads all."""
        on_purpose = head.kind in (*MOVED_ON_PURPOSE, "first")
        for (topic_id, p), (end, since) in list(self.cuts.items()):
            at = head.positions.get(p, 0) if head.topic_id == topic_id else 0
            if at <= end if on_purpose else self._began_before(before, head, p, end, since):
                self.read_over.append((self.case.at, head.sequence, (topic_id, p), self.cuts.pop((topic_id, p))))
            elif on_purpose:
                anew = {(topic_id, p, o) for o in range(end, at)}
                forward = before is None or at > before.positions.get(p, 0)
                named = anew if before is None else anew & (_named(head) if forward else _named_now(before, head))
                self._gives_up(named)

    def _began_before(self, before: Committed | None, head: Committed, p: int, end: int, since: int) -> bool:
        planned = self.planned_at.get(head.plan_id, -1)
        return head.kind == "ingest" and planned > since and before is not None and before.positions.get(p, 0) <= end

    def _believed(self, of: Committed | Planned, taken: Callable[[tuple[str, int]], int]) -> None:
        """Somebody goes on, or back to, behind a record that was sent anew as it was."""
        for where in ((of.topic_id, p) for p in of.positions):
            end = taken(where)
            if end and self._written_anew((*where, end - 1)):
                self.disks.believed(where, end)

    def _cut(self, event: Truncated) -> None:
        """What was cut off and is owed stays owed; what comes at its offsets is new, whatever was said of them."""
        moved = self.ledger.moved
        self.owed = {moved.get(c, c): found for c, found in self.owed.items()}
        self.gaps = {moved.get(c, c) for c in self.gaps}
        at = event.topic_id, event.partition
        kept = self.case.kept.now.get(at, (0, None))[1] is not None
        self.disks.cut(event, looked_at=at not in self.cuts, kept=kept)
        if at not in self.cuts:
            self.first_cut[at] = self.case.at
        self.cuts[at] = min(event.end, self.cuts.get(at, (event.end, 0))[0]), self.case.at
        for given_up in (self.given_up, *(back for _, back in self.taken_back)):
            for c in [c for c in given_up if c[:2] == at and c[2] >= event.end]:
                del given_up[c]

    def _audit(self, row: Recorded) -> None:
        self.recorded.add(row.sequence)
        for p, n in sorted(row.partitions.items()):
            fates = sum(n[f] for f in FATES)
            if n["read"] + n["carried_in"] != fates or n["planned"] != n["read"] + n["holes"]:
                what = f"the audit of head {row.sequence} does not balance on partition {p}: {n}"
                self.case.say(Kind.UNEXPLAINED_GAP, what)

    # the end

    def close(self) -> None:
        for topic_id, p in self.forgotten:
            self._takes_back(topic_id, p, 0)
        self._what_is_owed()
        if self.case.quiet:
            if self.ledger.heads:
                self._believed(self.ledger.heads[-1], self.case.kept.taken_for_what_lay_there)
            self._what_was_never_seen()

    def _what_is_owed(self) -> None:
        lost, late = defaultdict(list), defaultdict(list)
        # Of an offset the earliest is said that went wrong.
        said = (Kind.ALTERED, Kind.ORDER, Kind.INVENTED)
        altered = {c for a in self.case.found if a.kind in said for c in a.coordinates}
        for coordinate, (event, durable) in self.owed.items():
            if coordinate in altered:
                continue
            if not self.ledger.durable(coordinate):
                lost[event].append(coordinate)
            elif not durable:
                late[event].append(coordinate)
        say = self.case.say
        for event, where in lost.items():
            say(Kind.LOST, "passed by a head, and neither published nor held", self._ids(where), where, event)
        for event, where in late.items():
            say(Kind.COMMIT_AHEAD, "passed by a head before it was durable", self._ids(where), where, event)

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
            and not self._deleted_after_a_cut(c)
            and not self.disks.hide(c)
            and not self._is_what_lay_there(c, known)
        ]
        if unseen:
            self.case.say(Kind.LOST, "never seen, though quiet runs ended", self._ids(unseen), unseen)

    def _deleted_after_a_cut(self, c: Coordinate) -> bool:
        """Where retention took what lay around a cut and the position, too, the broker knows neither's epoch any more
        (docs/guarantees.md)."""
        where = c[:2]
        passed = where in self.cuts and self.retention.overtaken.get(where, -1) > self.first_cut[where]
        return passed and self.cuts[where][0] <= c[2] < self.retention.begins(*where)

    def _is_what_lay_there(self, c: Coordinate, known: Set[Coordinate]) -> bool:
        """Sent anew as it was, to the very place where it had been read: nobody can tell the two, nor has to."""
        records = self.ledger.records
        former = (f for f in self.ledger.former.get(c, ()) if f in known)
        return any(replace(records[f], epoch=records[c].epoch) == records[c] for f in former)

    def _ids(self, where: Iterable[Coordinate]) -> list[str]:
        return sorted(self.ledger.truths(self.ledger.records[c] for c in where))


def _named(head: Committed) -> set[Coordinate]:
    return {(head.topic_id, p, o) for p, a, b in head.skipped for o in range(a, b)}


def _named_now(before: Committed, head: Committed) -> set[Coordinate]:
    """Without what is kept from before: what was written anew since is not meant by that, unless it is named again."""
    kept = {r: sum(r[0] == p and a <= r[1] and r[2] <= b for p, a, b in before.skipped) for r in head.skipped}
    return _named(replace(head, skipped=tuple(r for r in head.skipped if head.skipped.count(r) > kept[r])))
