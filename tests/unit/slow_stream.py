"""A stream whose tables and log answer when a test lets them, and looks at it."""

from __future__ import annotations

import threading
from dataclasses import replace

from tests.builders.heads import make_head
from wavestitch.batch.stream_facts import PartitionFacts, StreamFacts
from wavestitch.contracts.position import Position
from wavestitch.contracts.quantities import Offset, Partition
from wavestitch.ui.looks import Looks

HEAD = make_head(sequence=3, positions={0: Position(Offset(7))}, plan_id="a" * 32)


class Stream:
    """A stream whose tables and log answer when they are let."""

    def __init__(self) -> None:
        self.tables, self.log = threading.Event(), threading.Event()
        self.asked = 0

    def ask_tables(self, name: str) -> StreamFacts:
        self.asked += 1
        self.tables.wait(30)
        return StreamFacts(name, topic="t", head=HEAD, partitions=(PartitionFacts(Partition(0), 7, None, None),))

    def ask_log(self, known: StreamFacts) -> StreamFacts:
        self.log.wait(30)
        return replace(known, partitions=(PartitionFacts(Partition(0), 7, Offset(0), 9),))


def looks(stream: Stream, *, fresh: float = 60.0, wait: float = 0.2) -> Looks:
    return Looks(stream.ask_tables, stream.ask_log, fresh=fresh, wait=wait)
