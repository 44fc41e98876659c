"""Key and headers of a record that is no chunk, as they are kept: what they are counted for is what they take.

Headers are stored one after another, each as the length of its name (four bytes, big-endian), the name in UTF-8, the
length of its value (-1: it is null) and the value. No content makes that longer than it is counted. Pure.
"""

from __future__ import annotations

import struct
from collections.abc import Collection, Sequence

Header = tuple[str, bytes | None]
HEADER_OVERHEAD = 8
"""Of a header, beside its name and value: the two lengths."""
_LENGTH = struct.Struct(">i")
_NULL = -1
_FEW = 64


def header_bytes(headers: Collection[tuple[str, bytes | None]] | Collection[tuple[bytes, bytes | None]] | None) -> int:
    """What they take where they are stored; names that are bytes already are taken as they are."""
    if not headers:
        return 0
    if len(headers) <= _FEW:
        # As of nearly all records: in fewer steps.
        names, values = zip(*headers, strict=True)
        if None not in values:
            return HEADER_OVERHEAD * len(names) + sum(map(_size, names)) + sum(map(len, values))
    return sum([HEADER_OVERHEAD + _size(name) + len(value or b"") for name, value in headers])


def kept_bytes(key: bytes | None, headers: Collection[Header] | None, value: bytes | None) -> int:
    """What a record takes that is kept as it came."""
    return len(key or b"") + header_bytes(headers) + len(value or b"")


def encode_raw_headers(headers: Sequence[Header]) -> bytes:
    parts = []
    for name, value in headers:
        raw = name.encode()
        parts += [_LENGTH.pack(len(raw)), raw, _LENGTH.pack(_NULL if value is None else len(value)), value or b""]
    return b"".join(parts)


def decode_raw_headers(raw: bytes) -> list[Header]:
    """The inverse of `encode_raw_headers`. Raises `ValueError` for what that did not write."""
    found: list[Header] = []
    at = 0
    while at < len(raw):
        name, at = _part(raw, at)
        value, at = _part(raw, at)
        if name is None:
            raise ValueError(f"at byte {at} of stored headers a name is null")
        found.append((name.decode(), value))
    return found


def _part(raw: bytes, at: int) -> tuple[bytes | None, int]:
    begin = at + _LENGTH.size
    size = _LENGTH.unpack_from(raw, at)[0] if begin <= len(raw) else len(raw)
    if size == _NULL:
        return None, begin
    if not 0 <= size <= len(raw) - begin:
        raise ValueError(f"stored headers of {len(raw)} bytes do not hold what they say at byte {at}")
    return raw[begin : begin + size], begin + size


def _size(name: str | bytes) -> int:
    # Of a text that is ASCII this is known without looking at it, and nearly all are.
    return len(name) if isinstance(name, bytes) or name.isascii() else len(name.encode())
