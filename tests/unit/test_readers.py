"""Readers: every sample exactly as another reading of the same file finds it."""

from __future__ import annotations

import hashlib
import itertools
import re
from pathlib import Path

import numpy as np
import pymseed
import pytest

from wavestitch.contracts.errors import BadInput
from wavestitch.producers.miniseed import read_segments
from wavestitch.producers.readers import FORMATS, read_recordings

EXAMPLES = Path(__file__).parents[2] / "examples"
ECG = EXAMPLES / "ecg" / "mitdb-208-mlii.npz"
KNOWN = re.escape(", ".join(s for f in FORMATS for s in f.suffixes))
COLA = EXAMPLES / "seismic" / "IU.COLA.mseed"
START = 1_700_000_000_000_000_000
RECORD_BYTES = 512


def records_of(path: Path) -> dict[str, list[tuple[int, np.ndarray]]]:
    """Per source identifier the file's own records: start in ns, samples."""
    found: dict[str, list[tuple[int, np.ndarray]]] = {}
    for record in pymseed.MS3Record.from_file(str(path), unpack_data=True):
        found.setdefault(record.sourceid, []).append((record.starttime, np.array(record.datasamples)))
    return found


@pytest.mark.parametrize(("path", "prefix"), [(ECG, "6a1b3ea0"), (COLA, "0995a1e9")])
def test_the_example_files_are_the_ones_in_the_notice(path: Path, prefix: str) -> None:
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    assert digest.startswith(prefix)
    assert digest in (EXAMPLES / "NOTICE.md").read_text()


def test_the_ecg_comes_back_exactly_in_counts_and_in_millivolts() -> None:
    found = read_recordings(ECG, seconds_per_recording=30, start_time_ns=START)
    assert [r.waveform_id for r in found] == [f"mitdb-208-MLII-{i:04d}" for i in range(10)]
    millivolts = np.load(ECG)["ecg"]
    counts = np.frombuffer(b"".join(r.samples for r in found), dtype="<i2")
    first = found[0].metadata
    assert np.array_equal((counts - first.baseline) / first.adc_gain, millivolts)
    assert (first.units, first.adc_gain, first.baseline, first.sampling_rate_hz) == ("mV", 200, 1024, 360)
    assert (first.source, first.channel, first.sample_format) == ("mitdb-208", "MLII", "i16le")
    assert [r.metadata.start_time_ns for r in found] == [START + i * 30_000_000_000 for i in range(10)]
    assert {r.metadata.sample_count for r in found} == {10_800}


def test_the_recording_at_the_end_may_be_shorter_and_start_times_do_not_drift() -> None:
    found = read_recordings(ECG, seconds_per_recording=7, start_time_ns=START)
    assert [r.sample_count for r in found] == [2520] * 42 + [2160]
    odd = read_recordings(ECG, seconds_per_recording=1 / 3, start_time_ns=START)
    assert odd[-1].metadata.start_time_ns == START + round(899 * 120 * 1e9 / 360)


def test_an_ecg_that_is_not_exactly_whole_counts_is_refused(tmp_path: Path) -> None:
    millivolts = np.load(ECG)["ecg"]
    for name, wrong in (("101", 1e-9), ("102", 1e3), ("103", np.nan), ("104", np.inf)):
        path = tmp_path / f"mitdb-{name}-v5.npz"
        changed = millivolts.copy()
        changed[77] += wrong
        np.savez(path, ecg=changed)
        with pytest.raises(BadInput, match="not whole counts"):
            read_recordings(path, seconds_per_recording=30, start_time_ns=START)


def test_an_archive_that_is_not_an_ecg_is_refused_with_what_it_is(tmp_path: Path) -> None:
    path = tmp_path / "mitdb-101-v5.npz"
    np.savez(path, other=np.zeros(3))
    with pytest.raises(BadInput, match="no array named ecg"):
        read_recordings(path, seconds_per_recording=30, start_time_ns=START)
    for wrong in (np.zeros((3, 3)), np.zeros(3, dtype=np.float32), np.zeros(0)):
        np.savez(path, ecg=wrong)
        with pytest.raises(BadInput, match="one row of float64"):
            read_recordings(path, seconds_per_recording=30, start_time_ns=START)
    np.savez(path, ecg=np.array([object()]))
    with pytest.raises(BadInput, match="cannot be read"):
        read_recordings(path, seconds_per_recording=30, start_time_ns=START)


def test_an_archive_that_does_not_say_whose_ecg_it_is_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "ecg.npz"
    path.write_bytes(ECG.read_bytes())
    with pytest.raises(BadInput, match=r"rename it like mitdb-208-mlii\.npz"):
        read_recordings(path, seconds_per_recording=30, start_time_ns=START)


def test_an_ecg_without_a_start_time_is_refused_instead_of_dated_by_guess() -> None:
    with pytest.raises(BadInput, match="give the start time"):
        read_recordings(ECG, seconds_per_recording=30)


def test_the_seismogram_s_1141_records_join_to_the_exact_samples_of_each_channel() -> None:
    raw = records_of(COLA)
    assert sum(len(records) for records in raw.values()) == 1141
    found = read_recordings(COLA, seconds_per_recording=60)
    assert len(found) == 3 * 70
    for source_id, records in raw.items():
        mine = [r for r in found if r.metadata.source == source_id]
        joined = b"".join(r.samples for r in mine)
        assert joined == b"".join(samples.astype("<i4").tobytes() for _, samples in records)
        assert {(r.metadata.units, r.metadata.adc_gain, r.metadata.baseline) for r in mine} == {("{count}", 1, 0)}
        assert {(r.metadata.sampling_rate_hz, r.metadata.sample_format) for r in mine} == {(20, "i32le")}
        starts = [r.metadata.start_time_ns for r in mine]
        assert starts == [records[0][0] + i * 60_000_000_000 for i in range(70)]
    assert found[0].waveform_id == "IU_COLA_00_B_H_1-20100227T065000.019539000Z"
    assert {r.metadata.channel for r in found} == {"B_H_1", "B_H_2", "B_H_Z"}
    assert len({r.waveform_id for r in found}) == len(found)


def test_start_times_agree_with_the_records_own_to_less_than_half_a_sample() -> None:
    segments = {s.source_id: s for s in read_segments(COLA)}
    for source_id, records in records_of(COLA).items():
        before = itertools.accumulate((len(samples) for _, samples in records), initial=0)
        for (start, _), count in zip(records, before, strict=False):
            assert abs(segments[source_id].start_time_ns + count * 50_000_000 - start) < 25_000_000


def test_a_missing_record_is_a_gap_and_begins_a_new_recording(tmp_path: Path) -> None:
    data = COLA.read_bytes()
    path = tmp_path / "gap.mseed"
    path.write_bytes(data[: 5 * RECORD_BYTES] + data[6 * RECORD_BYTES :])
    (source_id, records), *_ = records_of(COLA).items()
    found = [r for r in read_recordings(path, seconds_per_recording=100_000) if r.metadata.source == source_id]
    assert [r.metadata.start_time_ns for r in found] == [records[0][0], records[6][0]]
    assert [r.sample_count for r in found] == [sum(len(s) for _, s in records[:5]), sum(len(s) for _, s in records[6:])]


def test_records_out_of_order_make_the_same_recordings(tmp_path: Path) -> None:
    data = COLA.read_bytes()
    records = [data[at : at + RECORD_BYTES] for at in range(0, len(data), RECORD_BYTES)]
    path = tmp_path / "reversed.mseed2"
    path.write_bytes(b"".join(reversed(records)))
    ordered = sorted(read_recordings(COLA, seconds_per_recording=600), key=lambda r: r.waveform_id)
    assert [
        r.samples for r in sorted(read_recordings(path, seconds_per_recording=600), key=lambda r: r.waveform_id)
    ] == [r.samples for r in ordered]


def test_a_file_that_holds_a_record_twice_is_refused(tmp_path: Path) -> None:
    data = COLA.read_bytes()
    path = tmp_path / "twice.mseed"
    path.write_bytes(data[: 3 * RECORD_BYTES] + data[:RECORD_BYTES])
    with pytest.raises(BadInput, match="overlaps itself"):
        read_recordings(path, seconds_per_recording=600)


def test_a_given_start_moves_all_channels_together_and_keeps_the_recorded_time() -> None:
    as_recorded = read_recordings(COLA, seconds_per_recording=600)
    moved = read_recordings(COLA, seconds_per_recording=600, start_time_ns=START)
    earliest = min(r.metadata.start_time_ns for r in as_recorded)
    for before, after in zip(as_recorded, moved, strict=True):
        assert after.metadata.start_time_ns - START == before.metadata.start_time_ns - earliest
        assert f'"recorded_start_time_ns":{before.metadata.start_time_ns}' in after.meta
        assert after.samples == before.samples
    assert moved[0].waveform_id == "IU_COLA_00_B_H_1-20231114T221320.000000000Z"


@pytest.mark.parametrize("seconds", [0, -1, 0.001, float("nan"), float("inf")])
def test_a_length_that_is_none_is_refused(seconds: float) -> None:
    for path in (ECG, COLA):
        with pytest.raises(BadInput, match="choose a longer one"):
            read_recordings(path, seconds_per_recording=seconds, start_time_ns=START)


@pytest.mark.parametrize("name", ["x.unknown", "x", "x.npz.gz"])
def test_an_unknown_suffix_is_refused_with_the_known_ones(name: str) -> None:
    with pytest.raises(BadInput, match=f"known are {KNOWN}$"):
        read_recordings(name, seconds_per_recording=30)


@pytest.mark.parametrize("name", ["mitdb-101-v5.npz", "x.mseed", "x.mseed2", "x.mseed3"])
def test_a_file_that_cannot_be_read_is_refused(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    contents = (b"", b"\0" * 700, b"no such format" * 99, COLA.read_bytes()[:700], ECG.read_bytes()[:700])
    with pytest.raises(BadInput):
        read_recordings(path, seconds_per_recording=30, start_time_ns=START)
    for content in contents:
        path.write_bytes(content)
        with pytest.raises(BadInput):
            read_recordings(path, seconds_per_recording=30, start_time_ns=START)
    path.unlink()
    path.mkdir()
    with pytest.raises(BadInput):
        read_recordings(path, seconds_per_recording=30, start_time_ns=START)


def test_damaged_samples_are_refused_by_the_compression_s_own_check(tmp_path: Path) -> None:
    data = bytearray(COLA.read_bytes())
    data[100] ^= 0x40
    path = tmp_path / "damaged.mseed"
    path.write_bytes(data)
    with pytest.raises(BadInput, match="cannot be read as miniSEED"):
        read_recordings(path, seconds_per_recording=30)


def test_a_start_time_out_of_all_range_is_refused() -> None:
    for path in (ECG, COLA):
        with pytest.raises(BadInput, match="start"):
            read_recordings(path, seconds_per_recording=30, start_time_ns=1 << 80)
