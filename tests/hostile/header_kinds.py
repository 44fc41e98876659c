"""Hostile headers: missing, repeated, null, of another version, or with words where numbers belong."""

from __future__ import annotations

from tests.builders.records import crc
from tests.hostile.kind import META, VALUE, Kind, Record, beside, fine, held, sealed, without
from wavestitch.contracts.reasons import Reason

LEVEL = "header"
NAMES = ("version", "id", "seq", "count", "crc", "meta", "digest")
DIGEST = "0123456789abcdef" * 2

NO_NUMBERS = {
    "nothing": b"",
    "a minus sign": b"-1",
    "a plus sign": b"+0",
    "a leading zero": b"00",
    "a fraction": b"0.0",
    "an exponent": b"1e3",
    "a space before it": b" 0",
    "a newline after it": b"0\n",
    "a hexadecimal prefix": b"0x0",
    "a digit separator": b"1_0",
    "Arabic-Indic digits": "٣".encode(),
    "a superscript": "²".encode(),
    "a NUL after it": b"0\0",
    "eleven digits": b"9" * 11,
    "five thousand digits": b"9" * 5000,
    "a word": b"NaN",
}


def header_kinds() -> list[Kind]:
    return [*_no_chunks(), *_versions(), *_twice_and_null(), *_numbers(), *_places(), *_seals(), *_foreign()]


def _no_chunks() -> list[Kind]:
    def no_chunk(name: str, wrong: str, *headers: tuple[str, bytes | None]) -> Kind:
        return held(LEVEL, name, wrong, Reason.NOT_A_CHUNK, Record(b"no-chunk", headers, VALUE))

    return [
        no_chunk("no header at all", "a record of some other program"),
        no_chunk("only foreign headers", "a record of some other program", ("content-type", b"text/plain")),
        held(LEVEL, "no version", "ws-version is missing", Reason.NOT_A_CHUNK, without(sealed("nv"), "ws-version")),
        no_chunk("names in capitals", "header names are exact", ("WS-VERSION", b"2"), ("WS-SEQ", b"0")),
        no_chunk("a name with a space after it", "header names are exact", ("ws-version ", b"2")),
        no_chunk("a look-alike name", "a hyphen that is not a hyphen", ("ws‑version", b"2")),
    ]


def _versions() -> list[Kind]:
    versions = {
        "of yesterday": b"1",
        "of tomorrow": b"3",
        "of nothing": b"",
        "with a leading zero": b"02",
        "with a space": b"2 ",
        "with a newline": b"2\n",
        "as a fraction": b"2.0",
        "in full-width digits": "２".encode(),
        "in no encoding": b"\xff",
        "of 4 KiB": b"2" * 4096,
    }
    return [
        held(LEVEL, f"a version {what}", "known is 2", Reason.UNKNOWN_VERSION, sealed("version", ws_version=raw))
        for what, raw in versions.items()
    ]


def _twice_and_null() -> list[Kind]:
    found = []
    for name in NAMES:
        whole = sealed("twice", digest=DIGEST, ws_id=b"twice")
        own = dict(whole.headers)[f"ws-{name}"]
        found.append(
            held(LEVEL, f"ws-{name} twice", "each exactly once", Reason.BAD_HEADER, beside(whole, (f"ws-{name}", own)))
        )
        null = sealed("null", digest=DIGEST, **{f"ws_{name}": None})
        found.append(held(LEVEL, f"ws-{name} null", "a header must have a value", Reason.BAD_HEADER, null))
    other = beside(sealed("two-seqs"), ("ws-seq", b"1"))
    found.append(held(LEVEL, "two sequences that differ", "each exactly once", Reason.BAD_HEADER, other))
    for name in ("seq", "crc", "meta"):
        lacking = without(sealed("lacking"), f"ws-{name}")
        found.append(held(LEVEL, f"no ws-{name}", "a chunk has one", Reason.BAD_HEADER, lacking))
    return found


def _numbers() -> list[Kind]:
    found = []
    for what, raw in NO_NUMBERS.items():
        seq, count = sealed("number", seq=raw), sealed("number", ws_count=raw)
        found.append(held(LEVEL, f"a sequence with {what}", "plain decimal only", Reason.BAD_HEADER, seq))
        found.append(held(LEVEL, f"a count with {what}", "plain decimal only", Reason.BAD_HEADER, count))
    return found


def _places() -> list[Kind]:
    places = {
        "a sequence that is the count": (b"3", b"3"),
        "a sequence beyond the count": (b"7", b"3"),
        "a count of none": (b"0", b"0"),
        "a sequence of 2**20": (b"1048576", None),
        "a sequence of 2**31 - 1": (b"2147483647", None),
        "a sequence of 2**32": (b"4294967296", None),
        "a count of 2**20 + 1": (b"0", b"1048577"),
        "a count of 2**31": (b"0", b"2147483648"),
        "a count of ten nines": (b"0", b"9999999999"),
    }
    return [
        held(LEVEL, what, "outside of what a waveform has", Reason.BAD_SEQUENCE, sealed("place", seq=seq, count=count))
        for what, (seq, count) in places.items()
    ]


def _seals() -> list[Kind]:
    crcs = {
        "nothing": b"",
        "capitals": b"DEADBEEF",
        "seven digits": b"deadbee",
        "nine digits": b"deadbeef0",
        "a prefix": b"0xdeadbe",
        "a letter beyond f": b"deadbeeg",
        "raw bytes": b"\xde\xad\xbe\xef",
        "raw bytes, eight of them": b"\xde\xad\xbe\xef" * 2,
    }
    digests = {
        "nothing": b"",
        "31 digits": b"0" * 31,
        "33 digits": b"0" * 33,
        "capitals": b"A" * 32,
        "no hex": b"g" * 32,
        "16 raw bytes": bytes(16),
        "half a megabyte": b"0" * (1 << 19),
    }
    return [
        *(
            held(LEVEL, f"a CRC with {what}", "8 lower-case hex digits", Reason.BAD_HEADER, sealed("seal", ws_crc=raw))
            for what, raw in crcs.items()
        ),
        *(
            held(LEVEL, f"a digest with {what}", "32 such digits", Reason.BAD_HEADER, sealed("seal", ws_digest=raw))
            for what, raw in digests.items()
        ),
    ]


def _foreign() -> list[Kind]:
    """Other people's headers are nobody's business, however many, large or odd."""
    odd: tuple[tuple[str, bytes | None], ...] = (("", b"x"), ("trace", None), ("trace", b"\xff"), ("ws-other", b"1"))
    many = tuple((f"h{n}", b"x") for n in range(1000))
    parts = {"many": many, "large": (("h", bytes(100_000)),), "odd": odd}
    found = [
        fine(
            LEVEL,
            f"{what} foreign headers",
            "nothing: they are ignored",
            beside(sealed(f"foreign-{what}"), *more),
            samples={f"foreign-{what}": VALUE},
        )
        for what, more in parts.items()
    ]
    backwards = sealed("backwards")
    turned = Record(backwards.key, backwards.headers[::-1], backwards.value)
    found.append(fine(LEVEL, "headers backwards", "nothing: any order", turned, samples={"backwards": VALUE}))
    forged = sealed("bound", ws_seq=b"1", ws_count=b"2")
    found.append(held(LEVEL, "a sequence changed after the seal", "the CRC binds it", Reason.CORRUPT, forged))
    short = sealed("bound", count=b"9", ws_count=b"1")
    found.append(held(LEVEL, "a count changed after the seal", "the CRC binds it", Reason.CORRUPT, short))
    added = sealed("bound", count=None, ws_count=b"1")
    found.append(held(LEVEL, "a count added after the seal", "the CRC binds its absence", Reason.CORRUPT, added))
    swapped = sealed("bound", ws_crc=crc(b"bound", b"0", b"1", META, VALUE)[::-1])
    found.append(held(LEVEL, "a CRC backwards", "another CRC", Reason.CORRUPT, swapped))
    return found
