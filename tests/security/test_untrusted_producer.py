"""A producer with Write on the topic and nothing good in mind: records that unpack to a thousand times as much.

The rest of what such a producer can send is in tests/hostile.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from confluent_kafka import KafkaError, KafkaException, Producer

from consumers.unit_reader import read_here
from tests.builders.recordings import cut, recordings
from tests.deployment_rig import STREAM, plan_on
from tests.security.secure_broker import SecureBroker
from tests.security.secure_deployment import SecureDeployment, make_secure_site
from wavestitch.batch.deployment_edges import DeploymentEdges
from wavestitch.batch.results import Read
from wavestitch.batch.steps import step_read
from wavestitch.producers.sender import send_chunks

BOMB_BYTES = 48 << 20
Deployment = Callable[..., SecureDeployment]


@pytest.fixture
def deployment(secure_broker: SecureBroker, java_home: Path, tmp_path: Path) -> Deployment:
    def make(**configs: str) -> SecureDeployment:
        named = {name.replace("_", "."): value for name, value in configs.items()}
        return make_secure_site(tmp_path / "s", secure_broker, java_home=java_home, configs=named)

    return make


def _throw(secure: SecureDeployment) -> int:
    """Send one record of zeros in a few kilobytes, between good ones; returns the broker's error, 0 for none."""
    owner = secure.enter("owner")
    good = cut(recordings(2, samples=1000))
    send_chunks(good[:2], topic=secure.whole.topic, settings=owner.kafka)
    bomb = Producer(
        {
            **owner.kafka.options,
            "bootstrap.servers": owner.kafka.bootstrap,
            "compression.type": "gzip",
            "message.max.bytes": 2 * BOMB_BYTES,
            "linger.ms": 0,
        }
    )
    errors: list[int] = []
    bomb.produce(
        secure.whole.topic, bytes(BOMB_BYTES), partition=0, on_delivery=lambda e, _: errors.append(e.code() if e else 0)
    )
    try:
        bomb.flush(30)
    except KafkaException as raised:
        errors.append(raised.args[0].code())
    send_chunks(good[2:], topic=secure.whole.topic, settings=owner.kafka)
    return errors[0]


def test_a_topic_that_is_kept_uncompressed_refuses_a_bomb_at_the_door(deployment: Deployment) -> None:
    refusals = (KafkaError.MSG_SIZE_TOO_LARGE, KafkaError.RECORD_LIST_TOO_LARGE)
    assert _throw(deployment(compression_type="uncompressed")) in refusals


@pytest.mark.parametrize("compression", ["gzip", "zstd"])
def test_a_topic_that_compresses_anew_takes_a_bomb_all_the_same(deployment: Deployment, compression: str) -> None:
    """Of what the broker has unpacked and packed again, it looks at the packed size alone."""
    secure = deployment(compression_type=compression)
    assert _throw(secure) == 0
    (remark,) = plan_on(DeploymentEdges(secure.enter("owner"), STREAM)).remarks
    assert f"compression.type={compression}" in remark


def test_elsewhere_it_is_landed_once_as_what_it_is_and_its_neighbours_with_it(deployment: Deployment) -> None:
    secure = deployment()
    assert _throw(secure) == 0
    owner = secure.enter("owner")
    edges = DeploymentEdges(owner, STREAM, read=read_here)
    read = step_read(edges, plan_on(edges).plan_id)
    assert isinstance(read, Read)
    good = cut(recordings(2, samples=1000))
    assert read.records == len(good) + 1
    assert read.bytes == BOMB_BYTES + sum(len(c.value) for c in good)
