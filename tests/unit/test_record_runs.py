"""Records that come side by side make the same rows, and spend the same budget, as if they came one by one."""

from __future__ import annotations

import os
import random
import signal
import tempfile
from collections.abc import Sequence
from multiprocessing import Pipe, get_context
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Message
from hypothesis import example, given, settings
from hypothesis import strategies as st

from consumers import pending_rows, record_sink
from consumers.byte_budget import RECORD_OVERHEAD, ByteBudget
from consumers.landing import LandingWriter
from consumers.range_scan import _ClientEvents, _hand_out
from consumers.raw_message import MOST_HEADERS
from consumers.record_sink import NeedsCare, RecordSink
from tests.builders.plans import make_plan
from tests.builders.ranges import span
from tests.builders.records import Letter, Lie, cut, letter, lied, metadata
from tests.faults.killed_batch import die_at_record
from wavestitch.contracts.chunk_proof import NO_PROOF, ChunkProof
from wavestitch.contracts.errors import Refused
from wavestitch.contracts.holes import HoleFinder
from wavestitch.contracts.id_partitions import ANYWHERE, IdBinding, IdPartitions
from wavestitch.contracts.quantities import Offset, Partition
from wavestitch.contracts.stop_rule import StopRule, Why

FAR = span(0, 0, 1 << 40)
SHA256 = ChunkProof("sha256")
BOUND = IdBinding(IdPartitions(prefixes={"w1": (0,), "w": (1,)}))


def waveform(name: str, chunks: int, *, size: int = 4, **more: Any) -> list[Letter]:
    values = [bytes([n & 255]) * size for n in range(chunks)]
    return cut(name, values, meta=metadata(len(name), note=name), **more)


WAVEFORMS = [
    waveform("w1", 40),
    waveform("w12", 40, live=True),
    waveform("w3", 30, keyed=False),
    waveform("wé", 9, size=600),
    [Letter(r.key, (*r.headers, ("trace-é", b"x")), r.value) for r in waveform("w4", 20)],
    *([(waveform(f"x{n}", 2))[n % 2]] for n in range(30)),
]
ODD = [
    *(lied(waveform("w1", 5)[2], lie) for lie in Lie if lie is not Lie.NO_HEADERS),
    letter("w1", 5, b"1234", meta=metadata(2), count=3),
    Letter(b"w1", (*waveform("w1", 5)[2].headers, ("ws-seq", b"2")), waveform("w1", 5)[2].value),
    Letter(b"w1", (("other", None),), b"no chunk"),
    Letter(b"w1", (*waveform("w1", 5)[0].headers, ("other", None)), waveform("w1", 5)[0].value),
    Letter(b"w1", tuple((n, None if n == "ws-crc" else v) for n, v in waveform("w1", 5)[0].headers), b"\0" * 4),
    Letter(b"w" * 300, waveform("w1", 5)[0].headers, b"\0" * 4),
    Letter(b"w1", waveform("w1", 5)[0].headers, b""),
]


def message(record: Letter, offset: int, stamp: tuple[int, int]) -> Any:
    return Message(
        topic="t",
        partition=0,
        offset=offset,
        key=record.key,
        value=record.value,
        headers=list(record.headers) or None,
        timestamp=stamp,
    )


def landed(
    messages: Sequence[Any], *, runs: int, allowed: int, ids: IdBinding = ANYWHERE, proof: ChunkProof = NO_PROOF
) -> tuple[Any, ...]:
    """What is on disk and in the budget, or how it ended. `runs`: so many messages are handed out at once; 0: each by
    itself, and no run at all."""
    with tempfile.TemporaryDirectory() as folder:
        budget = ByteBudget(make_plan(), (0,), Path(folder), allowed)
        with LandingWriter(Path(folder), FAR) as writer:
            run = budget.add_run if runs else None
            sink = RecordSink(
                writer, proof, budget.add, careful=False, partition=Partition(0), ids=ids, on_stored_run=run
            )
            rule, holes, events = (
                StopRule(FAR, idle_seconds=9, now=0.0),
                HoleFinder(Offset(0)),
                _ClientEvents(Partition(0)),
            )
            take_run = sink.land_run if runs else None
            given: list[Any] = [0, 0]
            try:
                for at in range(0, len(messages), max(1, runs)):
                    some = list(messages[at : at + max(1, runs)])
                    counts = _hand_out(some, rule, holes, events, sink.land, take_run=take_run)
                    given = [a + b for a, b in zip(given, counts, strict=True)]
                return (writer.finish([]), budget.counts, holes.close(Offset(len(messages))), rule.reached, given)
            except (Refused, NeedsCare) as error:
                return (type(error), str(error), budget.counts)


@pytest.fixture
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pending_rows, "BATCH_BYTES", 2000)
    monkeypatch.setattr(pending_rows, "BATCH_ROWS", 7)


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 1 << 30), odd=st.sampled_from([0.0, 0.003, 0.1]), runs=st.integers(1, 90), room=st.booleans()
)
@example(seed=0, odd=0.0, runs=90, room=True)
@pytest.mark.usefixtures("small_batches")
def test_records_that_come_together_land_as_if_each_came_by_itself(
    seed: int, odd: float, runs: int, room: bool
) -> None:
    dice = random.Random(seed)
    records = [r for some in dice.sample(WAVEFORMS, dice.randrange(1, 9)) for r in some]
    if dice.random() < 0.3:
        dice.shuffle(records)
    found, offset = [], 0
    for record in records:
        offset += dice.choice((1, 2, 5)) if dice.random() < 0.02 else 1
        stamp = dice.choice(((0, 7), (1, -5), (2, 0))) if dice.random() < 0.1 else (1, 1000 + offset)
        found.append(message(dice.choice(ODD) if dice.random() < odd else record, offset, stamp))
    allowed = 1 << 40 if room else dice.randrange(1, 400 * len(found))
    ids, proof = dice.choice(((ANYWHERE, NO_PROOF), (ANYWHERE, NO_PROOF), (BOUND, NO_PROOF), (ANYWHERE, SHA256)))
    together = landed(found, runs=runs, allowed=allowed, ids=ids, proof=proof)
    assert together == landed(found, runs=0, allowed=allowed, ids=ids, proof=proof)


@pytest.mark.parametrize("odd", range(len(ODD)))
def test_one_odd_record_among_others_is_what_it_is_by_itself(odd: int) -> None:
    records = waveform("w", 40)
    found = [message(r, n, (1, 1)) for n, r in enumerate([*records[:20], ODD[odd], *records[20:]])]
    together, alone = (landed(found, runs=n, allowed=1 << 40) for n in (41, 0))
    assert together == alone


def test_an_odd_time_is_landed_as_none() -> None:
    stamps = [(1, 9), (0, 7), (1, -5), (2, 0)]
    found = [message(r, n, stamps[n % 4]) for n, r in enumerate(waveform("w", 40))]
    assert landed(found, runs=40, allowed=1 << 40) == landed(found, runs=0, allowed=1 << 40)


@pytest.mark.parametrize(("ids", "proof"), [(BOUND, NO_PROOF), (ANYWHERE, SHA256)])
def test_what_a_stream_demands_is_demanded_of_records_that_come_together(ids: IdBinding, proof: ChunkProof) -> None:
    for some in (waveform("w1", 40), waveform("w", 40)):
        found = [message(r, n, (1, 1)) for n, r in enumerate(some)]
        counts = [landed(found, runs=n, allowed=1 << 40, ids=ids, proof=proof) for n in (0, 40)]
        assert counts[0] == counts[1]


@pytest.mark.usefixtures("small_batches")
@pytest.mark.parametrize("size", [4, 400, 1600])
def test_record_batches_end_where_they_would_have_ended(size: int) -> None:
    found = [message(r, n, (1, 1)) for n, r in enumerate(waveform("w", 40, size=size))]
    assert landed(found, runs=40, allowed=1 << 40) == landed(found, runs=0, allowed=1 << 40)


def test_nearly_all_small_records_are_looked_at_together(monkeypatch: pytest.MonkeyPatch) -> None:
    alone = []
    parse = record_sink.parse_chunk

    def parse_alone(*what: Any) -> Any:
        alone.append(what)
        return parse(*what)

    monkeypatch.setattr(record_sink, "parse_chunk", parse_alone)
    records = [r for n in range(12) for r in waveform(f"w{n}", 40, size=512, live=n % 2 > 0)]
    records[300] = lied(records[300], Lie.FLIPPED_BYTE)
    found = [message(record, offset, (1, 1)) for offset, record in enumerate(records)]
    assert landed(found, runs=480, allowed=1 << 40)[1] == (480, *landed(found, runs=0, allowed=1 << 40)[1][1:])
    assert len(alone) - 480 <= 32


def test_where_most_records_are_odd_the_next_runs_are_not_looked_at_together(monkeypatch: pytest.MonkeyPatch) -> None:
    together = []
    parse = record_sink.parse_chunks

    def parse_run(keys: Any, *what: Any) -> Any:
        together.append(len(keys))
        return parse(keys, *what)

    monkeypatch.setattr(record_sink, "parse_chunks", parse_run)
    found = [message(ODD[n % 2], n, (1, 1)) for n in range(900)]
    assert landed(found, runs=100, allowed=1 << 40)[0] == landed(found, runs=0, allowed=1 << 40)[0]
    assert together.count(100) == 2


@pytest.mark.parametrize("at", [0, 13])
def test_a_record_of_too_many_headers_among_others_needs_care(at: int) -> None:
    records = waveform("w", 20)
    records[at] = records[at]._replace(headers=(*records[at].headers, *((f"h{n}", b"") for n in range(MOST_HEADERS))))
    kind, why, _ = landed([message(r, n, (1, 1)) for n, r in enumerate(records)], runs=20, allowed=1 << 40)
    assert (kind, why) == (NeedsCare, f"a record without headers at offset {at}, or with too many")


def test_large_records_are_copied_one_by_one() -> None:
    found = [message(r, n, (1, 1)) for n, r in enumerate(waveform("w", 20, size=20_000))]
    assert landed(found, runs=20, allowed=1 << 40) == landed(found, runs=0, allowed=1 << 40)


class _Poisoned(Message):
    """As the client's of a header whose name is not UTF-8: it raises once, and returns then what must kill."""

    asked = 0

    def headers(self) -> Any:
        type(self).asked += 1
        assert self.asked == 1, "asked again, the client returns a list with a null pointer"
        raise SystemError("returned a result with an exception set") from UnicodeDecodeError("utf-8", b"\xff", 0, 1, "")


def test_a_message_whose_headers_cannot_be_read_is_asked_for_them_once() -> None:
    records = waveform("w", 20)
    found = [message(r, n, (1, 1)) for n, r in enumerate(records)]
    found[13] = _Poisoned(topic="t", partition=0, offset=13, key=b"w", value=b"1234", timestamp=(1, 1))
    kind, why, _ = landed(found, runs=20, allowed=1 << 40)
    assert (kind, why) == (NeedsCare, "a header's name that is not UTF-8 at offset 13")
    assert _Poisoned.asked == 1


def test_a_record_without_headers_among_others_needs_care() -> None:
    found = [message(r, n, (1, 1)) for n, r in enumerate(waveform("w", 20))]
    found[13] = message(Letter(b"w", (), b"1234"), 13, (1, 1))
    kind, why, _ = landed(found, runs=20, allowed=1 << 40)
    assert (kind, why) == (NeedsCare, "a record without headers at offset 13, or with too many")


def test_a_budget_is_spent_at_the_same_record() -> None:
    found = [message(r, n, (1, 1)) for n, r in enumerate(waveform("w", 20))]
    spent = [landed(found, runs=n, allowed=RECORD_OVERHEAD * 30) for n in (0, 20)]
    assert spent[0] == spent[1]
    assert spent[0][0] is Refused


def test_what_comes_behind_the_end_or_with_an_event_is_given_out_record_by_record() -> None:
    slice_ = span(0, 5, 15)
    for offsets in (range(5, 20), range(4, 14), [5, 6, 6, 7], [5, 9, 10]):
        seen: list[list[int]] = [[], []]
        rules = [StopRule(slice_, idle_seconds=9, now=0.0) for _ in seen]
        holes = [HoleFinder(Offset(5)) for _ in seen]
        messages = [message(waveform("w", 1)[0], n, (1, 1)) for n in offsets]
        for n, took in enumerate(seen):

            def take(_: Any, offset: int, took: list[int] = took) -> int:
                took.append(offset)
                return 0

            def take_run(some: list[Any], start: int, took: list[int] = took) -> int:
                took.extend(range(start, start + len(some)))
                return 0

            events = _ClientEvents(Partition(0))
            _hand_out(messages, rules[n], holes[n], events, take, take_run=take_run if n else None)
        assert seen[0] == seen[1]
        assert rules[0].reached == rules[1].reached
        assert holes[0].close(Offset(15)) == holes[1].close(Offset(15))
    rule = StopRule(slice_, idle_seconds=9, now=0.0)
    rule.fail(Why.LOG_ERROR)
    assert not rule.admit_run(Offset(5), Offset(6))


def land_and_die(folder: Path, nth: int, told: Connection) -> None:
    """In a process of its own: die at a record in the middle of a run; `told` what was landed in columns before."""
    die_at_record(nth, lambda: os.kill(os.getpid(), signal.SIGKILL))
    add_run = LandingWriter.add_run

    def told_run(self: LandingWriter, start: int, times: Any, found: Any, values: Any) -> None:
        add_run(self, start, times, found, values)
        told.send((start, len(values)))

    LandingWriter.add_run = told_run  # type: ignore[method-assign, assignment]
    with LandingWriter(folder, FAR) as writer:
        land_forty(writer)


def land_forty(writer: LandingWriter) -> Any:
    sink = RecordSink(
        writer, NO_PROOF, lambda _: None, careful=False, partition=Partition(0), on_stored_run=lambda *_: True
    )
    sink.land_run([message(r, n, (1, 1)) for n, r in enumerate(waveform("w", 40))], 0)
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
    found = [message(r, n, (1, 1)) for n, r in enumerate(waveform("w", 40))]
    alone = landed(found, runs=0, allowed=1 << 40)

    def fails_with(error: Exception) -> None:
        def fail(*_: Any) -> None:
            raise error

        monkeypatch.setattr(record_sink, "parse_chunks", fail)

    fails_with(RecursionError("deeper than anybody thought"))
    assert landed(found, runs=40, allowed=1 << 40) == alone
    fails_with(AttributeError("no such column"))
    with pytest.raises(AttributeError):
        landed(found, runs=40, allowed=1 << 40)
