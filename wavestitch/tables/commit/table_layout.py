"""What the three tables of a stream look like: columns with their field ids, partitions, properties.

Field ids are given in the order of the columns, first the top level, then what is nested. Iceberg finds columns by id:
a table that exists keeps the ids it was made with. Every column says what it is.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
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
    FloatType,
    IcebergType,
    IntegerType,
    ListType,
    LongType,
    NestedField,
    StringType,
    StructType,
    TimestamptzType,
)

from wavestitch.contracts.rows import PUBLISHED_DOCS, published_schema
from wavestitch.contracts.sample_kinds import SampleType
from wavestitch.tables.commit.own_versions import OWN_VERSIONS

HELD_FILE_BYTES = 64 << 20
GROUP_BYTES = "write.parquet.row-group-size-bytes"
"""The property that says how large a row group may be, to Spark and to us."""
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
_HELD_DOCS = {
    "topic_id": "The Kafka topic, by its id",
    "partition": "Where the record lies",
    "offset": "Where the record lies",
    "timestamp_ms": "Record time, ms since 1970, UTC",
    "waveform_id": "Which waveform it is a piece of; null where it names none",
    "seq": "Place in its waveform, from 0",
    "count": "How many chunks the waveform has, as this one says",
    "crc": "ws-crc, CRC-32",
    "length": "Bytes of payload",
    "meta": "ws-meta, as sent",
    "digest": "ws-digest, as sent",
    "piece": "SHA-256 of its metadata and bytes: equal ones are the same chunk",
    "record_reason": "Why the record is no chunk; null where it is one",
    "evidence_of_record": "What was seen of such a record, and what is allowed",
    "raw_key": "The record's key, where it is no chunk",
    "raw_headers": "The record's headers as JSON, where it is no chunk",
    "payload": "The record's value, as sent",
    "stored": "Whether this row has the record's bytes",
    "reason": "Why it is held",
    "evidence": "What was seen, and what is allowed",
    "decision": "Digest of the decision that holds it",
    "sequence": "Number of the head that names it first",
    "plan_id": "The batch that holds it",
    "proof": "What the stream asked of its chunks when this one was read",
    "held_ms": "Since when it is held, ms since 1970, UTC, by that batch's clock",
}
_BATCHES_DOCS = {
    "plan_id": "The batch, by its plan",
    "decision": "Digest of its decision",
    "sequence": "Number of the head that it made",
    "generation": "How many rewinds there were before it",
    "kind": "ingest, backfill, held, rewind or maintenance",
    "committed": "When it was committed, UTC",
    "detail": "All that is known of it, JSON",
}
_ICEBERG: dict[Any, IcebergType] = {
    pa.bool_(): BooleanType(),
    pa.int32(): IntegerType(),
    pa.int64(): LongType(),
    pa.float32(): FloatType(),
    pa.float64(): DoubleType(),
    pa.string(): StringType(),
    pa.binary(): BinaryType(),
    # No other unit: readers compare a file's own bounds with microseconds, and skip what they should have read.
    pa.timestamp("us", tz="UTC"): TimestamptzType(),
}
_PROPERTIES = {
    # For other programs; our own commits are never retried by the library, whatever stands here (`one_commit`).
    "commit.retry.num-retries": "0",
    **OWN_VERSIONS,
    # Each commit adds a manifest, and every lookup opens them all: 300 of them cost four times what 14 do.
    "commit.manifest-merge.enabled": "true",
    "commit.manifest.min-count-to-merge": "20",
    # Expiring snapshots must leave the head; tools that follow the table's own settings keep this many.
    "history.expire.min-snapshots-to-keep": "100",
    "write.parquet.compression-codec": "zstd",
    # Bounds are whole. Cut ones rule no file out where texts share a long beginning; and where an upper one is cut, a
    # character is counted up: pyiceberg makes of the last one before the surrogates what no text holds, and fails.
    "write.metadata.metrics.default": "full",
}


@dataclass(frozen=True, slots=True)
class TableLayout:
    """One kind of table. `columns`: of the files that are written or added."""

    name: str
    columns: pa.Schema
    schema: Schema
    partitions: PartitionSpec
    properties: dict[str, str]


def iceberg_schema(columns: pa.Schema, docs: Mapping[str, str], *, identifier: str | None = None) -> Schema:
    """The Iceberg schema of Arrow columns, with field ids by position. `identifier`: the column that tells rows
    apart."""
    fields = _fields(list(columns), count(1), docs)
    return Schema(*fields, identifier_field_ids=[f.field_id for f in fields if f.name == identifier])


def _fields(columns: list[Any], ids: count[int], docs: Mapping[str, str]) -> list[NestedField]:
    # All ids of a level before those of the next: the order in which Iceberg assigns them itself when it makes a table.
    numbered = [(next(ids), c) for c in columns]
    return [
        NestedField(n, c.name, _iceberg_type(c.type, ids, docs), required=not c.nullable, doc=docs.get(c.name))
        for n, c in numbered
    ]


def _iceberg_type(kind: Any, ids: count[int], docs: Mapping[str, str]) -> IcebergType:
    if pa.types.is_struct(kind):
        return StructType(*_fields(list(kind), ids, docs))
    if pa.types.is_list(kind):
        element = next(ids)
        required = not kind.value_field.nullable
        return ListType(element, _iceberg_type(kind.value_type, ids, docs), element_required=required)
    return _ICEBERG[kind]


def _layout(
    name: str,
    columns: pa.Schema,
    properties: Mapping[str, str],
    docs: Mapping[str, str],
    partitions: PartitionSpec = UNPARTITIONED_PARTITION_SPEC,
    identifier: str | None = None,
) -> TableLayout:
    schema = iceberg_schema(columns, docs, identifier=identifier)
    # The files carry no field ids; with the mapping set from the start, adding them never changes the table's settings.
    mapping = {"schema.name-mapping.default": schema.name_mapping.model_dump_json()}
    return TableLayout(name, columns, schema, partitions, {**_PROPERTIES, **mapping, **properties})


def _metrics(mode: str, *columns: str) -> dict[str, str]:
    return {f"write.metadata.metrics.column.{c}": mode for c in columns}


@cache
def waveforms_layout(samples: SampleType) -> TableLayout:
    """Of a stream that declares this type of samples."""
    columns = published_schema(samples)
    start_time = columns.get_field_index("start_time") + 1
    return _layout(
        "waveforms",
        columns,
        {
            **_metrics("none", "samples", "meta"),
            # A reader decodes groups side by side, so large ones are read slower. Spark counts compressed bytes; these
            # are about as much payload as the stitching puts into one.
            GROUP_BYTES: str(32 << 20),
            "write.parquet.bloom-filter-enabled.column.waveform_id": "true",
            "write.parquet.bloom-filter-max-bytes": "65536",  # of each group, whatever it needs
        },
        PUBLISHED_DOCS,
        PartitionSpec(PartitionField(start_time, 1000, DayTransform(), "start_time_day")),
        identifier="waveform_id",
    )


HELD_TABLE = _layout(
    "held",
    HELD,
    {
        **_metrics("none", *RAW_COLUMNS, "meta"),
        # Compaction by other tools keeps to this, too: a file of payloads is read whole.
        "write.target-file-size-bytes": str(HELD_FILE_BYTES),
    },
    _HELD_DOCS,
    # A look at what waits, or at one waveform, never opens a file of records that are no chunks.
    PartitionSpec(PartitionField(HELD.get_field_index("reason") + 1, 1000, IdentityTransform(), "reason")),
)
BATCHES_TABLE = _layout(
    "batches",
    BATCHES,
    # What is asked for are the last rows, and of a group that has one of them all are read: years lie in one file.
    {**_metrics("none", "detail"), GROUP_BYTES: str(1 << 20)},
    _BATCHES_DOCS,
)


def columns_of(table: str) -> pa.Schema:
    """Of the files of a table, by its name without the namespace."""
    return {"waveforms": published_schema("int"), "held": HELD, "batches": BATCHES}[table]
