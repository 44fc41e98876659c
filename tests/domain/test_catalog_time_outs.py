"""A catalog that takes a connection and then says nothing is given up after a time that the settings name (I5)."""

from __future__ import annotations

import gc
import socket
import weakref
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import make_url

from tests.builders.table_rows import first_head
from tests.domain.rest_catalog import rest_catalog
from wavestitch.contracts.errors import StateUnknown, Transient
from wavestitch.settings import Settings, load_settings
from wavestitch.tables.access.time_outs import TimeOuts, connect_args
from wavestitch.tables.catalog import CatalogSettings, open_catalog
from wavestitch.tables.stream_tables import StreamTables

SHORT = TimeOuts(connect=1.0, answer=1.0)
DEADLINE_SECONDS = 60.0
"""Seconds; a wait that nothing bounds would be one for ever."""


@pytest.fixture
def silent() -> Iterator[int]:
    """The port of a server that takes every connection and never says a word."""
    with socket.create_server(("127.0.0.1", 0), backlog=50) as server:
        yield server.getsockname()[1]


def answer_of(act: Any) -> Any:
    pool = ThreadPoolExecutor(1)
    try:
        return pool.submit(act).result(DEADLINE_SECONDS)
    finally:
        pool.shutdown(wait=False)


@pytest.mark.parametrize("with_login", [False, True])
def test_a_rest_catalog_that_never_answers_is_given_up(silent: int, tmp_path: Path, with_login: bool) -> None:
    # With a credential the first question is another one: for a token, while the session is still being made.
    login = {"credential": "a:b", "oauth2-server-uri": f"http://127.0.0.1:{silent}/token"} if with_login else {}
    settings = CatalogSettings(
        "rest", f"http://127.0.0.1:{silent}", f"file://{tmp_path}", {"type": "rest", **login}, SHORT
    )
    with pytest.raises(Transient, match="did not answer"):
        answer_of(lambda: open_catalog(settings))


def test_a_postgresql_catalog_that_never_answers_is_given_up(silent: int, tmp_path: Path) -> None:
    settings = CatalogSettings(
        "pg", f"postgresql+psycopg://u:p@127.0.0.1:{silent}/d", f"file://{tmp_path}", time_outs=SHORT
    )
    with pytest.raises(Transient, match="did not answer"):
        answer_of(lambda: open_catalog(settings))


def test_a_commit_whose_answer_never_comes_has_an_unknown_outcome_and_a_look_fails(tmp_path: Path) -> None:
    with rest_catalog(tmp_path) as (settings, faults):
        tables = StreamTables(replace(settings, time_outs=SHORT), "ecg")
        head = tables.commit(None, first_head(), [])
        faults.silent = True
        with pytest.raises(Transient, match="did not answer"):
            answer_of(tables.head)
        faults.silent, faults.planned = False, [("silent", 0)]
        with pytest.raises(StateUnknown):
            answer_of(lambda: tables.commit(head, head.next(), []))


@pytest.mark.parametrize(
    ("address", "expected"),
    [
        ("postgresql+psycopg2://h/d", {"connect_timeout": 3, "tcp_user_timeout": 7000}),
        ("postgresql://h/d", {"connect_timeout": 3, "tcp_user_timeout": 7000}),
        ("postgresql+psycopg://h/d?connect_timeout=9", {"tcp_user_timeout": 7000}),
        ("postgresql+pg8000://h/d", {"timeout": 7}),
        ("mysql+pymysql://h/d", {"connect_timeout": 3, "read_timeout": 7, "write_timeout": 7}),
        ("sqlite:////a.db?timeout=60", {}),
        ("oracle+oracledb://h/d", {}),
    ],
)
def test_each_driver_is_told_in_its_own_words_and_the_address_wins(address: str, expected: dict[str, int]) -> None:
    assert connect_args(make_url(address), TimeOuts(2.5, 7)) == expected


def test_the_settings_say_how_long_and_are_what_a_deployment_opens_its_catalog_with(tmp_path: Path) -> None:
    from wavestitch.batch.deployment import Deployment  # noqa: PLC0415

    settings: Settings = load_settings(
        {
            "WAVESTITCH_KAFKA__BOOTSTRAP": "b:1",
            "WAVESTITCH_TABLES__URI": "sqlite:////a",
            "WAVESTITCH_TABLES__WAREHOUSE": "/w",
            "WAVESTITCH_TABLES__ANSWER_TIMEOUT": "5 s",
            "WAVESTITCH_LANDING": str(tmp_path / "l"),
            "WAVESTITCH_DOCS": "/d",
            "WAVESTITCH_CACHE": "/c",
        }
    )
    assert Deployment(settings).catalog_settings().time_outs == TimeOuts(10, 5)
    assert TimeOuts() == TimeOuts(settings.tables.connect_timeout, 60)


def test_a_rest_catalog_that_is_dropped_leaves_no_connection_open(tmp_path: Path) -> None:
    with rest_catalog(tmp_path) as (settings, _):
        catalog = open_catalog(settings)
        assert catalog.list_namespaces() == []
        pools = vars(catalog)["_session"].adapters["http://"].poolmanager.pools
        (connection,) = (pools.get(key).pool.queue[-1] for key in list(pools.keys()))
        ended = weakref.ref(catalog)
        assert connection.sock is not None
        del catalog
        gc.collect()
        assert ended() is None
        assert connection.sock is None
