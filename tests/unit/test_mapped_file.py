"""What is asked of the disk ahead: all of a file but one column's values; of a file that is no Arrow file, nothing."""

from __future__ import annotations

import os
from pathlib import Path

import pyarrow as pa
import pytest

from wavestitch.mapped_file import fetch_besides

ROWS = 3000
VALUE = b"of the column" * 8


def written(path: Path, payloads: list[bytes | None]) -> Path:
    batch = pa.record_batch({"offset": range(len(payloads)), "payload": pa.array(payloads, pa.binary())})
    with pa.ipc.new_file(path, batch.schema) as writer:
        writer.write_batch(batch)
        writer.write_batch(batch)
    return path


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int]]:
    """Ranges `[begin, end)` that the system was asked to read."""
    found: list[tuple[int, int]] = []
    advise = os.posix_fadvise

    def told(fd: int, begin: int, size: int, advice: int) -> None:
        advise(fd, begin, size, advice)
        assert advice == os.POSIX_FADV_WILLNEED
        if size:  # a length of 0 would be all the rest
            found.append((begin, begin + size))

    monkeypatch.setattr(os, "posix_fadvise", told)
    return found


def test_all_is_asked_for_but_the_values_of_the_column(tmp_path: Path, asked: list[tuple[int, int]]) -> None:
    path = written(tmp_path / "a.arrow", [VALUE] * ROWS)
    content = path.read_bytes()
    fetch_besides(path, "payload")
    wanted = b"".join(content[begin:end] for begin, end in asked)
    assert content.count(VALUE) == 2 * ROWS
    assert VALUE not in wanted
    assert len(wanted) == len(content) - 2 * len(VALUE) * ROWS


@pytest.mark.parametrize("payloads", [[], [b""], [None, None]])
def test_of_a_file_without_values_all_is(
    payloads: list[bytes | None], tmp_path: Path, asked: list[tuple[int, int]]
) -> None:
    path = written(tmp_path / "a.arrow", payloads)
    fetch_besides(path, "payload")
    assert sum(end - begin for begin, end in asked) == path.stat().st_size


@pytest.mark.parametrize("content", [None, b"", b"no Arrow file", b"ARROW1\0\0" * 9])
def test_what_is_wrong_with_a_file_is_for_whoever_reads_it_to_say(content: bytes | None, tmp_path: Path) -> None:
    path = tmp_path / "a.arrow"
    if content is not None:
        path.write_bytes(content)
    fetch_besides(path, "payload")


def test_a_torn_file_and_one_without_the_column_are_no_fault_here(tmp_path: Path) -> None:
    path = written(tmp_path / "a.arrow", [b"x"] * ROWS)
    fetch_besides(path, "elsewhere")
    content = path.read_bytes()
    for size in (len(content) // 2, len(content) - 9):
        path.write_bytes(content[:size])
        fetch_besides(path, "payload")
    for at in range(0, len(content), 97):
        path.write_bytes(content[:at] + b"\xff" + content[at + 1 :])
        fetch_besides(path, "payload")
