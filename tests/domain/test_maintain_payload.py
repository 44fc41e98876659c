"""What maintenance lets go of in an object store that has landed payload, and what it never touches."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from consumers import pending_rows
from tests.builders.recordings import cut, recordings
from tests.deployment_rig import STREAM
from tests.domain.maintenance_rig import went
from tests.domain.payload_rig import BATCH_BYTES, PIECE_BYTES, PLAN_ID, Whole, whole_in
from tests.hostile.landed_deployment import landed_edges
from tests.object_store import Fault, ObjectStore, object_store
from wavestitch.batch.steps import step_read
from wavestitch.contracts import payload_apart

DAY_MS = 86_400_000


@pytest.fixture(scope="module")
def server() -> Iterator[ObjectStore]:
    with object_store() as found:
        yield found


@pytest.fixture(autouse=True)
def _small_objects(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pending_rows, "BATCH_BYTES", BATCH_BYTES)
    monkeypatch.setattr(payload_apart, "PIECE_BYTES", PIECE_BYTES)


@pytest.fixture
def whole(tmp_path: Path, server: ObjectStore) -> Iterator[Whole]:
    with whole_in(tmp_path, server) as found:
        yield found


def test_a_store_that_lets_nothing_go_holds_no_offsets_up_and_is_asked_again(whole: Whole) -> None:
    sent = recordings(1)
    whole.send(cut(sent))
    whole.store.fault = lambda method, _path: Fault.DENIED if method == "POST" else None
    whole.batch()
    assert whole.objects()
    assert whole.deployment.memory.group, "no offsets stand"
    with pytest.raises(Exception, match=r"landing of .*: the object store refuses DeleteObjects"):
        whole.maintain("landing", finished_batches=30 * 86400)
    whole.store.fault = lambda _method, _path: None
    assert went(whole.maintain("landing", finished_batches=30 * 86400), "landing") == 1
    assert whole.objects() == set()
    assert whole.rig.published() == {r.waveform_id: bytes(r.samples) for r in sent}


def test_what_a_listing_does_not_show_yet_goes_with_the_batch_s_folder(whole: Whole) -> None:
    whole.send(cut(recordings(1)))
    plan_id = whole.plan()
    step_read(landed_edges(whole.deployment), plan_id)
    late = min(whole.objects())
    whole.store.unlisted = late.rpartition("/")[2]
    whole.take_up(plan_id)
    assert len(whole.rig.published()) == 1
    whole.store.unlisted = ""
    assert whole.objects() == {late}
    whole.maintain("landing")
    assert whole.objects() == set()


def test_payload_without_a_batch_goes_once_it_is_old_and_nothing_else_does(whole: Whole) -> None:
    whole.send(cut(recordings(2, samples=1500)))
    plan_id = whole.plan()
    step_read(landed_edges(whole.deployment), plan_id)
    of_batch = whole.objects()
    name = min(of_batch).rpartition("/")[2]
    dead = f"payload/{STREAM}/{PLAN_ID}/{name}"
    others = {f"payload/other/{PLAN_ID}/{name}", f"payload/{STREAM}/{PLAN_ID}x/{name}", "elsewhere/x"}
    for each in (dead, *others):
        whole.put(each, b"x")
    assert went(whole.maintain("leftovers", orphan_age=2 * 86400, ahead_ms=DAY_MS), "leftovers") == 0
    assert went(whole.maintain("leftovers", orphan_age=2 * 86400, ahead_ms=3 * DAY_MS), "leftovers") == 1
    assert whole.store.names("") == of_batch | others
    whole.take_up(plan_id)
    assert len(whole.rig.published()) == 2


def test_where_the_landing_of_the_stream_is_not_there_nothing_goes(whole: Whole) -> None:
    whole.send(cut(recordings(1)))
    step_read(landed_edges(whole.deployment), whole.plan())
    before = whole.objects()
    landing = whole.folder / "landing"
    landing.rename(whole.folder / "away")
    assert went(whole.maintain("leftovers", ahead_ms=30 * DAY_MS), "leftovers") == 0
    assert whole.objects() == before
