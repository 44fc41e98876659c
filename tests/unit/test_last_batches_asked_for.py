"""The record batches in front of many positions: how much is asked of brokers for them, and how long is waited.

The wire is of the test, and as slow as it says; what a broker sends follows KIP-74: to the partition that is named
first one batch at least, to the others whole batches as far as their limits and the answer's go.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from types import SimpleNamespace
from typing import Any

import pytest

from wavestitch.contracts.errors import Transient
from wavestitch.contracts.quantities import Offset, Partition
from wavestitch.kafka import raw_log
from wavestitch.kafka.client_settings import KafkaSettings
from wavestitch.kafka.kafka_python import DefaultRecordBase
from wavestitch.kafka.raw_log import RawLog


class Wire:
    """One broker, and the clock of whoever waits for it. `size`: of each batch; `behind`: so many there are from the
    one on that is wanted. `rate`: bytes a second."""

    def __init__(self, size: int, rate: float) -> None:
        self.size, self.rate = size, rate
        self.behind, self.now, self.sent = 20, 0.0, 0

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds

    def ask(self, request: Any, *, deadline: float) -> Any:
        left = request.max_bytes
        parts: list[Any] = []
        for p in request.topics[0].partitions:
            count = max(0, min(p.partition_max_bytes, left)) // self.size or (not parts)
            records = b"".join(self._batch(p.fetch_offset + n) for n in range(min(count, self.behind)))
            left -= len(records)
            parts.append(SimpleNamespace(partition_index=p.partition, error_code=0, records=records))
        sent = request.max_bytes - left
        self.sent += sent
        self.now += 0.002 + sent / self.rate
        return SimpleNamespace(
            error_code=0, responses=[SimpleNamespace(topic="waves", partitions=parts)], throttle_time_ms=0
        )

    def told(self) -> AbstractContextManager[None]:
        return nullcontext()

    def close(self) -> None:
        pass

    def _batch(self, base: int) -> bytes:
        head = DefaultRecordBase.HEADER_STRUCT
        length = self.size - DefaultRecordBase.AFTER_LEN_OFFSET
        return head.pack(base, length, 3, 2, 0, 0, 0, 1, 2, -1, -1, -1, 1) + bytes(self.size - head.size)


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> Any:
    def ask(wire: Wire, partitions: int, *, deadline: float = 20.0, about: str = "batches_at") -> dict[Partition, Any]:
        monkeypatch.setattr(raw_log, "time", wire)
        log = RawLog(KafkaSettings("memory:1"), "waves", deadline=deadline)
        monkeypatch.setattr(log, "_leader", lambda *_: wire)
        return getattr(log, about)({Partition(p): Offset(7) for p in range(partitions)})  # type: ignore[no-any-return]

    return ask


@pytest.mark.parametrize("size", [200, 16 << 10, (16 << 10) + 1, 40_000, 140_000, (1 << 20) + 12])
def test_no_more_than_twice_of_what_is_wanted_is_sent_or_what_is_asked_for_first(asked: Any, size: int) -> None:
    wire = Wire(size, rate=1e9)
    found = asked(wire, 30)
    assert len({batch.digest for batch in found.values()}) == 1
    assert all(batch is not None for batch in found.values())
    assert wire.sent <= 30 * max(2 * size, 16 << 10)


def test_a_record_time_is_the_newest_of_its_batch(asked: Any) -> None:
    assert asked(Wire(40_000, rate=1e9), 3, about="times_at") == {0: 2, 1: 2, 2: 2}


def test_a_slow_wire_is_waited_for_as_long_as_batches_come(asked: Any) -> None:
    """The whole takes longer than the deadline; the next one never does."""
    wire = Wire((1 << 20) + 12, rate=2e6)
    assert len(asked(wire, 30, deadline=5.0)) == 30
    assert wire.now > 10


def test_where_nothing_comes_it_ends_at_the_deadline(asked: Any) -> None:
    wire = Wire((1 << 20) + 12, rate=1e9)
    wire.behind = 0
    with pytest.raises(Transient, match="partition 0: no record batch came from offset 7 within 5 s"):
        asked(wire, 3, deadline=5.0)
    assert wire.now < 6
