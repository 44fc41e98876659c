"""The column `samples` of a table of waveforms: what type it has, and how it becomes a wider one.

Only Iceberg's own promotions, int to long and float to double: no file is written anew, and every reader knows them.
A table that never had a row takes any type: a stream that was declared wrongly is declared anew.
Refuses a table of an older layout by a sentence: none is migrated, and its bytes would be taken for something else.
"""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow.parquet as pq
from pyiceberg.table import Table, Transaction
from pyiceberg.types import DoubleType, FloatType, IcebergType, IntegerType, ListType, LongType

from wavestitch.contracts.errors import Altered, BadInput
from wavestitch.contracts.sample_kinds import SampleType, promoted
from wavestitch.contracts.sample_types import type_of_list

_ICEBERG: Mapping[SampleType, IcebergType] = {
    "int": IntegerType(),
    "long": LongType(),
    "float": FloatType(),
    "double": DoubleType(),
}
_ELEMENT = ("samples", "element")


def sample_type_of(table: Table) -> SampleType:
    """Raises `BadInput` where the table is of a layout that is not read."""
    schema = table.schema()
    column = next((f for f in schema.fields if f.name == "samples"), None)
    if column is not None and isinstance(column.field_type, ListType):
        element = column.field_type.element_type
        for name, kind in _ICEBERG.items():
            if element == kind:
                return name
    raise BadInput(
        f"table {'.'.join(table.name())} has samples of type {'none' if column is None else column.field_type}; this "
        "version reads list<int>, list<long>, list<float> and list<double>, and migrates no table of an older layout: "
        "declare the stream under another name, and rewind it to the earliest offsets that the topic has"
    )


def never_filled(table: Table) -> bool:
    """Whether no snapshot that the table retains has a data file."""
    # The newest has some, of a table that was ever filled; a long history need not be gone through.
    said = (s.summary.additional_properties if s.summary else {} for s in reversed(table.metadata.snapshots))
    return all(about.get("total-data-files") == "0" for about in said)


def widen_samples(change: Transaction, table: Table, path: str) -> None:
    """Let the column have room for the samples of this Parquet file, in the same commit. Raises `Altered` where it
    cannot."""
    has = sample_type_of(table)
    with table.io.new_input(path).open() as source:
        schema = pq.read_schema(source)
    brings = type_of_list(schema.field("samples").type) if "samples" in schema.names else None
    becomes = None if brings is None else promoted(has, brings)
    anew = becomes is None and brings is not None and never_filled(table)
    becomes = brings if anew else becomes
    if becomes is None:
        raise Altered(
            f"file {path} has samples of type {brings}, table {'.'.join(table.name())} has {has}, and neither becomes "
            "the other; run the batch's reassemble step again",
            file=path,
        )
    if becomes != has:
        # The field keeps its id, by which columns of files are found.
        with change.update_schema(allow_incompatible_changes=anew) as schema_change:
            schema_change.update_column(_ELEMENT, field_type=_ICEBERG[becomes])
