"""Which code reads and writes a table is chosen by the settings alone.

pyiceberg imports and calls whatever class a table's properties name (`py-io-impl`, a location provider), and of a REST
server's answer those and its way to log in: whoever can write a table's metadata, or answers for the catalog, would run
code here, or take away that files are made durable. Never decides what a table holds. Beside `shared_history`, which
checks the version of pyiceberg.
"""

from __future__ import annotations

from typing import Any

from pyiceberg import io
from pyiceberg.table import locations

_NOT_A_SERVER_S = ("auth", "ssl", "py-io-impl", "py-catalog-impl")
"""What decides how we log in, whom we trust, and what runs; also with more behind a dot."""
_import_really = io._import_file_io
_places_really = locations.LocationProvider.__init__
_chosen: list[str] = []
"""By the settings of the catalogs that were opened, the last one last: a process has one deployment's."""


def only_own_code(file_io: str, *, kind: str) -> None:
    """From now on, in this process, files of tables are read and written by classes that were named here."""
    if file_io in _chosen:
        _chosen.remove(file_io)
    _chosen.append(file_io)
    vars(io)["_import_file_io"] = _import_chosen
    vars(locations)["_import_location_provider"] = _usual_places
    locations.LocationProvider.__init__ = _below_the_table  # type: ignore[method-assign,assignment]
    if kind == "rest":
        _close_answers()


def _import_chosen(file_io: str, properties: Any) -> Any:
    """What a table or a server names instead is not obeyed; `own_properties` says so of a table."""
    return _import_really(file_io if file_io in _chosen else _chosen[-1], properties)


def _usual_places(_provider: str, location: str, properties: Any) -> Any:
    """The library's own: asked for at every commit, by the properties that stand in the catalog."""
    return locations.SimpleLocationProvider(location, properties)


def _below_the_table(self: Any, location: str, _properties: Any) -> None:
    """Rows and metadata are written below the table, whatever folders its properties name."""
    _places_really(self, location, {})


def _close_answers() -> None:
    from pyiceberg.catalog import rest  # noqa: PLC0415 - a SQL catalog does without; a sixth of a second

    if rest.ConfigResponse.__module__ == __name__:
        return

    class ConfigResponse(rest.ConfigResponse):
        """What a server says of itself, without what is not its to say."""

        def model_post_init(self, _context: Any) -> None:
            for said in (self.defaults, self.overrides):
                for key in [k for k in said or {} if k.startswith(_NOT_A_SERVER_S)]:
                    (said or {}).pop(key)

    vars(rest)["ConfigResponse"] = ConfigResponse
