"""A real broker that lets in only who it knows, over TLS, and lets them do only what they were granted.

No listener is open to anyone without a password, not even the controller's. Users are SCRAM-SHA-512. By OAUTHBEARER it
believes whatever name a token without a signature says, which shows how a token gets there, and nothing about tokens.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    NewTopic,
    ResourcePatternType,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)

from tests.deployment_rig import eventually
from tests.security.certificates import Certificates, make_certificates
from wavestitch.local.broker import Broker, start_broker
from wavestitch.local.loopback_port import LOOPBACK

ADMIN = "admin"
Grant = tuple[str, str]
"""`topic` or `group`, and an operation, e.g. `("topic", "READ")`."""


@dataclass(frozen=True)
class SecureBroker:
    """`passwords`: the folder with one file a user."""

    broker: Broker
    certificates: Certificates
    passwords: Path
    admin: AdminClient

    def options(self, user: str) -> dict[str, str]:
        """The client options of the settings file, the password by reference."""
        return {
            "security.protocol": "SASL_SSL",
            "sasl.mechanism": "SCRAM-SHA-512",
            "sasl.username": user,
            "sasl.password": f"file:{self.passwords / user}",
            "ssl.ca.location": str(self.certificates.ca),
        }

    def add_user(self, user: str, password: str | None = None) -> None:
        path = self.passwords / user
        path.touch(mode=0o600)
        path.write_text(password or secrets.token_urlsafe(24))
        made = UserScramCredentialUpsertion(
            user, ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, 4096), path.read_text().encode()
        )
        self.admin.alter_user_scram_credentials([made])[user].result(30)

    def make_topic(self, topic: str, *, partitions: int, configs: Mapping[str, str] | None = None) -> None:
        wanted = NewTopic(topic, num_partitions=partitions, replication_factor=1, config=dict(configs or {}))
        self.admin.create_topics([wanted], operation_timeout=30)[topic].result(30)
        eventually(lambda: topic in self.admin.list_topics(timeout=10).topics)

    def grant(self, users: Mapping[str, Iterable[Grant]], *, topic: str, group: str) -> None:
        """Grant each user these operations on this topic and this group; returns when the broker knows of all."""
        names = {"topic": topic, "group": group}
        wanted = [binding(user, g, names) for user, grants in users.items() for g in grants]
        for future in self.admin.create_acls(wanted).values():
            future.result(30)
        eventually(lambda: set(wanted) <= set(self.admin.describe_acls(_ANY).result(30)))

    def revoke(self, user: str, grant: Grant, *, topic: str, group: str) -> None:
        gone = binding(user, grant, {"topic": topic, "group": group})
        found = AclBindingFilter(
            gone.restype, gone.name, gone.resource_pattern_type, gone.principal, gone.host, gone.operation,
            gone.permission_type,
        )  # fmt: skip
        for future in self.admin.delete_acls([found]).values():
            assert future.result(30), f"{user} had no {grant}"
        eventually(lambda: gone not in self.admin.describe_acls(_ANY).result(30))


_ANY = AclBindingFilter(
    ResourceType.ANY, None, ResourcePatternType.ANY, None, None, AclOperation.ANY, AclPermissionType.ANY
)


def binding(user: str, grant: Grant, names: Mapping[str, str]) -> AclBinding:
    kind, operation = grant
    return AclBinding(
        ResourceType[kind.upper()],
        names[kind],
        ResourcePatternType.LITERAL,
        f"User:{user}",
        "*",
        AclOperation[operation],
        AclPermissionType.ALLOW,
    )


def start_secure_broker(folder: Path, *, java_home: Path, jars: Path) -> SecureBroker:
    passwords = folder / "passwords"
    passwords.mkdir(mode=0o700, parents=True)
    certificates = make_certificates(folder, address=LOOPBACK)
    (passwords / ADMIN).touch(mode=0o600)
    (passwords / ADMIN).write_text(secrets.token_urlsafe(24))
    client = {
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "PLAIN",
        "sasl.username": ADMIN,
        "sasl.password": (passwords / ADMIN).read_text(),
        "ssl.ca.location": str(certificates.ca),
    }
    broker = start_broker(
        folder=folder / "kafka",
        java_home=java_home,
        jars=jars,
        listener="SASL_SSL",
        client=client,
        overrides=_settings(certificates, password=client["sasl.password"]),
    )
    admin = AdminClient({**client, "bootstrap.servers": broker.bootstrap})
    return SecureBroker(broker, certificates, passwords, admin)


def _settings(certificates: Certificates, *, password: str) -> dict[str, str]:
    login = f'required username="{ADMIN}" password="{password}" user_{ADMIN}="{password}";'
    plain = f"org.apache.kafka.common.security.plain.PlainLoginModule {login}"
    return {
        "listener.security.protocol.map": "SASL_SSL:SASL_SSL,CONTROLLER:SASL_SSL",
        "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-512,OAUTHBEARER",
        "sasl.mechanism.inter.broker.protocol": "PLAIN",
        "sasl.mechanism.controller.protocol": "PLAIN",
        "listener.name.controller.sasl.enabled.mechanisms": "PLAIN",
        "listener.name.controller.plain.sasl.jaas.config": plain,
        "listener.name.sasl_ssl.plain.sasl.jaas.config": plain,
        "listener.name.sasl_ssl.scram-sha-512.sasl.jaas.config": (
            "org.apache.kafka.common.security.scram.ScramLoginModule required;"
        ),
        "listener.name.sasl_ssl.oauthbearer.sasl.jaas.config": (
            "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required;"
        ),
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(certificates.server),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(certificates.ca),
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": f"User:{ADMIN}",
        "allow.everyone.if.no.acl.found": "false",
    }
