"""The terminal: the one place where text becomes what a terminal obeys.

Decides that every text that is printed, in a line, a table or a title, is made harmless first: no markup, no codes of
emoji, no control characters, nothing that reorders its neighbours. Colours are a `style`, or a `Text` of our own words.
Never decides what is said. Invariant: what strangers wrote cannot write anything but printable characters here.
"""

from __future__ import annotations

from typing import Any

from rich.console import Console
from rich.text import Text

from wavestitch.contracts.harmless import harmless_lines

_MOST = 8000


class HarmlessConsole(Console):
    """Rich turns each text that it is given into a `Text` by `render_str`: cells and headings of tables, too."""

    def render_str(self, text: str, **options: Any) -> Text:
        return super().render_str(harmless_lines(text, most=_MOST), **{**options, "markup": False, "emoji": False})

    def print_data(self, found: Any) -> None:
        """JSON, in letters that every terminal has."""
        self.print_json(data=found, ensure_ascii=True)


out = HarmlessConsole()
err = HarmlessConsole(stderr=True)
