"""Every call that a batch makes on its files fails in turn, with every error that it can have (row 8 of the matrix).

The calls are those of one undisturbed batch: what Python, Arrow and SQLite really ask of the kernel. The list of
combinations is complete: each kind of call on each kind of file with each of its errors, and each of them in every
step. A case takes every CASES-th of it. Proves I1, I2, I3 and I6, and that a failed batch gives its disk space back.
"""

from __future__ import annotations

import errno
import shutil
from collections import Counter
from collections.abc import Mapping
from typing import NamedTuple

from tests.deployment_rig import STREAM
from tests.faults.fault_class import Bench, Counts, FaultClass, Need
from tests.faults.file_faults_aftermath import check_files, settle
from tests.faults.local_faults_batch import (
    carry,
    end_of_batch,
    make_deployment,
    open_deployment,
    plans_of,
    produce_mixture,
    quiet,
)
from tests.faults.local_faults_watch import Fault, How, Watched, Where, run_watched
from wavestitch.batch.commit_offsets import project

CASES = 120
_CHANGES = (errno.ENOSPC, errno.EDQUOT, errno.EACCES, errno.EROFS, errno.EIO)
_LOOKS = (errno.EACCES, errno.EIO)
ERRORS: Mapping[str, tuple[int, ...]] = {
    "open to create": (*_CHANGES, errno.EMFILE, errno.EINTR),
    "open to write": (errno.EACCES, errno.EROFS, errno.EMFILE, errno.EIO),
    "open to read": (errno.EACCES, errno.EMFILE, errno.EIO, errno.EINTR),
    "open folder": (errno.EACCES, errno.EMFILE, errno.EIO),
    "write": (errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EINTR),
    "pwrite": (errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EINTR),
    "writev": (errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EINTR),
    "fsync": (errno.EIO, errno.ENOSPC, errno.EDQUOT),
    "fdatasync": (errno.EIO, errno.ENOSPC, errno.EDQUOT),
    "ftruncate": (errno.EIO, errno.EINTR),
    "fallocate": (errno.ENOSPC, errno.EIO),
    "read": (errno.EIO, errno.EINTR),
    "readv": (errno.EIO, errno.EINTR),
    "pread": (errno.EIO, errno.EINTR),
    "mmap": (errno.ENOMEM, errno.EACCES),
    "lock": (errno.ENOLCK, errno.EINTR),
    "getdents": (errno.EIO,),
    "close": (errno.EIO,),
    "fstat": (errno.EIO,),
    "fstatfs": (errno.EIO,),
    "statfs": (errno.EIO, errno.EACCES),
    **dict.fromkeys(("link", "linkat", "mkdir", "mkdirat", "rename", "renameat", "renameat2"), _CHANGES),
    **dict.fromkeys(("unlink", "unlinkat", "rmdir", "chmod"), (errno.EACCES, errno.EROFS, errno.EIO)),
    **dict.fromkeys(("stat", "lstat", "newfstatat", "statx", "access", "faccessat", "faccessat2"), _LOOKS),
}
_REMOVERS = ("unlink", "unlinkat", "close")
_HALVES = ("write", "pwrite")


class Kind(NamedTuple):
    """A call on a kind of file, whatever the step."""

    call: str
    file: str


def combinations(calls: Counter[Where]) -> list[Fault]:
    """All faults for a batch that makes these calls, always in the same order.

    Each kind of call on each kind of file gets each of its errors, at its first call; in every further step in which
    it occurs, one of them, in turn, at its last call there.
    """
    faults: list[Fault] = []
    seen: set[Kind] = set()
    for n, where in enumerate(sorted(calls)):
        kind, errors = Kind(where.call, where.file), ERRORS[where.call]
        if kind in seen:
            faults.append(Fault(where, calls[where] - 1, error=errors[n % len(errors)]))
            continue
        seen.add(kind)
        faults += [Fault(where, 0, error=e) for e in errors]
        if where.call in _HALVES:
            faults.append(Fault(where, 0, How.SHORT))
    return faults


class Stand:
    """A deployment after its first batch, to which it goes back again and again; the second one is disturbed."""

    def __init__(self, bench: Bench) -> None:
        self.produced = produce_mixture(bench.bootstrap)
        self.folder = bench.folder / "deployment"
        self._kept = bench.folder / "kept"
        most = len(self.produced.records) // 2 + 3  # the border cuts waveforms in two
        make_deployment(self.folder, bootstrap=bench.bootstrap, topic=self.produced.topic, most=most)
        carry(self.folder)
        self.before = set(plans_of(self.folder))
        shutil.copytree(self.folder, self._kept)

    def go_back(self) -> None:
        shutil.rmtree(self.folder)
        shutil.copytree(self._kept, self.folder)
        # The group goes back, too: if it shows a later head than the catalog has, that was set back in time.
        deployment = open_deployment(self.folder)
        tables = deployment.tables(STREAM)
        head = tables.head()
        assert head is not None
        project(deployment.stream(STREAM), head, table=tables.table_uuid(), log=deployment.log)

    def watch(self, fault: Fault | None = None) -> Watched:
        """The second batch, disturbed."""
        self.go_back()
        return run_watched(end_of_batch, [self.folder], folder=self.folder, fault=fault)

    def new_plan(self) -> str | None:
        found = [p for p in plans_of(self.folder) if p not in self.before]
        return found[0] if found else None


def fail_once(stand: Stand, fault: Fault) -> Counts:
    """The batch with this fault; what it leaves; the same plan again; quiet batches; the judgement."""
    found = stand.watch(fault)
    assert found.fired == fault.where, f"the call that was to fail did not come: {fault}"
    assert found.fired is not None
    check_files(stand.folder, stand.produced, tidy=found.fired.call not in _REMOVERS)
    plan_id = stand.new_plan()
    if plan_id is not None:
        again = end_of_batch(stand.folder, plan_id)
        assert again == "done", f"carried through again after {fault}, it ended with {again}"
    quiet(stand.folder)
    return settle(stand.folder, stand.produced, (found.result,))


def run_case(bench: Bench, seed: int) -> Counts:
    stand = Stand(bench)
    faults = combinations(stand.watch().calls)[seed % CASES :: CASES]
    counts: list[Counts] = []
    for fault in faults:
        try:
            counts.append(fail_once(stand, fault))
        except Exception as error:
            raise AssertionError(f"{describe(fault)}: {error}") from error
    return add_up(counts)


def describe(fault: Fault) -> str:
    what = "takes half of it" if fault.how is How.SHORT else errno.errorcode.get(fault.error, fault.how.value)
    place = "any file" if fault.where is None else f"{fault.where.call} of {fault.where.file} in {fault.where.step}"
    return f"call {fault.nth} ({place}): {what}"


def add_up(counts: list[Counts]) -> Counts:
    return Counts(
        records=sum(c.records for c in counts),
        lost=sum(c.lost for c in counts),
        duplicated=sum(c.duplicated for c in counts),
        altered=sum(c.altered for c in counts),
        unexplained_gaps=sum(c.unexplained_gaps for c in counts),
        ends=tuple(end for c in counts for end in c.ends),
    )


CLASSES = (FaultClass("every call on files fails in turn", (8,), Need.BROKER, CASES, (7,), run_case),)
