"""Step 6, last: project the head's positions into the consumer group, for Kafka's own tools. Never the truth (I4)."""

from __future__ import annotations

from wavestitch.contracts.errors import Refused
from wavestitch.contracts.ports import Log, Tables
from wavestitch.contracts.position import Head
from wavestitch.contracts.protocol import may_project
from wavestitch.contracts.stream import Stream


def commit_offsets(stream: Stream, *, log: Log, tables: Tables) -> str:
    """Write the newest head's positions for all partitions, tagged; returns a sentence saying what was done.

    A foreign tag is left alone: somebody reset the group, and the next plan takes that over.
    """
    head = tables.head()
    if head is None:
        raise Refused(f"stream {stream.name} has no head yet; plan a batch first")
    group = log.group_offsets(stream.group, stream.topic, sorted(head.positions))
    if not may_project(head, group):
        return f"group {stream.group} was reset by somebody else; left alone for the next plan to take over"
    # Asked last: on a topic that was made anew these offsets would lie beyond data that nobody has read (I4).
    if log.topic(stream.topic).topic_id != head.topic_id:
        return f"topic {stream.topic} was recreated; group {stream.group} left alone until the stream is rewound to it"
    return project(stream, head, log=log)


def project(stream: Stream, head: Head, *, log: Log) -> str:
    """Write `head` into the group, whatever stands there."""
    log.commit_group(stream.group, stream.topic, head.positions, head.tag.encode())
    moved = ", ".join(f"{p}:{at.next_offset}" for p, at in sorted(head.positions.items()))
    return f"group {stream.group} at {moved}"
