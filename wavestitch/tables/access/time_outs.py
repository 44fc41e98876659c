"""Time-outs on the way to the catalog: pyiceberg gives its REST session and its SQL engine none.

A catalog that takes a connection and then says nothing would hang a run, and a thread of the pages, for ever. What is
bounded is each wait, not a whole call: a server that sends a byte now and then is not found out. Never decides what
became of a request that timed out: whoever sent it does.

The same session sends nothing to a server that the settings do not name, follows no redirection
(`login_in_the_clear`), and takes no half of an answer for a whole one (`cut_answers`).

It replaces two names inside pyiceberg, whose version `shared_history` checks.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from math import ceil
from typing import Any

from sqlalchemy import URL, Engine, NullPool, create_engine, event, make_url

from wavestitch.tables.access.cut_answers import refuse_cut
from wavestitch.tables.access.login_in_the_clear import Servers


@dataclass(frozen=True, slots=True)
class TimeOuts:
    """Seconds. `connect`: until the catalog has taken a connection. `answer`: for each wait after that."""

    connect: float = 10.0
    answer: float = 60.0


DEFAULT_TIME_OUTS = TimeOuts()
_IN_FORCE: ContextVar[TimeOuts | None] = ContextVar("catalog_time_outs", default=None)
_SERVERS: ContextVar[Servers | None] = ContextVar("catalog_servers", default=None)


@contextmanager
def keeping(time_outs: TimeOuts, *, kind: str, servers: Servers | None = None) -> Iterator[None]:
    """Catalogs of this kind that are opened inside wait no longer, and ask no other server, as long as they live."""
    if kind == "rest":
        _bound_sessions()
    elif kind == "sql":
        from pyiceberg.catalog import sql  # noqa: PLC0415 - its tables are declared when it is imported

        vars(sql)["create_engine"] = _bounded_engine
    token, named = _IN_FORCE.set(time_outs), _SERVERS.set(servers)
    try:
        yield
    finally:
        _SERVERS.reset(named)
        _IN_FORCE.reset(token)


def _bound_sessions() -> None:
    from pyiceberg.catalog import rest  # noqa: PLC0415 - a SQL catalog does without; a sixth of a second
    from requests import Session  # noqa: PLC0415

    if rest.Session is not Session:
        return

    class BoundedSession(Session):
        def __init__(self) -> None:
            super().__init__()
            self._time_outs, self._servers = _IN_FORCE.get(), _SERVERS.get()
            # Nobody closes a catalog, and one that could not be opened nobody has: its connections would stay open
            # until somebody looks for garbage.
            weakref.finalize(self, _close_all, self.adapters)

        def send(self, request: Any, **more: Any) -> Any:
            # Here and not in an adapter: signing replaces that one, and a redirection comes through here again.
            if more.get("timeout") is None and self._time_outs is not None:
                more["timeout"] = (self._time_outs.connect, self._time_outs.answer)
            if self._servers is not None:
                self._servers.check(str(request.url))
            answer = super().send(request, **more)
            refuse_cut(answer)
            return answer

        def get_redirect_target(self, resp: Any) -> str | None:
            if self._servers is None:
                return super().get_redirect_target(resp)
            try:
                self._servers.check_answer(resp.status_code, resp.headers.get("location"))
            except BaseException:
                resp.close()  # its end is not read any more
                raise
            return None

    vars(rest)["Session"] = BoundedSession


def _close_all(adapters: Mapping[str, Any]) -> None:
    for adapter in adapters.values():
        adapter.close()


def _bounded_engine(address: str, **more: Any) -> Engine:
    found = _IN_FORCE.get()
    if found is None:
        return create_engine(address, **more)
    url = _said_once(make_url(address))
    if url.get_backend_name() != "sqlite":
        # A catalog is opened often, and nobody closes it: what it kept open a server would count until it refuses all.
        # And no connection is left over from before a server's restart.
        more["poolclass"] = NullPool
    engine = create_engine(url, connect_args=connect_args(url, found), **more)
    if url.get_backend_name() == "postgresql" and (ask := _server_time_outs(url, found)):
        # By a statement and not when it connects: poolers refuse the option.
        event.listen(engine, "begin", lambda connection: connection.exec_driver_sql(ask))
    return engine


def _said_once(url: URL) -> URL:
    """Several `options` in an address are one to the server, and to the driver none that it understands."""
    options = url.query.get("options")
    return url if options is None or isinstance(options, str) else url.update_query_dict({"options": " ".join(options)})


def connect_args(url: URL, time_outs: TimeOuts) -> dict[str, Any]:
    """What the driver is told beside the address; what the address says itself stays. SQLite waits by its own."""
    connect, answer = ceil(time_outs.connect), ceil(time_outs.answer)
    words: dict[str, dict[str, int]] = {
        "psycopg2": {"connect_timeout": connect, "tcp_user_timeout": answer * 1000},
        "psycopg": {"connect_timeout": connect, "tcp_user_timeout": answer * 1000},
        "pg8000": {"timeout": answer},
        "pymysql": {"connect_timeout": connect, "read_timeout": answer, "write_timeout": answer},
        "mysqldb": {"connect_timeout": connect, "read_timeout": answer, "write_timeout": answer},
    }
    wanted = words.get(url.get_driver_name(), {}) if url.get_backend_name() != "sqlite" else {}
    return {key: value for key, value in wanted.items() if key not in url.query}


def _server_time_outs(url: URL, time_outs: TimeOuts) -> str:
    """Of a statement, and of a transaction that stands still: a client whose machine is gone between its change and its
    COMMIT would lock the table's row, and so every later batch out, until the server's keep-alive finds it gone. Said
    to each transaction for itself: a pooler hands the session to others after it. What the address says itself, as
    `-cname=…` or `--name=…`, stays; empty where that is both."""
    milliseconds = ceil(time_outs.answer * 1000)
    theirs = str(url.query.get("options", "")).lower().replace("-", "_")
    names = [n for n in ("statement_timeout", "idle_in_transaction_session_timeout") if f"{n}=" not in theirs]
    said = ", ".join(f"set_config('{name}', '{milliseconds}', true)" for name in names)
    return said and f"SELECT {said}"
