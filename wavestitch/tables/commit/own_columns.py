"""Which columns of a table are its layout's, and what others have done to them since.

Every engine changes columns by the metadata alone: no file is touched, and a column is known by its id. A column that
somebody added is theirs: rows are published and read beside it. Where one of ours is named otherwise or dropped, no row
of ours fits any more, and nothing is read or written before it is set back. Changes nothing; says what to do.
"""

from __future__ import annotations

from collections.abc import Iterator

from pyiceberg.schema import Schema
from pyiceberg.table import Table

from wavestitch.contracts.errors import BadInput
from wavestitch.tables.commit.table_layout import TableLayout

_WIDENED = "samples.element"
"""Batches themselves promote it."""


def refuse_lost(table: Table, layout: TableLayout) -> None:
    """Raises `BadInput` where a column of the layout is named otherwise or gone."""
    for said in _lost(table, layout):
        raise BadInput(said)


def strange_columns(table: Table, layout: TableLayout) -> list[str]:
    """A sentence for each column that is not as the table was made."""
    name, now = _name(table), table.schema()
    found = list(_lost(table, layout))
    renamed = {now.find_column_name(i) for i in _ids(_first(table)).values()}
    for column in now.column_names:
        if column not in layout.schema.column_names and column not in renamed:
            found.append(
                f"column {column} of table {name} is none of Wavestitch's: rows are published and read beside it, and "
                f"small files are not put together while it is there (ALTER TABLE {name} DROP COLUMN {column} ends it)"
            )
    for column in layout.schema.column_names:
        made = layout.schema.find_field(column).field_type
        kind = now.find_field(column).field_type if column in now.column_names else made
        if made.is_primitive and kind != made and column != _WIDENED:
            found.append(
                f"column {column} of table {name} is of type {kind}, the table was made with {made}: small files are "
                "not put together"
            )
    return found


def _lost(table: Table, layout: TableLayout) -> Iterator[str]:
    now, made = table.schema(), _ids(_first(table))
    ids, name = _ids(now), _name(table)
    for column in layout.schema.column_names:
        was = made.get(column)
        if was is None or ids.get(column) == was:
            continue
        other = now.find_column_name(was)
        if other is not None:
            yield (
                f"column {column} of table {name} is named {other} now, and no row fits it: set it back (ALTER TABLE "
                f"{name} RENAME COLUMN {other} TO {column.rpartition('.')[2]})"
            )
        else:
            yield (
                f"column {column} of table {name} was dropped, and one that is added anew is another: restore the "
                "catalog from before, or declare the stream under another name, with a group of its own and `start: "
                "earliest`: its first batch begins at the earliest offsets that the topic has"
            )


def _first(table: Table) -> Schema:
    """What the table was made with: columns keep the ids that they had then."""
    return min(table.metadata.schemas, key=lambda schema: schema.schema_id)


def _ids(schema: Schema) -> dict[str, int]:
    return {name: schema.find_field(name).field_id for name in schema.column_names}


def _name(table: Table) -> str:
    return ".".join(table.name())
