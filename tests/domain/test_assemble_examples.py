"""`assemble` by example: chunks in, and what their waveform is. Read it as the specification.

A chunk is written as the place of its waveform that it takes and how many there are, `0/2`; `?` where it does not say.
Each lies at the offset of its place in the list. `!` behind it: other bytes; `*`: other metadata; `+` and `-`: a record
time a day later or a century earlier than the waveform's start; `c`: held since an earlier batch; `d`, `e`: it claims
one digest of the whole, or another; `s`: its metadata say 99 samples. Allowed are 16 bytes in 3 chunks.
`pieces` are offsets, those of repeats in brackets.
"""

from __future__ import annotations

import random
import re
from itertools import permutations

import pytest

from tests.builders.chunks import NOON, make_chunk
from tests.builders.records import metadata
from wavestitch.contracts.assembly import Assembly, ChunkFacts, assemble
from wavestitch.contracts.reasons import Reason
from wavestitch.contracts.stream import Limits

_CHUNK = re.compile(r"([0-9]+)/([0-9]+|\?)([!*+cdes-]*)")
_DAY_MS = 86_400_000
_LIMITS = Limits(max_waveform_bytes=16, max_chunks=3)


def chunk(text: str, offset: int) -> ChunkFacts:
    found = _CHUNK.fullmatch(text)
    assert found, text
    seq, count, marks = int(found[1]), found[2], found[3]
    said = {"channel": "other"} if "*" in marks else {"sample_count": 99} if "s" in marks else {}
    moved = _DAY_MS if "+" in marks else -36_500 * _DAY_MS if "-" in marks else 0
    return make_chunk(
        "w",
        seq,
        b"\xff\xff\xff\xff" if "!" in marks else b"%c\0\1\0" % (seq % 256),
        count=None if count == "?" else int(count),
        meta=metadata(NOON, **said),
        digest={"d": "d" * 32, "e": "e" * 32}.get(next((m for m in marks if m in "de"), "")),
        at=(0, offset),
        time_ms=NOON + moved,
        carried="c" in marks,
    )


def read(text: str) -> Assembly:
    return assemble([chunk(one, offset) for offset, one in enumerate(text.split())], _LIMITS)["w"]


def offsets(chunks: tuple[ChunkFacts, ...]) -> str:
    return " ".join(str(c.offset) for c in chunks)


_TABLE = """
it shows                               | chunks              | becomes            | pieces    | why
---------------------------------------+---------------------+--------------------+-----------+-----------------------
one chunk is a waveform                | 0/1                 | whole              | 0         |
all chunks are there                   | 0/2 1/2             | whole              | 0 1       |
their order in the log says nothing    | 2/3 0/3 1/3         | whole              | 1 2 0     |
the last alone says how many           | 0/? 1/? 2/3         | whole              | 0 1 2     |
any one may say it                     | 0/? 1/3 2/?         | whole              | 0 1 2     |
one is missing                         | 0/3 2/3             | open               | 0 1       | 2 of 3 chunks here
nobody says how many                   | 0/? 1/?             | open               | 0 1       | none says yet how many
the same again is a repeat             | 0/2 0/2 1/2         | whole              | 0 2 (1)   |
a repeat may bring the count           | 0/? 0/1             | whole              | 0 (1)     |
the copy nearest to the start is taken | 0/1+ 0/1            | whole              | 1 (0)     |
but what is held already stays         | 0/1+c 0/1           | whole              | 0 (1)     |
held and read make one whole           | 0/2c 1/2            | whole              | 0 1       |
other bytes at one place               | 0/2 1/2 1/2!        | conflict           | 0 1 2     | different bytes
other bytes, incomplete as well        | 0/3 0/3!            | conflict           | 0 1       | different bytes
other metadata                         | 0/2 1/2*            | conflict           | 0 1       | ws-meta differs
another count                          | 0/2 1/3             | conflict           | 0 1       | ws-count is 2 at
a chunk beyond the count               | 0/2 2/?             | conflict           | 0 1       | beyond ws-count 2
two digests of the whole               | 0/2d 1/2e           | conflict           | 0 1       | 2 different ws-digest
one digest, said twice                 | 0/2d 1/2d           | whole              | 0 1       |
a repeat may bring the digest, too     | 0/1 0/1d            | whole              | 0 (1)     |
more bytes than allowed                | 0/? 1/? 2/? 3/? 4/? | too_large          | 0 1 2 3 4 | 20 bytes in 5 chunks
more chunks than allowed are there     | 0/? 1/? 2/? 3/?     | too_large          | 0 1 2 3   | 4 chunks
more chunks than allowed are announced | 0/9                 | too_large          | 0         | 9 chunks
no record time near the start time     | 0/1-                | implausible_time   | 0         | from its record time
one copy near it is enough             | 0/2- 1/2            | whole              | 0 1       |
more samples than its metadata say     | 0/1s                | wrong_sample_count | 0         | ws-meta says 99
fewer: what is not whole waits first   | 0/2s                | open               | 0         | 1 of 2 chunks here
"""
EXAMPLES = [[cell.strip() for cell in row.split("|")] for row in _TABLE.strip().splitlines()[2:]]


@pytest.mark.parametrize(
    ("chunks", "becomes", "pieces", "why"), [e[1:] for e in EXAMPLES], ids=[e[0] for e in EXAMPLES]
)
def test_what_chunks_make(chunks: str, becomes: str, pieces: str, why: str) -> None:
    found = read(chunks)
    assert (found.reason.value if found.reason else "whole") == becomes, found.evidence
    assert offsets(found.pieces) + (f" ({offsets(found.repeats)})" if found.repeats else "") == pieces
    assert why in found.evidence if why else not found.evidence


@pytest.mark.parametrize("chunks", [e[1] for e in EXAMPLES], ids=[e[0] for e in EXAMPLES])
def test_in_whatever_order_they_are_given(chunks: str) -> None:
    given = [chunk(one, offset) for offset, one in enumerate(chunks.split())]
    orders = (
        list(permutations(given)) if len(given) < 5 else [random.Random(n).sample(given, len(given)) for n in range(24)]
    )
    assert {repr(assemble(order, _LIMITS)) for order in orders} == {repr(assemble(given, _LIMITS))}


def test_waveforms_do_not_touch_each_other_and_what_is_no_chunk_is_no_part_of_any() -> None:
    mine, other = chunk("0/1", 0), chunk("0/2", 1)._replace(waveform_id="v")
    junk = chunk("1/2", 2)._replace(waveform_id="v", reason=Reason.CORRUPT.value)
    found = assemble([other, junk, mine], _LIMITS)
    assert {i: (w.reason, offsets(w.pieces)) for i, w in found.items()} == {"w": (None, "0"), "v": (Reason.OPEN, "1")}
