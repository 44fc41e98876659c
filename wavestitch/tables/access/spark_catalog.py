"""Spark's settings for the catalog that pyiceberg has open: the same name, the same tables. Opens nothing.

What protects the way to the catalog (TLS, a login) is carried over or refused: Spark never goes there with less. It
waits no longer than pyiceberg.
"""

from __future__ import annotations

from math import ceil
from urllib.parse import quote

from pyiceberg.catalog import Catalog
from sqlalchemy.engine import URL

from wavestitch.contracts.errors import BadInput
from wavestitch.tables.access.own_code import not_obeyed
from wavestitch.tables.catalog import SQLITE_BUSY_SECONDS, CatalogSettings, sql_address

# libpq's words and those of Java's driver, where both mean the same.
_POSTGRESQL = {
    "sslmode": "sslmode",
    "sslrootcert": "sslrootcert",
    "application_name": "ApplicationName",
    "connect_timeout": "connectTimeout",
}
_REST = frozenset({"token", "credential", "oauth2-server-uri", "scope", "audience", "resource", "prefix"})
_REST_STARTS = ("header.", "rest.sigv4-", "rest.signing-")
_HARMLESS_TO_SPARK = ("default-", "warehouse", "view-", "scan-planning-mode", "snapshot-loading-mode", "write.")
# pyiceberg's alone; without them Spark speaks to another host, in another way, or as somebody else.
_REST_REFUSED = ("ssl", "auth")


def spark_catalog_conf(settings: CatalogSettings) -> dict[str, str]:
    """As for spark-submit. May hold secrets. Raises `BadInput` for a catalog that has to be described by hand."""
    prefix = f"spark.sql.catalog.{settings.name}"
    found = {prefix: "org.apache.iceberg.spark.SparkCatalog", f"{prefix}.warehouse": settings.warehouse}
    kind = settings.properties.get("type", "sql")
    if kind == "rest":
        return {
            **found,
            f"{prefix}.type": "rest",
            f"{prefix}.uri": settings.uri,
            f"{prefix}.rest.client.connection-timeout-ms": f"{settings.time_outs.connect * 1000:.0f}",
            f"{prefix}.rest.client.socket-timeout-ms": f"{settings.time_outs.answer * 1000:.0f}",
            **{f"{prefix}.{key}": value for key, value in _rest_properties(settings).items()},
        }
    url = sql_address(settings) if kind == "sql" else None
    if url is None or url.get_backend_name() not in ("sqlite", "postgresql"):
        raise BadInput(
            f"compaction knows the catalog kinds sqlite, postgresql and rest; catalog {settings.name} is of another: "
            f"{_by_hand(settings)}"
        )
    found[f"{prefix}.catalog-impl"] = "org.apache.iceberg.jdbc.JdbcCatalog"
    if url.get_backend_name() == "sqlite":
        return {**found, f"{prefix}.uri": f"jdbc:sqlite:{url.database}?busy_timeout={SQLITE_BUSY_SECONDS * 1000}"}
    login = {"user": url.username, "password": url.password}
    query = {key: value for key, value in url.query.items() if key not in login}
    login = {key: value or _first(url, key) for key, value in login.items()}
    return {
        **found,
        f"{prefix}.uri": _postgresql(settings, url, query),
        # The driver's own; what the address says wins.
        f"{prefix}.jdbc.connectTimeout": f"{ceil(settings.time_outs.connect)}",
        f"{prefix}.jdbc.socketTimeout": f"{ceil(settings.time_outs.answer)}",
        **{f"{prefix}.jdbc.{key}": value for key, value in login.items() if value},
    }


def refuse_what_spark_would_obey(catalog: Catalog, settings: CatalogSettings) -> None:
    """Raises `BadInput` where the catalog's server, when it was opened, said where or as whom it is to be asked: Java's
    client obeys in that. `catalog`: opened by `settings`."""
    obeyed = [key for key in not_obeyed(catalog) if not key.startswith(_HARMLESS_TO_SPARK)]
    if obeyed:
        raise BadInput(
            f"Spark would obey the server of catalog {settings.name} in {', '.join(obeyed)}, which [tables] does not "
            f"say: {_by_hand(settings)}"
        )


def _rest_properties(settings: CatalogSettings) -> dict[str, str]:
    refused = [key for key in settings.properties if key.startswith(_REST_REFUSED)]
    if refused:
        raise BadInput(
            f"Spark cannot be told {', '.join(sorted(refused))} of catalog {settings.name}: {_by_hand(settings)}"
        )
    return {key: value for key, value in settings.properties.items() if key in _REST or key.startswith(_REST_STARTS)}


def _postgresql(settings: CatalogSettings, url: URL, query: dict[str, str | tuple[str, ...]]) -> str:
    unknown = sorted(key for key, value in query.items() if key not in _POSTGRESQL or not isinstance(value, str))
    if unknown or query.get("sslrootcert") == "system" or not url.host or "," in url.host:
        what = ", ".join(unknown) or ("sslrootcert=system" if url.host else "an address without a host")
        raise BadInput(
            f"Spark cannot be told {what} of the address of catalog {settings.name}, and must not go there without: "
            f"{_by_hand(settings)}"
        )
    words = "&".join(f"{_POSTGRESQL[key]}={quote(str(value), safe='/')}" for key, value in sorted(query.items()))
    host = f"[{url.host}]" if ":" in url.host else url.host
    address = f"jdbc:postgresql://{host}{f':{url.port}' if url.port else ''}/{quote(url.database or '', safe='')}"
    return f"{address}?{words}" if words else address


def _first(url: URL, key: str) -> str | None:
    found = url.query.get(key)
    return found if isinstance(found, str) else None


def _by_hand(settings: CatalogSettings) -> str:
    return (
        f"describe it to Spark in [spark.conf] (spark.sql.catalog.{settings.name} = "
        '"org.apache.iceberg.spark.SparkCatalog", and what it needs)'
    )
