"""What an operator reads when a plan is refused, and the way out that the sentence names (I1, I5, I7, I8)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient

from tests.builders.recordings import cut, recordings
from tests.conftest import TopicFactory
from tests.deployment_rig import STREAM, DeploymentRig, eventually, make_deployment_rig
from wavestitch.batch import deployment_edges, steps
from wavestitch.batch.plan import PlanRequest
from wavestitch.batch.rewind import Target, apply_rewind, plan_rewind
from wavestitch.batch.run import planned_to_json
from wavestitch.contracts.errors import DataLost, Refused, Transient
from wavestitch.contracts.offset_range import OffsetRange
from wavestitch.contracts.position import HeadKind
from wavestitch.contracts.quantities import Partition
from wavestitch.local.broker import Broker, run_kafka_tool

RESET = "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"


@pytest.fixture
def whole(tmp_path: Path, broker: Broker, topic_factory: TopicFactory, java_home: Path) -> DeploymentRig:
    return make_deployment_rig(
        tmp_path / "deployment", bootstrap=broker.bootstrap, topic=topic_factory(partitions=2), java_home=java_home
    )


def plan(whole: DeploymentRig) -> dict[str, Any]:
    return planned_to_json(steps.step_plan(whole.edges(), PlanRequest()))


def rewound(whole: DeploymentRig, target: Target, *, accept_skip: bool = False) -> None:
    tables, log = whole.deployment.tables(STREAM), whole.deployment.log
    stream = whole.deployment.stream(STREAM)
    found = plan_rewind(stream, target, log=log, tables=tables, who="a test", why="to see it")
    apply_rewind(stream, found, accept_skip=accept_skip, log=log, tables=tables)


def test_a_missing_topic_is_named(tmp_path: Path, broker: Broker, java_home: Path) -> None:
    whole = make_deployment_rig(
        tmp_path / "deployment", bootstrap=broker.bootstrap, topic="nobody-made-it", java_home=java_home
    )
    with pytest.raises(Refused, match="nobody-made-it"):
        plan(whole)


def test_a_compacted_topic_is_refused(
    tmp_path: Path, broker: Broker, topic_factory: TopicFactory, java_home: Path
) -> None:
    topic = topic_factory(configs={"cleanup.policy": "compact"})
    whole = make_deployment_rig(tmp_path / "deployment", bootstrap=broker.bootstrap, topic=topic, java_home=java_home)
    with pytest.raises(Refused, match=r"cleanup\.policy compact.*set cleanup\.policy=delete"):
        plan(whole)


def test_live_members_of_the_group_are_named(whole: DeploymentRig, broker: Broker) -> None:
    member = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": whole.group, "client.id": "somebody-else"})
    try:
        member.subscribe([whole.topic])

        def joined() -> bool:
            member.poll(0.1)
            return bool(member.assignment())

        eventually(joined)
        with pytest.raises(Refused, match=r"has live members \(.*somebody-else"):
            plan(whole)
    finally:
        member.close()


def test_a_recreated_topic_is_refused_until_somebody_begins_anew_on_it(
    whole: DeploymentRig, broker: Broker, make_topic: Callable[..., None]
) -> None:
    whole.send(cut(recordings(1)))
    plan(whole)
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    admin.delete_topics([whole.topic])[whole.topic].result(30)
    eventually(lambda: whole.topic not in admin.list_topics(timeout=10).topics)
    make_topic(broker.bootstrap, whole.topic, 1, {})
    with pytest.raises(Refused, match=r"was recreated.*--to new-topic"):
        plan(whole)
    rewound(whole, Target(word="new-topic"))
    assert "nothing" in plan(whole)


def test_retention_that_overtook_the_position_must_be_accepted_by_name(whole: DeploymentRig, broker: Broker) -> None:
    whole.send(cut(recordings(6)))
    planned = plan(whole)
    p, start, end = planned["ranges"][0]
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    admin.delete_records([TopicPartition(whole.topic, p, start + 3)])[TopicPartition(whole.topic, p)].result(30)
    with pytest.raises(DataLost, match=rf"partition {p} of .* begins at {start + 3}, the position is {start}"):
        plan(whole)
    with pytest.raises(Refused, match=rf"would skip partition {p} \[{start}, {start + 3}\)"):
        rewound(whole, Target(word="earliest"))
    rewound(whole, Target(word="earliest"), accept_skip=True)
    again = plan(whole)
    assert [p, start + 3, end] in again["ranges"]
    head = whole.deployment.tables(STREAM).head()
    assert head is not None
    assert head.skipped == (OffsetRange(p, start, start + 3),)


def test_a_reset_by_kafkas_own_tool_is_taken_over_as_a_rewind(
    whole: DeploymentRig, broker: Broker, java_home: Path, kafka_jars: Path
) -> None:
    whole.send(cut(recordings(4)))
    plan(whole)  # the first head, at the beginning
    rewound(whole, Target(word="latest"), accept_skip=True)
    assert "nothing" in plan(whole)
    tables = whole.deployment.tables(STREAM)
    before = tables.head()
    assert before is not None
    where = ["--bootstrap-server", broker.bootstrap, "--group", whole.group, "--topic", whole.topic]
    run_kafka_tool(java_home, kafka_jars, RESET, [*where, "--reset-offsets", "--to-earliest", "--execute"])
    planned = plan(whole)
    assert all(start == 0 for _, start, _ in planned["ranges"])
    assert all("reset to 0 with Kafka's tools" in why for why in planned["why"].values())
    head = tables.head()
    assert head is not None
    assert (head.kind, head.generation) == (HeadKind.ADOPTED, before.generation + 1)


def test_a_reset_forward_is_not_taken_over_by_itself(
    whole: DeploymentRig, broker: Broker, java_home: Path, kafka_jars: Path
) -> None:
    whole.send(cut(recordings(4)))
    plan(whole)
    where = ["--bootstrap-server", broker.bootstrap, "--group", whole.group, "--topic", whole.topic]
    run_kafka_tool(java_home, kafka_jars, RESET, [*where, "--reset-offsets", "--to-latest", "--execute"])
    with pytest.raises(Refused, match=r"would be skipped .*: accept that .*--to group --accept-skip [0-9]"):
        plan(whole)
    rewound(whole, Target(word="head"))
    assert "nothing" not in plan(whole)


def test_expired_group_offsets_are_written_again_from_the_head(whole: DeploymentRig, broker: Broker) -> None:
    whole.send(cut(recordings(4)))
    plan(whole)
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    admin.delete_consumer_groups([whole.group])[whole.group].result(30)
    assert whole.deployment.log.group_offsets(whole.group, whole.topic, [Partition(0), Partition(1)]) == {
        0: None,
        1: None,
    }
    planned = plan(whole)
    assert all("expired or was never written" in why for why in planned["why"].values())
    assert all(
        found is not None
        for found in whole.deployment.log.group_offsets(whole.group, whole.topic, [Partition(0), Partition(1)]).values()
    )


def test_a_full_disk_is_found_before_anything_is_read(whole: DeploymentRig, monkeypatch: pytest.MonkeyPatch) -> None:
    whole.send(cut(recordings(2)))
    # The disk's answer is the one thing here that a test cannot have for real without a disk of its own.
    monkeypatch.setattr(deployment_edges.shutil, "disk_usage", lambda _: type("Usage", (), {"free": 1000})())
    with pytest.raises(Transient, match=r"needs about 1 MiB in .*landing, which has 0 MiB free"):
        plan(whole)


def test_a_plan_made_before_a_rewind_ends_fenced(whole: DeploymentRig) -> None:
    from wavestitch.contracts.errors import Fenced  # noqa: PLC0415

    sent = recordings(3)
    whole.send(cut(sent[:1]))
    whole.run_without_spark()
    before = whole.published()
    assert len(before) == 1
    whole.send(cut(sent[1:]))
    planned = plan(whole)
    rewound(whole, Target(word="earliest"))
    with pytest.raises(Fenced, match=r"planned in generation 1, the head is in 2"):
        whole.run(plan_id=planned["plan_id"])
    assert whole.published() == before
