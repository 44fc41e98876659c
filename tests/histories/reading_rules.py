"""Reading: no run takes in what it does not touch, nor more than its batch may; none says of what is there that it is
lost, nor of a log that nobody cut off that somebody did.
"""

from __future__ import annotations

import re
from collections import defaultdict

from tests.domain.oracle import size_of
from tests.histories.anomaly import Kind
from tests.histories.case import Case, Rule
from tests.histories.events import (
    Committed,
    Coordinate,
    Ended,
    Event,
    Planned,
    Produced,
    Read,
    Started,
    TopicMade,
    Truncated,
)
from tests.histories.reading_events import Loaded, Named, Opened

_LOST = re.compile(r"partition (\d+) \[\d+, \d+\): offsets (\[.*\))(?: and \d+ more)? hold no record")
_CUT = re.compile(r"partition (\d+) \[\d+, \d+\): the log was cut off before|was cut off before \d+ on partition (\d+)")
_INTERVAL = re.compile(r"\[(\d+), (\d+)\)")


class ReadingRules(Rule):
    """`began`: runs under way, what each is, and since which event. `touched`: by run, the places that it read, and
    `taken` by run and plan, all of it. `since`: when what lies at a place was produced. `cut`: partitions that were cut
    off at any time. `made`: since which event the topic is there. `named`: by run, what it is
    asked to read."""

    hears = (Produced,)

    def __init__(self, case: Case) -> None:
        super().__init__(case)
        self.began: dict[str, tuple[str, int]] = {}
        self.touched: dict[str, set[Coordinate]] = defaultdict(set)
        self.taken: dict[tuple[str, str], list[int]] = defaultdict(list)
        self.since: dict[Coordinate, int] = {}
        self.cut: set[tuple[str, int]] = set()
        self.made = 0
        self.named: dict[str, Named] = {}

    def take(self, event: Event, before: Committed | None) -> None:
        match event:
            case Started():
                self.began[event.run] = event.what, self.case.at
            case Produced():
                self.since[event.coordinate] = self.case.at
            case TopicMade():
                self.made = self.case.at
            case Truncated():
                self.cut.add((event.topic_id, event.partition))
                gone = [c for c in self.since if c[:2] == (event.topic_id, event.partition) and c[2] >= event.end]
                for c in gone:
                    del self.since[c]
            case Named():
                self.named[event.run] = event
            case Planned(kind="manual") if event.run in self.named:
                self._plans(event)
            case Planned(kind="ingest") if event.run in self.named:
                self._ingests(event, self.named.pop(event.run))
            case Read():
                self._read(event)
            case Loaded():
                self._loaded(event)
            case Opened():
                what = f"{event.run} opened {len(event.files)} files for ids that are not in them"
                self.case.say(Kind.UNBOUNDED_COST, what)
            case Ended():
                self._cut_off(event)
                self._lost(event)

    def _plans(self, plan: Planned) -> None:
        """All that was named, and nothing else."""
        planned = {(p, o) for p, start, end in plan.ranges for o in range(start, end)}
        named = {(p, o) for p, start, end in self.named.pop(plan.run).ranges for o in range(start, end)}
        if planned != named:
            where = [(plan.topic_id, *at) for at in sorted(planned ^ named)]
            self.case.say(Kind.UNTRUE, f"{plan.run} was asked for other offsets than it reads", at=where)

    def _ingests(self, plan: Planned, asked: Named) -> None:
        """No partition that was not named; and as far as was named, unless that is more than a batch takes."""
        ends = {p: end for p, start, end in plan.ranges if start < end}
        others = set() if asked.only is None else ends.keys() - set(asked.only)
        full = asked.most is None or sum(end - start for _, start, end in plan.ranges) >= asked.most
        until = {p: end for p, end in asked.until if asked.only is None or p in asked.only}
        reach = {p: (ends.get(p, plan.positions.get(p, 0)), end) for p, end in until.items()}
        others |= {p for p, (at, end) in reach.items() if at > end or (at < end and not full)}
        if others:
            at = [(plan.topic_id, p, ends.get(p, 0)) for p in sorted(others)]
            self.case.say(Kind.UNTRUE, f"{plan.run} was asked to ingest otherwise than it reads", at=at)

    def _read(self, event: Read) -> None:
        read = {(event.topic_id, event.partition, o) for o in event.offsets}
        self.touched[event.run] |= read
        plan, taken = self.ledger.plans.get(event.plan_id), self.taken[event.run, event.plan_id]
        was = sum(taken)
        taken += [size_of(self.ledger.records[c]) for c in sorted(read) if c in self.ledger.records]
        most = None if plan is None else plan.most_bytes
        # One record always fits, however large it is.
        if most is not None and was <= most < sum(taken) and len(taken) > 1:
            what = f"{event.run} read {sum(taken)} bytes for a batch that may take {most}"
            self.case.say(Kind.UNBOUNDED_COST, what, at=sorted(read))

    def _loaded(self, event: Loaded) -> None:
        if self.began.get(event.run, ("", 0))[0] in ("verify", "promote: shown"):
            return  # it looks at all that is held from its range, and not for a batch
        strange = set(event.strange) - self.touched[event.run]
        if strange:
            what = f"{event.run} loaded {len(strange)} held records that are no chunks, from where it read nothing"
            self.case.say(Kind.UNBOUNDED_COST, what, at=sorted(strange))

    def _cut_off(self, event: Ended) -> None:
        """Of a topic that was made anew meanwhile a run may say so that began before: its records are others, too."""
        _, began = self.began.get(event.run, ("", -1))
        cut = {p for topic_id, p in self.cut if topic_id == self.ledger.topic_id}
        if began > self.made and any(int(said[1] or said[2]) not in cut for said in _CUT.finditer(event.text)):
            self.case.say(Kind.UNTRUE, f"{event.run} said of a log that nobody cut off that it was: {event.text}")

    def _lost(self, event: Ended) -> None:
        """What a run ends with is what somebody skips by name."""
        _, began = self.began.pop(event.run, ("", -1))
        said = _LOST.search(event.text)
        if said is None:
            return
        intervals = [(int(a), int(b)) for a, b in _INTERVAL.findall(said[2])]
        places = [(self.ledger.topic_id, int(said[1]), o) for a, b in intervals for o in range(a, b)]
        there = [c for c in places if self.since.get(c, began) < began and self._is_there(c)]
        if there:
            what = f"{event.run} named {len(there)} offsets as lost that were there all along: {event.text}"
            self.case.say(Kind.UNTRUE, what, at=there)

    def _is_there(self, place: Coordinate) -> bool:
        return place not in self.ledger.gone and place[2] >= self.ledger.log_start.get(place[:2], 0)
