"""Three brokers as a cluster that several parties share: who comes in by a login may do little, and racks are known.

Tests themselves come in by a listener of their own, where they may do everything: they make topics, delete records,
set quotas. What the product does, it does by the operations of docs/threat-model.md and no other, on any topic and
group, since tests make theirs as they go. It reads from the rack `RACK`, whoever leads.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from confluent_kafka.admin import AclBinding, AclOperation, AclPermissionType, ResourcePatternType, ResourceType

from tests.faults.cluster import NODES, Cluster, open_cluster
from tests.product_logins import PRODUCER, PRODUCT, logins
from wavestitch.kafka.client_settings import KafkaSettings
from wavestitch.local.broker import Broker, running_broker
from wavestitch.local.loopback_port import LOOPBACK

RACK = "rack-2"
MAY: dict[str, dict[ResourceType, tuple[str, ...]]] = {
    PRODUCT: {ResourceType.TOPIC: ("READ", "DESCRIBE_CONFIGS"), ResourceType.GROUP: ("READ",)},
    PRODUCER: {ResourceType.TOPIC: ("WRITE", "DESCRIBE_CONFIGS")},
}
"""What planner, reader, committer and rewinder need, which is the same; and what a producer does."""
_MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule"


@dataclass(frozen=True)
class LoginCluster(Cluster):
    """`passwords`: by user."""

    passwords: Mapping[str, str]
    more: Mapping[str, str]

    def settings(self, node: int) -> dict[str, str]:
        at = self.ports[node]
        users = " ".join(f'user_{user}="{password}"' for user, password in self.passwords.items())
        return {
            **super().settings(node),
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,LOGIN:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT",
            "listeners": f"PLAINTEXT://{LOOPBACK}:{at.clients},LOGIN://{LOOPBACK}:{at.behind},"
            f"CONTROLLER://{LOOPBACK}:{at.controller}",
            "advertised.listeners": f"PLAINTEXT://{LOOPBACK}:{at.clients},LOGIN://{LOOPBACK}:{at.behind}",
            "sasl.enabled.mechanisms": "PLAIN",
            "listener.name.login.plain.sasl.jaas.config": f"{_MODULE} required {users};",
            "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            "super.users": "User:ANONYMOUS",
            "min.insync.replicas": "2",
            "broker.rack": f"rack-{node}",
            "replica.selector.class": "org.apache.kafka.common.replica.RackAwareReplicaSelector",
            **self.more,
        }

    def login(self, user: str) -> KafkaSettings:
        return KafkaSettings(
            ",".join(f"{LOOPBACK}:{at.behind}" for at in self.ports.values()),
            {
                "security.protocol": "SASL_PLAINTEXT",
                "sasl.mechanism": "PLAIN",
                "sasl.username": user,
                "sasl.password": self.passwords[user],
                "client.rack": RACK,
            },
        )

    def grant(self) -> None:
        wanted = [
            AclBinding(kind, "*", ResourcePatternType.LITERAL, f"User:{user}", "*", AclOperation[name], _ALLOW)
            for user, kinds in MAY.items()
            for kind, names in kinds.items()
            for name in names
        ]
        admin = self.admin  # named: an answer dies with its client
        for future in admin.create_acls(wanted).values():
            future.result(30)


_ALLOW = AclPermissionType.ALLOW


@contextmanager
def login_cluster(folder: Path, *, java_home: Path, jars: Path, more: Mapping[str, str]) -> Iterator[Broker]:
    """As tests know a broker: its address is theirs, at all nodes; the product's is behind `as_product`. `more`:
    settings of each node."""
    found = open_cluster(folder, java_home=java_home, jars=jars)
    passwords = {user: secrets.token_urlsafe(24) for user in MAY}
    cluster = LoginCluster(found.folder, found.java_home, found.jars, found.ports, passwords, more)
    try:
        cluster.start_all()
        cluster.grant()
        first = running_broker(cluster.node_folder(NODES[0]))
        assert first is not None
        with logins(cluster.bootstrap, {user: cluster.login(user) for user in MAY}):
            yield Broker(cluster.bootstrap, first.pid, folder)
    finally:
        cluster.stop_all()
