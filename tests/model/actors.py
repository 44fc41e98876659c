"""What the actors of the protocol do, one effect or one look at a time: runs, and the people who rewind and decide.

Each is a function from a state to the next one. `dropped` names a rule of the design that is left out. Knows nothing of
what may happen when, nor of what must hold but for what shows in a single step.
"""

from __future__ import annotations

from dataclasses import dataclass

from tests.model.checks import Violation, check_commit, check_moved_back, check_number, check_passed, remember
from tests.model.rules import (
    OPPOSITES,
    Deciding,
    asks_the_gate,
    barred,
    began,
    behind_the_cut,
    doubted,
    fenced,
    goes_back,
    held_of,
    next_generation,
    overtaken,
    picked,
    projects,
    reconciles,
    reset_to,
    stopped_some,
    takes_back,
)
from tests.model.world import WAVES, Budget, Choice, Group, Groups, Head, Made, Place, Run, State, World


@dataclass(frozen=True)
class Actors:
    """Of the design, or with `dropped` of the design without one of its rules."""

    world: World = WAVES
    dropped: str = ""

    def first(self, budget: Budget) -> State:
        n = len(self.world.log)
        return State((0,) * n, (0,) * n, Head(positions=(0,) * n), (Group(),) * n, (), (0,) * n, budget)

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
        if overtaken(s.starts, reset_to(group)):
            return s  # refused, by name, before it is taken over
        if self.dropped == "expired-means-latest" and any(g.offset is None for g in group):
            head = head.moved(s.ends)
            todo = "project"
        elif todo == "adopt":
            shown = zip(group, head.positions, strict=True)
            head = head.moved(tuple(at if g.tag is not None or g.offset is None else g.offset for g, at in shown))
        if todo:
            group = written(head)
        s = s._replace(head=head, group=group)
        gone = overtaken(s.starts, {p: at for p, at in enumerate(head.positions) if only in (None, p)})
        if gone and self.dropped == "a-position-jumps-over-the-cut":
            head = head.moved(tuple(gone.get(p, at) for p, at in enumerate(head.positions)))
            s = s._replace(head=head, group=written(head))
        elif gone:
            return s  # refused, by name
        ends = tuple(max(at, s.ends[p]) if only in (None, p) else at for p, at in enumerate(head.positions))
        return s if ends == head.positions else self._planned(s, "ingest", head.positions, ends)

    def plan_backfill(self, s: State) -> State:
        if self._contradicted(s):
            return s  # refused, by name
        return self._planned(s, "backfill", s.starts, s.ends) if s.starts != s.ends else s

    def _contradicted(self, s: State) -> bool:
        """As whoever moves no position asks, since its head differs from another one by its number alone."""
        return self.dropped != "who-moves-nothing-does-not-ask-the-group" and bool(doubted(s.head, s.group))

    def _planned(self, s: State, kind: str, starts: tuple[int, ...], ends: tuple[int, ...]) -> State:
        head = s.head
        run = Run(kind, "planned", head.sequence, head.generation, starts, ends, s.next_number, mended=s.mended)
        run = run._replace(table=head.table, catalog=head.catalog)
        left = s.left._replace(runs=s.left.runs - 1)
        return s._replace(runs=(*s.runs, run), left=left, next_number=s.next_number + 1)

    def plan_choice(self, s: State, action: str, waveform: str, *, undoes: Made | None = None) -> State:
        """A decision about what is held: it reads nothing, and is carried on by the steps of every batch."""
        if self._contradicted(s):
            return s  # refused, by name
        at = s.head.positions
        s = self._planned(s._replace(left=s.left._replace(runs=s.left.runs + 1)), "held", at, at)
        standing = self._shown(s.head, waveform, "discard")
        seen = sorted((r.seq, r.copy) for r in map(self.world.at, picked(self.world, standing)[0]))
        meant = tuple(dict(seen).values())
        choice = Choice(action, waveform, undoes=undoes)
        if undoes is None:
            choice = choice._replace(among=self._shown(s.head, waveform, action))
        if action == "pick":
            choice = choice._replace(meant=meant)
        left = s.left._replace(decisions=s.left.decisions - 1)
        return s._replace(left=left).with_run(len(s.runs) - 1, s.runs[-1]._replace(choice=choice))

    def _was_shown(self, head: Head, choice: Choice) -> bool:
        """Whether all that it is about now was there when it was planned."""
        match self.dropped, choice.action:
            case ("a-decision-is-of-whatever-is-there", _) | ("accept-takes-conflicts", "accept"):
                return True
            case "only-a-pick-is-of-what-was-shown", action if action != "pick":
                return True
        return choice.among == self._shown(head, choice.waveform, choice.action)

    def _shown(self, head: Head, waveform: str, action: str) -> frozenset[Place]:
        mine = held_of(self.world, head, waveform)
        return frozenset(h.place for h in mine if (h.reason == "discarded") is (action == "restore"))

    def advance(self, s: State, i: int) -> State:
        """The next step of one run; each is one effect, or one look."""
        run = s.runs[i]
        match run.step:
            case "planned":
                # What is gone before it is read ends the run, by name; what was read is landed.
                return s.without(i) if self._is_gone(s, run) else self._decide(s, i, run)
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

    def _is_gone(self, s: State, run: Run) -> bool:
        """Whether the log has not all that it is to read."""
        if self.dropped == "what-is-held-needs-the-log" and run.choice is not None:
            return any(o < s.starts[p] for p, o in run.choice.among)
        reads = {p: at for p, (at, end) in enumerate(zip(run.starts, run.ends, strict=True)) if end > at}
        return bool(overtaken(s.starts, reads)) and self.dropped != "what-is-gone-is-taken-for-a-hole"

    def _decide(self, s: State, i: int, run: Run) -> State:
        """The decision on top of today's head: what of held and read is whole, and what is to be held."""
        head = s.head if s.main is None else s.head._replace(held=s.main)
        choice = run.choice
        undoes = choice.undoes if choice is not None else None
        if choice is not None and undoes is None and not self._was_shown(head, choice):
            return s.without(i)  # nobody was shown what came since: plan again
        looked = self.dropped == "an-undo-is-not-looked-at-again"
        if undoes is not None and not (looked or takes_back(self.world, head, undoes, dropped=self.dropped)):
            return s.without(i)
        found = run.places
        if self.dropped == "what-is-gone-is-taken-for-a-hole":
            found = [(p, o) for p, o in found if o >= s.starts[p]]
        made = Deciding(self.world, run, head, found=found, dropped=self.dropped)
        spoiled = len(self.world.spoiled & made.publish.keys())
        if run.moves and not run.gate and spoiled and 2 * spoiled >= len(made.publish):
            stands = run._replace(step="planned", stopped_with=frozenset(made.publish))
            return s.without(i)._replace(stopped=s.stopped | {stands})
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
        passes = not run.moves and stopped_some(s.stopped, head, dict(run.publish))
        by_another = passes and asks_the_gate(run)
        if self.dropped == "a-backfill-asks-at-no-gate" and run.kind == "backfill":
            by_another = False
        if self.dropped == "a-closed-gate-knows-ingests-only":
            by_another = False
        if fenced(run, head, dropped=self.dropped) or ((standing or by_another) and asks):
            return s.without(i)
        if run.base != head.sequence and self.dropped != "no-compare-and-set":
            # A conflict: decide again, and stage anew, so that what was staged before never counts.
            return self._decide(s, i, run)
        if not run.moves and self._contradicted(s) and self.dropped != "the-group-is-asked-when-planning-only":
            return s.without(i)
        check_passed(s, run, head, standing=standing)
        ends = s.ends if self.dropped == "an-ingest-of-one-partition-moves-all" else run.ends
        new = head._replace(
            sequence=head.sequence + 1,
            positions=ends if run.moves else head.positions,
            published=head.published | run.publish,
            held=run.held,
        )
        if s.left.undos:
            new = kept_for_undo(head, new, run)
        check_commit(self.world, head, new, run)
        check_number(s, new, run)
        new = new._replace(was=remember(self.world, head, new, run))
        stopped = frozenset(r for r in s.stopped if r.number != run.number)
        s = s._replace(head=new, furthest=furthest(s, new), stopped=stopped)
        return s.with_run(i, run._replace(step="committed", base=new.sequence)) if run.moves else s.without(i)

    # people

    def undo(self, s: State, made: Made) -> State:
        """Of a batch, or of the newest rewind; of a decision, its opposite is planned as any decision."""
        s = s._replace(left=s.left._replace(undos=s.left.undos - 1))
        if made.action:
            after = s._replace(left=s.left._replace(decisions=s.left.decisions + 1))
            return self.plan_choice(after, OPPOSITES[made.action], made.waveform, undoes=made)
        before = s.head
        s = self.rewind(s, goes_back(s.head, made))
        if self.dropped == "an-undo-puts-every-partition-back":
            s = s._replace(head=s.head._replace(positions=tuple(min(at, made.back[0][1]) for at in s.head.positions)))
        if self.dropped == "an-undo-keeps-the-generation":
            s = s._replace(head=s.head._replace(generation=before.generation))
        check_moved_back(before, s.head, made)
        return s

    def rewind(self, s: State, moved: dict[int, int]) -> State:
        """Of these partitions alone; what the group says of the others is left, where somebody has reset it."""
        head = self._set(s.head, tuple(moved.get(p, at) for p, at in enumerate(s.head.positions)))
        group = written(head)
        foreign = {p for p, g in enumerate(s.group) if g.offset is not None and g.tag is None and p not in moved}
        if self.dropped == "a-rewind-writes-every-partition" and foreign:
            raise Violation("reset: overwritten by a rewind of another partition")
        group = tuple(s.group[p] if p in foreign else g for p, g in enumerate(group))
        if s.left.undos:
            back = tuple((p, s.head.positions[p]) for p, to in moved.items() if to != s.head.positions[p])
            head = head._replace(made=(*head.made, Made(head.sequence, 0, back)))
        return s._replace(head=head, group=group, furthest=furthest(s, head))

    def go_on_behind_the_cut(self, s: State) -> State:
        """Whoever accepts what retention took unread."""
        return self.rewind(s, behind_the_cut(s.head, s.group, s.starts))

    def _set(self, head: Head, to: tuple[int, ...], *, generation: int | None = None) -> Head:
        """On purpose; what it goes over is given up by name."""
        more = self.dropped == "more-is-named-than-is-passed"
        gone = {(p, o) for p, at in enumerate(head.positions) if to[p] > at for o in range(at, to[p] + more)}
        named = frozenset() if self.dropped == "what-is-skipped-is-not-named" else frozenset(gone)
        return head.moved(to, generation=generation)._replace(skipped=head.skipped | named)

    def settle(self, s: State, way: str) -> State:
        """Go on where this table stands, begin anew from the log, or go on where the group stands."""
        head, newer = s.head, next_generation(s.head, s.group)
        if way == "group":
            to = tuple(at if g.offset is None else g.offset for g, at in zip(s.group, head.positions, strict=True))
        else:
            to = head.positions if way == "head" else s.starts
        head = self._set(head, to, generation=newer)
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


def kept_for_undo(before: Head, after: Head, run: Run) -> Head:
    """Which rows are of this run, and what it did."""
    after = after._replace(held=frozenset(h if h.by else h._replace(by=run.number) for h in after.held))
    made = Made(after.sequence, run.number, began(run))
    if run.choice is not None:
        rows = frozenset(h for h in after.held if h.by == run.number)
        prior = frozenset(h for h in before.held if h.place in {r.place for r in rows})
        made = made._replace(action=run.choice.action, waveform=run.choice.waveform, rows=rows, prior=prior)
    return after._replace(made=(*after.made, made))


def written(head: Head) -> Groups:
    """The group, as it shows this head."""
    return tuple(Group(at, head.version) for at in head.positions)


def furthest(s: State, head: Head) -> tuple[int, ...]:
    return tuple(map(max, s.furthest, head.positions))
