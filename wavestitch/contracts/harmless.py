"""Foreign text made harmless for whoever is shown it: a terminal, a log, a page, Markdown, a chat. Pure.

Each foreign value is made harmless by itself, before it is put into a sentence: in the sentence nobody can tell any
more which end of a line was ours. Where the sentence offers a command, the value stands in it as `in_shell` writes it.

Foreign is what producers, users, files and libraries said: ids, headers, reasons, names, exceptions. Never decides what
is kept: bytes in tables and files stay as they came, only what is shown changes. Invariant: nothing that is returned
here can move a cursor, hide a letter, begin a line, or reorder its neighbours by a character that nobody sees. Letters
of scripts that are written from the right are shown: figures of ours behind one may stand in another order.
"""

from __future__ import annotations

import re
import shlex
from html import escape
from string import hexdigits, printable

MAX_SHOWN = 2000
# Letters for Unicode, nothing for the eye: joiners, fillers, variation selectors, the empty Braille cell.
_INVISIBLE = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef]"
)
_IN_QUOTES = frozenset(printable[:94] + " ") - set("'\\!")
"""What every shell leaves alone between quotes."""
_CALLED = re.compile(r"(?<!\w)@(?=\w)")


def harmless(text: str, *, most: int = MAX_SHOWN) -> str:
    """`text` as one line of printable characters: others are shown as escapes (`\\x1b`, `\\u202e`), the end as `…`."""
    shown = text[:most]
    if not is_plain(shown):
        shown = "".join(c if is_plain(c) else named(c) for c in shown)
    return shown if len(text) <= most and len(shown) <= most else f"{shown[:most]}…"


def harmless_lines(text: str, *, most: int = MAX_SHOWN) -> str:
    """The same for a text of several lines: the ends of lines stay, whoever wrote them."""
    return "\n".join(harmless(line, most=most) for line in text.split("\n"))


def in_shell(value: str) -> str:
    """`value` as one word of a command that somebody pastes: never cut, in one line, and nothing in it is obeyed.

    What is not plain is written in bash's and zsh's `$'…'`, without a quote or a backslash that another shell takes for
    its own: there the word is another one, and does no harm, either.
    """
    if is_plain(value):
        return shlex.quote(value)
    raw = value.encode("utf-8", "surrogatepass")
    return f"$'{_escaped(raw)}'"


def _escaped(raw: bytes) -> str:
    said, escaped = [], False
    for byte in raw:
        # A digit behind an escape would be taken for a part of it.
        escaped = chr(byte) not in _IN_QUOTES or (escaped and chr(byte) in hexdigits)
        said.append(f"\\x{byte:02x}" if escaped else chr(byte))
    return "".join(said)


def for_markdown(text: str, *, most: int = MAX_SHOWN) -> str:
    """Harmless text as a code span, in which Markdown obeys nothing but the backtick; empty for an empty text."""
    shown = harmless(" ".join(text.split()), most=most).replace("`", "'")
    return f"`{shown}`" if shown else ""


def for_html(text: str, *, most: int = MAX_SHOWN) -> str:
    """Harmless text as HTML that shows exactly its letters, also inside an attribute in quotes."""
    return escape(harmless(text, most=most))


def for_chat(text: str) -> str:
    """A text as chat services show it, whoever wrote parts of it: no link or picture under another name, and nobody is
    called. `<` and `>`, in which some write those, become `‹` and `›`; a bare address stays one, for all to see."""
    shown = text.replace("<", "‹").replace(">", "›").replace("](", "] (").replace("][", "] [").replace("![", "! [")
    return _CALLED.sub("@ ", shown)


def is_plain(text: str) -> bool:
    """Whether a reader sees every character of `text`, one after the other, in one line."""
    return text.isprintable() and not _INVISIBLE.search(text)


def named(c: str) -> str:
    """A character by its number, in letters that every terminal has."""
    code = ord(c)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
