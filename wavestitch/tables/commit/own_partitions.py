"""How the files of a table are divided, and what others have done to that since.

Every engine changes that by the metadata alone, for files from then on; those that are there stay as they are. A file
of a batch is of one part by our own division, and by another one perhaps of several: then the table does not take it.
Changes nothing; says what to do.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from pyiceberg.partitioning import PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table import Table

from wavestitch.contracts.errors import BadInput
from wavestitch.tables.commit.table_layout import TableLayout


@contextmanager
def refusing_partitions(table: Table, layout: TableLayout) -> Iterator[None]:
    """Around whatever adds files. Raises `BadInput` in the place of a `ValueError` where the division is another."""
    try:
        yield
    except ValueError as error:
        for said in other_partitions(table, layout):
            raise BadInput(f"{said}. Nothing was committed") from error
        raise


def other_partitions(table: Table, layout: TableLayout) -> list[str]:
    """A sentence where it is divided otherwise than it was made."""
    now, made = _fields(table.spec(), table.schema()), _fields(layout.partitions, layout.schema)
    if set(now.values()) == set(made.values()):
        return []
    name = ".".join(table.name())
    back = [f"ALTER TABLE {name} DROP PARTITION FIELD {field}" for field, of in now.items() if of not in made.values()]
    back += [f"ALTER TABLE {name} ADD PARTITION FIELD {of}" for of in made.values() if of not in now.values()]
    return [
        f"table {name} is partitioned by {', '.join(now.values()) or 'nothing'}, and was made to be by "
        f"{', '.join(made.values()) or 'nothing'}: a batch with a file of several of its partitions is not taken; set "
        f"it back ({'; '.join(back)})"
    ]


def _fields(spec: PartitionSpec, schema: Schema) -> dict[str, str]:
    """By name, of what each is made, as engines write that."""
    found = {field.name: (str(field.transform), str(schema.find_column_name(field.source_id))) for field in spec.fields}
    return {name: of if how == "identity" else f"{how}({of})" for name, (how, of) in found.items() if how != "void"}
