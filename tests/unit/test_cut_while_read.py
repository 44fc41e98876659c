"""A log that is cut off and written anew between two fetches of a slice: none of what is new is taken behind the old.

The wire is of the test. What its broker says of a leader epoch follows KIP-320 and KIP-595: that the log which was read
ends before the fetch, or that it never knew that epoch.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from types import SimpleNamespace
from typing import Any, NamedTuple

import pytest
from confluent_kafka import KafkaError

from consumers.batch_scan import scan_batches
from consumers.range_scan import ScanFailed, Source
from tests.builders.ranges import span
from tests.builders.raw_batches import Sent, batch_of, waveform
from wavestitch.contracts.quantities import LeaderEpoch, Offset, Partition
from wavestitch.contracts.stop_rule import Why
from wavestitch.kafka.client_settings import KafkaSettings
from wavestitch.kafka.raw_log import Diverged, RawLog

SETTINGS, FIRST = KafkaSettings("memory:1"), Partition(0)
RECORDS = 4
"""Of each batch."""
NOTHING_DIVERGES = SimpleNamespace(epoch=-1, end_offset=-1)


class Kept(NamedTuple):
    """A batch of a log: as many records from `base` on, written by the leader of this epoch."""

    base: int
    epoch: int

    @property
    def end(self) -> int:
        return self.base + RECORDS

    @property
    def data(self) -> bytes:
        sent = [Sent(r, self.base + n, 1000) for n, r in enumerate(waveform("w", RECORDS))]
        head = bytearray(batch_of(sent).data)
        struct.pack_into(">i", head, 12, self.epoch)
        return bytes(head)


def log_of(*epochs: int) -> list[Kept]:
    return [Kept(n * RECORDS, epoch) for n, epoch in enumerate(epochs)]


class Wire:
    """A broker that sends one batch for each fetch. `visible`: so far committed readers may see; `befalls`: what
    happens to it once it has made so many answers."""

    def __init__(self, log: list[Kept]) -> None:
        self.log = log
        self.visible = 1 << 40
        self.befalls: dict[int, Callable[[], None]] = {}
        self.asked: list[tuple[int, int]] = []
        self._made: list[Any] = []

    def send(self, request: Any, *, deadline: float) -> None:
        (part,) = request.topics[0].partitions
        self.asked.append((part.fetch_offset, part.last_fetched_epoch))
        said = SimpleNamespace(partition_index=part.partition, aborted_transactions=None, last_stable_offset=0)
        vars(said).update(error_code=0, records=b"", diverging_epoch=NOTHING_DIVERGES, preferred_read_replica=-1)
        vars(said).update(self._said(part.fetch_offset, part.last_fetched_epoch))
        topic = SimpleNamespace(topic=request.topics[0].topic, partitions=[said])
        self._made.append(SimpleNamespace(error_code=0, responses=[topic], throttle_time_ms=0))
        self.befalls.pop(len(self.asked), lambda: None)()

    def _said(self, offset: int, last_epoch: int) -> dict[str, Any]:
        end = self.log[-1].end
        if last_epoch >= 0:
            if last_epoch > self.log[-1].epoch:
                return {"error_code": KafkaError.OFFSET_OUT_OF_RANGE}
            # Where all that is left is newer, brokers say the epoch itself again, and where the log begins.
            epoch = max((b.epoch for b in self.log if b.epoch <= last_epoch), default=last_epoch)
            end_of_epoch = next((b.base for b in self.log if b.epoch > last_epoch), end)
            if epoch < last_epoch or end_of_epoch < offset:
                return {"diverging_epoch": SimpleNamespace(epoch=epoch, end_offset=end_of_epoch)}
        if offset > end:
            return {"error_code": KafkaError.OFFSET_OUT_OF_RANGE}
        there = [b for b in self.log if offset < b.end <= self.visible]
        return {"records": there[0].data} if there else {}

    def answer(self, *, deadline: float) -> Any:
        return self._made.pop(0)

    def ask(self, request: Any, *, deadline: float) -> Any:
        self._made.clear()
        self.send(request, deadline=deadline)
        return self.answer(deadline=deadline)

    @property
    def waits_for_answer(self) -> bool:
        return bool(self._made)

    def told(self) -> AbstractContextManager[None]:
        return nullcontext()

    def close(self) -> None:
        pass


class Reading:
    """A slice that is read from the wire. `taken`: offset and epoch of what was handed on, a fetch each."""

    def __init__(self, wire: Wire, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(RawLog, "_leader", lambda *_: wire)
        self.taken: list[tuple[int, int]] = []

    def read(self, start: int, end: int, start_epoch: LeaderEpoch | None = None) -> Any:
        source = Source("ecg", "waves", "", "g", 5.0)
        return scan_batches(
            span(0, start, end),
            settings=SETTINGS,
            source=source,
            take=lambda *_: 0,
            take_columns=self._take,
            start_epoch=start_epoch,
        )

    def _take(self, records: Any, epoch: int) -> int:
        self.taken += [(offset, epoch) for offset in records.offsets.tolist()]
        return 0


def parts(*epochs: int, start: int = 0) -> list[tuple[int, int]]:
    """What is handed on of batches of these epochs."""
    return [(start + n * RECORDS + m, epoch) for n, epoch in enumerate(epochs) for m in range(RECORDS)]


@pytest.mark.parametrize("after", [2, 3, 4])
@pytest.mark.parametrize("anew", [(3, 5, 5, 5, 5), (5, 5, 5, 5, 5), (3, 4, 4, 5, 5)])
@pytest.mark.parametrize("start_epoch", [None, LeaderEpoch(3)])
def test_what_is_written_anew_below_what_was_read_is_not_taken(
    after: int, anew: tuple[int, ...], start_epoch: LeaderEpoch | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The fetch that meets it may have been asked for before the last was looked at."""
    wire = Wire(log_of(3, 3, 3, 3, 3))
    wire.befalls[after] = lambda: wire.log.__setitem__(slice(None), log_of(*anew))
    reading = Reading(wire, monkeypatch)
    with pytest.raises(ScanFailed) as failed:
        reading.read(0, 20, start_epoch)
    assert failed.value.why is Why.LOG_ERROR
    assert failed.value.error is not None
    assert failed.value.error.code() == KafkaError._LOG_TRUNCATION
    assert failed.value.position == after * RECORDS
    assert reading.taken == parts(*[3] * after)


def test_a_log_that_was_put_back_from_before_what_was_read_is_not_gone_on_in(monkeypatch: pytest.MonkeyPatch) -> None:
    """It never knew of the epoch."""
    wire = Wire(log_of(3, 3, 4, 4))
    wire.befalls[3] = lambda: wire.log.__setitem__(slice(None), log_of(3, 3, 3, 3))
    reading = Reading(wire, monkeypatch)
    with pytest.raises(ScanFailed) as failed:
        reading.read(0, 16)
    assert failed.value.error is not None
    assert failed.value.error.code() == KafkaError.OFFSET_OUT_OF_RANGE
    assert reading.taken == parts(3, 3, 4)


@pytest.mark.parametrize("anew", [(3, 3, 5, 5), (3, 3, 4, 9), (3, 3, 3, 4)])
def test_another_leader_that_has_all_that_was_read_is_gone_on_with(
    anew: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    wire = Wire(log_of(3, 3, 3, 3))
    wire.befalls[2] = lambda: wire.log.__setitem__(slice(None), log_of(*anew))
    reading = Reading(wire, monkeypatch)
    assert reading.read(0, 16) == []
    assert reading.taken == parts(*anew)
    assert wire.asked == [(n * RECORDS, epoch) for n, epoch in enumerate((-1, *anew[:-1]))]


def test_a_cut_is_found_behind_fetches_that_brought_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """An open transaction ends there what may be read; the epoch is held against the log all the same."""
    wire = Wire(log_of(3, 3, 3))
    wire.visible = 2 * RECORDS

    def anew() -> None:
        wire.log, wire.visible = log_of(3, 5, 5), 1 << 40

    wire.befalls[5] = anew
    reading = Reading(wire, monkeypatch)
    with pytest.raises(ScanFailed) as failed:
        reading.read(0, 12)
    assert failed.value.error is not None
    assert failed.value.error.code() == KafkaError._LOG_TRUNCATION
    assert reading.taken == parts(3, 3)
    assert set(wire.asked[2:]) == {(2 * RECORDS, 3)}


def test_a_slice_s_first_fetch_is_held_against_where_it_begins_until_something_came(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    wire = Wire(log_of(3, 3, 3))
    wire.visible = RECORDS
    wire.befalls[2] = lambda: wire.log.__setitem__(slice(None), log_of(5, 5, 5))
    reading = Reading(wire, monkeypatch)
    with pytest.raises(ScanFailed) as failed:
        reading.read(RECORDS, 12, LeaderEpoch(3))
    assert failed.value.error is not None
    assert failed.value.error.code() == KafkaError._LOG_TRUNCATION
    assert reading.taken == []


@pytest.mark.parametrize("visible_later", [False, True])
def test_a_leader_that_wrote_nothing_before_the_slice_has_cut_nothing_off(
    monkeypatch: pytest.MonkeyPatch, *, visible_later: bool
) -> None:
    """A position has the epoch of who led when it was planned: where nothing was written in that, no log knows it."""
    wire = Wire(log_of(3, 3, 5, 5))
    if visible_later:
        wire.visible = 2 * RECORDS
        wire.befalls[4] = lambda: setattr(wire, "visible", 1 << 40)
    reading = Reading(wire, monkeypatch)
    assert reading.read(2 * RECORDS, 16, LeaderEpoch(4)) == []
    assert reading.taken == parts(5, 5, start=2 * RECORDS)
    assert wire.asked[:2] == [(2 * RECORDS, 4), (2 * RECORDS, 3)]


def test_a_log_is_not_gone_on_in_whose_own_epoch_ends_before_the_slice(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor where it is cut off between the two questions."""
    wire = Wire(log_of(3, 3, 5, 5))
    wire.befalls[1] = lambda: wire.log.__setitem__(slice(None), log_of(3, 6, 6, 6))
    reading = Reading(wire, monkeypatch)
    with pytest.raises(ScanFailed) as failed:
        reading.read(2 * RECORDS, 16, LeaderEpoch(4))
    assert failed.value.error is not None
    assert failed.value.error.code() == KafkaError._LOG_TRUNCATION
    assert reading.taken == []


@pytest.fixture
def of_a_rack(monkeypatch: pytest.MonkeyPatch) -> Any:
    def fetch(replica: Wire, leader: Wire) -> Any:
        with RawLog(SETTINGS, "waves", deadline=1.0, rack="r") as raw:
            monkeypatch.setattr(raw, "_leader", lambda *_: leader)
            monkeypatch.setattr(raw, "_connect", lambda *_: replica)
            raw._replicas[FIRST] = "h", 1
            return raw.fetch(FIRST, Offset(8), most_bytes=100, last_epoch=LeaderEpoch(3))

    return fetch


def test_a_replica_that_lags_behind_cuts_nothing_off(of_a_rack: Any) -> None:
    replica = Wire(log_of(3))
    assert [b.base_offset for b in of_a_rack(replica, Wire(log_of(3, 3, 3))).batches] == [8]
    assert replica.asked == [(8, 3)]


def test_a_cut_is_what_the_leader_says(of_a_rack: Any) -> None:
    with pytest.raises(Diverged) as cut:
        of_a_rack(Wire(log_of(3)), Wire(log_of(3, 5, 5)))
    assert (cut.value.epoch, cut.value.end) == (3, 4)
