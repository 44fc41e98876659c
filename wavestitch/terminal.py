"""The terminal: the one place where text becomes what a terminal obeys.

Decides that every text that is printed, in a line, a table or a title, is made harmless first: no markup, no codes of
emoji, no control characters, nothing that reorders its neighbours, and no end of a line. Lines and colours are our own:
`lines` and `coloured` make a `Text` of harmless parts, and nobody else makes one. Never decides what is said.
Invariant: what strangers wrote is printable characters within one line here.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable
from typing import Any

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


def try_to_show(show: Callable[[], None]) -> str:
    """Empty, or why it could not be shown: whoever reads it may go before its end, or have no room for it. What a
    command ends with does not hang on that."""
    try:
        show()
        if sys.stdout is not None:  # None: it was closed before we began
            sys.stdout.flush()
    except SystemExit:  # rich ends so where nobody reads
        pass
    except OSError as error:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # what waits is not written again at the end
        return error.strerror or str(error)
    return ""


out = HarmlessConsole()
err = HarmlessConsole(stderr=True)
