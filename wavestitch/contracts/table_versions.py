"""Versions of a table's metadata that lie in its folder and that no table of the catalog names: what do they prove?

A version is written before the catalog is told of it, so that a commit that lost, or died, leaves one behind. Any other
one was the table once: then the catalog was set back, exchanged or lost, and what only that version names is not
rubbish. Pure; errs on the side of doubt.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class TableVersion:
    """One metadata file. `file`: its name. `table`: the UUID of its table. `sequence`: of its newest snapshot, as
    Iceberg counts. `parent`: the name of the version that it was made from, empty for a first one."""

    file: str
    table: str
    sequence: int
    snapshots: int
    updated_ms: int
    parent: str = ""

    @property
    def age(self) -> tuple[int, int, str]:
        """Sorts by it, the oldest first."""
        return self.sequence, self.updated_ms, self.file


def find_doubtful(
    unnamed: Iterable[TableVersion], *, table: str, sequence: int, past_ms: int, remembered: Collection[str] = ()
) -> list[TableVersion]:
    """Those that may have been the table, the newest first.

    `table`, `sequence`: UUID and newest sequence number of the table as the catalog has it. `past_ms`: what is older
    than that is the table's own past. `remembered`: what was found doubtful before; a table that goes on does not make
    it less so.
    """
    found = list(unnamed)
    certain = proven(found)

    def may_have_been(version: TableVersion) -> bool:
        if version.file in remembered:
            return True
        if version.table != table:
            return version.snapshots > 0  # two who make a table at once leave one that is empty
        return version.sequence > sequence or (version.file in certain and version.updated_ms > past_ms)

    return sorted(filter(may_have_been, found), key=lambda v: v.age, reverse=True)


def proven(unnamed: Iterable[TableVersion]) -> set[str]:
    """Names of those that certainly were the table: somebody went on from them, so that a catalog named them."""
    found = list(unnamed)
    return {v.file for v in found} & {v.parent for v in found}


def let_go_with(named: Collection[str], doubtful: Iterable[TableVersion]) -> set[str]:
    """Names of the versions that go where somebody names these: each, and what is older of the same table."""
    found = list(doubtful)
    return {v.file for v in found for n in found if n.file in named and v.table == n.table and v.age <= n.age}
