"""What the other tables of a catalog name: a file that one of them needs is nobody's to remove. Changes nothing.

A table whose metadata is neither in a local folder nor in the store of the warehouse is passed over, and what is no
Iceberg table. What cannot be read is an error, so that nothing is taken for unnamed by mistake.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from pyiceberg.catalog import Catalog
from pyiceberg.exceptions import NoSuchIcebergTableError, NoSuchNamespaceError, NoSuchTableError
from pyiceberg.io import WAREHOUSE
from pyiceberg.table import Table
from pyiceberg.typedef import Identifier

from wavestitch.contracts.warehouse import is_stored
from wavestitch.tables.access.file_marks import local_path
from wavestitch.tables.access.reading import reading
from wavestitch.tables.maintenance.table_state import named_files


def named_by_others(catalog: Catalog, *, own: Collection[str]) -> set[str]:
    """Paths of all files that tables other than `own` lead to."""
    found: set[str] = set()
    with reading(catalog.name):
        others = [name for space in _namespaces(catalog, ()) for name in _tables(catalog, space)]
    for name in others:
        if ".".join(name) not in own and (table := _load(catalog, name)) is not None:
            found |= named_files(table)
    return found


def _namespaces(catalog: Catalog, above: Identifier) -> Iterator[Identifier]:
    for space in catalog.list_namespaces(above):
        if space[:-1] == above:  # a server that knows no levels answers with all of them each time
            yield space
            yield from _namespaces(catalog, space)


def _tables(catalog: Catalog, space: Identifier) -> list[Identifier]:
    try:
        return catalog.list_tables(space)
    except NoSuchNamespaceError:  # dropped since it was listed
        return []


def _load(catalog: Catalog, name: Identifier) -> Table | None:
    with reading(".".join(name)):
        try:
            table = catalog.load_table(name)
        except (NoSuchTableError, NoSuchIcebergTableError):
            return None
    where = local_path(table.metadata_location)
    reached = ("file:", "/", "s3://") if is_stored(catalog.properties.get(WAREHOUSE, "")) else ("file:", "/")
    return table if where.startswith(reached) else None
