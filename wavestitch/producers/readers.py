"""Which reader a file is for, by its suffix."""

from __future__ import annotations

from pathlib import Path

from wavestitch.contracts.errors import BadInput
from wavestitch.producers.ecg_npz import read_ecg_npz
from wavestitch.producers.miniseed import read_miniseed
from wavestitch.producers.recording import Recording

NPZ_SUFFIX = ".npz"
MINISEED_SUFFIXES = (".mseed", ".mseed2", ".mseed3")


def read_recordings(
    path: Path | str, *, seconds_per_recording: float, start_time_ns: int | None = None
) -> list[Recording]:
    """The recordings in a file, each `seconds_per_recording` long (the one before a gap or the end may be shorter).

    `start_time_ns` (ns since 1970 UTC) is where the first sample shall be: an .npz has no time of its own and needs
    it, miniSEED is moved there if it is given. Raises `BadInput` for an unknown suffix, a missing start and a file
    that cannot be read.
    """
    path = Path(path)
    suffix = path.suffix.lower()
    if suffix in MINISEED_SUFFIXES:
        return read_miniseed(path, seconds_per_recording=seconds_per_recording, start_time_ns=start_time_ns)
    if suffix != NPZ_SUFFIX:
        known = ", ".join((NPZ_SUFFIX, *MINISEED_SUFFIXES))
        raise BadInput(f"{path}: no reader for {suffix or 'a file without suffix'}; known are {known}")
    if start_time_ns is None:
        raise BadInput(f"{path}: an {NPZ_SUFFIX} file does not say when it was recorded; give the start time")
    return read_ecg_npz(path, seconds_per_recording=seconds_per_recording, start_time_ns=start_time_ns)
