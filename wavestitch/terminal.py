"""The terminal: the one place where text becomes what a terminal obeys.

Decides that every text that is printed, in a line, a table or a title, is made harmless first: no markup, no codes of
emoji, no control characters, nothing that reorders its neighbours, and no end of a line. Lines and colours are our own:
`lines` and `coloured` make a `Text` of harmless parts, and nobody else makes one. Never decides what is said.
Invariant: what strangers wrote is printable characters within one line here.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, TextIO

from rich.console import Console
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from wavestitch.contracts.harmless import harmless

_MOST = 8000
_WIDEST = 1 << 20
Part = str | tuple[str, str]
"""A text, or a text and its colour."""


class HarmlessConsole(Console):
    """Rich turns each text that it is given into a `Text` by `render_str`: cells and headings of tables, too."""

    def render_str(self, text: str, **options: Any) -> Text:
        return super().render_str(harmless(text, most=_MOST), **{**options, "markup": False, "emoji": False})

    def print_table(self, table: Table) -> None:
        """With no cell cut: what stands in one may be wanted again, and two that begin alike are two. Folded where a
        terminal is too narrow; elsewhere, in a pipe or a file, each row is one line."""
        for column in table.columns:
            column.overflow = "fold"
        whole = Measurement.get(self, self.options.update_width(_WIDEST), table).maximum
        wide = self if self.is_terminal else HarmlessConsole(file=self.file, width=max(whole, self.width))
        wide.print(table)

    def print_data(self, found: Any) -> None:
        """JSON, in letters that every terminal has."""
        self.print_json(data=found, ensure_ascii=True)


def lines(texts: Iterable[str]) -> Text:
    """Each of these is one line."""
    return Text("\n".join(harmless(text, most=_MOST) for text in texts))


def coloured(*parts: Part) -> Text:
    """One line of several parts, some of them in a colour."""
    pairs = [(part, "") if isinstance(part, str) else part for part in parts]
    return Text.assemble(*((harmless(text, most=_MOST), colour) for text, colour in pairs))


class Unfailing:
    """A stream that whoever writes to it cannot fail by: its reader may go before the end, or have no room for it.
    `error`: of the first that could not be written; None where all was, or where somebody has heard of it. `used`:
    whether anything was written to it."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self.error: OSError | None = None
        self.used = False
        with suppress(OSError, ValueError):  # of somebody who waits for us; else what he has no room for now is lost
            os.set_blocking(stream.fileno(), True)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def write(self, text: str) -> int:
        self.used = True
        with self._lost():
            try:
                self._stream.write(text)
            except UnicodeEncodeError:  # no letters that this terminal has
                known = text.encode(self._stream.encoding, "backslashreplace")
                self._stream.write(known.decode(self._stream.encoding))
        return len(text)

    def flush(self) -> None:
        with self._lost():
            self._stream.flush()

    @contextmanager
    def _lost(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            self.error = self.error or error
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, self._stream.fileno())  # what waits is not written again at the end
            os.close(nowhere)


def never_fail() -> None:
    """From here on: what cannot be shown ends no command, nor is it what one ends with."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is not None and not isinstance(stream, Unfailing):  # None: it was closed before we began
            setattr(sys, name, Unfailing(stream))


def has_shown() -> bool:
    """Whether the command has printed something on its stdout: of JSON there is one document."""
    return bool(getattr(sys.stdout, "used", False))


def try_to_show(show: Callable[[], None]) -> str:
    """Empty, or why it could not be shown."""
    never_fail()
    show()
    return what_was_lost(also_by_who_left=True)


def what_was_lost(*, also_by_who_left: bool = False) -> str:
    """Empty, or why stdout did not take all of it; told once. Who reads no further wants no more."""
    if not isinstance(sys.stdout, Unfailing):
        return ""
    sys.stdout.flush()
    error, sys.stdout.error = sys.stdout.error, None
    if error is None or (isinstance(error, BrokenPipeError) and not also_by_who_left):
        return ""
    return error.strerror or str(error)


out = HarmlessConsole()
err = HarmlessConsole(stderr=True)
