"""How a random history ends: what is under way goes to its end, the world is put in order, and quiet runs follow what
refusals advise, until nothing is left to do. Judges nothing.
"""

from __future__ import annotations

from functools import partial

from tests.builders.ranges import span
from tests.fakes.faults import Steps
from tests.fakes.kept_partition import Visibility
from tests.histories.events import Quiet
from tests.histories.maintaining import Maintaining
from wavestitch.batch.held_waveforms import Selection, select_held
from wavestitch.batch.plan import NothingToDo, PlanRequest
from wavestitch.contracts.held import HeldChunk
from wavestitch.contracts.held_choice import HeldAction
from wavestitch.contracts.plan import PlanKind
from wavestitch.contracts.reasons import Reason
from wavestitch.contracts.stream import Limits

_MOST_RUNS = 40
"""Quiet runs to the end of the log: each place where something is gone takes one, or two."""


class Healing(Maintaining):
    """All that, and ending well."""

    def heal(self) -> None:
        """End what is under way, put the world in order, and let quiet runs finish the work."""
        self.put_right()
        self.quiet_runs()
        if self.restored_and_whole(Reason.OPEN):
            self.ops["published after its restore"] += 1
            self.send(self.new_waveform(1)[0])
            self.quiet_runs()
        everything = self.random.random() < 0.3
        if everything:
            self.decide_about_everything()
            self.quiet_runs()
        elif restored := self.restored_and_whole(Reason.INCOMPLETE):
            self.ops["redriven after its restore"] += 1
            self.follow_to_the_end(self.launch_decision(HeldAction.REDRIVE, Selection(ids=restored), far=True))
            self.quiet_runs()
        self.witness.read_back()
        self.history.append(Quiet(everything))

    def put_right(self) -> None:
        """No more accidents: from here on every run goes to its end, and so does what is on its way, or never comes."""
        log = self.bench.log
        self.healing = True
        self.copy_stops()
        for run in list(self.runs):
            if self.random.random() < 0.5:
                run.kill()
            self.step(run, self.deadlines[run.name] + 1)
        log.live_members, log.compacted = [], False
        log.moods.clear()
        log.lag(0, shows=0)
        log.end_transactions(Visibility.COMMITTED, self.clock_ms)
        if self.on_the_way:
            self.launch("quiet ingest", partial(self.batch, self.stream, PlanRequest()), far=True)
            self.nothing_more_lands()
        if self.bench.gates.keys() - self.bench.abandoned:
            self.a_month_passes()

    def quiet_runs(self) -> None:
        if self.tight:
            self.learn_the_budget()
        for _ in range(_MOST_RUNS):
            last = self.launch("quiet ingest", partial(self.batch, self.stream, PlanRequest()), far=True)
            if isinstance(last.result, NothingToDo):
                break
            self.follow_to_the_end(last)

    def junk_expires(self) -> None:
        """A producer that was at the wrong topic for a while, and again a month later; the first of it goes."""
        self.put_right()
        self.junk_flood()
        self.send(self.new_waveform(2)[0])
        self.quiet_runs()
        self.clock_ms += 31 * 86_400_000
        self.junk_flood()
        self.quiet_runs()
        before = len(self.bench.tables.held_rows())
        self.maintained()
        self.ops["junk expired"] += len(self.bench.tables.held_rows()) < before

    def learn_the_budget(self) -> None:
        """Each reader that stops halves the next batch; once the stream gets on, somebody allows larger ones."""
        for _ in range(40):
            last = self.launch("quiet ingest", partial(self.batch, self.stream, PlanRequest()), far=True)
            if last.error is None:
                self.tight = False
                self.set_limits(max_batch_bytes=Limits().max_batch_bytes)
                break
            self.follow_to_the_end(last)

    def follow_to_the_end(self, run: Steps) -> None:
        """A way out may itself be refused, and name another."""
        way: Steps | None = run
        for _ in range(3):
            way = self.follow(str(way.error)) if way is not None and way.error is not None else None

    def decide_about_everything(self) -> None:
        """Nothing is held for ever: what no other decision gets out can be let go."""
        self.ops["everything decided"] += 1
        for action in (HeldAction.REDRIVE, HeldAction.ACCEPT, HeldAction.PICK, HeldAction.DISCARD):
            self.follow_to_the_end(self.launch_decision(action, Selection(), far=True))

    def restored_and_whole(self, now: Reason) -> tuple[str, ...]:
        """What became whole while it was discarded, and was restored: while it may wait (it is `open`) the next ingest
        that reads anything takes it up, and after that (`incomplete`) none does, and whoever restored it redrives it
        (docs/operations.md). Nobody helps what was not restored."""
        opened = [
            r.held for r in self.bench.tables.held_rows() if r.held.reason is Reason.OPEN and _is_restored(r.held)
        ]
        ids = tuple(sorted({h.chunk.waveform_id for h in opened if h.chunk.waveform_id is not None}))
        if not ids:
            return ()
        found = select_held(self.bench.tables, self.stream, Selection(ids, reasons=frozenset({now})))
        restored = [one for one in found if all(map(_is_restored, one.held)) and not one.published]
        return tuple(one.waveform_id for one in restored if one.verdict(self.stream)[0] is None)

    def a_month_passes(self) -> None:
        """Beside a closed gate: a batch that leaves the positions, then maintenance, which expires all but its head."""
        self.ops["a month at a closed gate"] += 1
        p, at = self.a_partition()
        named = (span(p, at.log_start, at.end),)
        self.launch("manual", partial(self.batch, self.stream, PlanRequest(PlanKind.MANUAL, ranges=named)), far=True)
        self.bench.tables.expire_snapshots(1)


def _is_restored(h: HeldChunk) -> bool:
    """Whether the last word on it is a restore: the decision's note, on every row of it."""
    return h.evidence.startswith(f"{HeldAction.RESTORE.value} by ")
