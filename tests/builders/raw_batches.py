"""Raw record batches of letters, and what they land as: together, or each record by itself."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from consumers.batch_scan import Delivery
from consumers.byte_budget import ByteBudget
from consumers.landing import LandingWriter
from consumers.range_scan import Source
from consumers.record_sink import RecordSink
from tests.broker.raw_producing import part, record
from tests.builders.plans import make_plan
from tests.builders.ranges import span
from tests.builders.records import Letter, Lie, cut, letter, lied, metadata
from tests.fuzz.kafka_targets import compressed
from wavestitch.contracts.chunk_header import KNOWN
from wavestitch.contracts.chunk_proof import NO_PROOF, ChunkProof
from wavestitch.contracts.errors import Refused
from wavestitch.contracts.id_partitions import ANYWHERE, IdBinding, IdPartitions
from wavestitch.contracts.offset_range import OffsetRange
from wavestitch.contracts.quantities import Offset, Partition
from wavestitch.contracts.record_columns import BatchBody
from wavestitch.kafka.raw_batches import RawBatch, split_batches

FAR = span(0, 0, 1 << 40)
SHA256 = ChunkProof("sha256")
BOUND = IdBinding(IdPartitions(prefixes={"w1": (0,), "w": (1,)}))
CODECS = (None, "gzip", "snappy", "lz4", "zstd")
APPEND_TIME = 8


def waveform(name: str, chunks: int, *, size: int = 4, **more: Any) -> list[Letter]:
    values = [bytes([n & 255]) * size for n in range(chunks)]
    return cut(name, values, meta=metadata(len(name), note=name), **more)


WAVEFORMS = [
    waveform("w1", 40),
    waveform("w12", 40, live=True),
    waveform("w3", 30, keyed=False),
    waveform("wé", 9, size=600),
    waveform("large", 3, size=70_000),
    [Letter(r.key, (*r.headers, ("trace-é", b"x")), r.value) for r in waveform("w4", 20)],
    [Letter(r.key, (("other", None), *r.headers[::-1], ("other", b"")), r.value) for r in waveform("w5", 20)],
    *([(waveform(f"x{n}", 2))[n % 2]] for n in range(30)),
]
W1 = waveform("w1", 5)


def with_headers(*headers: Any) -> Letter:
    return Letter(b"w1", headers, b"\0" * 4)


ODD = [
    *(lied(W1[2], lie) for lie in Lie),
    letter("w1", 5, b"1234", meta=metadata(2), count=3),
    letter("w1", 1, b"", meta=metadata(1), count=3),
    Letter(b"w1", (*W1[2].headers, ("ws-seq", b"2")), W1[2].value),
    *(Letter(b"w1", ((name, b""), *W1[2].headers), W1[2].value) for name in KNOWN),
    with_headers(("other", None)),
    with_headers(*W1[0].headers, ("other", None)),
    with_headers(*((n, None if n == "ws-crc" else v) for n, v in W1[0].headers)),
    with_headers(*((n, v and v.upper() if n == "ws-crc" else v) for n, v in waveform("w1", 99)[77].headers)),
    with_headers(*W1[0].headers, (b"\xff", b"no text")),
    *(with_headers(*W1[0].headers, *[(name, value)] * n) for name in KNOWN for value, n in ((None, 1), (b"2", 2))),
    with_headers(*W1[0].headers, *((f"h{n}", b"") for n in range(70))),
    Letter(b"w" * 300, W1[0].headers, b"\0" * 4),
    Letter(b"w1", W1[0].headers, b""),
    Letter(None, (), None),
    Letter(None, W1[0].headers, b"\0" * 4),
    Letter(b"", W1[0].headers, b"\0" * 4),
    letter("w1", 1, b"12", meta=metadata(1, note="n" * 17_000), count=3),
    letter("w1", 1, b"12", meta=metadata(1), count=3, digest="A" * 32),
    letter("w1", 1, b"12", meta=metadata(1), count=3, digest="a" * 31),
]


class Sent(NamedTuple):
    """A record at an offset, with its time in ms."""

    letter: Letter
    offset: int
    time: int


def encoded(sent: Sent, *, first: Sent) -> bytes:
    headers = b"".join(part(n if isinstance(n, bytes) else n.encode()) + part(v) for n, v in sent.letter.headers)
    return record(
        sent.offset - first.offset,
        sent.letter.value,
        since=sent.time - first.time,
        key=sent.letter.key,
        headers=headers,
        count=len(sent.letter.headers),
    )


def batch_of(sent: Sequence[Sent], *, codec: int = 0, attributes: int = 0, behind: int = 0) -> RawBatch:
    """`behind`: so many offsets at its end have no record any more."""
    first = sent[0]
    body = b"".join(encoded(s, first=first) for s in sent)
    name = CODECS[codec]
    return raw_batch(
        body if name is None else compressed(name, body),
        base=first.offset,
        attributes=codec | attributes,
        delta=sent[-1].offset - first.offset + behind,
        times=(first.time, max(s.time for s in sent)),
        records=len(sent),
    )


def raw_batch(
    body: bytes, *, base: int = 0, attributes: int = 0, delta: int, times: tuple[int, int] = (5, 5), records: int
) -> RawBatch:
    # As the head has it; nobody asks for the CRC of one that holds records.
    first, newest = times
    after = struct.pack(">hiqqqhii", attributes, delta, first, newest, -1, -1, -1, records) + body
    data = struct.pack(">qiibI", base, 9 + len(after), -1, 2, 0) + after
    (batch,) = split_batches(memoryview(data), where="here")
    return batch


def body_of(batch: RawBatch) -> BatchBody:
    """Of one that is not compressed."""
    stamp = batch.max_timestamp if batch.is_append_time else None
    return BatchBody(
        batch.body, batch.records, batch.base_offset, batch.last_offset_delta, batch.first_timestamp, stamp
    )


def side_by_side(letters: Sequence[Letter], *, size: int = 1 << 30) -> list[RawBatch]:
    """Batches of so many records, from offset 0 on."""
    sent = [Sent(one, n, 1000 + n) for n, one in enumerate(letters)]
    return [batch_of(sent[at : at + size]) for at in range(0, len(sent), size)]


def landed(
    batches: Sequence[RawBatch],
    *,
    together: bool,
    allowed: int = 1 << 40,
    slice_: OffsetRange = FAR,
    ids: IdBinding = ANYWHERE,
    proof: ChunkProof = NO_PROOF,
) -> tuple[Any, ...]:
    """What is on disk and in the budget, or how it ended."""
    with TemporaryDirectory() as folder:
        budget = ByteBudget(make_plan(), (0,), Path(folder), allowed)
        with LandingWriter(Path(folder), slice_) as writer:
            sink = RecordSink(
                writer,
                proof,
                budget.add,
                careful=True,
                partition=Partition(0),
                ids=ids,
                on_stored_run=budget.add_run,
            )
            try:
                holes = deliver(batches, slice_, sink, together=together)
                return (writer.finish([]), budget.records, budget.stored, holes, sink.written)
            except Refused as error:
                return (type(error), str(error), budget.records, budget.stored)


def deliver(batches: Sequence[RawBatch], slice_: OffsetRange, sink: RecordSink, *, together: bool) -> Any:
    told: list[int] = [0, 0]

    def tell(records: int, size: int) -> None:
        told[0] += records
        told[1] += size

    source = Source("ecg", "t", "", "g", 5.0)
    delivery = Delivery(slice_, source, sink.land, sink.land_columns, tell, lambda _: None)
    for batch in batches:
        if together:
            delivery.add(batch)
        else:
            delivery.one_by_one(batch)
    delivery.flush()
    return (delivery.holes.close(Offset(batches[-1].end)), delivery.reached, *told)
