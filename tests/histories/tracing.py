"""A history, partition by partition, as a way through the model: each thing that happened is one that its rules allow.
Of memory edges or of a real stream (`tests.faults.real_witness`): the events are the same.

Of a partition the model's head and group and the log's beginning are kept; what a run did is held against the rules
(`tests.model.rules`) as of some moment since it looked: a look and what rests on it are one step there, and two calls
here. What is published and held is not followed, `test_deciding_follows_the_model` compares that. Steps that the model
has none for are named as such: heads of maintenance, of batches over named offsets, of a topic or catalog in another's
place. `tests.histories.steps` counts those that random histories take.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from typing import NamedTuple

from tests.histories.events import (
    Abandoned,
    Answered,
    Committed,
    Ended,
    Event,
    Forged,
    GateClosed,
    Looked,
    Planned,
    Produced,
    Projected,
    Read,
    Reset,
    Retained,
    Shared,
    Started,
    TopicMade,
    Undone,
)
from tests.histories.knowledge import Knowledge
from tests.histories.late_events import GivenUp, Landed, Lands
from tests.histories.table_events import CatalogSetBack
from tests.model.rules import doubted, fenced, overtaken, projects, reconciles
from tests.model.world import Group, Head, Place, Run

STEPS = (
    *("plan ingest", "plan ingest of a part", "plan backfill"),
    *("redrive", "accept", "pick", "discard", "restore", "undo"),
    *("commit ingest", "commit backfill", "commit held", "conflict: decided again", "project"),
    *("adopt a reset", "rewind", "settle a contradiction", "gate closes", "gate answered", "abandon"),
    *("reset", "offset expires", "catalog copied", "catalog lost", "catalog set back"),
    *("retention", "retention past the head", "a run ends, its data gone", "a loss is accepted"),
)
"""What the model has."""
_OTHERS = {"manual": "not in the model: a batch of named offsets", "promote": "not in the model: a promotion"}
ANOTHER = 1000
"""The number of a table that is nobody's here."""
NOT_THERE = 0
"""The position of a partition that a head does not know yet."""


class OffTrack(Exception):
    """What happened is no step of the model."""


class Moment(NamedTuple):
    """`start`: of the log."""

    at: int
    head: Head | None
    group: Group
    start: int


class Trace:
    """One partition's. `steps`: how often each was taken, by its name."""

    def __init__(self, partition: int) -> None:
        self.partition = partition
        self.steps: Counter[str] = Counter()
        self._at = 0
        self._heads: list[Head] = []
        self._table = self._topics = 0
        self._group = Group(None, None)
        self._start = 0
        self._moments = [Moment(0, None, self._group, self._start)]
        self._known = Knowledge()
        self._plans: dict[str, Planned] = {}
        self._reads: defaultdict[str, set[int]] = defaultdict(set)
        """By plan, what was landed of it."""
        self._topic_of: dict[int, str] = {}
        """By the number of a head."""
        self._undoing: set[str] = set()
        self._unseen: set[str] = set()
        """Runs to which a broker that they asked has not shown this partition, nor the group's offset of it: it had not
        heard of it, or it was added since. It may be shown to them when they write the group, before what they planned
        is heard of."""
        self._shown: set[str] = set()
        """Those to which one has since: it counts once they look at the head. What comes after that they may have asked
        in order to write the group of a head that they found, or had to make."""
        self._tables: dict[tuple[int, int, int], int] = {}
        """Of which table it is what the group has shown, by offset, generation and sequence."""
        self._found: dict[str, set[Group]] = {}
        """By run, what the group showed since it had looked, when it moved the stream on purpose."""

    def follow(self, events: Iterable[tuple[int, Event]]) -> Counter[str]:
        """Of events with their numbers. Raises `OffTrack` at the first that is no step."""
        for self._at, event in events:
            self._take(event)
            now = self._heads[-1] if self._heads else None, self._group, self._start
            if self._moments[-1][1:] != now:
                self._moments.append(Moment(self._at, *now))
        return self.steps

    def _take(self, event: Event) -> None:
        match event:
            case Started():
                for what in ("topic", "head", "group", "abandoned"):
                    self._known.note(event.run, what, self._at)
            case Ended(reason="DataLost"):
                self._ended(event)
            case Looked():
                self._known.note(event.run, event.what, self._at)
                self._looked(event)
            case GivenUp() | Lands() | Landed():
                self._known.take(event, self._at)
            case Planned():
                self._planned(event)
            case Read() if event.partition == self.partition:
                self._read(event)
            case Committed():
                self._committed(event)
            case Projected() if self.partition in event.offsets:
                self._projected(event)
            case Undone():
                self._undoing.add(event.run)
            case GateClosed():
                self._did("gate closes")
            case Answered():
                self._did("gate answered")
            case Abandoned():
                self._did("abandon")
            case _:
                self._world(event)

    def _world(self, event: Event) -> None:
        match event:
            case Reset() if event.partition == self.partition:
                self._did("offset expires" if event.offset is None else "reset")
                self._group = Group(event.offset, None)
            case Shared() if event.partition == self.partition:
                self._did("catalog copied")
                self._group = self._shared(event)
            case Forged() if event.partition == self.partition:
                self._group = Group(event.offset, (self._table, 10**9, 10**9))
            case TopicMade():
                if self._topics:
                    self._did("not in the model: a topic in another's place")
                self._topics += 1
                self._group, self._start = Group(None, None), 0
            case Retained() if event.partition == self.partition and event.log_start > self._start:
                self._start = event.log_start
                past = self._heads and overtaken((self._start,), {0: self._heads[-1].positions[0]})
                self._did("retention past the head" if past else "retention")
            case CatalogSetBack():
                self._did("catalog set back" if event.sequence else "catalog lost")
                self._table += not event.sequence
                self._heads = [h for h in self._heads if h.sequence <= event.sequence]

    def _shared(self, event: Shared) -> Group:
        """A copy of a table that is lost by now writes what it wrote before."""
        shown = event.offset, event.generation, event.sequence
        known = self._tables.get(shown, self._table)
        table = self._table if not event.another else known if known != self._table else ANOTHER
        self._tables[shown] = table
        return Group(event.offset, (table, event.generation, event.sequence))

    # what runs did

    def _looked(self, look: Looked) -> None:
        if look.what == "topic":
            shows = look.shows(self.partition)
            (self._shown.add if shows else self._shown.discard)(look.run)
            self._unseen |= set() if shows else {look.run}
        elif look.what == "head" and look.run in self._shown:
            self._unseen.discard(look.run)

    def _planned(self, plan: Planned) -> None:
        self._plans[plan.plan_id] = plan
        # What an operator was shown may be begun much later; then it is of the head that it was shown on.
        shown = plan.kind in ("held", "promote")
        seen = self._moments if shown else self._since(plan.run, "head", "topic")
        at = plan.positions.get(self.partition, NOT_THERE)
        rests = [m for m in seen if m.head and _stands(m.head) == (plan.base_sequence, plan.generation, at)]
        self._must(bool(rests), f"{plan.kind} is planned on head {plan.base_sequence} at {at}, which was none then")
        if plan.kind == "ingest":
            # Looked at before the group is written. What a copy shows in between is refused when the batch ends.
            agrees = [m for m in self._since(plan.run, "head") if m.head and not doubted(m.head, (m.group,))]
            self._must(
                bool(agrees) or plan.run in self._unseen, "an ingest is planned where the group contradicts the catalog"
            )
        for start in (a for p, a, b in plan.ranges if p == self.partition and b > a):
            there = any(m.start <= start for m in rests) if shown else self._was_there(plan.run, start)
            self._must(there, f"{plan.kind} is planned from {start}, where the log was cut")
        parts = {p for p, _, _ in plan.ranges}
        whole = parts >= plan.positions.keys() or plan.kind != "ingest"
        planned = f"plan {plan.kind}" if plan.kind not in _OTHERS else f"{_OTHERS[plan.kind]}, planned"
        self._did(plan.action or (planned if whole else "plan ingest of a part"))

    def _committed(self, new: Committed) -> None:
        before = self._heads[-1] if self._heads else None
        skipped = frozenset((p, o) for p, a, b in new.skipped if p == self.partition for o in range(a, b))
        at = new.positions.get(self.partition, NOT_THERE)
        made = Head(new.sequence, new.generation, (at,), table=self._table, skipped=skipped)
        if before is not None:
            follows = new.sequence == before.sequence + 1 or new.kind == "rebuilt"
            self._must(follows, f"head {new.sequence} comes after head {before.sequence}")
        if new.plan_id and before is not None:
            self._carried(new, before, made)
        elif before is not None:
            self._moved(new, before, made)
        if not new.plan_id:
            self._found[new.run] = {m.group for m in self._since(new.run, "group")}
        self._topic_of[new.sequence] = new.topic_id
        self._heads.append(made)

    def _carried(self, new: Committed, before: Head, made: Head) -> None:
        plan = self._plans[new.plan_id]
        start = plan.positions.get(self.partition, NOT_THERE)
        end = max([e for p, _, e in plan.ranges if p == self.partition and plan.kind == "ingest"], default=start)
        kind = "ingest" if plan.kind == "ingest" else plan.kind
        run = Run(kind, "staged", plan.base_sequence, plan.generation, (start,), (end,), 1)
        self._must(not fenced(run, before), f"a fenced {kind} commits head {new.sequence}")
        to = (end,) if run.moves else before.positions
        self._must(made.positions == to, f"{kind} leaves the head at {made.positions}, and not at {to}")
        self._must(made.generation == before.generation, f"{kind} changes the generation")
        self._must(made.skipped == before.skipped, f"{kind} changes what was given up by name")
        unread = sorted(set(range(start, end)) - self._reads[plan.plan_id])
        self._must(not (run.moves and unread), f"an ingest passes {unread}, which it did not read")
        self._did(_OTHERS.get(kind, f"commit {kind}"))
        if before.sequence != plan.base_sequence:
            self._did("conflict: decided again")

    def _moved(self, new: Committed, before: Head, made: Head) -> None:
        if new.kind in ("maintenance", "gate", "promote"):
            self._must(made == before._replace(sequence=new.sequence), f"{new.kind} changes where the stream stands")
            self._did(f"not in the model: a head of {new.kind}")
            return
        self._must(made.generation > before.generation, f"a head ({new.kind}) on purpose in no newer generation")
        seen = [m for m in self._since(new.run, "group") if m.head is not None]
        if new.kind in ("rewind", "adopted") and self._topic_of[before.sequence] == new.topic_id:
            self._goes_over(new, before, made)
        if new.kind == "adopted":
            # Whatever partition was reset: of the others the group and the head are as they were.
            agrees = [m for m in seen if m.head and not doubted(m.head, (m.group,))]
            self._must(
                bool(agrees) or new.run in self._unseen, "a reset is taken over where the group contradicts the catalog"
            )
            if any(m.head and reconciles(m.head, (m.group,)) == "adopt" for m in seen):
                self._did("adopt a reset")
            return
        doubts = all(m.head and doubted(m.head, (m.group,)) for m in seen)
        undoes = new.run in self._undoing
        self._did("settle a contradiction" if doubts else "undo" if undoes else "rewind")

    def _goes_over(self, new: Committed, before: Head, made: Head) -> None:
        was, to = before.positions[0], made.positions[0]
        gone: set[Place] = {(self.partition, o) for o in range(was, to)}
        self._must(gone <= made.skipped, f"{new.kind} goes from {was} to {to}, and does not name what it goes over")
        # Who begins anew by a broker that shows no such partition forgets it.
        forgets = self.partition not in new.positions and new.run in self._unseen
        there = forgets or to == was or self._was_there(new.run, to)
        self._must(there, f"{new.kind} goes to {to}, where the log was cut")
        if gone and overtaken((self._start,), {0: was}):
            self._did("a loss is accepted")

    def _ended(self, event: Ended) -> None:
        """Lost data may also be those of a log that was cut off at its end, which is not in the model."""
        begun = [
            a
            for plan in self._plans.values()
            if plan.run == event.run
            for p, a, _ in plan.ranges
            if p == self.partition
        ]
        stood = [h.positions[0] for h in self._heads[-1:]]
        if any(at < self._start for at in (*begun, *stood)):
            self._did("a run ends, its data gone")

    def _read(self, event: Read) -> None:
        """A step looks first whether its plan was abandoned, and reads slice after slice."""
        there = self._was_there(event.run, event.start, since="abandoned")
        self._must(there, f"{event.start} is read, which the log had no more")
        self._known.note(event.run, "abandoned", self._at)
        self._reads[event.plan_id].update(range(event.start, event.end))

    def _was_there(self, run: str, offset: int, *, since: str = "topic") -> bool:
        """Whether the log began no later, as this run can have seen it."""
        return any(m.start <= offset for m in self._since(run, since))

    def _projected(self, event: Projected) -> None:
        offset, version = event.offsets[self.partition], (event.sequence, event.generation)
        shown = [h for h in self._heads if _stands(h) == (*version, offset)]
        gone = [m.head for m in self._moments if m.head and _stands(m.head) == (*version, offset)]
        self._must(bool(shown or gone), f"the group is shown head {version} at {offset}, and there is none such")
        known = shown[-1] if shown else gone[-1]
        free = [m for m in self._since(event.run, "group") if m.head and projects(m.head, (m.group,))]
        # Whoever moves the stream on purpose takes over what it found: one step in the model.
        mine = [m for m in self._since(event.run, "group") if m.group in self._found.get(event.run, ())]
        self._must(bool(free or mine), "the group is written over what nobody has taken over")
        self._group = Group(offset, (known.table, event.generation, event.sequence))
        self._tables[offset, event.generation, event.sequence] = known.table
        self._did("project")

    def _since(self, run: str, *what: str) -> list[Moment]:
        """All that a run can have seen since its last look; of several kinds since the first of these. Who plans looks
        at the topic, then at the head, and perhaps at that once more without going by it. What lands late rests on
        nothing that came after it was sent."""
        since = min(self._known.last(run, one, never=0) for one in what)
        until = self._at if self._known.sent_at is None else self._known.sent_at
        before = [m for m in self._moments if m.at <= since][-1:]
        return [*before, *(m for m in self._moments if since < m.at <= until)]

    def _did(self, step: str) -> None:
        self.steps[step] += 1

    def _must(self, holds: bool, what: str) -> None:
        if not holds:
            raise OffTrack(f"partition {self.partition}, event {self._at}: {what}")


def _stands(head: Head) -> tuple[int, int, int]:
    return head.sequence, head.generation, head.positions[0]


def follow(history: Iterable[Event]) -> Counter[str]:
    """All partitions of a history. Raises `OffTrack`."""
    # The model knows of no records.
    events = [(at, event) for at, event in enumerate(history, 1) if not isinstance(event, Produced)]
    partitions = sorted({p for _, e in events if isinstance(e, Committed) for p in e.positions})
    return sum((Trace(p).follow(events) for p in partitions), Counter[str]())
