"""What the tables in memory are made of, and the disk beside them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from wavestitch.contracts.batch_row import BatchRow
from wavestitch.contracts.held import HeldChunk, PublishedChunk
from wavestitch.contracts.held_mark import HeldFile
from wavestitch.contracts.quantities import EpochMs


@dataclass(frozen=True, slots=True)
class PublishedRow:
    """One row of the published table, bytes included. `topic_ids`: of each piece."""

    waveform_id: str
    samples: bytes
    topic_ids: tuple[str, ...]
    chunks: tuple[PublishedChunk, ...]


@dataclass(frozen=True)
class StoredHeld:
    """One row of the held table. `stored`: whether it has the payload (which may be null), or an earlier row does.
    `held_ms`: since when, by the deciding plan's clock."""

    plan_id: str
    held: HeldChunk
    payload: bytes | None
    stored: bool
    held_ms: EpochMs

    @cached_property
    def file(self) -> HeldFile:
        """Each row has its own. The name follows from all that is in it."""
        size = self.held.chunk.length if self.stored else 0
        return HeldFile(f"{self.held} {self.stored}", 1, size, self.held.reason.value)


class Staged(NamedTuple):
    """What a held snapshot says of itself. `parent`: that it stands on."""

    decision: str
    generation: int
    sequence: int
    parent: int | None


class FakeFiles:
    """Write-once files by name: landings (payload by row) and staged rows. They outlive any run that wrote them."""

    def __init__(self) -> None:
        self.landings: dict[str, tuple[bytes | None, ...]] = {}
        self.staged: dict[str, list[PublishedRow]] = {}
        self.kept: dict[str, BatchRow] = {}

    def copied(self) -> FakeFiles:
        made = FakeFiles()
        made.landings, made.staged, made.kept = dict(self.landings), dict(self.staged), dict(self.kept)
        return made
