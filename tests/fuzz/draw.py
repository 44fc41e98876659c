"""Bytes of the fuzzer as the fields of a structure, in an order that small changes keep: nothing here ever fails.

`Draw` takes apart, `packed` puts together: so that what somebody wrote can be a seed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")


class Draw:
    """Fields from the front; where the bytes have ended, zeros and nothing."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    @property
    def left(self) -> int:
        return len(self._data) - self._at

    def some(self, size: int) -> bytes:
        found = self._data[self._at : self._at + size]
        self._at += len(found)
        return found

    def byte(self) -> int:
        return int.from_bytes(self.some(1))

    def number(self, size: int) -> int:
        """With a sign; as large as `size` bytes can say."""
        return int.from_bytes(self.some(size).ljust(size, b"\0"), signed=True)

    def pick(self, of: Sequence[T]) -> T:
        return of[self.byte() % len(of)]

    def field(self) -> bytes:
        """Bytes with their length before them."""
        return self.some(int.from_bytes(self.some(2)))

    def text(self) -> str:
        return self.field().decode(errors="replace")

    def rest(self) -> bytes:
        return self.some(self.left)


def packed(*parts: int | bytes | str) -> bytes:
    """Numbers as a byte, bytes and texts as a field."""
    found = b""
    for part in parts:
        if isinstance(part, int):
            found += bytes((part,))
        else:
            content = part if isinstance(part, bytes) else part.encode()
            found += len(content).to_bytes(2) + content
    return found
