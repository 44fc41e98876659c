"""The corpus at the parser: every record gets its answer, at once, in little memory, and nothing is raised."""

from __future__ import annotations

import time
import tracemalloc

import pytest

from tests.hostile.corpus import record_kinds
from tests.hostile.kind import Kind
from wavestitch.contracts.chunk_header import Chunk, Rejection, parse_chunk
from wavestitch.contracts.chunk_metadata import Metadata, parse_metadata

KINDS = record_kinds()
CPU_SECONDS = 0.5
"""For one record, on a machine that does other things, too; the slowest of the corpus takes some milliseconds."""


def answers(kind: Kind) -> list[Chunk | Rejection]:
    return [parse_chunk(r.key, r.headers, r.value) for r in kind.records]


@pytest.mark.parametrize("kind", KINDS, ids=lambda k: k.name)
def test_each_record_is_a_chunk_or_rejected_for_its_reason(kind: Kind) -> None:
    for record, found, reason in zip(kind.records, answers(kind), kind.parsed(), strict=True):
        if reason is not None:
            assert isinstance(found, Rejection), found
            assert found.reason is reason, found
            assert 0 < len(found.evidence) < 400
            assert found.evidence.isascii() or found.evidence.replace("…", "").isascii()
            assert found.evidence.isprintable()
        else:
            assert isinstance(found, Chunk), found
            assert found.length == len(record.value or b"")
            assert isinstance(parse_metadata(found.meta), Metadata)


def test_no_record_takes_long() -> None:
    slow = {}
    for kind in KINDS:
        for record in kind.records:
            began = time.process_time()
            parse_chunk(record.key, record.headers, record.value)
            if (took := time.process_time() - began) > CPU_SECONDS:
                slow[kind.name] = took
    assert slow == {}


def test_no_record_makes_the_parser_allocate_more_than_its_own_size_many_times() -> None:
    large = {}
    for kind in KINDS:
        for record in kind.records:
            size = sum(len(v or b"") for _, v in record.headers) + len(record.key or b"") + len(record.value or b"")
            tracemalloc.start()
            parse_chunk(record.key, record.headers, record.value)
            _, peak = tracemalloc.get_traced_memory()
            tracemalloc.stop()
            # The metadata may be taken apart into objects: 16 KiB of text become about a megabyte at most.
            if peak > 4 * size + (2 << 20):
                large[kind.name] = peak
    assert large == {}


def test_a_record_that_is_parsed_twice_gets_the_same_answer() -> None:
    """The metadata that were judged are remembered: what was remembered of one record must not help another."""
    first = [answers(kind) for kind in KINDS]
    assert [answers(kind) for kind in reversed(KINDS)][::-1] == first
