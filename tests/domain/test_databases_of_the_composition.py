"""`docker/bin/init-databases` on a real PostgreSQL: run by several at once, and no password in the server's log."""

from __future__ import annotations

import os
import secrets
import subprocess
import sys
from pathlib import Path

import psycopg
import pytest

from tests.conftest import ROOT
from tests.deployment_rig import eventually
from tests.postgresql import PASSWORD, Postgresql
from wavestitch.child_environment import child_environment
from wavestitch.local.loopback_port import LOOPBACK

ROLES = ("airflow", "catalog")
WAITS = "SELECT count(*) FROM pg_locks WHERE NOT granted"


@pytest.fixture
def passwords(postgresql: Postgresql, tmp_path: Path) -> dict[str, str]:
    """Of each role, in a file as `make-secrets` makes it."""
    made = {role: secrets.token_hex(24) for role in ROLES}
    (tmp_path / "postgres_password").write_text(PASSWORD)
    (tmp_path / "airflow_database_password").write_text(made["airflow"])
    (tmp_path / "catalog_password").write_text(made["catalog"])
    return made


def begun(server: Postgresql, folder: Path) -> subprocess.Popen[str]:
    environment = {**child_environment(os.environ), "POSTGRES_HOST": LOOPBACK, "PGPORT": str(server.port)}
    words = [sys.executable, str(ROOT / "docker" / "bin" / "init-databases"), str(folder)]
    return subprocess.Popen(words, env=environment, stderr=subprocess.PIPE, text=True)


def ended(inits: list[subprocess.Popen[str]]) -> list[str]:
    """What each said at its end, and with what it ended."""
    return [f"{said[1]}{init.returncode}" for init in inits for said in [init.communicate(timeout=60)]]


def who_is_in(server: Postgresql, *, role: str, password: str, database: str) -> str:
    login = psycopg.connect(host=LOOPBACK, port=server.port, user=role, password=password, dbname=database)
    with login:
        return login.info.user


def test_several_at_once_wait_for_each_other_and_each_role_reaches_its_own_database_alone(
    postgresql: Postgresql, passwords: dict[str, str], tmp_path: Path
) -> None:
    assert ended([begun(postgresql, tmp_path) for _ in range(4)]) == ["0"] * 4
    for role, other in zip(ROLES, reversed(ROLES), strict=True):
        assert who_is_in(postgresql, role=role, password=passwords[role], database=role) == role
        with pytest.raises(psycopg.OperationalError, match="permission denied for database"):
            who_is_in(postgresql, role=role, password=passwords[role], database=other)


def test_a_statement_that_fails_leaves_no_password_in_the_server_s_log(
    postgresql: Postgresql, passwords: dict[str, str], tmp_path: Path
) -> None:
    assert ended([begun(postgresql, tmp_path)]) == ["0"]
    with postgresql.connection("postgres") as somebody:
        somebody.execute("BEGIN")
        somebody.execute("ALTER ROLE airflow CONNECTION LIMIT 50")
        init = begun(postgresql, tmp_path)
        with postgresql.connection("postgres") as looks:
            eventually(lambda: looks.execute(WAITS).fetchone() == (1,), seconds=60)
        somebody.execute("COMMIT")
    (said,) = ended([init])
    assert "tuple concurrently updated" in said
    log = (postgresql.folder / "log").read_text()
    assert "STATEMENT:  ALTER ROLE" in log
    assert not [role for role, password in passwords.items() if password in log + said]
