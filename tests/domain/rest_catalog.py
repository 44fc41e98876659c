"""An Iceberg REST catalog on loopback: the endpoints that our tables need, over a catalog in SQLite.

`Faults` says what becomes of a commit on its way: a proxy may send it twice, lose the answer, or answer for a catalog
that is away. The requests are real ones, by pyiceberg's own client.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from pyiceberg.catalog.rest import CreateTableRequest
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.exceptions import (
    CommitFailedException,
    NamespaceAlreadyExistsError,
    NoSuchNamespaceError,
    NoSuchTableError,
    TableAlreadyExistsError,
)
from pyiceberg.io import FileIO
from pyiceberg.partitioning import UNPARTITIONED_PARTITION_SPEC
from pyiceberg.table import CommitTableRequest, Table
from sqlalchemy.exc import IntegrityError

from wavestitch.tables.catalog import CatalogSettings

_STATUS: dict[type[Exception], int] = {
    NoSuchTableError: 404,
    NoSuchNamespaceError: 404,
    TableAlreadyExistsError: 409,
    NamespaceAlreadyExistsError: 409,
    IntegrityError: 409,
    CommitFailedException: 409,
    ValueError: 409,
}
"""The last one is about a change that does not fit the table as it is by now, its sequence number say; Iceberg's own
server calls that a conflict, too."""


@dataclass
class Faults:
    """What happens to the next commits, in turn: `twice` (the second answer is the one that comes back), `silent` (no
    answer comes), or a number: the status that is answered, after the commit was carried out (`after`) or without it
    (`before`). `silent`: nothing is answered at all."""

    planned: list[tuple[str, int]] = field(default_factory=list)
    commits: int = 0
    silent: bool = False
    config: dict[str, Any] = field(default_factory=dict)
    """What the server says of itself."""
    table_config: dict[str, Any] = field(default_factory=dict)
    """What it says of each table beside its metadata."""
    redirect: tuple[int, str] | None = None
    """A status and an address that clients are sent on to, whatever they ask."""
    ended: threading.Event = field(default_factory=threading.Event)

    def next(self) -> tuple[str, int]:
        self.commits += 1
        return self.planned.pop(0) if self.planned else ("", 0)


@contextmanager
def rest_catalog(folder: Path) -> Iterator[tuple[CatalogSettings, Faults]]:
    """The settings of a catalog that is served as long as the block runs, and what to do to its commits."""
    folder.mkdir(parents=True, exist_ok=True)
    behind = _Behind("behind", uri=f"sqlite:///{folder}/rest.db?timeout=60", warehouse=f"file://{folder}/warehouse")
    faults = Faults()
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (_Handler,), {"catalog": behind, "faults": faults}))
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        uri = f"http://127.0.0.1:{server.server_address[1]}"
        yield CatalogSettings("rest", uri, f"file://{folder}/warehouse", {"type": "rest"}), faults
    finally:
        faults.ended.set()
        server.shutdown()
        server.server_close()
        thread.join()


class _Behind(SqlCatalog):
    """The server's own: like a real one, it obeys no property of a table in how it reaches files."""

    def _load_file_io(self, properties: Any = None, location: str | None = None) -> FileIO:
        del properties
        return super()._load_file_io(location=location)


class _Handler(BaseHTTPRequestHandler):
    catalog: SqlCatalog
    faults: Faults
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        if self.faults.silent:
            self._say_nothing()
            return
        if self.faults.redirect is not None:
            self.send_response(self.faults.redirect[0])
            self.send_header("Location", self.faults.redirect[1])
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        match self._path():
            case ["config"]:
                self._answer(200, {"defaults": {}, "overrides": {}, **self.faults.config})
            case ["namespaces", space]:
                self._try(lambda: {"namespace": [space], "properties": self.catalog.load_namespace_properties(space)})
            case ["namespaces"]:
                self._try(lambda: {"namespaces": [list(n) for n in self.catalog.list_namespaces()]})
            case ["namespaces", space, "tables"]:
                self._try(lambda: {"identifiers": [_named(i) for i in self.catalog.list_tables(space)]})
            case ["namespaces", space, "tables", name]:
                self._try(lambda: self._loaded(self.catalog.load_table((space, name))))
            case _:
                self._answer(404, _error(404, "no such endpoint"))

    do_HEAD = do_GET

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        match self._path():
            case ["namespaces"]:
                space = json.loads(body)["namespace"]
                self._try(lambda: self.catalog.create_namespace(tuple(space)) or {"namespace": space, "properties": {}})
            case ["namespaces", space, "tables"]:
                asked = {"location": None, **json.loads(body)}
                self._try(lambda: self._loaded(self._create(space, CreateTableRequest.model_validate(asked))))
            case ["oauth", "tokens"]:
                self._answer(200, {"access_token": "given", "token_type": "bearer"})
            case ["namespaces", space, "tables", name]:
                self._commit((space, name), CommitTableRequest.model_validate_json(body))
            case _:
                self._answer(404, _error(404, "no such endpoint"))

    def do_DELETE(self) -> None:
        match self._path():
            case ["namespaces", space, "tables", name]:
                self._try(lambda: self.catalog.drop_table((space, name)) or {})
            case _:
                self._answer(404, _error(404, "no such endpoint"))

    def _create(self, space: str, asked: CreateTableRequest) -> Table:
        return self.catalog.create_table(
            (space, asked.name),
            asked.table_schema,
            location=asked.location,
            partition_spec=asked.partition_spec or UNPARTITIONED_PARTITION_SPEC,
            properties=dict(asked.properties),
        )

    def _commit(self, name: tuple[str, str], asked: CommitTableRequest) -> None:
        def commit() -> dict[str, Any]:
            table = self.catalog.load_table(name)
            made = self.catalog.commit_table(table, asked.requirements, asked.updates)
            return {"metadata-location": made.metadata_location, "metadata": made.metadata.model_dump(mode="json")}

        what, status = self.faults.next()
        if what in ("twice", "after"):
            commit()
        if what == "silent":
            self._say_nothing()
        elif what in ("before", "after"):
            self._answer(status, _error(status, f"said by a proxy, {what} the commit"))
        else:
            self._try(commit)

    def _say_nothing(self) -> None:
        self.faults.ended.wait()
        self.close_connection = True

    def _try(self, act: Any) -> None:
        try:
            self._answer(200, act())
        except tuple(_STATUS) as error:
            status = next(s for kind, s in _STATUS.items() if isinstance(error, kind))
            self._answer(status, _error(status, f"{type(error).__name__}: {error}"))

    def _loaded(self, table: Table) -> dict[str, Any]:
        metadata = table.metadata.model_dump(mode="json")
        return {"metadata-location": table.metadata_location, "metadata": metadata, "config": self.faults.table_config}

    def _path(self) -> list[str]:
        return self.path.partition("?")[0].removeprefix("/v1/").split("/")

    def _answer(self, status: int, value: dict[str, Any]) -> None:
        body = json.dumps(value).encode()
        with suppress(ConnectionError):  # whoever asked may be gone
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        """Says nothing."""


def _named(identifier: tuple[str, ...]) -> dict[str, Any]:
    return {"namespace": list(identifier[:-1]), "name": identifier[-1]}


def _error(status: int, message: str) -> dict[str, Any]:
    return {"error": {"message": message, "type": "Said", "code": status}}
