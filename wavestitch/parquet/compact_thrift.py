"""Thrift's compact protocol, as far as a Parquet footer needs it: bytes to a tree that can be changed, and back.

Knows no names: a struct is a dictionary of field number to (type, value), in the order of the numbers. What it does not
know it keeps as it is. Never follows a length beyond the bytes it was given; what is nested deeper, or is a larger
number, than anything in a footer is a `ValueError` like all that is none.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

TRUE, FALSE, I8, I16, I32, I64, DOUBLE, BINARY, LIST, SET, MAP, STRUCT = range(1, 13)
_INTEGERS = (I16, I32, I64)
_MOST_DEEP = 32
_MOST_BITS = 64

Struct = dict[int, tuple[int, Any]]
"""Field number to (type, value)."""


@dataclass(slots=True)
class Items:
    """A list: the type of its members, and they."""

    kind: int
    values: list[Any]


class Reader:
    """Reads values one behind the other; `at` is where the next begins."""

    def __init__(self, data: bytes, at: int = 0) -> None:
        self._data = data
        self._deep = 0
        self.at = at

    def struct(self) -> Struct:
        found: Struct = {}
        field = 0
        while head := self._byte():
            field = field + (head >> 4) if head >> 4 else self._zigzag()
            kind = head & 0xF
            found[field] = (TRUE, kind == TRUE) if kind in (TRUE, FALSE) else (kind, self._value(kind))
        return found

    def _value(self, kind: int) -> Any:
        self._deep += 1
        if self._deep > _MOST_DEEP:
            raise ValueError(f"a thrift value is nested deeper than {_MOST_DEEP} times")
        found = self._value_of(kind)
        self._deep -= 1
        return found

    def _value_of(self, kind: int) -> Any:
        if kind in _INTEGERS:
            return self._zigzag()
        if kind in (I8, TRUE, FALSE):
            return self._byte()
        if kind == DOUBLE:
            return self._take(8)
        if kind == BINARY:
            return self._take(self._varint())
        if kind == STRUCT:
            return self.struct()
        if kind in (LIST, SET):
            head = self._byte()
            size = head >> 4 if head >> 4 < 15 else self._varint()
            return Items(head & 0xF, [self._value(head & 0xF) for _ in range(size)])
        raise ValueError(f"thrift type {kind} occurs in no footer")

    def _byte(self) -> int:
        return self._take(1)[0]

    def _take(self, size: int) -> bytes:
        self.at += size
        if self.at > len(self._data):
            raise ValueError("a thrift value ends before it is whole")
        return self._data[self.at - size : self.at]

    def _varint(self) -> int:
        found = shift = 0
        while True:
            byte = self._byte()
            found |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80 and found >> _MOST_BITS == 0:
                return found
            if shift > _MOST_BITS:
                raise ValueError(f"a thrift number has more than {_MOST_BITS} bits")

    def _zigzag(self) -> int:
        raw = self._varint()
        return (raw >> 1) ^ -(raw & 1)


def encode(found: Struct) -> bytes:
    """The inverse of `Reader.struct`."""
    out = bytearray()
    _put_struct(out, found)
    return bytes(out)


def varint(number: int) -> bytes:
    """Seven bits a byte, least first."""
    out = bytearray()
    while number >= 0x80:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def _put_struct(out: bytearray, found: Struct) -> None:
    before = 0
    for field, (kind, value) in sorted(found.items()):
        said = (TRUE if value else FALSE) if kind == TRUE else kind
        step = field - before
        if 0 < step < 16:
            out.append(step << 4 | said)
        else:
            out.append(said)
            out += _zigzagged(field)
        if kind != TRUE:
            _put(out, kind, value)
        before = field
    out.append(0)


def _put(out: bytearray, kind: int, value: Any) -> None:
    if kind in _INTEGERS:
        out += _zigzagged(value)
    elif kind in (I8, TRUE, FALSE):
        out.append(value)
    elif kind == DOUBLE:
        out += value
    elif kind == BINARY:
        out += varint(len(value))
        out += value
    elif kind == STRUCT:
        _put_struct(out, value)
    else:
        size = len(value.values)
        out.append(min(size, 15) << 4 | value.kind)
        if size >= 15:
            out += varint(size)
        for item in value.values:
            _put(out, value.kind, item)


def _zigzagged(number: int) -> bytes:
    return varint(number << 1 if number >= 0 else (-number << 1) - 1)
