"""What all rules of the checker share: the ledger, who looked and acted when, and what was found; and what a rule is.

A rule takes the events in their order and says what is wrong with them. Decides nothing itself.
"""

from __future__ import annotations

from collections.abc import Iterable

from tests.histories.anomaly import Anomaly, Kind
from tests.histories.events import (
    Committed,
    Coordinate,
    Event,
    Held,
    Looked,
    Planned,
    Produced,
    Projected,
    Quiet,
    Read,
    Recorded,
)
from tests.histories.kept_in_front import KeptInFront
from tests.histories.knowledge import ACTED, PREPARED, Knowledge
from tests.histories.late_events import GivenUp, Landed, Lands
from tests.histories.ledger import Ledger
from tests.histories.promotion_events import GateSays
from tests.histories.table_events import CatalogSetBack

MOVED_ON_PURPOSE = ("rewind", "adopted", "rebuilt")
_ACTS = (Planned, Read, Held, Committed, Recorded, Projected)
"""A row that is published is none of its own: it becomes visible by the head that comes after it, in one."""


class Case:
    """`at`: number of the event. `known`: when runs looked and acted. `kept`: what heads keep of the log. `heads_at`:
    when each head of today's tables was committed, and its kind. `kept_until`: of a catalog that was set back, the
    event up to which it knows what was done. `refused`: waveforms that the gate refuses now; `ever_refused`: those that
    it ever has."""

    def __init__(self) -> None:
        self.ledger = Ledger()
        self.at = -1
        self.found: list[Anomaly] = []
        self.known = Knowledge()
        self.kept = KeptInFront(self.ledger)
        self.heads_at: list[tuple[int, str]] = []
        self.kept_until = -1
        self.quiet = False
        self.refused: set[str] = set()
        self.ever_refused: set[str] = set()

    def say(
        self, kind: Kind, what: str, ids: Iterable[str] = (), at: Iterable[Coordinate] = (), event: int | None = None
    ) -> None:
        self.found.append(Anomaly(kind, what, tuple(ids), tuple(at), self.at if event is None else event))

    def take(self, event: Event) -> None:
        if isinstance(event, CatalogSetBack):
            kept = [
                at for (at, _), h in zip(self.heads_at, self.ledger.heads, strict=True) if h.sequence <= event.sequence
            ]
            self.kept_until = kept[-1] if kept else -1
            self.heads_at = self.heads_at[: len(kept)]
            self.ledger.set_back(event.sequence, held=bool(event.sequence) or event.dropped)
            self.kept.set_back(event.sequence)
            return
        self.ledger.take(event)
        if isinstance(event, _ACTS):
            self.known.note(event.run, ACTED, self.at)
        if isinstance(event, Planned | Read):
            self.known.note(event.run, PREPARED, self.at)
        match event:
            case Committed():
                self.heads_at.append((self.at, event.kind))
                self.kept.committed(event)
            case Planned():
                self.kept.planned(event)
            case Looked():
                self.known.note(event.run, event.what, self.at)
            case GivenUp() | Lands() | Landed():
                self.known.take(event, self.at)
            case GateSays(refuses=True):
                self.refused.add(event.id)
                self.ever_refused.add(event.id)
            case GateSays():
                self.refused.discard(event.id)
            case Quiet():
                self.quiet = True

    def could_not_know(self, run: str, what: str, happened: int) -> bool:
        """Who looked, then writes, and in between it happened, cannot be fenced by anyone. Who has done anything but
        look since then has no such excuse."""
        return self.known.last(run, ACTED) < self.known.last(run, what) < happened


BY_THE_THOUSAND = (Produced, Looked)
"""Three of four events; nearly all rules have nothing to say to them."""


class Rule:
    """One idea of what can be wrong. Its findings are the case's."""

    hears: tuple[type[Event], ...] = ()
    """Which of those that are there by the thousand it takes. All others it takes, and has a first look at."""

    def __init__(self, case: Case) -> None:
        self.case = case

    @property
    def ledger(self) -> Ledger:
        return self.case.ledger

    def first_look(self, event: Event) -> None:
        """Before the ledger takes the event."""

    def take(self, event: Event, before: Committed | None) -> None:
        """`before`: the newest head before this event."""

    def close(self) -> None:
        """What shows at the end only."""
