"""Where the tables are: the catalog's settings, and how it is opened.

By default a catalog is one SQLite file beside a folder, for one host; any other kind that pyiceberg knows is a matter
of properties. Every wait for it has an end. A second process at work in the same SQLite file is waited for, not an
error.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from pyiceberg.catalog import PY_CATALOG_IMPL, TYPE, Catalog, load_catalog
from pyiceberg.catalog.sql import SqlCatalog, SqlCatalogBaseTable
from pyiceberg.io import PY_IO_IMPL
from sqlalchemy import URL, make_url
from sqlalchemy.event import listen
from sqlalchemy.exc import ArgumentError, DBAPIError

from wavestitch.contracts.errors import BadInput
from wavestitch.modes import make_folder, open_new
from wavestitch.tables.access.at_work import working_on
from wavestitch.tables.access.durable_file_io import DurableFileIO
from wavestitch.tables.access.login_in_the_clear import Servers
from wavestitch.tables.access.object_store import store_properties
from wavestitch.tables.access.ordered_times import keep_times_in_order
from wavestitch.tables.access.own_catalogs import as_ours
from wavestitch.tables.access.own_code import listening, only_own_code, with_own_properties_alone
from wavestitch.tables.access.reading import reading
from wavestitch.tables.access.shared_history import share_history
from wavestitch.tables.access.time_outs import DEFAULT_TIME_OUTS, TimeOuts, keeping
from wavestitch.tables.access.unsaid import cause_of, leave_unsaid, without_secrets
from wavestitch.tables.commit.own_versions import keep_own_versions

SQLITE_BUSY_SECONDS = 60
_HOST = re.compile(r"[A-Za-z0-9._:%,-]*")


@dataclass(frozen=True, slots=True)
class CatalogSettings:
    """`name` must be the same for everybody who opens the catalog: it is part of the key of every table in it.

    `uri`: e.g. `sqlite:////srv/wavestitch/catalog.db`. `warehouse`: e.g. `file:///srv/wavestitch/warehouse` or
    `s3://waveforms/warehouse`.
    `properties`: pyiceberg's own, e.g. `type: rest`; they win over what is set here. Secrets may be in both, so neither
    is printed.
    """

    name: str
    uri: str = field(repr=False)
    warehouse: str
    properties: Mapping[str, str] = field(default_factory=dict, repr=False)
    time_outs: TimeOuts = DEFAULT_TIME_OUTS
    referred: frozenset[str] = field(default=frozenset(), repr=False)
    """Values of these that stood by reference in the settings: never said, whatever their key is."""


def open_catalog(settings: CatalogSettings) -> Catalog:
    """The catalog, made if it is a SQLite file that does not exist yet. Our rules hold for it and its tables, and for
    no other of the process (`own_catalogs`)."""
    share_history()
    keep_times_in_order()
    leave_unsaid(settings.uri, settings.properties, referred=settings.referred)
    with reading(settings.name):
        kind = _kind(settings)
        servers = None
        if kind == "sql":
            sql_address(settings)
        elif kind == "rest":
            own_uri = settings.properties.get("uri", settings.uri)
            servers = Servers.of(settings.name, own_uri, settings.properties, referred=settings.referred)
        properties = {
            "uri": _with_busy_timeout(settings.uri),
            "warehouse": settings.warehouse,
            PY_IO_IMPL: f"{DurableFileIO.__module__}.{DurableFileIO.__qualname__}",
            **store_properties(settings.warehouse, settings.properties, settings.time_outs),
            **settings.properties,
            # Heads are found in the snapshots' ancestry; a server that sends the newest alone would hide them.
            "snapshot-loading-mode": "all",
        }
        if kind:
            properties[TYPE] = kind
        only_own_code(kind=kind)
        with (
            working_on(properties[PY_IO_IMPL]),
            keeping(settings.time_outs, kind=kind, servers=servers),
            listening() as dropped,
        ):
            try:
                found = load_catalog(settings.name, **properties)
            except DBAPIError as error:
                if error.statement is None:
                    raise
                # Two processes that open a new catalog at once both make its tables, and one is told they are there.
                found = load_catalog(settings.name, **properties)
            except ValueError as error:
                raise BadInput(
                    f"catalog {settings.name}: {without_secrets(str(error))}; see [tables] in the settings"
                ) from cause_of(error)
            _keep_commits(found)
            return as_ours(keep_own_versions(with_own_properties_alone(found, dropped)), file_io=properties[PY_IO_IMPL])


def map_rows() -> None:
    """What the first question to a SQL catalog makes for the process, made ahead of it: how its rows are mapped."""
    SqlCatalogBaseTable.registry.configure()


def _kind(settings: CatalogSettings) -> str:
    """As pyiceberg calls it; empty where the properties name a class."""
    if PY_CATALOG_IMPL in settings.properties:
        return settings.properties.get(TYPE, "")
    by_address = "rest" if settings.uri.lower().startswith(("http://", "https://")) else "sql"
    return settings.properties.get(TYPE, by_address)


def _keep_commits(catalog: Catalog) -> None:
    """A commit of SQLite is the removal of its journal. By default nothing syncs the folder that this stood in: after a
    power failure it is there again, and what was committed is rolled back, although others were told of it.

    And one that a reader keeps out for too long is still open, and SQLAlchemy takes it for ended: whoever has the
    connection next would see what was never committed, and until then nobody else could write."""
    if isinstance(catalog, SqlCatalog) and catalog.engine.dialect.name == "sqlite":
        listen(catalog.engine, "connect", lambda connection, _: connection.execute("PRAGMA synchronous = EXTRA"))
        listen(catalog.engine, "checkin", lambda connection, _: connection and connection.rollback())
        catalog.engine.dispose()  # a connection that was made before is not asked again


def sql_address(settings: CatalogSettings) -> URL:
    """The address of a SQL catalog, taken apart. Raises `BadInput`, which does not say it: it may hold a password."""
    what = "is none that SQLAlchemy can read"
    try:
        found = make_url(settings.uri)
        if found.host is None or _HOST.fullmatch(found.host):
            return found
        # With an @ in a parameter all that follows is its host, a password among it, and is asked of a name server.
        what = "names no host that there can be; write @ in it as %40"
    except (ArgumentError, ValueError):
        pass
    raise BadInput(
        f"the address of catalog {settings.name} {what}, like postgresql+psycopg2://HOST:PORT/DATABASE"
    ) from None


def _with_busy_timeout(uri: str) -> str:
    """The URI, for SQLite with a busy timeout; the folder of its file is made."""
    if not uri.startswith("sqlite"):
        return uri
    url = make_url(uri)
    if url.database and url.database != ":memory:":
        make_folder(Path(url.database).parent)
        # SQLite would make it for everybody to read; its journals take over the mode. The settings may name a link.
        path = os.path.realpath(url.database)
        try:
            os.close(open_new(path, os.O_RDWR))
        except OSError:
            if not os.access(path, os.R_OK, effective_ids=True):
                raise
            # Whoever may only read the file reads; a change is refused by SQLite.
    if "timeout" not in url.query:
        url = url.update_query_dict({"timeout": str(SQLITE_BUSY_SECONDS)})
    return url.render_as_string(hide_password=False)
