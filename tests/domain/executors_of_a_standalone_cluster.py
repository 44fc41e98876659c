"""Stitching on a real standalone cluster with its secret, as docker/ starts one: a master and two workers, by
spark-submit. A worker is killed in the middle, or the master: the same files come out, each with its digest.

And a Connect server on it, whose master is started again: that one has forgotten it.

By `make test-cluster`: six JVMs each. All of them are on loopback, in one network; in networks of their own they are in
`executors_in_networks_of_their_own.py`.
"""

from __future__ import annotations

import json
import os
import random
import socket
import subprocess
import threading
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from spark_apps.master_page import AFTERWARDS_S, Looks, state_on
from spark_apps.remote import stitch_remotely
from spark_apps.server import ConnectServer
from spark_apps.stitching import stitch_assignment
from spark_apps.submit import spark_properties, spark_submit, submit_reassembly
from tests.deployment_rig import eventually
from tests.domain.landed_corpus import LAYOUTS, random_waveform
from tests.domain.stitch_rig import land_corpus, make_job
from tests.domain.test_reassemble_spark import small_job
from tests.faults.spark_faults import slowly
from wavestitch.child_environment import child_environment
from wavestitch.contracts.errors import Transient
from wavestitch.contracts.spark_address import RemoteSpark, read_spark_address
from wavestitch.contracts.stitch_job import StitchReport
from wavestitch.local.loopback_port import LOOPBACK, free_ports
from wavestitch.local.process import wait_until

SECRET = "not a secret, but as long as one"
SETTINGS = {
    "spark.authenticate": "true",
    "spark.authenticate.secret": SECRET,
    "spark.network.crypto.enabled": "true",
    "spark.network.crypto.cipher": "AES/GCM/NoPadding",
    "spark.network.crypto.authEngineVersion": "2",
    "spark.master.rest.enabled": "false",
}
WORKERS = 2


@dataclass(frozen=True)
class Host:
    """Where a node listens. `enter`: the words in front of a command that is to run there."""

    address: str = LOOPBACK
    enter: tuple[str, ...] = ()


class Standalone:
    """`nodes`: the master, then its workers, each on its host."""

    def __init__(self, folder: Path, java_home: Path, hosts: Sequence[Host]) -> None:
        self._folder, self._java_home = folder, java_home
        self.nodes: list[subprocess.Popen[bytes]] = []
        clients, pages, *ports = free_ports(2 * len(hosts))
        self.address = f"spark://{hosts[0].address}:{clients}"
        (folder / "spark.properties").write_text(spark_properties(SETTINGS), encoding="latin-1")
        self._master = hosts[0], clients, pages
        self._start("master.Master", *self._master)
        for n, host in enumerate(hosts[1:]):
            own = ["--work-dir", str(self.work_folder(n)), "--cores", "2", "--memory", "1g", self.address]
            self._start("worker.Worker", host, ports[2 * n], ports[2 * n + 1], *own)
        eventually(lambda: self._registered() == len(hosts) - 1, seconds=120)

    def work_folder(self, worker: int) -> Path:
        """Has a folder for each application that this worker was given executors of."""
        return self._folder / f"work-{worker}"

    def start_master_again(self) -> None:
        """On its place, after it was killed; it remembers nothing."""
        log = self._folder / f"master.Master-{len(self.nodes)}.log"
        self._start("master.Master", *self._master)
        eventually(lambda: "Registering worker" in log.read_text(errors="replace"), seconds=120)

    def page(self) -> dict[str, Any]:
        host, _, pages = self._master
        with urllib.request.urlopen(f"http://{host.address}:{pages}/json/", timeout=6) as answer:
            found: dict[str, Any] = json.loads(answer.read())
        return found

    def _start(self, name: str, host: Host, port: int, pages: int, *more: str) -> None:
        spark = spark_submit().parents[1]
        argv = [*host.enter, str(spark / "bin" / "spark-class"), f"org.apache.spark.deploy.{name}"]
        argv += ["--host", host.address, "--port", str(port), "--webui-port", str(pages)]
        argv += ["--properties-file", str(self._folder / "spark.properties"), *more]
        environment = {**child_environment(os.environ), "SPARK_HOME": str(spark), "JAVA_HOME": str(self._java_home)}
        environment |= {
            "SPARK_LOCAL_IP": host.address,
            "SPARK_DAEMON_MEMORY": "256m",
            "SPARK_LOG_DIR": str(self._folder),
        }
        log = (self._folder / f"{name}-{len(self.nodes)}.log").open("wb")
        with log:
            self.nodes.append(subprocess.Popen(argv, env=environment, stdout=log, stderr=log))

    def _registered(self) -> int:
        return (self._folder / "master.Master-0.log").read_text(errors="replace").count("Registering worker")

    def kill(self, node: int) -> None:
        self.nodes[node].kill()
        self.nodes[node].wait(30)

    def close(self) -> None:
        for process in reversed(self.nodes):
            process.kill()
            process.wait(30)


@pytest.fixture
def cluster(tmp_path: Path, java_home: Path) -> Iterator[Standalone]:
    (tmp_path / "spark").mkdir()
    with slowly():  # so that there is a middle
        found = Standalone(tmp_path / "spark", java_home, [Host()] * (1 + WORKERS))
        try:
            yield found
        finally:
            found.close()


@contextmanager
def in_the_middle(folder: Path, act: Callable[[], None]) -> Iterator[list[str]]:
    """Once something is written there, and before the block ends; what was there then."""
    seen: list[str] = []

    def look() -> None:
        if wait_until(lambda: any(folder.rglob("*.parquet")), seconds=280, every=0.05):
            act()
            seen.extend(p.name for p in folder.rglob("*.parquet"))

    hunter = threading.Thread(target=look)
    hunter.start()
    try:
        yield seen
    finally:
        hunter.join()


@pytest.mark.parametrize("killed", ["a worker", "the master"])
def test_what_a_cluster_stitches_is_what_one_process_does_file_by_file_whoever_of_it_is_killed(
    cluster: Standalone, tmp_path: Path, java_home: Path, killed: str
) -> None:
    stitch_on(cluster, tmp_path, java_home, Host(), lambda: cluster.kill(0 if killed == "the master" else 1))


def test_a_master_that_was_started_again_has_forgotten_a_server_that_stays_and_a_step_says_that_nothing_was_begun(
    cluster: Standalone, tmp_path: Path, java_home: Path
) -> None:
    (port,), here = free_ports(1), {"spark.driver.host": LOOPBACK, "spark.driver.bindAddress": LOOPBACK}
    conf = {**here, "spark.authenticate.secret": SECRET, "spark.executor.memory": "512m", "spark.cores.max": "2"}
    server, properties = ConnectServer(java_home, master=cluster.address, conf=conf), tmp_path / "connect.properties"
    properties.write_text(server.properties(port=port, token="t" * 32))
    spark, looks = RemoteSpark(read_spark_address(f"sc://{LOOPBACK}:{port}"), "t" * 32), Looks("wavestitch", since=0)

    def stitch(name: str, seconds: float) -> None:
        (folder := tmp_path / name).mkdir()
        (folder / "job.json").write_text(small_job(folder)[0].to_json())
        stitch_remotely(
            spark, job_path=folder / "job.json", result_path=folder / "r.json", say=print, deadline_s=seconds
        )

    log = tmp_path / "connect.log"
    with log.open("wb") as said:
        process = subprocess.Popen(
            server.argv(properties), env={**os.environ, **server.environment()}, stdout=said, stderr=said
        )
    try:
        eventually(lambda: state_on(cluster.page(), "wavestitch") == "RUNNING" and is_open(port), seconds=180)
        stitch("before", 240)
        assert not looks.has_forgotten(cluster.page(), now=1)
        executors = sum(worker["coresused"] > 0 for worker in cluster.page()["workers"])
        cluster.kill(0)
        assert not looks.has_forgotten(None, now=2)
        cluster.start_master_again()
        eventually(lambda: log.read_text(errors="replace").count("Lost executor") >= executors > 0, seconds=120)
        with pytest.raises(Transient, match="has begun none of its tasks in 10 s"):
            stitch("after", 10)
        assert process.poll() is None, "it only waits, for good"
        assert looks.has_forgotten(cluster.page(), now=3 + AFTERWARDS_S)
    finally:
        process.kill()
        process.wait(30)


def is_open(port: int) -> bool:
    with suppress(OSError), socket.create_connection((LOOPBACK, port), 2):
        return True
    return False


@dataclass(frozen=True)
class Stitched:
    """`log`: the driver's. `folder`: where the files are."""

    log: str
    report: StitchReport
    folder: Path


def stitch_on(
    cluster: Standalone, tmp_path: Path, java_home: Path, driver: Host, act: Callable[[], None], **conf: str
) -> Stitched:
    """A job on the cluster's two workers, in the middle of which somebody acts, gives what one process makes of it.
    `conf`: of Spark's, `_` for `.`."""
    rng = random.Random(7)
    sent = [[random_waveform(rng, f"{n}/{w}") for w in range(10)] for n in range(4)]
    corpora = [
        land_corpus(tmp_path / str(n), rng, waves, layout=LAYOUTS[n % 3], files=3) for n, waves in enumerate(sent)
    ]
    job = make_job(tmp_path, corpora, tasks=12)
    (tmp_path / "job.json").write_text(job.to_json())
    here = {"spark.driver.host": driver.address, "spark.driver.bindAddress": driver.address}
    here |= {"spark.executor.memory": "512m", **{key.replace("_", "."): value for key, value in conf.items()}}
    with in_the_middle(Path(job.output_folder), act) as before:
        report = submit_reassembly(
            job_path=tmp_path / "job.json",
            result_path=tmp_path / "report.json",
            master=cluster.address,
            conf={"spark.authenticate.secret": SECRET, "spark.executor.cores": "2", "spark.cores.max": "4", **here},
            java_home=java_home,
            say=print,
            deadline_s=300,
        )
    assert 0 < len(before) < len(job.assignments), "it was before, or afterwards"
    assert report.results == tuple(stitch_assignment(job, a) for a in job.assignments)
    return Stitched((tmp_path / "report.json.log").read_text(errors="replace"), report, Path(job.output_folder))
