"""The corpus under a memory limit: what a record claims is never allocated, and many of them do not pile up (I5).

In child processes whose address space may grow by little more than what the code says it needs.
"""

from __future__ import annotations

import json
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from tests.builders.table_rows import first_head, published_row
from tests.domain.maintenance_rig import Rig
from tests.hostile.corpus import record_kinds
from wavestitch.contracts.ports import StagedFile
from wavestitch.contracts.rows import published_schema
from wavestitch.parquet.published_file import PublishedFile
from wavestitch.parquet.sample_pages import SamplePages, TypedSamples
from wavestitch.tables.lookup.file_scans import files_to_read
from wavestitch.write_once import digest_file

ROOM_FOR_PARSING = 24 << 20
ROOM_FOR_LANDING = 64 << 20
"""One record batch of 16 MiB as it is filled, as Arrow columns and as it is written; and the corpus itself."""
_LIMIT = """
    import resource
    from tests.hostile.corpus import record_kinds
    from wavestitch.contracts.chunk_header import Chunk, parse_chunk

    def leave_room(room):
        with open("/proc/self/statm") as statm:
            now = int(statm.read().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (now + room,) * 2)

    kinds = record_kinds()
"""


def in_child(program: str, *arguments: object) -> str:
    text = textwrap.dedent(_LIMIT) + textwrap.dedent(program)
    done = subprocess.run(
        [sys.executable, "-c", text, *map(str, arguments)], capture_output=True, text=True, timeout=180, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout.strip()


def test_the_whole_corpus_passes_the_parser_under_a_memory_limit() -> None:
    program = """
        import sys
        leave_room(int(sys.argv[1]))
        done = 0
        for kind in kinds:
            for record, reason in zip(kind.records, kind.parsed(), strict=True):
                found = parse_chunk(record.key, record.headers, record.value)
                assert (None if isinstance(found, Chunk) else found.reason) == reason, kind.name
                done += 1
        print(done)
    """
    assert int(in_child(program, ROOM_FOR_PARSING)) == sum(len(k.records) for k in record_kinds())


_LAND = """
    import sys
    from pathlib import Path
    from consumers.landing import LandingWriter
    from wavestitch.contracts.offset_range import OffsetRange
    rounds, room = int(sys.argv[2]), int(sys.argv[3])
    records = [r for kind in kinds for r in kind.records]
    end = rounds * len(records)
    with LandingWriter(Path(sys.argv[1]), OffsetRange(0, 0, end)) as writer:
        leave_room(room)
        for n in range(end):
            r = records[n % len(records)]
            found = parse_chunk(r.key, r.headers, r.value)
            if isinstance(found, Chunk):
                writer.add_chunk(n, 1, found, r.value)
            else:
                writer.add_rejection(n, 1, found, key=r.key, headers=list(r.headers), value=r.value)
        landed = writer.finish([])
    print(landed.payload_bytes, landed.file_bytes)
"""


def test_a_flood_of_the_corpus_is_landed_under_a_memory_limit(tmp_path: Path) -> None:
    """60 times the whole corpus, more than would fit: memory is of one record batch, whatever comes."""
    payload, file_bytes = map(int, in_child(_LAND, tmp_path, 60, ROOM_FOR_LANDING).split())
    assert payload > ROOM_FOR_LANDING
    assert file_bytes > 2 * ROOM_FOR_LANDING


@pytest.mark.parametrize("room", [ROOM_FOR_PARSING, ROOM_FOR_LANDING])
def test_the_memory_limit_can_fail(room: int) -> None:
    """What believed a claim of a few hundred MiB would die of these limits."""
    program = """
        import sys
        leave_room(int(sys.argv[1]))
        try:
            bytearray(int(sys.argv[1]) + (1 << 20))
        except MemoryError:
            print("caught")
    """
    assert in_child(program, room) == "caught"


_TABLE = """
    import sys
    from tests.peak_memory import forget_peak, peak_rss
    from wavestitch.batch.deployment import Deployment
    from wavestitch.settings import load_settings
    from wavestitch.tables.lookup.file_scans import files_to_read, stream_file
    from wavestitch.tables.maintenance import put_together
    from wavestitch.tables.maintenance.verify_waveforms import verify_waveforms

    table = Deployment(load_settings({"WAVESTITCH_CONFIG": sys.argv[1]})).tables("ecg").waveforms()
    put_together._SORTED_BYTES = 16 << 20
    before = forget_peak()
    if sys.argv[2] == "verify":
        verify_waveforms(table)
    else:
        rows = (batch for task in files_to_read(table) for batch in stream_file(table, task.file))
        put_together.put_waveforms_together(table, rows, samples="int", encoding="fast", target_bytes=1 << 30)
    print(peak_rss() - before)
"""
UNPACKED = 576 << 20
ROOM_FOR_ROWS = 272 << 20
"""16 MiB of rows, read, sorted and written, a row group of 38 MiB among them; libraries that are imported meanwhile.
Four times as many rows took a seventh more."""


@pytest.mark.parametrize("what", ["verify", "put together"])
@pytest.mark.parametrize("of", ["flat lines", "metadata"])
def test_rows_that_are_packed_well_are_read_and_put_together_in_bounded_memory(
    tmp_path: Path, what: str, of: str
) -> None:
    """A day of an electrode that is off, or short waveforms with 15 KiB of metadata each: a MiB of files."""
    rig = Rig(tmp_path)
    head = rig.tables.commit(None, first_head(), [packed_file(rig.tables.data_folder(), of)])
    assert head.sequence == 1
    (task,) = files_to_read(rig.tables.waveforms())
    assert task.file.file_size_in_bytes < 8 << 20
    config = tmp_path / "wavestitch.toml"
    assert int(in_child(_TABLE, config, what)) < ROOM_FOR_ROWS


def packed_file(folder: Path, of: str) -> StagedFile:
    """Rows of so many bytes unpacked."""
    flat = of == "flat lines"
    raw = np.full(1 << 19 if flat else 16, 7, "<i2")
    meta = json.dumps({"note": "context " * (0 if flat else 1900)})
    like = published_row("w", raw=raw, chunks=1)
    like |= {} if flat else {"meta": meta}
    rows = [{**like, "waveform_id": f"w{n}"} for n in range(UNPACKED >> 21 if flat else 38_400)]
    row, group = raw.nbytes * 2, 4 if flat else 2400
    path = folder / "packed.parquet"
    with path.open("wb") as sink:
        file = PublishedFile(sink, SamplePages("int", "fast"))
        for n in range(0, len(rows), group):
            some = rows[n : n + group]
            table = pa.Table.from_pylist([{**r, "samples": []} for r in some], schema=published_schema("int"))
            bounds = np.arange(len(some) + 1) * len(raw)
            file.write_group(table, TypedSamples(np.tile(raw.astype("<i4"), len(some)), bounds))
        file.close()
    assert len(rows) * (row + len(meta)) > UNPACKED * 0.9
    return StagedFile(str(path), *digest_file(path, large=True), len(rows))
