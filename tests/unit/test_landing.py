"""Landing files: written once, whole or not at all, within bounded memory, and read without copying."""

from __future__ import annotations

import ctypes
import json
import mmap
import os
import re
import struct
import subprocess
import sys
import textwrap
import zlib
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
import xxhash

from consumers.landed_file import open_landing, read_index
from consumers.landing import LandingWriter
from consumers.pending_rows import BATCH_BYTES
from tests.builders.full_disk import largest_file
from tests.builders.landing import land_records
from tests.builders.ranges import span
from tests.builders.records import letter
from wavestitch.contracts.chunk_header import Chunk, Rejection, parse_chunk
from wavestitch.contracts.chunk_table import ChunkTable
from wavestitch.contracts.errors import Altered, Terminal, Transient
from wavestitch.contracts.holes import Hole, Proof
from wavestitch.contracts.landed_payload import take_proven
from wavestitch.contracts.offset_range import OffsetRange
from wavestitch.contracts.quantities import Offset
from wavestitch.contracts.raw_headers import decode_raw_headers
from wavestitch.contracts.reasons import Reason
from wavestitch.contracts.receipt import LandedSlice
from wavestitch.contracts.rows import INDEX_COLUMNS, LANDING, texts_of

SLICE = span(4, 100, 110)
META = (
    '{"source":"s","channel":"c","start_time_ns":0,"sampling_rate_hz":1.0,"sample_format":"i16le","units":"mV",'
    '"adc_gain":1.0,"baseline":0.0}'
)


def chunk(seq: int, value: bytes, *, count: int | None = None, digest: str | None = None) -> Chunk:
    one = letter("w", seq, value, meta=META.encode(), count=count, digest=digest)
    found = parse_chunk(one.key, one.headers, value)
    assert isinstance(found, Chunk)
    return found


def land(folder: Path, values: list[bytes], slice_: OffsetRange = SLICE) -> LandedSlice:
    records = [letter("w", i, value, meta=META.encode(), count=None) for i, value in enumerate(values)]
    holes = [Hole(Offset(slice_.start + len(values)), slice_.end, Proof.ABORTED)]
    return land_records(folder, slice_, ((slice_.start + i, 1000 + i, r) for i, r in enumerate(records)), holes=holes)


def test_chunks_come_back_as_they_were_landed(tmp_path: Path) -> None:
    values = [os.urandom(2 * n) for n in (1, 500, 7)]
    landed = land(tmp_path, values)
    assert landed.file is not None
    rows = open_landing(tmp_path / landed.file).to_pylist()
    assert [r["payload"] for r in rows] == values
    assert rows[1] == {
        "partition": 4,
        "offset": 101,
        "timestamp_ms": 1001,
        "waveform_id": "w",
        "seq": 1,
        "count": None,
        "crc": chunk(1, values[1]).crc,
        "length": 1000,
        "meta": None,
        "meta_row": 0,
        "digest": None,
        "piece": chunk(1, values[1]).piece,
        "reason": None,
        "evidence": None,
        "raw_key": None,
        "raw_headers": None,
        "payload": values[1],
    }
    assert (landed.records, landed.payload_bytes, landed.seen_ms, landed.holes) == (
        3,
        1016,
        1002,
        [Hole(Offset(103), Offset(110), Proof.ABORTED)],
    )


def test_a_record_that_is_no_chunk_is_kept_as_it_came(tmp_path: Path) -> None:
    rejection = Rejection(Reason.CORRUPT, "seen", "w", 7)
    with LandingWriter(tmp_path, SLICE) as writer:
        writer.add_rejection(
            Offset(100), 0, rejection, key=b"\xff", headers=[("a", None), ("b", b"\x00")], value=b"abc"
        )
        writer.add_rejection(Offset(101), 1, Rejection(Reason.NULL_VALUE, "none"), key=None, headers=None, value=None)
        writer.add_rejection(Offset(102), 0, Rejection(Reason.NOT_A_CHUNK, "none"), key=b"", headers=[], value=b"")
        landed = writer.finish([])
    table = open_landing(tmp_path / str(landed.file))
    table.validate(full=True)
    first, second, third = table.to_pylist()
    assert (first["reason"], first["evidence"], first["waveform_id"], first["seq"]) == ("corrupt", "seen", "w", 7)
    assert (first["payload"], first["crc"], first["length"]) == (b"abc", zlib.crc32(b"abc"), 1 + 9 + 10 + 3)
    assert first["raw_key"] == b"\xff"
    assert decode_raw_headers(first["raw_headers"]) == [("a", None), ("b", b"\x00")]
    assert (second["payload"], second["crc"], second["length"], second["raw_key"]) == (None, 0, 0, None)
    assert second["raw_headers"] is None
    assert (third["payload"], third["raw_key"], third["raw_headers"]) == (b"", b"", b"")
    assert (landed.records, landed.payload_bytes, landed.seen_ms) == (3, 3, 1)


def test_a_slice_without_records_has_no_file(tmp_path: Path) -> None:
    landed = land(tmp_path, [])
    assert (landed.file, landed.file_bytes, landed.digest, landed.seen_ms) == (None, 0, "", None)
    assert list(tmp_path.iterdir()) == []
    index = read_index(tmp_path, landed)
    assert (tuple(index.column_names), index.num_rows) == (INDEX_COLUMNS, 0)


def test_the_name_carries_the_digest_of_the_bytes_and_nothing_else_is_left(tmp_path: Path) -> None:
    landed = land(tmp_path, [b"ab"])
    content = (tmp_path / str(landed.file)).read_bytes()
    assert landed.digest == xxhash.xxh3_128_hexdigest(content)
    assert landed.file == f"slice-p4-100-110-{landed.digest}.arrow"
    assert landed.file_bytes == len(content)
    assert [p.name for p in tmp_path.iterdir()] == [landed.file]


def test_landing_the_same_records_again_finds_the_file_there(tmp_path: Path) -> None:
    values = [os.urandom(1 << 20) for _ in range(40)]
    first = land(tmp_path, values)
    before = (tmp_path / str(first.file)).stat()
    assert land(tmp_path, values) == first
    after = (tmp_path / str(first.file)).stat()
    assert (before.st_ino, before.st_mtime_ns) == (after.st_ino, after.st_mtime_ns)
    assert len(list(tmp_path.iterdir())) == 1


def test_a_file_that_was_altered_under_its_name_is_not_taken_for_ours(tmp_path: Path) -> None:
    landed = land(tmp_path, [b"ab"])
    path = tmp_path / str(landed.file)
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    with pytest.raises(Altered, match="move it away"):
        land(tmp_path, [b"ab"])
    path.unlink()
    with pytest.raises(Altered, match="is gone"):
        read_index(tmp_path, landed)


@pytest.mark.parametrize("column", [n for n in LANDING.names if n != "payload"])
def test_what_a_file_says_of_its_records_is_what_was_landed(tmp_path: Path, column: str) -> None:
    landed = land(tmp_path, [b"ab", b"cd"])
    path = tmp_path / str(landed.file)
    rows = open_landing(path).to_pylist()
    kind = LANDING.field(column).type
    rows[0 if column == "meta" else 1][column] = (
        "7" if kind == pa.string() else b"7" if kind == pa.binary() else bytes(32) if kind == pa.binary(32) else 7
    )
    with pa.ipc.new_file(str(path), LANDING) as out:
        out.write_table(pa.Table.from_pylist(rows, schema=LANDING))
    # The size alone must not be what gives it away.
    with pytest.raises(Altered, match="Delete it and run the batch's read step again"):
        read_index(tmp_path, replace(landed, file_bytes=path.stat().st_size))


def test_payload_that_changed_is_found_where_it_is_taken(tmp_path: Path) -> None:
    with LandingWriter(tmp_path, SLICE) as writer:
        writer.add_chunk(Offset(100), 1, chunk(0, b"first bytes!"), b"first bytes!")
        writer.add_rejection(
            Offset(101), 1, Rejection(Reason.CORRUPT, "x"), key=None, headers=None, value=b"other bytes"
        )
        writer.add_rejection(Offset(102), 1, Rejection(Reason.NULL_VALUE, "x"), key=None, headers=None, value=None)
        landed = writer.finish([])
    path = tmp_path / str(landed.file)
    content = path.read_bytes()
    [batch] = open_landing(path).to_batches()
    take_proven("l", batch, range(batch.num_rows))
    for offset, payload in ((100, b"first"), (101, b"other")):
        path.unlink()
        path.write_bytes(content.replace(payload, b"FOUND"))
        assert read_index(tmp_path, landed).num_rows == 3
        [batch] = open_landing(path).to_batches()
        with pytest.raises(Altered, match=f"the record of offset {offset} was landed with CRC"):
            take_proven("l", batch, range(batch.num_rows))


def test_a_large_file_leaves_the_page_cache(tmp_path: Path) -> None:
    landed = land(tmp_path, [os.urandom(1 << 20) for _ in range(64)])
    with (tmp_path / str(landed.file)).open("rb") as file:
        mapped = mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ)
    pages = -(-len(mapped) // mmap.PAGESIZE)
    in_memory = (ctypes.c_ubyte * pages)()
    address = ctypes.c_void_p(pa.py_buffer(mapped).address)
    assert ctypes.CDLL(None).mincore(address, ctypes.c_size_t(len(mapped)), in_memory) == 0
    assert sum(page & 1 for page in in_memory) < pages // 4


def test_an_attempt_that_fails_leaves_nothing(tmp_path: Path) -> None:
    def fail_midway() -> None:
        with LandingWriter(tmp_path, SLICE) as writer:
            for i in range(20):
                value = bytes(1 << 20)
                writer.add_chunk(Offset(100 + i), 1, chunk(i, value), value)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fail_midway()
    assert list(tmp_path.iterdir()) == []


def test_what_a_dead_attempt_left_harms_nobody(tmp_path: Path) -> None:
    (tmp_path / ".slice-p4-100-110-dead.tmp").write_bytes(b"half")
    landed = land(tmp_path, [b"ab"])
    assert open_landing(tmp_path / str(landed.file)).num_rows == 1


@pytest.mark.parametrize("room", [0, 1 << 20, 17 << 20])
def test_a_full_disk_is_a_transient_error_that_says_how_much_is_needed(tmp_path: Path, room: int) -> None:
    values = [bytes(1 << 20)] * 34

    def attempt() -> None:
        with LandingWriter(tmp_path, SLICE, expected_bytes=40 << 20) as writer:
            for i, value in enumerate(values):
                writer.add_chunk(Offset(100 + i), 1, chunk(i, value), value)
            writer.finish([])

    with largest_file(room), pytest.raises(Transient) as full:
        attempt()
    assert str(tmp_path) in full.value.message
    assert full.value.facts == {"folder": str(tmp_path), "needed_bytes": 40 << 20}
    assert list(tmp_path.iterdir()) == []


def test_a_disk_that_is_full_beyond_what_was_expected_needs_what_was_written_and_what_waits(tmp_path: Path) -> None:
    with largest_file(6 << 20), pytest.raises(Transient, match=r"after \d+ of at least \d+ bytes") as full:
        land(tmp_path, [bytes(1 << 20)] * 16)
    written, needed = map(int, re.findall(r"after (\d+) of at least (\d+)", full.value.message)[0])
    assert written > 4 << 20
    assert needed - written >= BATCH_BYTES
    assert full.value.facts["needed_bytes"] == needed


def test_a_disk_that_is_full_at_the_very_end_leaves_nothing_either(tmp_path: Path) -> None:
    size = land(tmp_path, [b"ab"] * 5).file_bytes
    (tmp_path / "other").mkdir()
    with largest_file(size - 1), pytest.raises(Transient, match="no room"):
        land(tmp_path / "other", [b"ab"] * 5)
    assert list((tmp_path / "other").iterdir()) == []


def test_a_folder_that_is_not_there_is_a_terminal_error(tmp_path: Path) -> None:
    with pytest.raises(Terminal, match="cannot write in"):
        land(tmp_path / "none", [b"ab"])


def test_record_batches_hold_about_4_mib_and_one_huge_record_has_its_own(tmp_path: Path) -> None:
    values = [bytes(1 << 20)] * 6 + [bytes(50 << 20)] + [bytes(1 << 20)] * 3
    landed = land(tmp_path, values)
    with pa.memory_map(str(tmp_path / str(landed.file))) as mapped:
        reader = pa.ipc.open_file(mapped)
        sizes = [
            sum(len(v.as_py()) for v in reader.get_batch(i).column("payload")) for i in range(reader.num_record_batches)
        ]
    assert sizes == [4 << 20, 52 << 20, 3 << 20]
    assert BATCH_BYTES == 4 << 20


def test_records_without_payload_do_not_pile_up(tmp_path: Path) -> None:
    with LandingWriter(tmp_path, SLICE) as writer:
        for i in range(70_000):
            writer.add_rejection(Offset(i), 1, Rejection(Reason.NULL_VALUE, ""), key=None, headers=None, value=None)
        landed = writer.finish([])
    with pa.memory_map(str(tmp_path / str(landed.file))) as mapped:
        reader = pa.ipc.open_file(mapped)
        assert [reader.get_batch(i).num_rows for i in range(reader.num_record_batches)] == [65_536, 4_464]


def test_large_headers_of_rejected_records_count_towards_the_batch(tmp_path: Path) -> None:
    with LandingWriter(tmp_path, SLICE) as writer:
        for i in range(40):
            writer.add_rejection(
                Offset(i), 1, Rejection(Reason.NOT_A_CHUNK, ""), key=None, headers=[("h", bytes(1 << 20))], value=b""
            )
        landed = writer.finish([])
    with pa.memory_map(str(tmp_path / str(landed.file))) as mapped:
        assert pa.ipc.open_file(mapped).num_record_batches == 10


def test_opening_maps_the_payload_and_the_index_leaves_it_out(tmp_path: Path) -> None:
    landed = land(tmp_path, [os.urandom(1 << 20) for _ in range(64)], span(4, 100, 200))
    before = pa.total_allocated_bytes()
    table = open_landing(tmp_path / str(landed.file))
    index = read_index(tmp_path, landed)
    assert pa.total_allocated_bytes() - before < 1 << 20
    assert table.schema.equals(LANDING)
    assert tuple(index.column_names) == INDEX_COLUMNS
    assert index.equals(table.select(list(INDEX_COLUMNS)))


def test_landing_does_not_import_pandas(tmp_path: Path) -> None:
    program = f"""
        import sys
        from pathlib import Path
        from consumers.landed_file import open_landing
        from consumers.landing import LandingWriter
        from wavestitch.contracts.chunk_header import Chunk
        from wavestitch.contracts.offset_range import OffsetRange
        folder = Path({str(tmp_path)!r})
        with LandingWriter(folder, OffsetRange(0, 0, 1)) as writer:
            writer.add_chunk(0, 1, Chunk("w", 0, None, 0, 2, "{{}}", None, bytes(32)), b"ab")
            open_landing(folder / writer.finish([]).file)
        sys.exit("pandas" in sys.modules)
    """
    subprocess.run([sys.executable, "-c", textwrap.dedent(program)], check=True)


@pytest.mark.parametrize("damage", ["empty", "truncated", "text", "other columns", "other format", "no format"])
def test_a_file_that_is_no_landing_file_is_refused(tmp_path: Path, damage: str) -> None:
    landed = land(tmp_path, [b"ab"] * 5)
    path = tmp_path / str(landed.file)
    table = open_landing(path)
    other = tmp_path / "other.arrow"

    def write(changed: pa.Table) -> None:
        with pa.ipc.new_file(str(other), changed.schema) as out:
            out.write_table(changed)

    if damage == "empty":
        other.write_bytes(b"")
    elif damage == "truncated":
        other.write_bytes(path.read_bytes()[:-200])
    elif damage == "text":
        other.write_text("offset,payload\n" * 100)
    elif damage == "other columns":
        write(table.drop_columns(["crc"]))
    elif damage == "other format":
        write(table.replace_schema_metadata({"wavestitch.landing-format": "1"}))
    else:
        write(table.replace_schema_metadata({}))
    with pytest.raises(Altered, match="read step"):
        open_landing(other)
    with pytest.raises(Altered, match="read step"):
        read_index(tmp_path, replace(landed, file=other.name, file_bytes=other.stat().st_size))
    with pytest.raises(Altered, match="is gone"):
        open_landing(tmp_path / "none.arrow")


def test_metadata_are_stored_once_a_record_batch_and_shared_by_the_index(tmp_path: Path) -> None:
    long = json.dumps({**json.loads(META), "note": "x" * 10_000})
    count = 2 * BATCH_BYTES // len(long)
    with LandingWriter(tmp_path, span(4, 0, count)) as writer:
        for n in range(count):
            writer.add_chunk(Offset(n), 1, chunk(n, b"ab")._replace(meta=long), b"ab")
        landed = writer.finish([])
    index = read_index(tmp_path, landed)
    assert 2 <= len(index.to_batches()) <= 3, "what reads a record batch is bounded by what came in"
    assert landed.file_bytes < len(index.to_batches()) * (2 * len(long)) + count * 400
    facts = list(ChunkTable.of_index(index, 0))
    assert {f.meta for f in facts} == {long}
    assert len({id(f.meta) for f in facts}) == 1


def test_unique_metadata_are_all_stored(tmp_path: Path) -> None:
    with LandingWriter(tmp_path, span(4, 0, 2000)) as writer:
        for n in range(2000):
            writer.add_chunk(Offset(n), 1, chunk(n, b"ab")._replace(meta=f"{n:010000}"), b"ab")
        landed = writer.finish([])
    assert landed.file_bytes > 2000 * 10_000
    assert len(read_index(tmp_path, landed).to_batches()) >= 2000 * 10_000 // (BATCH_BYTES + 10_000)


@pytest.mark.parametrize("row", [-1, 1, 2])
def test_metadata_that_are_said_to_stand_where_there_are_none_are_refused(tmp_path: Path, row: int) -> None:
    landed = land(tmp_path, [b"ab", b"cd"])
    [batch] = open_landing(tmp_path / str(landed.file)).to_batches()
    at = batch.schema.get_field_index("meta_row")
    with pytest.raises(ValueError, match="where there are none"):
        texts_of(batch.set_column(at, batch.schema.field(at), pa.array([0, row], pa.int32())))


def test_a_payload_s_place_that_was_damaged_after_the_index_was_proven_is_refused_and_ends_no_process(
    tmp_path: Path,
) -> None:
    landed = land(tmp_path, [b"a" * 6, b"b" * 14])
    path = tmp_path / str(landed.file)
    [whole] = open_landing(path).to_batches()
    assert take_proven(path.name, whole, [1, 0])["payload"].to_pylist() == [b"b" * 14, b"a" * 6]
    for damaged in ((0, 6, 2**31 - 2), (2**30, 2**30 + 6, 2**30 + 20), (0, 20, 6)):
        places = struct.pack("<3i", 0, 6, 20)
        content = path.read_bytes()
        assert content.count(places) == 1
        other = tmp_path / "other.arrow"
        other.write_bytes(content.replace(places, struct.pack("<3i", *damaged)))
        [batch] = open_landing(other).to_batches()
        with pytest.raises(Altered, match=r"other\.arrow is damaged .* run the batch's read step again"):
            take_proven(other.name, batch, [0, 1])
