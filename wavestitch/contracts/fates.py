"""What goes into a decision and what comes out of it, as plain values: evidence, fates, rows to hold."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from wavestitch.contracts.assembly import ChunkFacts
from wavestitch.contracts.held_mark import BESIDE
from wavestitch.contracts.position import Head
from wavestitch.contracts.quantities import EpochMs
from wavestitch.contracts.reasons import Fate, Reason


class ChunkFate(NamedTuple):
    """What became of one chunk, and why where it was not published."""

    chunk: ChunkFacts
    fate: Fate
    reason: Reason | None = None
    evidence: str = ""


class Hold(NamedTuple):
    """A row to append to the held table. Carried chunks are appended without payload: only their reason changed."""

    chunk: ChunkFacts
    reason: Reason
    evidence: str


class Stitched(NamedTuple):
    """Outcome of stitching one whole waveform: `reason` None means its bytes are staged and proven."""

    reason: Reason | None
    evidence: str


@dataclass(frozen=True, slots=True)
class Evidence:
    """All that a batch found out; what `decide` looks at beside head, held and published.

    `seen_ms`: record time of the last record read, per partition. `failed`: waveform id → the expectations its row
    did not meet. `park`: hold all that would be published.
    """

    chunks: Sequence[ChunkFacts]
    seen_ms: Mapping[int, EpochMs]
    stitched: Mapping[str, Stitched]
    failed: Mapping[str, Sequence[str]] = field(default_factory=dict)
    park: bool = False
    note: str = ""


@dataclass(frozen=True, slots=True)
class Decision:
    """`digest` names the decision. `carried_in`: held chunks that it had to take up, per partition, counted from what
    is held and not from the fates. `held_counts`: how many chunks are held after it, by reason; `held_bytes`: what
    those that are chunks count for."""

    digest: str
    plan_id: str
    publish: tuple[str, ...]
    fates: tuple[ChunkFate, ...]
    holds: tuple[Hold, ...]
    head: Head
    carried_in: Mapping[int, int]
    held_counts: Mapping[str, int]
    held_bytes: int

    @property
    def waveform_rows(self) -> int:
        """As `HeldMark.waveform_rows`, after it."""
        return sum(n for reason, n in self.held_counts.items() if reason not in BESIDE)

    def counts(self) -> dict[Fate, int]:
        """Chunks per fate; every fate is there."""
        found = Counter(f.fate for f in self.fates)
        return {fate: found[fate] for fate in Fate}

    def waveforms(self, fate: Fate) -> set[str]:
        return {f.chunk.waveform_id for f in self.fates if f.fate is fate and f.chunk.waveform_id is not None}

    def reasons(self) -> dict[Reason, int]:
        """Chunks per reason, of all that have one."""
        return dict(Counter(f.reason for f in self.fates if f.reason is not None))
