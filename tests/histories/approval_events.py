"""What operators are shown and approve of: a decision about what is held that waits for somebody."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Shown:
    """Somebody was shown what a decision about these held waveforms would do, and it was kept."""

    preview: str
    ids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Approved:
    """The run that comes does what was shown as `preview`."""

    run: str
    preview: str


@dataclass(frozen=True, slots=True)
class Declared:
    """The stream's definition says something else from here on."""
