"""Partitions that the broker which was asked does not show: of those that the head has it knows nothing yet, and is
waited for; others there are none of. Decides nothing else."""

from __future__ import annotations

from collections.abc import Sequence, Set

from wavestitch.contracts.batch_row import BatchRow
from wavestitch.contracts.errors import Refused, Transient
from wavestitch.contracts.ports import TopicView
from wavestitch.contracts.position import Head
from wavestitch.contracts.quantities import Partition


def refuse_unseen(stream: str, topic: TopicView, head: Head | None) -> None:
    """Raises `Transient` where the head has a partition of this very topic which the broker does not show: partitions
    are only ever added, so its view is older than the head, and whatever is made of it leaves that partition out."""
    if head is not None and head.topic_id == topic.topic_id:
        refuse_not_shown(stream, topic, head.positions.keys(), "the head")


def refuse_unseen_by_history(stream: str, topic: TopicView, history: Sequence[BatchRow]) -> None:
    """The same, where there is no head: of partitions that batches have read of this very topic."""
    read = {r.partition for b in history if b.topic_id == topic.topic_id for r in b.read_ranges}
    refuse_not_shown(stream, topic, read, "the history")


def refuse_not_shown(stream: str, topic: TopicView, known: Set[Partition], who: str) -> None:
    """The same, of whatever partitions of this very topic somebody knows."""
    for p in sorted(known - set(topic.partitions)):
        raise Transient(
            f"stream {stream}: the broker shows no partition {p} of topic {topic.name}, which {who} has: that view "
            f"of the topic is older than {who}; nothing was changed, try again (where it stays so, brokers were put "
            "back from a backup of before it was added: add it again)",
            partition=p,
        )


def refuse_unknown(stream: str, topic: TopicView, named: Set[Partition]) -> None:
    """Raises `Refused` where a partition was named that the topic does not have. Comes behind `refuse_unseen`."""
    for p in sorted(named - set(topic.partitions)):
        raise Refused(
            f"stream {stream}: partition {p} was named; topic {topic.name} has {len(topic.partitions)} partitions, "
            "counted from 0",
            partition=p,
        )
