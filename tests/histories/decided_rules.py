"""What operators decide about what is held is done: not told and left, and not something else than was asked."""

from __future__ import annotations

from tests.domain.oracle import Truth
from tests.histories.anomaly import Kind
from tests.histories.case import Case, Rule
from tests.histories.events import Answered, Committed, Event, Held, Planned
from tests.histories.ledger import identity


class DecidedRules(Rule):
    """`named`: of what is picked now, by waveform, the chunks that name the copy. `answered`: plans that somebody
    parks, or accepts, at their gate."""

    def __init__(self, case: Case) -> None:
        super().__init__(case)
        self.named: dict[str, list[Held]] = {}
        self.answered: set[str] = set()

    def first_look(self, event: Event) -> None:
        if isinstance(event, Committed) and event.kind == "held":
            plan = self.ledger.plans.get(event.plan_id)
            with self.ledger.as_planned(event.plan_id):
                picks = plan is not None and plan.action == "pick"
                self.named = {i: self._named(i, plan.pick) for i in plan.ids} if picks and plan is not None else {}

    def take(self, event: Event, before: Committed | None) -> None:
        match event:
            case Answered():
                self.answered.add(event.plan_id)
            case Committed(kind="held") if (plan := self.ledger.plans.get(event.plan_id)) is not None:
                with self.ledger.as_planned(event.plan_id):
                    for waveform_id in plan.ids:
                        self._is_done(plan, waveform_id)
                        self._is_of_the_copy(event, waveform_id)

    def _is_done(self, plan: Planned, waveform_id: str) -> None:
        """A decision is no decision where everything is as it was."""
        reasons = {row.reason for row in self.ledger.effective(waveform_id)}
        done = {
            "accept": bool(self.ledger.published.get(waveform_id)),
            "pick": "conflict" not in reasons or bool(self.ledger.published.get(waveform_id)),
            "discard": not self.ledger.undecided(waveform_id),
            "restore": "discarded" not in reasons,
            "redrive": self._is_redriven(plan, waveform_id),
        }
        if not done.get(plan.action, True):
            self.case.say(Kind.UNTRUE, f"an operator's {plan.action} is told as done, and is not", [waveform_id])

    def _is_redriven(self, plan: Planned, waveform_id: str) -> bool:
        """What is whole and sound is published, unless the gate refuses it, or closes."""
        if self.ledger.published.get(waveform_id) or waveform_id in self.case.ever_refused:
            return True
        rows = [row for row in self.ledger.effective(waveform_id) if row.reason != "discarded"]
        if any(row.reason == "parked" for row in rows) and (plan.parks or plan.plan_id in self.answered):
            return True
        pieces = [piece for row in rows if (piece := self.ledger.piece_of(row)) is not None]
        return not (pieces and all(map(self.ledger.stands, map(identity, rows))) and Truth(tuple(pieces)).publishable)

    def _named(self, waveform_id: str, pick: str) -> list[Held]:
        """By record time and place; by its place alone it may be one of several."""
        rows = [r for r in self.ledger.effective(waveform_id) if r.reason != "discarded"]
        if pick not in ("first", "last"):
            return [r for r in rows if pick in (f"{r.partition}:{r.offset}", f"{r.topic_id}:{r.partition}:{r.offset}")]
        order = {id(r): (record.timestamp_ms, r.coordinate) for r in rows if (record := self.ledger.record_of(r))}
        best = (min if pick == "first" else max)(order.values(), default=None)
        return [r for r in rows if order.get(id(r)) == best]

    def _is_of_the_copy(self, head: Committed, waveform_id: str) -> None:
        named, published = self.named.get(waveform_id), self.ledger.published.get(waveform_id)
        if not named:
            return
        if published and published[-1].sequence == head.sequence:
            made = {(n, length, piece) for n, (*_, length, piece) in enumerate(published[-1].chunks)}
            taken = any((r.seq, r.length, r.piece) in made for r in named)
        else:
            now = {(r.coordinate, identity(r)): r.reason for r in self.ledger.newest(waveform_id)}
            taken = bool(published) or any(now.get((r.coordinate, identity(r))) != "discarded" for r in named)
        if not taken:
            what = f"an operator picked one copy, and head {head.sequence} takes another"
            self.case.say(Kind.STALE_WRITER, what, [waveform_id], [named[0].coordinate])
