"""The protocol in the small, explored to the end: every interleaving and every death of a handful of actors.

Small logs of one partition or two, at most two runs at once (each may be the other's zombie), backfills, operators who
rewind (a partition, or all), undo, start over, decide about what is held and about closed gates, resets by Kafka's
own tools, group offsets that expire, retention (which takes what was read, what was planned, what nobody has read, what
is held), a catalog that is copied, lost or exchanged (a backup put back, a wrong address,
two deployments). Breadth first, so that a violation comes with a shortest way to it. `checks` says what must hold after
every commit and in every state; beside that, here:

- a reset is never overwritten by a batch that looked at the group after it, nor by a rewind of another partition;
- doubt: where the group's tag contradicts the catalog, no ingest goes on, no batch writes the group, and what moves no
  position takes no number that it has shown;
- live: from here, a contradiction and a closed gate settled by name in any way, undisturbed ingests publish exactly
  what is whole, clean and not waiting for somebody, and hold the rest; group and head stand at the end; what is held
  can be discarded and restored.

Simpler than the product: adopting a reset, rewinding and starting over are one step, where the product commits the head
and then writes the tags; a forward reset, which the product refuses, does not happen; a run whose catalog was exchanged
is fenced, where the product lets it commit if its base is in both; only an ingest's gate closes here, since a
backfill's bars nobody and a redrive's bars as an ingest's does; who goes on at its gate reads again, where Airflow goes
on from the landing; all of a batch is read in one step; a lost catalog's stream that begins anew names what its log has
no more, where the product's knows of nothing before that; no corruption, deadlines, limits or offsets that are used
again.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from tests.model.actors import Actors
from tests.model.checks import Violation, check_end, check_state
from tests.model.rules import barred, behind_the_cut, doubted, goes_back, offered, overtaken, takes_back
from tests.model.world import Budget, Group, Groups, Head, Run, State

WAYS = ("head", "start-over", "group")
"""What an operator may do about a contradiction of group and catalog."""


@dataclass(frozen=True)
class Protocol(Actors):
    """What may happen, and what must hold wherever that leads."""

    lives: set[tuple[tuple[int, ...], Head, Groups, frozenset[Run], bool]] = field(default_factory=set, compare=False)
    """Where it was already seen to live from."""

    # what may happen

    def successors(self, s: State) -> Iterator[tuple[str, State]]:
        left = s.left
        if sum(s.ends) < left.records:
            for p, end in enumerate(s.ends):
                if end < len(self.world.log[p]):
                    yield f"a record in {p}", s._replace(ends=(*s.ends[:p], end + 1, *s.ends[p + 1 :]))
        if left.retentions:
            one_less = s._replace(left=left._replace(retentions=left.retentions - 1))
            for p, (at, end) in enumerate(zip(s.starts, s.ends, strict=True)):
                for to in range(at + 1, end + 1):
                    moved = one_less._replace(starts=(*s.starts[:p], to, *s.starts[p + 1 :]))
                    yield f"retention takes {p} up to {to}", moved
        if len(s.runs) < 2:
            yield from self._begun(s)
        for i, run in enumerate(s.runs):
            name = f"{run.kind} {run.number}"
            yield f"{name} goes on from {run.step}", self.advance(s, i)
            yield f"{name} dies", s.without(i)
        yield from self._operated(s)
        for p, g in enumerate(s.group):
            parts = s.group[:p], s.group[p + 1 :]
            if left.resets and g.offset:
                after = left._replace(resets=left.resets - 1)
                yield (
                    f"reset of {p} by Kafka's tools",
                    s._replace(group=(*parts[0], Group(0, None), *parts[1]), left=after),
                )
            if left.expiries and g.offset is not None and g.tag is not None:
                after = left._replace(expiries=left.expiries - 1)
                yield (
                    f"the group's offset of {p} expires",
                    s._replace(group=(*parts[0], Group(None, None), *parts[1]), left=after),
                )
        if left.catalogs:
            yield from self._catalogs(s._replace(left=left._replace(catalogs=left.catalogs - 1)))

    def _begun(self, s: State) -> Iterator[tuple[str, State]]:
        left, found = s.left, []
        if left.runs:
            found.append(("plan ingest", self.plan_ingest(s)))
            if left.parts:
                found += [(f"plan ingest of {p}", self.plan_ingest(s, p)) for p in range(len(s.ends))]
            if left.backfills and all(r.kind != "backfill" for r in s.runs):
                found.append(("plan backfill", self.plan_backfill(s)))
        if left.decisions:
            waveforms = sorted({self.world.at(h.place).waveform for h in s.head.held})
            chosen = [(a, w) for w in waveforms for a in offered(self.world, s.head, w)]
            found += [(f"{a} {w}", self.plan_choice(s, a, w)) for a, w in chosen]
        if left.undos:
            undone = [m for m in s.head.made if takes_back(self.world, s.head, m, dropped=self.dropped)]
            found += [(f"undo of {m.action} {m.number}", self.undo(s, m)) for m in undone]
        if left.gates:
            after = s._replace(left=left._replace(gates=left.gates - 1))
            words = ("accept", "park", "abandon")
            found += [
                (f"{word} {r.number}", self.say_at_the_gate(after, r, word))
                for r in sorted(s.stopped)
                for word in words
            ]
        yield from ((name, reached) for name, reached in found if reached != s)

    def _operated(self, s: State) -> Iterator[tuple[str, State]]:
        left = s.left
        if left.mends and not s.mended:
            yield "the definition is put right", s._replace(mended=True, left=left._replace(mends=left.mends - 1))
        if doubted(s.head, s.group):
            return
        if behind_the_cut(s.head, s.group, s.starts):
            yield "what retention took is accepted as lost", self.go_on_behind_the_cut(s)
        if left.rewinds and s.head.positions != s.starts:
            after = s._replace(left=left._replace(rewinds=left.rewinds - 1))
            stands = enumerate(zip(s.starts, s.head.positions, strict=True))
            parts = [{p: to} for p, (least, at) in stands for to in sorted({least, at - 1}) if at > least]
            moves = [dict(enumerate(s.starts)), *parts]
            for moved in moves if left.parts or len(s.ends) == 1 else moves[:1]:
                yield f"rewind to {moved}", self.rewind(after, moved)
        if left.undos:
            there = [m for m in s.head.made if not overtaken(s.starts, goes_back(s.head, m))]
            yield from ((f"undo of {m.number}", self.undo(s, m)) for m in there if goes_back(s.head, m))
        if left.afresh and s.head.positions != s.starts:
            yield "start over", self.settle(s._replace(left=left._replace(afresh=left.afresh - 1)), "start-over")

    @staticmethod
    def _catalogs(s: State) -> Iterator[tuple[str, State]]:
        if s.other is not None:
            yield "the other catalog is put in place", s._replace(head=s.other, other=s.head)
            return
        yield "the catalog is copied", s._replace(other=s.head._replace(catalog=1))
        lost = Head(positions=(0,) * len(s.ends), table=1, catalog=1)
        yield "the catalog is lost", s._replace(head=lost, other=s.head)

    # what must hold

    def check(self, s: State) -> None:
        check_state(self.world, s)
        key = s.starts, s.head._replace(made=()), s.group, s.stopped, s.mended
        if key not in self.lives:
            for way in self._ways(s):
                for word in ("accept", "park", "abandon") if barred(s.stopped, s.head) else ("",):
                    self._check_live(s, way, word)
            self.lives.add(key)

    @staticmethod
    def _ways(s: State) -> tuple[str, ...]:
        """Nobody goes on where the group stands, if the log has not got that any more."""
        if not doubted(s.head, s.group):
            return WAYS[:1]
        shown = {p: g.offset for p, g in enumerate(s.group) if g.offset not in (None, s.head.positions[p])}
        return WAYS[:-1] if overtaken(s.starts, {p: at or 0 for p, at in shown.items()}) else WAYS

    def _check_live(self, s: State, way: str, word: str) -> None:
        ends = tuple(len(records) for records in self.world.log)
        s = s._replace(ends=ends, runs=(), left=Budget(runs=1), main=None)
        if doubted(s.head, s.group) and self.dropped != "lost-means-group":
            s = self.settle(s, way)
        for _ in range(2):
            # What the first ingest finds may close the gate for it, too.
            for run in sorted(s.stopped) if barred(s.stopped, s.head) else ():
                s = self._carried(self.say_at_the_gate(s, run, word or "accept"))
            if behind_the_cut(s.head, s.group, s.starts):
                s = self.go_on_behind_the_cut(s)
            s = self._carried(self.plan_ingest(s._replace(left=Budget(runs=1))))
        if s.head.positions != ends or tuple(g.offset for g in s.group) != ends:
            raise Violation(f"live: ends with heads at {s.head.positions}, group at {[g.offset for g in s.group]}")
        check_state(self.world, s)
        check_end(self.world, s.head, ends=ends, mended=s.mended)
        for waveform in sorted({self.world.at(h.place).waveform for h in s.head.held}):
            self._check_decidable(s, waveform)

    def _carried(self, s: State) -> State:
        while s.runs:
            s = self.advance(s, 0)
        return s

    def _check_decidable(self, s: State, waveform: str) -> None:
        """Whatever is held can be discarded, stays that, and is as it was when it is restored."""
        choices = offered(self.world, s.head, waveform)
        if "discard" in choices:
            before = frozenset(h for h in s.head.held if self.world.at(h.place).waveform == waveform)
            gone = self._carried(self.plan_choice(s, "discard", waveform))
            if "discard" in offered(self.world, gone.head, waveform):
                raise Violation(f"live: {waveform} is discarded, and is not")
            back = self._carried(self.plan_choice(gone, "restore", waveform))
            again = frozenset(h for h in back.head.held if self.world.at(h.place).waveform == waveform)
            if {(h.place, h.reason) for h in before if h.reason != "discarded"} - {(h.place, h.reason) for h in again}:
                raise Violation(f"live: {waveform} was restored, and is not what it was")
        elif "restore" not in choices:
            raise Violation(f"live: nothing can be decided about {waveform}, which is held")
