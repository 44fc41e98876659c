"""A published row that says anything else than what was sent is found by itself."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
import xxhash

from tests.builders.table_rows import published_row
from wavestitch.contracts.row_proof import PROVEN, row_problem

RAW = np.array([3, -1, 4, 1, -5, 9, 2, 6], "<i2")


def row_as_it_lies(**changes: Any) -> dict[str, Any]:
    made = published_row("w", raw=RAW)
    for name in ("start_time", "end_time"):
        made[name] = round(made[name].timestamp() * 1_000_000)
    return {**made, **changes}


def problem(row: dict[str, Any], raw: Any = RAW) -> str:
    return row_problem(row, raw.data.cast("B"), len(raw))


def other_meta(**changes: Any) -> str:
    return json.dumps({**json.loads(row_as_it_lies()["meta"]), **changes})


def other_chunk(**changes: Any) -> list[dict[str, Any]]:
    first, *rest = row_as_it_lies()["chunks"]
    return [{**first, **changes}, *rest]


def test_what_was_sent_is_as_it_was_sent() -> None:
    assert problem(row_as_it_lies()) == ""


@pytest.mark.parametrize(
    ("changes", "names"),
    [
        ({"source": "another"}, "source is 'another', its metadata give 'bench'"),
        ({"channel": "az"}, "channel is"),
        ({"start_time": 1}, "start_time is 1,"),
        ({"start_time_ns": 1}, "start_time_ns is 1,"),
        ({"end_time": 1}, "end_time is 1,"),
        ({"sampling_rate_hz": 2.0}, "sampling_rate_hz is 2.0,"),
        ({"units": "kV"}, "units is 'kV', its metadata give 'm/s2'"),
        ({"adc_gain": -4.0}, "adc_gain is -4.0,"),
        ({"baseline": 0.0}, "baseline is 0.0,"),
        ({"sample_count": 7}, "has 8 samples, sample_count says 7"),
        ({"digest": "0" * 32}, "digest says 0000"),
        ({"sample_min": -4.0}, "sample_min are not those of its samples"),
        ({"sample_max": None, "nonfinite_count": 1}, "sample_max, nonfinite_count are not"),
        ({"meta": "[]"}, "its metadata are none that were sent"),
        # Metadata that every other column follows: the chunks' own digests know what was said.
        ({"meta": other_meta(units="kV"), "units": "kV"}, "chunk 0 was another"),
        ({"meta": other_meta(patient="another")}, "chunk 0 was another"),
        ({"chunks": other_chunk(piece=b"\0" * 32)}, "chunk 0 was another"),
        ({"chunks": other_chunk(length=6)}, "chunk 0 was another"),
        ({"chunks": row_as_it_lies()["chunks"][:1]}, "its 1 chunks have 8 bytes; chunk_count says 2"),
        ({"chunk_count": 3}, "its 2 chunks have 16 bytes; chunk_count says 3"),
    ],
)
def test_a_column_that_says_something_else_is_named(changes: dict[str, Any], names: str) -> None:
    assert problem(row_as_it_lies(**changes)).startswith(names)


def test_a_row_without_samples_is_none_that_was_sent_whatever_else_it_says() -> None:
    nothing = {"samples": [], "sample_count": 0, "sample_min": None, "sample_max": None, "chunks": [], "chunk_count": 0}
    row = row_as_it_lies(**nothing, digest=xxhash.xxh3_128_hexdigest(b""))
    assert problem(row, RAW[:0]).startswith("has no samples")


def test_each_column_that_is_proven_is_looked_at() -> None:
    """Any of them changed is a problem, but for the id: it is no producer's word about the samples alone."""
    strange: dict[str, Any] = {"chunks": [], "meta": "{}", "digest": "", "sample_format": "i32le"}
    for name in PROVEN:
        changed = {name: strange.get(name, "x" if isinstance(row_as_it_lies()[name], str) else 12345)}
        assert bool(problem(row_as_it_lies(**changed))) == (name != "waveform_id"), name
