"""What the compaction app is told and what it answers. JSON in files."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from wavestitch.contracts.errors import BadInput

COMPACTION_FORMAT = 1


@dataclass(frozen=True, slots=True)
class CompactionJob:
    """`catalog`: its name in Spark's settings. `tables`: full name to the options of Iceberg's `rewrite_data_files`."""

    catalog: str
    tables: Mapping[str, Mapping[str, str]]

    def to_json(self) -> str:
        return json.dumps({"format": COMPACTION_FORMAT, **asdict(self)}, indent=1, sort_keys=True)


@dataclass(frozen=True, slots=True)
class Compacted:
    """One table: how many data files were put together, and to how many; how often it took others' commits to win."""

    table: str
    rewritten: int
    added: int
    bytes: int
    conflicts: int


def compaction_job_from_json(text: str) -> CompactionJob:
    return CompactionJob(**_checked(text))


def compacted_to_json(found: list[Compacted]) -> str:
    return json.dumps({"format": COMPACTION_FORMAT, "tables": [asdict(c) for c in found]}, indent=1, sort_keys=True)


def compacted_from_json(text: str) -> list[Compacted]:
    return [Compacted(**c) for c in _checked(text)["tables"]]


def _checked(text: str) -> dict[str, Any]:
    found = json.loads(text)
    if found.pop("format", None) != COMPACTION_FORMAT:
        raise BadInput(f"a compaction file has an unknown format; this version reads {COMPACTION_FORMAT}: run it again")
    return dict(found)
