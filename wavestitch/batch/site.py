"""The real edges, made from the settings: what a step gets its log, tables and folders from. Decides nothing."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from consumers.client_settings import KafkaSettings
from consumers.log_view import KafkaLog
from wavestitch import __version__
from wavestitch.batch.work_folder import WorkFolder
from wavestitch.contracts.stream import Stream
from wavestitch.settings import Settings, load_settings, load_stream, resolve_secret
from wavestitch.tables.catalog import CatalogSettings
from wavestitch.tables.stream_tables import StreamTables


@dataclass(frozen=True)
class Site:
    """One process's view of the settings. Nothing is opened before it is used."""

    settings: Settings = field(default_factory=load_settings)

    @cached_property
    def kafka(self) -> KafkaSettings:
        options = {k: resolve_secret(v) for k, v in self.settings.kafka.options.items()}
        return KafkaSettings(bootstrap=self.settings.kafka.bootstrap, options=options)

    @cached_property
    def log(self) -> KafkaLog:
        return KafkaLog(self.kafka)

    def tables(self, stream: str) -> StreamTables:
        found = self.settings.tables
        properties = {k: resolve_secret(v) for k, v in found.properties.items()}
        settings = CatalogSettings(found.catalog, resolve_secret(found.uri), found.warehouse, properties)
        return StreamTables(settings, stream)

    def producer_settings(self) -> dict[str, str]:
        """For our own producer, which sets idempotence and acknowledgements itself."""
        return {**self.kafka.options, "bootstrap.servers": self.kafka.bootstrap}

    def stream(self, name: str) -> Stream:
        return load_stream(self.settings, name)

    def folder(self, stream: str, plan_id: str) -> WorkFolder:
        return WorkFolder(self.settings.landing, stream, plan_id)

    def docs_folder(self, stream: str, plan_id: str) -> Path:
        return self.settings.docs / stream / plan_id


def code_version() -> str:
    """What made a plan: the package's version, and the commit where it runs from a checkout."""
    root = Path(__file__).resolve().parents[2]
    if not (root / ".git").exists():
        return __version__
    found = subprocess.run(
        ["git", "-C", str(root), "rev-parse", "--short=12", "HEAD"],  # noqa: S607
        capture_output=True,
        text=True,
        check=False,
    )
    return f"{__version__}+{found.stdout.strip()}" if found.returncode == 0 else __version__
