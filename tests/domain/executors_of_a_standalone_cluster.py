"""Stitching on a real standalone cluster with its secret, as docker/ starts one: a master and two workers, by
spark-submit. A worker is killed in the middle, or the master: the same files come out, each with its digest.

By `make test-cluster`: six JVMs each. All of them are on loopback, in one network.
"""

from __future__ import annotations

import os
import random
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from spark_apps.stitching import stitch_assignment
from spark_apps.submit import spark_properties, spark_submit, submit_reassembly
from tests.deployment_rig import eventually
from tests.domain.landed_corpus import LAYOUTS, random_waveform
from tests.domain.stitch_rig import land_corpus, make_job
from tests.faults.spark_faults import slowly
from wavestitch.child_environment import child_environment
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


class Standalone:
    """`nodes`: the master, then its workers."""

    def __init__(self, folder: Path, java_home: Path) -> None:
        self._folder, self._java_home = folder, java_home
        self.nodes: list[subprocess.Popen[bytes]] = []
        clients, pages, *ports = free_ports(2 + 2 * WORKERS)
        self.address = f"spark://{LOOPBACK}:{clients}"
        (folder / "spark.properties").write_text(spark_properties(SETTINGS), encoding="latin-1")
        self._start("master.Master", clients, pages)
        for n in range(WORKERS):
            own = ["--work-dir", f"{folder}/work-{n}", "--cores", "2", "--memory", "1g", self.address]
            self._start("worker.Worker", ports[2 * n], ports[2 * n + 1], *own)
        eventually(lambda: self._registered() == WORKERS, seconds=120)

    def _start(self, name: str, port: int, pages: int, *more: str) -> None:
        spark = spark_submit().parents[1]
        argv = [str(spark / "bin" / "spark-class"), f"org.apache.spark.deploy.{name}", "--host", LOOPBACK]
        argv += ["--port", str(port), "--webui-port", str(pages)]
        argv += ["--properties-file", str(self._folder / "spark.properties"), *more]
        environment = {**child_environment(os.environ), "SPARK_HOME": str(spark), "JAVA_HOME": str(self._java_home)}
        environment |= {"SPARK_LOCAL_IP": LOOPBACK, "SPARK_DAEMON_MEMORY": "256m", "SPARK_LOG_DIR": str(self._folder)}
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
        found = Standalone(tmp_path / "spark", java_home)
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
    rng = random.Random(7)
    sent = [[random_waveform(rng, f"{n}/{w}") for w in range(10)] for n in range(4)]
    corpora = [
        land_corpus(tmp_path / str(n), rng, waves, layout=LAYOUTS[n % 3], files=3) for n, waves in enumerate(sent)
    ]
    job = make_job(tmp_path, corpora, tasks=12)
    (tmp_path / "job.json").write_text(job.to_json())
    here = {"spark.driver.host": LOOPBACK, "spark.driver.bindAddress": LOOPBACK, "spark.executor.memory": "512m"}
    with in_the_middle(Path(job.output_folder), lambda: cluster.kill(0 if killed == "the master" else 1)) as before:
        report = submit_reassembly(
            job_path=tmp_path / "job.json",
            result_path=tmp_path / "report.json",
            master=cluster.address,
            conf={"spark.authenticate.secret": SECRET, "spark.executor.cores": "2", "spark.cores.max": "4", **here},
            java_home=java_home,
            say=print,
            deadline_s=300,
        )
    assert 0 < len(before) < len(job.assignments), "it was killed before, or afterwards"
    assert report.results == tuple(stitch_assignment(job, a) for a in job.assignments)
