"""Real records through a real broker, Spark, Great Expectations and Iceberg, from plan to moved offsets."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from tests.builders.recordings import cut, recordings
from tests.conftest import TopicFactory
from tests.deployment_rig import STREAM, DeploymentRig, eventually, make_deployment_rig
from wavestitch.batch.held_decision import carry_out, plan_held
from wavestitch.batch.held_waveforms import Selection
from wavestitch.batch.plan import PlanRequest
from wavestitch.batch.request import rewind_target
from wavestitch.batch.rewind import apply_rewind, plan_rewind
from wavestitch.batch.stream_state import load_state
from wavestitch.contracts.held import held_states
from wavestitch.contracts.held_choice import HeldAction
from wavestitch.contracts.plan import PlanKind, Scope
from wavestitch.contracts.position import parse_tag
from wavestitch.contracts.quantities import Milliseconds, Partition
from wavestitch.contracts.reasons import Reason
from wavestitch.local.broker import Broker


@pytest.fixture
def whole(tmp_path: Path, broker: Broker, topic_factory: TopicFactory, java_home: Path) -> DeploymentRig:
    topic = topic_factory(partitions=3)
    return make_deployment_rig(tmp_path / "deployment", bootstrap=broker.bootstrap, topic=topic, java_home=java_home)


@pytest.fixture
def whole_by(
    request: pytest.FixtureRequest, tmp_path: Path, broker: Broker, topic_factory: TopicFactory, java_home: Path
) -> DeploymentRig:
    """Stitched by what the parameter says."""
    return make_deployment_rig(
        tmp_path / "deployment",
        bootstrap=broker.bootstrap,
        topic=topic_factory(partitions=3),
        java_home=java_home,
        spark=None if request.param == "spark-submit" else request.getfixturevalue("spark_server"),
    )


@pytest.fixture
def whole_in(
    request: pytest.FixtureRequest, tmp_path: Path, broker: Broker, topic_factory: TopicFactory, java_home: Path
) -> DeploymentRig:
    """Its catalog where the parameter says."""
    return make_deployment_rig(
        tmp_path / "deployment",
        bootstrap=broker.bootstrap,
        topic=topic_factory(partitions=3),
        java_home=java_home,
        catalog=request.getfixturevalue(request.param),
    )


@pytest.mark.parametrize("whole_in", ["catalog_in_postgresql", "catalog_by_rest"], indirect=True)
def test_with_another_catalog_backfill_decisions_rewind_and_what_heals_publish_each_waveform_once(
    whole_in: DeploymentRig,
) -> None:
    whole = whole_in
    start_ns, hour = time.time_ns(), 3600 * 1_000_000_000
    sent = recordings(6, start_ns=start_ns)  # an hour apart
    chunks = cut(sent)
    late = chunks[-1]
    whole.send([*chunks[:-1], chunks[0]])
    whole.plan()  # the first head; this plan is left
    back = PlanRequest(PlanKind.BACKFILL, scope=Scope(start_ns - 1, start_ns + hour))
    assert whole.run_without_spark(request=back)["published"]["waveforms"]["published"] == 1
    first = whole.run_without_spark()["published"]
    assert first["waveforms"] == {"published": 4, "open": 1, "quarantined": 0}
    assert first["counts"]["replay"] > 0
    for action in (HeldAction.DISCARD, HeldAction.RESTORE):
        wanted = Selection(ids=(late.waveform_id,))
        carry_out(whole.edges(), plan_held(whole.edges(), action, wanted, who="op", why="to see").plan)
    tables, stream, log = whole.deployment.tables(STREAM), whole.deployment.stream(STREAM), whole.deployment.log
    to_the_first = rewind_target("earliest", None)
    found = plan_rewind(stream, to_the_first, log=log, tables=tables, who="op", why="once more")
    apply_rewind(stream, found, accept_skip=False, log=log, tables=tables)
    again = whole.run_without_spark()["published"]
    assert again["waveforms"]["published"] == 0
    assert again["counts"]["replay"] > 0
    whole.send([late])
    whole.run_without_spark()
    assert whole.published() == {r.waveform_id: bytes(r.samples) for r in sent}
    assert all(b.identity_balances for b in tables.batches() if b.partitions)


@pytest.mark.parametrize("whole_by", ["spark-submit", "a Spark that is there"], indirect=True)
def test_ten_waveforms_arrive_and_the_offsets_move_last(whole_by: DeploymentRig) -> None:
    whole = whole_by
    sent = recordings(10)
    whole.send(cut(sent))
    done = whole.run()
    assert whole.published() == {r.waveform_id: bytes(r.samples) for r in sent}
    assert done["published"]["waveforms"] == {"published": 10, "open": 0, "quarantined": 0}
    assert done["published"]["identity_balances"]

    log = whole.deployment.log
    head = whole.deployment.tables(STREAM).head()
    assert head is not None
    ends = log.ends(whole.topic, [Partition(0), Partition(1), Partition(2)])
    group = log.group_offsets(whole.group, whole.topic, [Partition(0), Partition(1), Partition(2)])
    for p in range(3):
        found = group[Partition(p)]
        assert found is not None
        assert head.positions[Partition(p)].next_offset == found.offset == ends[Partition(p)].stable_end
        tag = parse_tag(found.metadata)
        assert tag is not None
        assert tag.version == head.version
    assert "nothing" in whole.run()


def test_what_a_second_delivery_completes_is_published_then_and_once(whole: DeploymentRig) -> None:
    sent = recordings(4)
    chunks = cut(sent)
    late = [c for i, c in enumerate(chunks) if i % 5 == 2]
    whole.send([c for i, c in enumerate(chunks) if i % 5 != 2] + [chunks[0]])
    first = whole.run()["published"]
    assert first["counts"]["duplicate"] == 1
    assert first["waveforms"]["open"] == 4
    assert whole.published() == {}
    whole.send(late)
    second = whole.run()["published"]
    assert second["counts"]["carried_in"] == first["counts"]["carried_out"]
    assert whole.published() == {r.waveform_id: bytes(r.samples) for r in sent}


def test_what_has_waited_too_long_expires_in_a_batch_of_its_own_and_a_late_chunk_still_heals_it(
    tmp_path: Path, broker: Broker, topic_factory: TopicFactory, java_home: Path
) -> None:
    whole = make_deployment_rig(
        tmp_path / "deployment",
        bootstrap=broker.bootstrap,
        topic=topic_factory(),
        java_home=java_home,
        stream="allowed_lateness: 1 s\nidle: 1 s\n",
    )
    sent = recordings(1)
    *early, last = cut(sent)
    whole.send(early)
    assert whole.run_without_spark()["published"]["waveforms"]["open"] == 1

    def expired() -> bool:
        done = whole.run_without_spark()
        return "nothing" not in done and done["published"]["reasons"] == {"incomplete": len(early)}

    eventually(expired)
    assert "nothing" in whole.run_without_spark()
    now = load_state(whole.deployment.tables(STREAM), topic_id="")
    assert held_states(now.held, watermark=now.head.watermark_ms, allowed_lateness=Milliseconds(1000)) == [
        Reason.INCOMPLETE
    ] * len(early)
    whole.send([last])
    whole.run_without_spark()
    assert whole.published() == {r.waveform_id: bytes(r.samples) for r in sent}


def test_a_backfill_publishes_what_starts_in_its_interval_and_moves_nothing(whole: DeploymentRig) -> None:
    # Its records are found by their own time, so they must be near the waveforms' start.
    start_ns = time.time_ns()
    sent = recordings(3, start_ns=start_ns)  # an hour apart
    whole.send(cut(sent))
    whole.plan()  # the first head; this plan is left
    before = whole.deployment.tables(STREAM).head()
    assert before is not None
    hour = 3600 * 1_000_000_000
    scope = Scope(start_ns - 1, start_ns + hour)
    done = whole.run_without_spark(request=PlanRequest(PlanKind.BACKFILL, scope=scope))["published"]
    assert whole.published() == {sent[0].waveform_id: bytes(sent[0].samples)}
    assert done["counts"]["out_of_scope"] == 2 * len(cut(sent)) // 3
    after = whole.deployment.tables(STREAM).head()
    assert after is not None
    assert (after.positions, after.generation) == (before.positions, before.generation)
    # The ingest that comes there later finds it published.
    later = whole.run_without_spark()["published"]
    assert later["counts"]["replay"] == len(cut(sent)) // 3
    assert whole.published() == {r.waveform_id: bytes(r.samples) for r in sent}
