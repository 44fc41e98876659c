"""The disk is full (row 8 of the matrix): a small file system of its own, and a limit on what one file may hold.

A batch that runs out of space says so, keeps nothing hidden, and the same plan goes through once there is room.
"""

from __future__ import annotations

import ctypes
import os
import random
import resource
import shutil
import signal
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from tests.faults.fault_class import Bench, Counts, FaultClass, Need
from tests.faults.file_faults_aftermath import check_files, settle
from tests.faults.local_faults_batch import (
    Produced,
    carry,
    end_of_batch,
    make_deployment,
    plans_of,
    produce_mixture,
    quiet,
)
from tests.faults.local_faults_watch import run_alone

_NEW_MOUNTS, _NEW_USER = 0x20000, 0x10000000
_PRIVATE = 1 << 18 | 1 << 14  # and all below it
_SIZE = b"size=64m"


@dataclass(frozen=True)
class Order:
    """A case, as its process gets it. `size`: bytes that are left on the file system, or that a file may hold."""

    folder: Path
    bootstrap: str
    produced: Produced
    size: int

    def begin(self) -> None:
        """A deployment and its first batch, which finds room enough."""
        most = len(self.produced.records) // 2 + 2
        make_deployment(self.folder, bootstrap=self.bootstrap, topic=self.produced.topic, most=most)
        carry(self.folder)


def order(bench: Bench, seed: int, sizes: tuple[int, int]) -> Order:
    rng = random.Random(seed)
    produced = produce_mixture(bench.bootstrap, seed=seed)
    return Order(bench.folder / "deployment", bench.bootstrap, produced, rng.randrange(*sizes))


def after_it_was_full(folder: Path, produced: Produced, end: str) -> Counts:
    """There is room again: the same plan, then quiet batches."""
    again = [end_of_batch(folder, plan_id) for plan_id in plans_of(folder)[-1:]]
    assert set(again) <= {"done"}, f"with room again the plan ended with {again}"
    quiet(folder)
    return settle(folder, produced, (end, *again))


def small_file_system(bench: Bench, seed: int) -> Counts:
    """Everything of the deployment lies on a small file system, on which a foreign file has left next to no room."""
    asked = order(bench, seed, (48 << 10, 320 << 10))
    if not run_alone(mount, [bench.folder]):
        counts = small_files(bench, seed)
        return replace(counts, ends=("no mounting on this machine: a limit on files", *counts.ends))
    return run_alone(_on_small_file_system, [asked])


def _on_small_file_system(asked: Order) -> Counts:
    asked.folder.mkdir()
    assert mount(asked.folder), "it could be mounted a moment ago"
    asked.begin()
    ballast = asked.folder / "ballast"
    with ballast.open("wb") as file:
        os.posix_fallocate(file.fileno(), 0, shutil.disk_usage(asked.folder).free - asked.size)
    end = end_of_batch(asked.folder)
    check_files(asked.folder, asked.produced, tidy=True)
    ballast.unlink()
    return after_it_was_full(asked.folder, asked.produced, end)


def mount(folder: Path) -> bool:
    """Mount a file system in memory there, for this process alone; whether that is allowed."""
    libc = ctypes.CDLL(None, use_errno=True)
    user, group = os.getuid(), os.getgid()
    if libc.unshare(_NEW_MOUNTS if user == 0 else _NEW_MOUNTS | _NEW_USER):
        return False
    if user:
        Path("/proc/self/setgroups").write_text("deny")
        Path("/proc/self/uid_map").write_text(f"0 {user} 1")
        Path("/proc/self/gid_map").write_text(f"0 {group} 1")
    libc.mount(None, b"/", None, _PRIVATE, None)
    done: int = libc.mount(b"tmpfs", os.fsencode(folder), b"tmpfs", 0, _SIZE)
    return done == 0


def small_files(bench: Bench, seed: int) -> Counts:
    """No file may hold more than a few kilobytes."""
    asked = order(bench, seed, (200, 48 << 10))
    asked.begin()
    end = run_alone(partial(_with_small_files, asked.folder), [asked.size])
    check_files(asked.folder, asked.produced, tidy=True)
    return after_it_was_full(asked.folder, asked.produced, end)


def _with_small_files(folder: Path, size: int) -> str:
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)  # the call then fails with EFBIG, as it does for Python itself
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))
    return end_of_batch(folder)


CLASSES = (
    FaultClass("the file system is full", (8,), Need.BROKER, 10, (0,), small_file_system),
    FaultClass("no file may grow", (8,), Need.BROKER, 10, (1,), small_files),
)
