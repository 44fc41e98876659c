"""What a process and all that it starts show of themselves while they run: command lines, and where they listen."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from ipaddress import IPv4Address, IPv6Address, ip_address

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
    _forked: set[int] = field(default_factory=set)

    def look(self, pids: Iterable[int]) -> None:
        for number, pid in enumerate(pids):
            try:
                process = psutil.Process(pid)
                command = " ".join(process.cmdline())
                self.commands.add(command)
                self.listening |= {
                    _address(each.laddr.ip)
                    for each in process.net_connections("inet")
                    if each.status == psutil.CONN_LISTEN
                }
                if number and not self._is_about_to_start(process, command):  # the first has what it was given
                    self.environments[command] = self.environments.get(command, "") + str(process.environ())
                    if process.rlimit(psutil.RLIMIT_CORE)[0] != 0:
                        self.may_dump.add(command)
            except (ProcessLookupError, psutil.Error):
                continue  # it has ended meanwhile

    def _is_about_to_start(self, process: psutil.Process, command: str) -> bool:
        """Between fork and exec a child is its parent still, with all that this has. One that is so at two looks stays
        so, and counts."""
        parent = process.parent()
        if process.pid in self._forked or parent is None or command != " ".join(parent.cmdline()):
            return False
        self._forked.add(process.pid)
        return True


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


def _address(text: str) -> IPv4Address | IPv6Address:
    found = ip_address(text)
    return getattr(found, "ipv4_mapped", None) or found
