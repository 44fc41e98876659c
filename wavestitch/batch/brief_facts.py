"""The little that a list of all streams shows of each: where it stands, and its last batches. Bounded, however long.

A head is a snapshot, so what stands behind it never changes: the history is read again only where the head is another
one, and between two batches a look is one question to the catalog and one file. What is held is not looked at; how much
it is the head says. Moves nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from threading import Lock

from wavestitch.batch.deployment import Deployment
from wavestitch.batch.history import whole_history
from wavestitch.batch.stream_facts import NOT_BEGUN, PartitionFacts, StreamFacts
from wavestitch.contracts.batch_row import BatchRow
from wavestitch.contracts.past_cost import RECENT
from wavestitch.contracts.position import Head
from wavestitch.contracts.reasons import Reason


class BriefFacts:
    """Looks at streams for one process, and remembers the last rows of each."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._rows: dict[str, tuple[Head, tuple[BatchRow, ...]]] = {}

    def of(self, deployment: Deployment, name: str) -> StreamFacts:
        """The log is not asked. Raises what the definition or the tables cannot be read for."""
        stream = deployment.stream(name)
        head = deployment.tables(name).head()
        if head is None:
            return StreamFacts(name, NOT_BEGUN, stream.topic)
        rows = self._behind(deployment, name, head)
        return StreamFacts(
            name=name,
            topic=stream.topic,
            head=head,
            partitions=tuple(PartitionFacts(p, at.next_offset, None, None) for p, at in sorted(head.positions.items())),
            batches=rows,
        )

    def _behind(self, deployment: Deployment, name: str, head: Head) -> tuple[BatchRow, ...]:
        with self._lock:
            known = self._rows.get(name)
        if known is not None and known[0] == head:
            return known[1]
        rows = tuple(whole_history(deployment.history(name), since=head.sequence - RECENT + 1))
        with self._lock:
            self._rows[name] = (head, rows)
        return rows


def held_by(head: Head) -> Mapping[str, int]:
    """How many chunks and records are held after it, by reason; those that somebody gave up are not."""
    counts = head.held.counts if head.held is not None else {}
    return {reason: n for reason, n in counts.items() if n and reason != Reason.DISCARDED.value}
