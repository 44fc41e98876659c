"""Which catalogs and tables are ours: those that `open_catalog` gave out.

What the package changes about pyiceberg holds for these alone.

pyiceberg's rules are functions of modules, one for all catalogs of a process; ours have to stand in the same places.
But whoever calls `wavestitch.open` in a notebook has tables of their own beside it, and these are none of our business:
each replacement asks here whether one of ours is being worked on, and is the library's own where none is. Decides no
rule. Nothing is left behind where a generator stops half-way: what is asked lasts no longer than a call.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from functools import cache, wraps
from typing import Any

from pyiceberg.catalog import Catalog
from pyiceberg.table import Table
from pyiceberg.table.locations import LocationProvider

from wavestitch.tables.access.at_work import working_on

_MARK = "of_wavestitch"


def as_ours(catalog: Catalog, *, file_io: str) -> Catalog:
    """The same catalog, which says that it is ours in every call, as do the tables that it gives out."""
    vars(catalog)[_MARK] = file_io
    catalog.__class__ = _own_kind(type(catalog))
    return catalog


@contextmanager
def working_in(catalog: Catalog) -> Iterator[None]:
    """As `working_on`, where this catalog is one of ours."""
    file_io: str | None = getattr(catalog, _MARK, None)
    with nullcontext() if file_io is None else working_on(file_io):
        yield


class OwnTable(Table):
    """A table that a catalog of ours gave out."""

    def location_provider(self) -> LocationProvider:
        with working_in(self.catalog):
            return super().location_provider()


@cache
def _own_kind(kind: type[Catalog]) -> type[Catalog]:
    """The same kind of catalog, which says so."""
    public = (name for name in dir(kind) if not name.startswith("_"))
    calls: dict[str, Any] = {name: _said(name, getattr(kind, name)) for name in public if callable(getattr(kind, name))}
    return type(kind.__name__, (kind,), {**calls, "__module__": kind.__module__, "__doc__": kind.__doc__})


def _said(name: str, method: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(method)
    def call(self: Any, *args: Any, **more: Any) -> Any:
        with working_in(self):
            found = getattr(super(type(self), self), name)(*args, **more)  # as the class has it now
        if type(found) is Table:
            found.__class__ = OwnTable
        return found

    return call
