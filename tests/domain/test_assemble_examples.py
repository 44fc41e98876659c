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
from wavestitch.contracts.assembly import Assembly, ChunkFacts, assemble, assemble_waveform
from wavestitch.contracts.quantities import Seconds
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


def test_a_copy_that_has_bytes_goes_before_one_that_is_held_without() -> None:
    held, again = chunk("0/1c", 0), chunk("0/1", 1)
    alone = assemble_waveform("w", [held], _LIMITS, bare={held.key})
    assert alone.reason is Reason.OPEN
    assert "the bytes of chunk 0 at partition 0 offset 0 are gone from the held table" in alone.evidence
    both = assemble_waveform("w", [held, again], _LIMITS, bare={held.key})
    assert (both.reason, offsets(both.pieces), offsets(both.repeats)) == (None, "1", "0")
    assert assemble_waveform("w", [again], _LIMITS, bare={again.key}).reason is None, "only what is held lacks bytes"
    second = chunk("1/2c", 3)
    found = assemble_waveform("w", [chunk("0/2c", 2), second], _LIMITS, bare={second.key})
    assert "the bytes of chunk 1 at partition 0 offset 3 are gone" in found.evidence
    assert assemble_waveform("w", [chunk("0/2c", 2), second], _LIMITS, bare={held.key}).reason is None


@pytest.mark.parametrize(("most", "reason"), [(12, None), (11, Reason.TOO_LARGE)])
def test_as_many_bytes_as_are_allowed_are_not_too_many(most: int, reason: Reason | None) -> None:
    given = [chunk(text, n) for n, text in enumerate(("0/3", "1/3", "2/3"))]
    assert assemble(given, Limits(max_waveform_bytes=most, max_chunks=3))["w"].reason is reason


@pytest.mark.parametrize(("late_ms", "reason"), [(5000, None), (-5000, None), (5001, Reason.IMPLAUSIBLE_TIME)])
def test_a_record_time_may_be_as_far_from_the_start_as_is_allowed(late_ms: int, reason: Reason | None) -> None:
    given = [make_chunk("w", count=1, time_ms=NOON + late_ms)]
    assert assemble(given, Limits(max_clock_skew=Seconds(5)))["w"].reason is reason
    assert assemble_waveform("w", given, Limits(max_clock_skew=Seconds(5)), accepted=True).reason is None


@pytest.mark.parametrize(
    ("there", "count", "missing"),
    [(8, 9, "0, 1, 2, 3, 4, 5, 6, 7"), (9, 10, "0, 1, 2, 3, 4, 5, 6, 7, …"), (1, 4, "0, 2, 3")],
)
def test_the_first_of_the_missing_chunks_are_named(there: int, count: int, missing: str) -> None:
    found = assemble([chunk(f"{there}/{count}", 0)], Limits())["w"]
    assert found.evidence == f"1 of {count} chunks here; missing: {missing}"


def test_a_waveform_has_the_digest_that_any_copy_says_and_none_where_somebody_vouches() -> None:
    copies = [chunk("0/2", 0), chunk("1/2", 1), chunk("1/2d", 2)]
    assert assemble(copies, _LIMITS)["w"].digest == "d" * 32
    assert assemble(copies[:2], _LIMITS)["w"].digest is None
    assert assemble_waveform("w", copies, _LIMITS, accepted=True).digest is None


def test_lessons_are_repeats_that_say_more_and_what_is_held_stays_among_them() -> None:
    given = [chunk("0/?c", 0), chunk("0/1", 1), chunk("0/1", 2), chunk("0/1d", 3), chunk("0/?c", 4)]
    found = assemble(given, _LIMITS)["w"]
    assert (offsets(found.pieces), offsets(found.lessons)) == ("0", "4 1 3")
    twice = [chunk(text, n) for n, text in enumerate(("0/3", "1/3", "0/2", "1/2", "0/2", "1/?"))]
    assert offsets(assemble(twice, _LIMITS)["w"].lessons) == "2 3 5", "of each copy of the whole every chunk"
    nearer = [chunk("0/?-c", 0), chunk("0/?", 1), chunk("0/?", 2)]
    assert offsets(assemble(nearer, _LIMITS)["w"].lessons) == "1", "its time makes the start plausible"
    later = [chunk("0/?c", 0), chunk("0/1+", 1), chunk("0/1+", 2)]
    found = assemble(later, _LIMITS)["w"]
    assert (offsets(found.lessons), found.newest_ms) == ("1", NOON + _DAY_MS)
    assert found.byte_length == 4


def test_a_conflict_names_the_two_places_and_the_metadata_are_those_of_the_first_piece() -> None:
    at = "partition 0 offset"
    assert read("0/2 1/3").evidence == f"ws-count is 2 at {at} 0 and 3 at {at} 1"
    assert read("0/2 1/2*").evidence == f"ws-meta differs between {at} 0 and {at} 1"
    assert read("0/2 1/2 1/2!").evidence == f"chunk 1 has different bytes at {at} 1 and {at} 2"
    assert read("0/2 1/2*").metadata.channel != "other"
    assert read("1/2 0/2*").metadata.channel == "other"


@pytest.mark.parametrize(
    ("a", "b", "agree"),
    [
        *(("0/2", "0/2", True), ("0/2", "0/?", True), ("0/?", "0/2", True), ("0/2", "0/3", False)),
        *(("0/2d", "0/2", True), ("0/2d", "0/2e", False), ("0/2d", "0/?", True), ("0/?d", "0/2e", False)),
    ],
)
def test_two_copies_agree_unless_they_say_different_things_of_the_whole(a: str, b: str, agree: bool) -> None:
    assert chunk(a, 0).agrees_with(chunk(b, 1)) is agree
