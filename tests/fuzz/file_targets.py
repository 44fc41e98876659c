"""Files: landing files whose receipt agrees with them, and recordings that somebody wants to send."""

from __future__ import annotations

import hashlib
import io
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pyarrow as pa

from consumers.landed_file import besides_payload, open_landing, read_index
from tests.builders.landing import land_records
from tests.builders.ranges import span
from tests.fuzz.draw import Draw, packed
from tests.fuzz.target import Target, bounded_memory, check_sentence
from tests.hostile.kind import chunked, sealed
from wavestitch.contracts.errors import Altered, BadInput
from wavestitch.contracts.landed_payload import take_proven
from wavestitch.contracts.receipt import LandedSlice
from wavestitch.parquet.compact_thrift import BINARY, I32, I64, LIST, STRUCT, Items, Reader, encode
from wavestitch.producers.readers import read_recordings

_CHUNKS = 3
_MOST_EDITS = 8
_YEAR_NS = 10**18


@cache
def _landing() -> tuple[Path, LandedSlice, bytes]:
    """A folder, and what a reader landed there of three chunks and a record that is none."""
    folder = Path(tempfile.mkdtemp(prefix="wavestitch-fuzz-"))
    records = [*chunked("w", _CHUNKS), sealed("", meta=b"{")]
    everything = span(0, 0, len(records))
    written = land_records(folder, everything, ((n, 1000 + n, r) for n, r in enumerate(records)))
    return folder, written, (folder / str(written.file)).read_bytes()


def landing_file(data: bytes) -> None:
    """The whole file is the fuzzer's, or a real one with some bytes changed; the receipt is made to agree with it."""
    folder, written, whole = _landing()
    draw = Draw(data)
    edited = draw.byte() & 1
    content = draw.rest() if not edited else _edited(whole, draw)
    path = folder / "changed.arrow"
    path.unlink(missing_ok=True)
    path.write_bytes(content)
    with bounded_memory():
        try:
            agreeing = replace(written, file=path.name, file_bytes=len(content), index_digest=_index_digest(path))
            index = read_index(folder, agreeing)
            assert index.column("offset").to_pylist() == list(range(_CHUNKS + 1))
            for batch in open_landing(path).to_batches():
                take_proven(path.name, batch, range(batch.num_rows))
        except (Altered, BadInput) as error:
            check_sentence(error.message)
            return
    # Every payload has the CRC that stands beside it: so it is what was landed, unless the CRC was changed as well.
    assert index.num_rows == _CHUNKS + 1


def _edited(whole: bytes, draw: Draw) -> bytes:
    found = bytearray(whole)
    for _ in range(_MOST_EDITS):
        if not draw.left:
            break
        at, content = int.from_bytes(draw.some(2)) % len(found), draw.some(1 + draw.byte() % 8)
        found[at : at + len(content)] = content
    return bytes(found)


def _index_digest(path: Path) -> str:
    seen = hashlib.sha256()
    table = open_landing(path)
    with suppress(pa.ArrowException):  # the file is refused for it later
        table.drop_columns(["payload"]).validate(full=True)
        for batch in table.to_batches():
            seen.update(besides_payload(batch))
    return seen.hexdigest()


def recording_file(data: bytes) -> None:
    """A file that `wavestitch produce` is given."""
    draw = Draw(data)
    name = draw.pick(("mitdb-208-mlii.npz", "a.mseed", "a.mseed3"))
    path = _landing()[0] / name
    path.write_bytes(draw.rest())
    with bounded_memory():
        try:
            found = read_recordings(path, seconds_per_recording=1.0, start_time_ns=_YEAR_NS)
        except BadInput as error:
            check_sentence(error.message)
            return
    assert found
    assert len({r.waveform_id for r in found}) == len(found)
    for recording in found:
        assert recording.sample_count * recording.metadata.sample_bytes == len(recording.samples)


def thrift(data: bytes) -> None:
    """A header or footer of a Parquet file that others wrote. What is one reads the same again, as it was encoded."""
    reader = Reader(data)
    try:
        found = reader.struct()
    except ValueError as error:
        check_sentence(str(error))
        return
    assert reader.at <= len(data)
    assert Reader(encode(found)).struct() == found


def _landing_seeds() -> Iterator[bytes]:
    whole = _landing()[2]
    yield packed(1)
    for at in range(0, len(whole), len(whole) // 12):
        yield packed(1) + at.to_bytes(2) + b"\x00\xff"
    yield packed(0) + b"ARROW1\0\0"


def _recording_seeds() -> Iterator[bytes]:
    import pymseed  # noqa: PLC0415 - only where recordings are read

    for version in (2, 3):
        record = pymseed.MS3Record()
        record.sourceid, record.starttime, record.samprate = "FDSN:XX_TEST__B_S_X", _YEAR_NS, 20.0
        record.formatversion, record.reclen = version, 256
        packed_records = record.generate([1, 5, -3, 7], "i")
        yield packed(1) + b"".join(bytes(r) for r in packed_records)
    for array in (np.arange(-5, 5) / 200, np.arange(3)):
        sink = io.BytesIO()
        np.savez(sink, ecg=array)
        yield packed(0) + sink.getvalue()


def _thrift_seeds() -> Iterator[bytes]:
    yield encode({1: (I32, 0), 5: (STRUCT, {1: (I32, 7), 2: (BINARY, b"x"), 3: (LIST, Items(I64, [1, -2]))})})
    yield b"\x1c" * 5000
    yield b"\x15" + b"\xff" * 5000
    yield b"\x19\xfc\xff\xff\xff\x0f"


TARGETS = (
    Target("thrift", thrift, _thrift_seeds, ("\x1c", "\x19", "\x15", "\x18"), 6000),
    Target("landing_file", landing_file, _landing_seeds, ("ARROW1",), 8000),
    Target(
        "recording_file",
        recording_file,
        _recording_seeds,
        ("MS", "PK\x03\x04", "ecg.npy", "|O", "<f8", "'shape': ("),
        8000,
    ),
)
