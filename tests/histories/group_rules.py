"""The group: shows no more than a head has, no older head over a newer one, and no reset is written over unheard. What
leaves the positions is committed on no catalog of which the group shows that it is another one than before."""

from __future__ import annotations

from tests.histories.anomaly import Kind
from tests.histories.case import Case, Rule
from tests.histories.events import Committed, Event, Forged, Looked, Projected, Reset, Rewound, Shared, TopicMade
from tests.histories.group_events import OnReset
from tests.histories.knowledge import ACTED
from tests.histories.table_events import CatalogSetBack


class GroupRules(Rule):
    """`resets`: by partition, since when one by Kafka's tools stands that nobody took over. `shown`: since when the
    group shows which head of today's table; `foreign`: of one that is no more. `copied`: by partition, since when the
    group shows which offset and head of a copy of this table. `others`: by partition, since when it has shown which
    offset, or which of which head of another table, again and again perhaps, and nothing of this one. `stands`: which
    of these it is now, empty where it is none; `seen`: by run, what it was when that looked. `named`: by run that
    rewinds, its partitions, None for all. `adopts`: whether the stream takes resets over."""

    hears = (Looked,)

    def __init__(self, case: Case) -> None:
        super().__init__(case)
        self.resets: dict[int, int] = {}
        self.shown: dict[int, tuple[int, tuple[int, int]]] = {}
        self.copied: dict[int, tuple[int, int, tuple[int, int]]] = {}
        self.foreign: dict[int, int] = {}
        self.others: dict[int, dict[tuple[int, ...], int]] = {}
        self.stands: dict[int, tuple[int, ...]] = {}
        self.seen: dict[str, dict[int, tuple[int, ...]]] = {}
        self.named: dict[str, tuple[int, ...] | None] = {}
        self.adopts = True
        self.topic_made_at = -1

    def first_look(self, event: Event) -> None:
        match event:
            case Projected():
                self._projected(event)
            case Committed() if event.plan_id:
                self._on_another_catalog(event)

    def take(self, event: Event, before: Committed | None) -> None:
        if isinstance(event, Reset | Shared | Forged):
            self.foreign.pop(event.partition, None)
        match event:
            case OnReset():
                self.adopts = event.adopts
            case Rewound():
                self.named[event.run] = event.only
            case Committed(kind="adopted") if before is not None and not self.adopts:
                # A partition that the head before did not know stood at 0.
                if any(at != before.positions.get(p, 0) for p, at in event.positions.items()):
                    what = f"head {event.sequence} takes over a reset of a stream that refuses them"
                    self.case.say(Kind.STALE_WRITER, what)
            case CatalogSetBack():
                if not event.sequence:
                    self.foreign |= dict.fromkeys((*self.shown, *self.copied), self.case.at)
                    self._is_another_table_s()
                self.shown = self.shown if event.sequence else {}
                self.copied = self.copied if event.sequence else {}  # of a table that is no more
            case Looked():
                if event.what == "group":
                    self.seen[event.run] = self._shown_now()
            case Reset() if event.offset is None:
                self.stands[event.partition] = ()
                self.copied.pop(event.partition, None)
                self.resets.pop(event.partition, None)
                self.shown.pop(event.partition, None)
            case Reset():
                self.shown.pop(event.partition, None)
                self.copied.pop(event.partition, None)
                self._stands_since(event.partition, event.offset)
            case Shared():
                self.shown.pop(event.partition, None)
                self.resets.pop(event.partition, None)
                self.copied.pop(event.partition, None)
                if event.another:
                    self._stands_since(event.partition, event.offset, event.generation, event.sequence)
                else:
                    self.copied[event.partition] = self.case.at, event.offset, (event.generation, event.sequence)
            case Forged():
                self.stands.pop(event.partition, None)
                self.shown.pop(event.partition, None)
                self.copied.pop(event.partition, None)
                self.resets[event.partition] = self.case.at
            case TopicMade():
                self.topic_made_at = self.case.at
                self.stands = {}
                self.foreign = {}
                self.others = {}
                self.shown = {}
                self.resets = {}
                self.copied = {}

    def _shown_now(self) -> dict[int, tuple[int, ...]]:
        return {p: self.stands.get(p, ()) for p in {*self.stands, *self.ledger.group}}

    def _stands_since(self, partition: int, *shown: int) -> None:
        """Nobody can see that the same was written once more, whatever stood there in between."""
        self.resets[partition] = self.others.setdefault(partition, {}).setdefault(shown, self.case.at)
        self.stands[partition] = shown

    def _is_another_table_s(self) -> None:
        """What the group shows of the table that was lost: a copy of that may write it once more."""
        since = {p: at for p, (at, _) in self.shown.items()} | {p: at for p, (at, _, _) in self.copied.items()}
        for p, (offset, version) in self.ledger.group.items():
            if version is not None:
                self.others.setdefault(p, {}).setdefault((offset, *version), since.get(p, self.case.at))

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
            self.foreign.pop(p, None)
            self.others.pop(p, None)
            self._over_a_copy(event, p, offset)
            far = self.ledger.furthest(p)
            if fresh and offset > far:
                what = f"the group was put to {offset} on partition {p}, no head beyond {far}"
                say(Kind.COMMIT_AHEAD, what, at=[(event.topic_id, p, offset)])
            reset_at, stood = self.resets.pop(p, None), self.stands.pop(p, None)
            if reset_at is None or could_not_know(event.run, "group", reset_at):
                continue
            looked = self.case.known.last(event.run, "group") > self.case.known.last(event.run, ACTED)
            if looked and self.seen.get(event.run, {}).get(p, stood) != stood:
                continue  # it had stood there before, and did not when that run looked
            if not self._is_heard(p, reset_at, stood):
                what = f"a reset of the group on partition {p} was written over and never taken over"
                say(Kind.STALE_WRITER, what, at=[(event.topic_id, p, offset)])

    def _is_heard(self, p: int, reset_at: int, stood: tuple[int, ...] | None) -> bool:
        """By a head since that takes it over, or that somebody made who had named the partition, or all."""
        heads = zip(self.case.heads_at, self.ledger.heads, strict=True)
        return any(at > reset_at and self._hears(head, p, stood) for (at, _), head in heads)

    def _hears(self, head: Committed, p: int, stood: tuple[int, ...] | None) -> bool:
        if head.kind == "adopted":
            return stood == (head.positions.get(p),)
        only = self.named.get(head.run)
        return head.kind in ("first", "rebuilt") or (head.kind == "rewind" and (only is None or p in only))

    def _on_another_catalog(self, head: Committed) -> None:
        """Heads without positions of their own differ by their number alone: one that takes the number of a head that
        was lost hides that it was."""
        before = self.ledger.heads[-1] if self.ledger.heads else None
        if before is None or before.positions != head.positions:
            return  # of one that moves some, the group says so when it comes to the offsets
        version = before.generation, before.sequence
        newer = {p: since for p, (since, shown) in self.shown.items() if shown > version}
        newer |= {p: since for p, (since, _, theirs) in self.copied.items() if theirs > version}
        for p, since in sorted((self.foreign | newer).items()):
            if p not in before.positions:
                continue  # nobody asks about it (docs/guarantees.md)
            if not self.case.could_not_know(head.run, "group", since):
                what = f"head {head.sequence} ({head.kind}) comes after {version}, and the group shows another catalog"
                self.case.say(Kind.STALE_WRITER, what, at=[(head.topic_id, p, head.positions.get(p, 0))])

    def _over_a_copy(self, event: Projected, p: int, offset: int) -> None:
        """What a copy of this table wrote looks like what this one wrote, as long as both tell one story: within a
        generation positions only grow, and a head has one set of them."""
        since, shown, theirs = self.copied.pop(p, (-1, 0, (0, 0)))
        ours = event.generation, event.sequence
        beyond = theirs[0] == ours[0] and (shown > offset or (theirs == ours and shown != offset))
        if since < 0 or not (theirs > ours or beyond) or self.case.could_not_know(event.run, "group", since):
            return
        what = (
            f"head {ours} at {offset} was shown over head {theirs} at {shown} of a copy of the table, on partition {p}"
        )
        self.case.say(Kind.STALE_WRITER, what, at=[(event.topic_id, p, offset)])

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
