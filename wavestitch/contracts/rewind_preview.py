"""What a rewind would do, as it is shown to whoever decides about it: written once, and what is applied. Pure.

Its id is the digest of all of it. It holds for the generation that it was made in: an ingest in between changes nothing
about where it goes, another rewind makes it void.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from wavestitch.contracts.offset_range import OffsetRange
from wavestitch.contracts.quantities import EpochMs, Generation, Milliseconds
from wavestitch.contracts.versioned import Versioned


@dataclass(frozen=True, slots=True)
class PartitionPreview:
    """One partition: where it stands (None: nowhere yet), where it would go, and what of the log is there.

    `again`: offsets that would be read again; `back_ms`: how much record time that is; `bytes`: about how many;
    `expires_ms`: how long the first of them stays, by the topic's retention; `published`: chunks of them that are
    published, at most. None: not known.
    """

    partition: int
    current: int | None
    target: int
    log_start: int
    log_end: int
    again: int
    back_ms: Milliseconds | None
    bytes: int | None
    expires_ms: Milliseconds | None
    published: int


@dataclass(frozen=True, slots=True)
class RewindPreview:
    """`to`: where it goes, as it was said, and `partitions` with it. `generation`, `sequence`: of the head that it was
    made on, 0 where there was none. `targets`: the next offset of each partition that moves. `whole`: it is about the
    stream as a whole, and worked out anew from `to`. `skipped`: what nobody would read any more; `missing`: what
    somebody took out of the tables. `waveforms`: published by batches that read what would be read again, at most.
    `batches`, `seconds`: that reading it again takes, as past batches went."""

    stream: str
    to: str
    partitions: str
    asked_by: str
    why: str
    made_ms: EpochMs
    generation: Generation
    sequence: int
    targets: dict[int, int]
    whole: bool
    skipped: tuple[OffsetRange, ...]
    missing: tuple[str, ...]
    settles: str
    remarks: tuple[str, ...]
    rows: tuple[PartitionPreview, ...]
    waveforms: int
    batches: int
    seconds: float | None

    @property
    def preview_id(self) -> str:
        return hashlib.sha256(PREVIEWS.line(self).encode()).hexdigest()[:32]


PREVIEWS = Versioned(RewindPreview, "the preview of a rewind", "preview it again")
