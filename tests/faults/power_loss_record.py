"""Records what a process does to the files of a folder, call by call: what was written where, named, and synced.

Asked of the kernel, so that what SQLite and Arrow do is in it. A call is recorded right before it is carried out, and
taken for done: nothing fails here. Decides nothing; what may be left of it is `power_loss_disk`'s.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Callable, Sequence
from pathlib import Path, PurePosixPath
from typing import Any

from tests.faults.local_faults_batch import MARK
from tests.faults.local_faults_syscalls import Call, read_memory
from tests.faults.local_faults_watch import path_of, run_watched, second_path_of, signed
from tests.faults.power_loss_disk import Did, Disk, Name, SyncFile, SyncFolder, Told, Tree, Write, moved

TOLD = f"{MARK}told "
_REMOVEDIR = 0x200
_IOVEC = struct.Struct("QQ")


def record(work: Callable[..., Any], arguments: Sequence[Any], *, folder: Path) -> tuple[Disk, list[Did]]:
    """The folder as it was, and all that `work(*arguments)` did to it in a process of its own."""
    recorder = Recorder(folder)
    run_watched(work, arguments, folder=folder, see=recorder.see)
    return recorder.before, recorder.done


class Recorder:
    """`before`: the disk as it was. Files are known by number: a name may go, and come again for another one."""

    def __init__(self, folder: Path) -> None:
        self._root = f"{folder}/"
        self._numbers: dict[str, int] = {}
        """By path, of what has the name or had it last."""
        self._sizes: dict[int, int] = {}
        self.before = Disk()
        for path, content in read_tree(folder).items():
            self.before.named[path] = 0 if content is None else self._number(path)
            if content is not None:
                self.before.bytes_of[self.before.named[path]] = content
        self.done: list[Did] = []

    def see(self, call: Call) -> None:
        path = path_of(call).removesuffix(" (deleted)")
        if not f"{path}/".startswith(self._root):
            return
        about = path.removeprefix(self._root[:-1]).removeprefix("/") or "."
        if about.startswith(TOLD):
            self.done.append(Told(about.removeprefix(TOLD)))
        elif not about.startswith(MARK):
            do = getattr(self, f"_{call.name}", None)
            self.done += do(call, about) if do is not None else []

    def _number(self, path: str) -> int:
        self._numbers[path] = len(self._sizes) + 1
        self._sizes[self._numbers[path]] = 0
        return self._numbers[path]

    def _there(self, path: str) -> bool:
        return os.path.lexists(self._root + path)

    # names

    def _open(self, call: Call, path: str, flags_at: int = 1) -> list[Did]:
        flags = call.arguments[flags_at]
        if flags & os.O_CREAT and not self._there(path):
            return [Name(path, self._number(path))]
        return [Write(self._numbers[path], None, b"")] if flags & os.O_TRUNC and path in self._numbers else []

    def _openat(self, call: Call, path: str) -> list[Did]:
        return self._open(call, path, 2)

    def _mkdir(self, _call: Call, path: str) -> list[Did]:
        return [] if self._there(path) else [Name(path, 0)]

    _mkdirat = _mkdir

    def _link(self, call: Call, path: str) -> list[Did]:
        to = second_path_of(call).removeprefix(self._root)
        if self._there(to) or not self._there(path):
            return []
        self._numbers[to] = self._numbers[path]
        return [Name(to, self._numbers[path])]

    _linkat = _link

    def _rename(self, call: Call, path: str) -> list[Did]:
        to = second_path_of(call).removeprefix(self._root)
        if not self._there(path):
            return []
        assert PurePosixPath(to).parent == PurePosixPath(path).parent, "renamed into another folder"
        if os.path.isdir(self._root + path):
            self._numbers = {moved(known, path, to): n for known, n in self._numbers.items()}
            return [Name(to, 0, instead_of=path)]
        self._numbers[to] = self._numbers.pop(path)
        return [Name(to, self._numbers[to], instead_of=path)]

    _renameat = _renameat2 = _rename

    def _unlink(self, _call: Call, path: str) -> list[Did]:
        return [Name(path, None)] if self._there(path) else []

    _unlinkat = _rmdir = _unlink

    # bytes

    def _write(self, call: Call, path: str) -> list[Did]:
        return self._put(path, _position(call), read_memory(call.thread, call.arguments[1], call.arguments[2]))

    def _pwrite(self, call: Call, path: str) -> list[Did]:
        return self._put(path, call.arguments[3], read_memory(call.thread, call.arguments[1], call.arguments[2]))

    def _writev(self, call: Call, path: str) -> list[Did]:
        table = read_memory(call.thread, call.arguments[1], _IOVEC.size * call.arguments[2])
        parts = [read_memory(call.thread, at, size) for at, size in _IOVEC.iter_unpack(table) if size]
        return self._put(path, _position(call), b"".join(parts))

    def _put(self, path: str, at: int, data: bytes) -> list[Did]:
        return [Write(self._numbers[path], at, data)] if data else []

    def _ftruncate(self, call: Call, path: str) -> list[Did]:
        return [Write(self._numbers[path], None, b"", call.arguments[1])]

    # what makes them certain

    def _fsync(self, _call: Call, path: str) -> list[Did]:
        whole = self._root + path
        return [SyncFolder(path)] if os.path.isdir(whole) else [SyncFile(self._numbers[path])]

    _fdatasync = _fsync


def _position(call: Call) -> int:
    """Where a call writes that does not say so."""
    with open(f"/proc/{call.thread}/fdinfo/{signed(call.arguments[0])}") as about:
        words = dict(line.split(":\t", 1) for line in about if ":\t" in line)
    if int(words["flags"], 8) & os.O_APPEND:
        return os.stat(f"/proc/{call.thread}/fd/{signed(call.arguments[0])}").st_size
    return int(words["pos"])


def read_tree(folder: Path) -> Tree:
    """What lies in a folder, by its path below it."""
    return {
        str(p.relative_to(folder)): None if p.is_dir() else p.read_bytes()
        for p in sorted(folder.rglob("*"))
        if p.is_dir() or p.is_file()
    }


def write_tree(folder: Path, tree: Tree) -> None:
    """A folder with exactly that in it."""
    for path in sorted(tree):
        content = tree[path]
        if content is None:
            (folder / path).mkdir(exist_ok=True)
            (folder / path).chmod(0o750)
        else:
            (folder / path).write_bytes(content)
            (folder / path).chmod(0o640)
