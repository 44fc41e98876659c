"""A real Kafka broker of one node on the loopback address, started and stopped as a daemon.

Decides its settings and its ports, and when it is ready: when it answers a client and is the one that was started.
Its folder keeps its data and its ports over a stop and a start. Never listens beyond this machine.
"""

from __future__ import annotations

import base64
import os
import shutil
import signal
import subprocess
import time
import uuid
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from wavestitch.child_environment import child_environment
from wavestitch.contracts.errors import BadInput, Terminal, Transient
from wavestitch.contracts.versioned import Versioned
from wavestitch.folder_lock import folder_lock
from wavestitch.local.loopback_port import LOOPBACK, free_ports, is_free
from wavestitch.local.process import Daemon, running_daemon, start_daemon, stop_daemon, wait_until, write_whole
from wavestitch.modes import OWN_FOLDER, make_folder

_PORT_ATTEMPTS = 5
_READY_SECONDS = 60.0
_STOP_SECONDS = 20.0
_HEAP = (
    "-Xmx512m",
    "-XX:+UseSerialGC",
    "-XX:-UsePerfData",
    "-XX:-CreateCoredumpOnCrash",
    "-Djava.net.preferIPv4Stack=true",
)

_LOGGING = """\
rootLogger.level = WARN
rootLogger.appenderRef.out.ref = out
appender.out.type = Console
appender.out.name = out
appender.out.layout.type = PatternLayout
appender.out.layout.pattern = %d{ISO8601} %p %c{1} %m%n
"""


@dataclass(frozen=True, slots=True)
class Broker:
    """A running broker; `bootstrap` is its address for clients."""

    bootstrap: str
    pid: int
    folder: Path


@dataclass(frozen=True, slots=True)
class BrokerPorts:
    """What a broker's folder keeps of them, in `PORTS_FILE`."""

    clients: int
    controller: int


PORTS_FILE = "ports.json"
PORTS = Versioned(BrokerPorts, "what is kept of the broker's ports", "`wavestitch down` stops it, and it starts anew")


def start_broker(
    *,
    folder: Path,
    java_home: Path,
    jars: Path,
    port: int | None = None,
    say: Callable[[str], None] = lambda _text: None,
    overrides: Mapping[str, str] | None = None,
    listener: str = "PLAINTEXT",
    client: Mapping[str, str] | None = None,
    cluster_id: str | None = None,
) -> Broker:
    """Start the broker of this folder, or return the one that runs there already.

    `port` is for clients; without it the folder's last one is used if it is free, otherwise any free one. `overrides`
    are further settings of the broker. `listener` names the clients' listener; where it is not the plain one,
    `overrides` say what it asks of them, and `client` how we come in to see whether it is ready. With a `cluster_id`
    in common, several nodes make a cluster. Raises `BadInput` for a taken `port`, `Terminal` if the broker ends while
    it starts, `Transient` if it does not answer in time; it is stopped then.
    """
    folder, client = folder.absolute(), client or {}
    with folder_lock(folder):
        # Its data and its settings, which may hold passwords, are nobody else's.
        folder.chmod(0o700)
        running = _adopt_running(folder, client)
        if running is not None:
            return running
        if port is not None and not is_free(port):
            raise BadInput(f"port {port} on {LOOPBACK} is taken; name another one, or none to get a free one")
        settings_of = partial(_settings, folder, overrides=overrides or {}, listener=listener)
        cluster = _format_once(folder, settings_of, cluster_id, java_home=java_home, jars=jars, say=say)
        for attempt in range(_PORT_ATTEMPTS):
            ports = _choose_ports(folder, wanted=port, fresh=attempt > 0)
            (folder / "broker.log").unlink(missing_ok=True)  # an old log must not explain a new death
            settings = settings_of(ports=ports)
            write_whole(folder / PORTS_FILE, PORTS.text(ports))
            daemon = _launch(folder, settings=settings, java_home=java_home, jars=jars)
            if _await_ready(daemon, folder=folder, ports=ports, cluster_id=cluster, client=client):
                say(f"Kafka is ready on {LOOPBACK}:{ports.clients}")
                return Broker(bootstrap=f"{LOOPBACK}:{ports.clients}", pid=daemon.pid, folder=folder)
            say("another process took Kafka's port first; trying with other ones")
    raise Transient(f"Kafka lost the race for its port {_PORT_ATTEMPTS} times; try again. Its log: {daemon.log}")


def stop_broker(folder: Path) -> bool:
    """Stop the broker of this folder, and nothing else. False if none was running. Its data stay."""
    folder = folder.absolute()
    if not folder.exists():
        return False
    with folder_lock(folder):
        return stop_daemon(_pid_file(folder), with_signal=signal.SIGTERM, deadline_s=_STOP_SECONDS)


def running_broker(folder: Path) -> Broker | None:
    """The broker of this folder, if one runs; it may still be starting."""
    folder = folder.absolute()
    daemon = running_daemon(_pid_file(folder))
    if daemon is None:
        return None
    return Broker(bootstrap=f"{LOOPBACK}:{_read_ports(folder).clients}", pid=daemon.pid, folder=folder)


def run_kafka_tool(java_home: Path, jars: Path, class_name: str, args: list[str], *, seconds: float = 60.0) -> str:
    """What one of Kafka's own command line tools prints, e.g. `org.apache.kafka.tools.GetOffsetShell`.

    Raises `Terminal` with its words if it fails or takes longer.
    """
    # Gone before optimised code would have paid for its compilation.
    argv = [*_java(java_home, jars, heap=("-Xmx256m", "-XX:TieredStopAtLevel=1", *_HEAP[1:])), class_name, *args]
    name = class_name.rpartition(".")[2]
    try:
        done = subprocess.run(argv, capture_output=True, text=True, timeout=seconds, check=False, env=_child_env())
    except subprocess.TimeoutExpired as error:
        raise Terminal(f"{name} was not done after {seconds:.0f} s: {' '.join(args)}") from error
    if done.returncode:
        words = "\n".join(f"{done.stdout}\n{done.stderr}".strip().splitlines()[-15:])
        raise Terminal(f"{name} {' '.join(args)} ended with exit code {done.returncode}:\n{words}")
    return done.stdout


def _adopt_running(folder: Path, client: Mapping[str, str]) -> Broker | None:
    """The running broker, once it answers: whoever started it may have been interrupted before it did."""
    broker, daemon = running_broker(folder), running_daemon(_pid_file(folder))
    if broker is None or daemon is None:
        return None
    ports = _read_ports(folder)
    cluster_id = (folder / "cluster.id").read_text().strip()
    try:
        ready = _await_ready(daemon, folder=folder, ports=ports, cluster_id=cluster_id, client=client)
        return broker if ready else None
    except Terminal:
        # Whoever starts one holds the folder's lock until it is ready: this one was ending when it was looked at.
        return None


def _read_ports(folder: Path) -> BrokerPorts:
    """Raises `BadInput` where a running broker's cannot be read: where it listens is not guessed."""
    return PORTS.read((folder / PORTS_FILE).read_bytes())


def _pid_file(folder: Path) -> Path:
    return folder / "broker.pid"


def _java(java_home: Path, jars: Path, *, heap: tuple[str, ...] = _HEAP) -> list[str]:
    return [str(java_home / "bin" / "java"), *heap, "-cp", f"{jars}/*"]


def _child_env() -> dict[str, str]:
    # Neither secrets of the starter's, nor a class path that would slip other versions in.
    return child_environment(os.environ)


def _choose_ports(folder: Path, *, wanted: int | None, fresh: bool) -> BrokerPorts:
    ports = None
    if not fresh:
        with suppress(FileNotFoundError, BadInput):
            ports = _read_ports(folder)
    if ports is not None and wanted in (None, ports.clients) and is_free(ports.clients) and is_free(ports.controller):
        return ports
    clients, controller = free_ports(2)
    return BrokerPorts(clients=wanted or clients, controller=controller)


def _settings(folder: Path, *, ports: BrokerPorts, overrides: Mapping[str, str], listener: str = "PLAINTEXT") -> Path:
    settings = {
        "process.roles": "broker,controller",
        "node.id": "1",
        "controller.quorum.voters": f"1@{LOOPBACK}:{ports.controller}",
        "listeners": f"{listener}://{LOOPBACK}:{ports.clients},CONTROLLER://{LOOPBACK}:{ports.controller}",
        "advertised.listeners": f"{listener}://{LOOPBACK}:{ports.clients}",
        "inter.broker.listener.name": listener,
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
        "controller.listener.names": "CONTROLLER",
        "log.dirs": str(folder / "data"),
        # A misspelt topic must be an error, not a new topic.
        "auto.create.topics.enable": "false",
        # One node holds one copy; a few partitions of the internal topics are opened faster than fifty.
        "offsets.topic.replication.factor": "1",
        "offsets.topic.num.partitions": "4",
        "transaction.state.log.replication.factor": "1",
        "transaction.state.log.min.isr": "1",
        "transaction.state.log.num.partitions": "4",
        "share.coordinator.state.topic.replication.factor": "1",
        "share.coordinator.state.topic.min.isr": "1",
        "share.coordinator.state.topic.num.partitions": "1",
        "group.initial.rebalance.delay.ms": "0",
        # Where nothing happens, by default it writes down twice a second that nothing did: the most that it does then.
        "metadata.max.idle.interval.ms": "5000",
        # Recordings carry the time they were made; retention by age would delete old ones as they arrive.
        "log.retention.ms": "-1",
        **overrides,
    }
    path = folder / "server.properties"
    lines = (f"{name}={value}".replace("\\", "\\\\") for name, value in settings.items())
    path.write_text("\n".join(lines) + "\n")
    return path


def new_cluster_id() -> str:
    return "W" + base64.urlsafe_b64encode(uuid.uuid4().bytes).decode()[1:22]


def _format_once(
    folder: Path,
    settings_of: Callable[..., Path],
    wanted: str | None,
    *,
    java_home: Path,
    jars: Path,
    say: Callable[[str], None],
) -> str:
    """The cluster's id. Its file is written last: without it, what is in the data folder is a half-made one."""
    marker = folder / "cluster.id"
    if marker.exists():
        return marker.read_text().strip()
    shutil.rmtree(folder / "data", ignore_errors=True)
    make_folder(folder / "data", OWN_FOLDER)
    cluster_id = wanted or new_cluster_id()
    clients, controller = free_ports(2)
    settings = settings_of(ports=BrokerPorts(clients, controller))
    say("preparing Kafka's data folder")
    run_kafka_tool(java_home, jars, "kafka.tools.StorageTool", ["format", "-t", cluster_id, "-c", str(settings)])
    write_whole(marker, cluster_id + "\n")
    return cluster_id


def _launch(folder: Path, *, settings: Path, java_home: Path, jars: Path) -> Daemon:
    logging = folder / "log4j2.properties"
    logging.write_text(_LOGGING)
    java = _java(java_home, jars)
    argv = [*java, f"-Dlog4j2.configurationFile={logging}", "kafka.Kafka", str(settings)]
    return start_daemon(argv=argv, env=_child_env(), pid_file=_pid_file(folder), log=folder / "broker.log")


def _await_ready(
    daemon: Daemon, *, folder: Path, ports: BrokerPorts, cluster_id: str, client: Mapping[str, str]
) -> bool:
    """Whether it became ready; False if another process had its port. Anything else is raised, with it stopped."""
    started = time.monotonic()

    def settled() -> bool:
        return not daemon.alive() or _answers(f"{LOOPBACK}:{ports.clients}", cluster_id, client)

    if not wait_until(settled, seconds=_READY_SECONDS):
        stop_daemon(_pid_file(folder), with_signal=signal.SIGKILL, deadline_s=5)
        raise Transient(
            f"Kafka did not answer on {LOOPBACK}:{ports.clients} within {time.monotonic() - started:.0f} s and was "
            f"stopped; is the machine very busy? The end of its log {daemon.log}:\n{daemon.last_lines()}"
        )
    if daemon.alive():
        return True
    words = daemon.last_lines()
    _pid_file(folder).unlink(missing_ok=True)
    if "Address already in use" in Path(daemon.log).read_text(errors="replace"):
        return False
    raise Terminal(f"Kafka ended while it started; the end of its log {daemon.log}:\n{words}")


def _answers(bootstrap: str, cluster_id: str, client: Mapping[str, str]) -> bool:
    """Whether *our* broker answers there: on a lost port, somebody else's could."""
    # Refused connections are what waiting looks like; the client's own log of them would only alarm.
    admin = AdminClient({**client, "bootstrap.servers": bootstrap, "log_level": 0, "socket.timeout.ms": 2000})
    try:
        metadata = admin.list_topics(timeout=1.0)
    except KafkaException:
        return False
    return bool(metadata.cluster_id == cluster_id and metadata.brokers)
