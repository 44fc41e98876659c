"""Runs: each ends, in time, and by a known reason; what a refusal names as the way out is one."""

from __future__ import annotations

import re
from collections.abc import Iterator
from math import inf

from tests.histories.anomaly import Kind
from tests.histories.case import Case, Rule
from tests.histories.events import (
    Advised,
    Committed,
    Ended,
    Event,
    Looked,
    Planned,
    Started,
    Truncated,
    Unhindered,
    Where,
)

ENDS = frozenset(
    (
        *("done", "nothing to do", "killed"),
        *("Fenced", "Refused", "DataLost", "Transient", "StateUnknown", "GateClosed", "Terminal"),
    )
)
_GO_TO, _UNTIL = (re.compile(rf"`wavestitch {said} ([^ `]+)") for said in (r"rewind \S+ --to", r"run [^`]*--until"))


class RunRules(Rule):
    """`runs`: those under way. `said`: how each one ended. `advised`: by run, whose refusal it follows. `exchanged`: by
    partition, when it was last cut off; `began`: by run, when. `free`: runs that nothing speaks against. `kept`: those
    that have a plan, and have to look once more at what came since; `saw`: of the others, the head that they know."""

    hears = (Looked,)

    def __init__(self, case: Case) -> None:
        super().__init__(case)
        self.runs: dict[str, Started] = {}
        self.said: dict[str, str] = {}
        self.advised: dict[str, str] = {}
        self.exchanged: dict[Where, int] = {}
        self.began: dict[str, int] = {}
        self.free: set[str] = set()
        self.kept: set[str] = set()
        self.saw: dict[str, Committed | None] = {}

    def take(self, event: Event, before: Committed | None) -> None:
        match event:
            case Started():
                self.runs[event.run] = event
                self.began[event.run] = self.case.at
            case Looked(what="head"):
                self.saw[event.run] = before
            case Planned():
                self.kept.add(event.run)
            case Ended():
                self._ended(event)
                known = before if event.run in self.kept else self.saw.get(event.run, before)
                if event.reason == "DataLost" and known is not None:
                    self._goes_past(event, known)
            case Truncated():
                self.exchanged[event.topic_id, event.partition] = self.case.at
            case Unhindered():
                self.free.add(event.run)
            case Advised():
                self.advised[event.run] = event.of

    def _ended(self, event: Ended) -> None:
        started, say = self.runs.pop(event.run, None), self.case.say
        self.said[event.run] = event.text
        before = self.said.get(self.advised.get(event.run, ""), "")
        if event.text and event.text == before:
            say(
                Kind.UNBOUNDED_END,
                f"{event.run} does what a refusal names as the way out, and is refused by it: {before}",
            )
        if started is None:
            say(Kind.UNBOUNDED_END, f"{event.run} ended without having begun, or twice")
        elif event.at > started.deadline:
            say(Kind.UNBOUNDED_END, f"{event.run} ({started.what}) ended at {event.at}, due at {started.deadline}")
        elif event.reason not in ENDS:
            say(Kind.UNBOUNDED_END, f"{event.run} ({started.what}) ended by no known reason: {event.reason}")
        elif event.run in self.free and event.reason != "done":
            why = f"ended though nothing speaks against it: {event.reason}, {event.text}"
            say(Kind.UNBOUNDED_END, f"{event.run} ({started.what}) {why}")

    def _goes_past(self, event: Ended, head: Committed) -> None:
        """The way past what is gone that it names: what is there is read before that, or after it."""
        first = dict(_places(_UNTIL, event.text, head))
        to = dict(_places(_GO_TO, event.text, head))
        there = self.ledger.readable() if to else set()
        for p, at in to.items():
            where, start = (head.topic_id, p), max(head.positions.get(p, 0), first.get(p, 0))
            passed = {c for c in there if c[:2] == where and start <= c[2] < at}
            if passed and self.exchanged.get(where, -1) < self.began.get(event.run, 0):
                what = f"{event.run} names a way past what is gone that leaves out what is there"
                self.case.say(Kind.UNEXPLAINED_GAP, what, at=sorted(passed))

    def close(self) -> None:
        for run, started in self.runs.items():
            self.case.say(Kind.UNBOUNDED_END, f"{run} ({started.what}) never ended")


def _places(command: re.Pattern[str], text: str, head: Committed) -> Iterator[tuple[int, float]]:
    """By partition, the offset that a command names, or the end; what else a word means leaves nothing out."""
    for found in command.findall(text):
        for part in found.split(","):
            p, _, where = part.rpartition(":")
            for partition in [int(p)] if p else head.positions:
                if where == "latest" or where.isdecimal():
                    yield partition, inf if where == "latest" else int(where)
