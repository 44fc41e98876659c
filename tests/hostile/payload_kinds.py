"""Hostile values: bytes that are no samples, not the ones that were sealed, or of another waveform."""

from __future__ import annotations

import gzip
import struct
import zlib

import xxhash

from tests.builders.records import crc
from tests.hostile.kind import META, VALUE, Kind, Record, fine, held, meta, mixed, sealed
from wavestitch.contracts.reasons import Reason

LEVEL = "payload"
LIMIT = 64 * 1024
"""`max_waveform_bytes` of the stream that the corpus is sent to."""


def payload_kinds() -> list[Kind]:
    return [*_lengths(), *_corrupt(), *_misrouted(), *_only_bytes(), *_numbers(), *_digests()]


def _with_value(record: Record, value: bytes | None) -> Record:
    return Record(record.key, record.headers, value, record.age_s)


def _lengths() -> list[Kind]:
    def short(name: str, sample_format: str, size: int) -> Kind:
        record = sealed("short", meta=meta(sample_format=sample_format), value=bytes(size))
        return held(LEVEL, name, "not a whole number of samples", Reason.BAD_LENGTH, record)

    large = sealed("large", value=bytes(LIMIT + 2))
    return [
        held(LEVEL, "no value", "a tombstone", Reason.NULL_VALUE, _with_value(sealed("null-value"), None)),
        held(LEVEL, "neither key nor headers nor value", "nothing", Reason.NULL_VALUE, Record(None, (), None)),
        short("an empty value", "i16le", 0),
        short("one byte of i16le", "i16le", 1),
        short("15 bytes of i16le", "i16le", 15),
        short("6 bytes of i32le", "i32le", 6),
        short("12 bytes of i64le", "i64le", 12),
        short("3 bytes of f32le", "f32le", 3),
        short("7 bytes of f64le", "f64le", 7),
        held(LEVEL, "a value above the waveform's limit", "one chunk of 64 KiB + 2", Reason.TOO_LARGE, large),
        fine(
            LEVEL,
            "a value exactly at the limit",
            "nothing",
            sealed("at-limit", value=bytes(LIMIT)),
            samples={"at-limit": bytes(LIMIT)},
        ),
        held(
            LEVEL,
            "nearly as much as a broker takes by default",
            "far above the limit",
            Reason.TOO_LARGE,
            sealed("megabytes", value=bytes(900_000)),
        ),
    ]


def _corrupt() -> list[Kind]:
    whole = sealed("corrupt")
    first, last = bytes([VALUE[0] ^ 1]) + VALUE[1:], VALUE[:-1] + bytes([VALUE[-1] ^ 0x80])
    values = {
        "the first bit flipped": first,
        "the last bit flipped": last,
        "a sample cut off": VALUE[:-2],
        "a sample too many": VALUE + b"\0\0",
        "bytes in the other order": VALUE[::-1],
        "two samples swapped": VALUE[2:4] + VALUE[:2] + VALUE[4:],
        "zeros instead": bytes(len(VALUE)),
        "nothing left, but sealed full": b"",
        "compressed on the way": gzip.compress(VALUE, mtime=0),
    }
    crcs = {
        "of zeros": b"00000000",
        "of the value alone": b"%08x" % zlib.crc32(VALUE),
        "without separators": b"%08x" % zlib.crc32(b"corrupt" + b"0" + META + VALUE),
        "of the value before the rest": b"%08x" % zlib.crc32(VALUE + b"\0corrupt\0" + b"0\0" + META),
        "with its bytes swapped": bytes.fromhex(crc(b"corrupt", b"0", b"1", META, VALUE).decode())[::-1].hex().encode(),
        "by another checksum": b"%08x" % zlib.adler32(VALUE),
    }
    return [
        *(
            held(LEVEL, what, "not the bytes that were sealed", Reason.CORRUPT, _with_value(whole, v))
            for what, v in values.items()
        ),
        *(
            held(LEVEL, f"a CRC {what}", "not the contract's CRC", Reason.CORRUPT, sealed("corrupt", ws_crc=c))
            for what, c in crcs.items()
        ),
        held(
            LEVEL,
            "a flipped bit in the metadata",
            "still JSON, still well formed",
            Reason.CORRUPT,
            sealed("corrupt", ws_meta=META.replace(b'"x"', b'"y"')),
        ),
    ]


def _misrouted() -> list[Kind]:
    a, b = sealed("swap-a"), sealed("swap-b", value=VALUE[::-1])
    first = sealed("swap-c", count=b"2")
    second = sealed("swap-c", seq=b"1", count=b"2", value=VALUE[::-1])
    return [
        held(
            LEVEL,
            "two waveforms with each other's value",
            "the CRC binds value and id",
            Reason.CORRUPT,
            _with_value(a, b.value),
            _with_value(b, a.value),
        ),
        held(
            LEVEL,
            "two chunks with each other's value",
            "the CRC binds value and place",
            Reason.CORRUPT,
            _with_value(first, second.value),
            _with_value(second, first.value),
        ),
        held(
            LEVEL,
            "two waveforms with each other's key",
            "the CRC binds the id",
            Reason.CORRUPT,
            Record(b.key, a.headers, a.value),
            Record(a.key, b.headers, b.value),
        ),
        held(
            LEVEL,
            "a value from another topic, sealed without our headers",
            "no chunk",
            Reason.NOT_A_CHUNK,
            Record(b"order-4711", (("content-type", b"application/json"),), b'{"order": 4711}'),
        ),
    ]


def _only_bytes() -> list[Kind]:
    """Values that some other program would unpack, run or render. Here they are samples and nothing else."""
    bomb = gzip.compress(bytes(4 << 20), mtime=0)
    values = {
        "a compressed bomb": bomb + b"\0" * (len(bomb) % 2),
        "a pickle that runs a command": b"cposix\nsystem\n(S'id'\ntR." + b"\0",
        "an XML bomb": b'<!DOCTYPE x [<!ENTITY a "aaaa">]><x>&a;</x>\n',
        "a schema registry's frame": b"\0\0\0\0\1\2wave",
        "a serialised Java object": b"\xac\xed\0\5sr\0\4Evil",
        "an Arrow file": b"ARROW1\0\0" + b"\xff" * 8,
        "a Parquet file": b"PAR1" + b"\0" * 8 + b"PAR1",
    }
    found = []
    for what, value in values.items():
        whole = value + b"\0" * (len(value) % 2)
        found.append(
            fine(LEVEL, what, "nothing: it is bytes", sealed(what, value=whole), samples={what: whole}),
        )
    return found


def _numbers() -> list[Kind]:
    """Samples at the edge of what their format can say; those that are no numbers fail the stream's expectation."""

    def sent(what: str, sample_format: str, value: bytes) -> Record:
        return sealed(what, meta=meta(sample_format=sample_format), value=value)

    edges = {
        "the least and greatest i16": ("i16le", struct.pack("<2h", -(1 << 15), (1 << 15) - 1)),
        "the least and greatest i32": ("i32le", struct.pack("<2i", -(1 << 31), (1 << 31) - 1)),
        "the least i64, and the greatest that a double says": ("i64le", struct.pack("<2q", -(1 << 63), 1 << 53)),
        "the greatest f64": ("f64le", struct.pack("<2d", 1.7976931348623157e308, -1.7976931348623157e308)),
        "denormal f32": ("f32le", struct.pack("<2I", 1, 0x80000001)),
        "minus zero": ("f64le", struct.pack("<d", -0.0)),
    }
    nothing = {
        "a quiet NaN": ("f64le", struct.pack("<Q", 0x7FF8000000000000)),
        "an infinity among numbers": ("f32le", struct.pack("<2f", 1.0, float("inf"))),
        "only infinities": ("f64le", struct.pack("<2d", float("inf"), float("-inf"))),
    }
    unfit = {
        "the greatest i64": ("i64le", struct.pack("<q", (1 << 63) - 1)),
        "one more than a double counts to": ("i64le", struct.pack("<2q", 0, (1 << 53) + 1)),
        "a signalling NaN": ("f32le", struct.pack("<2I", 0x7F800001, 0)),
    }
    return [
        *(
            held(LEVEL, what, "no double has these bits", Reason.MISFIT, sent(what, *said))
            for what, said in unfit.items()
        ),
        *(fine(LEVEL, what, "nothing", sent(what, *said), samples={what: said[1]}) for what, said in edges.items()),
        *(
            held(LEVEL, what, "the stream expects finite samples", Reason.FAILED_EXPECTATION, sent(what, *said))
            for what, said in nothing.items()
        ),
    ]


def _digests() -> list[Kind]:
    true = xxhash.xxh3_128_hexdigest(VALUE)
    halves = VALUE[:8], VALUE[8:]

    def two(name: str, first: str | None, second: str | None) -> tuple[Record, Record]:
        return (
            sealed(name, count=b"2", value=halves[0], digest=first),
            sealed(name, seq=b"1", count=b"2", value=halves[1], digest=second),
        )

    wrong = {
        "a digest of zeros": "0" * 32,
        "the digest of nothing": xxhash.xxh3_128_hexdigest(b""),
        "the digest of other bytes": xxhash.xxh3_128_hexdigest(VALUE[::-1]),
        "a digest by XXH64, twice": xxhash.xxh64_hexdigest(VALUE) * 2,
    }
    last_only = two("digest-of-last", None, xxhash.xxh3_128_hexdigest(halves[1]))
    return [
        *(
            held(LEVEL, what, "not the waveform's", Reason.DIGEST_MISMATCH, sealed(what, digest=said))
            for what, said in wrong.items()
        ),
        held(LEVEL, "the digest of the last chunk alone", "not the waveform's", Reason.DIGEST_MISMATCH, *last_only),
        held(LEVEL, "two digests", "a waveform has one", Reason.CONFLICT, *two("two-digests", true, "0" * 32)),
        fine(
            LEVEL,
            "a digest on the first chunk",
            "it belongs on the last, but it is right",
            *two("early-digest", true, None),
            samples={"early-digest": VALUE},
        ),
        mixed(
            LEVEL,
            "a digest only on a repeat of the last chunk",
            "nothing: it is the same chunk, and the digest is right",
            [
                (sealed("late-digest"), "published"),
                (sealed("late-digest", digest=true), "duplicate"),
            ],
            **{"late-digest": VALUE},
        ),
    ]
