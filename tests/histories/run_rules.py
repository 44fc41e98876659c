"""Runs: each ends, in time, and by a known reason; what a refusal names as the way out is one."""

from __future__ import annotations

from tests.histories.anomaly import Kind
from tests.histories.case import Case, Rule
from tests.histories.events import Advised, Committed, Ended, Event, Started

ENDS = frozenset(
    (
        *("done", "nothing to do", "killed"),
        *("Fenced", "Refused", "DataLost", "Transient", "StateUnknown", "GateClosed", "Terminal"),
    )
)


class RunRules(Rule):
    """`runs`: those under way. `said`: how each one ended. `advised`: by run, whose refusal it follows."""

    def __init__(self, case: Case) -> None:
        super().__init__(case)
        self.runs: dict[str, Started] = {}
        self.said: dict[str, str] = {}
        self.advised: dict[str, str] = {}

    def take(self, event: Event, before: Committed | None) -> None:
        match event:
            case Started():
                self.runs[event.run] = event
            case Ended():
                self._ended(event)
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

    def close(self) -> None:
        for run, started in self.runs.items():
            self.case.say(Kind.UNBOUNDED_END, f"{run} ({started.what}) never ended")
