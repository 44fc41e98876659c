"""What the tests of DAGs and pages share: a stream with its DAG, and Airflow's API server asked in this process."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.postgresql import Postgresql
from tests.stack.airflow_home import SPARK, make_database, prepare_airflow, write_settings
from tests.stack.dag_lab import STREAM, Lab, answers, headers_of
from tests.stack.live_airflow import STITCHER, WITHOUT_SPARK, LiveAirflow, Shared, start_live, write_stitcher
from wavestitch.batch.deployment import Deployment
from wavestitch.local.broker import Broker
from wavestitch.local.process import wait_until
from wavestitch.settings import load_settings

prepare_airflow()
_shared = Shared()


@pytest.fixture
def lab(tmp_path: Path, broker: Broker, topic_factory: Any, java_home: Path, monkeypatch: pytest.MonkeyPatch) -> Lab:
    """Its batches are stitched without a Spark, which takes longer to start than all the rest of a run: see `spark`."""
    write_stitcher(tmp_path / "bin" / STITCHER)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    monkeypatch.setenv("AIRFLOW_CONN_SPARK_DEFAULT", WITHOUT_SPARK)
    streams = tmp_path / "streams"
    streams.mkdir()
    (streams / "ecg.yaml").write_text(STREAM.format(topic=topic_factory(partitions=2, prefix="dag")))
    config = write_settings(tmp_path, streams=streams, bootstrap=broker.bootstrap, java_home=java_home)
    monkeypatch.setenv("WAVESTITCH_CONFIG", str(config))
    make_database()
    lab = Lab(Deployment(load_settings()), broker)
    assert wait_until(lambda: answers(lab), seconds=60), "the broker does not answer for groups"
    return lab


@pytest.fixture
def spark(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    """The laboratory's batches are stitched by Spark."""
    monkeypatch.setenv("AIRFLOW_CONN_SPARK_DEFAULT", SPARK)


@pytest.fixture
def live(
    broker: Broker,
    postgresql: Postgresql,
    java_home: Path,
    topic_factory: Any,
    tmp_path_factory: pytest.TempPathFactory,
) -> LiveAirflow:
    """A whole Airflow with the project's DAGs and plugins; each test declares streams of its own in it."""
    if _shared.live is None:
        _shared.live = start_live(
            tmp_path_factory.mktemp("live"),
            broker,
            java_home=java_home,
            topics=topic_factory,
            database=postgresql.address(postgresql.new_database()),
        )
    return _shared.live


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_teardown(nextitem: pytest.Item | None) -> None:
    """An Airflow that nobody asks takes a fifth of a processor: it ends with the last test in a row that uses it, and
    before the database and the broker that it stands on."""
    if "live" not in getattr(nextitem, "fixturenames", ()):
        _shared.stop()


@pytest.fixture(scope="session")
def server() -> Iterator[Any]:
    """Airflow's API server with the project's plugin."""
    make_database()
    from airflow.api_fastapi.app import create_app  # noqa: PLC0415
    from fastapi.testclient import TestClient  # noqa: PLC0415

    with TestClient(create_app(apps="core")) as client:
        yield client


@pytest.fixture
def viewer(server: Any) -> dict[str, str]:
    """The headers of somebody who may look and nothing else."""
    return headers_of("viewer")
