"""The work of one Spark task against the oracle, without Spark: landing files in, Parquet out. Proves I3 and I6."""

from __future__ import annotations

import json
import math
import os
import random
import struct
import zlib
from datetime import UTC, datetime
from pathlib import Path

import pyarrow.parquet as pq
import pytest
import xxhash

from spark_apps import stitching
from spark_apps.assignment import read_assignment
from spark_apps.landed_payload import locate_pieces
from spark_apps.outcome import read_outcomes, run_task
from spark_apps.stitching import stitch_assignment
from tests.builders.full_disk import largest_file
from tests.domain.landed_corpus import LAYOUTS, LETTERS, NOON_NS, TOPIC_ID, Sent, land, random_waveform
from tests.domain.parquet_pages import page_sizes
from tests.domain.stitch_rig import land_corpus, make_job, slim, staged
from wavestitch.contracts.errors import Altered, BadInput, Transient
from wavestitch.contracts.rows import published_schema
from wavestitch.contracts.sample_kinds import Encoding, SampleType
from wavestitch.contracts.stitch_job import StitchJob, StitchResult

SEED = 20240501


def stitch(job: StitchJob) -> list[StitchResult]:
    return [stitch_assignment(job, a) for a in job.assignments]


def one(folder: Path, *sent: Sent, layout: str = "sticky", files: int = 1) -> StitchJob:
    return make_job(folder, [land_corpus(folder, random.Random(SEED), sent, layout=layout, files=files)])


@pytest.mark.parametrize("encoding", ["fast", "small"])
@pytest.mark.parametrize("files", [1, 5])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_every_waveform_comes_out_as_it_was_sent(tmp_path: Path, layout: str, files: int, encoding: Encoding) -> None:
    rng = random.Random(f"{SEED} {layout} {files}")
    sent = [random_waveform(rng, f"ward/{n}", start_time_ns=NOON_NS + n * 10**12) for n in range(40)]
    landed = land_corpus(tmp_path, rng, sent, layout=layout, files=files)
    job = make_job(tmp_path, [landed], encoding=encoding, tasks=3)
    results = stitch(job)
    assert staged(job, results) == landed.expected()
    assert sum(r.rows for r in results) == 40
    assert sum(r.chunks for r in results) == sum(len(s.pieces) for s in sent)
    assert sum(r.payload_bytes for r in results) == sum(len(s.raw) for s in sent)


def test_each_chunk_names_the_topic_that_it_lay_in(tmp_path: Path) -> None:
    """What was held before the topic was made anew has offsets of its predecessor."""
    rng = random.Random(SEED)
    landed = land_corpus(tmp_path, rng, [random_waveform(rng, f"w{n}") for n in range(4)], layout="sticky", files=1)
    job = make_job(tmp_path, [landed], held={"w1": "older-topic"})
    (result,) = stitch(job)
    rows = {row["waveform_id"]: row for row in pq.read_table(Path(job.output_folder, str(result.file))).to_pylist()}
    topics = {i: {chunk["topic_id"] for chunk in row["chunks"]} for i, row in rows.items()}
    assert topics == {"w0": {TOPIC_ID}, "w1": {"older-topic"}, "w2": {TOPIC_ID}, "w3": {TOPIC_ID}}
    assert {row["topic_id"] for row in rows.values()} == {TOPIC_ID}


def test_the_slim_row_says_where_the_waveform_is_and_what_its_samples_are(tmp_path: Path) -> None:
    rng = random.Random(SEED)
    sent = [random_waveform(rng, f"w{n}", start_time_ns=NOON_NS + n * 10**12) for n in range(30)]
    landed = land_corpus(tmp_path, rng, sent, layout="hashed", files=3)
    job = make_job(tmp_path, [landed], tasks=4)
    results = stitch(job)
    rows = slim(job, results)
    assert rows.keys() == {s.waveform_id for s in sent}
    for s in sent:
        row, full = rows[s.waveform_id], landed.expected()[s.waveform_id]
        shared = row.keys() & full.keys()
        assert {n: row[n] for n in shared} == {n: full[n] for n in shared}
        assert (row["physical_min"], row["physical_max"]) == pytest.approx(s.physical())
        assert row["duration_s"] == pytest.approx(len(s.samples) / 500)
        assert (row["reason"], row["byte_length"]) == (None, len(s.raw))
        assert row["day"] == full["start_time"].date()
        there = pq.read_table(Path(job.output_folder) / row["file"], columns=["waveform_id"])
        assert there.column(0)[row["row"]].as_py() == s.waveform_id


@pytest.mark.parametrize("group_bytes", [1 << 20, 32 << 20])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_waveforms_of_many_groups_and_reads_come_out_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, layout: str, group_bytes: int
) -> None:
    """More than a group holds, one waveform larger than a group, and more pieces in a row than one call takes."""
    monkeypatch.setattr(stitching, "GROUP_BYTES", group_bytes)
    rng = random.Random(SEED)
    sent = [Sent(f"w{n}", [float(n)] * 60_000, [60] * 1_000, "f64le") for n in range(4)]
    sent.insert(2, Sent("large", [0.5] * 200_000, [50_000] * 4, "f64le"))
    landed = land_corpus(tmp_path, rng, sent, layout=layout, files=2)
    job = make_job(tmp_path, [landed], encoding="small")
    assert staged(job, stitch(job)) == landed.expected()


def test_only_the_payload_that_is_asked_for_is_read(tmp_path: Path) -> None:
    together = [Sent(f"w{n}", [1.0] * 50_000, [10_000] * 5, "f64le") for n in range(3)]
    landed = land_corpus(tmp_path, random.Random(SEED), together, layout="sticky", files=1, quiet=True)
    job = make_job(tmp_path, [landed])
    [path] = landed.files
    with locate_pieces(read_assignment(tmp_path / job.assignments[0]), landed.files) as payload:
        into = bytearray(5 * 80_000)
        payload.read(slice(5, 10), memoryview(into))
        os.truncate(path, int(payload.begin[12]) + 7)
        with pytest.raises(Altered, match="it ends at byte"):
            payload.read(slice(10, 15), memoryview(into))
    assert bytes(into[:8]) == struct.pack("<d", 1.0)


@pytest.mark.parametrize("sample_format", ["f32le", "f64le"])
def test_what_is_not_finite_is_counted_and_left_out_of_the_extremes(tmp_path: Path, sample_format: str) -> None:
    mixed = Sent("mixed", [math.nan, 2.0, math.inf, -4.0, -math.inf, math.nan], [2, 4], sample_format)
    none = Sent("none", [math.nan, -math.inf], [1, 1], sample_format)
    job = one(tmp_path, mixed, none)
    rows = slim(job, stitch(job))
    assert [rows["mixed"][n] for n in ("sample_min", "sample_max", "nonfinite_count")] == [-4.0, 2.0, 4]
    assert [rows["none"][n] for n in ("sample_min", "sample_max", "nonfinite_count")] == [None, None, 2]
    assert rows["none"]["physical_min"] is rows["none"]["physical_max"] is None


def test_a_negative_gain_turns_least_into_greatest(tmp_path: Path) -> None:
    job = one(tmp_path, Sent("w", [-10, 30], [2], adc_gain=-2.0, baseline=10.0))
    row = slim(job, stitch(job))["w"]
    assert (row["sample_min"], row["sample_max"]) == (-10.0, 30.0)
    assert (row["physical_min"], row["physical_max"]) == (-10.0, 10.0)


@pytest.mark.parametrize("sample_format", list(LETTERS))
def test_formats_may_alternate_within_one_file(tmp_path: Path, sample_format: str) -> None:
    rng = random.Random(SEED)
    formats = [sample_format, *LETTERS, sample_format]
    sent = [random_waveform(rng, f"w{n}", sample_format=f, longest=50) for n, f in enumerate(formats)]
    landed = land_corpus(tmp_path, rng, sent, layout="sticky", files=1)
    job = make_job(tmp_path, [landed])
    assert staged(job, stitch(job)) == landed.expected()


def test_the_same_assignment_gives_the_same_files_and_leaves_no_scratch(tmp_path: Path) -> None:
    rng = random.Random(SEED)
    landed = land_corpus(tmp_path, rng, [random_waveform(rng, f"w{n}") for n in range(9)], layout="hashed", files=2)
    job = make_job(tmp_path, [landed], encoding="small")
    first = stitch(job)
    before = sorted(p.name for p in tmp_path.rglob("*"))
    assert stitch(job) == first
    assert sorted(p.name for p in tmp_path.rglob("*")) == before
    assert not [n for n in before if n.endswith(".tmp")]
    [result] = first
    assert result.file is not None
    content = Path(job.output_folder, result.file).read_bytes()
    assert (result.file_bytes, result.file_digest) == (len(content), xxhash.xxh3_128_hexdigest(content))
    assert result.file == f"{job.plan_id[:16]}-{job.assignments[0][11:19]}-{result.file_digest}.parquet"


def test_a_staged_file_that_lost_its_bytes_is_never_taken_for_whole(tmp_path: Path) -> None:
    job = one(tmp_path, Sent("w", [1, 2], [2]))
    [result] = stitch(job)
    assert result.file is not None
    Path(job.output_folder, result.file).write_bytes(b"")
    with pytest.raises(Altered, match="written under this name were"):
        stitch(job)


def test_a_flipped_bit_on_disk_is_altered_by_file_and_row(tmp_path: Path) -> None:
    rng = random.Random(SEED)
    landed = land_corpus(tmp_path, rng, [Sent("w", list(range(5000)), [1000] * 5)], layout="round robin", files=2)
    job = make_job(tmp_path, [landed])
    needle = landed.chunks_of(landed.sent[0])[3]["payload"]
    path = next(p for p in landed.files if needle in p.read_bytes())
    content = bytearray(path.read_bytes())
    content[content.index(needle) + 700] ^= 1
    path.write_bytes(content)
    with pytest.raises(Altered, match=f"landing file {path} row") as caught:
        stitch(job)
    number = landed.files.index(path)
    assert landed.rows[number][caught.value.facts["row"]]["seq"] == 3
    assert not list(Path(job.output_folder).glob("*.parquet"))


def test_swapped_chunks_of_one_file_are_altered(tmp_path: Path) -> None:
    a, b = Sent("a", list(range(100)), [100]), Sent("b", list(range(100, 200)), [100])
    landed = land_corpus(tmp_path, random.Random(SEED), [a, b], layout="sticky", files=1)
    job = make_job(tmp_path, [landed])
    content = landed.files[0].read_bytes()
    content = content.replace(a.raw, b"?" * 200).replace(b.raw, a.raw).replace(b"?" * 200, b.raw)
    landed.files[0].write_bytes(content)
    with pytest.raises(Altered):
        stitch(job)


@pytest.mark.parametrize("damage", ["gone", "cut", "empty", "garbage", "other rows"])
def test_a_landing_file_that_is_not_the_landed_one_is_altered(tmp_path: Path, damage: str) -> None:
    landed = land_corpus(tmp_path, random.Random(SEED), [Sent("w", [1, 2, 3], [1, 2])], layout="sticky", files=1)
    job = make_job(tmp_path, [landed])
    [path] = landed.files
    content = path.read_bytes()
    if damage == "gone":
        path.unlink()
    elif damage == "other rows":
        other = land_corpus(tmp_path / "x", random.Random(1), [Sent("w", [1], [1])], layout="sticky", files=1)
        other.files[0].rename(path)
    else:
        path.write_bytes({"cut": content[: len(content) // 2], "empty": b"", "garbage": b"ARROW1\0\0" * 99}[damage])
    with pytest.raises(Altered, match=str(path)):
        stitch(job)


def test_a_file_of_another_format_is_refused(tmp_path: Path) -> None:
    job = one(tmp_path, Sent("w", [1], [1]))
    [name] = job.files
    Path(name).write_bytes(Path(tmp_path, job.assignments[0]).read_bytes())
    with pytest.raises(BadInput, match="format"):
        stitch(job)


def test_a_wrong_digest_holds_its_waveform_alone(tmp_path: Path) -> None:
    bad = Sent("b", list(range(300)), [100] * 3, digest="0" * 32)
    sent = [Sent("a", [1, 2], [2]), bad, Sent("c", [3, 4], [1, 1])]
    landed = land_corpus(tmp_path, random.Random(SEED), sent, layout="sticky", files=1)
    job = make_job(tmp_path, [landed])
    [result] = results = stitch(job)
    assert (result.rows, result.refused) == (2, 1)
    assert staged(job, results) == {i: row for i, row in landed.expected().items() if i != "b"}
    row = slim(job, results)["b"]
    assert (row["reason"], row["file"], row["row"], row["sample_min"]) == ("digest_mismatch", None, None, None)
    assert row["evidence"] == f"ws-digest says {'0' * 32}, the waveform's bytes give {bad.true_digest}"
    assert (row["byte_length"], row["sample_count"], row["chunk_count"]) == (600, 300, 3)


def test_an_assignment_of_wrong_digests_alone_leaves_no_file(tmp_path: Path) -> None:
    job = one(tmp_path, Sent("w", [1], [1], digest="0" * 32))
    [result] = stitch(job)
    assert (result.file, result.file_bytes, result.rows, result.refused) == (None, 0, 0, 1)
    assert list(Path(job.output_folder).iterdir()) == []


def test_the_digest_counts_where_only_the_repeated_last_chunk_carries_it(tmp_path: Path) -> None:
    landed = land_corpus(tmp_path, random.Random(SEED), [Sent("w", [1, 2], [1, 1])], layout="sticky", files=1)
    last = landed.chunks_of(landed.sent[0])[-1]
    repeat = {**last, "offset": 5000, "digest": "0" * 32}
    last["digest"] = None
    for one in (last, repeat):  # the CRC covers what each of them says
        said = (*(str(one[name]) for name in ("waveform_id", "seq", "count", "meta")), one["digest"] or "")
        one["crc"] = zlib.crc32("\0".join(said).encode() + b"\0" + one["payload"])
    landed.rows[0].append(repeat)
    landed.files[0].unlink()
    land(landed.files[0], landed.rows[0], random.Random(SEED))
    job = make_job(tmp_path, [landed])
    [result] = stitch(job)
    assert result.refused == 1


def test_payload_is_written_in_row_groups_of_bounded_size(tmp_path: Path) -> None:
    sent = [Sent(f"w{n}", [n] * 5_000_000, [1_000_000] * 5) for n in range(8)]  # 10 MB each
    job = one(tmp_path, *sent)
    [result] = stitch(job)
    assert result.file is not None
    found = pq.ParquetFile(Path(job.output_folder, result.file)).metadata
    assert [found.row_group(i).num_rows for i in range(found.num_row_groups)] == [3, 3, 2]
    samples = found.row_group(0).column(list(published_schema("int").names).index("samples"))
    assert not samples.is_stats_set
    assert samples.encodings == ("RLE", "BYTE_STREAM_SPLIT")


@pytest.mark.parametrize("samples", ["int", "double"])
@pytest.mark.parametrize("encoding", ["fast", "small"])
def test_a_page_holds_whole_waveforms_or_a_part_of_one_and_no_more_than_a_mebibyte(
    tmp_path: Path, encoding: Encoding, samples: SampleType
) -> None:
    sent = [Sent(f"w{n:03}", [n] * 40_000, [40_000]) for n in range(30)]
    sent.append(Sent("x", [n % 999 for n in range(3_000_000)], [1_000_000] * 3))
    landed = land_corpus(tmp_path, random.Random(SEED), sent, layout="sticky", files=1)
    job = make_job(tmp_path, [landed], encoding=encoding, samples=samples)
    results = stitch(job)
    assert staged(job, results) == landed.expected()
    pages = page_sizes(Path(job.output_folder, str(results[0].file)), "samples")
    assert max(max(p) for p in pages) <= (1 << 20) + 64
    if encoding == "fast":
        assert sum(len(p) for p in pages) >= (4_200_000 * (4 if samples == "int" else 8)) >> 20


@pytest.mark.parametrize("start_ns", [2**62 - 10**9, -(2**62), -1, 0])
def test_times_at_the_ends_of_the_contract_and_before_1970_are_kept(tmp_path: Path, start_ns: int) -> None:
    sent = Sent("w", [1, 2], [2], start_time_ns=start_ns, record_ms=start_ns // 10**6)
    landed = land_corpus(tmp_path, random.Random(SEED), [sent], layout="sticky", files=1)
    job = make_job(tmp_path, [landed])
    results = stitch(job)
    assert staged(job, results) == landed.expected()
    assert slim(job, results)["w"]["day"] == landed.expected()["w"]["start_time"].date()


def test_a_record_time_that_no_calendar_has_is_null(tmp_path: Path) -> None:
    landed = land_corpus(tmp_path, random.Random(SEED), [Sent("w", [1, 2], [1, 1])], layout="sticky", files=1)
    landed.chunks_of(landed.sent[0])[1]["timestamp_ms"] = 2**62
    job = make_job(tmp_path, [landed])
    row = staged(job, stitch(job))["w"]
    assert row["last_record_time"] is None
    assert row["first_record_time"] == datetime.fromtimestamp(NOON_NS / 10**9, UTC)


def test_a_hostile_id_becomes_no_path(tmp_path: Path) -> None:
    job = one(tmp_path, Sent("../../\0;$(x)", [1], [1]))
    stitch(job)
    assert {p.parent for p in tmp_path.rglob("*.parquet")} == {tmp_path / "out"}


def test_a_full_disk_is_transient_and_leaves_nothing_behind(tmp_path: Path) -> None:
    noise: list[float] = [*random.Random(1).choices(range(-30_000, 30_000), k=30_000)]  # which no encoding makes small
    job = one(tmp_path, Sent("w", noise, [30_000]))
    with largest_file(20_000):
        outcome = run_task(job, job.assignments[0])
    with pytest.raises(Transient, match="File too large"):
        read_outcomes([outcome])
    assert list(Path(job.output_folder).iterdir()) == []


def test_a_terminal_error_of_one_task_wins_over_the_transient_ones_of_others() -> None:
    transient, terminal = Transient("disk"), Altered("bytes", row=3)
    with pytest.raises(Altered, match="bytes") as caught:
        read_outcomes([json.dumps(transient.to_json()), json.dumps(terminal.to_json())])
    assert caught.value.facts == {"row": 3}


def test_where_no_error_is_terminal_the_first_task_s_is_raised() -> None:
    with pytest.raises(Transient, match="first"):
        read_outcomes([json.dumps(Transient(name).to_json()) for name in ("first", "second")])


@pytest.mark.parametrize("outcome", ["", "[]", "{}", '{"result": {}}', '{"result": 5}', "[" * 5000])
def test_an_outcome_that_no_task_says_is_one_sentence(outcome: str) -> None:
    with pytest.raises(BadInput, match="the stitch report"):
        read_outcomes([outcome])
