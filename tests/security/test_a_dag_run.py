"""A DAG run over SASL_SSL with a hostile form, and what Airflow keeps of it (checks 1, 5, 10).

XComs are plain JSON, no secret is in Airflow's database or logs, and what was typed is recorded as text.
"""

from __future__ import annotations

import json
import os
import tempfile
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.security.canaries import Canaries
from tests.security.hostile_names import COMMANDS
from tests.security.secure_broker import SecureBroker
from tests.stack.airflow_home import make_database, prepare_airflow, write_settings
from tests.stack.dag_lab import STREAM, Lab, Run, waveform
from wavestitch.batch.deployment import Deployment
from wavestitch.producers.sender import send_chunks
from wavestitch.settings import load_settings

prepare_airflow()

PLAIN = (str, int, float, bool, type(None))


@dataclass(frozen=True)
class After:
    """A run whose gate was closed, and was accepted with a reason that is full of commands."""

    lab: Lab
    run: Run
    canaries: Canaries
    why: str
    marker: Path
    folder: Path


@pytest.fixture(scope="module")
def after(secure_broker: SecureBroker, java_home: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[After]:
    folder, canaries = tmp_path_factory.mktemp("dag"), Canaries()
    topic, user = f"dag-{uuid.uuid4().hex[:8]}", f"dag-{uuid.uuid4().hex[:8]}"
    (folder / "streams").mkdir()
    (folder / "streams" / "ecg.yaml").write_text(STREAM.format(topic=topic))
    secure_broker.make_topic(topic, partitions=2)
    secure_broker.add_user(user, canaries.kafka)
    grants = [("topic", "READ"), ("topic", "WRITE"), ("topic", "DESCRIBE_CONFIGS"), ("group", "READ")]
    secure_broker.grant({user: grants}, topic=topic, group=f"{topic}-readers")
    bootstrap = secure_broker.broker.bootstrap
    config = write_settings(folder, streams=folder / "streams", bootstrap=bootstrap, java_home=java_home)
    options = {**secure_broker.options(user), "sasl.password": "env:CANARY_KAFKA"}
    # A reason is one line of 500 characters: the name is short, so that all of them have room.
    marker = Path(tempfile.gettempdir()) / f"ran-{uuid.uuid4().hex[:8]}"
    why = " ".join(" ".join(c.format(marker=marker).split()) for c in COMMANDS)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("WAVESTITCH_CONFIG", str(config))
        patch.setenv("CANARY_KAFKA", canaries.kafka)
        patch.setenv("CANARY_SPARK", canaries.spark)
        patch.setenv("WAVESTITCH_SPARK__CONF__SPARK.AUTHENTICATE.SECRET", "env:CANARY_SPARK")
        for key, value in options.items():
            patch.setenv(f"WAVESTITCH_KAFKA__OPTIONS__{key.upper()}", value)
        make_database()
        lab = Lab(Deployment(load_settings()), secure_broker.broker)
        chunks = [c for n in range(5) for c in waveform(n)]
        send_chunks(chunks, topic=topic, settings=lab.deployment.kafka)
        run = lab.run({"gate": "accept", "why": why})
        yield After(lab, run, canaries, why, marker, folder)


def test_the_batch_went_through_and_the_reason_is_recorded_as_it_was_typed(after: After) -> None:
    assert after.run.state == "success", after.run
    assert after.lab.published() == [f"w{n}" for n in range(5)]
    assert after.why.strip() in after.lab.newest().note
    assert not after.marker.exists()


def test_every_xcom_is_plain_json(after: After) -> None:
    assert len(after.run.xcoms) >= 8
    for name, value in after.run.xcoms.items():
        found = json.loads(value) if isinstance(value, str) and value[:1] in '[{"' else value
        _check_plain(found, name)


def _check_plain(value: Any, name: str) -> None:
    if isinstance(value, dict):
        assert not any(str(k).startswith("__") for k in value), f"XCom {name} names a class to be made: {value}"
        for key, inner in value.items():
            assert isinstance(key, str), name
            _check_plain(inner, name)
    elif isinstance(value, list):
        for inner in value:
            _check_plain(inner, name)
    else:
        assert isinstance(value, PLAIN), f"XCom {name} holds a {type(value).__name__}"


def test_airflow_keeps_no_secret(after: After) -> None:
    assert after.canaries.in_text(str(after.run.xcoms)) == []
    home = Path(os.environ["AIRFLOW_HOME"])
    kept = [p for p in (*home.rglob("*"), *after.folder.rglob("*")) if p.is_file()]
    assert any(p.name == "airflow.db" for p in kept)
    assert any(p.name == "plan.json" for p in kept)
    assert after.canaries.in_files(kept) == []
