"""What becomes of rows that are published, on purpose: what the gate says of a waveform now, what somebody was shown
that a promotion would do, and the rows that a head takes out."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class GateSays:
    """The gate refuses this waveform from now on, or lets it pass from now on: an expectation has changed."""

    id: str
    refuses: bool = True


@dataclass(frozen=True, slots=True)
class Spoils:
    """Where half of what a batch would publish is of these waveforms, the gate closes."""

    ids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Offered:
    """Somebody was shown a promotion, and it was kept. `rows`: of each waveform, by id, the digest of the pieces of the
    row that is there, and of the one that is to be; empty where there is none. `passed`: of each waveform that would
    change and is left as it is, its id and why."""

    preview: str
    rows: tuple[tuple[str, str, str], ...]
    passed: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Replaced:
    """The rows of these waveforms are in the table no more, from the head of this `sequence` on, whose event and rows
    follow."""

    run: str
    sequence: int
    ids: tuple[str, ...]
