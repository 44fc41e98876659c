"""Hostile ids: such as name nothing, and such as are names of something else: paths, commands, look-alikes of others.

A valid id is any text of 1 to 256 bytes; whatever it looks like, its waveform is published under exactly this text.
"""

from __future__ import annotations

import unicodedata

from tests.hostile.kind import VALUE, Kind, Record, fine, held, sealed
from wavestitch.contracts.reasons import Reason

LEVEL = "id"
STRANGE = {
    "a path upwards": "../../../../etc/passwd",
    "an absolute path": "/etc/shadow",
    "a Windows path": "C:\\Windows\\system32",
    "a file URI": "file:///etc/passwd",
    "an escaped path": "..%2f..%2fetc%2fpasswd",
    "the folder itself": ".",
    "the folder above": "..",
    "a hidden file": ".wavestitch",
    "a NUL in it": "id\0.parquet",
    "only a NUL": "\0",
    "a newline": "id\nwaveform_id=other",
    "a header break": "id\r\nws-seq: 9",
    "a tab": "a\tb",
    "only a space": " ",
    "a shell command": "$(reboot); `reboot` | reboot",
    "an option": "--conf=spark.jars=evil.jar",
    "SQL": "'; DROP TABLE waveforms; --",
    "a template": "{{ ti.xcom_pull() }}{% raw %}",
    "HTML": "<script>alert(1)</script>",
    "an escape sequence": "\x1b[2J\x1b[31m",
    "text that runs backwards": "\u202egnp.exe",
    "a byte order mark": "\ufeffid",
    "a joiner that is not seen": "a\u200db",
    "a partition folder": "day=2026-01-01",
    "Hive's null": "__HIVE_DEFAULT_PARTITION__",
    "the word null": "null",
    "the word NaN": "NaN",
    "a number": "0",
    "JSON": '{"waveform_id": null}',
    "a wildcard": "*",
    "a noncharacter": "\uffff",
    "256 bytes": "x" * 256,
    "256 bytes of the last character": "\U0010ffff" * 64,
    "a very long first part": "p" * 255 + "\x7f",
}
PAIRS = {
    "letters that differ in case": ("Casefold", "casefold"),
    "sharp s and two of them": ("stra\u00dfe", "strasse"),
    "the same text, composed and not": (
        unicodedata.normalize("NFC", "e\u0301"),
        unicodedata.normalize("NFD", "\u00e9"),
    ),
    "Cyrillic and Latin": ("\u0430bc", "abc"),
    "a space at the end": ("trailing", "trailing "),
    "a NUL at the end": ("nul", "nul\0"),
    "a difference after 250 bytes": ("q" * 250 + "a", "q" * 250 + "b"),
    "Turkish i": ("\u0130d", "id\u0307"),
}


def id_kinds() -> list[Kind]:
    return [*_nothing_named(), *_strange(), *_pairs(), *_keys_and_headers()]


def _nothing_named() -> list[Kind]:
    bare = sealed("bare", keyed=False)
    nobody = Record(None, tuple(h for h in bare.headers if h[0] != "ws-id"), bare.value)
    named = {
        "no id": ("neither key nor ws-id", nobody),
        "an empty key": ("1 to 256 bytes", sealed(b"")),
        "an empty ws-id": ("1 to 256 bytes", sealed(b"", keyed=False)),
        "257 bytes as key": ("1 to 256 bytes", sealed("x" * 257)),
        "257 bytes as ws-id": ("1 to 256 bytes", sealed("x" * 257, keyed=False)),
        "64 KiB as key": ("1 to 256 bytes", sealed("x" * 65536)),
        "no UTF-8": ("an id is UTF-8", sealed(b"\xff\xfe")),
        "half a character": ("an id is UTF-8", sealed("é".encode()[:1])),
        "an encoded surrogate": ("an id is UTF-8", sealed(b"\xed\xa0\x80")),
        "an overlong slash": ("an id is UTF-8", sealed(b"..\xc0\xaf..")),
        "a character beyond the last": ("an id is UTF-8", sealed(b"\xf4\x90\x80\x80")),
        "key and ws-id that disagree": ("they must be equal", sealed("one", ws_id=b"other")),
        "key and ws-id that differ in case": ("they must be equal", sealed("one", ws_id=b"One")),
        "an empty key beside a ws-id": ("they must be equal", Record(b"", sealed("x", keyed=False).headers, VALUE)),
    }
    return [held(LEVEL, name, wrong, Reason.BAD_ID, record) for name, (wrong, record) in named.items()]


def _strange() -> list[Kind]:
    return [
        fine(LEVEL, f"an id that is {what}", "nothing: an id is any text", sealed(i), samples={i: VALUE})
        for what, i in STRANGE.items()
    ]


def _pairs() -> list[Kind]:
    found = []
    for what, (one, other) in PAIRS.items():
        assert one != other
        samples = {one: VALUE, other: VALUE[::-1]}
        records = [sealed(i, value=v) for i, v in samples.items()]
        found.append(fine(LEVEL, f"two ids with {what}", "nothing: they are two waveforms", *records, samples=samples))
    return found


def _keys_and_headers() -> list[Kind]:
    agreed = sealed("agreed", ws_id=b"agreed")
    return [
        fine(LEVEL, "an id only as ws-id", "nothing", sealed("unkeyed", keyed=False), samples={"unkeyed": VALUE}),
        fine(LEVEL, "an id both as key and as ws-id", "nothing", agreed, samples={"agreed": VALUE}),
        held(
            LEVEL,
            "another key than was sealed",
            "misrouted: the CRC binds the id",
            Reason.CORRUPT,
            Record(b"elsewhere", sealed("here").headers, VALUE),
        ),
    ]
