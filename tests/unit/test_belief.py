"""What is held counts by what the stream asks for now: its proof, and the partition that it binds the id to."""

from __future__ import annotations

from typing import Any

import pytest

from tests.builders.chunks import index_record, make_chunk, make_held
from tests.builders.records import Letter
from tests.builders.streams import make_stream
from wavestitch.contracts.belief import Belief
from wavestitch.contracts.held import HeldChunk
from wavestitch.contracts.reasons import Reason

BOUND = {"id_partitions": {"prefixes": {"a/": [0], "b/": [1]}}}
PROVEN = {"proof": "sha256"}


def held(waveform_id: str, *, partition: int = 0, reason: Reason = Reason.OPEN, **more: Any) -> HeldChunk:
    return make_held(make_chunk(waveform_id, at=(partition, 3)), reason, **more)


@pytest.mark.parametrize(
    ("asks", "one", "why"),
    [
        ({}, held("a/1"), ""),
        (PROVEN, held("a/1"), "it was read when the stream asked for proof: none, and now it asks for sha256"),
        (PROVEN, held("a/1", proof="sha256"), ""),
        (PROVEN, held("a/1", proof="mac"), ""),
        ({}, held("a/1", proof="mac"), ""),
        (BOUND, held("a/1"), ""),
        (BOUND, held("b/1", partition=1), ""),
        (BOUND, held("a/1", partition=1), "it came in partition 1, which the stream does not bind its id to now"),
        (BOUND, held("b/1"), "it came in partition 0, which the stream does not bind its id to now"),
        (BOUND, held("c/1", partition=1), "it came in partition 1, which the stream does not bind its id to now"),
        ({}, held("c/1", partition=7), ""),
    ],
)
def test_why_a_chunk_does_not_count_is_said(asks: dict[str, Any], one: HeldChunk, why: str) -> None:
    belief = Belief(make_stream(**asks))
    assert belief.why_not(one) == why
    assert belief.believes(one) is (why == "")


@pytest.mark.parametrize("asks", [PROVEN, BOUND])
def test_what_is_no_chunk_or_was_discarded_counts_whatever_the_stream_asks_for(asks: dict[str, Any]) -> None:
    belief = Belief(make_stream(**asks))
    discarded = held("a/1", partition=1, reason=Reason.DISCARDED)
    assert belief.why_not(discarded)
    assert belief.believes(discarded)
    for record in (Letter(b"a/1", (), b"x"), Letter(b"a/1", (), None)):
        odd = index_record(record, at=(1, 3))
        assert odd.reason is not None
        assert belief.why_not(make_held(odd, Reason(odd.reason))) == ""
    # A valid header around a chunk that is refused: it has an id.
    refused = make_held(make_chunk("a/1", at=(1, 3))._replace(reason=Reason.CORRUPT.value), Reason.CORRUPT)
    assert belief.why_not(refused) == ""
