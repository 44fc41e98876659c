"""What every tier may use: a Java, Kafka's jars (fetched once for the whole checkout), and one real broker a session.

Nothing is started unless a test asks for it, and what was started is stopped even when a test fails.
"""

from __future__ import annotations

import gc
import itertools
import sys
import uuid
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Protocol

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from spark_apps.server import ConnectServer
from spark_apps.start_archive import archived_start
from tests import both_ways
from tests.deployment_rig import eventually
from tests.domain.effort import quick_is_the_same_each_time
from tests.domain.rest_catalog import rest_catalog
from tests.login_cluster import login_cluster
from tests.postgresql import Postgresql, running_postgresql
from tests.two_processors import BothProcessors, end_in_order, end_workers, long_first
from wavestitch.local.broker import Broker, start_broker, stop_broker
from wavestitch.local.jars import KAFKA, SPARK_TABLES, cached_jars
from wavestitch.local.java import find_java
from wavestitch.local.spark_server import SparkServer, start_spark_server, stop_spark_server

ROOT = Path(__file__).resolve().parents[1]
CACHE = ROOT / ".wavestitch" / "cache"
_PROMPT_RETENTION = {"log.retention.check.interval.ms": "500", "log.initial.task.delay.ms": "500"}
"""Of topics that say how long they keep records; the others keep them for ever."""


class TopicFactory(Protocol):
    """Makes a topic that no other test has, and returns its name when it can be used."""

    def __call__(self, *, partitions: int = 1, configs: Mapping[str, str] | None = None, prefix: str = "t") -> str: ...


@pytest.fixture(scope="module", autouse=True)
def _decided_both_ways() -> Iterator[None]:
    with both_ways.compared():
        yield


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--cluster", action="store_true", help="the session's broker is three, on which we may do little")


def pytest_configure() -> None:
    # All that is imported and collected is looked through again and again else: a tenth of the tests' time.
    gc.set_threshold(100_000, 20, 20)
    end_in_order()
    quick_is_the_same_each_time()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> BothProcessors:
    return BothProcessors(config, log)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if hasattr(config, "workerinput"):
        long_first(items)


_runs: list[pytest.Session] = []


def pytest_sessionstart(session: pytest.Session) -> None:
    _runs.append(session)


def pytest_keyboard_interrupt() -> None:
    end_workers(_runs[-1])


def _say(text: str) -> None:
    print(text, file=sys.stderr)


@pytest.fixture(scope="session")
def java_home() -> Path:
    return find_java(CACHE)


@pytest.fixture(scope="session")
def kafka_jars(java_home: Path) -> Path:
    return cached_jars(KAFKA, cache_dir=CACHE, java_home=java_home, say=_say)


@pytest.fixture(scope="session")
def spark_table_jars(java_home: Path) -> list[Path]:
    """For `spark.jars` of a session that reads or writes the tables."""
    return sorted(cached_jars(SPARK_TABLES, cache_dir=CACHE, java_home=java_home, say=_say).glob("*.jar"))


@pytest.fixture(scope="session")
def spark_server(java_home: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkServer]:
    """One Spark that is there already, for the session, as `wavestitch up` starts it."""
    folder = tmp_path_factory.mktemp("spark")
    conf = archived_start(cache=CACHE, java_home=java_home, say=_say)
    try:
        yield start_spark_server(folder=folder, program=ConnectServer(java_home, conf=conf), say=_say)
    finally:
        stop_spark_server(folder)


@pytest.fixture(scope="session")
def broker(
    request: pytest.FixtureRequest, java_home: Path, kafka_jars: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Broker]:
    """One real broker for the session; tests keep apart by topics and groups of their own."""
    folder = tmp_path_factory.mktemp("kafka")
    if request.config.getoption("--cluster"):
        with login_cluster(folder, java_home=java_home, jars=kafka_jars, more=_PROMPT_RETENTION) as cluster:
            yield cluster
        return
    try:
        yield start_broker(folder=folder, java_home=java_home, jars=kafka_jars, say=_say, overrides=_PROMPT_RETENTION)
    finally:
        stop_broker(folder)


@pytest.fixture(scope="session")
def postgresql() -> Iterator[Postgresql]:
    """One real PostgreSQL for the session; tests keep apart by databases of their own."""
    with running_postgresql() as found:
        yield found


@pytest.fixture
def catalog_in_postgresql(postgresql: Postgresql) -> str:
    """The address of one of the test's own."""
    return postgresql.address(postgresql.new_database())


@pytest.fixture
def catalog_by_rest(tmp_path: Path) -> Iterator[str]:
    """The address of one of the test's own, whose tables lie where a deployment in `tmp_path` has its warehouse."""
    with rest_catalog(tmp_path / "deployment") as (settings, _):
        yield settings.uri


@pytest.fixture(scope="session")
def make_topic() -> Callable[..., None]:
    """Create a topic on a given broker: (bootstrap, name, partitions, configs)."""
    return _create_topic


@pytest.fixture(scope="session")
def topic_factory(broker: Broker) -> TopicFactory:
    numbers = itertools.count(1)
    session = uuid.uuid4().hex[:6]

    def make(*, partitions: int = 1, configs: Mapping[str, str] | None = None, prefix: str = "t") -> str:
        name = f"{prefix}-{session}-{next(numbers)}"
        _create_topic(broker.bootstrap, name, partitions, configs or {})
        return name

    return make


def _create_topic(bootstrap: str, name: str, partitions: int, configs: Mapping[str, str]) -> None:
    admins = [AdminClient({"bootstrap.servers": one}) for one in bootstrap.split(",")]
    topic = NewTopic(name, num_partitions=partitions, config=dict(configs))  # as many copies as its broker makes
    admins[0].create_topics([topic], operation_timeout=30)[name].result(timeout=30)
    # The controller has it now; the broker that answers the test may hear of it a moment later.
    eventually(lambda: all(_led_partitions(admin, name) == partitions for admin in admins))


def _led_partitions(admin: AdminClient, name: str) -> int:
    topic = admin.list_topics(timeout=10).topics.get(name)
    return 0 if topic is None else sum(p.leader >= 0 for p in topic.partitions.values())
