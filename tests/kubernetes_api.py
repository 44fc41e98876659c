"""Kubernetes' API as far as Spark asks it for executors: pods, in memory. Whatever is asked is written down.

What a pod would run is run by whoever asks for it to be; nothing here decides what a pod may have.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

from wavestitch.local.loopback_port import LOOPBACK

Doc = dict[str, Any]
_VERBS = {"POST": "create", "PATCH": "patch", "PUT": "update"}


@dataclass
class KubernetesApi:
    """`asked`: each verb and resource, as a Role names them; `made`: every pod that was created, as it was sent."""

    address: str
    start: Callable[[Doc], None]
    asked: set[tuple[str, str]] = field(default_factory=set)
    made: list[Doc] = field(default_factory=list)
    pods: dict[str, Doc] = field(default_factory=dict)

    def answer(self, method: str, path: str, body: Doc) -> tuple[int, Doc]:
        asked = urlsplit(path)
        _, _, kind, *name = asked.path.removeprefix("/api/v1/").split("/")
        self.asked.add((_verb(method, bool(name), parse_qs(asked.query)), kind))
        if kind != "pods":
            return 404, {"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 404}
        match method:
            case "POST":
                self.made.append(body)
                pod = json.loads(json.dumps(body))
                pod["metadata"] |= {"uid": f"uid-{len(self.made)}", "creationTimestamp": "2026-01-01T00:00:00Z"}
                pod["status"] = {"phase": "Running", "podIP": LOOPBACK}
                self.pods[pod["metadata"]["name"]] = pod
                self.start(pod)
                return 201, pod
            case "DELETE":
                for gone in name or list(self.pods):
                    self.pods.pop(gone, None)
                return 200, {"kind": "Status", "apiVersion": "v1", "status": "Success"}
            case "GET" if not name:
                return 200, {"kind": "PodList", "apiVersion": "v1", "metadata": {}, "items": list(self.pods.values())}
        found = self.pods.get(name[0]) if name else None
        return (
            (200, found) if found else (404, {"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 404})
        )


def _verb(method: str, one: bool, query: dict[str, list[str]]) -> str:
    if method == "GET":
        return "get" if one else "watch" if query.get("watch") == ["true"] else "list"
    if method == "DELETE":
        return "delete" if one else "deletecollection"
    return _VERBS[method]


@contextmanager
def kubernetes_api(start: Callable[[Doc], None]) -> Iterator[KubernetesApi]:
    """One on loopback until the block ends. `start`: hears of each pod that is made."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def _do(self) -> None:
            size = int(self.headers.get("Content-Length") or 0)
            body = json.loads(self.rfile.read(size) or b"{}")
            with lock:
                status, said = api.answer(self.command, self.path, body)
            content = json.dumps(said).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        do_GET = do_POST = do_DELETE = do_PATCH = do_PUT = _do

        def log_message(self, *_: Any) -> None: ...

    lock = threading.Lock()
    server = ThreadingHTTPServer((LOOPBACK, 0), Handler)
    api = KubernetesApi(f"http://{LOOPBACK}:{server.server_port}", start)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield api
    finally:
        server.shutdown()
        server.server_close()
