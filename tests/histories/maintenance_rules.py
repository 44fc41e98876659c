"""Maintenance: a stage that fails keeps no other one from being tried; what killed readers left goes once it is old,
and nothing that somebody is at work on; of what is held only records that are no chunks expire, after their time.
"""

from __future__ import annotations

from tests.histories.anomaly import Kind
from tests.histories.case import Case, Rule
from tests.histories.events import Committed, Ended, Event, Started
from tests.histories.maintenance_events import Cleared, JunkGoes, LeftBehind, StageBegun

STAGES = ("leftovers", "held", "junk", "snapshots", "orphans")
"""Those that a history has, in their order."""
AGE_MS = 600_000
JUNK_MS = 30 * 86_400_000
"""So long records that are no chunks are held at least."""


class MaintenanceRules(Rule):
    """`begun`: by run of maintenance, the stages that it has begun. `files`: in the making, those that were left."""

    def __init__(self, case: Case) -> None:
        super().__init__(case)
        self.begun: dict[str, list[str]] = {}
        self.files: dict[str, LeftBehind] = {}

    def take(self, event: Event, before: Committed | None) -> None:
        match event:
            case Started(what="maintain"):
                self.begun[event.run] = []
            case StageBegun():
                self.begun[event.run].append(event.stage)
            case LeftBehind():
                self.files[event.name] = event
            case Cleared():
                self._cleared(event)
            case JunkGoes():
                self._junk_goes(event)
            case Ended() if event.run in self.begun:
                self._ended(event)

    def _ended(self, event: Ended) -> None:
        untried = [stage for stage in STAGES if stage not in self.begun[event.run]]
        # Where none was begun, whose catalog it is was not known; who was killed tries nothing any more.
        if untried and self.begun[event.run] and event.reason != "killed":
            what = f"{event.run} (maintain) ended by {event.reason} and never tried {', '.join(untried)}"
            self.case.say(Kind.UNBOUNDED_COST, what)

    def _junk_goes(self, event: JunkGoes) -> None:
        for row, held_ms, is_chunk in event.rows:
            if is_chunk or held_ms >= event.now_ms - JUNK_MS:
                what = "a chunk that is held" if is_chunk else "junk that is young yet"
                self.case.say(Kind.LOST, f"{event.run} lets {what} expire: {row}")

    def _cleared(self, event: Cleared) -> None:
        for name, file in list(self.files.items()):
            there, old = name in event.left, file.at_ms < event.now_ms - AGE_MS
            if there and old and not file.alive:
                self.case.say(Kind.UNBOUNDED_COST, f"{event.run} leaves a file of a killed reader: {name}")
            if not there and (file.alive or not old):
                whose = "somebody is at work on" if file.alive else "is young yet"
                self.case.say(Kind.LOST, f"{event.run} takes a file away that {whose}: {name}")
            if not there:
                del self.files[name]
