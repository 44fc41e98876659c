"""Least and greatest samples of buckets, against a reduction that looks at one sample after the other."""

from __future__ import annotations

import math
import random
from typing import Any

import numpy as np
import pytest

from wavestitch.reading.extremes import Extremes, bucket_width, coarser, find_extremes, in_a_row, part_of

DTYPES = ("<i2", "<i4", "<i8", "<f4", "<f8")


def drawn(rng: random.Random, dtype: str, count: int) -> np.ndarray:
    kind = np.dtype(dtype)
    if kind.kind == "i":
        least, greatest = np.iinfo(kind).min, np.iinfo(kind).max
        return np.array([rng.choice([least, greatest, 0, rng.randint(least, greatest)]) for _ in range(count)], kind)
    odd = [math.nan, math.inf, -math.inf, 0.0, -0.0, float(np.finfo(kind).max), 5e-324]
    mixed = [rng.choice(odd) if rng.random() < 0.4 else rng.uniform(-9, 9) for _ in range(count)]
    with np.errstate(all="ignore"):
        return np.array(mixed, "<f8").astype(kind)


def cut(rng: random.Random, values: np.ndarray) -> list[np.ndarray]:
    at = sorted(rng.choices(range(len(values) + 1), k=rng.randint(0, 6)))
    return [values[a:b] for a, b in zip([0, *at], [*at, len(values)], strict=True)]


def one_by_one(values: list[Any], width: int) -> list[tuple[Any, Any, int]]:
    """The oracle: Python's own numbers, a bucket at a time."""
    found = []
    for n in range(0, len(values), width):
        some = values[n : n + width]
        finite = [v for v in some if isinstance(v, int) or math.isfinite(v)]
        found.append((min(finite, default=None), max(finite, default=None), len(some) - len(finite)))
    return found


def as_told(found: Extremes) -> list[tuple[Any, Any, int]]:
    columns = (found.least.tolist(), found.greatest.tolist(), found.lacking.tolist())
    rows = list(zip(*columns, strict=True))
    widths = [min(found.width, found.end - found.start - n * found.width) for n in range(len(rows))]
    return [(None, None, n) if n == width else (a, b, n) for (a, b, n), width in zip(rows, widths, strict=True)]


@pytest.mark.parametrize("dtype", DTYPES)
def test_buckets_have_the_least_and_greatest_that_an_oracle_finds_however_the_samples_come(dtype: str) -> None:
    rng = random.Random(f"extremes {dtype}")
    with np.errstate(all="raise", over="ignore"):
        for _ in range(300):
            values = drawn(rng, dtype, rng.randint(0, 70))
            width, start = 2 ** rng.randint(0, 7), 128 * rng.randint(0, 5)
            end = start + len(values)
            found = find_extremes(
                in_a_row(cut(rng, values), start, end), start=start, end=end, width=width, dtype=np.dtype(dtype)
            )
            assert as_told(found) == one_by_one(values.tolist(), width)
            assert found.least.dtype == found.greatest.dtype == np.dtype(dtype)
            wider = width * 2 ** rng.randint(0, 3)
            assert as_told(coarser(found, width=wider)) == one_by_one(values.tolist(), wider)


def test_a_part_has_the_buckets_that_its_samples_lie_in() -> None:
    values = np.arange(100, dtype="<i4")
    found = find_extremes([(0, values)], start=0, end=100, width=8, dtype=values.dtype)
    for start, end in ((0, 100), (7, 9), (8, 16), (96, 100), (99, 100), (50, 50)):
        part = part_of(found, start, end)
        assert part.start <= start
        assert part.end >= end
        assert as_told(part) == one_by_one(values[part.start : part.end].tolist(), 8)
        assert part.end - part.start < end - start + 16


@pytest.mark.parametrize("there", [9, 11])
def test_another_number_of_samples_than_said_is_an_error(there: int) -> None:
    with pytest.raises(ValueError, match="samples"):
        list(in_a_row([np.zeros(there, "<i2")], 0, 10))


@pytest.mark.parametrize("dtype", DTYPES)
def test_what_is_not_there_counts_for_nothing_whatever_the_order_of_the_parts(dtype: str) -> None:
    rng = random.Random(f"gaps {dtype}")
    for _ in range(100):
        values, width = drawn(rng, dtype, rng.randint(0, 70)), 2 ** rng.randint(0, 6)
        parts = [part for part in in_a_row(cut(rng, values), 0, len(values)) if rng.random() < 0.6]
        there = {at + n: value for at, part in parts for n, value in enumerate(part.tolist())}
        rng.shuffle(parts)
        with np.errstate(all="raise", over="ignore"):
            found = find_extremes(parts, start=0, end=len(values), width=width, dtype=values.dtype)
        wanted = one_by_one([there.get(n, math.nan) for n in range(len(values))], width)
        assert as_told(found) == wanted
        assert (found.least > found.greatest).tolist() == [least is None for least, _, _ in wanted]


@pytest.mark.parametrize("at", [-1, 8])
def test_a_part_of_something_else_is_an_error(at: int) -> None:
    with pytest.raises(ValueError, match="none of 0 to 10"):
        find_extremes([(at, np.zeros(3, "<i2"))], start=0, end=10, width=4, dtype=np.dtype("<i2"))


def test_so_many_buckets_suffice_wherever_they_begin() -> None:
    for samples in (0, 1, 2, 999, 1000, 1001, 4096, 10**6, 1 << 40):
        width = bucket_width(samples, most=1000)
        assert width & (width - 1) == 0
        for begin in (0, 1, width - 1):
            assert -(-(begin + samples) // width) <= 1000
        assert width == 1 or samples // (width // 2) + 2 > 1000
{"file": "tests/unit/test_freshness.py", "digest": "3ada4c15c2f597c0", "seconds": 0.57, "functions": {"consumers/arrow_columns.py": ["_whole_column", "ends_to_offsets", "to_column"], "consumers/pending_rows.py": ["PendingRows.__init__", "PendingRows.__len__", "PendingRows._add_row", "PendingRows._build", "PendingRows.add_chunk", "PendingRows.clear", "PendingRows.to_batch"], "wavestitch/contracts/batch_row.py": ["<lambda>", "BatchRow.to_json", "_wrong"], "wavestitch/contracts/chunk_header.py": ["_begun_digest", "_checked_metadata", "_decimal", "_is_decimal", "_parse_usual", "_waveform_id", "before_digest", "claims_with", "crc_of_id", "parse_chunk", "sequence_number", "shared_claims"], "wavestitch/contracts/chunk_metadata.py": ["Metadata.sample_bytes", "_each_once", "_interpret", "_number", "_parse", "_read", "_remember", "_text", "parse_metadata"], "wavestitch/contracts/chunk_proof.py": ["ChunkProof.header"], "wavestitch/contracts/chunk_table.py": ["ChunkTable.of", "_numbered"], "wavestitch/contracts/decided.py": ["Fates.__init__", "_order"], "wavestitch/contracts/freshness.py": ["_short", "_todo", "judge_freshness", "read_before", "said_of_freshness", "said_of_waits", "say_freshness"], "wavestitch/contracts/headroom.py": ["Room.alarm", "Room.begun", "Room.late", "Thresholds.colour", "_judge", "judge_room"], "wavestitch/contracts/headroom_told.py": ["<lambda>", "PartitionTold.is_worse", "Told._of", "Told._worst", "Told.failing", "Told.goes_on", "Told.must_be_told", "Told.room_must_be_told", "Told.seeing", "Told.stands_anew", "Told.worse", "_seen_as_told"], "wavestitch/contracts/last_chunks.py": ["_made_whole", "_of_others", "_of_plain", "last_recorded", "waited"], "wavestitch/contracts/metrics.py": ["_of_freshness", "_of_room", "samples_of"], "wavestitch/contracts/plain_waveforms.py": ["PlainWaveforms.__len__", "_texts", "no_plain"], "wavestitch/contracts/plain_yaml.py": ["_PlainLoader.compose_node", "_PlainLoader.construct_mapping", "_PlainLoader.construct_object", "_PlainLoader.construct_scalar", "read_plain_yaml"], "wavestitch/contracts/plan.py": ["<lambda>", "Plan.sealed", "Plan.to_json", "_as_first_said", "plan_from_json"], "wavestitch/contracts/quantities.py": ["before", "lately", "milliseconds"], "wavestitch/contracts/rewind_preview.py": ["length"], "wavestitch/contracts/rows.py": ["texts_once"], "wavestitch/contracts/stream.py": ["Limits._batch_holds_a_waveform", "Limits._within_cap", "Stream._a_key_where_one_is_used", "Stream._few_enough_to_look_at", "Stream._five_fields", "Stream._kafka_name", "Stream._names_a_key_and_no_other_secret", "Stream._plain_name", "Stream._started_in_one_way", "_size", "_span", "parse_stream"], "wavestitch/contracts/versioned.py": ["Versioned.<lambda>", "Versioned._adapter", "Versioned._current", "Versioned._dump", "Versioned.content", "Versioned.line", "Versioned.of", "Versioned.read", "Versioned.text", "_unsaid", "check_format"]}}
{"file": "tests/unit/test_garbage_collection.py", "digest": "330959e34cfb1d9a", "seconds": 4.7, "functions": {}}
{"file": "tests/unit/test_gate_wait.py", "digest": "3c85fdf194e63b0d", "seconds": 0.14, "functions": {"wavestitch/contracts/gate_wait.py": ["is_red", "look_again_s", "unanswered"], "wavestitch/contracts/headroom.py": ["Room.alarm", "Room.left_s"]}}
{"file": "tests/unit/test_group_state.py", "digest": "48da52d7487cb3c7", "seconds": 3.3, "functions": {"consumers/group_state.py": ["_answer", "_heard", "committed_offsets"], "wavestitch/contracts/errors.py": ["WavestitchError.__init__"], "wavestitch/contracts/harmless.py": ["harmless", "is_plain"]}}
{"file": "tests/unit/test_guest_sentence.py", "digest": "2c444c0dc9884a38", "seconds": 0.09, "functions": {"wavestitch/contracts/errors.py": ["WavestitchError.__init__", "WavestitchError.to_json", "error_from_json"], "wavestitch/contracts/harmless.py": ["harmless", "is_plain"]}}
{"file": "tests/unit/test_headroom.py", "digest": "bdfba2c65aeb314f", "seconds": 0.85, "functions": {"wavestitch/contracts/errors.py": ["WavestitchError.__init__"], "wavestitch/contracts/harmless.py": ["harmless", "is_plain"], "wavestitch/contracts/headroom.py": ["Room.alarm", "Room.backlog", "Room.behind_s", "Room.late", "Room.left_s", "Room.lost", "Room.remarks", "Room.shown", "Thresholds.colour", "_judge", "judge_room"], "wavestitch/contracts/headroom_told.py": ["<lambda>", "PartitionTold.is_worse", "Told._of", "Told._worst", "Told.failing", "Told.goes_on", "Told.must_be_told", "Told.room_must_be_told", "Told.seeing", "Told.stands_anew", "Told.worse", "_accept", "_hurry", "_left", "_said", "_seen_as_told", "_urgency", "_where", "_without_places", "numbers", "say_room"], "wavestitch/contracts/open_transaction.py": ["OpenTransaction.said", "OpenTransaction.waiting", "said_of_open"], "wavestitch/contracts/rewind_preview.py": ["length"], "wavestitch/contracts/versioned.py": ["Versioned.<lambda>", "Versioned._current", "Versioned._dump", "Versioned.of", "_unsaid", "check_format"]}}
{"file": "tests/unit/test_hedged_requests.py", "digest": "bafea5887e949763", "seconds": 10.67, "functions": {}}
{"file": "tests/unit/test_holes.py", "digest": "723be309d79f4c0c", "seconds": 5.86, "functions": {"wavestitch/contracts/errors.py": ["WavestitchError.__init__"], "wavestitch/contracts/harmless.py": ["harmless", "is_plain"], "wavestitch/contracts/holes.py": ["HoleFinder.__init__", "HoleFinder.add", "HoleFinder.close", "_covered", "_cut", "_join", "_lost", "_proof", "lost_to_retention", "prove_holes", "show_intervals"], "wavestitch/contracts/offset_range.py": ["OffsetRange.__str__"], "wavestitch/contracts/record_batches.py": ["told_apart"], "wavestitch/contracts/way_past.py": ["_around", "past_bad_place", "past_retention"]}}
{"file": "tests/unit/test_instant.py", "digest": "d3e323a27309c065", "seconds": 0.13, "functions": {"wavestitch/contracts/errors.py": ["WavestitchError.__init__"], "wavestitch/contracts/harmless.py": ["harmless", "is_plain"], "wavestitch/contracts/instant.py": ["_of_numpy", "instant_ns", "parse_time"], "wavestitch/contracts/quantities.py": ["time_ns"]}}
{"file": "tests/unit/test_kafka_python.py", "digest": "75dad365ed3a5417", "seconds": 2.76, "functions": {}}
{"file": "tests/unit/test_landing.py", "digest": "ee0b21f9831ea61a", "seconds": 24.62, "functions": {"consumers/arrow_columns.py": ["_whole_column", "ends_to_offsets", "to_column", "validity_of"], "consumers/landed_file.py": ["_check_place", "_check_rows", "_check_schema", "_damaged", "_read", "besides_payload", "open_landing", "read_index"], "consumers/landed_rows.py": ["RowsWhole.__init__", "RowsWhole.close", "RowsWhole.finish", "RowsWhole.write", "landed_rows"], "consumers/landing.py": ["LandingWriter.__enter__", "LandingWriter.__exit__", "LandingWriter.__init__", "LandingWriter._count", "LandingWriter._discard", "LandingWriter._explain", "LandingWriter._flush", "LandingWriter._publish", "LandingWriter.add_chunk", "LandingWriter.add_rejection", "LandingWriter.finish"], "consumers/pending_rows.py": ["PendingRows.__init__", "PendingRows.__len__", "PendingRows._add_row", "PendingRows._append", "PendingRows._build", "PendingRows.add_chunk", "PendingRows.add_rejection", "PendingRows.clear", "PendingRows.is_full", "PendingRows.size", "PendingRows.to_batch"], "wavestitch/contracts/chunk_header.py": ["_begun_digest", "_checked_metadata", "_is_decimal", "_parse_usual", "_waveform_id", "before_digest", "bound_of", "chunk_crc", "claims_with", "crc_of_id", "parse_chunk", "record_digest", "sequence_number", "shared_claims"], "wavestitch/contracts/chunk_metadata.py": ["Metadata.sample_bytes", "_each_once", "_interpret", "_number", "_parse", "_read", "_remember", "_text", "parse_metadata"], "wavestitch/contracts/chunk_proof.py": ["ChunkProof.header"], "wavestitch/contracts/chunk_table.py": ["ChunkTable.__iter__", "ChunkTable.__len__", "ChunkTable.facts", "ChunkTable.of_index", "_filled", "_metadata", "_numbered", "_pieces", "_spelled", "digests_of"], "wavestitch/contracts/errors.py": ["WavestitchError.__init__"], "wavestitch/contracts/harmless.py": ["harmless", "is_plain"], "wavestitch/contracts/landed_payload.py": ["_check_payloads", "_hex", "take_proven"], "wavestitch/contracts/offset_range.py": ["OffsetRange.__str__"], "wavestitch/contracts/raw_headers.py": ["_part", "decode_raw_headers", "encode_raw_headers"], "wavestitch/contracts/rows.py": ["meta_numbers", "texts_of", "texts_once"]}}
