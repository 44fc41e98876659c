"""The corpus under a memory limit: what a record claims is never allocated, and many of them do not pile up (I5).

In child processes whose address space may grow by little more than what the code says it needs.
"""

from __future__ import annotations

import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from tests.hostile.corpus import record_kinds

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
