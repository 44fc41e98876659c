"""Whatever a catalog, its client or a file raises ends as an error of ours, with its cause in the sentence."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
import requests
import sqlalchemy.exc
from pyiceberg import exceptions

from tests.builders.table_rows import first_head
from tests.domain.rest_catalog import Faults, rest_catalog
from wavestitch.contracts.errors import Altered, BadInput, StateUnknown, Terminal, Transient, WavestitchError
from wavestitch.tables.access.catalog_errors import meanings
from wavestitch.tables.access.reading import reading
from wavestitch.tables.catalog import CatalogSettings, open_catalog
from wavestitch.tables.stream_tables import StreamTables

OF_ICEBERG = [c for _, c in inspect.getmembers(exceptions, inspect.isclass) if c.__module__ == exceptions.__name__]


@pytest.fixture
def served(tmp_path: Path) -> Iterator[tuple[CatalogSettings, Faults]]:
    with rest_catalog(tmp_path) as found:
        yield found


@pytest.mark.parametrize("kind", OF_ICEBERG, ids=lambda k: k.__name__)
def test_every_error_of_pyiceberg_is_in_the_list(kind):
    assert kind in meanings(), f"add {kind.__name__} to wavestitch/tables/access/catalog_errors.py"
    with pytest.raises(WavestitchError, match=r"^ecg\.held: .*seen by nobody"), reading("ecg.held"):
        raise kind("seen by nobody")


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (requests.ConnectionError("refused"), Transient),
        (requests.Timeout("slow"), Transient),
        (requests.exceptions.SSLError("unknown authority"), BadInput),
        (requests.exceptions.MissingSchema("no scheme"), BadInput),
        (requests.exceptions.JSONDecodeError("no JSON", "", 0), Transient),
        (sqlalchemy.exc.TimeoutError("pool"), Transient),
        (sqlalchemy.exc.OperationalError("SELECT secret", {}, Exception("gone away")), Transient),
        (sqlalchemy.exc.ArgumentError("no URL"), BadInput),
        (FileNotFoundError("x.avro"), Altered),
        (PermissionError("x.avro"), Transient),
        (pa.ArrowInvalid("magic bytes"), Altered),
        (ValueError("not Avro"), Altered),
        (EOFError("short"), Altered),
        (NotImplementedError("endpoint"), BadInput),
        (ModuleNotFoundError("boto3"), BadInput),
    ],
    ids=lambda v: type(v).__name__ if isinstance(v, Exception) else "",
)
def test_errors_of_clients_and_files_have_their_kind(error, expected):
    with pytest.raises(expected, match=r"^ecg\.held: ") as caught, reading("ecg.held"):
        raise error
    assert type(caught.value) is expected
    assert caught.value.__cause__ is error


def test_an_error_that_nobody_foresaw_is_terminal_and_a_mistake_of_ours_stays_one():
    class ThriftWentAway(Exception):
        __module__ = "thrift"

    with pytest.raises(Terminal, match="ThriftWentAway: no server"), reading("t"):
        raise ThriftWentAway("no server")
    with pytest.raises(TypeError), reading("t"):
        raise TypeError("ours")


@pytest.mark.parametrize("status", [400, 401, 403])
def test_a_commit_that_the_catalog_does_not_take_is_no_riddle(status, served):
    settings, faults = served
    tables = StreamTables(settings, "ecg")
    head = tables.commit(None, first_head(), [])
    faults.planned = [("before", status)] * 5
    with pytest.raises(BadInput, match=r"\[tables\] in the settings"):
        tables.commit(head, head.next(), [])
    assert tables.head() == head


@pytest.mark.parametrize("status", [401, 403])
def test_a_commit_that_landed_before_the_login_ended_has_happened(status, served):
    settings, faults = served
    tables = StreamTables(settings, "ecg")
    head = tables.commit(None, first_head(), [])
    faults.planned = [("after", status), *[("before", status)] * 4]
    assert tables.commit(head, head.next(), []).sequence == 2


def test_a_catalog_of_a_kind_that_nobody_knows_is_refused_by_name(tmp_path):
    with pytest.raises(BadInput, match="odd"):
        open_catalog(CatalogSettings("odd", "x://", f"file://{tmp_path}", {"type": "cuneiform"}))


def test_a_server_that_is_away_is_transient(tmp_path):
    with pytest.raises(Transient, match="did not answer"):
        open_catalog(CatalogSettings("rest", "http://127.0.0.1:1", f"file://{tmp_path}", {"type": "rest"}))


def test_an_answer_that_is_no_answer_leaves_the_outcome_open(served):
    settings, faults = served
    tables = StreamTables(settings, "ecg")
    head = tables.commit(None, first_head(), [])
    faults.planned = [("before", 200)]  # a page of a proxy
    with pytest.raises(StateUnknown):
        tables.commit(head, head.next(), [])
