"""Sample formats and the types of the column `samples`: the one place where sent bytes become values, and bytes again.

A format is what a producer sends (`ws-meta`), a type is what a stream declares and its table has. A waveform *fits* a
type where its values, turned back, are the very bytes that were sent: nothing is rounded, clipped or tidied up (I3).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, get_args

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from wavestitch.contracts.sample_kinds import SampleType

SAMPLE_TYPES: tuple[SampleType, ...] = get_args(SampleType)

FORMAT_DTYPES = {"i16le": "<i2", "i32le": "<i4", "i64le": "<i8", "f32le": "<f4", "f64le": "<f8"}
"""NumPy's name of each sample format."""
TYPE_DTYPES: Mapping[SampleType, str] = {"int": "<i4", "long": "<i8", "float": "<f4", "double": "<f8"}
"""NumPy's name of each type."""
ARROW_TYPES: Mapping[SampleType, Any] = {
    "int": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
}

_FITS_ALWAYS: Mapping[SampleType, frozenset[str]] = {
    "int": frozenset({"i16le", "i32le"}),
    "long": frozenset({"i16le", "i32le", "i64le"}),
    "float": frozenset({"f32le", "i16le"}),
    "double": frozenset({"f64le", "i16le", "i32le"}),
}
_AT_ONCE = 1 << 17

Values = npt.NDArray[Any]


def samples_list(samples: SampleType) -> Any:
    """Arrow's type of the column: a list of samples, none of which is null."""
    return pa.list_(pa.field("element", ARROW_TYPES[samples], nullable=False))


def type_of_list(kind: Any) -> SampleType | None:
    """The sample type that a column of this Arrow type has; None where it is no column of samples."""
    if not (pa.types.is_list(kind) or pa.types.is_large_list(kind)):
        return None
    return next((name for name, element in ARROW_TYPES.items() if element == kind.value_type), None)


def values_of(raw: Any, sample_format: str) -> Values:
    """The values of sent bytes, shape (samples,), in the format's own dtype. A view."""
    return np.frombuffer(raw, dtype=FORMAT_DTYPES[sample_format])


def fits_always(sample_format: str, samples: SampleType) -> bool:
    """Whether whatever is sent in this format fits the type."""
    return sample_format in _FITS_ALWAYS[samples]


def runs_of_formats(formats: Sequence[str] | npt.NDArray[np.str_]) -> list[tuple[int, int, str]]:
    """Neighbours of one format, as `(first, end, format)`: half-open, in order."""
    named = np.asarray(formats, np.str_)
    cuts = [0, *(np.flatnonzero(named[1:] != named[:-1]) + 1).tolist(), len(named)]
    return [(lo, hi, str(named[lo])) for lo, hi in pairwise(cuts) if lo < hi]


def misfit(raw: Any, sample_format: str, samples: SampleType) -> str | None:
    """Why the waveform with these bytes does not fit the type exactly; None where it does. Names no sample's value."""
    if fits_always(sample_format, samples):
        return None
    kinds = sample_format[0], samples in ("int", "long")
    if kinds == ("f", True):
        return f"samples are {sample_format}, the stream declares {samples}; fractions and NaN are no whole numbers"
    values = values_of(raw, sample_format)
    for begin in range(0, len(values), _AT_ONCE):
        wrong = np.flatnonzero(~_exact(values[begin : begin + _AT_ONCE], samples))
        if len(wrong):
            return (
                f"samples are {sample_format}, the stream declares {samples}; "
                f"sample {begin + int(wrong[0])} of {len(values)} is none exactly"
            )
    return None


def as_type(values: Values, samples: SampleType) -> Values:
    """Values that fit, in the dtype of the type; a view where that is their own."""
    with np.errstate(all="ignore"):
        return values.astype(TYPE_DTYPES[samples], copy=False)


def as_sent(values: Values, sample_format: str) -> Values:
    """The inverse of `as_type`: values of a table in the dtype that they were sent in. Its bytes are those of the
    producer, where the waveform was published by this version."""
    with np.errstate(all="ignore"):
        return np.ascontiguousarray(values).astype(FORMAT_DTYPES[sample_format], copy=False)


def list_values(samples: Any) -> Values:
    """The values of one row's samples: of a list of Arrow, a NumPy array or a Python list. A view where it can be."""
    if isinstance(samples, pa.Scalar):
        found: Values = samples.values.to_numpy(zero_copy_only=False)
        return found
    return np.asarray(samples)


def sent_bytes(samples: Any, sample_format: str) -> memoryview:
    """The bytes that the producer sent, of one row's samples."""
    return as_sent(list_values(samples), sample_format).data.cast("B")


def came_exactly(samples: Any, sample_format: str) -> bool:
    """Whether each value of one row's samples can have come in this format. One that another tool has put there may be
    too large for it, and would be cut to a number that was sent."""
    values = list_values(samples)
    with np.errstate(all="ignore"):
        back = as_sent(values, sample_format).astype(values.dtype)
    same = back == values
    if values.dtype.kind == "f":
        # By bits: -0.0 equals 0.0. What is no number may come back as another one that is none.
        bits = f"<i{values.dtype.itemsize}"
        same = (back.view(bits) == values.view(bits)) | (np.isnan(back) & np.isnan(values))
    return bool(np.all(same))


def _exact(values: Values, samples: SampleType) -> npt.NDArray[np.bool_]:
    kind, wanted = values.dtype.kind, np.dtype(TYPE_DTYPES[samples])
    with np.errstate(all="ignore"):
        turned = values.astype(wanted)
        if kind == "i" and wanted.kind == "i":
            return np.asarray(turned == values)
        if kind == "i":
            # 2**63 - 1 becomes 2**63, which is no int64: what a processor makes of that differs.
            inside = (turned >= -(2.0**63)) & (turned < 2.0**63)
            return np.asarray(inside & (np.where(inside, turned, 0).astype(np.int64) == values))
        # By bits: of NaN there are many, and -0.0 equals 0.0.
        bits = f"<i{values.dtype.itemsize}"
        return np.asarray(turned.astype(values.dtype).view(bits) == values.view(bits))
