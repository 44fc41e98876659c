"""What the client hands out, and a reader that dies or fails in the middle of columns."""

from __future__ import annotations

import os
import signal
from collections.abc import Sequence
from multiprocessing import Pipe, get_context
from multiprocessing.connection import Connection
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from confluent_kafka import Message

from consumers import pending_rows, record_sink
from consumers.landing import LandingWriter
from consumers.range_scan import _ClientEvents, _hand_out
from consumers.raw_message import MOST_HEADERS
from consumers.record_sink import NeedsCare, RecordSink
from tests.builders.raw_batches import (
    FAR,
    WAVEFORMS,
    deliver,
    landed,
    side_by_side,
    waveform,
)
from tests.builders.records import Letter
from tests.faults.killed_batch import die_at_record
from wavestitch.contracts.chunk_proof import NO_PROOF
from wavestitch.contracts.holes import HoleFinder
from wavestitch.contracts.quantities import Offset, Partition
from wavestitch.contracts.stop_rule import StopRule


@pytest.fixture
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pending_rows, "BATCH_BYTES", 2000)
    monkeypatch.setattr(pending_rows, "BATCH_ROWS", 7)


def message(record_: Letter, offset: int, stamp: tuple[int, int]) -> Any:
    return Message(
        topic="t",
        partition=0,
        offset=offset,
        key=record_.key,
        value=record_.value,
        headers=list(record_.headers) or None,
        timestamp=stamp,
    )


def handed_out(messages: Sequence[Any]) -> tuple[Any, ...]:
    with TemporaryDirectory() as folder, LandingWriter(Path(folder), FAR) as writer:
        sink = RecordSink(writer, NO_PROOF, lambda _: None, careful=False, partition=Partition(0))
        rule, holes = StopRule(FAR, idle_seconds=9, now=0.0), HoleFinder(Offset(0))
        _hand_out(list(messages), rule, holes, _ClientEvents(Partition(0)), sink.land)
        return (writer.finish([]), holes.close(Offset(len(messages))), rule.reached)


def test_the_client_and_raw_batches_give_the_same_file() -> None:
    for some in WAVEFORMS:
        by_client = handed_out([message(r, n, (1, 1000 + n)) for n, r in enumerate(some)])
        assert landed(side_by_side(some), together=True)[0] == by_client[0]


@pytest.mark.parametrize("at", [0, 13])
def test_a_record_of_too_many_headers_needs_care(at: int) -> None:
    records = waveform("w", 20)
    records[at] = records[at]._replace(headers=(*records[at].headers, *((f"h{n}", b"") for n in range(MOST_HEADERS))))
    with pytest.raises(NeedsCare, match=f"a record without headers at offset {at}, or with too many"):
        handed_out([message(r, n, (1, 1)) for n, r in enumerate(records)])


def test_a_record_without_headers_needs_care() -> None:
    found = [message(r, n, (1, 1)) for n, r in enumerate(waveform("w", 20))]
    found[13] = message(Letter(b"w", (), b"1234"), 13, (1, 1))
    with pytest.raises(NeedsCare, match="a record without headers at offset 13, or with too many"):
        handed_out(found)


class _Poisoned(Message):
    """As the client's of a header whose name is not UTF-8: it raises once, and returns then what must kill."""

    asked = 0

    def headers(self) -> Any:
        type(self).asked += 1
        assert self.asked == 1, "asked again, the client returns a list with a null pointer"
        raise SystemError("returned a result with an exception set") from UnicodeDecodeError("utf-8", b"\xff", 0, 1, "")


def test_a_message_whose_headers_cannot_be_read_is_asked_for_them_once() -> None:
    found = [message(r, n, (1, 1)) for n, r in enumerate(waveform("w", 20))]
    found[13] = _Poisoned(topic="t", partition=0, offset=13, key=b"w", value=b"1234", timestamp=(1, 1))
    with pytest.raises(NeedsCare, match="a header's name that is not UTF-8 at offset 13"):
        handed_out(found)
    assert _Poisoned.asked == 1


def land_and_die(folder: Path, nth: int, told: Connection) -> None:
    """In a process of its own: die at a record in the middle of columns; `told` what was landed before."""
    die_at_record(nth, lambda: os.kill(os.getpid(), signal.SIGKILL))
    add_run = LandingWriter.add_run

    def told_run(self: LandingWriter, offsets: Any, times: Any, found: Any, values: Any) -> None:
        add_run(self, offsets, times, found, values)
        told.send((offsets[0], len(values)))

    LandingWriter.add_run = told_run  # type: ignore[method-assign, assignment]
    with LandingWriter(folder, FAR) as writer:
        land_forty(writer)


def land_forty(writer: LandingWriter) -> Any:
    sink = RecordSink(
        writer, NO_PROOF, lambda _: None, careful=True, partition=Partition(0), on_stored_run=lambda *_: True
    )
    deliver(side_by_side(waveform("w", 40)), FAR, sink, together=True)
    return writer.finish([])


@pytest.mark.parametrize("nth", [17, 39])
@pytest.mark.usefixtures("small_batches")
def test_a_reader_that_is_killed_in_the_middle_of_columns_leaves_nothing_that_counts(tmp_path: Path, nth: int) -> None:
    here, there = Pipe(duplex=False)
    child = get_context("fork").Process(target=land_and_die, args=(tmp_path / "killed", nth, there))
    (tmp_path / "killed").mkdir()
    child.start()
    child.join(60)
    assert child.exitcode == -signal.SIGKILL
    assert here.poll(), "it died before anything was landed in columns"
    assert here.recv() == (0, nth)
    left = {p.name for p in (tmp_path / "killed").iterdir()}
    assert not [name for name in left if name.endswith(".arrow")], f"a file that looks whole: {left}"
    (tmp_path / "whole").mkdir()
    made = []
    for folder in ("killed", "whole"):
        with LandingWriter(tmp_path / folder, FAR) as writer:
            made.append(land_forty(writer))
    assert made[0] == made[1], "read again beside what the killed one left, it is the same"


def test_what_bytes_bring_about_in_columns_is_looked_at_one_by_one_and_a_fault_of_ours_is_raised(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found = side_by_side(waveform("w", 40))
    alone = landed(found, together=False)

    def fails_with(error: Exception) -> None:
        def fail(*_: Any) -> None:
            raise error

        monkeypatch.setattr(record_sink, "parse_chunks", fail)

    fails_with(RecursionError("deeper than anybody thought"))
    assert landed(found, together=True) == alone
    fails_with(AttributeError("no such column"))
    with pytest.raises(AttributeError):
        landed(found, together=True)
