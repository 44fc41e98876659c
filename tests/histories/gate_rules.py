"""Closed gates: nobody goes past a batch that stands at one, until it is committed, given up or fenced.

No ingest at all, and no other batch that publishes one of the waveforms that were stopped, but who accepts them. Nor is
a batch committed that somebody has given up. Who has looked since it decided on the newest head, right before its
commit, and before the gate closed, could not know.
"""

from __future__ import annotations

from collections import defaultdict

from tests.histories.anomaly import Kind
from tests.histories.case import MOVED_ON_PURPOSE, Case, Rule
from tests.histories.events import Abandoned, Answered, Committed, Event, GateClosed, Published
from tests.histories.knowledge import PREPARED
from tests.histories.table_events import CatalogSetBack


class GateRules(Rule):
    """`closed`: plans whose gate has closed, also those that were given up since: who commits one of them either could
    not know, or is said to have known. `answered`: that somebody accepted or parked. `stopped`: the waveforms.
    `standing`: plans that bar others, and since which event. `rows`: published with the head that comes next.
    `given_up`: plans, and since when."""

    def __init__(self, case: Case) -> None:
        super().__init__(case)
        self.closed: set[str] = set()
        self.answered: set[str] = set()
        self.stopped: dict[str, set[str]] = defaultdict(set)
        self.standing: dict[str, int] = {}
        self.rows: list[Published] = []
        self.given_up: dict[str, int] = {}

    def take(self, event: Event, before: Committed | None) -> None:
        match event:
            case GateClosed():
                self.closed.add(event.plan_id)
                self.stopped[event.plan_id] |= set(event.ids)
                # Where somebody had given it up before, whoever carried it still hears of its gate alone.
                if self._can_still_commit(event.plan_id) and event.plan_id not in self.given_up:
                    self.standing[event.plan_id] = self.case.at
            case Answered():
                self.answered.add(event.plan_id)
            case Abandoned():
                self.standing.pop(event.plan_id, None)
                self.given_up.setdefault(event.plan_id, self.case.at)
            case Published():
                self.rows.append(event)
            case Committed():
                self.standing.pop(event.plan_id, None)
                self._past_a_gate(event)
                self._given_up(event)
                self.rows = []
                self._who_still_stands()
            case CatalogSetBack():
                self.closed = self.closed if event.sequence else set()
                self._who_still_stands()

    def _who_still_stands(self) -> None:
        self.standing = {i: since for i, since in self.standing.items() if self._can_still_commit(i)}

    def _can_still_commit(self, plan_id: str) -> bool:
        """Whether it bars others and nobody has fenced it. A backfill stands in nobody's way."""
        plan = self.ledger.plans[plan_id]
        if not self.ledger.heads or plan.generation != self.ledger.heads[-1].generation:
            return False
        return plan.kind == "held" or (plan.kind == "ingest" and plan.positions == self.ledger.heads[-1].positions)

    def _past_a_gate(self, head: Committed) -> None:
        if not head.plan_id or head.plan_id in self.closed & self.answered or head.kind in MOVED_ON_PURPOSE:
            return
        for plan_id, since in self.standing.items():
            if not self._could_not_know(head.run, "gates", since) and self._bars(plan_id, head):
                what = (
                    f"head {head.sequence} ({head.kind}) goes past batch {plan_id[:8]}, which stands at a closed gate"
                )
                self.case.say(Kind.INVENTED, what)

    def _given_up(self, head: Committed) -> None:
        since = self.given_up.get(head.plan_id)
        if since is not None and not self._could_not_know(head.run, "abandoned", since):
            what = f"head {head.sequence} ({head.kind}) commits batch {head.plan_id[:8]}, which somebody had given up"
            self.case.say(Kind.STALE_WRITER, what)

    def _could_not_know(self, run: str, what: str, happened: int) -> bool:
        """Who decides on the newest head, then looks, then commits. Who looks at the head once more, right before that,
        finds it still, or commits nothing."""
        known, asked = self.case.known, self.case.known.last(run, what)
        newest = max((at for at, _ in self.case.heads_at[:-1]), default=-1)
        decided = newest if known.last(run, "head") > asked else known.last(run, "head")
        return max(decided, known.last(run, PREPARED)) < asked < happened

    def _bars(self, stopped: str, head: Committed) -> bool:
        mine = self.ledger.plans.get(head.plan_id)
        if head.kind == "ingest" or mine is None:
            return True
        return mine.action != "accept" and any(row.id in self.stopped[stopped] for row in self.rows)
