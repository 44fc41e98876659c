"""The faces of rows in a real table: the same wherever a row lies, another one for whatever another tool changed."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import xxhash

from tests.builders.altered_rows import alter_row
from tests.builders.deleted_rows import delete_rows
from tests.builders.ranges import span
from tests.builders.table_rows import NOON, TOPIC_ID, published_row, stage
from tests.domain.maintenance_rig import Rig
from wavestitch.contracts.plan import Scope
from wavestitch.contracts.row_face import RowFace
from wavestitch.tables.lookup.row_faces import PinnedRows, staged_faces
from wavestitch.tables.maintenance.verify_waveforms import verify_waveforms


@pytest.fixture
def rig(tmp_path: Path) -> Rig:
    return Rig(tmp_path)


def pinned(rig: Rig) -> PinnedRows:
    found = rig.tables.pinned_rows()
    assert found is not None
    return found[0]


def face(rig: Rig, waveform_id: str) -> RowFace:
    (found,) = pinned(rig).faces([waveform_id])
    return found


def alter(rig: Rig, waveform_id: str, **changes: Any) -> None:
    table = rig.tables.waveforms()
    assert table is not None
    alter_row(table, waveform_id, **changes)


def test_a_row_has_the_face_of_the_file_that_it_was_staged_in(rig: Rig, tmp_path: Path) -> None:
    rig.publish("a", "b")
    staged = stage(tmp_path / "elsewhere", "again", [published_row("b"), published_row("a")])
    faces = {one.waveform_id: one for one in staged_faces(Path(staged.path))}
    assert {i: face(rig, i) for i in "ab"} == faces


def test_a_row_without_samples_hides_no_other_one_of_its_file(rig: Rig) -> None:
    rig.publish("a", "b", "c")
    alter(rig, "c", sample_max=99.0)
    nothing: dict[str, Any] = {"samples": [], "sample_count": 0, "sample_min": None, "sample_max": None}
    no_chunks: dict[str, Any] = {"chunks": [], "chunk_count": 0, "end_time": NOON}
    alter(rig, "a", **nothing, **no_chunks, digest=xxhash.xxh3_128_hexdigest(b""))
    table = rig.tables.waveforms()
    assert table is not None
    found = verify_waveforms(table)
    assert (found.rows, [one.waveform_id for one in found.altered]) == (3, ["a", "c"])


def test_of_zeros_of_either_sign_it_is_one_least_sample_whichever_a_processor_took(rig: Rig) -> None:
    rig.publish("a")
    alter(rig, "a", sample_min=0.0, sample_max=0.0)
    before = face(rig, "a")
    alter(rig, "a", sample_min=-0.0, sample_max=-0.0)
    assert face(rig, "a").unlike(before) == []


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("samples", [9, 1, 2, 3, 4, 5, 6, 7]),
        ("units", "V"),
        ("adc_gain", -4.0),
        ("start_time", NOON + timedelta(microseconds=1)),
        ("meta", "{}"),
        ("sample_max", 99.0),
    ],
    ids=str,
)
def test_whatever_another_tool_changes_is_named(rig: Rig, column: str, value: object) -> None:
    rig.publish("a", "b")
    before = face(rig, "a")
    alter(rig, "a", **{column: value})
    assert face(rig, "a").unlike(before) == [column]


@pytest.mark.parametrize(
    ("column", "value"),
    [("chunks", []), ("chunk_count", 3), ("samples", [0, 1, 2])],
    ids=["chunks", "count", "samples"],
)
def test_a_row_that_has_not_what_it_was_made_of_does_not_agree_with_itself(
    rig: Rig, column: str, value: object
) -> None:
    rig.publish("a", "b")
    assert face(rig, "a").agrees
    alter(rig, "a", **{column: value})
    assert (face(rig, "a").agrees, face(rig, "b").agrees) == (False, True)


def test_a_sample_that_no_producer_can_have_sent_is_not_cut_to_one_that_was(rig: Rig) -> None:
    """Of i16le in a column of 32 bits: 65536 more is the same in its lower half."""
    rig.publish("a")
    before = face(rig, "a")
    alter(rig, "a", samples=[0, 1 + (1 << 16), 2, 3, 4, 5, 6, 7])
    assert face(rig, "a").unlike(before) == ["samples"]
    (found,) = verify_waveforms(rig.tables.waveforms()).altered
    assert found.why == "has a sample that no i16le can be"


def test_rows_are_found_by_where_their_chunks_lay_and_by_when_they_start(rig: Rig) -> None:
    rig.publish("a", "b")
    rows = pinned(rig)
    assert {i for i, _ in rows.rows_from([span(3, 1, 9)], TOPIC_ID)} == {"a", "b"}
    assert list(rows.rows_from([span(3, 2, 9), span(2, 0, 9)], TOPIC_ID)) == []
    assert list(rows.rows_from([span(3, 0, 9)], "another topic")) == []
    start = int(NOON.timestamp()) * 10**9
    assert {i for i, _ in rows.rows_starting(Scope(start, start + 1))} == {"a", "b"}
    assert list(rows.rows_starting(Scope(start + 1, start + 2))) == []


def test_rows_that_another_tool_deleted_have_no_face_and_later_commits_are_not_seen(rig: Rig) -> None:
    rig.publish("a", "b")
    before = pinned(rig)
    table = rig.tables.waveforms()
    assert table is not None
    delete_rows(table, ["a"])
    rig.publish("c")
    assert sorted(one.waveform_id for one in pinned(rig).faces(["a", "b", "c"])) == ["b", "c"]
    assert sorted(one.waveform_id for one in before.faces(["a", "b", "c"])) == ["a", "b"]
