"""What the three tables of a stream look like: columns with their field ids, partitions, properties.

Field ids are given in the order of the columns, first the top level, then what is nested. Iceberg finds columns by id:
a table that exists keeps the ids it was made with. All columns are optional, as in the files that are added.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import count
from typing import Any

import pyarrow as pa
from pyiceberg.partitioning import UNPARTITIONED_PARTITION_SPEC, PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.transforms import DayTransform, IdentityTransform
from pyiceberg.types import (
    BinaryType,
    BooleanType,
    DoubleType,
    IcebergType,
    IntegerType,
    ListType,
    LongType,
    NestedField,
    StringType,
    StructType,
    TimestamptzType,
)

from wavestitch.contracts.rows import PUBLISHED

HELD_FILE_BYTES = 64 << 20
RAW_COLUMNS = ("raw_key", "raw_headers", "payload")
HELD = pa.schema(
    [
        ("topic_id", pa.string()),
        ("partition", pa.int32()),
        ("offset", pa.int64()),
        ("timestamp_ms", pa.int64()),
        ("waveform_id", pa.string()),
        ("seq", pa.int32()),
        ("count", pa.int32()),
        ("crc", pa.int64()),  # Iceberg has no unsigned integers
        ("length", pa.int32()),
        ("meta", pa.string()),
        ("digest", pa.string()),
        ("piece", pa.binary()),
        ("record_reason", pa.string()),  # why the record is no chunk; null for a valid one
        ("evidence_of_record", pa.string()),
        ("raw_key", pa.binary()),
        ("raw_headers", pa.binary()),
        ("payload", pa.binary()),
        # Whether this row has the record's bytes (which may be null). Otherwise an earlier row has them; of a record
        # that is no chunk none has, beyond `max_junk_bytes`.
        ("stored", pa.bool_()),
        ("reason", pa.string()),  # why it is held
        ("evidence", pa.string()),
        ("decision", pa.string()),
        ("sequence", pa.int64()),
        ("plan_id", pa.string()),
        ("proof", pa.string()),  # what the stream asked of its chunks when this one was read
        ("held_ms", pa.int64()),  # the deciding plan's clock: how long it has been held, whatever its record time says
    ]
)
BATCHES = pa.schema(
    [
        ("plan_id", pa.string()),
        ("decision", pa.string()),
        ("sequence", pa.int64()),
        ("generation", pa.int64()),
        ("kind", pa.string()),
        ("committed", pa.timestamp("us", tz="UTC")),
        ("detail", pa.string()),  # the whole row, JSON
    ]
)
_ICEBERG: dict[Any, IcebergType] = {
    pa.bool_(): BooleanType(),
    pa.int32(): IntegerType(),
    pa.int64(): LongType(),
    pa.float64(): DoubleType(),
    pa.string(): StringType(),
    pa.binary(): BinaryType(),
    # No other unit: readers compare a file's own bounds with microseconds, and skip what they should have read.
    pa.timestamp("us", tz="UTC"): TimestamptzType(),
}
_PROPERTIES = {
    # For other programs; our own commits are never retried by the library, whatever stands here (`one_commit`).
    "commit.retry.num-retries": "0",
    # The metadata file names every snapshot and is written anew by each commit; without these all versions pile up.
    "write.metadata.delete-after-commit.enabled": "true",
    "write.metadata.previous-versions-max": "50",
    # Each commit adds a manifest, and every lookup opens them all: 300 of them cost four times what 14 do.
    "commit.manifest-merge.enabled": "true",
    "commit.manifest.min-count-to-merge": "20",
    # Expiring snapshots must leave the head; tools that follow the table's own settings keep this many.
    "history.expire.min-snapshots-to-keep": "100",
    "write.parquet.compression-codec": "zstd",
}


@dataclass(frozen=True, slots=True)
class TableLayout:
    """One kind of table. `columns`: of the files that are written or added."""

    name: str
    columns: pa.Schema
    schema: Schema
    partitions: PartitionSpec
    properties: dict[str, str]


def iceberg_schema(columns: pa.Schema) -> Schema:
    """The Iceberg schema of Arrow columns, with field ids by position."""
    ids = count(1)
    return Schema(*_fields(list(columns), ids))


def _fields(columns: list[Any], ids: count[int]) -> list[NestedField]:
    # All ids of a level before those of the next: the order in which Iceberg assigns them itself when it makes a table.
    numbered = [(next(ids), c) for c in columns]
    return [NestedField(n, c.name, _iceberg_type(c.type, ids), required=False) for n, c in numbered]


def _iceberg_type(kind: Any, ids: count[int]) -> IcebergType:
    if pa.types.is_struct(kind):
        return StructType(*_fields(list(kind), ids))
    if pa.types.is_list(kind):
        element = next(ids)
        return ListType(element, _iceberg_type(kind.value_type, ids), element_required=False)
    return _ICEBERG[kind]


def _layout(
    name: str,
    columns: pa.Schema,
    properties: Mapping[str, str],
    partitions: PartitionSpec = UNPARTITIONED_PARTITION_SPEC,
) -> TableLayout:
    schema = iceberg_schema(columns)
    # The files carry no field ids; with the mapping set from the start, adding them never changes the table's settings.
    mapping = {"schema.name-mapping.default": schema.name_mapping.model_dump_json()}
    return TableLayout(name, columns, schema, partitions, {**_PROPERTIES, **mapping, **properties})


def _metrics(mode: str, *columns: str) -> dict[str, str]:
    return {f"write.metadata.metrics.column.{c}": mode for c in columns}


_START_TIME = PUBLISHED.get_field_index("start_time") + 1
WAVEFORMS_TABLE = _layout(
    "waveforms",
    PUBLISHED,
    # Ids often share a long beginning; cut bounds would never rule a file out.
    {
        **_metrics("none", "samples", "meta"),
        **_metrics("full", "waveform_id"),
        # A reader decodes groups side by side, so large ones are read slower. Spark counts compressed bytes; these are
        # about as much payload as the stitching puts into one.
        "write.parquet.row-group-size-bytes": str(32 << 20),
    },
    PartitionSpec(PartitionField(_START_TIME, 1000, DayTransform(), "start_time_day")),
)
HELD_TABLE = _layout(
    "held",
    HELD,
    {
        **_metrics("none", *RAW_COLUMNS, "meta"),
        **_metrics("full", "topic_id", "waveform_id"),
        # Compaction by other tools keeps to this, too: a file of payloads is read whole.
        "write.target-file-size-bytes": str(HELD_FILE_BYTES),
    },
    # A look at what waits, or at one waveform, never opens a file of records that are no chunks.
    PartitionSpec(PartitionField(HELD.get_field_index("reason") + 1, 1000, IdentityTransform(), "reason")),
)
BATCHES_TABLE = _layout("batches", BATCHES, _metrics("none", "detail"))
