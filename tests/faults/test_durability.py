"""What must be on the disk before it counts is synced, and in this order: the bytes, the name, the folder of the name.

Asked of the kernel: the real calls of a process of its own, in the order in which it made them. A power failure cannot
be had in a test; that nothing is left for it to take can be.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.builders.table_rows import published_row
from tests.domain.maintenance_rig import STREAM, Rig, limits
from tests.domain.test_maintain_compaction import replace
from tests.faults.local_faults_watch import Watched, run_watched
from wavestitch.contracts.compaction import Compacted, compacted_to_json
from wavestitch.maintain.run import maintain_stream
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
        (folder / name).write_bytes(b"from Spark, unsynced")
    make_durable([folder / "a/one", folder / "a/two", folder / "b/three"])


def test_what_spark_wrote_is_synced_file_by_file_and_then_its_folders(tmp_path: Path) -> None:
    folder = tmp_path / "made"
    folder.mkdir()
    calls = watch(durable, folder)
    synced = [about.removeprefix("made/") for call, about in calls if call == "fsync"]
    assert sorted(synced[:3]) == ["a/one", "a/two", "b/three"]
    assert sorted(synced[3:]) == ["a", "b"]


def compacted(folder: Path) -> None:
    rig = Rig(folder)
    rows = [published_row(f"w{n}") for n in range(9)]
    for row in rows:
        rig.publish(row["waveform_id"])

    def in_place_of_spark(_job: Path, result: Path) -> None:
        replace(rig, *rows)
        result.write_text(compacted_to_json([Compacted(f"{STREAM}.waveforms", 9, 1, 0, 0)]), encoding="utf-8")

    report = maintain_stream(
        rig.deployment, STREAM, apply=True, only=["compact"], limits=limits(small_files=5), compact=in_place_of_spark
    )
    assert report.actions[0].facts["rows_compared"] == 9, report


def test_what_a_compaction_put_in_place_is_synced_before_it_ends(tmp_path: Path) -> None:
    folder = tmp_path / "made"
    folder.mkdir()
    calls = watch(compacted, folder)
    new = place(calls, ("fsync",), lambda f: "/replaced-" in f and f.endswith(".parquet"))
    written = place(calls, WRITING, lambda f: "/replaced-" in f)
    assert written
    assert new, "the new file is not synced"
    assert new[0] > written[-1]
    file = calls[new[0]][1]
    assert place(calls, ("fsync",), lambda f: f == file.rpartition("/")[0])[-1] > new[0], "nor is its folder"
