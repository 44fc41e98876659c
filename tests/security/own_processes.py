"""What a process and all that it starts show of themselves while they run: command lines, and where they listen."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from ipaddress import IPv4Address, IPv6Address, ip_address
from pathlib import Path

import psutil


@dataclass
class Sight:
    """Everything that was seen of a process tree. `listening`: addresses of sockets in state LISTEN."""

    commands: set[str] = field(default_factory=set)
    listening: set[IPv4Address | IPv6Address] = field(default_factory=set)
    environments: dict[str, str] = field(default_factory=dict)
    """Of the descendants, by their commands."""
    may_dump: set[str] = field(default_factory=set)
    """Commands whose memory a crash would write to a disk."""

    def look(self, pids: Iterable[int]) -> None:
        inodes = set()
        for number, pid in enumerate(pids):
            try:
                words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
                command = b" ".join(words).decode(errors="replace")
                self.commands.add(command)
                inodes |= _sockets(pid)
                if number:  # the first is the starter, which has what it was given
                    given = Path(f"/proc/{pid}/environ").read_bytes().replace(b"\0", b"\n")
                    self.environments[command] = self.environments.get(command, "") + given.decode(errors="replace")
                    if psutil.Process(pid).rlimit(psutil.RLIMIT_CORE)[0] != 0:
                        self.may_dump.add(command)
            except (FileNotFoundError, ProcessLookupError, PermissionError, psutil.NoSuchProcess):
                continue  # it has ended meanwhile
        self.listening |= _listening(inodes)


def watch_to_its_end(process: subprocess.Popen[bytes], *, seconds: float) -> Sight:
    """Look at the process and its descendants again and again until it ends; fails where it does not in time."""
    sight, deadline = Sight(), time.monotonic() + seconds
    while process.poll() is None:
        assert time.monotonic() < deadline, f"still running after {seconds} s"
        sight.look(family(process.pid))
        time.sleep(0.1)  # between two looks
    return sight


def family(pid: int) -> list[int]:
    try:
        return [pid, *(child.pid for child in psutil.Process(pid).children(recursive=True))]
    except psutil.NoSuchProcess:
        return []


def _sockets(pid: int) -> set[str]:
    found = set()
    for handle in Path(f"/proc/{pid}/fd").iterdir():
        try:
            target = os.readlink(handle)
        except FileNotFoundError:
            continue
        if target.startswith("socket:["):
            found.add(target[8:-1])
    return found


def _listening(inodes: set[str]) -> set[IPv4Address | IPv6Address]:
    found = set()
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/net/{table}").read_text().splitlines()[1:]:
            row = line.split()
            if row[3] == "0A" and row[9] in inodes:
                found.add(_address(row[1].rpartition(":")[0]))
    return found


def _address(text: str) -> IPv4Address | IPv6Address:
    """The kernel writes words of four bytes, each in the machine's own order."""
    raw = bytes.fromhex(text)
    found = ip_address(b"".join(raw[i : i + 4][::-1] for i in range(0, len(raw), 4)))
    return getattr(found, "ipv4_mapped", None) or found
