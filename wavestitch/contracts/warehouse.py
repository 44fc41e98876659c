"""How the warehouse may be spelled: a folder, or a place in an object store; and a place for landed payload. Pure:
looks at no disk and no store.

Tables keep the names of their files as text. A spelling that two programs read differently (a host, a character that
ends a path in an address) would put files where nobody looks for them; one that only says the same at greater length
(`//`, `/./`) is written plainly.
"""

from __future__ import annotations

import re

_LOCAL = re.compile(r"file:(?:/(?!/)|///+)(?P<path>[^/].*)", re.IGNORECASE | re.DOTALL)
_STORED = re.compile(r"s3[an]?://(?P<bucket>[a-z0-9][a-z0-9.-]{1,61}[a-z0-9])(?P<path>(?:/.*)?)", re.DOTALL)


def plain_warehouse(text: str) -> str:
    """The warehouse as tables name it; what is no `file:` or `s3:` address is returned as it is.

    Raises `ValueError` for one that names a server or no absolute folder, or has `..`, `#`, `?` or what no terminal
    shows: a link before `..` leads elsewhere than the text, and `#` and `?` end a path for some readers.
    """
    kind = text.lower().partition(":")[0]
    if kind in ("s3", "s3a", "s3n"):
        return plain_store(text, "warehouse")
    if kind != "file":
        return text
    found = _LOCAL.fullmatch(text)
    if found is None:
        raise ValueError(
            f"warehouse {_shown(text)} is no folder of this host: after file: come three slashes and no host, as "
            "in file:///srv/wavestitch/warehouse"
        )
    parts, odd = _parts(found["path"])
    if odd or not parts:
        what = f"has {', '.join(map(ascii, odd))}" if odd else "is the root of everything"
        raise ValueError(
            f"warehouse {_shown(text)} {what}, which not all who read its files take for the same folder; name "
            "one without, as in file:///srv/wavestitch/warehouse"
        )
    return "file:///" + "/".join(parts)


def is_stored(location: str) -> bool:
    """Whether a place, spelled plainly, is in an object store."""
    return location.startswith("s3://")


def plain_store(text: str, what: str) -> str:
    """A place in an object store, of what is to lie there, as `s3://BUCKET/PREFIX`. Raises `ValueError` as above, and
    for whatever else is none."""
    found = _STORED.fullmatch(text)
    if found is None:
        raise ValueError(
            f"{what} {_shown(text)} is no place in an object store: after s3:// comes the name of a bucket "
            f"(3 to 63 of a-z, 0-9, . and -), as in s3://waveforms/{what}"
        )
    parts, odd = _parts(found["path"])
    if odd:
        raise ValueError(
            f"{what} {_shown(text)} has {', '.join(map(ascii, odd))}, which not all who read its files take "
            f"for the same place; name one without, as in s3://waveforms/{what}"
        )
    return "/".join(["s3:/", found["bucket"], *parts])


def _shown(text: str) -> str:
    """Without what may be a login: all before an @, and all behind a question mark."""
    kind, colon, rest = text.partition(":")
    _, login, place = rest.rpartition("@")
    return ascii(f"{kind}{colon}{'//…@' if login else ''}{place.partition('?')[0]}")[:120]


def _parts(path: str) -> tuple[list[str], list[str]]:
    """The names between slashes, and what must not be among them."""
    parts = [part for part in path.split("/") if part not in ("", ".")]
    return parts, sorted({c for c in path if c in "#?" or not c.isprintable()} | ({".."} & set(parts)))
