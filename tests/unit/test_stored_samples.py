"""Parts of waveforms out of published files, a page at a time: what pyarrow reads of the same file, bit by bit."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.builders.table_rows import published_row, stage
from wavestitch.contracts.errors import Refused
from wavestitch.contracts.rows import published_schema
from wavestitch.contracts.sample_kinds import Encoding, SampleType
from wavestitch.contracts.sample_types import FORMAT_DTYPES, as_type, misfit
from wavestitch.parquet.sample_pages import SamplePages, SentSamples, TypedSamples
from wavestitch.parquet.stored_samples import StoredSamples

LENGTHS = (3, 300_000, 1, 5, 270_000, 17)
"""Some share a page; some are longer than one of any type."""


@pytest.mark.parametrize("encoding", ["fast", "small"])
@pytest.mark.parametrize(
    ("sample_format", "samples"),
    [("i16le", "int"), ("i32le", "int"), ("i64le", "long"), ("f32le", "float"), ("f64le", "double")],
)
def test_any_part_is_what_pyarrow_reads(
    tmp_path: Path, sample_format: str, samples: SampleType, encoding: Encoding
) -> None:
    rng = np.random.default_rng(7)
    dtype = np.dtype(FORMAT_DTYPES[sample_format])
    raws = [(rng.normal(size=n) * 1000).astype(dtype) for n in LENGTHS]
    if dtype.kind == "f":
        raws[1][5:9] = [np.nan, np.inf, -np.inf, -0.0]
    rows = [published_row(f"w{n}", raw=raw, sample_format=sample_format) for n, raw in enumerate(raws)]
    file = stage(tmp_path, "f", rows, row_group_size=4, samples=samples, encoding=encoding)
    with pq.ParquetFile(file.path) as parquet, Path(file.path).open("rb") as source:
        for number in range(2):
            whole = parquet.read_row_group(number, columns=["samples"])["samples"].combine_chunks().flatten().to_numpy()
            found = StoredSamples.of(source, file.path, parquet.metadata.row_group(number))
            assert found.dtype == whole.dtype
            middle, end = len(whole) // 2, len(whole)
            for start, behind in ((0, end), (2, 5), (end - 3, end), (middle, middle + 9), (4, 4), (0, 1)):
                parts = list(found.parts(start, behind))
                assert np.concatenate([whole[:0], *parts]).tobytes() == whole[start:behind].tobytes()
                assert all(part.nbytes <= 1 << 20 for part in parts)


@pytest.mark.parametrize("encoding", ["fast", "small"])
@pytest.mark.parametrize(("sample_format", "samples"), [("i16le", "int"), ("i16le", "long"), ("i32le", "long")])
def test_narrow_numbers_become_the_pages_that_wide_ones_do(
    sample_format: str, samples: SampleType, encoding: Encoding
) -> None:
    dtype = np.dtype(FORMAT_DTYPES[sample_format])
    ends = np.iinfo(dtype)
    values = np.concatenate([np.array([ends.min, ends.max, -1, 0, 1, 255, 256, -256], dtype)] * 40_000)
    cuts = np.array([0, 8, 200_000, len(values)])
    sent = SentSamples(values.view(np.uint8), cuts * dtype.itemsize, [sample_format] * 3, samples)
    pages = SamplePages(samples, encoding)
    assert list(pages.pages(sent)) == list(pages.pages(TypedSamples(as_type(values, samples), cuts)))


@pytest.mark.parametrize("encoding", ["fast", "small"])
@pytest.mark.parametrize("samples", ["int", "long", "float", "double"])
def test_whatever_format_fits_exactly_becomes_the_pages_of_the_type_alone_and_beside_others(
    samples: SampleType, encoding: Encoding
) -> None:
    whole = samples in ("int", "long")
    formats = [name for name in FORMAT_DTYPES if not (whole and name.startswith("f"))]
    values = np.array([-32768, 32767, -1, 0, 1, 255, 256, -256] * 40)
    for mixed in [*([one] for one in formats), formats, formats[::-1]]:
        raws = [values.astype(FORMAT_DTYPES[name]).view(np.uint8) for name in mixed]
        assert not any(misfit(raw, name, samples) for raw, name in zip(raws, mixed, strict=True))
        cuts = np.concatenate(([0], np.cumsum([len(raw) for raw in raws])))
        sent = SentSamples(np.concatenate(raws), cuts, mixed, samples)
        typed = TypedSamples(as_type(np.tile(values, len(mixed)), samples), len(values) * np.arange(len(mixed) + 1))
        pages = SamplePages(samples, encoding)
        assert [bytes(p.body) for p in pages.pages(sent)] == [bytes(p.body) for p in pages.pages(typed)], mixed


def written_by_pyarrow(path: Path, **how: object) -> None:
    whole = pa.Table.from_pylist([published_row("w", size=600)], schema=published_schema("int"))
    pq.write_table(whole, path, **how)


@pytest.mark.parametrize(
    "how",
    [
        {},
        {"use_dictionary": False},
        {"use_dictionary": False, "compression": "zstd", "data_page_version": "2.0"},
        {"compression": "gzip"},
    ],
)
def test_pages_of_another_writer_are_refused(tmp_path: Path, how: dict[str, object]) -> None:
    path = tmp_path / "theirs.parquet"
    written_by_pyarrow(path, **how)
    with pq.ParquetFile(path) as parquet, path.open("rb") as source, pytest.raises(Refused, match="did not write"):
        list(StoredSamples.of(source, str(path), parquet.metadata.row_group(0)).parts(0, 1))


def test_a_file_that_was_altered_is_refused_or_gives_other_numbers_and_never_more_of_them(tmp_path: Path) -> None:
    """Each byte of the first page's header in turn: a size that it claims is never believed."""
    file = stage(tmp_path, "f", [published_row("w", size=4000)])
    good = Path(file.path).read_bytes()
    with pq.ParquetFile(file.path) as parquet:
        group = parquet.metadata.row_group(0)
    begin = StoredSamples.of(pa.BufferReader(good), "f", group).begin
    for at in range(begin, begin + 24):
        for byte in (0x00, 0x7F, 0xFF, good[at] ^ 1):
            bad = bytearray(good)
            bad[at] = byte
            try:
                parts = list(StoredSamples.of(pa.BufferReader(bytes(bad)), "f", group).parts(0, 2000))
            except Refused:
                continue
            assert sum(part.nbytes for part in parts) <= 1 << 20
