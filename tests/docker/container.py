"""One service of the composition as processes of this machine: the image's files, read only; its own user, without
capabilities; the volumes, secrets and file systems in memory that the file names; its own name.

What an engine does beyond that is not done here: no network and no process numbers of its own, no limits of CPU and
memory (they are measured), no restart. Every service has a loopback address of its own under its name.
"""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil

from tests.docker.composition import Service
from wavestitch.child_environment import child_environment

MARK = "CONTAINER_OF_TESTS"
"""In the environment of everything that runs in a container: `RUN/SERVICE`."""
_HOME = "/tmp"
_GRACE_SECONDS = 60


@dataclass(frozen=True, slots=True)
class ComposedRun:
    """What all containers of a run share. `root`: the image's files. `hosts`: names to addresses."""

    run: str
    folder: Path
    root: Path
    config: Mapping[str, Any]
    hosts: Path
    secrets: Mapping[str, Path]

    def address(self, service: str) -> str:
        """Of this service, for whoever asks from outside."""
        (found,) = [line.split()[0] for line in self.hosts.read_text().splitlines() if line.split()[1] == service]
        return found

    def volume(self, source: str) -> Path:
        """A named volume, which belongs to the image's user, or a folder of the checkout."""
        if source.startswith("."):
            return (self.folder / "docker" / source).resolve()
        path = self.folder / "volumes" / source
        if not path.exists():
            path.mkdir(parents=True)
            user, _, group = str(self.config["User"]).partition(":")
            os.chown(path, int(user), int(group))
            path.chmod(0o750)
        return path


@dataclass
class Container:
    """A service that was started. `log`: what it prints."""

    composed: ComposedRun
    service: Service
    log: Path
    process: subprocess.Popen[bytes] = field(init=False)
    killed: bool = False

    def start(self) -> None:
        with self.log.open("ab") as out:
            self.process = subprocess.Popen(
                self._inside(self.service.command),
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                env=child_environment(os.environ),
                start_new_session=True,
            )

    def run(self, words: list[str], *, seconds: float) -> subprocess.CompletedProcess[str]:
        """A command in the same container: its mounts, its user, its environment."""
        inside = ["nsenter", "--target", str(self.process.pid), "--mount", "--uts", "--root", "--wd"]
        try:
            return subprocess.run(
                [*inside, *self._as_its_user(words)],
                capture_output=True,
                text=True,
                timeout=seconds,
                check=False,
                env=child_environment(os.environ),
            )
        except subprocess.TimeoutExpired:
            return subprocess.CompletedProcess(words, 124, "", f"not done after {seconds} s")

    def healthy(self) -> bool:
        return self.process.poll() is None and self.run(self.service.health, seconds=15).returncode == 0

    def ask_to_stop(self) -> None:
        """As an engine does: its stop signal, to its first process."""
        self.process.send_signal(signal.Signals[self.service.stop_signal])

    def stop(self) -> None:
        """Once it was asked to: after a while, the end of all of it."""
        try:
            self.process.wait(_GRACE_SECONDS)
        except subprocess.TimeoutExpired:
            self.killed = True
        self.end()

    def end(self) -> None:
        """Whatever still runs in it ends now."""
        for found in self.processes():
            found.kill()
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait(_GRACE_SECONDS)

    def processes(self) -> list[psutil.Process]:
        """All that run in it, whoever their parent is."""
        return [p for p, mark in marked(self.composed.run) if mark == self.service.name]

    def why_not(self) -> str:
        """Why it is not healthy, with its last words."""
        ended = self.process.poll()
        if ended is not None:
            return f"{self.service.name} ended with {ended}; its last words:\n{self.last_words()}"
        asked = self.run(self.service.health, seconds=15)
        why = f"its check ended with {asked.returncode}: {asked.stderr.strip()[-300:]}"
        return f"{self.service.name} is not healthy ({why}); its last words:\n{self.last_words()}"

    def last_words(self, count: int = 25) -> str:
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-count:])

    def environment(self) -> dict[str, str]:
        image = dict(line.split("=", 1) for line in self.composed.config["Env"])
        own = {"HOME": _HOME, "HOSTNAME": self.service.name, MARK: f"{self.composed.run}/{self.service.name}"}
        return {**image, **own, **self.service.environment}

    def _inside(self, words: list[str]) -> list[str]:
        steps = [f"hostname {self.service.name}", *self._mounts(), f"cd {shlex.quote(str(self.composed.root))}"]
        last = "exec chroot . " + shlex.join(self._as_its_user(words))
        return ["unshare", "--mount", "--uts", "--propagation", "private", "sh", "-ec", "\n".join([*steps, last])]

    def _as_its_user(self, words: list[str]) -> list[str]:
        user, _, group = str(self.composed.config["User"]).partition(":")
        limits = ["--reuid", user, "--regid", group, "--clear-groups", "--no-new-privs", "--bounding-set=-all"]
        where = str(self.composed.config.get("WorkingDir") or "/")
        variables = [f"{name}={value}" for name, value in self.environment().items()]
        return ["setpriv", *limits, "env", "-i", f"--chdir={where}", *variables, *words]

    def _mounts(self) -> list[str]:
        root = self.composed.root
        steps = [f"mount --bind {root} {root}", f"mount -t proc proc {root}/proc", f"mount --rbind /dev {root}/dev"]
        for place, options in {"/run": "mode=755,size=1m", **self.service.scratch()}.items():
            # As an engine does: nothing is run from there unless the file says so.
            closed = "nosuid,nodev" if "exec" in options.split(",") else "nosuid,nodev,noexec"
            steps.append(f"mount -t tmpfs -o {closed},{options} tmpfs {root}{place}")
        bound = [(self.composed.hosts, "/etc/hosts", True)]
        for name, place in self.service.secrets.items():
            steps += [f"mkdir -p {root}{os.path.dirname(place)}", f"touch {root}{place}"]
            bound.append((self.composed.secrets[name], place, True))
        bound += [(self.composed.volume(source), place, ro) for source, place, ro in self.service.mounts()]
        for source, place, read_only in bound:
            steps.append(f"mount --bind {shlex.quote(str(source))} {root}{place}")
            if read_only:
                steps.append(f"mount -o remount,bind,ro {root}{place}")
        return [*steps, f"mount -o remount,bind,ro {root}"] if self.service.said["read_only"] else steps


def marked(run: str) -> list[tuple[psutil.Process, str]]:
    """All processes of the containers of a run, and of which service each is."""
    found = []
    for process in psutil.process_iter():
        try:
            owner, _, service = process.environ().get(MARK, "").partition("/")
        except psutil.Error:
            continue
        if owner == run:
            found.append((process, service))
    return found
