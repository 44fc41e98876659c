"""Spark's settings for the catalog that pyiceberg has open: the same name, the same tables. Opens nothing."""

from __future__ import annotations

from sqlalchemy import make_url
from sqlalchemy.engine import URL

from wavestitch.contracts.errors import BadInput
from wavestitch.tables.catalog import SQLITE_BUSY_SECONDS, CatalogSettings


def spark_catalog_conf(settings: CatalogSettings) -> dict[str, str]:
    """As for spark-submit. May hold secrets. Raises `BadInput` for a catalog that has to be described by hand."""
    prefix = f"spark.sql.catalog.{settings.name}"
    found = {prefix: "org.apache.iceberg.spark.SparkCatalog", f"{prefix}.warehouse": settings.warehouse}
    kind = settings.properties.get("type", "sql")
    if kind == "rest":
        return {**found, f"{prefix}.type": "rest", f"{prefix}.uri": settings.uri}
    url = make_url(settings.uri) if kind == "sql" else None
    if url is None or url.get_backend_name() not in ("sqlite", "postgresql"):
        raise BadInput(
            f"compaction knows the catalog kinds sqlite, postgresql and rest; catalog {settings.name} is of another: "
            f"describe it to Spark in [spark.conf] ({prefix}=org.apache.iceberg.spark.SparkCatalog and what it needs)"
        )
    return {
        **found,
        f"{prefix}.catalog-impl": "org.apache.iceberg.jdbc.JdbcCatalog",
        f"{prefix}.uri": _jdbc(url),
        **({f"{prefix}.jdbc.user": url.username} if url.username else {}),
        **({f"{prefix}.jdbc.password": url.password} if isinstance(url.password, str) else {}),
    }


def _jdbc(url: URL) -> str:
    if url.get_backend_name() == "sqlite":
        return f"jdbc:sqlite:{url.database}?busy_timeout={SQLITE_BUSY_SECONDS * 1000}"
    return f"jdbc:postgresql://{url.host}{f':{url.port}' if url.port else ''}/{url.database}"
