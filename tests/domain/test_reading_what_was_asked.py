"""What a reader asks for is what is read: however it is said, of one state of the table, and no more than that."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import wavestitch
from tests.builders.table_rows import NOON
from tests.deployment_rig import eventually
from tests.domain.reading_rig import declare_streams, publish, row
from wavestitch.contracts.errors import BadInput, WavestitchError
from wavestitch.contracts.quantities import time_ns
from wavestitch.reading.stream import OpenStream
from wavestitch.settings import load_settings

NOON_NS = time_ns(NOON)


@pytest.fixture
def ecg(tmp_path: Path) -> OpenStream:
    return wavestitch.open("ecg", load_settings({"WAVESTITCH_CONFIG": str(declare_streams(tmp_path))}))


def ids(found: Iterable[Any]) -> list[str]:
    return sorted(one.id for one in found)


@pytest.mark.parametrize("indexed", [False, True])
def test_ids_may_be_whatever_can_be_read_once(ecg: OpenStream, tmp_path: Path, *, indexed: bool) -> None:
    publish(ecg, row("a", 0), row("b", 10), row("c", 20))
    if indexed:
        ecg._tables.published(["a"])  # as each batch does it
    named = ["a", "c"]
    for said in (iter(named), (i for i in named), np.array(named), dict.fromkeys(named)):
        assert ids(ecg.waveforms(ids=said)) == named
    assert ecg.to_arrow(ids=iter(named))["waveform_id"].to_pylist() == named
    assert [one.waveform_id for one in ecg.export(tmp_path / "files", "npz", ids=iter(named))] == named


def test_ids_are_read_by_whoever_may_not_look_at_the_index_of_them(ecg: OpenStream, tmp_path: Path) -> None:
    publish(ecg, row("a", 0), row("b", 10))
    nobody_may = str(tmp_path / ("n" * 300))  # such a name is refused to root, too
    settings = {"WAVESTITCH_CONFIG": str(tmp_path / "wavestitch.toml"), "WAVESTITCH_CACHE": nobody_may}
    elsewhere = wavestitch.open("ecg", load_settings(settings))
    assert ids(elsewhere.waveforms(ids=["b"])) == ["b"]


@pytest.mark.parametrize(
    ("asked", "why"),
    [
        ({"ids": [7]}, "ids has 7, which is no text"),
        ({"ids": b"a"}, "ids has 97, which is no text"),
        ({"ids": ["a", "\udcff"]}, r"ids has '\\udcff', which is no text in UTF-8"),
        ({"source": "\ud800"}, r"source has '\\ud800', which is no text in UTF-8"),
    ],
)
def test_what_no_waveform_can_be_called_is_refused(ecg: OpenStream, asked: dict[str, Any], why: str) -> None:
    publish(ecg, row("a", 0))
    with pytest.raises(BadInput, match=why):
        list(ecg.waveforms(**asked))


def test_an_interval_is_half_open_to_the_nanosecond(ecg: OpenStream) -> None:
    publish(
        ecg, row("early", 0, start_time_ns=NOON_NS + 100), row("late", 0, start_time_ns=NOON_NS + 900, channel="V5")
    )
    (late,) = ecg.waveforms(channel="V5")
    for bound in (late.times[0], f"{late.times[0]}Z"):
        assert ids(ecg.waveforms(start=bound)) == ["late"]
        assert ids(ecg.waveforms(end=bound)) == ["early"]
    assert ids(ecg.waveforms(start="2026-01-05T12:00:00.000000100Z", end="2026-01-05T12:00:00.000000101Z")) == ["early"]
    assert ids(ecg.waveforms(start="0001-01-01T00:00:00+02:00", end="9999-12-31T23:00:00-02:00")) == ["early", "late"]
    cut = ecg.series("monitor-1", late.times[0], late.times[2], channel="V5")
    assert len(cut.physical) == 2


def test_an_export_is_of_one_state_of_the_table(
    ecg: OpenStream, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    publish(ecg, row("a", 0))
    look = type(ecg._tables).waveforms

    def then_an_ingest(self: Any) -> Any:
        found = look(self)
        monkeypatch.undo()
        publish(ecg, row("odd", 10, adc_gain=-1.0))
        return found

    monkeypatch.setattr(type(ecg._tables), "waveforms", then_an_ingest)
    assert [one.waveform_id for one in ecg.export(tmp_path / "files", "edf")] == ["a"]
    assert ids(ecg.waveforms()) == ["a", "odd"]


def test_a_series_that_is_refused_reads_no_samples(ecg: OpenStream) -> None:
    publish(ecg, row("a", 0), row("b", 10), row("other", 0, channel="V5"))
    for task in ecg._table().scan().plan_files():
        spoil_samples(Path(task.file.file_path.removeprefix("file://")))
    end = NOON + timedelta(hours=1)
    with pytest.raises(BadInput, match="7,200 samples or more at 360 Hz; allowed are 7,000"):
        ecg.series("monitor-1", NOON, end, channel="II", most=7000)
    with pytest.raises(BadInput, match=r"several channels, e\.g\. II and V5; name one"):
        ecg.series("monitor-1", NOON, end)
    with pytest.raises(WavestitchError, match="waveforms"):
        ecg.series("monitor-1", NOON, end, channel="II")


def spoil_samples(path: Path) -> None:
    group = pq.ParquetFile(path).metadata.row_group(0)
    columns = (group.column(n) for n in range(group.num_columns))
    (samples,) = [c for c in columns if c.path_in_schema.startswith("samples.")]
    with path.open("r+b") as file:
        file.seek(samples.dictionary_page_offset or samples.data_page_offset)
        file.write(b"\xff" * 64)


def test_who_keeps_a_waveform_keeps_no_other(ecg: OpenStream) -> None:
    long, short = np.zeros(300_000, "<i2"), np.zeros(3, "<i2")
    for n in range(3):
        publish(ecg, row(f"long{n}", 0, samples=long), row(f"short{n}", 0, samples=short, sample_count=3))
    before = pa.total_allocated_bytes()
    kept = [one for one in ecg.waveforms() if len(one) == 3]
    assert len(kept) == 3
    # Counted is the whole process: threads that read ahead let go a moment later.
    eventually(lambda: pa.total_allocated_bytes() - before < 4 * len(long))
    assert [one.samples.tolist() for one in kept] == [[0, 0, 0]] * 3
