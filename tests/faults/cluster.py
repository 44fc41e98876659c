"""Three real Kafka nodes in KRaft mode on the loopback address, each of which can be killed, frozen, stopped, started.

All that must be known is in the folder: another process opens the same cluster with `open_cluster`. Every node has a
second listener that is reached through a proxy of the process that asks for `proxied`.
"""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from confluent_kafka import ElectionType, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, PartitionMetadata

from tests.deployment_rig import eventually
from tests.faults.tcp_proxy import TcpProxy
from wavestitch.local.broker import (
    PORTS,
    PORTS_FILE,
    BrokerPorts,
    new_cluster_id,
    running_broker,
    start_broker,
    stop_broker,
)
from wavestitch.local.loopback_port import LOOPBACK, free_ports
from wavestitch.local.process import running_daemon, stop_daemon

NODES = (1, 2, 3)
_SETTLE_SECONDS = 120.0
_LOOK_SECONDS = 0.3
"""Between two looks: each makes a client of its own, on the processors that the nodes need to settle."""

_COMMON = {
    "inter.broker.listener.name": "PLAINTEXT",
    "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,PROXIED:PLAINTEXT,CONTROLLER:PLAINTEXT",
    "offsets.topic.replication.factor": "3",
    "transaction.state.log.replication.factor": "3",
    "default.replication.factor": "3",
    # A dead node is noticed in seconds, and its partitions are led by another one.
    "broker.session.timeout.ms": "4000",
    "broker.heartbeat.interval.ms": "500",
    "replica.lag.time.max.ms": "4000",
    "controller.quorum.election.timeout.ms": "1000",
    "controller.quorum.fetch.timeout.ms": "2000",
    # Leaders move when a case says so.
    "auto.leader.rebalance.enable": "false",
}


@dataclass(frozen=True, slots=True)
class Ports:
    """Of one node: for clients, for the controllers, behind the proxy, and the proxy's own."""

    clients: int
    controller: int
    behind: int
    proxy: int


@dataclass(frozen=True)
class Cluster:
    """A cluster by its folder. Nodes are numbered from 1."""

    folder: Path
    java_home: Path
    jars: Path
    ports: dict[int, Ports]

    @property
    def bootstrap(self) -> str:
        return ",".join(f"{LOOPBACK}:{p.clients}" for p in self.ports.values())

    @property
    def admin(self) -> AdminClient:
        return AdminClient({"bootstrap.servers": self.bootstrap, "log_level": 0})

    # one node

    def node_folder(self, node: int) -> Path:
        return self.folder / f"node-{node}"

    def kill(self, node: int) -> None:
        """SIGKILL, as a machine that loses power."""
        stop_daemon(self.node_folder(node) / "broker.pid", with_signal=signal.SIGKILL, deadline_s=10)

    def stop(self, node: int) -> None:
        """SIGTERM: it hands its leaders over before it ends."""
        stop_broker(self.node_folder(node))

    def freeze(self, node: int) -> None:
        """SIGSTOP: its connections stay open, nothing is answered."""
        os.kill(self._pid(node), signal.SIGSTOP)

    def thaw(self, node: int) -> None:
        os.kill(self._pid(node), signal.SIGCONT)

    def start(self, node: int) -> None:
        """Start it again, or find it running; returns when it answers."""
        at = self.ports[node]
        start_broker(
            folder=self.node_folder(node),
            java_home=self.java_home,
            jars=self.jars,
            port=at.clients,  # those that look for it know no other one
            overrides=self.settings(node),
            cluster_id=(self.folder / "cluster.id").read_text(),
        )

    def settings(self, node: int) -> dict[str, str]:
        """Of this node, beside those that every broker of ours has."""
        at = self.ports[node]
        return {
            **_COMMON,
            "node.id": str(node),
            "controller.quorum.voters": ",".join(f"{n}@{LOOPBACK}:{p.controller}" for n, p in self.ports.items()),
            "listeners": f"PLAINTEXT://{LOOPBACK}:{at.clients},PROXIED://{LOOPBACK}:{at.behind},"
            f"CONTROLLER://{LOOPBACK}:{at.controller}",
            "advertised.listeners": f"PLAINTEXT://{LOOPBACK}:{at.clients},PROXIED://{LOOPBACK}:{at.proxy}",
        }

    def _pid(self, node: int) -> int:
        found = running_broker(self.node_folder(node))
        assert found is not None, f"node {node} does not run"
        return found.pid

    # all of them

    def start_all(self) -> None:
        """None of them answers before a second one is there."""
        with ThreadPoolExecutor(len(NODES)) as pool:
            list(pool.map(self.start, NODES))
        settled(lambda: len(self.admin.list_topics(timeout=10).brokers) == len(NODES))

    def stop_all(self) -> None:
        self.thaw_all()
        with ThreadPoolExecutor(len(NODES)) as pool:
            list(pool.map(self.kill, NODES))

    def thaw_all(self) -> None:
        for node in NODES:
            daemon = running_daemon(self.node_folder(node) / "broker.pid")
            if daemon is not None:
                os.kill(daemon.pid, signal.SIGCONT)

    def heal(self, topic: str = "") -> None:
        """All nodes run, and every replica of `topic` is in sync."""
        self.thaw_all()
        self.start_all()
        if topic:
            settled(lambda: all(len(p.isrs) == len(p.replicas) for p in self._partitions(topic)))

    def leader(self, topic: str, partition: int) -> int:
        """The node that leads; waits until there is one."""
        settled(lambda: self._leader(topic, partition) > 0)
        return self._leader(topic, partition)

    def elect(self, topic: str, partition: int, *, unclean: bool = False) -> None:
        """The preferred replica leads, or an unclean one where no other is left."""
        kind = ElectionType.UNCLEAN if unclean else ElectionType.PREFERRED
        admin = self.admin  # named: an answer dies with its client
        admin.elect_leaders(kind, [TopicPartition(topic, partition)]).result(15)

    def in_sync(self, topic: str, partition: int) -> set[int]:
        return next(set(p.isrs) for p in self._partitions(topic) if p.id == partition)

    def _leader(self, topic: str, partition: int) -> int:
        return next((p.leader for p in self._partitions(topic) if p.id == partition), -1)

    def _partitions(self, topic: str) -> list[PartitionMetadata]:
        try:
            found = self.admin.list_topics(topic, timeout=10).topics.get(topic)
        except KafkaException:
            return []
        return list(found.partitions.values()) if found else []

    # between the platform and them

    @contextmanager
    def proxied(self) -> Iterator[tuple[str, dict[int, TcpProxy]]]:
        """Addresses that lead through proxies only, and the proxies by node."""
        with ExitStack() as stack:
            proxies = {n: stack.enter_context(TcpProxy(p.proxy, p.behind)) for n, p in self.ports.items()}
            yield ",".join(f"{LOOPBACK}:{p.proxy}" for p in self.ports.values()), proxies


def settled(condition: Callable[[], bool]) -> None:
    """Wait until this is so of a cluster."""
    eventually(condition, seconds=_SETTLE_SECONDS, every=_LOOK_SECONDS)


def open_cluster(folder: Path, *, java_home: Path, jars: Path) -> Cluster:
    """The cluster of this folder; its ports and its name are chosen once."""
    path = folder / "cluster.json"
    if not path.exists():
        folder.mkdir(parents=True, exist_ok=True)
        ports = free_ports(4 * len(NODES))
        (folder / "cluster.id").write_text(new_cluster_id())
        for i, node in enumerate(NODES):
            (folder / f"node-{node}").mkdir()
            mine = BrokerPorts(clients=ports[4 * i], controller=ports[4 * i + 1])
            (folder / f"node-{node}" / PORTS_FILE).write_text(PORTS.text(mine))
        path.write_text(json.dumps({str(n): ports[4 * i : 4 * i + 4] for i, n in enumerate(NODES)}))
    found = json.loads(path.read_text())
    return Cluster(folder, java_home, jars, {int(n): Ports(*p) for n, p in found.items()})


def start_cluster(folder: Path, *, java_home: Path, jars: Path, say: Callable[[str], None] = lambda _: None) -> Cluster:
    """Open it and start what does not run."""
    cluster = open_cluster(folder, java_home=java_home, jars=jars)
    cluster.thaw_all()
    cluster.start_all()
    say(f"a Kafka cluster of {len(NODES)} nodes is ready at {cluster.bootstrap}")
    return cluster
