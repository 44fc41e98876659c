"""What must be on the disk before it counts is synced, and in this order: the bytes, the name, the folder of the name.

Asked of the kernel: the real calls of a process of its own, in the order in which it made them. A power failure cannot
be had in a test; that nothing is left for it to take can be.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.domain.maintenance_rig import Rig
from tests.faults.local_faults_watch import Watched, run_watched
from wavestitch.tables.commit.staged_files import make_durable
from wavestitch.write_once import write_digested, write_first

NAMING = ("link", "linkat", "rename", "renameat", "renameat2")
WRITING = ("write", "pwrite", "writev")


def digested(folder: Path) -> None:
    write_digested(folder, lambda _: "whole", lambda file: file.write(b"samples"))


def digested_again(folder: Path) -> None:
    digested(folder)
    digested(folder)


def first(folder: Path) -> None:
    write_first(folder / "whole", "text")


def watch(work: Callable[..., Any], folder: Path) -> list[tuple[str, str]]:
    """The calls of `work(folder)`, each with the file that it is about."""
    found: Watched = run_watched(work, [folder], folder=folder.parent)
    return [(w.call, w.file) for w in found.order]


def place(calls: Sequence[tuple[str, str]], names: Sequence[str], file: Callable[[str], bool]) -> list[int]:
    return [n for n, (call, about) in enumerate(calls) if call in names and file(about)]


@pytest.mark.parametrize("work", [digested, digested_again, first])
def test_a_file_has_its_bytes_on_disk_before_its_name_and_its_name_before_it_counts(
    tmp_path: Path, work: Callable[..., Any]
) -> None:
    folder = tmp_path / "made"
    folder.mkdir()
    calls = watch(work, folder)
    hidden, itself = (lambda f: f.endswith(".tmp")), (lambda f: f == "made")
    written, synced = place(calls, WRITING, hidden), place(calls, ("fsync", "fdatasync"), lambda f: "." in f)
    named, kept = place(calls, NAMING, hidden), place(calls, ("fsync",), itself)
    assert len(written) == len(synced) == len(named) == len(kept) > 0, calls
    for steps in zip(written, synced, named, kept, strict=True):
        assert list(steps) == sorted(steps), calls


def durable(folder: Path) -> None:
    for name in ("a/one", "a/two", "b/three"):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_bytes(b"from a task of Spark, unsynced")
    make_durable([folder / "a/one", folder / "a/two", folder / "b/three"])


def test_what_tasks_wrote_is_synced_file_by_file_and_then_its_folders(tmp_path: Path) -> None:
    folder = tmp_path / "made"
    folder.mkdir()
    calls = watch(durable, folder)
    synced = [about.removeprefix("made/") for call, about in calls if call == "fsync"]
    assert sorted(synced[:3]) == ["a/one", "a/two", "b/three"]
    assert sorted(synced[3:]) == ["a", "b"]


def compacted(folder: Path) -> None:
    rig = Rig(folder)
    for n in range(9):
        rig.publish(f"w{n}")

    report = rig.maintain("compact", small_files=5)
    assert report.actions[0].facts["rows_compared"] == 9 + 9, report


def test_what_a_compaction_wrote_is_synced_before_the_table_names_it(tmp_path: Path) -> None:
    folder = tmp_path / "made"
    folder.mkdir()
    calls = watch(compacted, folder)
    last = place(calls, ("fsync",), lambda f: "/waveforms/data/" in f and f.endswith(".parquet"))[-1]
    file = calls[last][1]
    written = place(calls, WRITING, lambda f: f == file)
    assert written
    assert last > written[-1]
    named = place(calls, WRITING, lambda f: "/waveforms/metadata/" in f)[-1]
    assert last < place(calls, ("fsync",), lambda f: f == file.rpartition("/")[0])[-1] < named
