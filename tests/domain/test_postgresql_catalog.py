"""A catalog in a real PostgreSQL: what its server does, and what becomes of a commit meanwhile. I6, I7.

Races and compaction on it are in `test_one_commit.py` and `test_maintain_compaction.py`.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import pytest
from pyiceberg.catalog.sql import SqlCatalog, SqlCatalogBaseTable
from sqlalchemy import NullPool, create_engine, text
from sqlalchemy.exc import DBAPIError

from tests.builders.table_rows import first_head, held_rows, hold, published_row, stage, stage_held, write_landing
from tests.deployment_rig import eventually
from tests.postgresql import PASSWORD, Postgresql, running_postgresql
from wavestitch.contracts.errors import BadInput, StateUnknown, Transient
from wavestitch.local.loopback_port import LOOPBACK
from wavestitch.tables.access.time_outs import TimeOuts
from wavestitch.tables.catalog import CatalogSettings, open_catalog
from wavestitch.tables.stream_tables import StreamTables

pytestmark = pytest.mark.filterwarnings("error")


@pytest.fixture
def server() -> Iterator[Postgresql]:
    """One of its own: it is killed here."""
    with running_postgresql() as found:
        yield found


def test_a_catalog_that_was_used_leaves_no_connection_behind(postgresql: Postgresql, tmp_path: Path) -> None:
    name = postgresql.new_database()
    settings = CatalogSettings("local", postgresql.address(name), f"file://{tmp_path}/warehouse")
    for _ in range(3):
        tables = StreamTables(settings, "ecg")
        head = tables.head()
        tables.commit(head, first_head() if head is None else head.next(), [])
    with postgresql.connection("postgres") as asked:
        found = asked.execute("SELECT count(*) FROM pg_stat_activity WHERE datname = %s", [name]).fetchone()
    assert found == (0,)


def test_who_opens_a_new_catalog_while_another_process_makes_its_tables_takes_those(
    postgresql: Postgresql, tmp_path: Path
) -> None:
    name = postgresql.new_database()
    settings = CatalogSettings("local", postgresql.address(name), f"file://{tmp_path}/warehouse")
    waiting = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = %s"
    with create_engine(settings.uri, poolclass=NullPool).connect() as other, ThreadPoolExecutor(1) as beside:
        SqlCatalogBaseTable.metadata.create_all(other)
        opened = beside.submit(open_catalog, settings)
        with postgresql.connection(name) as asked:
            eventually(lambda: asked.execute(waiting, [name]).fetchone() == (1,))
        other.commit()
        assert opened.result(30).list_namespaces() == []


def test_the_server_goes_on_when_another_run_of_tests_begins(
    postgresql: Postgresql, tmp_path_factory: pytest.TempPathFactory
) -> None:
    for folder in (base := tmp_path_factory.getbasetemp(), *base.parents):
        if folder.name.startswith("pytest-of-"):
            folder.chmod(0o700)  # as pytest does it
    with postgresql.connection("postgres") as asked:
        asked.execute("CHECKPOINT")
        assert asked.execute("SELECT 1").fetchone() == (1,)


def test_a_commit_whose_server_is_killed_has_an_unknown_outcome_and_a_look_afterwards_tells(
    server: Postgresql, tmp_path: Path
) -> None:
    name = server.new_database()
    tables = StreamTables(CatalogSettings("local", server.address(name), f"file://{tmp_path}/warehouse"), "ecg")
    head = tables.commit(None, first_head(), [])
    with server.connection(name) as asked:
        body = "BEGIN PERFORM pg_sleep(600); RETURN NEW; END"
        asked.execute(f"CREATE FUNCTION wait() RETURNS trigger AS '{body}' LANGUAGE plpgsql")
        asked.execute("CREATE TRIGGER wait BEFORE UPDATE ON iceberg_tables FOR EACH ROW EXECUTE FUNCTION wait()")

        def waits() -> bool:
            found = asked.execute("SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'PgSleep'").fetchone()
            return found == (1,)

        files = [stage(tables.data_folder(), "a", [published_row("a")])]
        with ThreadPoolExecutor(1) as beside:
            committed = beside.submit(tables.commit, head, head.next(), files)
            eventually(waits)
            server.stop(kill=True)
            with pytest.raises(StateUnknown):
                committed.result(30)
    with pytest.raises(Transient, match="did not answer"):
        tables.head()
    server.start()
    assert tables.head() == head
    with server.connection(name) as asked:
        asked.execute("DROP TRIGGER wait ON iceberg_tables")
    assert tables.commit(head, head.next(), files).sequence == head.sequence + 1
    assert set(tables.published(["a"])) == {"a"}


def test_a_server_that_refuses_is_quoted_at_once_and_nobody_is_said_to_have_been_first(
    postgresql: Postgresql, tmp_path: Path
) -> None:
    name = postgresql.new_database()
    address, place = postgresql.address(name), f"file://{tmp_path}/warehouse"
    ours = StreamTables(CatalogSettings("local", address, place, time_outs=TimeOuts(answer=1)), "ecg")
    landed = [(0, 7, b"x"), (0, 8, b"y")]
    one, row = held_rows(write_landing(tmp_path / "a.arrow", landed), landed)
    head = hold(ours, [one])
    with postgresql.connection(name) as asked, asked.transaction():
        asked.execute("SELECT * FROM iceberg_tables FOR UPDATE")
        for act in (lambda: ours.commit(head, head.next(), []), lambda: stage_held(ours, head, [row])):
            with pytest.raises(Transient, match=r"due to statement timeout\); look for who has locked it"):
                act()
    with postgresql.connection("postgres") as asked:
        asked.execute(f"ALTER DATABASE {name} SET default_transaction_read_only = on")
        for act in (lambda: ours.commit(head, head.next(), []), lambda: stage_held(ours, head, [row])):
            with pytest.raises(Transient, match=r"takes no changes.*in a read-only transaction\); let it take them"):
                act()
        asked.execute(f"ALTER DATABASE {name} RESET default_transaction_read_only")
    with postgresql.connection(name) as asked:
        asked.execute(f"CREATE ROLE {name} LOGIN PASSWORD 'x'")
    guest = address.replace(f"postgres:{PASSWORD.replace(' ', '%20')}@", f"{name}:x@")
    for login, said in (
        (guest, "permission denied for table iceberg_tables"),
        (guest.replace(":x@", ":y@"), "password authentication failed"),
        (postgresql.address("nowhere"), 'database "nowhere" does not exist'),
    ):
        with pytest.raises(BadInput, match=rf"{said}.*see \[tables\] in the settings"):
            StreamTables(CatalogSettings("local", login, place), "ecg").head()
    for query, said in (
        ("nonsense=1", "invalid connection option"),
        ("connect_timeout=abc", "bad value for connect_timeout"),
        ("options=-cno_such_thing%3D1", "unrecognized configuration parameter"),
        ("options=-cstatement_timeout%3Dsoon", "invalid value for parameter"),
        ("sslmode=require", "server does not support SSL"),
        ("target_session_attrs=nonsense", "invalid target_session_attrs value"),
        ("ssl_min_protocol_version=nonsense", 'invalid "ssl_min_protocol_version" value'),
        ("service=nonsense", "definition of service"),
        ("hostaddr=nonsense", "could not parse network address"),
        ("channel_binding=require", "channel binding required"),
        ("require_auth=none", "authentication method requirement"),
        ("host=a&hostaddr=127.0.0.1,127.0.0.2", "could not match 1 host names with 2 hostaddr values"),
        ("sslmode=require&sslrootcert=system", 'weak sslmode "require" may not be used'),
        ("gssencmode=require", "GSSAPI"),
        ("ssl_min_protocol_version=TLSv1.3&ssl_max_protocol_version=TLSv1.2", "invalid SSL protocol version range"),
    ):
        with pytest.raises(BadInput, match=rf"{said}.*see \[tables\] in the settings"):
            StreamTables(CatalogSettings("local", f"{address}?{query}", place), "ecg").head()
    login = address.partition("@")[0]
    for instead, said in (
        ("127.0.0.1:99999/x", "invalid port number"),
        (f"/x?host=/{'x' * 200}", "socket path .* is too long"),
    ):
        with pytest.raises(BadInput, match=rf"{said}.*see \[tables\] in the settings"):
            StreamTables(CatalogSettings("local", f"{login}@{instead}", place), "ecg").head()
    for nobody in ("127.0.0.1:1/x", "no-such-host.invalid/x", "/x?host=/nowhere"):
        with pytest.raises(Transient, match=r"did not answer .*; try again"):
            StreamTables(CatalogSettings("local", f"{login}@{nobody}", place), "ecg").head()
    twice = f"{address}?options=-cstatement_timeout%3D5s&options=-c%20lock_timeout%3D5s"
    assert StreamTables(CatalogSettings("local", twice, place), "ecg").head() == head
    with postgresql.connection("postgres") as asked:
        asked.execute(f"ALTER ROLE {name} CONNECTION LIMIT 0")
        with pytest.raises(Transient, match=r"too many connections for role.*make room, then try again"):
            StreamTables(CatalogSettings("local", guest, place), "ecg").head()
        asked.execute(f"ALTER DATABASE {name} ALLOW_CONNECTIONS false")
        with pytest.raises(BadInput, match=r"not currently accepting connections.*see \[tables\] in the settings"):
            StreamTables(CatalogSettings("local", address, place), "ecg").head()
        asked.execute(f"ALTER DATABASE {name} ALLOW_CONNECTIONS true")
    assert ours.commit(head, head.next(), []).sequence == head.sequence + 1


def test_a_client_that_is_gone_before_its_COMMIT_keeps_no_later_one_out(postgresql: Postgresql, tmp_path: Path) -> None:
    """Its connection stands: nobody has told the server."""
    address = postgresql.address(postgresql.new_database())
    settings = CatalogSettings("local", address, f"file://{tmp_path}/warehouse", time_outs=TimeOuts(answer=1))
    tables = StreamTables(settings, "ecg")
    head = tables.commit(None, first_head(), [])
    catalog = open_catalog(settings)
    assert isinstance(catalog, SqlCatalog)
    with catalog.engine.connect() as gone:
        gone.execute(text("UPDATE iceberg_tables SET metadata_location = 'nowhere' WHERE table_name = 'waveforms'"))

        def committed() -> bool:
            with suppress(StateUnknown):
                return tables.commit(head, head.next(), []).sequence == head.sequence + 1
            return False

        eventually(committed)
        with pytest.raises(DBAPIError, match="idle-in-transaction"):
            gone.execute(text("COMMIT"))
        gone.invalidate()


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ("", ["7s", "7s"]),
        ("-csearch_path%3Dpublic", ["7s", "7s"]),
        ("-csearch_path%3Dpublic --statement-timeout%3D9s", ["9s", "7s"]),
        ("-cidle_in_transaction_session_timeout%3D8s -cSTATEMENT_TIMEOUT%3D9s", ["9s", "8s"]),
        ("-capplication_name%3Dno_statement_timeout", ["7s", "7s"]),
    ],
)
def test_a_session_that_a_pooler_hands_on_keeps_no_time_out_of_ours(
    options: str, expected: list[str], postgresql: Postgresql, tmp_path: Path
) -> None:
    address = f"{postgresql.address(postgresql.new_database())}?options={options}"
    catalog = open_catalog(
        CatalogSettings("local", address, f"file://{tmp_path}/warehouse", time_outs=TimeOuts(answer=7))
    )
    assert isinstance(catalog, SqlCatalog)
    names = ("statement_timeout", "idle_in_transaction_session_timeout")
    with catalog.engine.connect() as ours:
        assert [ours.execute(text(f"SHOW {name}")).scalar() for name in names] == expected
        ours.commit()
        session = ours.connection.cursor()
        kept = ["0" if said == "7s" else said for said in expected]
        assert [session.execute(f"SHOW {name}").fetchone() for name in names] == [(said,) for said in kept]


def test_a_catalog_that_fails_over_is_gone_on_with_at_its_stand_by_which_has_every_head(
    server: Postgresql, tmp_path: Path
) -> None:
    """The address names both, and asks for the one that takes writes."""
    name = server.new_database()
    with server.stand_by() as other:
        login, _, database = server.address(name).rpartition("@")
        hosts = f"host={LOOPBACK}:{server.port}&host={LOOPBACK}:{other.port}"
        address = f"{login}@/{database.rpartition('/')[2]}?{hosts}&target_session_attrs=read-write"
        tables = StreamTables(CatalogSettings("local", address, f"file://{tmp_path}/warehouse"), "ecg")
        head = tables.commit(None, first_head(), [])
        files = [stage(tables.data_folder(), "a", [published_row("a")])]
        server.stop(kill=True)
        with pytest.raises(Transient, match="did not answer"):
            tables.commit(head, head.next(), files)
        other.promote()
        assert tables.head() == head
        assert tables.commit(head, head.next(), files).sequence == head.sequence + 1
        assert set(tables.published(["a"])) == {"a"}
