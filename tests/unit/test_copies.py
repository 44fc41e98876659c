"""What copies of chunks say of each other, by example. No I/O."""

from __future__ import annotations

import hashlib

import pytest

from tests.builders.table_rows import facts
from wavestitch.contracts.copies import Copy, are_published, contradict, say_no_more
from wavestitch.contracts.held import PublishedChunk, PublishedWaveform
from wavestitch.contracts.quantities import Offset, Partition

MINE = [
    facts(0, 1, b"xx")._replace(seq=0, piece=b"\x0a", count=2, digest=None),
    facts(0, 2, b"xx")._replace(seq=1, piece=b"\x0b", count=None, digest="all"),
]
"""Of a waveform of two chunks."""


def copy(seq: int = 0, piece: str = "0a", of: int | None = None, digest: str | None = None, meta: str = "m") -> Copy:
    return Copy(Partition(0), Offset(9), seq, piece, of, digest, meta)


def test_a_copy_is_made_of_what_a_chunk_says() -> None:
    chunk = facts(3, 7, b"xx")._replace(seq=2, piece=b"\x0a\xff", count=5, digest="d", meta="{}")
    said = hashlib.sha256(b"{}").hexdigest()[:32]
    assert Copy.made(chunk) == (3, 7, 2, "0aff", 5, "d", said), "files of a chain have these"
    assert Copy.made(chunk._replace(meta=None)).meta == hashlib.sha256(b"").hexdigest()[:32]


@pytest.mark.parametrize(
    ("one", "nothing_more"),
    [
        (copy(), True),
        (copy(of=2), True),
        (copy(digest="all"), True),
        (copy(of=3), False),
        (copy(digest="other"), False),
        (copy(piece="0b"), False),
        (copy(seq=1, piece="0b"), True),
        (copy(seq=2), False),
    ],
)
def test_copies_say_no_more_where_piece_count_and_digest_are_among_one_s_own(one: Copy, nothing_more: bool) -> None:
    assert say_no_more([one], MINE) is nothing_more
    assert say_no_more([copy(), one], MINE) is nothing_more


@pytest.mark.parametrize(
    ("copies", "wrong"),
    [
        ([copy(), copy(seq=1, piece="0b")], False),
        ([copy(), copy()], False),
        ([copy(), copy(piece="0b")], True),
        ([copy(of=2), copy(seq=1, piece="0b", of=2)], False),
        ([copy(of=2), copy(seq=1, piece="0b", of=3)], True),
        ([copy(digest="a"), copy(seq=1, piece="0b", digest="b")], True),
        ([copy(digest="a"), copy(seq=1, piece="0b")], False),
        ([copy(), copy(seq=1, piece="0b", meta="other")], True),
        ([copy(of=2), copy(seq=2, piece="0c")], True),
        ([copy(of=3), copy(seq=2, piece="0c")], False),
    ],
)
def test_copies_contradict_where_they_cannot_be_of_one_waveform(copies: list[Copy], wrong: bool) -> None:
    assert contradict(copies) is wrong


@pytest.mark.parametrize(
    ("one", "published"),
    [
        (copy(), True),
        (copy(of=2), True),
        (copy(of=3), False),
        (copy(piece="0b"), False),
        (copy(seq=1, piece="0b"), True),
        (copy(seq=2, piece="0c"), False),
    ],
)
def test_copies_are_published_where_each_is_the_piece_at_its_place(one: Copy, published: bool) -> None:
    pieces = tuple(PublishedChunk(Partition(0), Offset(n), 2, piece) for n, piece in enumerate((b"\x0a", b"\x0b")))
    known = PublishedWaveform("w", pieces)
    assert are_published([one], known) is published
    assert are_published([copy(), one], known) is published
