"""Columns of many waveforms at once say what is said of each one alone."""

from __future__ import annotations

import json
import math
import struct
import subprocess
import sys
import zlib
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from spark_apps.assignment import Assignment
from spark_apps.piece_proof import OtherPiece, PieceProof
from spark_apps.stitched_rows import from_metadata
from tests.peak_memory import forget_peak, peak_rss
from wavestitch.contracts.chunk_metadata import Metadata
from wavestitch.contracts.metadata_columns import read_metadata
from wavestitch.contracts.row_proof import FROM_METADATA
from wavestitch.contracts.sample_metrics import MetricColumns, measure_samples, measure_waveform


def metas(count: int) -> list[str]:
    said: dict[str, Any] = {"channel": "Z", "units": "mV", "adc_gain": 200, "baseline": 0}
    starts = (-1, -1001, 999, 1_700_000_000_123_456_789)
    return [
        json.dumps(
            {
                **said,
                "source": f"s-{n % 3}",
                "start_time_ns": starts[n % 4] + n // 4,
                "sampling_rate_hz": (360, 0.001, 1e9)[n % 3],
                "sample_format": ("i16le", "f64le")[n % 2],
            }
        )
        for n in range(count)
    ]


def test_what_metadata_say_is_the_same_of_many_and_of_one() -> None:
    texts = metas(60)
    said, counts = read_metadata(pa.array(texts)), np.array([1 + n % 7 for n in range(60)])
    columns = from_metadata(said, counts)
    assert columns.keys() == FROM_METADATA.keys()
    for name, of in FROM_METADATA.items():
        found = columns[name].tolist() if isinstance(columns[name], np.ndarray) else columns[name].to_pylist()
        one_by_one = [Metadata(**{"sample_count": None, **json.loads(text)}) for text in texts]
        assert found == [of(m, n) for m, n in zip(one_by_one, counts.tolist(), strict=True)], name


def test_a_waveform_from_the_least_start_to_the_latest_end_has_its_end() -> None:
    """2^63 ns: one more than a signed number of 64 bits holds, of which start and end are two."""
    said = json.loads(metas(1)[0]) | {"start_time_ns": -(1 << 62), "sampling_rate_hz": 1e9 / 2**49}
    columns = from_metadata(read_metadata(pa.array([json.dumps(said)])), np.array([16_385]))
    assert columns["end_time"].tolist() == [(1 << 62) // 1000]
    assert columns["start_time_ns"].tolist() == [-(1 << 62)]


def test_samples_of_all_formats_are_measured_among_each_other_as_alone() -> None:
    parts: list[tuple[str, bytes]] = [
        ("i16le", struct.pack("<3h", -5, 7, 0)),
        ("i16le", struct.pack("<1h", -32768)),
        ("f32le", struct.pack("<3f", math.nan, 1.5, -2.5)),
        ("f32le", struct.pack("<2f", math.inf, -math.inf)),
        ("f64le", struct.pack("<2d", -0.0, 1e308)),
        ("i64le", struct.pack("<2q", 2**63 - 1, -(2**63))),
        ("i16le", struct.pack("<2h", 3, 3)),
    ]
    # Each where numbers of its size may begin.
    bounds = np.cumsum([0, *(len(raw) for _, raw in parts)])
    data = np.frombuffer(b"".join(raw for _, raw in parts), np.uint8)
    found = measure_samples(data, bounds, [name for name, _ in parts])
    for n, (name, raw) in enumerate(parts):
        least, greatest, nonfinite = measure_waveform(raw, name)
        assert found.nonfinite[n] == nonfinite
        assert (found.least[n] == least) if least is not None else np.isnan(found.least[n])
        assert (found.greatest[n] == greatest) if greatest is not None else np.isnan(found.greatest[n])
    assert measure_waveform(parts[3][1], "f32le") == (None, None, 2)
    assert measure_waveform(parts[2][1], "f32le") == (-2.5, 1.5, 1)
    assert MetricColumns.unmeasured(2).nonfinite.tolist() == [-1, -1]


def test_an_end_that_is_zero_says_no_sign_which_would_be_the_processor_s() -> None:
    zeros = [*([-0.0] * 9), 0.0, *([-0.0] * 9)]
    sent = [("<f4", "f32le", zeros), ("<f8", "f64le", zeros), ("<f4", "f32le", [*zeros, math.nan])]
    for dtype, name, values in sent:
        least, greatest, _ = measure_waveform(np.array(values, dtype).tobytes(), name)
        assert [math.copysign(1, least or 0.0), math.copysign(1, greatest or 0.0)] == [1, 1]
        least, greatest, _ = measure_waveform(np.array([-0.0, *values[:1]], dtype).tobytes(), name)
        assert repr((least, greatest)) == "(0.0, 0.0)"


@pytest.mark.parametrize(("baseline", "gain"), [(0.0, 200.0), (5.0, -2.0), (-1e308, 1e-300), (7.0, 1.0)])
def test_the_range_in_units_is_that_of_its_ends(baseline: float, gain: float) -> None:
    ends = [(-7.0, 7.0), (0.0, 0.0), (7.0, 7.0), (-1.7e308, 1.7e308)]
    least, greatest = (np.array([pair[n] for pair in ends]) for n in (0, 1))
    found = MetricColumns(least, greatest, np.zeros(len(ends), np.int64))
    low, high = found.in_units(np.full(len(ends), baseline), np.full(len(ends), gain))
    for n, pair in enumerate(ends):
        a, b = ((end - baseline) / gain for end in pair)
        assert [math.copysign(1, v) * abs(v) for v in (low[n], high[n])] == [min(a, b), max(a, b)]
        assert math.copysign(1, low[n]) == math.copysign(1, min(a, b))


IDS, METAS = ["a", "é", "c"], ['{"x":1}', '{"x":2}', '{"x":"ü"}']
Piece = tuple[int, int, int, str | None, bytes]
PIECES: list[Piece] = [
    # Of which waveform, its sequence number, count (-1: none), digest, bytes.
    (0, 0, 2, "d0", b"one"),
    (0, 1, -1, None, b"piece"),
    (1, 0, 1, None, b"alone"),
    (2, 0, 3, "d2", b"x"),
    (2, 1, 3, "d2", b""),
    (2, 2, 3, "other", b"yz"),
]


def assigned(crcs: list[int], sent: list[Piece] = PIECES, metas: list[str] = METAS) -> Assignment:
    digests = pa.array([d for *_, d, _ in sent], pa.string()).dictionary_encode()
    pieces = {
        "length": np.array([len(raw) for *_, raw in sent], np.int32),
        "count": np.array([c for _, _, c, *_ in sent], np.int32),
        "crc": np.array(crcs, np.uint32),
        "digest": digests.indices.fill_null(-1).to_numpy(),
    }
    first = np.searchsorted([w for w, *_ in sent], range(len(metas) + 1))
    sizes = np.array([sum(len(raw) for w, *_, raw in sent if w == n) for n in range(len(metas))])
    nothing = pa.nulls(len(metas), pa.string())
    return Assignment(pa.array(IDS[: len(metas)]), pa.array(metas), nothing, first, pieces, digests.dictionary, sizes)


def crc_of(w: int, seq: int, count: int, digest: str | None, raw: bytes, *, metas: list[str] = METAS) -> int:
    """By the chunk contract's words."""
    parts = IDS[w], str(seq), "" if count < 0 else str(count), metas[w], digest or ""
    return zlib.crc32(b"".join(part.encode() + b"\0" for part in parts) + raw)


def test_pieces_are_proven_whatever_each_says_and_the_first_other_one_is_named() -> None:
    right = [crc_of(*piece) for piece in PIECES]
    sent = memoryview(b"".join(raw for *_, raw in PIECES))
    assert PieceProof(assigned(right)).first_other(sent, 0, 3) is None
    assert PieceProof(assigned(right)).first_other(sent[8:], 1, 3) is None
    assert PieceProof(assigned(right)).first_other(sent[:8], 0, 1) is None
    for n in range(len(PIECES)):
        wrong = [crc ^ (m >= n) for m, crc in enumerate(right)]
        assert PieceProof(assigned(wrong)).first_other(sent, 0, 3) == OtherPiece(n, right[n])
    last = PieceProof(assigned([*right[:-1], 0])).first_other(sent[8:], 1, 3)
    assert last == OtherPiece(5, right[5])


def test_metadata_that_thousands_of_pieces_share_are_in_memory_once_whatever_else_these_say() -> None:
    metas = [json.dumps({"x": "y" * (16 << 10)})]
    sent: list[Piece] = [(0, n, -1 if n % 2 else 4096, None, b"ab") for n in range(4096)]
    proof = PieceProof(assigned([crc_of(*piece, metas=metas) for piece in sent], sent, metas))
    before = forget_peak()
    assert proof.first_other(memoryview(b"ab" * len(sent)), 0, 1) is None
    assert peak_rss() - before < 16 << 20  # 64 MiB, if each piece had its own


GOES_WITHOUT = """
import sys
from spark_apps.without_pandas import go_without_pandas
go_without_pandas()
go_without_pandas()
import numpy as np, pyarrow as pa
assert pa.array(np.arange(3), mask=np.arange(3) > 1).to_pylist() == [0, 1, None]
assert "pandas" not in sys.modules and len([f for f in sys.meta_path if type(f).__name__ == "_Absent"]) == 1
"""


def test_a_worker_goes_without_pandas() -> None:
    done = subprocess.run([sys.executable, "-c", GOES_WITHOUT], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    with_it = GOES_WITHOUT.replace("go_without_pandas()", "")
    assert (
        "AssertionError"
        in subprocess.run([sys.executable, "-c", with_it], capture_output=True, text=True, check=False).stderr
    )
