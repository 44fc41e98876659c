"""Disks that were put back from a backup, so that leader epochs and offsets come again: what of them nothing tells any
more (docs/guarantees.md). Excuses what is never seen; judges nothing."""

from __future__ import annotations

from collections.abc import Mapping

from tests.histories.case import MOVED_ON_PURPOSE
from tests.histories.events import Committed, Coordinate, LostOffset, Planned, Truncated, Where


class Disks:
    """`put_back`: by partition, from where on its disk was, until it is cut off after a head has looked at that.
    `unproven`: of which the batch in front of the position is lost, and up to where that is, until another one lies
    there. `bare`: by partition, the position of a head in front of which nothing lay when it was made."""

    def __init__(self) -> None:
        self.put_back: dict[Where, int] = {}
        self.unproven: dict[Where, tuple[int, int]] = {}
        self.bare: dict[Where, int] = {}

    def hide(self, c: Coordinate) -> bool:
        start, end = self.unproven.get(c[:2], (0, 0))
        return start <= c[2] < end

    def cut(self, event: Truncated, *, looked_at: bool, kept: bool) -> None:
        """`looked_at`: by a head, since it was cut off before. `kept`: what lay in front of the position, by the head:
        then what lies there now, or that nothing does, tells of this cut, and is followed back to a proven place."""
        where = event.topic_id, event.partition
        if looked_at:
            self.put_back.pop(where, None)
        if event.backup:
            self.put_back[where] = min(event.end, self.put_back.get(where, event.end))
        if where in self.unproven:
            start, end = self.unproven[where]
            self.unproven[where] = start, (start if kept else event.end) if event.end < end else end
        if event.backup and event.end < self.bare.get(where, 0):
            self.unproven[where] = event.end, self.bare[where]

    def lost(self, event: LostOffset, head: Committed) -> None:
        """Where a disk was put back, it was all that could tell, but for leader epochs, which may be those of then."""
        where = event.topic_id, event.partition
        in_front = event.offset + 1 == head.positions.get(event.partition) and event.topic_id == head.topic_id
        if in_front and where in self.put_back:
            self._nothing_tells(where, event.offset + 1 if event.told is None else event.told)

    def believed(self, where: Where, end: int) -> None:
        """A position in front of which the very same lies that lay there, sent anew, and behind others than before."""
        if end > self.put_back.get(where, end):
            self._nothing_tells(where, end)

    def committed(self, before: Committed | None, head: Committed, *, planned: int, cuts: Mapping[Where, int]) -> None:
        """The same, where it was put back and lost between the plan and its commit, or is put back only then; where
        no head of before is left; and where somebody goes to a position, or finds a catalog that was set back to it, in
        front of which it is lost by then. `planned`: when; `cuts`: since when partitions were cut off."""
        ends = {(head.topic_id, p): end for p, end in head.unproven}
        for where in self.put_back.keys() & ends:
            if head.kind in MOVED_ON_PURPOSE or (head.kind == "ingest" and planned < cuts.get(where, -1)):
                self._nothing_tells(where, ends[where])
        stood = before.positions if before is not None and before.topic_id == head.topic_id else {}
        if head.kind == "rebuilt":
            moved = {at for at in ends if at[1] in head.earlier}
        else:  # where the position stays, what was kept of it before stays, too
            moved = {at for at in ends if at in self.bare or stood.get(at[1]) != head.positions[at[1]]}
        lasts = {at: head.positions[at[1]] for at in moved}
        self.bare = {at: last for at, last in lasts.items() if ends[at] == last}

    def planned(self, plan: Planned) -> None:
        """An ingest goes on from there, though leader epochs tell by now that it was cut off: that is no excuse."""
        for p, place in plan.told if plan.kind == "ingest" else ():
            start, end = self.unproven.get((plan.topic_id, p), (0, 0))
            if place < end and any(q == p for q, _, _ in plan.ranges):
                self.unproven[plan.topic_id, p] = start, place

    def set_back(self, stands: Mapping[int, int]) -> None:
        """To a head that stands there: one that stood before what is lost has a batch in front of it that tells."""
        self.unproven = {at: r for at, r in self.unproven.items() if stands.get(at[1], r[1]) >= r[1]}
        self.bare = {at: end for at, end in self.bare.items() if stands.get(at[1]) == end}

    def _nothing_tells(self, where: Where, end: int) -> None:
        self.unproven[where] = self.put_back[where], end
