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


def header_bytes(headers: Collection[tuple[str, bytes | None]] | Collection[tuple[bytes, bytes | None]] | None) -> int:
    """What they take where they are stored; names that are bytes already are taken as they are."""
    if not headers:
        return 0
    size = HEADER_OVERHEAD * len(headers)
    # A plain loop: of a few headers each call of a function, and each tuple that is made, costs more than the sum.
    for name, value in headers:
        # Of a text that is ASCII its bytes are known without looking at it, and nearly all are.
        size += len(name) if name.isascii() or isinstance(name, bytes) else len(name.encode())
        if value is not None:
            size += len(value)
    return size


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
