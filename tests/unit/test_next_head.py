"""Where a batch leaves its stream: what the next head says of positions, watermark, records and why."""

from __future__ import annotations

from typing import Any

import pytest

from tests.builders.chunks import make_chunk
from tests.builders.heads import at, make_head
from tests.builders.plans import make_plan
from tests.builders.streams import make_stream
from wavestitch.contracts.batch_size import METADATA_WEIGHT, RECORD_HEADERS
from wavestitch.contracts.chunk_table import ChunkTable
from wavestitch.contracts.fates import Evidence
from wavestitch.contracts.held_choice import HeldAction, HeldChoice
from wavestitch.contracts.next_head import next_head
from wavestitch.contracts.plan import PlanKind
from wavestitch.contracts.position import Head, HeadKind
from wavestitch.contracts.quantities import EpochMs, Partition

CLOCK = 1_000_000
HEAD = make_head(sequence=4, generation=2, mean_record_bytes=7.5, watermark_ms=5, note="of the last one")
TWO = ChunkTable.of([make_chunk(seq=0, value=b"\1\0"), make_chunk(seq=1, value=b"\1\0\2\0", at=(0, 1))])
NOTHING = ChunkTable.of([])


def after(table: ChunkTable, *, kind: PlanKind = PlanKind.INGEST, **changes: Any) -> Head:
    values: dict[str, Any] = {
        "stream": make_stream(idle=10),
        "ends": {0: at(9, seen_ms=70), 1: at(3, seen_ms=CLOCK - 50)},
        "clock_ms": CLOCK,
        **changes,
    }
    evidence = Evidence([], seen_ms={Partition(0): EpochMs(CLOCK - 20)}, stitched={}, note="the gate was passed")
    return next_head(make_plan(kind=kind, **values), evidence, HEAD, table)


def test_an_ingest_moves_to_the_ends_of_its_plan_with_the_record_times_that_were_seen() -> None:
    found = after(TWO)
    assert (found.kind, found.sequence, found.generation) == (HeadKind.INGEST, 5, 2)
    assert found.positions == {0: at(9, seen_ms=CLOCK - 20), 1: at(3, seen_ms=CLOCK - 50)}
    assert found.watermark_ms == CLOCK - 50
    assert found.note == "the gate was passed"
    assert (
        found.plan_id
        == make_plan(
            stream=make_stream(idle=10),
            ends={0: at(9, seen_ms=70), 1: at(3, seen_ms=CLOCK - 50)},
            clock_ms=CLOCK,
        ).plan_id
    )


def test_a_record_takes_what_its_chunk_brings_and_its_metadata_the_more_where_they_come_first() -> None:
    text = len(make_chunk().meta)
    brought = 2 + 4 + 2 * text + 2 * RECORD_HEADERS + (METADATA_WEIGHT - 1) * text
    assert after(TWO).mean_record_bytes == brought / 2
    assert after(NOTHING).mean_record_bytes == HEAD.mean_record_bytes, "who read nothing has learned nothing"


def test_a_batch_that_moves_no_position_leaves_all_but_its_name_and_why() -> None:
    found = after(TWO, kind=PlanKind.MANUAL)
    assert (found.kind, found.note, found.plan_id != "") == (HeadKind.MANUAL, "the gate was passed", True)
    assert (found.positions, found.watermark_ms, found.mean_record_bytes) == (HEAD.positions, 5, 7.5)


@pytest.mark.parametrize(
    ("action", "note"),
    [("redrive", "; the gate was passed"), ("accept", "")],
)
def test_a_decision_says_who_and_why_and_what_the_gate_was_told_where_nobody_vouched(action: str, note: str) -> None:
    choice = HeldChoice(HeldAction(action), ("w",), "ops", "looked", "")
    found = after(NOTHING, kind=PlanKind.HELD, choice=choice)
    assert (found.kind, found.note) == (HeadKind.HELD, choice.note + note)
    assert (found.plan_id != "", found.positions) == (True, HEAD.positions)
