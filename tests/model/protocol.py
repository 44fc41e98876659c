"""The protocol in the small, explored to the end: every interleaving and every death of a handful of actors.

Small logs of one partition or two, at most two runs at once (each may be the other's zombie), backfills, operators who
rewind (a partition, or all), start over, decide about what is held and about closed gates, resets by Kafka's own tools,
group offsets that expire, a catalog that is copied, lost or exchanged (a backup put back, a wrong address, two
deployments). Breadth first, so that a violation comes with a shortest way to it. `checks` says what must hold after
every commit and in every state; beside that, here:

- a reset is never overwritten by a batch that looked at the group after it, nor by a rewind of another partition;
- doubt: where the group's tag contradicts the catalog, no ingest goes on and no batch writes the group;
- live: from here, a contradiction and a closed gate settled by name in any way, undisturbed ingests publish exactly
  what is whole, clean and not waiting for somebody, and hold the rest; group and head stand at the end; what is held
  can be discarded and restored.

Simpler than the product: adopting a reset, rewinding and starting over are one step, where the product commits the head
and then writes the tags; a forward reset, which the product refuses, does not happen; a run whose catalog was exchanged
is fenced, where the product lets it commit if its base is in both; only an ingest's gate is here, since a backfill's
bars nobody and a redrive's bars as an ingest's does; no corruption, deadlines, limits, retention or offsets that are
used again.

    python -m tests.model.protocol            every scenario of the design
    python -m tests.model.protocol all        and every mutant: a rule of the design dropped, which must be found out
"""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from tests.model.checks import Violation, check_commit, check_end, check_passed, check_state, remember
from tests.model.rules import (
    Deciding,
    barred,
    doubted,
    fenced,
    held_of,
    next_generation,
    offered,
    picked,
    projects,
    reconciles,
)
from tests.model.world import (
    GATED,
    HELD,
    MORE_COPIES,
    PARTED,
    WAVES,
    Budget,
    Choice,
    Group,
    Groups,
    Head,
    Run,
    Scenario,
    State,
    World,
)

WAYS = ("head", "start-over", "group")
"""What an operator may do about a contradiction of group and catalog."""


@dataclass(frozen=True)
class Protocol:
    """The design, or with `dropped` the design without one of its rules."""

    world: World = WAVES
    dropped: str = ""
    lives: set[tuple[Head, Groups, frozenset[Run], bool]] = field(default_factory=set, compare=False)
    """Where it was already seen to live from."""

    def first(self, budget: Budget) -> State:
        n = len(self.world.log)
        return State((0,) * n, Head(positions=(0,) * n), (Group(),) * n, (), (0,) * n, budget)

    # runs

    def plan_ingest(self, s: State, only: int | None = None) -> State:
        head, group = s.head, s.group
        if self.dropped != "a-closed-gate-bars-nobody" and barred(s.stopped, head):
            return s  # refused, by name
        if doubted(head, group) and self.dropped == "lost-means-group":
            head = head.moved(tuple(g.offset or 0 for g in group))
            group = written(head)
        elif doubted(head, group, dropped=self.dropped):
            return s  # refused, by name
        elif doubted(head, group):
            raise Violation("doubt: an ingest goes on where group and catalog contradict each other")
        todo = reconciles(head, group)
        if self.dropped == "expired-means-latest" and any(g.offset is None for g in group):
            head = head.moved(s.ends)
            todo = "project"
        elif todo == "adopt":
            shown = zip(group, head.positions, strict=True)
            head = head.moved(tuple(at if g.tag is not None or g.offset is None else g.offset for g, at in shown))
        if todo:
            group = written(head)
        s = s._replace(head=head, group=group)
        ends = tuple(max(at, s.ends[p]) if only in (None, p) else at for p, at in enumerate(head.positions))
        return s if ends == head.positions else self._planned(s, "ingest", head.positions, ends)

    def plan_backfill(self, s: State) -> State:
        return self._planned(s, "backfill", (0,) * len(s.ends), s.ends) if any(s.ends) else s

    def _planned(self, s: State, kind: str, starts: tuple[int, ...], ends: tuple[int, ...]) -> State:
        head = s.head
        run = Run(kind, "planned", head.sequence, head.generation, starts, ends, s.next_number, mended=s.mended)
        run = run._replace(table=head.table, catalog=head.catalog)
        left = s.left._replace(runs=s.left.runs - 1)
        return s._replace(runs=(*s.runs, run), left=left, next_number=s.next_number + 1)

    def plan_choice(self, s: State, action: str, waveform: str) -> State:
        """A decision about what is held: it reads nothing, and is carried on by the steps of every batch."""
        at = s.head.positions
        s = self._planned(s._replace(left=s.left._replace(runs=s.left.runs + 1)), "held", at, at)
        standing = [h.place for h in held_of(self.world, s.head, waveform) if h.reason != "discarded"]
        seen = sorted((r.seq, r.copy) for r in map(self.world.at, picked(self.world, standing)[0]))
        meant = tuple(dict(seen).values())
        choice = Choice(action, waveform, *((frozenset(standing), meant) if action == "pick" else ()))
        left = s.left._replace(decisions=s.left.decisions - 1)
        return s._replace(left=left).with_run(len(s.runs) - 1, s.runs[-1]._replace(choice=choice))

    def advance(self, s: State, i: int) -> State:
        """The next step of one run; each is one effect, or one look."""
        run = s.runs[i]
        match run.step:
            case "planned":
                return self._decide(s, i, run)
            case "decided":
                main = run.held if self.dropped == "what-is-staged-counts" else None
                return s._replace(main=main).with_run(i, run._replace(step="staged"))
            case "staged":
                return self._commit(s, i, run)
            case "committed":
                # The head of the catalog that is in use now, which may be newer than its own.
                if not projects(s.head, s.group, dropped=self.dropped):
                    if self.dropped == "overwrite-foreign" and any(g.tag is None for g in s.group):
                        raise Violation("reset: overwritten by a batch that looked after it")
                    return s.without(i)
                if doubted(s.head, s.group):
                    raise Violation("doubt: a batch writes a group that contradicts the catalog")
                return s.with_run(i, run._replace(step="looked", shown=s.head))
        assert run.shown is not None
        return s.without(i)._replace(group=written(run.shown))

    def _decide(self, s: State, i: int, run: Run) -> State:
        """The decision on top of today's head: what of held and read is whole, and what is to be held."""
        head = s.head if s.main is None else s.head._replace(held=s.main)
        choice = run.choice
        if choice is not None and choice.action == "pick" and self.dropped != "a-pick-is-of-whatever-is-there":
            mine = held_of(self.world, head, choice.waveform)
            if choice.among != {h.place for h in mine if h.reason != "discarded"}:
                return s.without(i)  # what was stitched is of the copies that were there then: plan again
        made = Deciding(self.world, run, head, dropped=self.dropped)
        spoiled = len(self.world.spoiled & made.publish.keys())
        if run.moves and not run.gate and spoiled and 2 * spoiled >= len(made.publish):
            return s.without(i)._replace(stopped=s.stopped | {run._replace(step="planned")})
        return s.with_run(
            i,
            run._replace(
                step="decided",
                base=head.sequence,
                publish=frozenset(made.publish.items()),
                held=frozenset(made.held.values()),
            ),
        )

    def _commit(self, s: State, i: int, run: Run) -> State:
        head = s.head
        standing = run.moves and barred(s.stopped, head, own=run.number)
        asks = self.dropped not in ("a-closed-gate-bars-nobody", "the-gate-is-asked-when-planning-only")
        if fenced(run, head, dropped=self.dropped) or (standing and asks):
            return s.without(i)
        if run.base != head.sequence and self.dropped != "no-compare-and-set":
            # A conflict: decide again, and stage anew, so that what was staged before never counts.
            return self._decide(s, i, run)
        check_passed(s, run, standing=standing)
        ends = s.ends if self.dropped == "an-ingest-of-one-partition-moves-all" else run.ends
        new = head._replace(
            sequence=head.sequence + 1,
            positions=ends if run.moves else head.positions,
            published=head.published | run.publish,
            held=run.held,
        )
        check_commit(self.world, head, new, run)
        new = new._replace(was=remember(self.world, head, new, run))
        stopped = frozenset(r for r in s.stopped if r.number != run.number)
        s = s._replace(head=new, furthest=furthest(s, new), stopped=stopped)
        return s.with_run(i, run._replace(step="committed", base=new.sequence)) if run.moves else s.without(i)

    # people

    def rewind(self, s: State, moved: dict[int, int]) -> State:
        """Of these partitions alone; what the group says of the others is left, where somebody has reset it."""
        head = s.head.moved(tuple(moved.get(p, at) for p, at in enumerate(s.head.positions)))
        group = written(head)
        foreign = {p for p, g in enumerate(s.group) if g.offset is not None and g.tag is None and p not in moved}
        if self.dropped == "a-rewind-writes-every-partition" and foreign:
            raise Violation("reset: overwritten by a rewind of another partition")
        group = tuple(s.group[p] if p in foreign else g for p, g in enumerate(group))
        return s._replace(head=head, group=group, furthest=furthest(s, head))

    def settle(self, s: State, way: str) -> State:
        """Go on where this table stands, begin anew from the log, or go on where the group stands, naming what is
        skipped."""
        head, newer = s.head, next_generation(s.head, s.group)
        if way == "group":
            to = tuple(at if g.offset is None else g.offset for g, at in zip(s.group, head.positions, strict=True))
            gone = {(p, o) for p, at in enumerate(head.positions) for o in range(at, to[p])}
            named = frozenset() if self.dropped == "what-is-skipped-is-not-named" else frozenset(gone)
            head = head._replace(skipped=head.skipped | named)
        else:
            to = head.positions if way == "head" else (0,) * len(head.positions)
        head = head.moved(to, generation=newer)
        return s._replace(head=head, group=written(head), furthest=furthest(s, head))

    def say_at_the_gate(self, s: State, run: Run, word: str) -> State:
        """Accept or park it, which carries its plan through again, or abandon it: its offsets are read by the next."""
        if word != "abandon":
            return s._replace(runs=(*s.runs, run._replace(gate=word)))
        head = s.head
        if self.dropped == "an-abandoned-batch-is-passed":
            head = head._replace(sequence=head.sequence + 1, positions=run.ends)
        # A zombie of it ends fenced.
        runs = tuple(r for r in s.runs if r.number != run.number)
        return s._replace(head=head, stopped=s.stopped - {run}, runs=runs)

    # what may happen

    def successors(self, s: State) -> Iterator[tuple[str, State]]:
        left = s.left
        if sum(s.ends) < left.records:
            for p, end in enumerate(s.ends):
                if end < len(self.world.log[p]):
                    yield f"a record in {p}", s._replace(ends=(*s.ends[:p], end + 1, *s.ends[p + 1 :]))
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
        if left.rewinds and any(s.head.positions):
            after = s._replace(left=left._replace(rewinds=left.rewinds - 1))
            whole = dict.fromkeys(range(len(s.ends)), 0)
            moves = [whole, *({p: to} for p, at in enumerate(s.head.positions) for to in sorted({0, at - 1}) if at)]
            for moved in moves if left.parts or len(s.ends) == 1 else moves[:1]:
                yield f"rewind to {moved}", self.rewind(after, moved)
        if left.afresh and any(s.head.positions):
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
        key = s.head, s.group, s.stopped, s.mended
        if key not in self.lives:
            for way in WAYS if doubted(s.head, s.group) else WAYS[:1]:
                for word in ("accept", "park", "abandon") if barred(s.stopped, s.head) else ("",):
                    self._check_live(s, way, word)
            self.lives.add(key)

    def _check_live(self, s: State, way: str, word: str) -> None:
        ends = tuple(len(records) for records in self.world.log)
        s = s._replace(ends=ends, runs=(), left=Budget(runs=1), main=None)
        if doubted(s.head, s.group) and self.dropped != "lost-means-group":
            s = self.settle(s, way)
        for _ in range(2):
            # What the first ingest finds may close the gate for it, too.
            for run in sorted(s.stopped) if barred(s.stopped, s.head) else ():
                s = self._carried(self.say_at_the_gate(s, run, word or "accept"))
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


def written(head: Head) -> Groups:
    """The group, as it shows this head."""
    return tuple(Group(at, head.version) for at in head.positions)


def furthest(s: State, head: Head) -> tuple[int, ...]:
    return tuple(map(max, s.furthest, head.positions))


class Found(NamedTuple):
    """`violation` empty: none. `way`: the shortest way there. `whole`: all states within the budget were seen."""

    states: int
    violation: str
    way: tuple[str, ...]
    whole: bool


def explore(
    scenario: Scenario, dropped: str = "", *, most: int = 10_000_000, look: Callable[[State], None] | None = None
) -> Found:
    """Every state that can be reached within the budget, at most `most`; `look` is shown each of them."""
    protocol = Protocol(scenario.world, dropped)
    first = protocol.first(scenario.budget)
    came: dict[State, tuple[str, State] | None] = {first: None}
    queue = deque([first])
    while queue:
        state = queue.popleft()
        try:
            protocol.check(state)
            if look is not None:
                look(state)
            nexts = list(protocol.successors(state))
        except Violation as violation:
            return Found(len(came), str(violation), _way(came, state), False)
        for name, reached in nexts:
            if reached not in came:
                came[reached] = name, state
                queue.append(reached)
        if len(came) > most:
            return Found(len(came), "", (), False)
    return Found(len(came), "", (), True)


def _way(came: dict[State, tuple[str, State] | None], state: State) -> tuple[str, ...]:
    way: list[str] = []
    while (step := came[state]) is not None:
        name, state = step
        way.append(name)
    return tuple(reversed(way))


SCENARIOS = {
    "runs": Scenario(
        WAVES,
        Budget(runs=2, records=4),
        (
            "no-compare-and-set",
            "no-generation",
            "no-start-check",
            "publish-replays",
            "expired-means-latest",
            "overwrite-foreign",
        ),
    ),
    "catalogs": Scenario(
        WAVES,
        Budget(runs=2, rewinds=0, resets=0, records=3, catalogs=3),
        ("any-table-is-ours", "newer-is-older", "forks-pass", "lost-means-group", "what-is-skipped-is-not-named"),
    ),
    "held": Scenario(
        HELD,
        Budget(runs=1, rewinds=0, resets=0, expiries=0, decisions=2, mends=1, afresh=1, backfills=False),
        (
            "discard-deletes",
            "tombstones-do-not-count",
            "restore-means-open",
            "of-a-conflict-the-first-is-taken",
            "what-is-staged-counts",
        ),
    ),
    "decisions beside ingests": Scenario(
        MORE_COPIES,
        Budget(runs=2, rewinds=0, resets=0, expiries=0, decisions=1, backfills=False),
        ("accept-takes-conflicts", "a-pick-is-of-whatever-is-there"),
    ),
    "gates": Scenario(
        GATED,
        Budget(runs=3, resets=0, expiries=0, gates=1, backfills=False),
        (
            "a-closed-gate-bars-nobody",
            "the-gate-is-asked-when-planning-only",
            "park-holds-nothing",
            "what-is-parked-is-decided-afresh",
            "an-abandoned-batch-is-passed",
        ),
    ),
    "partitions": Scenario(
        PARTED,
        Budget(runs=2, expiries=0, records=4, backfills=False, parts=True),
        (
            "a-rewind-writes-every-partition",
            "an-ingest-of-one-partition-moves-all",
            "the-fence-asks-what-is-read-only",
        ),
    ),
    "partitions of catalogs": Scenario(
        PARTED,
        Budget(runs=2, rewinds=0, resets=0, records=2, catalogs=2, backfills=False, parts=True),
        ("only-the-first-partition-is-asked",),
    ),
}


def main(arguments: list[str]) -> int:
    """0 where the design holds and every mutant asked for is found out."""
    wrong = 0
    for name, scenario in SCENARIOS.items():
        for dropped in ("", *scenario.mutants) if arguments == ["all"] else ("",):
            found = explore(scenario, dropped)
            said = f"{found.violation}\n    after: {' > '.join(found.way)}" if found.violation else "no violation"
            print(f"{name}, {dropped or 'the design'}: {found.states} states, {said}", flush=True)
            wrong += bool(found.violation) != bool(dropped)
    return 1 if wrong else 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
