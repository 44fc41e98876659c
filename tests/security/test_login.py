"""Who cannot prove who they are is not let in, is told so at once, and moves nothing (check 7, row 30)."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from consumers.log_view import KafkaLog
from consumers.range_scan import ScanFailed, Source, scan_range
from consumers.unit_reader import read_here
from tests.builders.ranges import span
from tests.builders.recordings import cut, recordings
from tests.deployment_rig import STREAM, plan_on
from tests.security.secure_broker import SecureBroker
from tests.security.secure_deployment import JOBS, SecureDeployment, make_secure_site
from wavestitch.batch.deployment import Deployment
from wavestitch.batch.deployment_edges import DeploymentEdges
from wavestitch.batch.results import Read
from wavestitch.batch.steps import step_read
from wavestitch.contracts.errors import Terminal, Transient
from wavestitch.contracts.quantities import Offset, Partition
from wavestitch.contracts.stop_rule import Why
from wavestitch.kafka.client_settings import KafkaSettings
from wavestitch.kafka.raw_log import RawLog
from wavestitch.producers.sender import send_chunks
from wavestitch.settings import load_settings

AT_ONCE = 5.0
"""Seconds. A request's deadline is ten, a producer's sixty."""


@pytest.fixture(scope="module")
def secure(secure_broker: SecureBroker, java_home: Path, tmp_path_factory: pytest.TempPathFactory) -> SecureDeployment:
    return make_secure_site(tmp_path_factory.mktemp("login") / "s", secure_broker, java_home=java_home)


@pytest.fixture(scope="module")
def plan_id(secure: SecureDeployment) -> str:
    owner = secure.enter("owner")
    send_chunks(cut(recordings(3)), topic=secure.whole.topic, settings=owner.kafka)
    return plan_on(DeploymentEdges(owner, STREAM)).plan_id


def _turned_away(secure: SecureDeployment, deployment: Deployment, job: str, plan_id: str) -> str:
    before, began = secure.stands(), time.monotonic()
    with pytest.raises(Terminal) as found:
        JOBS[job](deployment, plan_id)
    assert time.monotonic() - began < AT_ONCE, found.value.message
    assert secure.stands() == before
    assert "check user, password or token, certificates" in found.value.message
    return found.value.message


@pytest.mark.parametrize("job", JOBS)
def test_a_wrong_password_is_terminal_at_once(secure: SecureDeployment, plan_id: str, tmp_path: Path, job: str) -> None:
    (tmp_path / "wrong").write_text("canary-of-a-wrong-password")
    deployment = secure.enter("owner", sasl_password=f"file:{tmp_path / 'wrong'}")
    said = _turned_away(secure, deployment, job, plan_id)
    assert "uthentication failed" in said
    assert "canary" not in said


@pytest.mark.parametrize("job", JOBS)
def test_a_broker_that_no_known_authority_vouches_for_is_not_spoken_to(
    secure: SecureDeployment, plan_id: str, job: str
) -> None:
    deployment = secure.enter("owner", ssl_ca_location=str(secure.broker.certificates.stranger))
    assert "certificate verify failed" in _turned_away(secure, deployment, job, plan_id)


@pytest.mark.parametrize("job", JOBS)
def test_a_broker_by_another_name_than_its_certificate_is_not_spoken_to(
    secure: SecureDeployment, plan_id: str, job: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its certificate is for 127.0.0.1; nothing that a settings file can say switches the check off."""
    port = secure.broker.broker.bootstrap.rpartition(":")[2]
    env = {f"WAVESTITCH_KAFKA__OPTIONS__{k.upper()}": v for k, v in secure.broker.options("owner").items()}
    env["WAVESTITCH_KAFKA__BOOTSTRAP"] = f"localhost:{port}"
    deployment = Deployment(load_settings({"WAVESTITCH_CONFIG": str(secure.whole.folder / "wavestitch.toml"), **env}))
    assert "certificate verify failed" in _turned_away(secure, deployment, job, plan_id)


def test_who_comes_without_tls_gets_no_answer(secure: SecureDeployment) -> None:
    with pytest.raises((Transient, Terminal)):
        KafkaLog(secure.whole.deployment.kafka, deadline=2.0).topic(secure.whole.topic)


def test_a_permission_that_is_revoked_while_a_unit_is_read_ends_it_and_nothing_is_kept(
    secure_broker: SecureBroker, java_home: Path, tmp_path: Path
) -> None:
    """Row 30. More is left to read than the client has fetched ahead, so that the broker is asked again."""
    secure = make_secure_site(tmp_path / "s", secure_broker, java_home=java_home)
    names = {"topic": secure.whole.topic, "group": secure.whole.group}
    secure_broker.add_user("one-day-reader")
    grants = {"one-day-reader": [("topic", "READ"), ("topic", "DESCRIBE_CONFIGS")]}
    secure_broker.grant(grants, **names)
    owner, reader = secure.enter("owner"), secure.enter("one-day-reader")
    big = recordings(1, samples=28_000_000)
    send_chunks(cut(big, 512 << 10), topic=secure.whole.topic, settings=owner.kafka)
    planned = plan_on(DeploymentEdges(owner, STREAM))
    edges = DeploymentEdges(reader, STREAM, read=read_here)
    before = secure.stands()
    revoked: list[Any] = []

    def revoke(records: int, size: int) -> None:
        if not revoked:
            revoked.append((records, size))
            secure_broker.revoke("one-day-reader", ("topic", "READ"), **names)

    began = time.monotonic()
    with pytest.raises(Terminal, match="uthorization failed"):
        step_read(edges, planned.plan_id, [0], progress=revoke)
    assert revoked, "it never began to read"
    assert revoked[0][1] < planned.estimated_bytes
    assert time.monotonic() - began < 2 * AT_ONCE
    folder = owner.folder(STREAM, planned.plan_id).path
    assert [p.name for p in folder.iterdir()] == ["plan.json"]
    assert secure.stands() == before

    secure_broker.grant(grants, **names)
    for unit in planned.units:
        read = step_read(edges, planned.plan_id, [unit])
        assert isinstance(read, Read)
        assert read.records > 0


def test_raw_batches_are_read_over_the_same_login_and_the_same_checked_certificate(secure_broker: SecureBroker) -> None:
    secure_broker.make_topic("raw-batches", partitions=1)
    secure_broker.add_user("raw-reader", "right-1")
    secure_broker.grant({"raw-reader": [("topic", "READ"), ("topic", "DESCRIBE")]}, topic="raw-batches", group="none")
    options = {**secure_broker.options("raw-reader"), "sasl.password": "right-1"}
    with RawLog(KafkaSettings(secure_broker.broker.bootstrap, options), "raw-batches", deadline=20) as raw:
        assert raw.fetch(Partition(0), Offset(0), most_bytes=1 << 16).batches == []
    wrong = KafkaSettings(secure_broker.broker.bootstrap, {**options, "sasl.password": "wrong-1"})
    with RawLog(wrong, "raw-batches", deadline=20) as raw, pytest.raises(Terminal, match="does not let us in"):
        raw.fetch(Partition(0), Offset(0), most_bytes=1 << 16)


def test_a_reader_never_needs_a_right_to_its_group(secure: SecureDeployment) -> None:
    """The client hears that it may not see the group a while after it began; that must not end a longer reading."""
    deployment = secure.enter("owner")
    topic, ends = secure.whole.topic, deployment.log.ends(secure.whole.topic, [Partition(0)])
    source = Source(stream="ecg", topic=topic, topic_id="", group="somebody-elses", idle_seconds=2.5)
    beyond = span(0, 0, ends[Partition(0)].stable_end + 1)
    with pytest.raises(ScanFailed) as found:
        scan_range(beyond, settings=deployment.kafka, source=source, take=lambda m, _: len(m.value()))
    assert found.value.why is Why.IDLE
