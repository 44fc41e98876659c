"""What became of the records that were handed to the client: counted one by one, delivered or not.

Keeps no record, only counts: nothing that failed is forgotten, and nothing is counted as sent before the broker said
so.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from confluent_kafka import KafkaError, Message

from wavestitch.contracts.errors import Terminal, Transient, WavestitchError
from wavestitch.contracts.offset_range import OffsetRange
from wavestitch.kafka.kafka_errors import is_passing, weightier

_SHOWN = 8


@dataclass(frozen=True, slots=True)
class SendReport:
    """What the broker has acknowledged. `bytes` counts values only, not keys and headers.

    `ranges` is one `[start, end)` per partition, from the first to past the last acknowledged record: others may have
    written in between. `unknown_offsets` records were stored by an earlier attempt of the client, whose answer was
    lost: the broker no longer says where, so they may lie outside of `ranges`.
    """

    topic: str
    waveforms: int
    records: int
    bytes: int
    ranges: tuple[OffsetRange, ...]
    unknown_offsets: int = 0


class Deliveries:
    """The tally that the client's delivery callback keeps; read it after polling."""

    def __init__(self, topic: str) -> None:
        self.topic = topic
        self.records = 0
        self.bytes = 0
        self._complaint: KafkaError | None = None
        self._ranges: dict[int, OffsetRange] = {}
        self._unknown_offsets = 0
        self._failures: Counter[tuple[int, str, bool]] = Counter()

    @property
    def failed(self) -> int:
        return self._failures.total()

    def note(self, error: KafkaError | None, message: Message) -> None:
        """One record's fate, from the client."""
        partition = message.partition()
        if error is not None:
            self.note_failure(error, partition=-1 if partition is None else partition)
            return
        self.records += 1
        self.bytes += len(message.value() or b"")
        offset = message.offset()
        if partition is None or offset is None or offset < 0:
            self._unknown_offsets += 1
            return
        seen = self._ranges.get(partition)
        start, end = (offset, offset + 1) if seen is None else (min(seen.start, offset), max(seen.end, offset + 1))
        self._ranges[partition] = OffsetRange(partition, start, end)

    def note_failure(self, error: KafkaError, *, partition: int, records: int = 1) -> None:
        """`records` of one partition (-1: none was chosen yet) that were not delivered."""
        self._failures[partition, error.name(), not is_passing(error)] += records

    def note_unanswered(self, records: int) -> None:
        """`records` that the client still held when the time was up."""
        self._failures[-1, "NO_ANSWER", False] += records

    def note_client_error(self, error: KafkaError) -> None:
        """Not about one record: a broker that is down, a refused login."""
        self._complaint = weightier(self._complaint, error)

    def report(self, *, waveforms: int) -> SendReport:
        return SendReport(
            topic=self.topic,
            waveforms=waveforms,
            records=self.records,
            bytes=self.bytes,
            ranges=tuple(sorted(self._ranges.values())),
            unknown_offsets=self._unknown_offsets,
        )

    def error(self, *, planned: int) -> WavestitchError:
        """What to raise for the failures: terminal if one of them is. Names topic, partitions, codes and counts.

        `planned` records were to be sent; the first failure stops the handing over, so some may not have been tried.
        """
        failures = sorted(self._failures.items())
        places = [
            f"{'no partition yet' if partition < 0 else f'partition {partition}'}: {name} x {n}"
            for (partition, name, _), n in failures
        ]
        more = f" and {len(places) - _SHOWN} more" if len(places) > _SHOWN else ""
        said = f"; the client said: {self._complaint.str()}" if self._complaint is not None else ""
        terminal = any(for_good for (_, _, for_good), _ in failures)
        step = (
            "grant this user Write on the topic, and send again"
            if any("AUTHORIZATION" in name for (_, name, _), _ in failures)
            else "the broker will never take them as they are, correct the cause and send again"
            if terminal
            else "send the same recordings again, what has arrived will count as duplicates"
        )
        kind = Terminal if terminal else Transient
        untried = planned - self.records - self.failed
        return kind(
            f"{self.failed} of {planned} records were not delivered to topic {self.topic} "
            f"({'; '.join(places[:_SHOWN])}{more}), {self.records} were, {untried} were not tried{said}; {step}",
            topic=self.topic,
            planned=planned,
            delivered=self.records,
            untried=untried,
            failures=[{"partition": p, "code": name, "records": n} for (p, name, _), n in failures],
        )
