"""Rewinds: each goes where it was asked to, as the log, the group and the heads were at some time since, and moves no
partition that was not named."""

from __future__ import annotations

from collections import defaultdict
from typing import NamedTuple

from tests.histories.anomaly import Kind
from tests.histories.case import Case, Rule
from tests.histories.events import Committed, Event, Looked, Rewound, TopicMade, Truncated, Where
from tests.histories.table_events import CatalogSetBack, Forgotten

_BEGINNING = ("earliest", "new-topic", "start-over")


class _Log(NamedTuple):
    """By partition, where it began and ended for readers of committed data, and the first record from the time on that
    was asked for."""

    begins: dict[Where, int]
    ends: dict[Where, int]
    at_time: dict[Where, int]


class RewindRules(Rule):
    """`asked`: by run, the rewind that it is to do, and the log then; `doubted`: of those, partitions whose log was cut
    off since, and `remade`: runs whose topic was made anew: nobody knows what they were shown. `group`: by run, what it
    showed whenever that looked. `forgotten`: heads whose snapshots are gone; `known`: by run, which were so when it was
    asked."""

    hears = (Looked,)

    def __init__(self, case: Case) -> None:
        super().__init__(case)
        self.asked: dict[str, tuple[Rewound, _Log]] = {}
        self.doubted: dict[str, set[Where]] = {}
        self.remade: set[str] = set()
        self.group: dict[str, list[dict[int, int]]] = defaultdict(list)
        self.forgotten: set[int] = set()
        self.known: dict[str, set[int]] = {}

    def take(self, event: Event, before: Committed | None) -> None:
        match event:
            case Rewound():
                self.asked[event.run] = event, self._log(event)
                self.doubted[event.run], self.known[event.run] = set(), set(self.forgotten)
            case Looked(what="group") if event.run in self.asked:
                self.group[event.run].append({p: at for p, (at, _) in self.ledger.group.items()})
            case Truncated():
                for doubted in self.doubted.values():
                    doubted.add((event.topic_id, event.partition))
            case TopicMade():
                self.remade |= self.asked.keys()  # whoever looked before may have asked either for its ends
            case Forgotten():
                self.forgotten.add(event.sequence)
            case CatalogSetBack():
                self.forgotten = {n for n in self.forgotten if n < event.sequence}
            case Committed(kind="rewind") if before is not None and event.run in self.asked:
                if event.run not in self.remade:
                    self._goes_where_it_was_asked(before, event, *self.asked[event.run])
                self._named_only(before, event, self.asked[event.run][0].only)

    def _log(self, asked: Rewound) -> _Log:
        """As it is now."""
        ends: dict[Where, int] = defaultdict(int, self.ledger.log_start)
        opened: dict[Where, int] = {}
        from_then: dict[Where, int] = {}
        for c, record in self.ledger.records.items():
            where, begins = c[:2], self.ledger.log_start.get(c[:2], 0)
            ends[where] = max(ends[where], c[2] + 1)
            if self.ledger.seen[c] == "open" and c not in self.ledger.gone:
                opened[where] = min(c[2], opened.get(where, c[2]))
            if asked.time_ms is not None and c[2] >= begins and record.timestamp_ms >= asked.time_ms:
                from_then[where] = min(c[2], from_then.get(where, c[2]))
        begin = {where: self.ledger.log_start.get(where, 0) for where in ends}
        stable = {where: max(begin[where], min(end, opened.get(where, end))) for where, end in ends.items()}
        return _Log(begin, stable, {w: min(end, from_then.get(w, end)) for w, end in stable.items()})

    def _goes_where_it_was_asked(self, before: Committed, head: Committed, asked: Rewound, then: _Log) -> None:
        now, words = self._log(asked), dict(asked.words)
        to = dict(asked.to)
        wrong: dict[int, int] = {}
        for p, at in sorted(head.positions.items()):
            if asked.only is not None and p not in asked.only:
                continue
            allowed = {to[p]} if p in to else self._places(words.get(p, asked.word), before, head, p, then, now)
            if allowed is not None and at not in allowed:
                wrong[p] = at
        if wrong:
            what = f"head {head.sequence} goes to {wrong}, and was asked for {asked.word} {words or to or ''}"
            self.case.say(Kind.STALE_WRITER, what)

    def _places(
        self, word: str, before: Committed, head: Committed, p: int, then: _Log, now: _Log
    ) -> set[int] | range | None:
        """Where it may go; None: anywhere."""
        where = head.topic_id, p

        def between(places: dict[Where, int], later: dict[Where, int]) -> range | None:
            """From what it was when it was asked to what it is now: of a log that was not cut off it only grows."""
            doubted = where in self.doubted[head.run]
            return None if doubted else range(places.get(where, 0), later.get(where, 0) + 1)

        if word in _BEGINNING:
            return range(then.begins.get(where, 0), now.begins.get(where, 0) + 1)
        if word == "latest":
            return between(then.ends, now.ends)
        if word == "a time":
            return between(then.at_time, now.at_time)
        if before.topic_id != head.topic_id:
            return None
        stood = before.positions.get(p)
        if word == "head":
            return {stood} if stood is not None else between(then.begins, now.begins)
        if word == "group" and self.group[head.run]:
            return {shown.get(p, -1 if stood is None else stood) for shown in self.group[head.run]}
        if word == "previous":
            return {at for known in (self.known[head.run], self.forgotten) for at in self._previous(before, p, known)}
        return None

    def _previous(self, before: Committed, p: int, forgotten: set[int]) -> list[int]:
        """Where the newest head stood that is there still, and stood elsewhere; a partition that it did not know, at
        its beginning."""
        for older in reversed(self.ledger.heads):
            was = dict.fromkeys(before.positions, 0) | older.positions
            mine = older.sequence < before.sequence and older.sequence not in forgotten
            if mine and older.topic_id == before.topic_id and was != before.positions:
                return [was.get(p, 0)]
        return []

    def _named_only(self, before: Committed, head: Committed, only: tuple[int, ...] | None) -> None:
        """A rewind of some partitions moves no other one."""
        if only is None:
            return
        moved = [p for p, at in before.positions.items() if p not in only and head.positions.get(p) != at]
        if moved:
            what = f"head {head.sequence} moves partitions {moved}, only {only} were named"
            self.case.say(Kind.STALE_WRITER, what)
