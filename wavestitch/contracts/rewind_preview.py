"""What a rewind would do, as it is shown to whoever decides about it: written once, and what is applied. Pure.

Its id is the digest of all of it. It holds for the generation that it was made in: an ingest in between changes nothing
about where it goes, another rewind makes it void.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from wavestitch.contracts.offset_range import OffsetRange
from wavestitch.contracts.quantities import EpochMs, Generation, Milliseconds, Offset, Partition
from wavestitch.contracts.versioned import Versioned

HEADS = ("partition", "now", "to", "log", "again", "back", "MiB", "retention takes it in", "chunks published")
_UNITS = ((86400, "d"), (3600, "h"), (60, "min"), (1, "s"))


@dataclass(frozen=True, slots=True)
class PartitionPreview:
    """One partition: where it stands (None: nowhere yet), where it would go, and what of the log is there.

    `again`: offsets that would be read again; `back_ms`: how much record time that is; `bytes`: about how many;
    `expires_ms`: how long the first of them stays, by the topic's retention; `published`: chunks of them that are
    published, at most. None: not known.
    """

    partition: Partition
    current: int | None
    target: int
    log_start: Offset
    log_end: int
    again: int
    back_ms: Milliseconds | None
    bytes: int | None
    expires_ms: Milliseconds | None
    published: int

    @property
    def cells(self) -> tuple[str, ...]:
        """As people read it, under `HEADS`."""
        return (
            str(self.partition),
            "-" if self.current is None else str(self.current),
            str(self.target),
            f"{self.log_start} to {self.log_end}",
            str(self.again),
            _time(self.back_ms) if self.again else "",
            "not known" if self.bytes is None else f"{self.bytes / (1 << 20):.1f}",
            _until(self.expires_ms) if self.again else "",
            str(self.published),
        )


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
    targets: dict[Partition, Offset]
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
    def reads_again(self) -> str:
        """What it takes and finds, in a sentence."""
        moves = sum(row.current != row.target for row in self.rows)
        again = sum(row.again for row in self.rows)
        said = f"{moves} of {len(self.rows)} partitions move; {again} offsets are read again"
        if self.batches:
            said += f", in {self.batches} {'batch' if self.batches == 1 else 'batches'}"
        if self.batches and self.seconds is not None:
            said += f", about {length(self.seconds)} as past batches went"
        return f"{said}. What is published is recognised, and not published again (about {self.waveforms} waveforms)."

    @property
    def preview_id(self) -> str:
        return hashlib.sha256(PREVIEWS.line(self).encode()).hexdigest()[:32]


PREVIEWS = Versioned(RewindPreview, "the preview of a rewind", "preview it again")


def length(seconds: float) -> str:
    """In the largest unit of which there is one, for people."""
    for size, name in _UNITS:
        if seconds >= size:
            return f"{seconds / size:.1f} {name}"
    return "less than 1 s"


def _time(ms: int | None) -> str:
    return "not known" if ms is None else length(max(0, ms) / 1000)


def _until(ms: int | None) -> str:
    return "any moment" if ms is not None and ms <= 0 else _time(ms)
