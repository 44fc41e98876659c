"""What a chunk that is not published takes of memory while it is decided: what the docs say, and no more."""

from __future__ import annotations

import hashlib
import tracemalloc

import pytest

from tests.builders.heads import make_head
from tests.builders.plans import make_plan
from tests.builders.ranges import span
from tests.builders.records import metadata
from tests.conftest import ROOT
from wavestitch.contracts.assembly import ChunkFacts
from wavestitch.contracts.decision import decide
from wavestitch.contracts.fates import AllStitched, Evidence
from wavestitch.contracts.position import Position
from wavestitch.contracts.quantities import EpochMs, Offset, Partition

T = EpochMs(1_767_614_400_000)
CHUNKS = 4000
KIB = 5


@pytest.mark.parametrize("kind", ["open", "conflict"])
def test_a_chunk_that_is_set_aside_takes_no_more_than_the_docs_say(kind: str) -> None:
    zero = Partition(0)
    plan = make_plan(
        ranges=(span(0, 0, CHUNKS),),
        units=((span(0, 0, CHUNKS),),),
        positions={zero: Position(Offset(0))},
        ends={zero: Position(Offset(CHUNKS))},
        clock_ms=T + 1,
        watermark_ms=0,
    )
    head = make_head(positions={zero: Position(Offset(0))})
    tracemalloc.start()
    try:
        found = decide(plan, Evidence(_chunks(kind), {zero: T}, AllStitched()), head=head, held=[], published={})
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(found.holds) == CHUNKS
    assert most / CHUNKS < KIB * 1024, f"{most / CHUNKS:.0f} bytes a chunk"
    assert f"3 to {KIB} KiB" in (ROOT / "docs" / "operations.md").read_text()
    assert f"3 to {KIB} KiB" in (ROOT / "docs" / "guarantees.md").read_text()


def _chunks(kind: str) -> list[ChunkFacts]:
    """All of waveforms that are never whole: each of its own, or all the same place of one."""
    said = metadata(T).decode()
    return [
        ChunkFacts(
            partition=Partition(0),
            offset=Offset(n),
            timestamp_ms=T,
            waveform_id=f"w{n}" if kind == "open" else "w",
            seq=0,
            count=2,
            crc=1,
            length=2,
            meta=said,
            digest=None,
            piece=hashlib.sha256(b"%d" % n).digest(),
            reason=None,
            evidence=None,
            file=0,
            row=n,
        )
        for n in range(CHUNKS)
    ]
