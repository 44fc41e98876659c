"""The page about reading, line by line; and what it does not show."""

from __future__ import annotations

import doctest
import json
import os
import re
import stat
import sys
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from zoneinfo import ZoneInfo

import numpy as np
import pytest
from rich.table import Table

import wavestitch
from tests.builders.table_rows import NOON, published_row, stage
from tests.builders.waveforms import make_waveform
from tests.conftest import ROOT
from tests.domain.reading_rig import declare_streams, publish, row
from wavestitch import cli, cli_waveforms, terminal
from wavestitch.contracts.errors import BadInput, Refused, WavestitchError
from wavestitch.contracts.quantities import time_ns
from wavestitch.reading.drawing import draw
from wavestitch.reading.sketch import sketch
from wavestitch.settings import load_settings
from wavestitch.tables.lookup.file_scans import files_to_read
from wavestitch.tables.lookup.row_filter import is_in

pytestmark = pytest.mark.filterwarnings("error")


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("WAVESTITCH_CONFIG", str(declare_streams(tmp_path)))
    return load_settings()


@pytest.fixture
def ecg(settings):
    return wavestitch.open("ecg")


def test_every_line_of_the_page_does_what_it_says(ecg, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    publish(ecg, row("m1-0", 0), row("m1-1", 10))
    publish(ecg, row("m1-2", 30))
    page = (ROOT / "docs" / "reading.md").read_text()
    text = "\n".join(re.findall(r"```python\n(.*?)```", page, re.DOTALL))
    found = doctest.DocTestParser().get_doctest(text, {}, "docs/reading.md", "docs/reading.md", 0)
    assert len(found.examples) > 15
    said: list[str] = []
    doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE).run(found, out=said.append)
    assert said == []


def test_settings_may_be_given_and_what_is_not_there_is_refused(settings, monkeypatch):
    monkeypatch.delenv("WAVESTITCH_CONFIG")
    empty = wavestitch.open("empty", settings)
    with pytest.raises(Refused, match="nothing was published"):
        list(empty.waveforms())
    with pytest.raises(BadInput, match="known are: ecg, empty"):
        wavestitch.open("nothing", settings)


@pytest.mark.parametrize("asked", [{"start": "noon"}, {"start": datetime(2026, 1, 5)}, {"end": "2026-01-05"}])
def test_times_that_are_none_or_have_no_zone_are_refused(ecg, asked):
    publish(ecg, row("m1-0", 0))
    with pytest.raises(BadInput, match=r"is not a time|no time zone"):
        list(ecg.waveforms(**asked))


def test_samples_cannot_be_changed_by_accident(ecg):
    publish(ecg, row("m1-0", 0))
    (one,) = ecg.waveforms()
    with pytest.raises(ValueError, match="read-only"):
        one.samples[0] = 1


def test_where_batches_keep_an_index_one_id_opens_one_file(ecg, settings):
    # Each file has ids from one end of the alphabet to the other: bounds rule out none.
    for n in range(3):
        publish(ecg, row(f"a{n}", 0), row(f"m{n}", 10), row(f"z{n}", 20))
    assert [w.id for w in ecg.waveforms(ids=["m1"])] == ["m1"]
    assert ecg._tables.files_with(ecg._table(), ["m1"]) is None
    assert len(files_to_read(ecg._tables.waveforms(), is_in("waveform_id", ["m1"]))) == 3
    ecg._tables.published(["m1"])  # as each batch does it
    (task,) = ecg._tables.files_with(ecg._table(), ["m1"])
    for other in files_to_read(ecg._tables.waveforms()):
        if other.file.file_path != task.file.file_path:
            Path(other.file.file_path.removeprefix("file://")).unlink()
    assert [w.id for w in ecg.waveforms(ids=["m1", "unknown"])] == ["m1"]
    (settings.cache / "ids").chmod(0o777)  # somebody else's index is not believed: then all that can have it are opened
    with pytest.raises(WavestitchError):
        list(ecg.waveforms(ids=["m1"]))


def test_what_is_no_number_is_a_gap(settings):
    (settings.streams / "waves.yaml").write_text("topic: w\ngroup: w\nsamples: float\n")
    waves = wavestitch.open("waves", settings)
    raw = np.array([np.nan, 1, 2, np.inf, -np.inf, 3, np.nan], "<f4")
    waves._tables.data_folder()
    publish(waves, published_row("a", raw=raw, sample_format="f32le"), samples="float")
    (one,) = waves.waveforms()
    assert one.gaps == [(0, 1), (3, 5), (6, 7)]


@pytest.mark.parametrize("zone", [UTC, ZoneInfo("Europe/Berlin"), timezone(-timedelta(hours=9, minutes=30))])
def test_an_interval_is_the_same_in_every_zone(ecg, zone):
    summer = datetime(2026, 7, 1, 12, tzinfo=UTC)
    publish(ecg, row("a", 0, start_time=summer, end_time=summer, start_time_ns=time_ns(summer)))
    start, end = summer.astimezone(zone), (summer + timedelta(seconds=5)).astimezone(zone)
    assert len(ecg.series("monitor-1", start, end).physical) == 1800
    assert [w.id for w in ecg.waveforms(start=start, end=end)] == ["a"]


def test_a_zone_whose_offset_has_seconds_is_a_zone(ecg):
    publish(ecg, row("m1-0", 0))
    (found,) = ecg.waveforms(start=datetime(1930, 1, 1, tzinfo=ZoneInfo("Africa/Monrovia")))
    assert found.id == "m1-0"


def test_one_text_is_no_collection_of_ids(ecg):
    publish(ecg, row("m", 0))
    with pytest.raises(BadInput, match=re.escape("write ids=['m1']")):
        list(ecg.waveforms(ids="m1"))


def test_what_widens_while_it_is_read_is_as_it_was(ecg, monkeypatch):
    publish(ecg, row("m1-0", 0))
    look, looks = type(ecg)._table, []

    def widened_after_it(self):
        looks.append(look(self))
        if len(looks) == 1:
            head = self._tables.head()
            staged = stage(self._tables.data_folder(), "wide", [row("m1-1", 10)], samples="long")
            self._tables.commit(head, head.next(), [staged])
        return looks[-1]

    monkeypatch.setattr(type(ecg), "_table", widened_after_it)
    assert ecg.to_arrow()["waveform_id"].to_pylist() == ["m1-0"]
    assert ecg.to_arrow().num_rows == 2


def test_the_command_lists_what_is_published_and_reads_no_samples(ecg, monkeypatch, capsys):
    publish(ecg, row("m1-0", 0), row("v5", 0, channel="V5"), row("m1-1", 10))

    def run(*words: str) -> str:
        monkeypatch.setattr(sys, "argv", ["wavestitch", "waveforms", "ecg", *words])
        monkeypatch.setenv("COLUMNS", "400")
        with pytest.raises(SystemExit) as end:
            cli.main()
        assert not end.value.code
        return capsys.readouterr().out

    found = json.loads(run("--channel", "II", "--start", "2026-01-05T12:00:05Z", "--json"))
    assert [w["waveform_id"] for w in found["waveforms"]] == ["m1-1"]
    assert found["waveforms"][0]["sample_count"] == 3600
    assert "samples" not in found["waveforms"][0]
    assert not found["more"]
    said = run("--most", "2")
    assert "m1-0" in said
    assert "there are more than 2" in said
    assert "V5" in run("v5")


def test_a_list_has_all_of_each_id_and_of_each_rate_one_line_each_in_a_pipe(ecg, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "60")
    long = "ward-7/monitor-1/2026-01-05T12:00:00Z/lead-II/000000"
    publish(ecg, row(f"{long}1", 0), row(f"{long}2", 10, sampling_rate_hz=359.9999999))
    cli_waveforms.waveforms("ecg")
    _, one, other = capsys.readouterr().out.splitlines()
    assert one.split() == [f"{long}1", "monitor-1", "II", "2026-01-05", "12:00:00.000000", "10", "360", "3600", "mV"]
    assert other.split()[0] == f"{long}2"
    assert other.split()[6] == "359.9999999"


def test_in_a_narrow_terminal_what_is_long_is_folded(capsys):
    table = Table(box=None)
    table.add_column("waveform")
    table.add_row("a" * 70)
    terminal.HarmlessConsole(width=40, force_terminal=True).print_table(table)
    assert capsys.readouterr().out.count("a") == 70 + "waveform".count("a")


def test_bytes_that_are_no_utf8_are_refused_by_the_command(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["wavestitch", "held", "ecg", "show", "\udcff"])
    with pytest.raises(SystemExit, match="2"):
        cli.main()
    assert r"the command has '\udcff', which is no text in UTF-8" in " ".join(capsys.readouterr().err.split())


def test_the_command_exports_what_is_asked_for_and_nothing_where_one_does_not_fit(ecg, monkeypatch, capsys, tmp_path):
    publish(ecg, row("m1-0", 0), row("m1-1", 10), row("odd", 20, channel="V5", adc_gain=-1.0))
    into = tmp_path / "files"

    def run(*words: str) -> object:
        monkeypatch.setattr(sys, "argv", ["wavestitch", "export", "ecg", "--into", str(into), *words])
        monkeypatch.setenv("COLUMNS", "400")
        with pytest.raises(SystemExit) as end:
            cli.main()
        return end.value.code or 0

    assert run("--to", "edf") == 3
    said = " ".join(capsys.readouterr().err.split())  # lines end where the terminal does
    assert "waveform 'odd' cannot be written as edf exactly: it has adc_gain -1.0; edf takes a gain above 0" in said
    assert "take mseed, hdf5, parquet, npz for it" in said
    assert not into.exists()
    assert run("--to", "edf", "--channel", "II", "--json") == 0
    files = json.loads(capsys.readouterr().out)["files"]
    assert sorted(files) == ["m1-0", "m1-1"]
    assert {Path(f) for f in files.values()} == set(into.iterdir())
    assert run("m1-0", "--to", "npz") == 0
    assert capsys.readouterr().out.rstrip().endswith(".npz: m1-0")
    first, second = sorted(into.glob("*.edf"))
    second.unlink()  # an export that was stopped goes on
    assert run("--to", "edf", "--channel", "II", "--json") == 0
    assert json.loads(capsys.readouterr().out)["files"] == files
    first.write_bytes(b"somebody's")
    second.unlink()
    assert run("--to", "edf", "--channel", "II") == 2
    said = " ".join(capsys.readouterr().err.split())
    assert "exists already, for waveform 'm1-0', and is not what would be written" in said
    assert (first.read_bytes(), second.exists()) == (b"somebody's", False)
    assert run("unknown", "--to", "edf") == 2
    assert run("m1-0", "unknown", "--to", "hdf5") == 2
    assert "published waveform that is meant, e.g. 'unknown': leave" in " ".join(capsys.readouterr().err.split())
    assert not list(into.glob("*.h5"))
    assert run("m1-0", "--to", "doc") == 2


def test_a_plot_is_a_picture_whatever_a_producer_calls_things_and_never_replaces_a_file(ecg, tmp_path):
    publish(ecg, row("$\\frac{1}{$", 0, source="a\x1b[31m$x$", units="$m"))
    (one,) = ecg.waveforms()
    path = tmp_path / "one.png"
    draw(one, path)
    assert path.read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"
    with pytest.raises(BadInput, match="exists; name another"):
        cli_waveforms.plot("ecg", one.id, path)
    with pytest.raises(BadInput, match="has published no waveform 'unknown'"):
        cli_waveforms.plot("ecg", "unknown", tmp_path / "two.png")


def test_a_plot_is_for_owner_and_group_whatever_the_umask_and_follows_no_link(ecg, tmp_path):
    publish(ecg, row("m1-0", 0))
    before = os.umask(0)
    try:
        cli_waveforms.plot("ecg", "m1-0", tmp_path / "one.png")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "one.png").stat().st_mode) == 0o640
    (tmp_path / "link.png").symlink_to(tmp_path / "elsewhere.png")
    with pytest.raises(BadInput, match="exists; name another"):
        cli_waveforms.plot("ecg", "m1-0", tmp_path / "link.png")
    assert sorted(p.name for p in tmp_path.glob("*.png") if p.name != "link.png") == ["one.png"]
    assert not list(tmp_path.glob(".*.tmp"))


def test_what_no_axis_of_a_picture_reaches_is_refused_by_name(tmp_path):
    for least, most in ((-1e300, 1e300), (5e-324, 0), (np.nan, np.inf)):
        draw(make_waveform([least, most], sample_format="f64le", adc_gain=1.0), tmp_path / f"{most}.png")
    with pytest.raises(BadInput, match=r"'m1-0' reaches to 1\.7e\+308 mV; a picture's axis goes to 1e\+300"):
        draw(make_waveform([1.7e308], sample_format="f64le", adc_gain=1.0), tmp_path / "far.png")


def test_in_a_terminal_a_waveform_is_dots_from_its_least_to_its_greatest_sample(ecg, capsys):
    publish(ecg, row("m1-0", 0, source="a\x1b[31m"))
    cli_waveforms.plot("ecg", "m1-0")
    said = capsys.readouterr().out
    assert "\x1b" not in said
    lines = said.splitlines()
    # It rises from the lower left to the upper right.
    assert re.match(r"17.995 {20,}[⠁-⣿]{1,9}$", lines[1])
    assert re.match(r" +0 [⠁-⣿]{1,9} *$", lines[10])
    assert "mV, 10 s from 2026-01-05 12:00:00 UTC" in lines[11]


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([0, 1], ["1 ⠈", "0 ⡀"]),
        ([1, 1], ["1 ⣀", "1  "]),
        ([np.nan, np.inf], ["0  ", "0  "]),
        ([-1.7e308, 1.7e308], [" 1.7e+308 ⠈", "-1.7e+308 ⡀"]),
    ],
)
def test_what_is_no_number_has_no_dot_and_no_value_is_too_large(values, expected):
    assert sketch(make_waveform(values, sample_format="f64le", adc_gain=1.0), width=1, height=2)[:2] == expected


def test_samples_of_several_formats_are_no_one_array(ecg):
    publish(ecg, row("m1-0", 0), row("m1-1", 10, sample_format="i32le"))
    with pytest.raises(BadInput, match="formats i16le, i32le; one array has samples of one format"):
        ecg.to_xarray()
    with pytest.raises(BadInput, match="there is no waveform"):
        ecg.to_xarray(source="nobody")


class TestSeries:
    def ask(self, ecg, start=0, end=60, **more):
        return ecg.series("monitor-1", NOON + timedelta(seconds=start), NOON + timedelta(seconds=end), **more)

    def test_it_is_cut_where_it_is_asked_for_also_inside_a_waveform_that_began_before(self, ecg):
        publish(ecg, row("m1-0", 0), row("m1-1", 10))
        found = self.ask(ecg, 5, 12)
        assert len(found.physical) == 7 * 360
        assert found.physical[0] == 1800 / 200
        assert found.times[0] == np.datetime64("2026-01-05T12:00:05")
        assert found.gaps == []

    def test_waveforms_that_overlap_or_are_of_another_rate_are_refused_by_name(self, ecg):
        publish(ecg, row("m1-0", 0), row("m1-1", 9))
        with pytest.raises(BadInput, match="'m1-1' begins 360 samples before"):
            self.ask(ecg)
        publish(ecg, row("m1-2", 25), row("m1-3", 100, sampling_rate_hz=250.0))
        with pytest.raises(BadInput, match=r"'m1-3' has 250.0 Hz"):
            self.ask(ecg, 20, 200)

    def test_of_several_channels_one_is_named(self, ecg):
        publish(ecg, row("m1-0", 0), row("v5", 0, channel="V5"))
        with pytest.raises(BadInput, match=r"channels, e\.g\. II and V5; name one"):
            self.ask(ecg)
        assert self.ask(ecg, channel="V5").waveforms == ("v5",)

    def test_nothing_is_no_series(self, ecg):
        publish(ecg, row("m1-0", 0))
        with pytest.raises(BadInput, match="has nothing of source"):
            self.ask(ecg, 20, 30)
        with pytest.raises(BadInput, match="name both"):
            ecg.series("monitor-1", None, datetime(2026, 1, 5, tzinfo=UTC))
