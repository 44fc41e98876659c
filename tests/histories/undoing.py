"""What operators of a random history take back, and what they decide beside each other and behind an election.

Undo as the command line does it: of the newest head that was shown, or of one batch. Judges nothing.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from tests.builders.ranges import span
from tests.builders.records import Letter, letter
from tests.fakes.batch import FakeEdges
from tests.fakes.faults import Steps
from tests.histories.deciding import Deciding
from tests.histories.events import Undone
from wavestitch.batch.held_decision import HeldPreview, carry_out
from wavestitch.batch.held_waveforms import Selection
from wavestitch.batch.plan import PlanRequest
from wavestitch.batch.rewind import Rewind, Target, apply_rewind
from wavestitch.batch.take_back import TakingBack, take_back
from wavestitch.batch.undo import committed_stages, plan_undo
from wavestitch.contracts.errors import GateClosed
from wavestitch.contracts.held_choice import HeldAction
from wavestitch.contracts.plan import PlanKind
from wavestitch.contracts.quantities import Offset, Partition
from wavestitch.contracts.reasons import Reason


class Undoing(Deciding):
    """Deciding, and taking it back."""

    def undo(self) -> None:
        heads = self.bench.tables.snapshots
        if self.busy or not heads:
            return
        plans = [h.plan_id for h in heads[-5:] if h.plan_id]
        if plans and self.random.random() < 0.5:
            self.launch_undo(None, self.random.choice(plans))
        else:
            self.launch_undo(heads[-1].sequence, None)

    def launch_undo(self, of: int | None, plan_id: str | None, **how: Any) -> Steps:
        accepted = self.random.random() < 0.7
        self.history.append(Undone(f"run-{self.launched + 1}", of or 0, plan_id or "", accepted))
        return self.launch("undo", partial(self.undone, of, plan_id, accepted), **how)

    def undone(self, of: int | None, plan_id: str | None, accepted: bool) -> Any:
        edges = FakeEdges(self.bench, self.stream, self.clock_ms, self.carrying())
        stages = committed_stages(edges, plan_id, of=of)
        found = plan_undo(edges, stages, who="play", why="to see", of=of)
        if isinstance(found, HeldPreview):
            self.ops["undo of a decision"] += 1
            return carry_out(edges, found.plan)
        if isinstance(found, TakingBack):
            self.ops["undo of a promotion"] += 1
            return take_back(edges, found)
        assert isinstance(found, Rewind)
        self.ops["undo of positions"] += 1
        return apply_rewind(self.stream, found, accept_skip=accepted, log=self.bench.log, tables=self.bench.tables)

    def decided_and_taken_back(self) -> None:
        """A discard or a restore, and its undo at once: what an operator does who sees the mistake."""
        ids = self.held_ids()
        if ids and not self.busy:
            wanted = Selection(ids=(self.random.choice(ids),))
            action = self.random.choice([HeldAction.DISCARD, HeldAction.DISCARD, HeldAction.RESTORE])
            self.take_back(self.launch_decision(action, wanted, far=True))

    def take_back(self, done: Steps, **how: Any) -> Steps | None:
        return None if done.error is not None else self.launch_undo(None, done.result.plan_id, **how)

    def half_decided(self) -> None:
        """A decision changes a part of what is held of a waveform, or somebody has decided about another part of it
        since its undo was planned."""
        if self.busy:
            return
        self.ops["half decided"] += 1
        first, second, third = self.new_waveform(3)
        wanted = Selection(ids=(self.id_of(first),))
        self.send(first)
        if self.random.random() < 0.5:
            self.send(self.another(first))
            self.all_there_is()
            self.launch_decision(HeldAction.PICK, wanted, far=True, pick="first")
            self.take_back(self.launch_decision(HeldAction.DISCARD, wanted, far=True))
        else:
            self.all_there_is()
            back = self.take_back(self.launch_decision(HeldAction.DISCARD, wanted, far=True), now=0)
            if back is not None:
                self.to_its_plan(back)
                self.send(second)
                self.all_there_is()
                self.launch_decision(HeldAction.DISCARD, wanted, far=True)
                self.step(back, 1000)
        self.late.append(third)

    def another(self, one: Letter) -> Letter:
        """A valid chunk in place of this one, with other bytes."""
        h = dict(one.headers)
        meta, seq, value = h["ws-meta"] or b"", int(h["ws-seq"] or b""), one.value or b""
        return self.ours(letter(self.id_of(one), seq, b"\xff\xfe" + value[2:], meta=meta, count=None))

    def all_there_is(self, *, park: bool = False) -> Steps:
        return self.launch("ingest", partial(self.batch, self.stream, PlanRequest(), park), far=True)

    @staticmethod
    def to_its_plan(run: Steps) -> None:
        """Up to where its plan is kept, and somebody else may come."""
        while not run.done and "folder.begin" not in run.trace[:-1]:
            run.advance()

    def diluted_decision(self) -> None:
        """Somebody is about to redrive what closes the gate by itself, among more that does not; meanwhile another one
        does so with that alone, and is stopped."""
        if self.busy or self.stream.on_closed_gate != "stop":
            return
        for _ in range(6):
            for one in self.new_waveform(1):
                self.send(one)
        self.all_there_is(park=True)
        parked = {r.held.chunk.waveform_id for r in self.bench.tables.held_rows() if r.held.reason is Reason.PARKED}
        there = sorted(i for i in parked - self.failing if i is not None)
        bad, good = [i for i in there if i in self.spoiled], [i for i in there if i not in self.spoiled]
        if not bad or len(good) < 2:
            return
        self.ops["diluted decision"] += 1
        first = self.launch_decision(HeldAction.REDRIVE, Selection(ids=(bad[0], *good[-2:])), now=0)
        self.to_its_plan(first)
        self.launch_decision(HeldAction.REDRIVE, Selection(ids=(bad[0],)), far=True)
        self.step(first, self.random.choice([0, 5, 1000]))

    def diluted_backfill(self) -> None:
        """What an ingest is stopped with is read again by a batch of named offsets, among more that is good."""
        if self.busy or self.stream.on_closed_gate != "stop":
            return
        p, at = self.a_partition()
        waves = [self.new_waveform(1)[0] for _ in range(6)]
        bad = [one for one in waves if self.id_of(one) in self.spoiled - self.failing]
        if bad:
            self.ops["diluted backfill"] += 1
            self.send(bad[0], p)
            self.all_there_is()
        for one in waves:
            if one not in bad:
                self.send(one, p)
        named = (span(p, max(at.log_start, at.end - 20), at.end),)
        self.launch("manual", partial(self.batch, self.stream, PlanRequest(PlanKind.MANUAL, ranges=named)))

    def unsure_gate(self) -> None:
        """A batch of named offsets could not be judged in time. What an ingest is stopped with since is in it, too, and
        somebody carries it again, who has decided nothing."""
        if self.busy or self.stream.on_closed_gate != "stop":
            return
        p, at = self.a_partition()
        waves = [self.new_waveform(1)[0] for _ in range(6)]
        bad = [one for one in waves if self.id_of(one) in self.spoiled - self.failing]
        for one in bad[:1]:
            self.send(one, p)
        until = at.end
        for one in waves:
            if one not in bad:
                self.send(one, p)
        named = PlanRequest(PlanKind.MANUAL, ranges=(span(p, max(at.log_start, at.end - 20), at.end),))
        stopped = self.launch("manual", partial(self.batch, self.stream, named, unsure=True), far=True)
        if isinstance(stopped.error, GateClosed):
            self.ops["unsure gate"] += 1
            self.launch("ingest", partial(self.batch, self.stream, PlanRequest(until={Partition(p): until})), far=True)
            plan = self.bench.plans[stopped.error.facts["plan_id"]]
            self.launch("manual again", partial(self.carry, plan, self.carrying()), far=True)

    def back_behind_a_cut(self) -> None:
        """An election cuts the log off below the head; it is written anew beyond that, and somebody goes back to in
        between."""
        heads, p = self.bench.tables.snapshots, self.a_partition()[0]
        at = self.bench.log.partitions[Partition(p)]
        stands = heads[-1].positions[Partition(p)].next_offset if heads and p in heads[-1].positions else 0
        if self.busy or len(at.cuts) > 1 or (heads[-1:] and heads[-1].topic_id != self.bench.log.topic_id):
            return
        if not at.log_start + 1 < stands <= at.end:
            return
        self.ops["back behind a cut"] += 1
        cut = self.random.randint(max(at.log_start, stands - 12), stands - 2)
        self.bench.log.truncate(Partition(p), Offset(cut))
        while at.end <= stands:
            for one in self.new_waveform(self.random.randint(1, 3)):
                self.send(one, p)
        to = self.random.randint(cut + 1, stands)
        match self.random.randrange(4):
            case 0:
                self.bench.log.reset_group(Partition(p), Offset(to))
            case 1:
                self.launch_undo(heads[-1].sequence, None)
            case 2:
                self.start_rewind(Target("previous"), True)
            case _:
                self.start_rewind(Target(offsets={Partition(p): Offset(to)}), True)
