"""What somebody was shown before they answered, as it was shown: the little Markdown that our previews are written in.

Paragraphs, lists and tables; bold, italic and code. Whatever else stands there is shown as it is, and nothing is
obeyed: what others wrote stands in code spans, and all of it is made harmless and escaped. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

from markupsafe import Markup, escape

from wavestitch.contracts.harmless import harmless

_INLINE = re.compile(r"`([^`]+)`|\*\*([^*]+)\*\*|\*([^*\s][^*]*)\*")
_AS = (Markup("<code>{}</code>"), Markup("<strong>{}</strong>"), Markup("<em>{}</em>"))


@dataclass(frozen=True, slots=True)
class Block:
    """`kind`: text, list or table; `rows`: one of a text, one an entry, or the table's, its heads first."""

    kind: str
    rows: tuple[tuple[Markup, ...], ...]


def blocks(lines: Sequence[str]) -> tuple[Block, ...]:
    found = ((kind, list(some)) for kind, some in groupby(lines, key=_kind) if kind)
    made = (Block(kind, tuple(_cells(kind, line) for line in some if not _is_rule(line))) for kind, some in found)
    return tuple(block for block in made if block.rows)


def _kind(line: str) -> str:
    if not line.strip():
        return ""
    return "table" if line.startswith("|") else "list" if line.startswith("- ") else "text"


def _is_rule(line: str) -> bool:
    """Below the heads of a table."""
    return line.startswith("|") and "-" in line and not line.strip("|-: ")


def _cells(kind: str, line: str) -> tuple[Markup, ...]:
    if kind == "table":
        return tuple(_inline(cell.strip()) for cell in line.strip().strip("|").split("|"))
    return (_inline(line.removeprefix("- ") if kind == "list" else line),)


def _inline(text: str) -> Markup:
    shown, at = Markup(), 0
    for found in _INLINE.finditer(text):
        n = found.lastindex or 1
        said = found[n]
        # Bold may have a name in it, which stands in a code span.
        inner = escape(harmless(said)) if n == 1 else _inline(said)
        shown += escape(harmless(text[at : found.start()])) + _AS[n - 1].format(inner)
        at = found.end()
    return shown + escape(harmless(text[at:]))
