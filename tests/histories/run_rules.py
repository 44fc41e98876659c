"""Runs: each ends, in time, and by a known reason; what a refusal names as the way out is one."""

from __future__ import annotations

import re

from tests.histories.anomaly import Kind
from tests.histories.case import Case, Rule
from tests.histories.events import (
    Advised,
    Committed,
    Coordinate,
    Ended,
    Event,
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
_ACCEPTS = re.compile(r"`wavestitch rewind [^`]* --accept-skip ([^ `]+)")


class RunRules(Rule):
    """`runs`: those under way. `said`: how each one ended. `advised`: by run, whose refusal it follows. `exchanged`: by
    partition, when it was last cut off; `began`: by run, when. `free`: runs that nothing speaks against."""

    def __init__(self, case: Case) -> None:
        super().__init__(case)
        self.runs: dict[str, Started] = {}
        self.said: dict[str, str] = {}
        self.advised: dict[str, str] = {}
        self.exchanged: dict[Where, int] = {}
        self.began: dict[str, int] = {}
        self.free: set[str] = set()

    def take(self, event: Event, before: Committed | None) -> None:
        match event:
            case Started():
                self.runs[event.run] = event
                self.began[event.run] = self.case.at
            case Ended():
                self._ended(event)
                if event.reason == "DataLost" and before is not None:
                    self._goes_past(event, before.topic_id)
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

    def _goes_past(self, event: Ended, topic_id: str) -> None:
        """What is given up on the way past what is gone that it names is not there any more."""
        for found in _ACCEPTS.findall(event.text):
            passed = {c for c in self.ledger.readable() if c[0] == topic_id and _is_named(c, found)}
            if {c for c in passed if self.exchanged.get(c[:2], -1) < self.began.get(event.run, 0)}:
                what = f"{event.run} names a way past what is gone that leaves out what is there"
                self.case.say(Kind.UNEXPLAINED_GAP, what, at=sorted(passed))

    def close(self) -> None:
        for run, started in self.runs.items():
            self.case.say(Kind.UNBOUNDED_END, f"{run} ({started.what}) never ended")


def _is_named(c: Coordinate, accepted: str) -> bool:
    """Whether `--accept-skip` accepts it."""
    ranges = [re.split("[:-]", one) for one in accepted.split(",") if one != "all"]
    return accepted == "all" or any(c[1] == int(p) and int(start) <= c[2] < int(end) for p, start, end in ranges)
