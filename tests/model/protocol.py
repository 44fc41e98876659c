"""The protocol in the small, explored to the end: every interleaving and every death of a handful of actors.

One partition, a log of five records, at most two runs at once (each may be the other's zombie), a backfill, rewinds,
resets by Kafka's own tools, group offsets that expire, a catalog that is copied, lost or exchanged (a backup put back,
a wrong address, two deployments). Breadth first: a violation comes with a shortest way to it.
In every state it asks:

- I1: what lies below the head's position is published, a repeat of what is, or held by a committed decision;
- I2: no waveform is published twice;
- I4: the group never stands further than a head ever did, unless somebody else put it there;
- I7: a run moves the position only from where it began, and commits only in the generation it was planned in;
- a reset is never overwritten by a batch that looked at the group after it;
- doubt: where the group's tag contradicts the catalog, no ingest goes on and no batch writes the group;
- live: from here, a contradiction settled by name, two undisturbed ingests publish exactly what is whole and hold the
  rest; group and head stand at the end.

Simpler than the product: one partition, where `wavestitch.contracts.protocol.reconcile` compares them one by one;
adopting a reset is one step, where the product commits the head, writes the tags and only then pins; a forward reset,
which the product refuses, does not happen; a run whose catalog was exchanged is fenced, where the product lets it
commit if its base is in both; no conflicts, corruption, validation, limits or retention.

    python tests/model/protocol.py            the design, whole budget
    python tests/model/protocol.py all        and every mutant: a rule of the design dropped, which must be found out
"""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

RECORDS = (("A", 0), ("B", 0), ("A", 1), ("A", 0), ("C", 0))
"""By offset: (waveform, sequence). The fourth repeats the first; C never becomes whole."""
CHUNKS = {"A": 2, "B": 1, "C": 2}
WHOLE = frozenset({"A", "B"})

Version = tuple[int, int, int]
"""(table, generation, sequence) of the head that a tag names."""


class Violation(Exception):
    """An invariant that does not hold."""


class Head(NamedTuple):
    sequence: int = 0
    generation: int = 0
    position: int = 0
    published: frozenset[str] = frozenset()
    decisions: frozenset[int] = frozenset()
    table: int = 0
    catalog: int = 0

    @property
    def version(self) -> Version:
        return self.table, self.generation, self.sequence

    def moved(self, position: int) -> Head:
        return self._replace(sequence=self.sequence + 1, generation=self.generation + 1, position=position)


class Group(NamedTuple):
    """`offset` None: expired. `tag` None: foreign."""

    offset: int | None = 0
    tag: Version | None = (0, 0, 0)


class Run(NamedTuple):
    """`base`: sequence of the head that its decision rests on. `step`: what it has done last. `catalog`: where."""

    ingest: bool
    step: str
    base: int
    generation: int
    start: int
    end: int
    decision: int
    publish: frozenset[str] = frozenset()
    hold: frozenset[int] = frozenset()
    table: int = 0
    catalog: int = 0


class Budget(NamedTuple):
    """How much of each may still happen; `records`: how long the log grows. `catalogs`: copies, losses, exchanges."""

    runs: int = 3
    rewinds: int = 1
    resets: int = 1
    expiries: int = 1
    records: int = len(RECORDS)
    catalogs: int = 0


class State(NamedTuple):
    end: int
    head: Head
    held: frozenset[tuple[int, int]]
    group: Group
    runs: tuple[Run, ...]
    furthest: int
    left: Budget
    next_decision: int = 1
    other: Head | None = None
    """The head of a catalog that is not the one in use: a copy, or the one that was before."""

    def without(self, i: int) -> State:
        return self._replace(runs=self.runs[:i] + self.runs[i + 1 :])

    def with_run(self, i: int, run: Run) -> State:
        return self._replace(runs=(*self.runs[:i], run, *self.runs[i + 1 :]))


# The rules, one function each, so that the product's can be held against them.


def reconciles(head: Head, group: Group) -> str:
    """What a plan does about the group: `adopt` a foreign tag, `project` over a lost or stale one, or nothing."""
    if group.offset is None:
        return "project"
    if group.tag is None:
        return "adopt"
    return "" if group.tag == head.version and group.offset == head.position else "project"


def doubted(head: Head, group: Group, *, dropped: str = "") -> str:
    """What a tag of ours says against the catalog; empty where they agree."""
    if group.tag is None or group.offset is None:
        return ""
    table, generation, sequence = group.tag
    if table != head.table:
        # A catalog that was lost has another table, or none yet.
        return "" if dropped == "any-table-is-ours" else "another table"
    if (generation, sequence) > (head.generation, head.sequence):
        return "" if dropped == "newer-is-older" else "restored"
    if generation != head.generation or dropped == "forks-pass":
        return ""
    same = sequence == head.sequence and group.offset != head.position
    return "forked" if same or group.offset > head.position else ""


def fenced(run: Run, head: Head, *, dropped: str = "") -> bool:
    """Whether a run's head has moved on: another generation, or for an ingest another position."""
    rewound = head.generation != run.generation and dropped != "no-generation"
    elsewhere = run.catalog != head.catalog
    return elsewhere or rewound or (run.ingest and head.position != run.start and dropped != "no-start-check")


def projects(head: Head, group: Group, *, dropped: str = "") -> bool:
    """Whether a batch may write the group: never over a foreign tag, nor one that contradicts the catalog."""
    return group.offset is None or (group.tag is not None and not doubted(head, group, dropped=dropped))


@dataclass(frozen=True)
class Protocol:
    """The design, or with `dropped` the design without one of its rules."""

    dropped: str = ""

    def plan(self, s: State, *, ingest: bool) -> State:
        head, group = s.head, s.group
        if ingest:
            if doubted(head, group) and self.dropped == "lost-means-group":
                head = head.moved(group.offset or 0)
                group = Group(head.position, head.version)
            elif doubted(head, group, dropped=self.dropped):
                return s  # refused, by name
            elif doubted(head, group):
                raise Violation("doubt: an ingest goes on where group and catalog contradict each other")
            todo = reconciles(head, group)
            if group.offset is None and self.dropped == "expired-means-latest":
                head = head.moved(s.end)
                todo = "project"
            elif todo == "adopt":
                head = head.moved(group.offset or 0)
            if todo:
                group = Group(head.position, head.version)
        s = s._replace(head=head, group=group)
        start = head.position if ingest else 0
        if start >= s.end:
            return s
        run = Run(ingest, "planned", head.sequence, head.generation, start, s.end, s.next_decision)
        run = run._replace(table=head.table, catalog=head.catalog)
        left = s.left._replace(runs=s.left.runs - 1)
        return s._replace(runs=(*s.runs, run), left=left, next_decision=s.next_decision + 1)

    def advance(self, s: State, i: int) -> State:
        """The next step of one run; each is one effect, or one look."""
        run = s.runs[i]
        match run.step:
            case "planned":
                return s.with_run(i, self._decided(s, run))
            case "decided":
                held = s.held | {(run.decision, o) for o in run.hold}
                return s._replace(held=held).with_run(i, run._replace(step="staged"))
            case "staged":
                return self._commit(s, i, run)
            case "committed":
                # The head of the catalog that is in use now; a run whose own is gone stands with what it committed.
                if not projects(s.head, s.group, dropped=self.dropped):
                    if self.dropped == "overwrite-foreign" and s.group.tag is None:
                        raise Violation("reset: overwritten by a batch that looked after it")
                    return s.without(i)
                if doubted(s.head, s.group):
                    raise Violation("doubt: a batch writes a group that contradicts the catalog")
                return s.with_run(i, run._replace(step="looked"))
        return s.without(i)._replace(group=Group(run.end, (run.table, run.generation, run.base)))

    def _decided(self, s: State, run: Run) -> Run:
        """The decision on top of today's head: what of held and read is whole, and what of read to hold."""
        read = range(run.start, run.end)
        pool: dict[str, dict[int, int]] = {}
        for offset in [*sorted(effective(s)), *read]:
            waveform, seq = RECORDS[offset]
            pool.setdefault(waveform, {}).setdefault(seq, offset)
        known = frozenset() if self.dropped == "publish-replays" else s.head.published
        publish = frozenset(w for w, pieces in pool.items() if len(pieces) == CHUNKS[w]) - known
        rest = [o for w, pieces in pool.items() if w not in publish | s.head.published for o in pieces.values()]
        hold = frozenset(o for o in rest if o in read and run.ingest)
        return run._replace(step="decided", base=s.head.sequence, publish=publish, hold=hold)

    def _commit(self, s: State, i: int, run: Run) -> State:
        head = s.head
        if fenced(run, head, dropped=self.dropped):
            return s.without(i)
        if run.base != head.sequence and self.dropped != "no-compare-and-set":
            # A conflict: decide again, under a digest of its own, so that what was staged before never counts.
            again = self._decided(s, run._replace(decision=s.next_decision))
            return s.with_run(i, again)._replace(next_decision=s.next_decision + 1)
        if run.ingest and run.start != head.position:
            raise Violation(f"I7: moves the position from {head.position} to {run.end}, read from {run.start}")
        if run.generation != head.generation:
            raise Violation("I7: planned before a rewind, committed after it")
        if run.publish & head.published:
            raise Violation(f"I2: published twice: {sorted(run.publish & head.published)}")
        new = head._replace(
            sequence=head.sequence + 1,
            position=run.end if run.ingest else head.position,
            published=head.published | run.publish,
            decisions=head.decisions | {run.decision},
        )
        s = s._replace(head=new, furthest=max(s.furthest, new.position))
        return s.with_run(i, run._replace(step="committed", base=new.sequence)) if run.ingest else s.without(i)

    def successors(self, s: State) -> Iterator[tuple[str, State]]:
        left = s.left
        if s.end < left.records:
            yield "a record", s._replace(end=s.end + 1)
        if left.runs and len(s.runs) < 2:
            for ingest in (True, False):
                if ingest or all(r.ingest for r in s.runs):
                    planned = self.plan(s, ingest=ingest)
                    if planned != s:
                        yield f"plan {'ingest' if ingest else 'backfill'}", planned
        for i, run in enumerate(s.runs):
            name = f"{'ingest' if run.ingest else 'backfill'} {run.decision}"
            yield f"{name} goes on from {run.step}", self.advance(s, i)
            yield f"{name} dies", s.without(i)
        if left.rewinds and s.head.position > 0 and not doubted(s.head, s.group):
            for to in sorted({0, s.head.position - 1}):
                h = s.head.moved(to)
                after = left._replace(rewinds=left.rewinds - 1)
                yield f"rewind to {to}", s._replace(head=h, group=Group(to, h.version), left=after)
        if left.resets and s.group.offset:
            yield "reset by Kafka's tools", s._replace(group=Group(0, None), left=left._replace(resets=left.resets - 1))
        if left.expiries and s.group.offset is not None and s.group.tag is not None:
            after = left._replace(expiries=left.expiries - 1)
            yield "the group's offset expires", s._replace(group=Group(None, None), left=after)
        if left.catalogs:
            yield from self._catalogs(s._replace(left=left._replace(catalogs=left.catalogs - 1)))

    @staticmethod
    def _catalogs(s: State) -> Iterator[tuple[str, State]]:
        if s.other is not None:
            yield "the other catalog is put in place", s._replace(head=s.other, other=s.head)
            return
        yield "the catalog is copied", s._replace(other=s.head._replace(catalog=1))
        yield "the catalog is lost", s._replace(head=Head(table=1, catalog=1), other=s.head)

    @staticmethod
    def settle(s: State) -> State:
        """What an operator does about a contradiction: go on where this table stands, and say so in the group."""
        if not doubted(s.head, s.group):
            return s
        table, generation, _ = s.group.tag or (0, 0, 0)
        known = generation if table == s.head.table else 0
        head = s.head._replace(sequence=s.head.sequence + 1, generation=max(s.head.generation, known) + 1)
        return s._replace(head=head, group=Group(head.position, head.version))

    def check(self, s: State) -> None:
        kept = {RECORDS[o] for d, o in s.held if d in s.head.decisions}
        for offset in range(s.head.position):
            if RECORDS[offset][0] not in s.head.published and RECORDS[offset] not in kept:
                raise Violation(f"I1: offset {offset} is lost")
        if s.group.tag is not None and (s.group.offset or 0) > s.furthest:
            raise Violation("I4: the group stands further than any head did")
        self._check_live(s)

    def _check_live(self, s: State) -> None:
        end = s.left.records
        if self.dropped != "lost-means-group":
            s = self.settle(s)
        for _ in range(2):
            s = self.plan(s._replace(end=end, runs=(), left=s.left._replace(runs=1)), ingest=True)
            while s.runs:
                s = self.advance(s, 0)
        seen = RECORDS[:end]
        whole = {w for w, n in CHUNKS.items() if len({seq for v, seq in seen if v == w}) == n}
        if s.head.published != whole or s.head.position != end or s.group.offset != end:
            published = sorted(s.head.published)
            raise Violation(f"live: ends with {published}, head {s.head.position}, group {s.group.offset}")
        if {RECORDS[o] for o in effective(s)} != {r for r in seen if r[0] not in whole}:
            raise Violation(f"live: ends with {sorted(effective(s))} held")


def effective(s: State) -> frozenset[int]:
    """The held offsets that count: of committed decisions, their waveform not published."""
    return frozenset(o for d, o in s.held if d in s.head.decisions and RECORDS[o][0] not in s.head.published)


class Found(NamedTuple):
    """`violation` empty: none. `way`: the shortest way there. `whole`: all states within the budget were seen."""

    states: int
    violation: str
    way: tuple[str, ...]
    whole: bool


def explore(
    dropped: str = "",
    budget: Budget | None = None,
    *,
    most: int = 10_000_000,
    look: Callable[[State], None] | None = None,
) -> Found:
    """Every state that can be reached within `budget`, at most `most`; `look` is shown each of them."""
    protocol = Protocol(dropped)
    first = State(0, Head(), frozenset(), Group(), (), 0, budget or Budget())
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


MUTANTS = (
    "no-compare-and-set",
    "no-generation",
    "no-start-check",
    "publish-replays",
    "expired-means-latest",
    "overwrite-foreign",
)
CATALOG_MUTANTS = ("any-table-is-ours", "newer-is-older", "forks-pass", "lost-means-group")
"""Rules that only a catalog that is copied, lost or exchanged can show."""
CATALOGS = Budget(runs=2, rewinds=0, resets=0, expiries=1, records=3, catalogs=3)


def main(arguments: list[str]) -> int:
    """0 where the design holds and every mutant asked for is found out."""
    wrong = 0
    for dropped in ("", *MUTANTS, *CATALOG_MUTANTS) if arguments == ["all"] else arguments or [""]:
        found = explore(dropped, CATALOGS if dropped in CATALOG_MUTANTS else None)
        said = f"{found.violation}\n    after: {' > '.join(found.way)}" if found.violation else "no violation"
        print(f"{dropped or 'the design'}: {found.states} states, {said}", flush=True)
        wrong += bool(found.violation) != bool(dropped)
    return 1 if wrong else 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
