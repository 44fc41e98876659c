"""The records of a batch as a stream, whatever compressed them: memory is bounded by what one `take` asks for.

Time is bounded by what a batch may inflate to, and what reading it takes is counted (`work`), for a reader's budget.
Kafka's codecs are gzip, snappy (bare, or in blocks with a head as Java's clients write it), LZ4 frames and zstd.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from typing import Any

from wavestitch.contracts.errors import Terminal

MOST_BLOCK_BYTES = 64 << 20
"""A block of snappy is inflated at once; one that announces more is not."""
MOST_BATCH_BYTES = 1 << 30
"""A batch is inflated up to here: what a reader's process may have of memory, so the client reads none above it."""
_INFLATED_PER_BYTE = 64
_NUMBER_BYTES = 4
_STREAMED = {3: "lz4", 4: "zstd"}
_NONE, _GZIP, _SNAPPY = 0, 1, 2
_XERIAL = b"\x82SNAPPY\x00"
_XERIAL_HEAD = 16
_STEP = 1 << 20
_LEAST_FED, _MOST_FED = 1 << 10, 1 << 16
"""Of gzip's bytes so many at once: what is behind a member's end is copied, and a member may be of 20 bytes."""
_ALL_BITS = (1 << 64) - 1


class Uninflatable(Terminal):
    """What is compressed is damaged, of an unknown codec, or in blocks larger than memory may hold."""


class Inflated:
    """Bytes in order. `take` raises `Uninflatable` where there are fewer."""

    def __init__(self, blocks: Iterator[bytes | memoryview]) -> None:
        self._blocks = blocks
        self._block = memoryview(b"")
        self._at = 0
        self._before = 0
        self._inflated = 0
        self._numbers = 0

    @property
    def work(self) -> int:
        """What it took so far, in bytes that are stored: storing one takes as long as inflating 64 or more, and finding
        4 as long as reading a number. A record is stored for at least as much as reading it takes."""
        return work_of(self._inflated) + self._numbers * _NUMBER_BYTES

    @property
    def passed(self) -> int:
        """So many bytes have been taken or skipped."""
        return self._before + self._at

    def take(self, size: int) -> bytes:
        """The next `size` bytes."""
        end = self._at + size
        if size >= 0 and end <= len(self._block):
            found, self._at = bytes(self._block[self._at : end]), end
            return found
        if size < 0:
            raise Uninflatable("a record of a batch has a length below 0")
        parts = bytearray()
        while len(parts) < size:
            parts += self._some(size - len(parts))
        return bytes(parts)

    def skip(self, size: int) -> None:
        """Pass over bytes without keeping them."""
        while size > 0:
            size -= len(self._some(size))

    def rest(self, most: int) -> bytes | memoryview | None:
        """All that is left, of which nothing was taken yet; None where that is more than `most` bytes."""
        blocks: list[bytes | memoryview] = []
        for block in self._blocks:
            blocks.append(block)
            most -= len(block)
            if most < 0:
                return None
        return blocks[0] if len(blocks) == 1 else b"".join(blocks)

    def varint(self) -> int:
        """A number of 64 bits; what it has above them is dropped, as Java's and C's clients do."""
        value = shift = 0
        self._numbers += 1
        while True:
            byte = self._some(1)[0]
            value |= (byte & 0x7F) << shift
            if not byte & 0x80:
                value &= _ALL_BITS
                return (value >> 1) ^ -(value & 1)
            shift += 7
            if shift > 63:
                raise Uninflatable("a batch has a number of more than 64 bits")

    def _some(self, most: int) -> memoryview:
        """Between 1 and `most` bytes."""
        while self._at >= len(self._block):
            found = next(self._blocks, None)
            if found is None:
                raise Uninflatable("a batch ends in the middle of a record")
            self._inflated += len(found)
            if self._inflated > MOST_BATCH_BYTES:
                raise Uninflatable(f"a batch inflates to more than {MOST_BATCH_BYTES} bytes; so many are read of one")
            self._before += self._at
            self._block, self._at = memoryview(found), 0
        end = min(self._at + most, len(self._block))
        found = self._block[self._at : end]
        self._at = end
        return found


def work_of(inflated_bytes: int) -> int:
    """Of bytes whose numbers are read for many records at once, which takes less than storing these."""
    return inflated_bytes // _INFLATED_PER_BYTE


def inflated(codec: int, body: memoryview) -> Inflated:
    """The bytes of a batch's records."""
    if codec == _NONE:
        return Inflated(iter([body]))
    if codec == _GZIP:
        return Inflated(_gzip(body))
    if codec == _SNAPPY:
        return Inflated(_snappy(body))
    if codec in _STREAMED:
        return Inflated(_streamed(_STREAMED[codec], body))
    return Inflated(_unknown(codec))


def inflated_whole(codec: int, body: memoryview, *, most: int) -> bytes | memoryview | None:
    """All of it at once; None: it is more than `most` bytes, or cannot be inflated, which `inflated` says."""
    try:
        return inflated(codec, body).rest(most)
    except Uninflatable:
        return None


def _unknown(codec: int) -> Iterator[bytes]:
    raise Uninflatable(f"a batch is compressed by codec {codec}, which nobody knows")
    yield b""


def _streamed(name: str, body: memoryview) -> Iterator[memoryview]:
    import pyarrow as pa  # noqa: PLC0415 - who needs no inflating needs no Arrow here

    try:
        with pa.CompressedInputStream(pa.BufferReader(pa.py_buffer(body)), name) as stream:
            # Not `read`: where it fails, the bytes that it wanted to fill are never freed.
            while len(block := memoryview(stream.read_buffer(_STEP))):
                yield block
    except MemoryError:
        raise  # Arrow's is one of its own errors, too, and no word about the batch
    except (OSError, pa.ArrowException) as error:
        raise Uninflatable(f"a batch says that it is {name}, and is not: {str(error)[:120]}") from None


def _gzip(body: memoryview) -> Iterator[bytes]:
    """Member by member. What is behind the last one is looked at by who reads on behind it, and by no broker or client:
    Arrow would look ahead, and fail before it hands out what is in front of it."""
    at = 0
    while at < len(body):
        member, fed = zlib.decompressobj(zlib.MAX_WBITS | 16), _LEAST_FED
        while not member.eof:
            some = member.unconsumed_tail or body[at : at + fed]
            if not some:
                raise Uninflatable("a batch says that it is gzip, and is not: it ends in the middle")
            at += 0 if member.unconsumed_tail else len(some)
            try:
                block = member.decompress(some, _STEP)
            except zlib.error as error:
                raise Uninflatable(f"a batch says that it is gzip, and is not: {str(error)[:120]}") from None
            fed = min(2 * fed, _MOST_FED)
            if block:
                yield block
        at -= len(member.unused_data)


def _snappy(body: memoryview) -> Iterator[bytes]:
    import pyarrow as pa  # noqa: PLC0415

    codec: Any = pa.Codec("snappy")
    if bytes(body[: len(_XERIAL)]) != _XERIAL:
        yield _block(codec, body)
        return
    at = _XERIAL_HEAD
    while at < len(body):
        size = int.from_bytes(body[at : at + 4], "big")
        at += 4
        if size > len(body) - at:
            raise Uninflatable("a block of snappy is longer than its batch")
        yield _block(codec, body[at : at + size])
        at += size


def _block(codec: Any, block: memoryview) -> bytes:
    size = shift = 0
    for byte in block[:5]:
        size |= (byte & 0x7F) << shift
        shift += 7
        if not byte & 0x80:
            break
    if size > MOST_BLOCK_BYTES:
        raise Uninflatable(f"a block of snappy announces {size} bytes; at most {MOST_BLOCK_BYTES} are inflated at once")
    try:
        return bytes(codec.decompress(bytes(block), decompressed_size=size, asbytes=True))
    except (OSError, ValueError) as error:
        raise Uninflatable(f"a batch says that it is snappy, and is not: {str(error)[:120]}") from None
