"""An object store on loopback that answers as S3 does (moto's server, in this process), and a network that can fail.

It proves how our requests are made and what we make of the answers. It is no store of production: it has one copy of
everything, in memory, checks no signature and no right, and shows at once what was written.
"""

from __future__ import annotations

import io
import json
import re
import socket
import threading
import uuid
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any

from moto.moto_server.werkzeug_app import DomainDispatcherApplication, MotoRequestHandler, create_backend_app
from pyarrow.fs import FileSelector, FileType, S3FileSystem
from werkzeug.serving import make_server

from wavestitch.contracts.payload_apart import PayloadPlace

REGION = "us-east-1"


class Fault(StrEnum):
    """What becomes of one request. BUSY: 503, not done. LOST: done, and the answer never arrives. TWICE: done twice."""

    BUSY = "SlowDown"
    DENIED = "AccessDenied"
    LOST = "lost"
    TWICE = "twice"


@dataclass
class ObjectStore:
    """`asked`: method and path of each request. `fault`: what becomes of one with these, None for nothing."""

    endpoint: str
    bucket: str
    asked: list[tuple[str, str]] = field(default_factory=list)
    fault: Callable[[str, str], Fault | None] = lambda _method, _path: None
    in_parts: list[str] = field(default_factory=list)
    """Requests of uploads that are put together of parts."""
    unlisted: str = ""
    """Part of the names of objects that no listing shows yet."""

    @property
    def files(self) -> S3FileSystem:
        """As somebody else reaches it."""
        return S3FileSystem(access_key="k", secret_key="s", region=REGION, endpoint_override=self.endpoint)

    @property
    def warehouse(self) -> str:
        return f"s3://{self.bucket}/warehouse"

    @property
    def payload_place(self) -> PayloadPlace:
        """For landed payload, with a login itself."""
        login = {"s3.access-key-id": "k", "s3.secret-access-key": "s"}
        said = {"s3.endpoint": self.endpoint, "s3.region": REGION, **login}
        return PayloadPlace(f"s3://{self.bucket}/payload", said, 5.0, 5.0, 2)

    def names(self, folder: str = "warehouse") -> set[str]:
        """Of all objects below, without the bucket."""
        found = self.files.get_file_info(FileSelector(f"{self.bucket}/{folder}", recursive=True, allow_not_found=True))
        return {f.path.partition("/")[2] for f in found if f.type == FileType.File}

    def settings(self, folder: Path) -> str:
        """For the section [tables] of a settings file, with the login in files below `folder`."""
        return f'warehouse = "{self.warehouse}"\n[tables.properties]\n{self._properties(folder)}'

    def payload_settings(self, folder: Path, *, attempts: int = 3) -> str:
        """The same, for landed payload: a section of its own."""
        place = f'[payload]\nplace = "s3://{self.bucket}/payload"\nattempts = {attempts}\n'
        return f"{place}[payload.properties]\n{self._properties(folder)}"

    def _properties(self, folder: Path) -> str:
        folder.mkdir(parents=True, exist_ok=True)
        for name in ("access", "secret"):
            (folder / f"store-{name}").write_text(f"hunter-{name}-key\n")
        said = {
            "s3.endpoint": self.endpoint,
            "s3.region": REGION,
            "s3.access-key-id": f"file:{folder}/store-access",
            "s3.secret-access-key": f"file:{folder}/store-secret",
        }
        return "".join(f'"{key}" = {json.dumps(value)}\n' for key, value in said.items())

    def answer(self, app: Any, environ: dict[str, Any], start: Any) -> Iterable[bytes]:
        asked = environ["REQUEST_METHOD"], environ["PATH_INFO"]
        self.asked.append(asked)
        if "upload" in environ["QUERY_STRING"]:
            self.in_parts.append(f"{asked[0]} {asked[1]}?{environ['QUERY_STRING']}")
        fault = self.fault(*asked)
        if fault in (Fault.BUSY, Fault.DENIED):
            start("503 Slow Down" if fault is Fault.BUSY else "403 Forbidden", [("Content-Type", "application/xml")])
            return [f"<Error><Code>{fault}</Code><Message>as a test wants it</Message></Error>".encode()]
        if fault is Fault.TWICE:
            chunked = environ.pop("HTTP_TRANSFER_ENCODING", "") == "chunked"
            body = environ["wsgi.input"].read(*([] if chunked else [int(environ.get("CONTENT_LENGTH") or 0)]))
            environ["CONTENT_LENGTH"] = str(len(body))
            list(app({**environ, "wsgi.input": io.BytesIO(body)}, lambda *_: None))
            environ["wsgi.input"] = io.BytesIO(body)
        if fault is Fault.LOST:
            list(app(environ, lambda *_: None))
            environ["werkzeug.socket"].shutdown(socket.SHUT_RDWR)
            raise ConnectionAbortedError
        if self.unlisted and "list-type" in environ["QUERY_STRING"]:
            return self._listing(app, environ, start)
        return iter(app(environ, start))

    def _listing(self, app: Any, environ: dict[str, Any], start: Any) -> list[bytes]:
        begun: list[Any] = []
        body = b"".join(app(environ, lambda status, headers, *_: begun.extend((status, headers))))
        shown = re.sub(
            rb"<Contents>(?:(?!</Contents>).)*?</Contents>",
            lambda one: b"" if self.unlisted.encode() in one[0] else one[0],
            body,
            flags=re.DOTALL,
        )
        start(begun[0], [(k, v) for k, v in begun[1] if k.lower() != "content-length"])
        return [shown]


@contextmanager
def object_store() -> Iterator[ObjectStore]:
    """One with a bucket of its own; gone afterwards."""
    app = DomainDispatcherApplication(create_backend_app)
    store = ObjectStore("", f"bucket-{uuid.uuid4().hex[:8]}")
    server = make_server(
        "127.0.0.1", 0, lambda e, s: store.answer(app, e, s), threaded=True, request_handler=MotoRequestHandler
    )
    store.endpoint = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        S3FileSystem(
            access_key="k",
            secret_key="s",
            region=REGION,
            endpoint_override=store.endpoint,
            allow_bucket_creation=True,
        ).create_dir(store.bucket)
        yield store
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
