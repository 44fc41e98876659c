"""The very first head: begins where the group stood when its run looked, and else where the log begins. What lies
before that is read by nobody, and no head says so."""

from __future__ import annotations

from collections import defaultdict

from tests.histories.anomaly import Kind
from tests.histories.case import Case, Rule
from tests.histories.events import Committed, Event, Looked, Where


class FirstHeadRules(Rule):
    """`shown`: by run, the group's offsets whenever it looked; `began`: where the log began, by partition, when it
    looked first. Once a head was lost, `offset_rules` says where the next one may begin."""

    hears = (Looked,)

    def __init__(self, case: Case) -> None:
        super().__init__(case)
        self.shown: dict[str, list[dict[int, int]]] = defaultdict(list)
        self.began: dict[str, dict[Where, int]] = {}

    def take(self, event: Event, before: Committed | None) -> None:
        match event:
            case Looked() if before is None:
                self.began.setdefault(event.run, dict(self.ledger.log_start))
                if event.what == "group":
                    self.shown[event.run].append({p: at for p, (at, _) in self.ledger.group.items()})
            case Committed() if before is None and not self.ledger.lost and event.run in self.shown:
                self._begins(event)

    def _begins(self, head: Committed) -> None:
        for p, at in sorted(head.positions.items()):
            stood = {shown[p] for shown in self.shown[head.run] if p in shown}
            where = head.topic_id, p
            least, most = self.began[head.run].get(where, 0), self.ledger.log_start.get(where, 0)
            always = all(p in shown for shown in self.shown[head.run])
            if at in stood or (not always and (least <= at <= most or at == self._begins_anew(head, p))):
                continue
            where_to = f"the group stood at {sorted(stood)}, the log begins at {most}"
            what = f"the first head begins at {at} on partition {p}: {where_to}"
            passed = [(*where, o) for o in range(most, at)]
            self.case.say(Kind.UNEXPLAINED_GAP if passed and not stood else Kind.STALE_WRITER, what, at=passed)

    def _begins_anew(self, head: Committed, partition: int) -> int | None:
        """Where the topic was made anew as it looked: offsets are asked for by the name. The head is of the one that is
        gone, and whoever plans next says so."""
        now = self.ledger.topic_id
        return self.ledger.log_start.get((now, partition), 0) if now != head.topic_id else None
