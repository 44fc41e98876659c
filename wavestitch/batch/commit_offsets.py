"""Step 6, last: project the head's positions into the consumer group, for Kafka's own tools. Never the truth (I4).

Whoever writes looks right before, after any commit of its own: first at the group, where a reset by somebody else stays
for the next plan to take over, then at the topic, which may have been made anew. Nothing else lies in between.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from wavestitch.contracts.disagreement import find_disagreement, refuse_disagreement
from wavestitch.contracts.errors import Refused, Transient
from wavestitch.contracts.ports import Log, Tables
from wavestitch.contracts.position import GroupOffset, Head
from wavestitch.contracts.protocol import left_alone, may_project
from wavestitch.contracts.quantities import Partition
from wavestitch.contracts.stream import Stream

_TRIES = 5


def commit_offsets(stream: Stream, *, log: Log, tables: Tables) -> str:
    """Write the newest head's positions for all partitions, tagged; returns a sentence saying what was done.

    A foreign tag is left alone: somebody reset the group, and the next plan takes that over. Raises `Refused` where the
    group has a tag of another table, or of a head that this table does not have.
    """
    head, group, table = look_at_group(stream, log=log, tables=tables)
    if not may_project(head, group, table=table):
        return f"group {stream.group} was reset by somebody else; left alone for the next plan to take over"
    return project(stream, head, table=table, log=log)


def look_at_group(
    stream: Stream, *, log: Log, tables: Tables
) -> tuple[Head, dict[Partition, GroupOffset | None], str | None]:
    """Head and group, free of disagreement. A batch that commits between our looks shows a newer head: look again.

    Asked where a commit that moves no position is planned, and right before it, too: its head may have the very number
    and positions of one that a catalog that was set back has lost, and would be taken for that from then on. Of a topic
    that is gone a broker says that nothing is committed, which contradicts no head.
    """
    for _ in range(_TRIES):
        head = tables.head()
        if head is None:
            raise Refused(f"stream {stream.name} has no head yet; plan a batch first")
        table = tables.table_uuid()
        group = _ask(stream, head, log)
        doubt = find_disagreement(head, group, table=table)
        if doubt is None:
            return head, group, table
        if tables.head() == head:
            raise refuse_disagreement(doubt, stream=stream.name, group=stream.group, head=head)
    raise Transient(f"stream {stream.name}: the head changed {_TRIES} times beside the group; try again")


def _ask(stream: Stream, head: Head, log: Log) -> dict[Partition, GroupOffset | None]:
    try:
        return log.group_offsets(stream.group, stream.topic, sorted(head.positions))
    except Transient as error:
        raise Transient(
            f"stream {stream.name}: group {stream.group} could not be asked whether the catalog is the one that it was "
            f"shown, and nobody goes on without that; do the same again once a broker answers: {error.message}",
            **error.facts,
        ) from error


def show_head(
    stream: Stream,
    head: Head,
    seen: Mapping[Partition, GroupOffset | None],
    *,
    log: Log,
    tables: Tables,
    moved: Collection[Partition] | None = None,
) -> str:
    """Write a head that was just committed, or one that is shown in part, into the group.

    `seen`: the group as that head was worked out on. It is the answer to what somebody had reset by then, of the
    partitions that it `moved` (all unless given); what was reset since, or elsewhere, is left alone.
    """
    table = tables.table_uuid()
    group = log.group_offsets(stream.group, stream.topic, sorted(head.positions))
    answered = {p: seen.get(p) for p in (head.positions if moved is None else moved)}
    return project(stream, head, table=table, log=log, leave=left_alone(head, group, table=table, answered=answered))


def project(stream: Stream, head: Head, *, table: str | None, log: Log, leave: Collection[Partition] = ()) -> str:
    """Write `head` into the group, whatever stands there, the partitions to `leave` excepted. `table`: its UUID."""
    assert table is not None, "a head was read, so its table is there"
    # Asked last: on a topic that was made anew these offsets would lie beyond data that nobody has read (I4).
    if log.topic(stream.topic).topic_id != head.topic_id:
        return f"topic {stream.topic} was recreated; group {stream.group} left alone until the stream is rewound to it"
    written = {p: at for p, at in head.positions.items() if p not in leave}
    log.commit_group(stream.group, stream.topic, written, head.tag(table).encode())
    moved = ", ".join(f"{p}:{at.next_offset}" for p, at in sorted(written.items()))
    return f"group {stream.group} at {moved}"
