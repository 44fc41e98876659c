"""A stream on the broker that knows its users, entered as one part of the product or another; and what each part does.

`GRANTS` is the table of docs/threat-model.md, and a test holds the two together.
"""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from confluent_kafka import KafkaException

from consumers.unit_reader import read_here
from tests.builders.recordings import cut, recordings
from tests.deployment_rig import STREAM, DeploymentRig, make_deployment_rig
from tests.security.secure_broker import Grant, SecureBroker
from wavestitch.batch.deployment import Deployment
from wavestitch.batch.deployment_edges import DeploymentEdges
from wavestitch.batch.plan import PlanRequest
from wavestitch.batch.rewind import Target, apply_rewind, plan_rewind
from wavestitch.batch.steps import step_commit_offsets, step_plan, step_read
from wavestitch.contracts.quantities import Partition
from wavestitch.producers.sender import send_chunks
from wavestitch.settings import load_settings

TOPIC_FACTS: list[Grant] = [("topic", "DESCRIBE"), ("topic", "DESCRIBE_CONFIGS")]
TOPIC_READ: list[Grant] = [("topic", "READ"), ("topic", "DESCRIBE_CONFIGS")]
GRANTS: dict[str, list[Grant]] = {
    "producer": [("topic", "WRITE"), ("topic", "DESCRIBE_CONFIGS")],
    "watcher": [*TOPIC_FACTS, ("group", "DESCRIBE")],
    "planner": [*TOPIC_READ, ("group", "READ")],
    "reader": TOPIC_READ,
    "committer": [*TOPIC_READ, ("group", "READ")],
    "rewinder": [*TOPIC_READ, ("group", "READ")],
}


@dataclass(frozen=True)
class SecureDeployment:
    """`whole.deployment` has no user: what it does beside Kafka needs none."""

    broker: SecureBroker
    whole: DeploymentRig

    def enter(self, user: str, **options: str) -> Deployment:
        """The deployment with this user's settings; `options` on top, `_` for `.`."""
        more = {key.replace("_", "."): value for key, value in options.items()}
        found = {**self.broker.options(user), **more}
        env = {f"WAVESTITCH_KAFKA__OPTIONS__{key.upper()}": value for key, value in found.items()}
        return Deployment(load_settings({"WAVESTITCH_CONFIG": str(self.whole.folder / "wavestitch.toml"), **env}))

    def enter_by_token(self, token: Path) -> Deployment:
        """The deployment of whoever the token in that file is for."""
        options = {
            "security.protocol": "SASL_SSL",
            "sasl.mechanism": "OAUTHBEARER",
            "ssl.ca.location": str(self.broker.certificates.ca),
        }
        env = {f"WAVESTITCH_KAFKA__OPTIONS__{key.upper()}": value for key, value in options.items()}
        env["WAVESTITCH_KAFKA__TOKEN"] = f"file:{token}"
        return Deployment(load_settings({"WAVESTITCH_CONFIG": str(self.whole.folder / "wavestitch.toml"), **env}))

    def stands(self) -> tuple[Any, Any]:
        """The head, and the group's offsets as the owner sees them."""
        deployment = self.enter("owner")
        stream = deployment.stream(STREAM)
        return deployment.tables(STREAM).head(), deployment.log.group_offsets(
            stream.group, stream.topic, [Partition(0), Partition(1)]
        )

    def forget_group(self) -> None:
        """As if the group's offsets had expired: the next plan has to write them again."""
        with contextlib.suppress(KafkaException):  # it was forgotten already
            self.broker.admin.delete_consumer_groups([self.whole.group])[self.whole.group].result(30)


def make_secure_site(
    folder: Path,
    broker: SecureBroker,
    *,
    java_home: Path,
    stream: str = "",
    configs: Mapping[str, str] | None = None,
) -> SecureDeployment:
    """A stream with a topic of two partitions and an owner who may do everything with both."""
    topic = f"s-{uuid.uuid4().hex[:10]}"
    broker.make_topic(topic, partitions=2, configs=configs)
    whole = make_deployment_rig(
        folder, bootstrap=broker.broker.bootstrap, topic=topic, java_home=java_home, stream=stream
    )
    broker.add_user("owner")
    broker.grant({"owner": [("topic", "ALL"), ("group", "ALL")]}, topic=topic, group=whole.group)
    return SecureDeployment(broker, whole)


def produce(deployment: Deployment, plan_id: str) -> None:
    stream = deployment.stream(STREAM)
    chunks = cut(recordings(1, samples=600, seed=9, prefix="more"))
    send_chunks(chunks, topic=stream.topic, settings=deployment.kafka, deadline_seconds=10)


def watch(deployment: Deployment, plan_id: str) -> None:
    step_plan(DeploymentEdges(deployment, STREAM), PlanRequest(), apply=False)


def plan(deployment: Deployment, plan_id: str) -> None:
    step_plan(DeploymentEdges(deployment, STREAM), PlanRequest())


def read(deployment: Deployment, plan_id: str) -> None:
    step_read(DeploymentEdges(deployment, STREAM, read=read_here), plan_id, [0])


def commit(deployment: Deployment, plan_id: str) -> None:
    step_commit_offsets(DeploymentEdges(deployment, STREAM), plan_id)


def rewind(deployment: Deployment, plan_id: str) -> None:
    log, tables, stream = deployment.log, deployment.tables(STREAM), deployment.stream(STREAM)
    head = tables.head()
    assert head is not None
    moved = any(at.next_offset for at in head.positions.values())
    # Where it stands already is no place to rewind to.
    to = Target(word="earliest" if moved else "latest")
    found = plan_rewind(stream, to, log=log, tables=tables, who="a test", why="to see it")
    apply_rewind(stream, found, accept_skip=not moved, log=log, tables=tables)


JOBS: dict[str, Callable[[Deployment, str], None]] = {
    "producer": produce,
    "watcher": watch,
    "planner": plan,
    "reader": read,
    "committer": commit,
    "rewinder": rewind,
}
"""What each part does with Kafka; the second argument is the id of a plan that was made before."""
