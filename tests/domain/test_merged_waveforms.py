"""What small files become when they are put together: encoding, order and every bit of a NaN stay. I3."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

from tests.builders.published_bytes import rows_with_bytes
from tests.builders.table_rows import NOON, first_head, published_row, stage
from tests.domain.maintenance_rig import STREAM, Rig
from wavestitch.contracts.sample_kinds import Encoding, SampleType
from wavestitch.contracts.sample_types import FORMAT_DTYPES
from wavestitch.parquet.published_file import pages_as_in
from wavestitch.parquet.sample_pages import SamplePages
from wavestitch.tables.lookup.file_scans import files_to_read
from wavestitch.tables.maintenance.verify_waveforms import verify_waveforms
from wavestitch.tables.read_waveforms import read_waveforms

# Quiet and signalling, with a payload and a sign; and what equals another value.
NANS = {
    "f32le": np.array([0x7FC00000, 0x7F800001, 0xFFC12345, 1 << 31, 0x3F800000], "<u4"),
    "f64le": np.array([0x7FF8 << 48, (0x7FF0 << 48) + 1, 0xFFF8123456789ABC, 1 << 63, 1], "<u8"),
}
WHOLE = {"i16le": [-(2**15), 2**15 - 1, 0], "i32le": [-(2**31), 2**31 - 1, 7], "i64le": [-(2**63), 2**63 - 1, 0]}


def samples_of(sample_format: str) -> np.ndarray:
    if sample_format in NANS:
        return NANS[sample_format].view(FORMAT_DTYPES[sample_format])
    return np.array(WHOLE[sample_format], FORMAT_DTYPES[sample_format])


def declared(folder: Path, samples: SampleType, encoding: Encoding) -> Rig:
    rig = Rig(folder, samples=samples)
    path = folder / "streams" / f"{STREAM}.yaml"
    path.write_text(f"topic: t\ngroup: g\nsamples: {samples}\nencoding: {encoding}\n")
    return rig


def publish(rig: Rig, n: int, sample_format: str, samples: SampleType, *, days: int = 0) -> None:
    """One more file: a waveform of each of two sources, the later one of each first in the table."""
    raw = samples_of(sample_format)
    start = NOON + timedelta(seconds=100 - n, days=days)
    rows: list[dict[str, Any]] = [
        published_row(f"{source}{n}-{days}", start=start, raw=raw, sample_format=sample_format, source=source)
        for source in ("b", "a")
    ]
    head = rig.tables.head()
    staged = stage(rig.tables.data_folder(), f"f{n}-{days}-{sample_format}", rows, samples=samples, encoding="fast")
    rig.tables.commit(head, first_head() if head is None else head.next(), [staged])


def data_files(rig: Rig) -> list[Path]:
    return [Path(t.file.file_path.removeprefix("file://")) for t in files_to_read(rig.tables.waveforms())]


@pytest.mark.parametrize("encoding", ["fast", "small"])
@pytest.mark.parametrize(
    ("sample_format", "samples"),
    [
        ("i16le", "int"),
        ("i32le", "int"),
        ("i64le", "long"),
        ("f32le", "float"),
        ("f64le", "double"),
        ("i16le", "float"),
    ],
)
def test_compaction_keeps_the_streams_encoding_every_bit_and_sorts_by_source_and_start(
    tmp_path: Path, sample_format: str, samples: SampleType, encoding: Encoding
) -> None:
    rig = declared(tmp_path, samples, encoding)
    for n in range(4):
        publish(rig, n, sample_format, samples)
    before = {r["waveform_id"]: r for r in rows_with_bytes(read_waveforms(rig.tables))}
    (action,) = rig.maintain("compact", small_files=3).actions
    assert action.facts == {"rewritten": 4, "added": 1, "conflicts": 0, "rows_compared": 8}
    assert action.kept == ()
    assert {r["waveform_id"]: r for r in rows_with_bytes(read_waveforms(rig.tables))} == before
    assert {r["samples"] for r in before.values()} == {samples_of(sample_format).tobytes()}
    (path,) = data_files(rig)
    pages, wanted = pages_as_in(path), SamplePages(samples, encoding)
    assert (pages.samples, pages.encoding, pages.codec) == (wanted.samples, wanted.encoding, wanted.codec)
    ids = pq.read_table(path, columns=["waveform_id"])["waveform_id"].to_pylist()
    assert ids == [f"{source}{n}-0" for source in "ab" for n in (3, 2, 1, 0)]
    assert verify_waveforms(rig.tables.waveforms()).altered == ()
    assert set(rig.tables.published(before)) == set(before)
    assert rig.tables.head() is not None


def test_files_from_before_a_promotion_stay_in_their_own_type_and_days_are_not_mixed(tmp_path: Path) -> None:
    rig = declared(tmp_path, "float", "small")
    for n in range(3):
        publish(rig, n, "f32le", "float")
    for n in range(3):
        publish(rig, n + 10, "f64le", "double")
        publish(rig, n + 10, "f64le", "double", days=1)
    before = {r["waveform_id"]: r["samples"] for r in rows_with_bytes(read_waveforms(rig.tables))}
    rig.maintain("compact", small_files=3)
    assert sorted((pages_as_in(p).samples, pq.read_metadata(p).num_rows) for p in data_files(rig)) == [
        ("double", 6),
        ("double", 6),
        ("float", 6),
    ]
    assert {r["waveform_id"]: r["samples"] for r in rows_with_bytes(read_waveforms(rig.tables))} == before
    assert verify_waveforms(rig.tables.waveforms()).altered == ()
