"""What fits a type fits exactly: bytes become values and the very bytes again, or a sentence says why not."""

from __future__ import annotations

import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from wavestitch.contracts.chunk_metadata import SAMPLE_BYTES
from wavestitch.contracts.sample_kinds import promoted
from wavestitch.contracts.sample_types import (
    ARROW_TYPES,
    FORMAT_DTYPES,
    TYPE_DTYPES,
    as_type,
    misfit,
    runs_of_formats,
    samples_list,
    sent_bytes,
    type_of_list,
    values_of,
)

TYPES = list(TYPE_DTYPES)
ODD: dict[str, list[float]] = {
    "i16le": [0, 1, -1, 2**15 - 1, -(2**15)],
    "i32le": [0, 2**24, 2**24 + 1, 2**31 - 1, -(2**31)],
    "i64le": [0, 2**31, 2**53, 2**53 + 1, 2**63 - 1, -(2**63), -(2**63) + 1, 2**62],
    "f32le": [0.0, -0.0, 1.5, 16777216.0, float("inf"), float("nan")],
    "f64le": [0.0, -0.0, 1.5, 0.1, 1e300, 5e-324, float("-inf"), float("nan")],
}
LETTERS = {"i16le": "h", "i32le": "i", "i64le": "q", "f32le": "f", "f64le": "d"}


def test_every_format_of_the_contract_is_known_by_its_size():
    assert {f: np.dtype(d).itemsize for f, d in FORMAT_DTYPES.items()} == SAMPLE_BYTES


@pytest.mark.parametrize("samples", TYPES)
@pytest.mark.parametrize("sample_format", FORMAT_DTYPES)
@given(data=st.data())
def test_what_fits_comes_back_bit_by_bit_and_what_does_not_is_named(sample_format, samples, data):
    size = SAMPLE_BYTES[sample_format]
    anything = st.binary(min_size=size, max_size=size)
    odd = st.sampled_from([struct.pack(f"<{LETTERS[sample_format]}", x) for x in ODD[sample_format]])
    raw = b"".join(data.draw(st.lists(st.one_of(odd, anything), min_size=1, max_size=20)))
    why = misfit(raw, sample_format, samples)
    values = values_of(raw, sample_format)
    if why is None:
        typed = as_type(values, samples)
        assert typed.dtype == TYPE_DTYPES[samples]
        assert bytes(sent_bytes(typed, sample_format)) == raw
        finite = [x for x in zip(typed.tolist(), values.tolist(), strict=True) if x[1] == x[1]]
        assert all(a == b for a, b in finite)  # Python compares an int and a float by what they are
    else:
        assert f"samples are {sample_format}, the stream declares {samples}" in why
        assert sample_format[0] == "f" or not _exact_in_python(values.tolist(), samples)


def _exact_in_python(values: list[int], samples: str) -> bool:
    """By whole numbers of any size, which Python has."""
    if samples in ("int", "long"):
        most = 2 ** (31 if samples == "int" else 63)
        return all(-most <= v < most for v in values)
    # What a float has beside its sign and its power of two.
    bits = 24 if samples == "float" else 53
    return all(abs(v) < 2**bits or abs(v) % 2 ** (abs(v).bit_length() - bits) == 0 for v in values)


@pytest.mark.parametrize(
    ("sample_format", "samples"),
    [
        *(("i16le", t) for t in TYPES),
        ("i32le", "int"),
        ("i32le", "long"),
        ("i32le", "double"),
        ("i64le", "long"),
        ("f32le", "float"),
        ("f64le", "double"),
    ],
)
def test_these_always_fit(sample_format, samples):
    assert misfit(struct.pack("<2q", -1, 2**63 - 1), sample_format, samples) is None


@pytest.mark.parametrize(
    ("sample_format", "samples", "raw"),
    [
        ("i64le", "double", struct.pack("<q", 2**63 - 1)),  # rounds up to 2**63, which is no int64
        ("i64le", "double", struct.pack("<q", 2**53 + 1)),
        ("i64le", "int", struct.pack("<q", 2**31)),
        ("i32le", "float", struct.pack("<i", 2**24 + 1)),
        ("f32le", "double", struct.pack("<I", 0x7F800001)),  # a signalling NaN: widened, it is a quiet one
        ("f64le", "float", struct.pack("<Q", 0x7FF8000000000001)),  # what the NaN says has no room
        ("f64le", "float", struct.pack("<d", 0.1)),
        ("f64le", "float", struct.pack("<d", 1e300)),
        ("f32le", "int", struct.pack("<f", 1.0)),
        ("f64le", "long", struct.pack("<d", -0.0)),
    ],
)
def test_these_do_not(sample_format, samples, raw):
    why = misfit(bytes(len(raw)) * (1 << 18) + raw, sample_format, samples)
    assert why is not None
    if samples in ("float", "double") or sample_format == "i64le":
        assert f"sample {1 << 18} of {(1 << 18) + 1} is none exactly" in why


def test_the_edges_that_do_fit():
    assert misfit(struct.pack("<q", -(2**63)), "i64le", "double") is None
    assert misfit(struct.pack("<q", 2**62), "i64le", "float") is None
    assert misfit(struct.pack("<I", 0x7FC12345), "f32le", "double") is None  # a quiet NaN keeps what it says
    assert misfit(struct.pack("<Q", 0x7FF8000020000000), "f64le", "float") is None


def test_a_type_is_known_by_its_list_and_widens_as_iceberg_says():
    assert [type_of_list(samples_list(t)) for t in TYPES] == TYPES
    assert type_of_list(ARROW_TYPES["int"]) is None
    found = {(a, b): promoted(a, b) for a in TYPES for b in TYPES if promoted(a, b)}
    assert found == {
        **{(t, t): t for t in TYPES},
        ("int", "long"): "long",
        ("long", "int"): "long",
        ("float", "double"): "double",
        ("double", "float"): "double",
    }


@pytest.mark.parametrize(
    ("formats", "runs"),
    [
        ([], []),
        (["i16le"], [(0, 1, "i16le")]),
        (["i16le", "i16le", "f32le", "i16le"], [(0, 2, "i16le"), (2, 3, "f32le"), (3, 4, "i16le")]),
    ],
)
def test_neighbours_of_one_format_are_one_run(formats, runs):
    assert runs_of_formats(formats) == runs
