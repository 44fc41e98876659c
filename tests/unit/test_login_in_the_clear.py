"""No login to a REST catalog crosses a network without TLS, and the refusal says no secret."""

from __future__ import annotations

from typing import Any

import pytest

from wavestitch.batch.deployment import Deployment
from wavestitch.contracts.errors import BadInput
from wavestitch.settings import Settings
from wavestitch.tables.access.login_in_the_clear import refuse_login_in_the_clear
from wavestitch.tables.catalog import CatalogSettings, open_catalog

LOGINS = [{"token": "hunter2"}, {"credential": "id:hunter2"}, {"header.Authorization": "Bearer hunter2"}]


@pytest.mark.parametrize("login", LOGINS)
@pytest.mark.parametrize("uri", ["http://catalog.example:8181", "HTTP://10.0.0.1/c", "http://127.0.0.1.example/"])
def test_a_login_over_plain_http_is_refused_before_anything_is_asked(uri: str, login: dict[str, str]) -> None:
    settings = CatalogSettings("c", uri, "file:///w", {"type": "rest", **login})
    with pytest.raises(BadInput, match=r"plain http beyond this machine.*use https") as refused:
        open_catalog(settings)
    assert "hunter2" not in refused.value.message


@pytest.mark.parametrize(
    ("uri", "properties"),
    [
        ("http://u:hunter2@catalog.example", {}),
        ("https://catalog.example", {"credential": "hunter2", "oauth2-server-uri": "http://login.example/token"}),
        ("http://catalog.example/c?key=hunter2", {}),
        ("http://catalog.example/c#hunter2", {}),
        ("https://catalog.example", {"oauth2-server-uri": "http://login.example/token?k=hunter2"}),
    ],
)
def test_a_login_in_the_address_and_the_server_for_tokens_count_too(uri: str, properties: dict[str, str]) -> None:
    with pytest.raises(BadInput, match="plain http") as refused:
        refuse_login_in_the_clear("c", uri, properties)
    assert "hunter2" not in refused.value.message


@pytest.mark.parametrize(
    ("tables", "here"),
    [
        ({"properties": {"header.X-Auth": "env:CANARY"}}, "http://127.0.0.1:8181"),
        ({"properties": {"header.X-Gateway": "env:CANARY"}}, "http://localhost:8181"),
        ({"uri": "env:ADDRESS"}, "http://[::1]:8181/hunter2hunter2"),
    ],
)
def test_what_stands_by_reference_is_a_login_whatever_its_key_is(
    monkeypatch: pytest.MonkeyPatch, tables: dict[str, Any], here: str
) -> None:
    monkeypatch.setenv("CANARY", "hunter2hunter2")
    monkeypatch.setenv("ADDRESS", "http://catalog.example/hunter2hunter2")
    whole = {"warehouse": "file:///w", "uri": "http://catalog.example/c", **tables}
    whole["properties"] = {"type": "rest", **whole.get("properties", {})}
    settings = Settings.model_validate({"landing": "/l", "docs": "/d", "kafka": {"bootstrap": "h:1"}, "tables": whole})
    found = Deployment(settings, guest=True).catalog_settings()
    with pytest.raises(BadInput, match="plain http beyond this machine") as refused:
        open_catalog(found)
    assert "hunter2" not in refused.value.message
    refuse_login_in_the_clear("c", here, found.properties, referred=found.referred)
    refuse_login_in_the_clear("c", "https://catalog.example", found.properties, referred=found.referred)


@pytest.mark.parametrize(
    ("uri", "properties"),
    [
        ("https://catalog.example", LOGINS[0]),
        ("http://127.0.0.1:8181", LOGINS[0]),
        ("http://[::1]:8181", LOGINS[1]),
        ("http://localhost:8181", LOGINS[2]),
        ("http://catalog.example", {"prefix": "p", "header.X-Tenant": "t"}),
    ],
)
def test_with_tls_on_this_machine_and_without_a_login_it_is_none(uri: str, properties: dict[str, str]) -> None:
    refuse_login_in_the_clear("c", uri, properties)


def test_an_address_that_is_none_is_refused_without_repeating_it() -> None:
    with pytest.raises(BadInput, match="its address is none") as refused:
        refuse_login_in_the_clear("c", "http://u:hunter2@[::1", {})
    assert "hunter2" not in refused.value.message
