"""Which code reads and writes a table, and with which properties, is said by the settings alone.

pyiceberg imports and calls whatever class a table's properties name, sends the store's login to whatever server they
name, and lets a REST server say where and as whom one logs in: whoever can write a table's metadata, or answers for the
catalog, would run code here, or be handed a login. So files are reached with the settings' own properties and no other,
and of a server's words those count that are on a list. What is dropped is kept for `said_by_server`; of a table
`own_properties` says it. Holds for catalogs of ours (`own_catalogs`), not for others of the same process. Never decides
what a table holds. Beside `shared_history`, which checks the version of pyiceberg.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from typing import Any

from pyiceberg import io
from pyiceberg.catalog import Catalog
from pyiceberg.table import locations

from wavestitch.tables.access.at_work import is_ours, our_file_io

A_SERVER_S = frozenset({"prefix", "namespace-separator", "rest-page-size"})
"""What a REST server may say of itself: how its own addresses are put together, and how long its pages are. Nothing
else: not where it is, who it is asked as, which files' stores there are, what runs, or which snapshots it shows."""
_import_really = io._import_file_io
_import_places_really = locations._import_location_provider
_places_really = locations.LocationProvider.__init__
_dropped: ContextVar[set[str] | None] = ContextVar("not_a_server_s", default=None)


def only_own_code(*, kind: str) -> None:
    """From now on, in this process, files of our tables are read and written by classes that the settings name."""
    vars(io)["_import_file_io"] = _import_chosen
    vars(locations)["_import_location_provider"] = _usual_places
    locations.LocationProvider.__init__ = _below_the_table  # type: ignore[method-assign,assignment]
    if kind == "rest":
        _close_answers()


@contextmanager
def listening() -> Iterator[set[str]]:
    """The names of what servers say inside, and are not obeyed in."""
    found: set[str] = set()
    token = _dropped.set(found)
    try:
        yield found
    finally:
        _dropped.reset(token)


def with_own_properties_alone(catalog: Catalog, dropped: set[str]) -> Catalog:
    """The same catalog, whose files are reached with its own properties, whatever a table or a server's answer for one
    has beside them. `dropped`: see `said_by_server`."""

    @cache
    def files() -> io.FileIO:
        return io.load_file_io(dict(catalog.properties))

    def load_file_io(properties: Any = None, location: str | None = None) -> io.FileIO:
        del properties, location  # a table's, or a server's
        return files()

    vars(catalog).update(_load_file_io=load_file_io, not_obeyed=sorted(dropped))
    return catalog


def not_obeyed(catalog: Catalog) -> list[str]:
    """The names of what its server said of itself when it was opened, and may not say."""
    found: list[str] = getattr(catalog, "not_obeyed", [])
    return found


def said_by_server(catalog: Catalog) -> list[str]:
    """A sentence about what the catalog's server said of itself when it was opened and was not obeyed in. No values:
    they may be secrets."""
    names = ", ".join(not_obeyed(catalog))
    return [f"the server of catalog {catalog.name} says {names}; not obeyed, [tables] says it"] if names else []


def _import_chosen(file_io: str, properties: Any) -> Any:
    """What is named instead is not obeyed."""
    return _import_really(our_file_io() or file_io, properties)


def _usual_places(provider: str, location: str, properties: Any) -> Any:
    """The library's own: asked for at every commit, by the properties that stand in the catalog."""
    if not is_ours():
        return _import_places_really(provider, location, properties)
    return locations.SimpleLocationProvider(location, properties)


def _below_the_table(self: Any, location: str, properties: Any) -> None:
    """Rows and metadata are written below the table, whatever folders its properties name."""
    _places_really(self, location, {} if is_ours() else properties)


def _close_answers() -> None:
    from pyiceberg.catalog import rest  # noqa: PLC0415 - a SQL catalog does without; a sixth of a second

    if rest.ConfigResponse.__module__ == __name__:
        return

    class ConfigResponse(rest.ConfigResponse):
        """What a server says of itself, without what is not its to say."""

        def model_post_init(self, _context: Any) -> None:
            dropped = _dropped.get()
            if dropped is None:  # somebody else's catalog
                return
            for said in (self.defaults, self.overrides):
                for key in [k for k in said or {} if k not in A_SERVER_S]:
                    (said or {}).pop(key)
                    dropped.add(key)

    vars(rest)["ConfigResponse"] = ConfigResponse
