"""Other bytes with the same checksums: what anybody who may write to the topic can make in milliseconds."""

from __future__ import annotations

import struct
import zlib
from pathlib import Path

import xxhash

from tests.builders.records import Letter

_M64, _M32 = (1 << 64) - 1, (1 << 32) - 1
_TABLE = [0] * 256
for _i in range(256):
    _c = _i
    for _ in range(8):
        _c = (_c >> 1) ^ 0xEDB88320 if _c & 1 else _c >> 1
    _TABLE[_i] = _c


def same_crc(body: bytes, *, prefix: bytes, target: int) -> bytes:
    """`body` with four bytes behind it, so that CRC-32 of `prefix` and all of it is `target`."""
    now, want, places = zlib.crc32(body, zlib.crc32(prefix)) ^ _M32, target ^ _M32, []
    for _ in range(4):
        at = next(k for k in range(256) if _TABLE[k] >> 24 == want >> 24)
        places.append(at)
        want = ((want ^ _TABLE[at]) << 8) & _M32
    tail = b""
    for at in reversed(places):
        byte = (now ^ at) & 0xFF
        tail += bytes([byte])
        now = (now >> 8) ^ _TABLE[(now ^ byte) & 0xFF]
    return body + tail


def forged(one: Letter) -> Letter:
    """Another value with the same headers, which fit it, too; where it is long enough for that."""
    h = dict(one.headers)
    said = (one.key or h["ws-id"] or b"", h["ws-seq"] or b"", h.get("ws-count") or b"", h["ws-meta"] or b"")
    value = one.value or b""
    body = bytes(b ^ 0xFF for b in value[:-4])
    target = int(h["ws-crc"] or b"", 16)
    return one._replace(
        value=same_crc(body, prefix=b"\0".join((*said, h.get("ws-digest") or b"", b"")), target=target)
        if body
        else value
    )


def same_crc_and_xxh3(true: bytes, wish: bytes, *, prefix: bytes) -> bytes:
    """`true` with `wish` for its first 512 bytes and 512 bytes of repairs behind it: the same CRC-32 (after `prefix`)
    and the same XXH3-128. Of `true` at least 1 KiB must be there."""
    library = next(Path(xxhash.__path__[0]).glob("_xxhash*.so")).read_bytes()
    secret = library[library.index(bytes.fromhex("b8fe6c3923a44bbe7c01812cf721ad1c")) :][:192]
    old = list(struct.unpack("<128Q", true[:1024]))
    new = list(struct.unpack("<64Q", wish[:512])) + old[64:]

    def key(stripe: int, lane: int) -> int:
        return int(struct.unpack_from("<Q", secret, 8 * stripe + 8 * lane)[0])

    def product(word: int, k: int) -> int:
        return ((word ^ k) & _M32) * ((word ^ k) >> 32)

    for lane in range(8):
        for stripe, high in ((13, 0), (14, _M32)):  # of product 0, their upper halves free
            new[stripe * 8 + lane] = (high << 32) | (key(stripe, lane) & _M32)
        kept = [n for n in range(16) if n not in (8, 9, 10, 11, 12)]
        all_of_old = sum(product(old[n * 8 + lane], key(n, lane)) for n in range(16))
        left = (all_of_old - sum(product(new[n * 8 + lane], key(n, lane)) for n in kept)) & _M64
        high = left >> 31
        some = min(high, _M32)
        parts = ((8, ((left & 0x7FFFFFFF) << 32) | 1), (9, some << 32 | 1 << 31), (10, (high - some) << 32 | 1 << 31))
        for stripe, word in parts:
            new[stripe * 8 + lane] = word ^ key(stripe, lane)
        rest = sum(old[n * 8 + lane] for n in range(16)) - sum(new[n * 8 + lane] for n in [*kept, 8, 9, 10])
        rest &= _M64
        new[11 * 8 + lane] = ((key(11, lane) >> 32) << 32) | (((rest & _M32) - (key(12, lane) & _M32)) & _M32)
        new[12 * 8 + lane] = (rest - new[11 * 8 + lane]) & _M64
    return _crc_repaired(bytearray(struct.pack("<128Q", *new) + true[1024:]), true, zlib.crc32(prefix))


def _crc_repaired(out: bytearray, true: bytes, prefix_crc: int) -> bytes:
    """Flip pairs of the free bits, which leave the XXH3 as it is, until the CRC fits: a linear system."""
    zero = zlib.crc32(bytes(len(out)))
    want = zlib.crc32(true, prefix_crc) ^ zlib.crc32(bytes(out), prefix_crc)
    basis: dict[int, tuple[int, frozenset[tuple[int, int]]]] = {}
    for lane in range(8):
        for bit in range(32):
            change = _flipped(bytearray(len(out)), lane, bit)
            crc, flips = zlib.crc32(bytes(change)) ^ zero, frozenset([(lane, bit)])
            while crc and crc.bit_length() in basis:
                known = basis[crc.bit_length()]
                crc, flips = crc ^ known[0], flips ^ known[1]
            if crc:
                basis[crc.bit_length()] = (crc, flips)
    chosen: frozenset[tuple[int, int]] = frozenset()
    while want:
        known = basis[want.bit_length()]
        want, chosen = want ^ known[0], chosen ^ known[1]
    for lane, bit in chosen:
        _flipped(out, lane, bit)
    return bytes(out)


def _flipped(data: bytearray, lane: int, bit: int) -> bytearray:
    for stripe in (13, 14):
        data[(stripe * 8 + lane) * 8 + 4 + bit // 8] ^= 1 << bit % 8
    return data
