"""The column `samples`: its type, how it widens, who reads it, and that its bits stay what was sent."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import duckdb
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.schema import Schema
from pyiceberg.types import BinaryType, ListType, NestedField, StringType

from tests.builders.published_bytes import published_bytes
from tests.builders.table_rows import first_head, published_row, stage
from tests.domain.maintenance_rig import STREAM, Rig
from wavestitch import cli
from wavestitch.batch.deployment_edges import check_samples
from wavestitch.contracts.errors import Altered, BadInput
from wavestitch.contracts.rows import PUBLISHED_DOCS
from wavestitch.contracts.sample_types import ARROW_TYPES, FORMAT_DTYPES
from wavestitch.tables.catalog import CatalogSettings, open_catalog
from wavestitch.tables.maintenance.verify_waveforms import verify_waveforms
from wavestitch.tables.read_waveforms import each_row, raw_samples, read_waveforms
from wavestitch.tables.stream_tables import StreamTables

pytestmark = pytest.mark.filterwarnings("error")

# Quiet ones of either sign that say something, and one that signals; an infinity, a denormal, minus zero, a number.
ODD_F32 = np.array([0x7FC12345, 0xFFC00001, 0x7F812345, 0xFF800000, 1, 0x80000000, 0x3F800000], "<u4").view("<f4")
ODD_F64 = np.array([0x7FF8000000ABCDEF, 0xFFF0000000000001, 1, 1 << 63, 0x3FF0000000000000], "<u8").view("<f8")


@pytest.fixture
def settings(tmp_path: Path) -> CatalogSettings:
    return CatalogSettings("local", f"sqlite:///{tmp_path}/catalog.db", f"file://{tmp_path}/warehouse")


def tables_of(settings, samples="int") -> StreamTables:
    return StreamTables(settings, "ecg", samples=lambda: samples)


def publish(tables, name, *rows, samples="int", encoding="fast"):
    head = tables.head()
    staged = stage(tables.data_folder(), name, rows, samples=samples, encoding=encoding)
    return tables.commit(head, first_head() if head is None else head.next(), [staged])


def test_the_schema_says_what_each_column_is_what_must_be_there_and_who_a_row_is(settings):
    tables = tables_of(settings, "float")
    tables.commit(None, first_head(), [])
    schema = tables.waveforms().schema()
    assert {f.name: f.doc for f in schema.fields} == PUBLISHED_DOCS
    assert all(PUBLISHED_DOCS.values())
    optional = {"sample_min", "sample_max", "first_record_time", "last_record_time"}
    assert {f.name for f in schema.fields if not f.required} == optional
    assert [schema.find_field(i).name for i in schema.identifier_field_ids] == ["waveform_id"]
    samples = schema.find_field("samples").field_type
    assert isinstance(samples, ListType)
    assert (str(samples.element_type), samples.element_required) == ("float", True)
    for stored in tables.stored()[1:]:
        assert all(f.doc for f in stored.ensure().schema().fields)


@pytest.mark.parametrize(("narrow", "wide", "sample_format"), [("int", "long", "i64le"), ("float", "double", "f64le")])
def test_a_table_is_widened_with_the_first_file_that_needs_it_and_old_files_stay_as_they_are(
    settings, narrow, wide, sample_format
):
    tables = tables_of(settings, narrow)
    publish(tables, "old", published_row("a"), samples=narrow)
    before = {t.file.file_path for t in tables.waveforms().scan().plan_files()}
    large = np.array([1 << 40, -(1 << 40)]).astype({"i64le": "<i8", "f64le": "<f8"}[sample_format])
    publish(tables, "new", published_row("b", raw=large, sample_format=sample_format), samples=wide)
    assert tables.sample_type() == wide
    assert before < {t.file.file_path for t in tables.waveforms().scan().plan_files()}
    # One that was made by an older declaration comes after it, and is published all the same.
    publish(tables, "late", published_row("c"), samples=narrow)
    assert tables.sample_type() == wide
    found = read_waveforms(tables)
    assert found.schema.field("samples").type.value_type == ARROW_TYPES[wide]
    assert dict(published_bytes(tables)) == {
        "a": bytes(np.arange(8, dtype="<i2")),
        "b": bytes(large),
        "c": bytes(np.arange(8, dtype="<i2")),
    }
    assert verify_waveforms(tables.waveforms()).altered == ()
    assert set(tables.published(["a", "b", "c"])) == {"a", "b", "c"}
    assert tables.remarks() == []


@pytest.mark.parametrize(("has", "brings"), [("int", "float"), ("long", "double"), ("double", "int")])
def test_a_file_of_another_kind_of_number_is_not_taken(settings, has, brings):
    tables = tables_of(settings, has)
    publish(tables, "old", published_row("a"), samples=has)
    with pytest.raises(Altered, match=f"samples of type {brings}, table ecg.waveforms has {has}"):
        publish(tables, "new", published_row("b"), samples=brings)
    assert tables.sample_type() == has
    assert set(tables.published(["a", "b"])) == {"a"}


def test_a_declaration_that_the_table_cannot_follow_is_refused_before_anything_is_read(tmp_path):
    rig = Rig(tmp_path)
    rig.publish("a")
    stream = rig.deployment.stream(STREAM)
    check_samples(stream.model_copy(update={"samples": "long"}), rig.tables.sample_type())
    check_samples(stream, None)
    with pytest.raises(BadInput, match="declares samples: float, its table has int, which can only become long"):
        check_samples(stream.model_copy(update={"samples": "float"}), rig.tables.sample_type())
    with pytest.raises(BadInput, match="its table has double; declare double"):
        check_samples(stream, "double")


@pytest.mark.parametrize(
    ("wrong", "right"), [("int", "float"), ("int", "double"), ("double", "long"), ("long", "float")]
)
def test_a_stream_whose_first_declaration_was_wrong_is_declared_anew_while_nothing_was_published(
    settings, wrong, right
):
    before = tables_of(settings, wrong)
    head = before.commit(None, first_head(), [])  # a batch of misfits alone
    before.data_folder()
    assert before.sample_type() is None
    tables = tables_of(settings, right)
    sample_format = {"float": "f32le", "double": "f64le", "long": "i64le", "int": "i32le"}[right]
    raw = {"float": ODD_F32, "double": ODD_F64}.get(right, np.arange(4)).astype(FORMAT_DTYPES[sample_format])
    row = published_row("a", raw=raw, sample_format=sample_format)
    tables.commit(head, head.next(), [stage(tables.data_folder(), "new", [row], samples=right)])
    assert tables.sample_type() == right
    assert dict(published_bytes(tables)) == {"a": raw.tobytes()}
    assert [f.name for f in tables.waveforms().schema().fields] == list(PUBLISHED_DOCS)
    schema = tables.waveforms().schema()
    assert [f.doc for f in schema.fields] == list(PUBLISHED_DOCS.values())
    assert schema.find_field("samples").required
    assert verify_waveforms(tables.waveforms()).altered == ()
    assert tables.remarks() == []
    # From now on it is what it is.
    other = {"int": "float", "long": "float"}.get(right, "int")
    with pytest.raises(Altered, match=f"table ecg.waveforms has {right}"):
        publish(tables, "other", published_row("b"), samples=other)
    assert [h.sequence for h in tables.heads()] == [head.sequence + 1, head.sequence]


def test_a_table_that_had_rows_once_keeps_its_type(tmp_path):
    rig = Rig(tmp_path)
    rig.publish("a")
    rig.tables.waveforms().delete("waveform_id == 'a'")
    assert rig.ids() == []
    assert rig.tables.sample_type() == "int"
    stream = rig.deployment.stream(STREAM)
    with pytest.raises(BadInput) as refused:
        check_samples(stream.model_copy(update={"samples": "float"}), rig.tables.sample_type())
    assert "declare another stream, with a group of its own, on topic t, samples: float" in refused.value.message


@pytest.mark.parametrize("kind", [BinaryType(), ListType(9, StringType(), element_required=False)])
def test_a_table_of_an_older_layout_is_refused_by_a_sentence(settings, kind):
    catalog = open_catalog(settings)
    catalog.create_namespace("ecg")
    fields = [NestedField(1, "waveform_id", StringType()), NestedField(2, "samples", kind)]
    catalog.create_table("ecg.waveforms", Schema(*fields))
    tables = tables_of(settings)
    for use in (tables.head, tables.waveforms, lambda: read_waveforms(tables), lambda: tables.published(["a"])):
        with pytest.raises(BadInput, match="migrates no table of an older layout: declare the stream under another"):
            use()


@pytest.mark.parametrize("encoding", ["fast", "small"])
def test_what_is_no_number_keeps_its_bits(settings, encoding):
    tables = tables_of(settings, "float")
    raw = np.tile(ODD_F32, 60_000)  # of several pages
    publish(tables, "a", published_row("a", raw=raw, sample_format="f32le"), samples="float", encoding=encoding)
    assert dict(published_bytes(tables)) == {"a": bytes(raw)}
    (row,) = each_row(read_waveforms(tables))
    assert raw_samples(row).tobytes() == bytes(raw)
    assert verify_waveforms(tables.waveforms()).altered == ()


def test_a_signalling_nan_is_proven_by_its_file_where_the_column_was_widened_since(settings):
    tables = tables_of(settings, "float")
    publish(tables, "a", published_row("a", raw=ODD_F32, sample_format="f32le"), samples="float")
    publish(tables, "b", published_row("b", raw=ODD_F64, sample_format="f64le"), samples="double")
    assert verify_waveforms(tables.waveforms()).altered == ()


def test_verifying_names_each_row_that_is_not_what_was_sent(settings):
    tables = tables_of(settings)
    swapped = {**published_row("swapped"), "samples": [1, 0, *range(2, 8)]}
    short = {**published_row("short"), "samples": list(range(7))}
    strange = {**published_row("strange"), "sample_format": "i24le"}
    publish(tables, "some", published_row("a"), swapped, short, strange, published_row("b"))
    found = verify_waveforms(tables.waveforms())
    assert (found.files, found.rows, found.more) == (1, 5, 0)
    assert {r.waveform_id: r.why.split(",")[0] for r in found.altered} == {
        "swapped": f"digest says {published_row('swapped')['digest']}",
        "short": "has 7 samples",
        "strange": "sample_format is 'i24le'",
    }


def test_an_altered_row_that_is_deleted_can_be_published_anew_and_one_that_stands_is_known(settings):
    """The way out that `verify-table` names: while the row stands, its pieces are replays, whatever its samples are."""
    tables = tables_of(settings)
    altered = {**published_row("w"), "samples": [1, 0, *range(2, 8)]}
    publish(tables, "first", altered)
    publish(tables, "second", published_row("b"))
    assert [r.waveform_id for r in verify_waveforms(tables.waveforms()).altered] == ["w"]
    assert tables.published({"w", "b"}).keys() == {"w", "b"}
    head = tables.head()
    tables.waveforms().delete("waveform_id == 'w'")
    tables = tables_of(settings)
    assert tables.head().sequence == head.sequence
    assert tables.published({"w", "b"}).keys() == {"b"}
    publish(tables, "again", published_row("w"))
    assert verify_waveforms(tables.waveforms()).altered == ()
    assert tables.published({"w", "b"}).keys() == {"w", "b"}


def without(name):
    return lambda table: table.drop_columns([name])


def instead(name, values, kind):
    return lambda t: t.set_column(t.schema.get_field_index(name), pa.field(name, kind), pa.array(values, kind))


@pytest.mark.parametrize(
    "change",
    [
        without("digest"),
        instead("samples", [None], pa.list_(pa.int32())),
        instead("samples", [[1, None]], pa.list_(pa.int32())),
        instead("samples", [["x"]], pa.list_(pa.string())),
        instead("waveform_id", [None], pa.string()),
        None,
    ],
    ids=["no-digest", "no-samples", "a-sample-missing", "samples-as-text", "no-id", "no-parquet"],
)
def test_a_file_that_somebody_exchanged_is_named_and_the_others_are_looked_at(settings, change):
    tables = tables_of(settings)
    publish(tables, "first", published_row("a"))
    publish(tables, "second", published_row("b"))
    (path,) = tables.data_folder().rglob("first*.parquet")
    if change is None:
        path.unlink()
        path.write_bytes(b"PAR1 and no more")
    else:
        changed = change(pq.read_table(path))
        path.unlink()
        pq.write_table(changed, path)
    found = verify_waveforms(tables.waveforms())
    assert found.rows == 2
    (row,) = found.altered
    assert row.file.endswith(path.name)


def test_the_command_says_how_much_was_proven_and_fails_by_name(tmp_path, monkeypatch, capsys):
    rig = Rig(tmp_path)
    rig.publish("a", "b")
    monkeypatch.setenv("WAVESTITCH_CONFIG", str(tmp_path / "wavestitch.toml"))

    def run(*words: str) -> int:
        monkeypatch.setattr(sys, "argv", ["wavestitch", "verify-table", STREAM, *words])
        with pytest.raises(SystemExit) as end:
            cli.main()
        return int(end.value.code or 0)

    assert run("--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["rows"], found["bytes"], found["altered"]) == (2, 32, [])
    rows = [{**published_row(i), "samples": [9] * 8} for i in ("c", "d\u202e\x9b31m\u200b")]
    path = stage(rig.tables.data_folder(), "bad", rows)
    head = rig.tables.head()
    rig.tables.commit(head, head.next(), [path])
    assert run() == 1
    said = capsys.readouterr()
    assert "2 are not what was sent" in said.out
    assert "'c'" in said.err
    assert run("--json") == 1
    said = capsys.readouterr().out
    assert said.isascii()
    assert '"d\\u202e\\u009b31m\\u200b"' in said


class TestReaders:
    """`SELECT source, list_avg(samples)`: what people do. Spark's is in `test_spark_reads_tables.py`."""

    @pytest.fixture(params=["int", "long", "float", "double"])
    def kind(self, request) -> str:
        return request.param

    @pytest.fixture
    def table(self, settings, kind):
        """Long ones that are cut into pages, and short ones that share them, in both encodings."""
        tables = tables_of(settings, kind)
        for n, encoding in enumerate(("fast", "small")):
            rows = [published_row(f"{encoding}-{i}", size=size) for i, size in enumerate((2_000_000, 2, 700, 16))]
            publish(tables, encoding, *rows, samples=kind, encoding=encoding)
            assert n in (0, 1)
        return tables.waveforms()

    def expected(self) -> dict[str, float]:
        sizes = enumerate((2_000_000, 2, 700, 16))
        means = {i: float(np.mean(np.arange(size // 2).astype("<i2"))) for i, size in sizes}
        return {f"{e}-{i}": mean for e in ("fast", "small") for i, mean in means.items()}

    def test_duckdb_reads_the_files(self, table):
        files = [task.file.file_path for task in table.scan().plan_files()]
        asked = "SELECT waveform_id, source, list_avg(samples) FROM read_parquet($files)"
        rows = duckdb.execute(asked, {"files": files}).fetchall()
        assert {i: mean for i, _, mean in rows} == pytest.approx(self.expected())
        assert {source for _, source, _ in rows} == {"bench"}

    def test_duckdb_reads_what_pyiceberg_gives_it(self, table):
        connection = table.scan(selected_fields=("waveform_id", "samples")).to_duckdb("waves")
        rows = connection.execute("SELECT waveform_id, list_avg(samples) FROM waves").fetchall()
        assert dict(rows) == pytest.approx(self.expected())

    def test_polars_reads_the_table(self, table, monkeypatch):
        monkeypatch.setenv("POLARS_ICEBERG_PLANNER", "pyiceberg")  # it warns that another package would plan faster
        samples = pl.col("samples").cast(pl.List(pl.Float64))  # of floats it would add up floats
        found = pl.scan_iceberg(table).select("waveform_id", samples.list.mean()).collect()
        assert dict(found.iter_rows()) == pytest.approx(self.expected())

    def test_pyiceberg_reads_the_table(self, table, kind):
        found = table.scan(row_filter="source = 'bench'").to_arrow()
        assert found.schema.field("samples").type.value_type == ARROW_TYPES[kind]
        means = {r["waveform_id"].as_py(): np.mean(r["samples"].values.to_numpy(), dtype="f8") for r in _rows(found)}
        assert means == pytest.approx(self.expected())


def _rows(found: pa.Table):
    return ({n: found[n][i] for n in ("waveform_id", "samples")} for i in range(len(found)))
