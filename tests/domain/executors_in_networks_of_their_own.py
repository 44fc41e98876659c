"""Stitching on a standalone cluster each node of which is in a network of its own, as on machines of their own: they
reach each other over a bridge alone, and share the folder. A worker's link is cut in the middle.

By `make test-cluster`: six JVMs, and only where network namespaces can be made, which takes root on Linux.
"""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.domain.executors_of_a_standalone_cluster import WORKERS, Host, Standalone, stitch_on
from tests.faults.spark_faults import slowly

SOON = {
    "spark_network_timeout": "15s",
    "spark_network_timeoutInterval": "5s",
    "spark_executor_heartbeatInterval": "3s",
}
"""An executor that is not heard of is given up by its driver: after two minutes by default."""


def ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, capture_output=True, text=True)


@dataclass(frozen=True)
class Networks:
    """`here`: this machine's place on the bridge. `hosts`: those behind it."""

    name: str
    here: Host
    hosts: list[Host]

    def cut(self, host: int) -> None:
        """Nothing goes there or comes from there any more, and nobody is told."""
        ip("link", "set", f"{self.name}v{host}", "down")


def end_all_in(network: str) -> None:
    """Executors outlive their worker for a moment, behind a link that is cut for longer."""
    found = subprocess.run(["ip", "netns", "pids", network], capture_output=True, text=True, check=False)
    for pid in map(int, found.stdout.split()):
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def may_make_networks() -> bool:
    probe = f"ws{os.getpid()}p"
    try:
        ip("netns", "add", probe)
    except (FileNotFoundError, subprocess.CalledProcessError):
        return False
    ip("netns", "del", probe)
    return True


@pytest.fixture
def networks() -> Iterator[Networks]:
    if not may_make_networks():
        pytest.skip("network namespaces cannot be made here: `ip netns add` is not there, or not allowed")
    name = f"ws{os.getpid()}"
    # Of the addresses that are for trying networks out; nobody routes them.
    net = f"198.18.{os.getpid() % 250}"
    hosts = [Host(f"{net}.{n + 2}", ("ip", "netns", "exec", f"{name}n{n}")) for n in range(1 + WORKERS)]
    try:
        ip("link", "add", f"{name}b", "type", "bridge")
        ip("address", "add", f"{net}.1/24", "dev", f"{name}b")
        ip("link", "set", f"{name}b", "up")
        for n, host in enumerate(hosts):
            ip("netns", "add", f"{name}n{n}")
            ip("link", "add", f"{name}v{n}", "type", "veth", "peer", "name", "eth0", "netns", f"{name}n{n}")
            ip("link", "set", f"{name}v{n}", "master", f"{name}b", "up")
            for inside in (("address", "add", f"{host.address}/24", "dev", "eth0"), ("link", "set", "eth0", "up")):
                ip("-netns", f"{name}n{n}", *inside)
            ip("-netns", f"{name}n{n}", "link", "set", "lo", "up")
        yield Networks(name, Host(f"{net}.1"), hosts)
    finally:
        for n in range(len(hosts)):
            end_all_in(f"{name}n{n}")
        # Links first: what a network has in it goes some time after its name.
        for link in (*(f"{name}v{n}" for n in range(len(hosts))), f"{name}b"):
            subprocess.run(["ip", "link", "del", link], capture_output=True, check=False)
        for n in range(len(hosts)):
            subprocess.run(["ip", "netns", "del", f"{name}n{n}"], capture_output=True, check=False)


EAGER = {
    "spark_speculation": "true",
    "spark_speculation_interval": "50ms",
    "spark_speculation_multiplier": "1.01",
    "spark_speculation_quantile": "0.1",
    "spark_speculation_minTaskRuntime": "100ms",
}
"""A task that takes longer than the others is run once more, on another host: that there are two is why it is here."""


def test_nodes_in_networks_of_their_own_stitch_what_one_process_does_though_a_link_is_cut(
    networks: Networks, tmp_path: Path, java_home: Path
) -> None:
    """Whoever is behind it goes on writing: the same names, of the same bytes."""
    (tmp_path / "spark").mkdir()
    with slowly():
        cluster = Standalone(tmp_path / "spark", java_home, networks.hosts)
        try:
            found = stitch_on(cluster, tmp_path, java_home, networks.here, lambda: networks.cut(1), **SOON)
        finally:
            cluster.close()
    assert "Lost executor" in found.log, "nobody noticed that the link was cut"
    assert all(list(cluster.work_folder(n).glob("app-*")) for n in range(WORKERS)), "not on both workers"


def test_tasks_that_fail_once_or_run_on_two_hosts_at_once_leave_each_file_once(
    networks: Networks, tmp_path: Path, java_home: Path
) -> None:
    """There is no stage to be run again: nothing is shuffled, and tasks write files by names of their content."""
    (tmp_path / "spark").mkdir()
    with slowly(STITCH_TEST_FAIL_FIRST=str(tmp_path / "failed")):
        cluster = Standalone(tmp_path / "spark", java_home, networks.hosts)
        try:
            found = stitch_on(cluster, tmp_path, java_home, networks.here, lambda: None, **EAGER)
        finally:
            cluster.close()
    assert len(list((tmp_path / "failed").iterdir())) == len(found.report.results), "not each task failed once"
    assert "as speculatable" in found.log, "no task was run twice at once"
    assert "Parents of final stage: List()" in found.log, "there is a shuffle, and so a stage that is run again"
    named = sorted(str(result.file) for result in found.report.results)
    assert sorted(p.name for p in found.folder.rglob("*.parquet")) == named
