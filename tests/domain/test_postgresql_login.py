"""What a PostgreSQL server or a pooler says before there is a connection, by the words alone: mistakes of who asks, or
what passes. The server here speaks so much of the protocol; the real one is in `test_postgresql_catalog.py`. I7."""

from __future__ import annotations

import re
import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from sqlalchemy import NullPool, create_engine
from sqlalchemy.exc import OperationalError

from wavestitch.contracts.errors import BadInput, Transient
from wavestitch.local.loopback_port import LOOPBACK
from wavestitch.tables.access.catalog_errors import meaning_of

_ASKS_FOR_TLS = struct.pack("!II", 8, 80877103)


@contextmanager
def refusing(state: str = "28000", said: str = "", *, by_tls: bytes = b"N") -> Iterator[int]:
    """A server at this port that refuses whoever logs in, in these words. `by_tls`: whether it speaks TLS; it says so
    at most."""
    fields = f"SFATAL\0VFATAL\0C{state}\0M{said}\0\0".encode()
    answer = b"E" + struct.pack("!I", len(fields) + 4) + fields

    def serve() -> None:
        while True:
            try:
                asking, _ = server.accept()
            except OSError:
                return
            with asking, suppress(OSError):
                if asking.recv(4096) == _ASKS_FOR_TLS:
                    asking.sendall(by_tls)
                    asking.recv(4096)
                asking.sendall(answer)

    with socket.create_server((LOOPBACK, 0)) as server:
        thread = threading.Thread(target=serve)
        thread.start()
        yield server.getsockname()[1]
        server.shutdown(socket.SHUT_RDWR)
    thread.join()


def told(address: str) -> Exception | None:
    engine = create_engine(f"postgresql+psycopg://{address}", poolclass=NullPool)
    with pytest.raises(OperationalError) as refused, engine.connect():
        pass
    return meaning_of(refused.value, name="catalog")


@pytest.mark.parametrize(
    ("state", "said", "kind", "to_do"),
    [
        ("28P01", 'password authentication failed for user "ada"', BadInput, "see [tables] in the settings"),
        ("28000", 'Peer authentication failed for user "ada"', BadInput, "see [tables] in the settings"),
        ("28000", 'LDAP authentication failed for user "ada"', BadInput, "see [tables] in the settings"),
        ("28000", 'pg_hba.conf rejects connection for host "10.0.0.1"', BadInput, "see [tables] in the settings"),
        ("28000", "connection requires a valid client certificate", BadInput, "see [tables] in the settings"),
        ("42501", 'permission denied to set parameter "log_statement"', BadInput, "see [tables] in the settings"),
        ("08P01", "no such user: ada", BadInput, "see [tables] in the settings"),
        ("08P01", "no such database: db", BadInput, "see [tables] in the settings"),
        ("08P01", "unsupported startup parameter: statement_timeout", BadInput, "see [tables] in the settings"),
        ("08P01", "no more connections allowed (max_client_conn)", Transient, "make room, then try again"),
        ("53300", "sorry, too many clients already", Transient, "make room, then try again"),
        ("57P03", "the database system is starting up", Transient, "did not answer"),
    ],
)
def test_who_is_refused_at_the_door_hears_whether_it_passes(
    state: str, said: str, kind: type[Exception], to_do: str
) -> None:
    with refusing(state, said) as port:
        found = told(f"ada:x@{LOOPBACK}:{port}/db")
    assert type(found) is kind
    assert said in str(found)
    assert to_do in str(found)


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("sslmode=verify-full&sslrootcert={folder}/nowhere.pem", "root certificate file .* does not exist"),
        ("sslmode=verify-full&sslrootcert={folder}/odd.pem", "could not read root certificate file"),
        ("sslmode=require&sslcert={folder}/odd.pem&sslkey={folder}/odd.pem", "could not read certificate file"),
    ],
)
def test_a_certificate_that_is_none_is_the_settings_fault(tmp_path: Path, query: str, said: str) -> None:
    (tmp_path / "odd.pem").write_text("nonsense")
    with refusing(by_tls=b"S") as port:
        found = told(f"ada:x@{LOOPBACK}:{port}/db?{query.format(folder=tmp_path)}")
    assert type(found) is BadInput
    assert re.search(rf"{said}.*see \[tables\] in the settings", str(found))


def test_a_name_that_is_not_known_now_may_be_later_whoever_looks_it_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a host that stands in libpq's own file psycopg knows nothing."""
    services = tmp_path / "services"
    services.write_text("[cat]\nhost=no-such-host.invalid\n")
    monkeypatch.setenv("PGSERVICEFILE", str(services))
    found = told("/?service=cat")
    assert type(found) is Transient
    assert "did not answer" in str(found)
