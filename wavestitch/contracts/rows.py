"""The files between the steps, as Arrow schemas. The format version is in the metadata; an unknown one is refused.

`LANDING`: one row per record that a batch read, payload included. `STITCHED`: one slim row per waveform that was
stitched, no samples: what the gate looks at, what publish needs. `published_schema`: one row per published waveform.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from wavestitch.contracts.sample_kinds import SampleType
from wavestitch.contracts.sample_types import samples_list

LANDING_FORMAT = b"2"
_FORMAT_KEY = b"wavestitch.landing-format"
LANDING = pa.schema(
    [
        ("partition", pa.int32()),
        ("offset", pa.int64()),
        ("timestamp_ms", pa.int64()),  # record time; 0 where the record has none
        ("waveform_id", pa.string()),  # null where the record names none
        ("seq", pa.int32()),
        ("count", pa.int32()),
        ("crc", pa.uint32()),
        ("length", pa.int32()),  # bytes of payload; where `reason` is set, of all that is kept: key, headers, payload
        ("meta", pa.string()),  # once per record batch: in the first row that has this text
        ("meta_row", pa.int32()),  # the row of this record batch in which this one's text stands; null: it has none
        ("digest", pa.string()),
        ("piece", pa.binary(32)),  # `piece_digest`: what tells two records of one place apart
        ("reason", pa.string()),  # null: a valid chunk
        ("evidence", pa.string()),
        ("raw_key", pa.binary()),  # kept only where `reason` is set
        ("raw_headers", pa.binary()),  # see `raw_headers`; kept only where `reason` is set
        ("payload", pa.binary()),
    ],
    metadata={_FORMAT_KEY: LANDING_FORMAT},
)
LANDING_APART_FORMAT = b"3"
LANDING_APART = LANDING.with_metadata({_FORMAT_KEY: LANDING_APART_FORMAT})
"""The same where the payload is in an object store (`payload_apart`)."""
LANDING_FORMATS = (LANDING_FORMAT, LANDING_APART_FORMAT)
INDEX_COLUMNS = tuple(n for n in LANDING.names if n not in ("payload", "raw_key", "raw_headers"))


def texts_once(texts: Sequence[str | None]) -> tuple[list[str | None], list[int | None]]:
    """`meta` and `meta_row` of a record batch whose rows have these texts."""
    first: dict[str, int] = {}
    rows = [None if text is None else first.setdefault(text, n) for n, text in enumerate(texts)]
    return [text if rows[n] == n else None for n, text in enumerate(texts)], rows


def meta_numbers(batch: pa.RecordBatch) -> tuple[npt.NDArray[np.int32], pa.Array]:
    """Of each row of a whole record batch the number of its metadata among the texts of the batch (-1: it has none),
    and these texts. Raises `ValueError` where a row names one that has none."""
    texts, rows = batch.column("meta"), batch.column("meta_row")
    stands = np.asarray(texts.is_valid())
    named = np.asarray(rows.is_valid())
    at = np.asarray(rows.fill_null(0), np.int64)
    if len(at) and (at.min() < 0 or at.max() >= len(at) or not stands[at[named]].all()):
        raise ValueError("a row's metadata are said to stand where there are none")
    numbers = np.where(named, (np.cumsum(stands) - 1)[at], -1).astype(np.int32)
    return numbers, texts.drop_null()


def texts_of(batch: pa.RecordBatch) -> list[str | None]:
    """The metadata of each row of a whole record batch; equal ones are one object. Raises as `meta_numbers`."""
    numbers, texts = meta_numbers(batch)
    said = [*texts.to_pylist(), None]
    return [said[n] for n in numbers.tolist()]


CHUNK_STRUCT = pa.struct(
    [
        pa.field("topic_id", pa.string(), nullable=False),
        pa.field("partition", pa.int32(), nullable=False),
        pa.field("offset", pa.int64(), nullable=False),
        pa.field("length", pa.int32(), nullable=False),
        pa.field("piece", pa.binary(), nullable=False),
    ]
)
_CHUNKS = pa.list_(pa.field("element", CHUNK_STRUCT, nullable=False))
# Iceberg times are microseconds: Spark skips row groups of millisecond columns that do have matching rows.
_TIME = pa.timestamp("us", tz="UTC")
_PUBLISHED: tuple[tuple[str, Any, bool, str], ...] = (
    ("waveform_id", pa.string(), True, "Who the waveform is: unique in this table"),
    ("source", pa.string(), True, "Who recorded: an FDSN source identifier, a record name"),
    ("channel", pa.string(), True, "Lead, channel code, axis"),
    ("start_time", _TIME, True, "Time of the first sample, UTC, rounded down to microseconds"),
    ("start_time_ns", pa.int64(), True, "Time of the first sample, ns since 1970, UTC, exact"),
    ("end_time", _TIME, True, "Time of the last sample, UTC"),
    ("sampling_rate_hz", pa.float64(), True, "Samples a second"),
    ("sample_count", pa.int64(), True, "How many samples there are"),
    ("sample_format", pa.string(), True, "What was sent: i16le, i32le, i64le, f32le or f64le"),
    ("units", pa.string(), True, "UCUM code of the physical unit"),
    ("adc_gain", pa.float64(), True, "Counts per unit; physical = (sample - baseline) / adc_gain"),
    ("baseline", pa.float64(), True, "Counts; physical = (sample - baseline) / adc_gain"),
    ("samples", None, True, "The samples in order of time, raw (in counts), exactly as they were sent"),
    ("meta", pa.string(), True, "ws-meta, as sent: JSON, with whatever else the producer says"),
    ("digest", pa.string(), True, "XXH3-128 of the samples as they were sent: little-endian, in sample_format"),
    ("sample_min", pa.float64(), False, "Least finite sample, raw; null where none is finite"),
    ("sample_max", pa.float64(), False, "Greatest finite sample, raw; null where none is finite"),
    ("nonfinite_count", pa.int64(), True, "How many samples are NaN or infinite"),
    ("chunk_count", pa.int32(), True, "How many chunks it came in"),
    ("chunks", _CHUNKS, True, "Where each chunk lay, topic included, and its SHA-256; in order of sequence"),
    (
        "topic_id",
        pa.string(),
        True,
        "The Kafka topic that its batch read, by its id; `chunks` name their own",
    ),
    ("first_record_time", _TIME, False, "Least record time of its chunks; null where no calendar has it"),
    ("last_record_time", _TIME, False, "Greatest record time of its chunks; null where no calendar has it"),
    ("plan_id", pa.string(), True, "The batch that published it"),
)
"""Name, type, whether it is required, and what it says; see `published_schema`."""
PUBLISHED_DOCS = {name: doc for name, _, _, doc in _PUBLISHED}


def published_schema(samples: SampleType) -> Any:
    """One row per published waveform, of a stream with this type of samples."""
    return pa.schema(
        [
            pa.field(name, samples_list(samples) if kind is None else kind, nullable=not required)
            for name, kind, required, _ in _PUBLISHED
        ]
    )


STITCHED = pa.schema(
    [
        ("waveform_id", pa.string()),
        ("reason", pa.string()),  # null: stitched and proven
        ("evidence", pa.string()),
        ("file", pa.string()),  # the staged Parquet file's name; null where `reason` is set
        ("row", pa.int64()),  # row in that file
        ("day", pa.date32()),
        ("byte_length", pa.int64()),
        ("source", pa.string()),
        ("channel", pa.string()),
        ("start_time", pa.timestamp("us", tz="UTC")),
        ("duration_s", pa.float64()),
        ("sampling_rate_hz", pa.float64()),
        ("sample_format", pa.string()),
        ("units", pa.string()),
        ("sample_count", pa.int64()),
        ("nonfinite_count", pa.int64()),
        ("sample_min", pa.float64()),  # raw units
        ("sample_max", pa.float64()),
        ("physical_min", pa.float64()),  # in `units`
        ("physical_max", pa.float64()),
        ("chunk_count", pa.int32()),
    ]
)
"""Great Expectations sees these columns, for rows without a reason (and `duplicate`-free: one row per waveform)."""
