"""A copy with the same checksums and other bytes is a conflict, at whatever place and however late it comes."""

from __future__ import annotations

import random
import struct
import zlib
from pathlib import Path

import pytest
import xxhash

from tests.builders.records import Letter, letter, metadata
from tests.builders.streams import make_stream
from tests.domain.forging import same_crc, same_crc_and_xxh3
from tests.fakes.batch import Bench, run_batch
from tests.fakes.fake_log import FakeLog
from wavestitch.batch.plan import PlanRequest
from wavestitch.batch.work_folder import WorkFolder
from wavestitch.contracts.errors import Altered
from wavestitch.contracts.quantities import Partition
from wavestitch.write_once import read_proven, write_digested

CLOCK_MS = 1_767_614_400_000
META = metadata(CLOCK_MS)
STREAM = make_stream()
_RANDOM = random.Random(1)
TRUE = struct.pack("<4000h", *(int(_RANDOM.gauss(100, 40)) for _ in range(4000)))
PREFIX = b"w\x000\x001\x00%s\x00%s\x00" % (META, xxhash.xxh3_128_hexdigest(TRUE).encode())


def forged_crc() -> bytes:
    return same_crc(b"\xff" * (len(TRUE) - 4), prefix=PREFIX, target=zlib.crc32(PREFIX + TRUE))


def forged_crc_and_xxh3() -> bytes:
    return same_crc_and_xxh3(TRUE, b"\xff" * 512, prefix=PREFIX)


def letters(other: bytes) -> tuple[Letter, Letter]:
    digest = xxhash.xxh3_128_hexdigest(TRUE)
    mine = letter("w", 0, TRUE, meta=META, count=1, digest=digest)
    theirs = letter("w", 0, other, meta=META, count=1, digest=digest)
    assert dict(mine.headers)["ws-crc"] == dict(theirs.headers)["ws-crc"]
    assert len(other) == len(TRUE)
    assert other != TRUE
    return mine, theirs


@pytest.mark.parametrize("forge", [forged_crc, forged_crc_and_xxh3])
def test_in_one_batch_a_forged_copy_is_no_duplicate_and_neither_is_published(forge) -> None:
    mine, theirs = letters(forge())
    log = FakeLog("waves", 2)
    bench = Bench(log)
    log.append(Partition(1), CLOCK_MS, *mine)
    log.append(Partition(0), CLOCK_MS + 5, *theirs)
    run_batch(bench, STREAM, PlanRequest(), clock_ms=CLOCK_MS + 10)
    assert bench.tables.rows == []
    assert [h.held.reason.value for h in bench.tables.held_rows()] == ["conflict", "conflict"]


@pytest.mark.parametrize("forge", [forged_crc, forged_crc_and_xxh3])
def test_after_the_true_one_was_published_a_forged_copy_is_no_replay(forge) -> None:
    mine, theirs = letters(forge())
    log = FakeLog("waves", 1)
    bench = Bench(log)
    log.append(Partition(0), CLOCK_MS, *mine)
    run_batch(bench, STREAM, PlanRequest(), clock_ms=CLOCK_MS + 1)
    log.append(Partition(0), CLOCK_MS + 5, *theirs)
    log.append(Partition(0), CLOCK_MS + 6, *mine)
    run_batch(bench, STREAM, PlanRequest(), clock_ms=CLOCK_MS + 10)
    assert [row.samples for _, row in bench.tables.rows] == [TRUE]
    assert [h.held.chunk.offset for h in bench.tables.held_rows()] == [1]
    assert bench.tables.history[-1].counts["replay"] == 1


@pytest.mark.parametrize("forge", [forged_crc, forged_crc_and_xxh3])
def test_over_two_batches_a_forged_copy_of_a_held_chunk_is_a_conflict(forge) -> None:
    prefix = b"w\x000\x00\x00%s\x00\x00" % META  # of a chunk that does not say the count
    other = (
        same_crc(b"\xff" * (len(TRUE) - 4), prefix=prefix, target=zlib.crc32(prefix + TRUE))
        if forge is forged_crc
        else same_crc_and_xxh3(TRUE, b"\xff" * 512, prefix=prefix)
    )
    log = FakeLog("waves", 1)
    bench = Bench(log)
    log.append(Partition(0), CLOCK_MS, *letter("w", 0, TRUE, meta=META, count=None))
    run_batch(bench, STREAM, PlanRequest(), clock_ms=CLOCK_MS + 1)
    log.append(Partition(0), CLOCK_MS + 2, *letter("w", 0, other, meta=META, count=None))
    log.append(Partition(0), CLOCK_MS + 2, *letter("w", 1, TRUE, meta=META, count=2))
    run_batch(bench, STREAM, PlanRequest(), clock_ms=CLOCK_MS + 3)
    assert bench.tables.rows == []
    assert {h.held.reason.value for h in bench.tables.held_rows()[1:]} == {"conflict"}


def test_a_file_between_steps_that_was_forged_to_the_same_checksums_is_not_the_one_that_was_written(
    tmp_path: Path,
) -> None:
    forged = forged_crc_and_xxh3()
    assert xxhash.xxh3_128_digest(forged) == xxhash.xxh3_128_digest(TRUE)
    folder = WorkFolder(tmp_path, "ecg", "0" * 32)
    name, _, _ = write_digested(folder.path, lambda digest: f"stitched-0-{digest}.arrow", lambda file: file.write(TRUE))
    path = folder.intact(str(name), kind="stitched")
    assert read_proven(path) == TRUE
    path.chmod(0o600)
    path.write_bytes(forged)
    with pytest.raises(Altered, match="not as it was written"):
        folder.intact(str(name), kind="stitched")
    with pytest.raises(Altered, match="not as it was written"):
        read_proven(path)
