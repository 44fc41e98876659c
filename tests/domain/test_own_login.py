"""A login goes to the servers that the settings name: no table's property and no server's answer sends it elsewhere.

The pinned pyiceberg is read itself: whatever it imports by name, and every property that it knows, must be closed.
"""

from __future__ import annotations

import ast
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyiceberg
import pytest

from tests.builders.stranger import stranger
from tests.builders.table_rows import first_head, published_row, stage
from tests.domain.rest_catalog import rest_catalog
from wavestitch.contracts.errors import Altered, BadInput
from wavestitch.tables.access.own_code import A_SERVER_S
from wavestitch.tables.catalog import CatalogSettings, open_catalog
from wavestitch.tables.commit.own_place import local_path
from wavestitch.tables.stream_tables import StreamTables

SOURCES = Path(pyiceberg.__file__).parent
STORE = {
    "s3.endpoint": "https://store.own.example",
    "s3.access-key-id": "AKIA",
    "s3.secret-access-key": "hunter2",
    "s3.session-token": "hunter2",
    "s3.region": "eu-1",
}
IMPORTED_BY_NAME = {
    ("io/__init__.py", "_import_file_io"): "replaced: the settings' classes alone",
    ("io/pyarrow.py", "_import_retry_strategy"): "by a property of the file access: the settings' alone",
    ("table/locations.py", "_import_location_provider"): "replaced: the library's own places",
    ("catalog/__init__.py", "_import_catalog"): "by a property of the settings, before any server was asked",
    ("catalog/rest/auth.py", "create"): "by `auth`, which no server may say",
    ("transforms.py", "_try_import"): "by constants",
}


def functions() -> Iterator[tuple[str, ast.FunctionDef | ast.AsyncFunctionDef]]:
    for path in sorted(SOURCES.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                yield path.relative_to(SOURCES).as_posix(), node


def known_properties() -> list[str]:
    """Every constant of pyiceberg that looks like the name of a property, e.g. `s3.endpoint`."""
    found: set[str] = set()
    for path in SOURCES.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            values = [node.value] if isinstance(node, ast.Assign | ast.AnnAssign) else []
            found |= {v.value for v in values if isinstance(v, ast.Constant) and isinstance(v.value, str)}
    return sorted(v for v in found if v == v.lower() and " " not in v and any(c in v for c in ".-") and "/" not in v)


def test_whatever_pyiceberg_imports_by_name_is_closed() -> None:
    found = {
        (where, function.name)
        for where, function in functions()
        for call in ast.walk(function)
        if isinstance(call, ast.Call)
        and (
            getattr(call.func, "attr", "") in ("import_module", "exec_module", "load_module")
            or getattr(call.func, "id", "") in ("import_module", "__import__", "exec", "eval", "compile")
        )
    }
    assert found == IMPORTED_BY_NAME.keys(), "look at what is new, close it, and say here how"


def test_the_properties_that_are_tried_are_those_that_name_servers_and_logins() -> None:
    assert {
        "s3.endpoint",
        "s3.proxy-uri",
        "s3.signer.uri",
        "s3.retry-strategy-impl",
        "gcs.service.host",
        "adls.account-host",
        "adls.blob-storage-authority",
        "hf.endpoint",
        "hdfs.host",
        "oauth2-server-uri",
        "py-io-impl",
        "rest.sigv4-enabled",
        "snapshot-loading-mode",
    } <= set(known_properties())


@pytest.mark.parametrize("kind", ["sql", "rest"])
def test_no_property_of_a_table_or_of_a_server_reaches_what_opens_its_files(kind: str, tmp_path: Path) -> None:
    every = dict.fromkeys(
        [*known_properties(), "header.x-api-key", "token", "credential", "uri", "auth.impl"], "foreign"
    )
    # Numbers and truth values, that the library's own commit reads: nothing that opens files does.
    every = {k: v for k, v in every.items() if not k.startswith(("write.", "commit.", "format-version", "rest-page"))}
    with rest_catalog(tmp_path / "served") as (served, faults):
        faults.config = {"defaults": dict(every), "overrides": {k: v for k, v in every.items() if k not in A_SERVER_S}}
        faults.table_config = every
        local = CatalogSettings("local", f"sqlite:///{tmp_path}/c.db", f"file://{tmp_path}/w")
        settings = {"rest": served, "sql": local}[kind]
        settings = CatalogSettings(settings.name, settings.uri, settings.warehouse, {**settings.properties, **STORE})
        StreamTables(settings, "ecg").commit(None, first_head(), [])
        catalog = open_catalog(settings)
        with catalog.load_table("ecg.waveforms").transaction() as transaction:
            transaction.set_properties(every)
        for table in (catalog.load_table("ecg.waveforms"), StreamTables(settings, "ecg").waveforms()):
            assert table is not None
            assert {k: v for k, v in table.io.properties.items() if v == "foreign"} == dict.fromkeys(
                A_SERVER_S & every.keys() if kind == "rest" else (), "foreign"
            )
            assert table.io.properties.items() >= STORE.items()
        remarks = StreamTables(settings, "ecg").remarks()
        assert any("property s3.endpoint of table ecg.waveforms is set" in r for r in remarks)
        said = [r for r in remarks if r.startswith("the server of catalog")]
        assert [all(key in r for key in ("uri", "token", "s3.endpoint")) for r in said] == [True] * (kind == "rest")


@pytest.mark.parametrize("path", ["s3://bucket/key", "gs://bucket/key", "hdfs://somewhere.example/key", "hf://x/y"])
def test_a_file_of_another_kind_than_the_warehouse_s_is_not_asked_for(path: str, tmp_path: Path) -> None:
    with stranger() as (uri, seen):
        said = {"s3.endpoint": uri, "gcs.service.host": uri, "hf.endpoint": uri, "s3.retry-strategy-impl": "os.abort"}
        own = {**STORE, "gcs.oauth2.token": "hunter2", "gcs.oauth2.token-expires-at": "4102444800000"}
        settings = CatalogSettings("local", f"sqlite:///{tmp_path}/c.db", f"file://{tmp_path}/w", own)
        tables = StreamTables(settings, "ecg")
        tables.commit(None, first_head(), [stage(tables.data_folder(), "a", [published_row("w1")])])
        catalog = open_catalog(settings)
        found = catalog.load_table("ecg.waveforms")
        place = Path(local_path(found.metadata_location))
        metadata = json.loads(place.read_text())
        metadata["properties"] |= said
        for snapshot in metadata["snapshots"]:
            snapshot["manifest-list"] = path
        place = place.with_name(f"00009-{place.name[6:]}")
        place.write_text(json.dumps(metadata))
        catalog.drop_table("ecg.waveforms")
        catalog.register_table("ecg.waveforms", f"file://{place}")
        with pytest.raises(Altered, match=r"names a file at .* look for what changed the table"):
            StreamTables(settings, "ecg").published(["w1"])
        assert seen == []


@pytest.mark.filterwarnings("ignore:Deprecated in 0.8.0:DeprecationWarning")
@pytest.mark.parametrize("login", [{"token": "hunter2"}, {"header.x-api-key": "hunter2"}, {"credential": "me:hunter2"}])
@pytest.mark.parametrize("key", ["uri", "oauth2-server-uri"])
@pytest.mark.parametrize("where", ["defaults", "overrides"])
def test_a_server_sends_no_login_elsewhere(login: dict[str, str], key: str, where: str, tmp_path: Path) -> None:
    with stranger() as (uri, seen), rest_catalog(tmp_path) as (served, faults):
        faults.config = {where: {key: uri}}
        own = {**served.properties, **login}
        settings = CatalogSettings(served.name, served.uri, served.warehouse, own)
        tables = StreamTables(settings, "ecg")
        assert tables.head() is None
        assert any(f"says {key}; not obeyed" in r for r in tables.remarks())
        assert seen == []


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_no_redirection_is_followed_and_the_sentence_says_so(status: int, tmp_path: Path) -> None:
    with stranger() as (uri, seen), rest_catalog(tmp_path) as (served, faults):
        own = {**served.properties, "header.x-api-key": "hunter2"}
        settings = CatalogSettings(served.name, served.uri, served.warehouse, own)
        tables = StreamTables(settings, "ecg")
        faults.redirect = (status, f"{uri}/v1/tables")
        with pytest.raises(
            BadInput, match=rf"sends its clients on \(status {status}\) to '127.0.0.1'; that is not followed"
        ):
            tables.head()
        faults.redirect = (status, "http://[")
        with pytest.raises(BadInput, match="not followed"):
            tables.head()
        assert seen == []


def test_a_request_to_a_server_that_the_settings_do_not_name_is_not_sent(tmp_path: Path) -> None:
    with stranger() as (uri, seen), rest_catalog(tmp_path) as (settings, _):
        catalog: Any = open_catalog(settings)
        catalog.uri = uri
        with pytest.raises(BadInput, match=r"was not sent: \[tables\] does not name that server"):
            catalog.list_namespaces()
        assert seen == []
