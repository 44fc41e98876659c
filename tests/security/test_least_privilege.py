"""Each part does its work with exactly the documented permissions, and nothing beyond it (check 7, I4, I7)."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import ConsumerGroupTopicPartitions, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, NewPartitions, NewTopic

from consumers.unit_reader import read_here
from spark_apps.in_process import stitch_here
from tests.builders.recordings import cut, recordings
from tests.conftest import ROOT
from tests.deployment_rig import STREAM, plan_on
from tests.security.secure_broker import SecureBroker, binding
from tests.security.secure_deployment import GRANTS, JOBS, SecureDeployment, make_secure_site
from wavestitch.batch.deployment_edges import DeploymentEdges
from wavestitch.batch.results import together
from wavestitch.batch.steps import (
    step_commit_offsets,
    step_publish,
    step_read,
    step_reassemble,
    step_validate,
)
from wavestitch.contracts.errors import Terminal
from wavestitch.contracts.position import parse_tag
from wavestitch.kafka import raw_log
from wavestitch.kafka.client_settings import admin_config
from wavestitch.producers.sender import send_chunks

LACKING = [(part, i) for part, grants in GRANTS.items() for i in range(len(grants))]
MAY_NOT = [
    ("producer", "watcher"),
    ("producer", "planner"),
    ("producer", "reader"),
    ("producer", "committer"),
    ("producer", "rewinder"),
    ("watcher", "producer"),
    ("watcher", "reader"),
    ("watcher", "committer"),
    ("planner", "producer"),
    ("reader", "producer"),
    ("reader", "watcher"),
    ("reader", "planner"),
    ("reader", "committer"),
    ("reader", "rewinder"),
    ("committer", "producer"),
    ("rewinder", "producer"),
]
AT_ONCE = 8.0
"""Seconds; far below the deadlines of the requests that are refused."""


@dataclasses.dataclass(frozen=True)
class Prepared:
    """A stream with records, a head, and a plan whose batch is not carried out."""

    secure: SecureDeployment
    plan_id: str


@pytest.fixture(scope="module")
def prepared(secure_broker: SecureBroker, java_home: Path, tmp_path_factory: pytest.TempPathFactory) -> Prepared:
    secure = make_secure_site(tmp_path_factory.mktemp("deployment") / "s", secure_broker, java_home=java_home)
    users = dict(GRANTS)
    for part, i in LACKING:
        users[_without(part, i)] = [g for n, g in enumerate(GRANTS[part]) if n != i]
    for user in users:
        secure_broker.add_user(user)
    secure_broker.grant(users, topic=secure.whole.topic, group=secure.whole.group)
    owner = secure.enter("owner")
    send_chunks(cut(recordings(3)), topic=secure.whole.topic, settings=owner.kafka)
    return Prepared(secure, plan_on(DeploymentEdges(owner, STREAM)).plan_id)


def _without(part: str, i: int) -> str:
    return f"{part}-without-{i}"


def refused(prepared: Prepared, job: str, user: str) -> str:
    """The sentence with which this job is refused this user, at once, and with nothing moved."""
    if job == "planner":
        prepared.secure.forget_group()
    before, began = prepared.secure.stands(), time.monotonic()
    with pytest.raises(Terminal) as found:
        JOBS[job](prepared.secure.enter(user), prepared.plan_id)
    assert time.monotonic() - began < AT_ONCE, found.value.message
    assert prepared.secure.stands() == before
    return found.value.message


def test_a_batch_goes_through_with_each_step_as_its_own_principal(prepared: Prepared) -> None:
    secure, enter = prepared.secure, prepared.secure.enter
    nobody = secure.whole.deployment  # reassembling, validating and publishing ask Kafka for nothing
    planned = plan_on(DeploymentEdges(enter("planner"), STREAM))
    plan_id = planned.plan_id
    reader = DeploymentEdges(enter("reader"), STREAM, read=read_here)
    read = together([step_read(reader, plan_id, [u]) for u in planned.units])
    edges = DeploymentEdges(nobody, STREAM, submit=stitch_here)
    stitched = step_reassemble(edges, plan_id, read)
    checked = step_validate(edges, plan_id, stitched)
    step_publish(edges, plan_id, stitched, checked)
    step_commit_offsets(DeploymentEdges(enter("committer"), STREAM), plan_id)
    sent = {r.waveform_id: bytes(r.samples) for r in recordings(3)}
    assert sent.items() <= secure.whole.published().items()
    head, group = secure.stands()
    assert {p: at.offset for p, at in group.items()} == {p: at.next_offset for p, at in head.positions.items()}


@pytest.mark.parametrize("part", JOBS)
def test_each_part_does_its_work_with_what_it_was_granted(prepared: Prepared, part: str) -> None:
    if part == "planner":
        prepared.secure.forget_group()
    JOBS[part](prepared.secure.enter(part), prepared.plan_id)


@pytest.mark.parametrize(("part", "i"), LACKING, ids=str)
def test_without_any_one_of_its_permissions_a_part_is_told_what_it_lacks(prepared: Prepared, part: str, i: int) -> None:
    said = refused(prepared, part, _without(part, i))
    assert "AUTHORIZATION_FAILED" in said or "uthorization failed" in said, said
    assert "give this user" in said or "grant" in said, said


def test_a_reader_that_loses_its_right_before_holes_are_proven_says_so_and_keeps_nothing(
    prepared: Prepared, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the client reads is there by then; what shows that nothing is missing asks the broker once more."""
    secure, user, read = prepared.secure, "reader-for-a-while", ("topic", "READ")
    names = {"topic": secure.whole.topic, "group": secure.whole.group}
    secure.broker.add_user(user)
    secure.broker.grant({user: [*GRANTS["reader"], ("topic", "DESCRIBE")]}, **names)  # it finds the leaders still
    _abort_one(secure)
    plan_id = plan_on(DeploymentEdges(secure.enter("owner"), STREAM)).plan_id
    connect = raw_log.RawLog.__enter__
    taken = []

    def too_late(raw: raw_log.RawLog) -> raw_log.RawLog:
        taken.append(read)
        secure.broker.revoke(user, read, **names)
        return connect(raw)

    monkeypatch.setattr(raw_log.RawLog, "__enter__", too_late)
    edges = DeploymentEdges(secure.enter(user), STREAM, read=read_here)
    with pytest.raises(Terminal, match=r"fetching raw record .*TOPIC_AUTHORIZATION_FAILED.*give this user Read"):
        step_read(edges, plan_id, [0])
    assert taken == [read], "and right up to the proof it read"
    assert not list((secure.whole.deployment.settings.landing / STREAM / plan_id).glob("receipt-*"))


def _abort_one(secure: SecureDeployment) -> None:
    """The holes: an aborted record, and the markers."""
    name = f"aborts-{secure.whole.topic}"
    may = binding("owner", ("transactional_id", "ALL"), {"transactional_id": name})
    for future in secure.broker.admin.create_acls([may]).values():
        future.result(30)
    producer = Producer({**admin_config(secure.enter("owner").kafka), "transactional.id": name})
    producer.init_transactions()
    for _ in range(2):
        producer.begin_transaction()
        for partition in (0, 1):
            producer.produce(secure.whole.topic, b"never", partition=partition)
        producer.flush()
        producer.abort_transaction()


@pytest.mark.parametrize(("part", "job"), MAY_NOT)
def test_a_part_is_refused_another_ones_work(prepared: Prepared, part: str, job: str) -> None:
    refused(prepared, job, part)


def test_a_rewind_by_somebody_who_may_not_move_the_group_is_in_force_and_says_so(prepared: Prepared) -> None:
    """Positions are the table's: whoever may write it may rewind. The group only shows it, from the next plan on."""
    before = prepared.secure.stands()
    with pytest.raises(Terminal, match=r"is in force .*GROUP_AUTHORIZATION_FAILED.*The next plan shows it there"):
        JOBS["rewinder"](prepared.secure.enter("watcher"), prepared.plan_id)
    head, group = prepared.secure.stands()
    assert head.generation == before[0].generation + 1
    assert group == before[1]
    JOBS["planner"](prepared.secure.enter("planner"), prepared.plan_id)
    shown = {parse_tag(at.metadata) for at in prepared.secure.stands()[1].values()}
    assert {(tag.generation, tag.sequence) for tag in shown} == {(head.generation, head.sequence)}


def _beyond(admin: AdminClient, topic: str) -> dict[str, Callable[[], Any]]:
    """What no part of the product may do, ours or anybody's."""
    other = ConsumerGroupTopicPartitions("somebody-elses", [TopicPartition(topic, 0, 1)])
    gift = binding("anybody", ("topic", "ALL"), {"topic": topic})
    entry = ConfigEntry("retention.ms", "1", incremental_operation=AlterConfigOpType.SET)
    config = ConfigResource(ConfigResource.Type.TOPIC, topic, incremental_configs=[entry])
    return {
        "make a topic": lambda: admin.create_topics([NewTopic("mine", 1, 1)])["mine"].result(10),
        "delete the topic": lambda: admin.delete_topics([topic])[topic].result(10),
        "delete records": lambda: next(iter(admin.delete_records([TopicPartition(topic, 0, 1)]).values())).result(10),
        "add partitions": lambda: admin.create_partitions([NewPartitions(topic, 9)])[topic].result(10),
        "configure the topic": lambda: admin.incremental_alter_configs([config])[config].result(10),
        "move another group": lambda: _raise_first(admin.alter_consumer_group_offsets([other])["somebody-elses"]),
        "delete a group": lambda: admin.delete_consumer_groups(["somebody-elses"])["somebody-elses"].result(10),
        "grant permissions": lambda: admin.create_acls([gift])[gift].result(10),
    }


def _raise_first(future: Any) -> None:
    for at in future.result(10).topic_partitions:
        if at.error is not None:
            raise KafkaException(at.error)


def _said_to(act: Callable[[], Any]) -> int:
    """The broker's error code; 0 where it did as asked."""
    try:
        act()
    except KafkaException as raised:
        return int(raised.args[0].code())
    return 0


@pytest.mark.parametrize("part", GRANTS)
def test_no_part_may_change_topics_other_groups_or_permissions(prepared: Prepared, part: str) -> None:
    refusals = {
        KafkaError.TOPIC_AUTHORIZATION_FAILED,
        KafkaError.GROUP_AUTHORIZATION_FAILED,
        KafkaError.CLUSTER_AUTHORIZATION_FAILED,
    }
    admin = AdminClient(admin_config(prepared.secure.enter(part).kafka))
    for what, act in _beyond(admin, prepared.secure.whole.topic).items():
        assert _said_to(act) in refusals, f"{part} may {what}"


def test_the_documented_table_is_what_is_granted_here() -> None:
    text = (ROOT / "docs" / "threat-model.md").read_text()
    for part, grants in GRANTS.items():
        for kind in ("topic", "group"):
            found = ", ".join(_title(op) for k, op in grants if k == kind) or "none"
            grants_row = f"| {part} |"
            (row,) = [line for line in text.splitlines() if line.startswith(grants_row)]
            assert f"| {found} |" in row, f"docs/threat-model.md: {part} has {kind} {found}"


def _title(operation: str) -> str:
    return "".join(word.capitalize() for word in operation.split("_"))
