"""What is held takes of memory what it is, not what its producer says of each chunk, over real tables."""

from __future__ import annotations

import tracemalloc
from typing import Any

import pyarrow as pa
import pytest

from tests.builders.plans import make_plan
from tests.builders.records import metadata
from tests.domain.held_rig import T, held_rig
from tests.domain.maintenance_rig import STREAM, Rig
from wavestitch.batch import held_waveforms
from wavestitch.batch.held_waveforms import Selection, open_waveforms, select_held
from wavestitch.batch.stream_facts import see_tables, table_facts
from wavestitch.batch.stream_state import load_for_batch
from wavestitch.contracts.decision import Evidence, decide
from wavestitch.contracts.held import HeldLook, IdsLook
from wavestitch.contracts.maintenance import HeldPlace
from wavestitch.contracts.reasons import Reason
from wavestitch.contracts.stream import Limits
from wavestitch.maintain import actions
from wavestitch.tables.held.held_removal import held_places

WAVEFORMS, CHUNKS, SAID = 3, 1000, 15_000
BIG = metadata(T, pad="a" * SAID)


@pytest.fixture(scope="module")
def rig(tmp_path_factory: pytest.TempPathFactory) -> Rig:
    held = [(f"w{n}", seq, b"\1\0", Reason.OPEN) for n in range(WAVEFORMS) for seq in range(CHUNKS)]
    return held_rig(tmp_path_factory.mktemp("held"), held, meta=BIG, count=CHUNKS + 1)


@pytest.mark.parametrize(
    "look", [HeldLook(ids=frozenset({"w0", "w1", "w2"})), HeldLook(chunks=True)], ids=["of some", "of all"]
)
def test_metadata_that_chunks_have_in_common_is_in_memory_once(
    rig: Rig, look: HeldLook, caplog: pytest.LogCaptureFixture
) -> None:
    head, before = rig.tables.head(), pa.default_memory_pool()
    pool = pa.proxy_memory_pool(before)
    pa.set_memory_pool(pool)
    try:
        found = rig.tables.held(head.held, look)
    finally:
        pa.set_memory_pool(before)
    assert len(found) == WAVEFORMS * CHUNKS
    assert not caplog.records
    assert len({id(h.chunk.meta) for h in found}) == 1
    assert len(found[0].chunk.meta) > SAID
    most = WAVEFORMS * CHUNKS * SAID // 4
    assert pool.max_memory() < most, f"{pool.max_memory()} bytes were taken to read them"


def test_waveforms_are_loaded_as_many_at_once_as_have_so_many_chunks_together(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    tables, loaded = rig.tables, []
    look_at = tables.held

    def noting(mark: object, look: HeldLook) -> object:
        loaded.append(sorted(look.ids))
        return look_at(mark, look)  # type: ignore[arg-type]

    monkeypatch.setattr(tables, "held", noting)
    monkeypatch.setattr(held_waveforms, "_ROWS_AT_ONCE", 2 * CHUNKS)
    found = select_held(tables, rig.deployment.stream(STREAM), Selection())
    assert [w.waveform_id for w in found] == ["w0", "w1", "w2"]
    assert loaded == [["w0", "w1"], ["w2"]]


def test_what_is_asked_for_by_name_or_waits_is_loaded_some_at_a_time_too(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    tables, loaded = rig.tables, []
    look_at = tables.held

    def noting(mark: object, look: HeldLook) -> object:
        found = look_at(mark, look)  # type: ignore[arg-type]
        loaded.append(len(found))
        return found

    monkeypatch.setattr(tables, "held", noting)
    monkeypatch.setattr(held_waveforms, "_ROWS_AT_ONCE", CHUNKS)
    stream, head = rig.deployment.stream(STREAM), tables.head()
    assert head is not None
    assert len(list(select_held(tables, stream, Selection(ids=("w0", "w1", "w2"))))) == WAVEFORMS
    assert len(list(open_waveforms(tables, stream, head))) == WAVEFORMS
    facts = table_facts(rig.deployment, STREAM)
    assert (facts.open, facts.waiting, facts.counted) == (WAVEFORMS * CHUNKS, WAVEFORMS, True)
    assert set(loaded) == {CHUNKS}
    some = see_tables(rig.deployment, STREAM, most=CHUNKS)
    assert (some.open, some.quarantined, some.counted) == (CHUNKS, None, False)
    loaded.clear()
    assert see_tables(rig.deployment, STREAM, most=CHUNKS - 1).open == 0
    assert not loaded, "one that has more is counted, and not loaded"


def test_of_the_ids_the_first_are_in_memory_and_all_come_in_order(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    head = rig.tables.head()
    assert head is not None
    every = {f"w{n}": CHUNKS for n in range(WAVEFORMS)}
    assert rig.tables.held_ids(head.held, IdsLook(most=1)) == {"w0": CHUNKS}
    assert rig.tables.held_ids(head.held, IdsLook(after="w0", most=1)) == {"w1": CHUNKS}
    monkeypatch.setattr(held_waveforms, "_IDS_AT_ONCE", 1)
    assert dict(held_waveforms.held_ids(rig.tables, head.held, IdsLook())) == every


def test_the_nightly_look_at_what_is_held_takes_no_memory_for_what_its_producer_says(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    rig.publish("w1")  # by another piece, so that what is held of it stays
    loaded: list[int] = []

    def noting(*args: Any) -> list[HeldPlace]:
        found = held_places(*args)
        loaded.append(len(found))
        return found

    monkeypatch.setattr(actions, "held_places", noting)
    monkeypatch.setattr(held_waveforms, "_ROWS_AT_ONCE", CHUNKS)
    before = pa.default_memory_pool()
    pool = pa.proxy_memory_pool(before)
    pa.set_memory_pool(pool)
    tracemalloc.start()
    try:
        report = rig.maintain("held", apply=True)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
        pa.set_memory_pool(before)
    assert loaded == [CHUNKS], "what is not published is not loaded, and no other waveform beside the one that is"
    assert report.actions[0].count == 0
    most = CHUNKS * SAID // 2
    assert peak < most, f"{peak} bytes of objects"
    assert pool.max_memory() < most, f"{pool.max_memory()} bytes of columns"


def test_by_default_no_more_may_be_held_than_a_batch_that_takes_all_of_it_up_has_memory_for(rig: Rig) -> None:
    head, stream = rig.tables.head(), rig.deployment.stream(STREAM)
    assert head is not None
    # Some of them, so that what a look costs once does not count.
    places = {"positions": dict(head.positions), "ends": dict(head.positions), "partitions": len(head.positions)}
    here = {"base_sequence": head.sequence, "generation": head.generation, "watermark_ms": head.watermark_ms}
    plan = make_plan(stream=stream, topic_id=head.topic_id, ranges=(), units=(), why={}, **places, **here)
    tracemalloc.start()
    try:
        now = load_for_batch(rig.tables, plan, ())
        made = decide(plan, Evidence((), {}, {}), head=now.head, held=now.held, published=now.published)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    rows = WAVEFORMS * CHUNKS
    assert len(made.fates) == rows
    assert peak / rows * Limits().max_held_rows < 4 << 30, f"{peak / rows:.0f} bytes a row"
