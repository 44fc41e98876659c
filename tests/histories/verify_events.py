"""What somebody was told who had a range verified."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Verified:
    """Of each waveform, by id, the word that was said of it. `asked`, `read`: (partition, start, end). Meanwhile
    somebody had changed the table: rows of these ids were `altered`, `cut` by their last chunk, `deleted`, or there
    twice (`doubled`)."""

    run: str
    asked: tuple[tuple[int, int, int], ...]
    read: tuple[tuple[int, int, int], ...]
    found: tuple[tuple[str, str], ...]
    altered: tuple[str, ...] = ()
    cut: tuple[str, ...] = ()
    deleted: tuple[str, ...] = ()
    doubled: tuple[str, ...] = ()
