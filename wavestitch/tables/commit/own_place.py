"""Where the files of a table belong: below the warehouse of the settings, by the table's name, whatever it says itself.

A table's `location` can be set by everybody who may alter that one table, by mistake, too; whoever believed it would
write among another table's files, or remove them. So a table that says another place is read, but nothing is written to
it and no file of it is removed. Changes nothing in the catalog.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from pyiceberg.table import Table

from wavestitch.contracts.errors import BadInput
from wavestitch.contracts.warehouse import plain_warehouse
from wavestitch.tables.access.file_marks import local_path

__all__ = ["OwnPlace", "local_path"]


@dataclass(frozen=True, slots=True)
class OwnPlace:
    """The place of table `name`. `location`: as Iceberg names it."""

    name: str
    location: str

    @classmethod
    def of(cls, warehouse: str, namespace: str, table: str) -> OwnPlace:
        """Raises `BadInput` for a warehouse that is not spelled as one."""
        try:
            warehouse = plain_warehouse(warehouse)
        except ValueError as error:
            raise BadInput(f"[tables] {error}") from None
        return cls(f"{namespace}.{table}", f"{warehouse.rstrip('/')}/{namespace}/{table}")

    def folder(self) -> Path:
        """Raises `BadInput` if it is not local."""
        if not self.location.startswith("file:"):
            raise BadInput(
                f"table {self.name} belongs at {self.location}; files are put in and removed from local folders and "
                "S3 only, so `warehouse` of [tables] must be one, e.g. file:///srv/wavestitch/warehouse or "
                "s3://waveforms/warehouse"
            )
        return Path(local_path(self.location))

    def refuse_other(self, table: Table) -> None:
        """Raises `BadInput` where the table says another place than this one."""
        if (found := self.remark(table)) is not None:
            raise BadInput(found)

    def remark(self, table: Table) -> str | None:
        """A sentence where the table says another place than this one."""
        if _same(table.metadata.location, self.location):
            return None
        return (
            f"table {self.name} says that it is at {table.metadata.location}, and belongs at {self.location}; nothing "
            "is written to it and no file is removed until its location is set back (ALTER TABLE … SET LOCATION)"
        )

    def with_own_versions(self, table: Table) -> Table:
        """The same table, as loaded, without the versions of its metadata that it says are elsewhere: each commit
        deletes the oldest, by the names that stand in the table."""
        own = f"{self.location}/metadata"
        log = [e for e in table.metadata.metadata_log if _same(os.path.dirname(e.metadata_file), own)]
        table.metadata = table.metadata.model_copy(update={"metadata_log": log})
        return table


def _same(one: str, other: str) -> bool:
    one, other = local_path(one).rstrip("/"), local_path(other).rstrip("/")
    return one == other or (one[:1] == other[:1] == "/" and os.path.realpath(one) == os.path.realpath(other))
