"""How the warehouse's folder may be spelled. Pure: looks at no disk.

Tables keep the names of their files as text. A spelling that two programs read differently (a host, a character that
ends a path in an address) would put files where nobody looks for them; one that only says the same at greater length
(`//`, `/./`) is written plainly.
"""

from __future__ import annotations

import re

_LOCAL = re.compile(r"file:(?:/(?!/)|///+)(?P<path>[^/].*)", re.IGNORECASE | re.DOTALL)


def plain_warehouse(text: str) -> str:
    """The warehouse as tables name it; what is no `file:` address is returned as it is.

    Raises `ValueError` for one that names a server or no absolute folder, or has `..`, `#`, `?` or what no terminal
    shows: a link before `..` leads elsewhere than the text, and `#` and `?` end a path for some readers.
    """
    if not text.lower().startswith("file:"):
        return text
    found = _LOCAL.fullmatch(text)
    if found is None:
        raise ValueError(
            f"warehouse {ascii(text)[:120]} is no folder of this host: after file: come three slashes and no host, as "
            "in file:///srv/wavestitch/warehouse"
        )
    parts = [part for part in found["path"].split("/") if part not in ("", ".")]
    odd = sorted({c for c in found["path"] if c in "#?" or not c.isprintable()} | ({".."} & set(parts)))
    if odd or not parts:
        what = f"has {', '.join(map(ascii, odd))}" if odd else "is the root of everything"
        raise ValueError(
            f"warehouse {ascii(text)[:120]} {what}, which not all who read its files take for the same folder; name "
            "one without, as in file:///srv/wavestitch/warehouse"
        )
    return "file:///" + "/".join(parts)
