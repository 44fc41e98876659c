"""Spark goes to the catalog as pyiceberg does: with the same TLS and login, or not at all."""

from __future__ import annotations

import pytest

from wavestitch.contracts.errors import BadInput
from wavestitch.tables.access.spark_catalog import spark_catalog_conf
from wavestitch.tables.access.time_outs import TimeOuts
from wavestitch.tables.catalog import CatalogSettings, open_catalog

PREFIX = "spark.sql.catalog.ws"


def conf(uri: str, **properties: str) -> dict[str, str]:
    return spark_catalog_conf(CatalogSettings("ws", uri, "file:///w", properties))


def test_what_verifies_the_server_is_carried_over() -> None:
    found = conf("postgresql+psycopg2://u:p@db.example:5433/ice berg?sslmode=verify-full&sslrootcert=/etc/my ca.pem")
    assert found[f"{PREFIX}.uri"] == (
        "jdbc:postgresql://db.example:5433/ice%20berg?sslmode=verify-full&sslrootcert=/etc/my%20ca.pem"
    )
    assert (found[f"{PREFIX}.jdbc.user"], found[f"{PREFIX}.jdbc.password"]) == ("u", "p")


def test_a_login_in_the_parameters_is_carried_over_apart_from_the_address() -> None:
    found = conf("postgresql://h/db?user=u&password=p&sslmode=require")
    assert found[f"{PREFIX}.uri"] == "jdbc:postgresql://h/db?sslmode=require"
    assert (found[f"{PREFIX}.jdbc.user"], found[f"{PREFIX}.jdbc.password"]) == ("u", "p")


@pytest.mark.parametrize(
    "query",
    [
        "sslcert=/me.pem&sslkey=/me.key",
        "sslcrl=/crl.pem",
        "sslmode=verify-full&sslrootcert=system",
        "ssl_min_protocol_version=TLSv1.3",
        "channel_binding=require",
        "host=other.example",
        "options=-c%20search_path%3Dx",
    ],
)
def test_what_has_no_words_in_java_is_refused_and_not_dropped(query: str) -> None:
    with pytest.raises(BadInput, match=r"Spark cannot be told .*describe it to Spark in \[spark\.conf\]"):
        conf(f"postgresql://h/db?{query}")


@pytest.mark.parametrize(
    "uri",
    [
        "jdbc:postgresql://u:hunter2@h/db",
        "hunter2",
        "postgresql://h:hunter2x/db",
        "postgresql://h:5432/db?sslmode=@require&password=hunter2",
        "postgresql://u@h hunter2/db",
    ],
)
def test_an_address_that_is_none_is_refused_without_repeating_it(uri: str) -> None:
    settings = CatalogSettings("ws", uri, "file:///w")
    for use in (spark_catalog_conf, open_catalog):
        with pytest.raises(BadInput, match=r"the address of catalog ws (is none|names no host)") as refused:
            use(settings)
        assert "hunter2" not in refused.value.message


def test_a_rest_catalog_is_spoken_to_with_the_same_login() -> None:
    given = {"type": "rest", "token": "T", "header.X-Tenant": "a", "oauth2-server-uri": "https://o/", "s3.region": "eu"}
    found = conf("https://rest/", **given)
    carried = {key.removeprefix(f"{PREFIX}."): value for key, value in found.items()}
    assert {key: carried[key] for key in ("token", "header.X-Tenant", "oauth2-server-uri")} == {
        "token": "T",
        "header.X-Tenant": "a",
        "oauth2-server-uri": "https://o/",
    }


@pytest.mark.parametrize("key", ["ssl.cabundle", "ssl", "auth.type"])
def test_a_rest_catalog_behind_a_certificate_of_its_own_is_described_by_hand(key: str) -> None:
    with pytest.raises(BadInput, match="Spark cannot be told"):
        conf("https://rest/", type="rest", **{key: "x"})


@pytest.mark.parametrize(
    ("uri", "properties", "expected"),
    [
        (
            "https://rest/",
            {"type": "rest"},
            {"rest.client.connection-timeout-ms": "2500", "rest.client.socket-timeout-ms": "7000"},
        ),
        ("postgresql://h/db", {}, {"jdbc.connectTimeout": "3", "jdbc.socketTimeout": "7"}),
        ("sqlite:////a.db", {}, {}),
    ],
)
def test_spark_waits_for_the_catalog_no_longer_than_we_do(
    uri: str, properties: dict[str, str], expected: dict[str, str]
) -> None:
    found = spark_catalog_conf(CatalogSettings("ws", uri, "file:///w", properties, TimeOuts(2.5, 7)))
    said = {key.removeprefix(f"{PREFIX}."): value for key, value in found.items() if "timeout" in key.lower()}
    assert {k: v for k, v in said.items() if k != "uri"} == expected
