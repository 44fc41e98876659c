"""What the compaction app is told and what it answers. JSON in files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from wavestitch.contracts.versioned import Versioned

COMPACTION_FORMAT = 1
SORT_ORDER = "sort-order"
"""Among a table's options: what its rows are sorted by, as Spark writes it."""


@dataclass(frozen=True, slots=True)
class CompactionJob:
    """`catalog`: its name in Spark's settings. `tables`: full name to the options of Iceberg's `rewrite_data_files`."""

    catalog: str
    tables: Mapping[str, Mapping[str, str]]

    def to_json(self) -> str:
        return COMPACTION_JOBS.text(self)


@dataclass(frozen=True, slots=True)
class Compacted:
    """One table: how many data files were put together, and to how many; how often it took others' commits to win."""

    table: str
    rewritten: int
    added: int
    bytes: int
    conflicts: int


@dataclass(frozen=True, slots=True)
class CompactionReport:
    """What became of each table."""

    tables: tuple[Compacted, ...]


def compaction_job_from_json(text: str) -> CompactionJob:
    return COMPACTION_JOBS.read(text)


def compacted_to_json(found: Sequence[Compacted]) -> str:
    return COMPACTION_REPORTS.text(CompactionReport(tuple(found)))


def compacted_from_json(text: str) -> list[Compacted]:
    return list(COMPACTION_REPORTS.read(text).tables)


_AGAIN = "run maintenance again"
COMPACTION_JOBS = Versioned(CompactionJob, "the compaction job", _AGAIN, format=COMPACTION_FORMAT)
COMPACTION_REPORTS = Versioned(CompactionReport, "the compaction report", _AGAIN, format=COMPACTION_FORMAT)
