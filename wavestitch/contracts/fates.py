"""What goes into a decision and what it says of a chunk, as plain values: evidence, fates, rows to hold."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from wavestitch.contracts.assembly import ChunkFacts
from wavestitch.contracts.copies import Copy
from wavestitch.contracts.quantities import EpochMs, Partition
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


class AllStitched(Mapping[str, Stitched]):
    """Before stitching: suppose that every whole waveform will be."""

    def __getitem__(self, waveform_id: str) -> Stitched:
        return Stitched(None, "")

    def __iter__(self) -> Iterator[str]:
        return iter(())

    def __len__(self) -> int:
        return 0


@dataclass(frozen=True, slots=True)
class Evidence:
    """All that a batch found out; what `decide` looks at beside head, held and published.

    `seen_ms`: record time of the last record read, per partition. `failed`: waveform id → the expectations its row
    did not meet. `park`: hold all that would be published. `elsewhere`: by waveform id, what earlier batches of a
    backfill have read and left.
    """

    chunks: Sequence[ChunkFacts]
    seen_ms: Mapping[Partition, EpochMs]
    stitched: Mapping[str, Stitched]
    failed: Mapping[str, Sequence[str]] = field(default_factory=dict)
    park: bool = False
    note: str = ""
    elsewhere: Mapping[str, Sequence[Copy]] = field(default_factory=dict)
