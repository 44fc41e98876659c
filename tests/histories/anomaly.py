"""The closed list of what can be wrong with a history, and one finding of that kind."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from tests.histories.events import Coordinate


class Kind(StrEnum):
    """Of one offset at most one is said: the earliest that went wrong."""

    LOST = "lost"
    """Read by a committed batch and gone at the end; never seen although quiet runs ended; whole, never published."""
    DUPLICATE = "duplicate"
    """A waveform id stands in the published table more than once."""
    ALTERED = "altered"
    """Published or held bytes are not the producer's, or not all of them."""
    INVENTED = "invented"
    """Published or held where no producer's record was visible, or what may never be published."""
    ORDER = "order"
    """The producer's bytes, in another order."""
    UNEXPLAINED_GAP = "unexplained gap"
    """A head passed an offset that nobody read, no marker or aborted record explains, and nobody gave up by name; or
    names as given up what it has not passed."""
    COMMIT_AHEAD = "commit ahead"
    """The head or the group passed data that were durable only later."""
    STALE_WRITER = "stale writer"
    """An older generation, an older plan or an older look took effect after a newer one, or something else than was
    asked: other partitions, another head's opposite."""
    HELD_FOR_EVER = "held for ever"
    """No decision of an operator gets it out."""
    UNTRUE = "untrue"
    """What somebody was told of a waveform who had it verified is not what became of it; or offsets were named as lost
    that were there."""
    UNBOUNDED_COST = "unbounded cost"
    """A run loaded or opened what its batch does not touch, and would load ever more; or read more than that may."""
    UNBOUNDED_END = "unbounded end"
    """A run without an end, with an end past its deadline, or without a known reason; or one that does what a refusal
    names as the way out, and is refused in the same words; or one that is refused though nothing speaks against it."""


@dataclass(frozen=True, slots=True)
class Anomaly:
    """`event`: number of the event at which it shows, or the history's length for what only its end shows."""

    kind: Kind
    what: str
    ids: tuple[str, ...] = ()
    coordinates: tuple[Coordinate, ...] = ()
    event: int = -1

    def __str__(self) -> str:
        names = [*self.ids, *(f"{t}/{p}@{o}" for t, p, o in self.coordinates[:5])]
        return f"{self.kind.value} at event {self.event}: {self.what} ({', '.join(names)})"
