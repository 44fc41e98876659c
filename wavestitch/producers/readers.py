"""The formats that recordings come in: one line each. Which reader a file is for follows from its suffix."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from wavestitch.contracts.errors import BadInput
from wavestitch.producers.ecg_npz import read_ecg_npz
from wavestitch.producers.miniseed import read_miniseed
from wavestitch.producers.recording import Recording


class Read(Protocol):
    """Reads one file. `start_time_ns` (ns since 1970 UTC) is where the first sample shall be; None: as the file says,
    or `BadInput` where it does not. So is a file that cannot be read."""

    def __call__(
        self, path: Path, *, seconds_per_recording: float, start_time_ns: int | None = None
    ) -> list[Recording]: ...


@dataclass(frozen=True, slots=True)
class SourceFormat:
    """`says_when`: whether its files say when they were recorded."""

    suffixes: tuple[str, ...]
    read: Read
    says_when: bool


FORMATS = (
    SourceFormat((".npz",), read_ecg_npz, says_when=False),
    SourceFormat((".mseed", ".mseed2", ".mseed3"), read_miniseed, says_when=True),
)


def format_of(path: Path | str) -> SourceFormat:
    """Raises `BadInput` for an unknown suffix."""
    suffix = Path(path).suffix.lower()
    found = next((f for f in FORMATS if suffix in f.suffixes), None)
    if found is None:
        known = ", ".join(s for f in FORMATS for s in f.suffixes)
        raise BadInput(f"{path}: no reader for {suffix or 'a file without suffix'}; known are {known}")
    return found


def read_recordings(
    path: Path | str, *, seconds_per_recording: float, start_time_ns: int | None = None
) -> list[Recording]:
    """The recordings in a file, each `seconds_per_recording` long (the one before a gap or the end may be shorter)."""
    read = format_of(path).read
    return read(Path(path), seconds_per_recording=seconds_per_recording, start_time_ns=start_time_ns)
