"""What a disk may have after a power failure: of what was done to it, all that was synced and any of the rest. Pure.

The bytes of a file are certain up to its last sync; a name (made, linked, renamed or taken away; a folder's, too) once
the folder that it stands in was synced after that. What is not certain may be there, be gone, or be half there: the
last write torn, or as long as it was with nothing but zeros in it. Names that are not certain may be there alone or be
missing alone, whatever was done before or after: no file system's kindness is counted on.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import NamedTuple

Tree = dict[str, bytes | None]
"""By path the bytes of a file, None for a folder."""


class Write(NamedTuple):
    """`at` None: the file is made as long as `size`, cut off or filled up."""

    file: int
    at: int | None
    data: bytes
    size: int = 0


class Name(NamedTuple):
    """`file`: what has the name from here on; None: nothing, it is taken away; 0: a folder. `instead_of`: the name that
    it had, which goes in the same moment."""

    path: str
    file: int | None
    instead_of: str = ""

    @property
    def folder(self) -> str:
        return str(PurePosixPath(self.path).parent)


class SyncFile(NamedTuple):
    file: int


class SyncFolder(NamedTuple):
    path: str


class Told(NamedTuple):
    """Somebody outside was told: from here on that is known, whatever becomes of the disk."""

    what: str


Did = Write | Name | SyncFile | SyncFolder | Told


class AfterState(NamedTuple):
    """`at`: how many things had been done; `told`: the last that others had been told by then. `how`: in words."""

    at: int
    told: str
    how: str
    tree: Tree


@dataclass
class Disk:
    """`certain`: names and bytes that stay. `names`, `writes`: what was done since, and may stay."""

    named: dict[str, int] = field(default_factory=dict)
    bytes_of: dict[int, bytes] = field(default_factory=dict)
    names: list[Name] = field(default_factory=list)
    writes: dict[int, list[Write]] = field(default_factory=dict)
    told: str = ""
    decided: bool = True
    """Whether something has just become certain, here or elsewhere: then it matters what else has not."""

    def do(self, did: Did) -> None:
        self.decided = isinstance(did, SyncFile | SyncFolder | Told)
        match did:
            case Write():
                self.writes.setdefault(did.file, []).append(did)
            case Name():
                self.names.append(did)
            case SyncFile():
                self.bytes_of[did.file] = self._written(did.file, self.writes.pop(did.file, []))
            case SyncFolder():
                mine = [n for n in self.names if n.folder == did.path]
                self.names = [n for n in self.names if n.folder != did.path]
                self.named = _named(self.named, mine)
            case Told():
                self.told = did.what

    def after_states(self, at: int) -> Iterator[AfterState]:
        """The power fails now."""
        for names, kept in (("all names", self.names), ("no names", [])):
            for data in ("all bytes", "no bytes", "torn bytes", "zeros"):
                yield AfterState(at, self.told, f"{names}, {data}", self._tree(_named(self.named, kept), data))
        for n, name in enumerate(self.names) if self.decided else ():
            others = [*self.names[:n], *self.names[n + 1 :]]
            for how, kept in ((f"all names but {name.path}", others), (f"of names only {name.path}", [name])):
                yield AfterState(at, self.told, how, self._tree(_named(self.named, kept), "all bytes"))

    def _tree(self, named: Mapping[str, int], data: str) -> Tree:
        tree: Tree = {}
        for path in sorted(named):
            folder = str(PurePosixPath(path).parent)
            if folder != "." and tree.get(folder, b"") is not None:
                continue  # the folder it stands in is not there
            file = named[path]
            tree[path] = None if file == 0 else self._bytes(file, data)
        return tree

    def _bytes(self, file: int, data: str) -> bytes:
        pending = self.writes.get(file, [])
        if data == "no bytes" or not pending:
            return self.bytes_of.get(file, b"")
        if data == "torn bytes":
            *rest, last = pending
            half = last._replace(data=last.data[: len(last.data) // 2]) if last.at is not None else last
            return self._written(file, [*rest, half])
        whole = self._written(file, pending)
        if data == "all bytes":
            return whole
        before = self.bytes_of.get(file, b"")
        return before[: len(whole)] + bytes(max(0, len(whole) - len(before)))

    def _written(self, file: int, writes: Sequence[Write]) -> bytes:
        found = bytearray(self.bytes_of.get(file, b""))
        for write in writes:
            size = write.size if write.at is None else max(len(found), write.at + len(write.data))
            found = found[:size] + bytes(max(0, size - len(found)))
            if write.at is not None:
                found[write.at : write.at + len(write.data)] = write.data
        return bytes(found)


def _named(named: Mapping[str, int], names: Sequence[Name]) -> dict[str, int]:
    found = dict(named)
    for name in names:
        file = name.file
        if name.instead_of:
            if name.instead_of not in found:
                continue
            del found[name.instead_of]
            if file == 0:
                found = {moved(path, name.instead_of, name.path): n for path, n in found.items()}
        if file is None:
            found.pop(name.path, None)
        else:
            found[name.path] = file
    return found


def moved(path: str, before: str, after: str) -> str:
    """What is below a folder that has another name now."""
    return after + path[len(before) :] if f"{path}/".startswith(f"{before}/") else path


def after_states(disk: Disk, done: Sequence[Did]) -> Iterator[AfterState]:
    """Of a power failure before each thing that was done, and after the last; each state once."""
    seen: set[bytes] = set()
    for at in range(len(done) + 1):
        # What others are told changes no disk, and what a disk has is the same until something is done to it.
        for state in disk.after_states(at):
            key = digest_of(state)
            if key not in seen:
                seen.add(key)
                yield state
        if at < len(done):
            disk.do(done[at])


def digest_of(state: AfterState) -> bytes:
    seen = hashlib.blake2b(state.told.encode(), digest_size=16)
    for path, content in sorted(state.tree.items()):
        seen.update(f"{path}\0{-1 if content is None else len(content)}\0".encode() + (content or b""))
    return seen.digest()
