"""One held record by its place, a chunk or not: why it is held, and where its bytes are. For people; changes nothing.

A record that is no chunk belongs to no waveform, so no id leads to it and no decision takes it up. Where it was held
without its bytes (`held_quota`) that is said by name, with the place in the log that has them while retention allows.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from wavestitch.contracts.assembly import Coordinate
from wavestitch.contracts.errors import BadInput, Refused, WavestitchError
from wavestitch.contracts.held import HeldChunk, HeldLook, effective_held
from wavestitch.contracts.offset_range import parse_place
from wavestitch.contracts.ports import Log, PartitionEnds, Tables, TopicView
from wavestitch.contracts.position import Head
from wavestitch.contracts.quantities import Partition
from wavestitch.contracts.stream import Stream


@dataclass(frozen=True, slots=True)
class HeldRecord:
    """`in_log`: whether the log has it, as a sentence."""

    held: HeldChunk
    in_log: str

    @property
    def without_bytes(self) -> bool:
        """Of a chunk, an earlier row has them."""
        return self.held.chunk.reason is not None and not self.held.stored


def _coordinate(text: str, *, topic_id: str) -> Coordinate:
    """`PARTITION:OFFSET`, of this topic unless another is named before it."""
    place = parse_place(text)
    if place is None:
        raise BadInput(f"{ascii(text)[:80]} is no place; write PARTITION:OFFSET or TOPICID:PARTITION:OFFSET")
    topic, partition, offset = place
    return topic or topic_id, partition, offset


def find_records(tables: Tables, log: Log, stream: Stream, places: Sequence[str]) -> list[HeldRecord]:
    """What is held from these places. Raises `BadInput` where nothing is from one of them."""
    head = tables.head()
    if head is None:
        raise Refused(f"stream {stream.name} has no head yet: nothing is held")
    wanted = {_coordinate(p, topic_id=head.topic_id): p for p in places}
    rows = _held_from(tables, head, wanted)
    for coordinate, text in wanted.items():
        if all(h.chunk.coordinate != coordinate for h in rows):
            raise BadInput(f"nothing is held from {text}; `wavestitch batches {stream.name}` says what was read")
    return _found(log, stream, rows)


def refuse_without_bytes(found: Sequence[HeldRecord], stream: Stream) -> None:
    """Raises `Refused` where the table does not have the bytes of one of these."""
    for record in found:
        if record.without_bytes:
            raise _refusal(record, stream)


def refuse_records(tables: Tables, log: Log, stream: Stream, ids: Sequence[str]) -> None:
    """Raises `Refused` where somebody wants to decide about a record that is no chunk, by its place."""
    head = tables.head()
    places = [text for text in ids if parse_place(text) is not None]
    if head is None or not places:
        return
    rows = _held_from(tables, head, [_coordinate(p, topic_id=head.topic_id) for p in places])
    for record in _found(log, stream, [h for h in rows if h.chunk.reason is not None][:1]):
        raise _refusal(record, stream)


def _held_from(tables: Tables, head: Head, places: Iterable[Coordinate]) -> list[HeldChunk]:
    return effective_held(tables.held(head.held, HeldLook(coordinates=frozenset(places))), published={})


def _found(log: Log, stream: Stream, rows: Sequence[HeldChunk]) -> list[HeldRecord]:
    said = _in_log(log, stream, [h.chunk.coordinate for h in rows]) if rows else {}
    return [HeldRecord(h, said[h.chunk.coordinate]) for h in rows]


def _refusal(record: HeldRecord, stream: Stream) -> Refused:
    chunk = record.held.chunk
    where = (
        f"was held without its bytes, since limits.max_junk_bytes of stream {stream.name} was reached"
        if record.without_bytes
        else "is no chunk, so no decision takes it up (its bytes: "
        f"`wavestitch held {stream.name} record {chunk.partition}:{chunk.offset} --into FILE`)"
    )
    return Refused(
        f"the record at {chunk.place} ({record.held.reason.value}, {chunk.length} bytes, sha-256 {chunk.piece.hex()}) "
        f"{where}: {record.in_log}",
        partition=chunk.partition,
        offset=chunk.offset,
    )


def _in_log(log: Log, stream: Stream, places: Sequence[Coordinate]) -> dict[Coordinate, str]:
    """Of each place whether the log has it. Asks once for all, and of no partition that the broker does not show: it
    would be waited for."""
    try:
        topic = log.topic(stream.topic)
        asked = {p for topic_id, p, _ in places if topic_id == topic.topic_id} & set(topic.partitions)
        ends = log.ends(stream.topic, sorted(asked))
    except WavestitchError as error:
        return dict.fromkeys(places, f"whether topic {stream.topic} has it is not known ({error.message})")
    return {place: _said_of(place, stream, topic, ends) for place in places}


def _said_of(place: Coordinate, stream: Stream, topic: TopicView, ends: Mapping[Partition, PartitionEnds]) -> str:
    topic_id, partition, offset = place
    if topic.topic_id != topic_id:
        return f"it was in topic id {topic_id}, which {stream.topic} is no more"
    if partition not in ends:
        return f"whether topic {stream.topic} has it is not known (the broker shows no partition {partition} of it)"
    if ends[partition].log_start > offset:
        return (
            f"topic {stream.topic} has it no more: partition {partition} begins at offset {ends[partition].log_start}"
        )
    return (
        f"topic {stream.topic} has it at partition {partition} offset {offset}, until retention passes it; where it is "
        f"a chunk by the stream's present definition, `wavestitch rewind {stream.name} --to {partition}:{offset}` and "
        "the next batch take it in"
    )
