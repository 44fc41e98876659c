"""Secrets that are worth nothing, and a search for them in everything that a run left behind."""

from __future__ import annotations

import base64
import secrets
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

KINDS_OF_KEYS = (
    *("spark.x.password", "spark.x.pwd", "spark.x.passphrase", "spark.x.secret", "spark.x.token", "spark.x.credential"),
    *("spark.x.jaas.config", "spark.sql.catalog.x.header.Authorization", "spark.x.signature"),
    *("spark.sql.catalog.x.header.cookie", "spark.sql.catalog.x.header.x-tenant", "spark.x.connection-string"),
    *("spark.hadoop.fs.s3a.access.key", "spark.hadoop.fs.azure.account.key.me.dfs.core.windows.net", "spark.x.api_key"),
    *(
        "spark.x.private-key",
        "spark.x.storage-key",
        "spark.x.shared.key",
        "spark.x.signing.key",
        "spark.x.encryption.key",
    ),
    *("spark.x.master.key", "spark.x.key.pem", "spark.hadoop.fs.azure.sas.c.me.blob.core.windows.net", "spark.x.sasl"),
)
"""One of each kind that `contracts/redaction.py` knows to be a secret, as it could stand in [spark.conf]."""


@dataclass(frozen=True)
class Canaries:
    """`kafka`: a SASL password. `spark`: the secret of the app's own connections. `tables`: of the object store.

    `airflow`: a key that is no matter of ours.
    """

    kafka: str = field(default_factory=lambda: f"canary-kafka-{secrets.token_hex(12)}")
    spark: str = field(default_factory=lambda: f"canary-spark-{secrets.token_hex(12)}")
    tables: str = field(default_factory=lambda: f"canary-tables-{secrets.token_hex(12)}")

    airflow: str = field(default_factory=lambda: f"canary-airflow-{secrets.token_hex(12)}")

    def all(self) -> tuple[str, ...]:
        return self.kafka, self.spark, self.tables, self.airflow

    def in_text(self, text: str) -> list[str]:
        return [c for c in self.all() for form in _forms(c) if form.decode("latin-1") in text]

    def in_files(self, files: Iterable[Path]) -> list[str]:
        """`file: canary` for each find, in whatever a file holds uncompressed, in the forms that programs write."""
        return [
            f"{path}: {canary[:14]}…"
            for path in files
            if path.is_file()
            for content in (path.read_bytes(),)
            for canary in self.all()
            if any(form in content for form in _forms(canary))
        ]


def _forms(canary: str) -> list[bytes]:
    """As it is, in UTF-16, and in base64 wherever it may begin in what was encoded."""
    raw = canary.encode()
    shifted = [base64.b64encode(b"x" * n + raw)[4 : -4 or None] for n in range(3)]
    return [raw, canary.encode("utf-16-le"), *shifted]
