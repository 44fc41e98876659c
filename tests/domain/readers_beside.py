"""Readers beside whoever writes: at every moment at which what they see may change, one reads from beginning to end.

Those moments are right before and right after each commit of the table, and each file of it that goes. What a reader
finds is monotone: a waveform that anybody has seen never vanishes, never changes, is never there twice, and none is
there that nobody published; a batch is there as a whole, or not at all. Slow readers go on by a waveform now and then:
they get what was published when they began, all of it, or are told that it has expired.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.table import Table

from tests.domain.maintenance_rig import STREAM, Rig
from wavestitch.contracts.errors import Transient
from wavestitch.reading.stream import OpenStream
from wavestitch.reading.waveform import Waveform


class SlowReader:
    """`there`: what had been published when it began."""

    def __init__(self, waveforms: Iterator[Waveform], there: dict[str, bytes]) -> None:
        self._waveforms, self._there = waveforms, there
        self._got: dict[str, bytes] = {}
        self.ended = ""

    def goes_on(self) -> None:
        """By one waveform; at the end it has all, unless it was told better."""
        if self.ended:
            return
        try:
            found = next(self._waveforms)
        except StopIteration:
            assert self._got == self._there, f"vanished: given were {sorted(self._got)} of {sorted(self._there)}"
            self.ended = "whole"
        except Transient:
            self.ended = "expired"
        else:
            assert found.id not in self._got, f"twice: {found.id} for a slow reader"
            self._got[found.id] = found.samples.tobytes()


class Readers:
    """`looks`: how many have read to the end; `ends`: how slow ones ended; `batches`: the waveforms of each commit."""

    def __init__(self, rig: Rig) -> None:
        self.rig = rig
        self.looks = 0
        self.seen: dict[str, bytes] = {}
        self.batches: list[set[str]] = []
        self.slow: list[SlowReader] = []
        self._looking = False

    @property
    def ends(self) -> Counter[str]:
        return Counter(one.ended for one in self.slow)

    def begins(self, *ids: str) -> None:
        """These are about to be published by one batch."""
        self.batches.append(set(ids))

    def stream(self) -> OpenStream:
        return OpenStream(self.rig.deployment, STREAM)

    def look(self) -> None:
        """A reader that begins now."""
        if self._looking:
            return
        self._looking = True
        try:
            self._read()
        finally:
            self._looking = False

    def _read(self) -> None:
        found = [(w.id, w.samples.tobytes()) for w in self.stream().waveforms()]
        self.looks += 1
        now = dict(found)
        assert len(now) == len(found), f"twice: {sorted(i for i, n in Counter(i for i, _ in found).items() if n > 1)}"
        assert now.keys() >= self.seen.keys(), f"vanished: {sorted(self.seen.keys() - now.keys())}"
        assert now.items() >= self.seen.items(), "changed"
        for batch in self.batches:
            assert batch <= now.keys() or not batch & now.keys(), f"half of a batch: {sorted(batch & now.keys())}"
        assert now.keys() <= set().union(*self.batches), f"nobody published {sorted(now.keys())}"
        self.seen = now

    def slowly(self) -> None:
        """One more, that has read its first waveform, and those that are at it go on."""
        self.slow.append(SlowReader(self.stream().waveforms(), dict(self.seen)))
        for one in self.slow:
            one.goes_on()

    def read_out(self) -> None:
        """All of them to their end."""
        for one in self.slow:
            while not one.ended:
                one.goes_on()

    @contextmanager
    def beside(self) -> Iterator[None]:
        """From now on they look at every moment."""

        def around(real: Callable[..., Any], matters: Callable[[Any], bool]) -> Callable[..., Any]:
            def called(*args: Any, **more: Any) -> Any:
                if not any(map(matters, args)):
                    return real(*args, **more)
                self.look()
                try:
                    return real(*args, **more)
                finally:
                    self.look()

            return called

        with pytest.MonkeyPatch.context() as patch:
            commit = around(SqlCatalog.commit_table, lambda about: isinstance(about, Table) and _is_read(about))
            patch.setattr(SqlCatalog, "commit_table", commit)
            patch.setattr(os, "unlink", around(os.unlink, lambda path: f"{STREAM}/waveforms/" in str(path)))
            yield


def _is_read(table: Table) -> bool:
    return table.name()[-1] == "waveforms"
