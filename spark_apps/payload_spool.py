"""The payload of a landing file that has it apart: fetched, object by object, to the places that it has in that file.

It lies in a file without a name on this host, where Spark has its own (`SPARK_LOCAL_DIRS`), or Python (`TMPDIR`), and
goes with its process: an object is fetched whole, once a task, and its pieces are read from there as from the landing.
"""

from __future__ import annotations

import os
import tempfile
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from wavestitch.payload_store import BatchPayload


class Apart(NamedTuple):
    """An object, and where in the landing file its bytes would begin."""

    begin: int
    name: str
    size: int


class PayloadSpool:
    """`parts`: in the order of the file. Close it in the end."""

    def __init__(self, payload: BatchPayload, parts: Sequence[Apart]) -> None:
        self._payload = payload
        self._parts = parts
        self._begins = [part.begin for part in parts]
        self._here = [False] * len(parts)
        self._file = tempfile.TemporaryFile(prefix="wavestitch-", dir=_scratch())  # noqa: SIM115 - see `close`

    def need(self, ranges: Iterable[tuple[int, int]]) -> None:
        """Fetch what is not here yet of these half-open ranges of bytes. Raises `Altered` where an object is gone or
        has other bytes than were landed."""
        wanted = sorted({n for begin, end in ranges for n in self._within(begin, end) if not self._here[n]})
        contents = self._payload.fetch_all([(self._parts[n].name, self._parts[n].size) for n in wanted])
        for n, content in zip(wanted, contents, strict=True):
            os.pwrite(self._file.fileno(), content, self._begins[n])
            self._here[n] = True

    def fileno(self) -> int:
        return self._file.fileno()

    def close(self) -> None:
        self._file.close()

    def _within(self, begin: int, end: int) -> range:
        return range(max(0, bisect_right(self._begins, begin) - 1), bisect_right(self._begins, end - 1))


def _scratch() -> str | None:
    """Spark tells its workers where they have room; memory, which `/tmp` may be, is not the place for a batch."""
    told = os.environ.get("SPARK_LOCAL_DIRS", "").split(",")
    return next((folder for folder in told if os.path.isdir(folder)), None)
