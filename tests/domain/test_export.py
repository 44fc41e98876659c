"""Exported files, read back by each format's own library: exactly the table's, or there is no file."""

from __future__ import annotations

import errno
import fcntl
import os
import re
import shutil
import stat
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import polars
import pymseed
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.builders.waveforms import make_waveform
from tests.conftest import ROOT
from tests.domain.format_readers import READERS
from tests.security.hostile_names import PATHS
from wavestitch.contracts.errors import Altered, BadInput, Refused, Transient
from wavestitch.contracts.sample_types import FORMAT_DTYPES
from wavestitch.reading import export
from wavestitch.reading.exactness import EXACT, FORMATS, Format, Row, Rule, broken_rule
from wavestitch.reading.export import check_rows, export_name, file_format, write_files
from wavestitch.reading.formats.file_format import FileFormat
from wavestitch.reading.waveform import Waveform

# wfdb asks pandas for what goes some day.
pytestmark = pytest.mark.filterwarnings("error", "ignore:The inplace keyword:DeprecationWarning")


def write(waveform: Waveform, to: Format, into: Path) -> Path:
    (done,) = write_files([waveform], to=to, into=into)
    return done.path


def same_as_sent(waveform: Waveform, to: Format, path: Path) -> None:
    said = READERS[to](path)
    sent = waveform.samples
    assert said.samples.dtype.kind == sent.dtype.kind
    # The readers of miniSEED and WFDB give whole numbers in wider types than they are stored in.
    assert said.samples.dtype == sent.dtype or to in WIDER
    assert np.array_equal(said.samples, sent, equal_nan=sent.dtype.kind == "f")
    assert said.samples.astype(sent.dtype).tobytes() == sent.tobytes()
    assert (said.rate_hz, said.start_ns, said.units) == (waveform.rate_hz, waveform.start_ns, waveform.units)
    assert (said.gain, said.baseline, said.channel) == (waveform.gain, waveform.baseline, waveform.channel)


WIDER = ("mseed", "wfdb")
CASES: list[tuple[str, Waveform, str]] = [
    ("16 bits", make_waveform([-(2**15) + 1, 2**15 - 1, 0], sampling_rate_hz=1.0), "all"),
    ("16 bits, the least too", make_waveform([-(2**15), 2**15 - 1], sampling_rate_hz=1.0), "all"),
    ("32 bits", make_waveform([-(2**31) + 1, 2**31 - 1, 0], sample_format="i32le"), "all but edf"),
    ("32 bits, the least too", make_waveform([-(2**31), 2**31 - 1], sample_format="i32le"), "mseed hdf5 parquet npz"),
    ("64 bits", make_waveform([-(2**63), 2**53 + 1], sample_format="i64le"), "hdf5 parquet npz"),
    ("floats", make_waveform([np.nan, -0.0, 1e-40, np.inf], sample_format="f32le"), "mseed hdf5 parquet npz"),
    ("doubles", make_waveform([np.nan, -0.0, 5e-324], sample_format="f64le"), "mseed hdf5 parquet npz"),
    ("a rate with a fraction", make_waveform([1] * 1000, sampling_rate_hz=128.5), "all but edf"),
    ("a rate that lasts a fraction", make_waveform([1] * 1000, sampling_rate_hz=62.5), "all"),
    ("a rate that no decimal number is", make_waveform([1] * 3, sampling_rate_hz=1 / 3), "all but edf"),
    ("a rate near to a whole one", make_waveform([1] * 3, sampling_rate_hz=360.000000001), "all but wfdb edf"),
    ("a rate that its period rounds", make_waveform([0] * 360, sampling_rate_hz=0.217), "all but mseed edf"),
    ("one sample a day", make_waveform([1, 2], sampling_rate_hz=1 / 86400), "all but wfdb edf"),
    ("a high rate", make_waveform([1] * 3000, sampling_rate_hz=5e7), "all but edf"),
    ("the highest rate", make_waveform([1] * 3, sampling_rate_hz=1e12), "wfdb hdf5 parquet npz"),
    ("a length that fills no record", make_waveform([1] * 3601), "all but edf"),
    ("one sample", make_waveform([7], sampling_rate_hz=250.0), "all"),
    ("a gain of thirds", make_waveform(adc_gain=3.0, sampling_rate_hz=1.0), "all"),
    ("a gain and a baseline", make_waveform(adc_gain=200.0, baseline=1024.0), "all but edf"),
    ("ends that floats miss", make_waveform(adc_gain=250.0, sampling_rate_hz=1.0), "all"),
    ("an end that floats miss", make_waveform(adc_gain=200.0, baseline=1.0, sampling_rate_hz=1.0), "all"),
    ("a tiny gain", make_waveform(adc_gain=1e-300, baseline=1e9, sampling_rate_hz=1.0), "all but edf"),
    ("the tiniest gain", make_waveform(adc_gain=5e-324, sampling_rate_hz=1.0), "all but edf"),
    ("a gain of no decimal number", make_waveform(adc_gain=1 / 3, sampling_rate_hz=1.0), "all but edf"),
    ("a gain below 0", make_waveform(adc_gain=-2.0, sampling_rate_hz=1.0), "all but wfdb edf"),
    ("half a count", make_waveform(baseline=0.5, sampling_rate_hz=1.0), "all but wfdb edf"),
    ("a start between microseconds", make_waveform([1] * 360, start_time_ns=1_700_000_000_000_000_001), "no wfdb edf"),
    ("a start at a microsecond", make_waveform([1] * 360, start_time_ns=1_700_000_000_000_001_000), "all"),
    ("a start before 1985", make_waveform([1] * 360, start_time_ns=-(10**18)), "all but edf"),
    ("a start in 1850", make_waveform([1] * 360, start_time_ns=-3_786_912_000 * 10**9), "all but mseed edf"),
    ("a unit in braces", make_waveform([1] * 360, units="{count}"), "all but wfdb"),
    ("a unit beyond ASCII", make_waveform([1] * 360, units="µV"), "all but wfdb edf"),
    ("a channel beyond ASCII", make_waveform([1] * 360, channel="Ⅱ"), "hdf5 parquet npz"),
    ("a long source", make_waveform([1] * 360, source="s" * 61), "all but mseed"),
    ("a source of FDSN's", make_waveform([1] * 360, source="FDSN:" + "s" * 58), "all"),
]


def formats_of(said: str) -> set[Format]:
    named: set[Format] = {to for to in FORMATS if to in said.split()}
    return set(FORMATS) - named if said.startswith(("all but", "no ")) else named or set(FORMATS)


@pytest.mark.parametrize("to", FORMATS)
@pytest.mark.parametrize(("waveform", "fits"), [c[1:] for c in CASES], ids=[c[0] for c in CASES])
def test_a_file_has_just_what_was_sent_or_is_refused_by_name_and_not_there(
    tmp_path: Path, waveform: Waveform, fits: str, to: Format
) -> None:
    if to in formats_of(fits):
        same_as_sent(waveform, to, write(waveform, to, tmp_path))
        return
    with pytest.raises(Refused, match=rf"'m1-0' cannot be written as {to} exactly: it has .*; {to} takes .*: take "):
        write(waveform, to, tmp_path)
    assert list(tmp_path.iterdir()) == []


BEYOND: list[tuple[Waveform, Format]] = [
    (make_waveform([1] * 360, channel="a\0"), "hdf5"),
    (make_waveform([1] * 360, units="mV\0"), "npz"),
    (make_waveform([1] * 360, baseline=0.5), "wfdb"),
    (make_waveform([1] * 360, channel=" II"), "wfdb"),
    (make_waveform([1] * 360, units="millivolts"), "edf"),
    (make_waveform([1] * 360, channel="c" * 17), "edf"),
    (make_waveform([1] * 360, start_time_ns=1_700_000_000_000_000_001), "edf"),
    (make_waveform([1] * 360, adc_gain=-1.0), "edf"),
]


def test_every_rule_refuses_something_and_stands_in_the_page() -> None:
    tried = [*((w.row, to) for _, w, _ in CASES for to in FORMATS), *((w.row, to) for w, to in BEYOND)]
    broken = {(to, rule.allowed) for row, to in tried for rule in EXACT[to] if not _holds(rule, row)}
    every = {(to, rule.allowed) for to, rules in EXACT.items() for rule in rules}
    assert every - broken == {(to, EXACT[to][0].allowed) for to in ("hdf5", "parquet", "npz")}  # they take all formats
    page = (ROOT / "docs" / "reading.md").read_text()
    for to, rules in EXACT.items():
        (line,) = re.findall(rf"^\| {to} \|.*$", page, re.MULTILINE)
        assert line == f"| {to} | {rules[0].allowed} | {'; '.join(r.allowed for r in rules[1:]) or 'anything'} |"


def _holds(rule: Rule, row: Row) -> bool:
    # A rule about samples of 16 bits is asked of waveforms that have such ones alone.
    return row["sample_min"] is None or rule.holds(row)


@pytest.mark.parametrize("gain", [1.0, 5.0, 20.0, 100.0, 200.0, 250.0, 400.0, 500.0, 1000.0])
def test_usual_gains_and_baselines_that_edf_is_found_to_carry_are_carried(tmp_path: Path, gain: float) -> None:
    offered = [make_waveform(sampling_rate_hz=1.0, adc_gain=gain, baseline=b) for b in (0.0, 1.0, -1.0, 12.0, 1024.0)]
    taken = [w for w in offered if broken_rule(w.row, "edf") is None]
    assert taken
    for n, waveform in enumerate(taken):
        same_as_sent(waveform, "edf", write(waveform, "edf", tmp_path / str(n)))


NUMBERS = st.one_of(
    st.integers(1, 20_000).map(float), st.floats(1e-6, 1e12), st.integers(1, 10**6).map(lambda n: n / 1000)
)
TEXTS = st.one_of(st.text("mV/s2 µ{}-", max_size=20), st.text(max_size=40)).filter(
    lambda t: t.encode("utf-8", "ignore").decode() == t
)


@st.composite
def waveforms(draw: Any) -> Waveform:
    sample_format = draw(st.sampled_from(["i16le", *FORMAT_DTYPES]))
    width = np.dtype(FORMAT_DTYPES[sample_format]).itemsize
    count = draw(st.one_of(st.integers(1, 50), st.integers(1, 8).map(lambda n: n * 360)))
    raw = draw(st.binary(min_size=count * width, max_size=count * width)) if count <= 50 else bytes(count * width)
    return make_waveform(
        np.frombuffer(raw, FORMAT_DTYPES[sample_format]),
        sample_format=sample_format,
        sampling_rate_hz=draw(NUMBERS),
        adc_gain=draw(
            st.one_of(st.sampled_from([1.0, 200.0, 2.5, 1000.0]), NUMBERS, st.floats(-1e9, 1e9).filter(bool))
        ),
        baseline=draw(st.one_of(st.just(0.0), st.integers(-(2**16), 2**16).map(float), st.floats(-1e12, 1e12))),
        units=draw(st.one_of(st.just("mV"), TEXTS)),
        channel=draw(st.one_of(st.just("II"), TEXTS)),
        source=draw(TEXTS),
        start_time_ns=draw(
            st.one_of(st.integers(0, 4 * 10**15).map(lambda us: us * 1000), st.integers(-(1 << 62), 1 << 62))
        ),
    )


@settings(max_examples=60)
@given(waveform=waveforms(), to=st.sampled_from(FORMATS))
def test_whatever_the_rules_let_through_is_read_back_as_it_was_sent(
    tmp_path_factory: pytest.TempPathFactory, waveform: Waveform, to: Format
) -> None:
    into = tmp_path_factory.mktemp("export")
    if broken_rule(waveform.row, to) is None:
        same_as_sent(waveform, to, write(waveform, to, into))
    else:
        with pytest.raises(Refused):
            write(waveform, to, into)
        assert not list(into.iterdir())


def test_what_is_there_is_never_replaced_and_an_unknown_format_or_nothing_at_all_is_refused(tmp_path: Path) -> None:
    one = make_waveform([1] * 360)
    others = [make_waveform([1] * 359 + [2]), make_waveform([1] * 360, source="another")]
    for to in FORMATS:
        path = write(one, to, tmp_path)
        before = {p: (p.read_bytes(), p.stat().st_ino) for p in [path, *path.rglob("*")] if p.is_file()}
        assert before
        assert check_rows([one.row], to=to, into=tmp_path) == {"m1-0"}
        assert write(one, to, tmp_path) == path  # it is done
        for other in others:
            with pytest.raises(BadInput, match="exists already, for waveform 'm1-0', and is not what would be written"):
                write(other, to, tmp_path)
        assert {p: (p.read_bytes(), p.stat().st_ino) for p in before} == before
        place = tmp_path / "moved" / path.name
        place.parent.mkdir(exist_ok=True)
        path.rename(place)
        path.symlink_to(place)
        with pytest.raises(BadInput, match="exists already"):
            write(one, to, tmp_path)
    assert not [p for p in tmp_path.iterdir() if p.name.startswith(".")]
    with pytest.raises(BadInput, match="no format 'mat'; known are mseed, wfdb, edf, hdf5, parquet, npz"):
        file_format("mat")
    with pytest.raises(BadInput, match="no published waveform is meant"):
        check_rows([], to="npz", into=tmp_path)


def left_in_the_making(into: Path, which: int) -> tuple[Path, Path]:
    """A file, and a folder, as a process that was killed more than a day ago left them."""
    file, folder = (into / f".{digit:032x}.tmp" for digit in (2 * which, 2 * which + 1))
    file.write_bytes(b"half a file")
    folder.mkdir()
    (folder / "half.dat").write_bytes(b"half")
    for path in (file, folder / "half.dat", folder):
        os.utime(path, (0, time.time() - 25 * 3600))
    return file, folder


@pytest.mark.parametrize("to", ["npz", "wfdb"])
def test_what_a_killed_export_left_in_the_making_goes_a_day_later_whoever_has_a_lock(
    tmp_path: Path, to: Format
) -> None:
    killed = left_in_the_making(tmp_path, 0)
    beside, folder_beside = left_in_the_making(tmp_path, 1)  # of another host, whose locks are not seen here
    os.utime(beside)
    os.utime(folder_beside / "half.dat")
    strange = tmp_path / ".mine.tmp"
    strange.write_bytes(b"")
    os.utime(strange, (0, 0))
    handle = os.open(tmp_path, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        write(make_waveform([1] * 360), to, tmp_path)
    finally:
        os.close(handle)
    assert [p.exists() for p in (*killed, strange)] == [False, False, True]
    assert beside.exists()
    assert (folder_beside / "half.dat").exists()
    assert len([p for p in tmp_path.iterdir() if p.name.startswith(".")]) == 3


def test_a_folder_that_is_being_cleared_away_gets_no_name_any_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, stopped = left_in_the_making(tmp_path, 0)
    remove = shutil.rmtree

    def its_owner_goes_on(path: Path) -> None:
        with pytest.raises(FileNotFoundError):
            stopped.rename(tmp_path / "finished")
        remove(path)

    monkeypatch.setattr(shutil, "rmtree", its_owner_goes_on)
    write(make_waveform([1] * 360), "npz", tmp_path)
    assert [p.suffix for p in tmp_path.iterdir()] == [".npz"]


@pytest.mark.parametrize("to", ["npz", "wfdb"])
def test_a_file_that_is_read_back_otherwise_or_cannot_be_written_is_not_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, to: Format
) -> None:
    how = file_format(to)

    def flipped(waveform: Waveform, path: Path, name: str) -> None:
        how.write(make_waveform(waveform.samples ^ 1), path, name)

    def full(waveform: Waveform, path: Path, name: str) -> None:
        how.write(waveform, path, name)
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def puzzled(waveform: Waveform, path: Path, name: str) -> None:
        how.write(waveform, path, name)
        raise ValueError("no such field")

    one = make_waveform([1] * 360)
    monkeypatch.setattr(export, "file_format", lambda _: FileFormat(how.suffix, puzzled, how.read))
    with pytest.raises(Refused, match=r"given up by the format's own library \(ValueError: no such field\)"):
        write(one, to, tmp_path)
    monkeypatch.setattr(export, "file_format", lambda _: FileFormat(how.suffix, flipped, how.read))
    with pytest.raises(Altered, match="was read back from its new file with other samples; nothing was kept"):
        write(one, to, tmp_path)
    monkeypatch.setattr(export, "file_format", lambda _: FileFormat(how.suffix, full, how.read))
    with pytest.raises(Transient, match="No space left on device"):
        write(one, to, tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_behind_a_leap_second_every_record_of_miniseed_has_the_time_of_its_samples(tmp_path: Path) -> None:
    begin = (1_483_228_800 - 300) * 10**9
    one = make_waveform(np.arange(60_000) % 99, sampling_rate_hz=100.0, start_time_ns=begin)
    path = write(one, "mseed", tmp_path)
    same_as_sent(one, "mseed", path)
    with pymseed.MS3Record.from_file(path) as records:
        seen = [(r.starttime, r.samplecnt) for r in records]
    assert [start for start, _ in seen] == one.times[np.cumsum([0, *(n for _, n in seen)])[:-1]].astype(int).tolist()


def test_a_record_of_miniseed_that_begins_at_another_time_than_its_samples_is_found(tmp_path: Path) -> None:
    path = write(make_waveform([1] * 20_000), "mseed", tmp_path)
    with pymseed.MS3Record.from_file(path) as records:
        first, *others = [r.record for r in records]
    path.write_bytes(b"".join([first, first, *others[1:]]))
    with pytest.raises(BadInput, match=r"a record that begins at .* ns, not"):
        file_format("mseed").read(path, "")


@pytest.mark.parametrize(("rate", "count"), [(0.5, 5000), (0.001, 999), (0.1, 1000)])
def test_what_edf_takes_it_takes_whatever_the_names_lengths(tmp_path: Path, rate: float, count: int) -> None:
    for n in (*range(4), *range(12, 20)):
        one = make_waveform([1] * count, sampling_rate_hz=rate, adc_gain=1000.0, source="s" * n)
        start = 1_700_000_000 * 10**9 + n % 2 * 1000
        late = make_waveform([1] * count, sampling_rate_hz=rate, source=one.source, start_time_ns=start)
        for each in (one, late):
            assert broken_rule(each.row, "edf") is None
        same_as_sent(late, "edf", write(late, "edf", tmp_path / f"late{n}"))
        same_as_sent(one, "edf", write(one, "edf", tmp_path / f"one{n}"))


@pytest.mark.parametrize(("rate", "count"), [(1.0, 36_000), (1.0, 36_007), (0.5, 36_000), (360.0, 36_000)])
def test_what_edf_says_beside_the_samples_takes_little_room(tmp_path: Path, rate: float, count: int) -> None:
    one = make_waveform(np.arange(count) % 99, sampling_rate_hz=rate)
    path = write(one, "edf", tmp_path)
    same_as_sent(one, "edf", path)
    assert path.stat().st_size < 1.1 * one.samples.nbytes


def test_a_length_that_only_tiny_data_records_fill_is_refused_and_swells_no_file(tmp_path: Path) -> None:
    prime = make_waveform(np.arange(100_003) % 99, sampling_rate_hz=360.0)
    with pytest.raises(Refused, match="of one or of several of 256 samples and more"):
        write(prime, "edf", tmp_path)


def test_data_records_that_edf_s_library_reckons_longer_than_they_last_are_never_laid_out(tmp_path: Path) -> None:
    none = make_waveform([1] * 29_947, sampling_rate_hz=200.0)
    with pytest.raises(Refused, match="whose number is reckoned back from how long they last"):
        write(none, "edf", tmp_path)


@pytest.mark.parametrize("rate", [10.0, 250.0, 1000.0])
def test_data_records_of_edf_begin_where_the_one_before_ends_to_the_last_digit(tmp_path: Path, rate: float) -> None:
    for start_us in (0, 100_000, 300_000, 816_000, 999_999):
        start_ns = 1_700_000_000 * 10**9 + start_us * 1000
        late = make_waveform(np.arange(60_000) % 99, sampling_rate_hz=rate, start_time_ns=start_ns)
        same_as_sent(late, "edf", write(late, "edf", tmp_path / str(start_us)))


@pytest.mark.parametrize("mask", [0o000, 0o077])
@pytest.mark.parametrize("to", FORMATS)
def test_files_are_for_owner_and_group_whatever_the_mask_which_stays_the_process_s_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, to: Format, mask: int
) -> None:
    def changed(_: object) -> int:
        raise AssertionError("threads share it")

    before = os.umask(mask)
    try:
        with monkeypatch.context() as patched:
            patched.setattr(os, "umask", changed)
            path = write(make_waveform([1] * 360), to, tmp_path / "files")
    finally:
        os.umask(before)
    modes = {stat.S_IMODE(p.stat().st_mode) for p in [path, *path.rglob("*")] if p.is_file()}
    assert modes == {0o640}


def test_an_id_is_no_path_and_two_ids_are_two_names(tmp_path: Path) -> None:
    names = {export_name(name) for name in PATHS}
    assert len(names) == len(set(PATHS)) == len({n.lower() for n in names})
    assert all(re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9-]*", n) for n in names)
    inside = tmp_path / "inside"
    for name in PATHS:
        path = write(make_waveform([1] * 360, waveform_id=name), "parquet", inside)
        assert path.parent == inside
        assert polars.read_parquet(path)["waveform_id"][0] == name
    assert [p.name for p in tmp_path.iterdir()] == ["inside"]


def test_a_library_that_is_not_installed_is_said_by_name_and_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "h5py", None)
    monkeypatch.delitem(sys.modules, "wavestitch.reading.formats.hdf5_file", raising=False)
    with pytest.raises(BadInput, match=r"export to hdf5 needs h5py, which is not installed; .*wavestitch\[export\]"):
        file_format("hdf5")


def test_a_file_system_without_hard_links_is_said_for_what_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def none(*_: object) -> None:
        raise OSError(errno.EPERM, os.strerror(errno.EPERM))

    monkeypatch.setattr(os, "link", none)
    with pytest.raises(BadInput, match=rf"file system of {tmp_path} does not take hard links .* on another one"):
        write(make_waveform([1] * 360), "npz", tmp_path)
    assert list(tmp_path.iterdir()) == []
