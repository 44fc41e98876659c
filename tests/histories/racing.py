"""What operators of a random history do in the very moment in which somebody else publishes, or with second copies.

A gate closes, or a batch is given up, between a run's last look and its commit; what was stopped is sent once more and
read by a batch that never saw the first copy. Judges nothing.
"""

from __future__ import annotations

from functools import partial

from tests.builders.ranges import span
from tests.builders.records import Letter
from tests.fakes.faults import Steps
from tests.histories.undoing import Undoing
from wavestitch.batch.held_waveforms import Selection
from wavestitch.batch.plan import PlanRequest
from wavestitch.contracts.held_choice import HeldAction
from wavestitch.contracts.plan import PlanKind
from wavestitch.contracts.reasons import Reason

STAGED = "staging.keep"
"""What a run does last before it asks once more and commits."""


class Racing(Undoing):
    """Undoing, and being late."""

    def stops_by_itself(self, count: int, to: int) -> tuple[list[Letter], list[Letter]]:
        """Waveforms of one chunk each: those that close the gate where they are alone, and those that do not. The bad
        ones are sent."""
        waves = [self.new_waveform(1)[0] for _ in range(count)]
        sound = [one for one in waves if self.id_of(one) not in self.failing]
        bad = [one for one in sound if self.id_of(one) in self.spoiled]
        for one in bad[:1]:
            self.send(one, to)
        return bad[:1], [one for one in sound if self.id_of(one) not in self.spoiled]

    @property
    def may_race(self) -> bool:
        return not self.busy and self.stream.on_closed_gate == "stop"

    def given_up_while_it_publishes(self) -> None:
        """Somebody accepts what stands at a closed gate, and somebody else gives it up at the same time."""
        if not self.may_race:
            return
        bad, _ = self.stops_by_itself(8, self.a_partition()[0])
        if not bad:
            return
        self.all_there_is()
        standing = [i for i in self.bench.gates if i not in self.bench.abandoned]
        if not standing:
            return
        plan = self.bench.plans[standing[-1]]
        accepts = self.launch("ingest again", partial(self.carry, plan, self.carrying(gate="accept")), now=0)
        if self.just_before_it_commits(accepts):
            self.ops["given up while it publishes"] += 1
            self.bench.abandoned.add(plan.plan_id)
            self.bench.tell("abandoned", plan_id=plan.plan_id)
        self.step(accepts, 1000)

    def gate_closes_while_another_publishes(self) -> None:
        """Two redrive at once: one among more that is good, the other what closes the gate alone."""
        if not self.may_race:
            return
        p = self.a_partition()[0]
        bad, good = self.stops_by_itself(8, p)
        for one in good[:3]:
            self.send(one, p)
        if not bad or len(good) < 2:
            return
        self.all_there_is(park=True)
        parked = {r.held.chunk.waveform_id for r in self.bench.tables.held_rows() if r.held.reason is Reason.PARKED}
        ids = [i for i in (self.id_of(one) for one in (*bad, *good[:3])) if i in parked]
        if self.id_of(bad[0]) not in parked or len(ids) < 3:
            return
        first = self.launch_decision(HeldAction.REDRIVE, Selection(ids=tuple(ids)), now=0)
        if self.just_before_it_commits(first):
            self.ops["gate closes while another publishes"] += 1
            self.launch_decision(HeldAction.REDRIVE, Selection(ids=(self.id_of(bad[0]),)), far=True)
        self.step(first, 1000)

    @staticmethod
    def just_before_it_commits(run: Steps) -> bool:
        while not run.done and run.at != STAGED:
            run.advance()
        return not run.done

    def published_while_its_undo_is_worked_out(self) -> None:
        """Somebody takes back what was decided about two waveforms; the rest of one comes meanwhile, and is read."""
        if self.busy:
            return
        (one, rest), (first, last) = self.new_waveform(2), self.new_waveform(2)
        wanted = Selection(ids=(self.id_of(one), self.id_of(first)))
        self.send(one)
        self.send(first)
        self.all_there_is()
        self.launch_decision(HeldAction.DISCARD, wanted, far=True)
        undo = self.take_back(self.launch_decision(HeldAction.RESTORE, wanted, far=True), now=0)
        if undo is not None:
            self.step(undo, self.random.randrange(12))
            self.send(last)
            self.all_there_is()
            self.step(undo, 1000)
        self.late.append(rest)

    def second_copies(self) -> None:
        """What was stopped is sent once more, among what is good, and only that is read by named offsets."""
        if not self.may_race:
            return
        p, at = self.a_partition()
        bad, good = self.stops_by_itself(8, p)
        if not bad or len(good) < 2:
            return
        self.all_there_is()
        start = at.end
        for one in (*bad, *good):
            self.send(one, p)
        self.ops["second copies"] += 1
        named = (span(p, start, at.end),)
        request = PlanRequest(PlanKind.MANUAL, ranges=named)
        self.launch("manual", partial(self.batch, self.stream, request), far=True)
