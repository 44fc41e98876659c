"""Which settings of a table count: those that this version makes one with, whatever an earlier one or anybody set.

A property can be changed by everybody who may alter the table, and decides in pyiceberg how often a change is retried,
where files are written, which columns have bounds, which server is sent the store's login, what code runs. So a table
is used as if it had its layout's own and no other; what others set is kept in the table and said, for whoever reads
status. Changes nothing in the catalog.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from pydantic import ValidationError
from pyiceberg.table import Table
from pyiceberg.table.name_mapping import MappedField, parse_mapping_from_json

_SAID_WITH_VALUE = ("commit.", "write.", "read.", "schema.", "history.", "gc.", "format-version", "py-io-impl")
"""Others may hold a login."""
_NOTES = frozenset({"owner", "comment", "description"})
"""Nobody obeys these: what other programs leave in a table about it."""


def with_own_properties(table: Table, own: Mapping[str, str]) -> Table:
    """The same table, as loaded, with `own` in place of all its properties but notes."""
    notes = {k: v for k, v in table.metadata.properties.items() if k in _NOTES}
    table.metadata = table.metadata.model_copy(update={"properties": {**notes, **own}})
    return table


def changed_properties(name: str, theirs: Mapping[str, str], own: Mapping[str, str]) -> list[str]:
    """A sentence for each property of a table that is not what one is made with today."""
    found = [
        f"property {k} of table {name} is {theirs.get(k, 'not set')}, ours is {v}; what is there is not obeyed"
        for k, v in sorted(own.items())
        if theirs.get(k) != v
    ]
    foreign = sorted(k for k in theirs if k not in own and k not in _NOTES)
    return found + [
        f"property {k} of table {name} is {theirs[k] if k.startswith(_SAID_WITH_VALUE) else 'set'}, ours have "
        "none; what is there is not obeyed"
        for k in foreign
    ]


def knows_all_names(theirs: str, own: str) -> bool:
    """Whether a name mapping knows each column by each name that our own has for it; it may know more."""
    try:
        known = set(_names(parse_mapping_from_json(theirs).root))
    except ValidationError:
        return False
    return known >= set(_names(parse_mapping_from_json(own).root))


def _names(fields: Iterable[MappedField]) -> Iterator[tuple[int | None, str]]:
    for field in fields:
        yield from ((field.field_id, name) for name in field.names)
        yield from _names(field.fields)
