"""The group: shows no more than a head has, no older head over a newer one, and no reset is written over unheard."""

from __future__ import annotations

from tests.histories.anomaly import Kind
from tests.histories.case import MOVED_ON_PURPOSE, Case, Rule
from tests.histories.events import CatalogSetBack, Committed, Event, Projected, Reset, Shared, TopicMade


class GroupRules(Rule):
    """`resets`: by partition, since when one by Kafka's tools stands that nobody took over. `shown`: since when the
    group shows which head of today's table."""

    def __init__(self, case: Case) -> None:
        super().__init__(case)
        self.resets: dict[int, int] = {}
        self.shown: dict[int, tuple[int, tuple[int, int]]] = {}
        self.topic_made_at = -1
        self.stood: tuple[int, tuple[int, int] | None] | None = None

    def first_look(self, event: Event) -> None:
        match event:
            case Projected():
                self._projected(event)
            case Reset():
                self.stood = self.ledger.group.get(event.partition)

    def take(self, event: Event, before: Committed | None) -> None:
        match event:
            case CatalogSetBack():
                self.shown = self.shown if event.sequence else {}
            case Reset() if event.offset is None:
                self.resets.pop(event.partition, None)
                self.shown.pop(event.partition, None)
            case Reset():
                self.shown.pop(event.partition, None)
                if self.stood != (event.offset, None):  # otherwise nobody can see that it was done once more
                    self.resets[event.partition] = self.case.at
            case Shared():
                self.shown.pop(event.partition, None)
                self.resets.pop(event.partition, None)
                if event.another:  # what a copy of this table wrote, nobody can tell from what this one wrote
                    self.resets[event.partition] = self.case.at
            case TopicMade():
                self.topic_made_at = self.case.at
                self.shown = {}
                self.resets = {}

    def _projected(self, event: Projected) -> None:
        could_not_know, say = self.case.could_not_know, self.case.say
        fresh = not could_not_know(event.run, "topic", self.topic_made_at)
        version = event.generation, event.sequence
        for p, offset in sorted(event.offsets.items()):
            since, newest = self.shown.get(p, (self.case.at, version))
            if version < newest and not could_not_know(event.run, "group", since):
                what = f"head {version} was shown over head {newest} on partition {p}, by a run that could see that"
                say(Kind.STALE_WRITER, what, at=[(event.topic_id, p, offset)])
            self.shown[p] = self.case.at, version
            far = self.ledger.furthest(p)
            if fresh and offset > far:
                what = f"the group was put to {offset} on partition {p}, no head beyond {far}"
                say(Kind.COMMIT_AHEAD, what, at=[(event.topic_id, p, offset)])
            reset_at = self.resets.pop(p, None)
            if reset_at is None or could_not_know(event.run, "group", reset_at):
                continue
            if not any(at > reset_at and kind in (*MOVED_ON_PURPOSE, "first") for at, kind in self.case.heads_at):
                what = f"a reset of the group on partition {p} was written over and never taken over"
                say(Kind.STALE_WRITER, what, at=[(event.topic_id, p, offset)])

    def close(self) -> None:
        if not self.case.quiet or not self.ledger.heads:
            return
        head = self.ledger.heads[-1]
        for p, at in sorted(head.positions.items()):
            offset, version = self.ledger.group.get(p, (None, None))
            if (offset, version) != (at, (head.generation, head.sequence)):
                kind = Kind.COMMIT_AHEAD if offset is not None and offset > at else Kind.STALE_WRITER
                what = f"quiet runs left the group at {offset} (tag {version}), the head stands at {at}"
                self.case.say(kind, what, at=[(head.topic_id, p, at)])
