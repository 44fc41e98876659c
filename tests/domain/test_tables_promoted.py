"""Rows that are replaced in real Iceberg: in one snapshot, and every other row of their files stays, bit for bit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pyiceberg.table.snapshots import Operation

from tests.builders.altered_rows import fill_column
from tests.builders.deleted_rows import delete_rows
from tests.builders.published_bytes import rows_with_bytes
from tests.builders.table_rows import first_head, published_row, stage
from tests.domain.maintenance_rig import STREAM, Rig
from wavestitch.contracts.errors import Altered, Refused, Transient
from wavestitch.contracts.ports import CommitConflict, StagedFile
from wavestitch.contracts.position import Head, HeadKind
from wavestitch.tables import stream_tables
from wavestitch.tables.lookup.file_scans import files_to_read
from wavestitch.tables.maintenance import rows_taken_out
from wavestitch.tables.read_waveforms import read_waveforms

# Bits that a library may tidy up: minus zero, the least of all, NaN of three kinds.
ODD = np.array([1 << 63, 1, 0x7FF8000000000001, 0xFFF8DEADBEEF0000, 0x7FF0000000000001], "<u8").view("<f8")


@pytest.fixture
def rig(tmp_path: Path) -> Rig:
    """One file with the rows a, b and c, another one with d."""
    rig = Rig(tmp_path, samples="double")
    rig.tables.commit(None, first_head(), [staged(rig, "abc", *(odd_row(i) for i in ("a", "b", "c")))])
    rig.publish("d")
    return rig


def odd_row(waveform_id: str) -> dict[str, Any]:
    return published_row(waveform_id, sample_format="f64le", raw=ODD)


def staged(rig: Rig, name: str, *rows: dict[str, Any]) -> StagedFile:
    return stage(rig.tables.data_folder(), name, rows, samples="double")


def rows(rig: Rig) -> dict[str, dict[str, Any]]:
    found = list(rows_with_bytes(read_waveforms(rig.tables)))
    assert len({row["waveform_id"] for row in found}) == len(found), "each id is there once"
    return {row["waveform_id"]: row for row in found}


def replace(rig: Rig, *ids: str, files: list[StagedFile] | None = None) -> Head:
    base = rig.tables.head()
    assert base is not None
    return rig.tables.commit(base, base.next(kind=HeadKind.PROMOTE), files or [], instead_of=ids)


def test_rows_go_and_come_in_one_snapshot_and_the_others_stay_as_they_were(rig: Rig) -> None:
    before = rows(rig)
    new = staged(rig, "new", published_row("b", size=64), published_row("e"))
    head = replace(rig, "b", "c", files=[new])
    after = rows(rig)
    assert sorted(after) == ["a", "b", "d", "e"]
    assert (after["a"], after["d"]) == (before["a"], before["d"])
    assert (after["a"]["samples"], len(after["b"]["samples"])) == (ODD.tobytes(), 64)
    table = rig.tables.waveforms()
    assert table is not None
    snapshot = table.metadata.current_snapshot()
    assert snapshot is not None
    assert snapshot.summary is not None
    assert (snapshot.snapshot_id, snapshot.summary.operation) == (head.snapshot_id, Operation.OVERWRITE)
    assert (head.kind, rig.tables.head()) == (HeadKind.PROMOTE, head)
    assert set(rig.tables.published({"a", "b", "c", "d", "e"})) == {"a", "b", "d", "e"}
    assert set(rig.deployment.tables(STREAM).published({"c"})) == set(), "nor by an index that is made anew"


def test_all_rows_of_a_file_go_with_it(rig: Rig) -> None:
    replace(rig, "a", "b", "c")
    assert sorted(rows(rig)) == ["d"]
    table = rig.tables.waveforms()
    assert table is not None
    assert len(list(table.scan().plan_files())) == 1


def test_what_is_not_written_as_it_was_read_is_committed_by_nobody(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    before, real = rows(rig), rows_taken_out.put_waveforms_together

    def loses_one(table: Any, batches: Any, **how: Any) -> list[str]:
        return real(table, (batch.slice(1) for batch in batches), **how)

    monkeypatch.setattr(rows_taken_out, "put_waveforms_together", loses_one)
    with pytest.raises(Altered, match="2 rows were read to be put together and 1 were found"):
        replace(rig, "b")
    assert rows(rig) == before


def test_a_row_that_is_not_there_and_a_file_that_another_tool_deletes_from_are_refused(rig: Rig) -> None:
    with pytest.raises(Altered, match="has no row 'z' any more; nothing was committed"):
        replace(rig, "b", "z")
    table = rig.tables.waveforms()
    assert table is not None
    delete_rows(table, {"a"})
    with pytest.raises(Refused, match=r"another tool deleted rows of .*rewrite_data_files"):
        replace(rig, "b")
    replace(rig, "d")
    assert sorted(rows(rig)) == ["b", "c"]


def test_rows_beside_a_column_of_somebodys_own_stay_in_their_files(rig: Rig) -> None:
    was = rig.tables.head()
    assert was is not None
    assert was.snapshot_id is not None
    rig.tables.refuse_fixed_rows()
    table = rig.tables.stored()[0]._catalog.load_table(f"{STREAM}.waveforms")
    fill_column(table, "quality", {i: f"good {i}" for i in "abcd"})
    with pytest.raises(Refused, match=r"column quality .* is none of Wavestitch's.* Nothing was changed: keep what"):
        replace(rig, "b")
    with pytest.raises(Refused, match="column quality"):
        rig.tables.refuse_fixed_rows()
    with pytest.raises(Refused, match="column quality"):
        rig.tables.put_back(was, was.next(kind=HeadKind.PROMOTE), of=was.snapshot_id, ids={"b"}, instead_of={"b"})
    found = table.refresh().scan(selected_fields=("waveform_id", "quality")).to_arrow().to_pylist()
    assert {row["waveform_id"]: row["quality"] for row in found} == {i: f"good {i}" for i in "abcd"}
    assert rig.tables.head() == was
    replace(rig, files=[staged(rig, "new", published_row("e"))])
    assert sorted(rig.tables.published({"a", "b", "c", "d", "e"})) == ["a", "b", "c", "d", "e"], "none went for it"


def test_whoever_commits_first_while_rows_are_written_wins(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    real, beside = rows_taken_out.put_waveforms_together, rig.deployment.tables(STREAM)

    def slowly(*args: Any, **how: Any) -> list[str]:
        monkeypatch.setattr(rows_taken_out, "put_waveforms_together", real)
        base = beside.head()
        assert base is not None
        beside.commit(base, base.next(), [staged(rig, "first", published_row("f"))])
        return real(*args, **how)

    monkeypatch.setattr(rows_taken_out, "put_waveforms_together", slowly)
    with pytest.raises(CommitConflict):
        replace(rig, "b")
    assert sorted(rows(rig)) == ["a", "b", "c", "d", "f"]


def test_rows_of_before_are_put_back_bit_for_bit(rig: Rig) -> None:
    before, was = rows(rig), rig.tables.head()
    assert was is not None
    assert was.snapshot_id is not None
    replace(rig, "b", "c", files=[staged(rig, "new", published_row("b", size=64), published_row("e"))])
    rig.publish("f")
    base = rig.tables.head()
    assert base is not None
    old = rig.tables.published({"b", "c", "e"}, of=was.snapshot_id)
    assert sorted(old) == ["b", "c"]
    head = rig.tables.put_back(
        base, base.next(kind=HeadKind.PROMOTE), of=was.snapshot_id, ids={"b", "c"}, instead_of={"b", "e"}
    )
    after = rows(rig)
    assert {i: row for i, row in after.items() if i != "f"} == before
    assert rig.tables.head() == head
    with pytest.raises(Altered, match="has no row 'e'"):
        rig.tables.put_back(head, head.next(), of=was.snapshot_id, ids={"e"}, instead_of=())
    assert rows(rig) == after


def test_a_snapshot_that_was_let_go_meanwhile_is_told_as_that(rig: Rig) -> None:
    head = rig.tables.head()
    assert head is not None
    with pytest.raises(Transient, match=r"snapshot 77 of table .* was let go since it was looked at"):
        rig.tables.published({"a"}, of=77)
    with pytest.raises(Transient, match=r"snapshot 77 of table .* nothing was written, look again"):
        rig.tables.put_back(head, head.next(kind=HeadKind.PROMOTE), of=77, ids={"a"}, instead_of=())
    assert rig.tables.head() == head


def test_one_that_is_let_go_while_its_rows_are_read_is_no_damage(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    was = rig.tables.head()
    assert was is not None
    assert was.snapshot_id is not None
    base = replace(rig, "b", "c", files=[staged(rig, "new", published_row("b", size=64))])

    def then_goes(*asked: Any, **more: Any) -> list[Any]:
        found = files_to_read(*asked, **more)
        if more.get("snapshot_id") != was.snapshot_id:
            return found
        rig.tables.waveforms().maintenance.expire_snapshots().by_id(was.snapshot_id or 0).commit()
        for task in found:
            Path(task.file.file_path.removeprefix("file://")).unlink()
        return found

    monkeypatch.setattr(stream_tables, "files_to_read", then_goes)
    with pytest.raises(Transient, match=r"was let go since it was looked at; nothing was written, look again"):
        rig.tables.put_back(base, base.next(kind=HeadKind.PROMOTE), of=was.snapshot_id, ids={"c"}, instead_of={"b"})
