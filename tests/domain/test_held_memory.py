"""What is held takes of memory what it is, not what its producer says of each chunk, over real tables."""

from __future__ import annotations

import tracemalloc
from typing import Any

import pyarrow as pa
import pytest

from tests.builders.records import metadata
from tests.domain.held_rig import T, held_rig
from tests.domain.maintenance_rig import STREAM, Rig
from wavestitch.batch import held_waveforms
from wavestitch.batch.held_waveforms import Selection, select_held
from wavestitch.contracts.held import HeldLook
from wavestitch.contracts.maintenance import HeldPlace
from wavestitch.contracts.reasons import Reason
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
