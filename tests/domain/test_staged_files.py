"""Staged Parquet files: noticed when altered, rewritten without some rows, never replaced."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq
import pytest
import xxhash

from tests.builders.table_rows import first_head, published_row, stage
from tests.domain.parquet_pages import page_sizes
from wavestitch.contracts.errors import Altered, BadInput
from wavestitch.parquet.published_file import stored_groups
from wavestitch.tables.catalog import CatalogSettings
from wavestitch.tables.commit.staged_files import check_staged, make_durable, read_rows, rewrite_without
from wavestitch.tables.stream_tables import StreamTables
from wavestitch.write_once import digest_file

pytestmark = pytest.mark.filterwarnings("error")

KEPT = {"w0", "w1", "w2", "w6", "w7", "w8"}


def test_an_untouched_file_passes(tmp_path):
    staged = stage(tmp_path, "a", [published_row("a")])
    check_staged(Path(staged.path), staged)
    make_durable([Path(staged.path)])
    assert staged.digest == xxhash.xxh3_128_hexdigest(Path(staged.path).read_bytes())


def test_a_file_with_one_bit_changed_is_altered(tmp_path):
    staged = stage(tmp_path, "a", [published_row("a")])
    content = bytearray(Path(staged.path).read_bytes())
    content[100] ^= 1
    Path(staged.path).write_bytes(content)
    with pytest.raises(Altered, match="digest"):
        check_staged(Path(staged.path), staged)


@pytest.mark.parametrize("change", [lambda p: p.write_bytes(p.read_bytes()[:-1]), lambda p: p.unlink()])
def test_a_file_cut_short_or_gone_is_altered(tmp_path, change):
    staged = stage(tmp_path, "a", [published_row("a")])
    change(Path(staged.path))
    with pytest.raises(Altered):
        check_staged(Path(staged.path), staged)


def test_a_rewritten_file_lacks_the_dropped_rows_and_nothing_else(tmp_path):
    rows = [published_row(f"w{n}") for n in range(10)]
    staged = stage(tmp_path, "plan-1", rows, row_group_size=3)
    original = Path(staged.path).read_bytes()
    made = rewrite_without(Path(staged.path), ["w3", "w4", "w5", "w9", "absent"], tmp_path / "new")
    assert Path(staged.path).read_bytes() == original
    assert made.rows == 6
    assert Path(made.path).name == f"plan-1-{made.digest[:16]}.parquet"
    check_staged(Path(made.path), made)
    kept = pq.read_table(made.path)
    assert kept.schema.equals(pq.read_schema(staged.path), check_metadata=True)
    assert kept.to_pylist() == [r for r in pq.read_table(staged.path).to_pylist() if r["waveform_id"] in KEPT]
    before, after = (pq.read_metadata(p).row_group(0) for p in (staged.path, made.path))
    for n in range(before.num_columns):
        assert after.column(n).compression == before.column(n).compression
        assert after.column(n).is_stats_set == before.column(n).is_stats_set


@pytest.mark.parametrize("sizes", [[3 << 20] * 4, [40_000] * 200, [100] * 3000])
def test_a_rewritten_file_s_pages_hold_about_a_mebibyte_or_one_waveform(tmp_path, sizes):
    rows = [published_row(f"w{n}", size=size) for n, size in enumerate(sizes)]
    staged = stage(tmp_path, "plan", rows, row_group_size=len(rows))
    made = rewrite_without(Path(staged.path), ["w1"], tmp_path / "new")
    assert pq.read_table(made.path)["samples"].to_pylist() == [r["samples"] for r in rows if r["waveform_id"] != "w1"]
    (pages,) = page_sizes(Path(made.path), "samples")
    assert max(pages) <= (1 << 20) + 64


@pytest.mark.parametrize("encoding", ["fast", "small"])
@pytest.mark.parametrize("samples", ["int", "long", "float", "double"])
def test_a_rewritten_file_keeps_type_and_encoding_and_copies_what_stays_whole(tmp_path, samples, encoding):
    rows = [published_row(f"w{n}", size=1000) for n in range(9)]
    staged = stage(tmp_path, "plan", rows, row_group_size=3, samples=samples, encoding=encoding)
    made = rewrite_without(Path(staged.path), ["w4"], tmp_path / "new")
    kept = pq.read_table(made.path)
    assert kept.to_pylist() == [r for r in pq.read_table(staged.path).to_pylist() if r["waveform_id"] != "w4"]
    before, after = (pq.ParquetFile(p) for p in (staged.path, made.path))
    assert after.schema_arrow == before.schema_arrow
    column = before.schema_arrow.names.index("samples")
    for n in range(3):
        one, other = (f.metadata.row_group(n).column(column) for f in (before, after))
        assert (other.compression, other.encodings) == (one.compression, one.encodings)
    whole = Path(made.path).read_bytes()
    assert all(part in whole for n in (0, 2) for part in stored_groups(Path(staged.path))[n].parts())


def test_a_rewritten_file_can_be_published(tmp_path):
    tables = StreamTables(CatalogSettings("local", f"sqlite:///{tmp_path}/c.db", f"file://{tmp_path}/w"), "ecg")
    staged = stage(tables.data_folder(), "plan", [published_row("a"), published_row("b")])
    made = rewrite_without(Path(staged.path), ["a"], tables.data_folder())
    tables.commit(None, first_head(), [made])
    assert set(tables.published(["a", "b"])) == {"b"}


def test_rewriting_again_takes_the_file_that_is_there(tmp_path):
    staged = stage(tmp_path, "plan", [published_row("a"), published_row("b")])
    first = rewrite_without(Path(staged.path), ["a"], tmp_path)
    made = Path(first.path).stat()
    assert rewrite_without(Path(staged.path), ["a"], tmp_path) == first
    assert Path(first.path).stat().st_mtime_ns == made.st_mtime_ns
    assert digest_file(Path(first.path), large=True) == (first.bytes, first.digest)
    assert sorted(p.name for p in tmp_path.iterdir()) == sorted({Path(staged.path).name, Path(first.path).name})


def test_a_damaged_file_under_the_new_name_is_altered_and_stays(tmp_path):
    staged = stage(tmp_path, "plan", [published_row("a"), published_row("b")])
    made = Path(rewrite_without(Path(staged.path), ["a"], tmp_path).path)
    made.write_bytes(b"damaged")
    with pytest.raises(Altered):
        rewrite_without(Path(staged.path), ["a"], tmp_path)
    assert made.read_bytes() == b"damaged"


def test_a_file_of_which_nothing_is_left_is_refused(tmp_path):
    staged = stage(tmp_path, "plan", [published_row("a")])
    with pytest.raises(BadInput, match="leave the file out"):
        rewrite_without(Path(staged.path), ["a"], tmp_path)
    assert [p.name for p in tmp_path.iterdir()] == ["plan.parquet"]


def test_the_rows_of_a_staged_file_are_read_with_the_pieces_that_they_are_made_of(tmp_path):
    rows = [published_row(f"w{n}", chunks=n) for n in range(5)]
    staged = stage(tmp_path, "plan-1", rows, row_group_size=2)
    parts = list(read_rows(Path(staged.path)))
    found = [part.row(n) for part in parts for n in range(len(part.ids))]
    assert len(parts) == 3, "a row group at a time"
    assert [r.waveform_id for r in found] == [f"w{n}" for n in range(5)]
    assert [list(r.pieces) for r in found] == [
        [(c["topic_id"], c["partition"], c["offset"], c["length"], c["piece"]) for c in row["chunks"]] for row in rows
    ]
