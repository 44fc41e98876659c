"""Builds the image as docker/README.md says, with buildah: it needs root and no container engine.

Where no registry of images can be reached, the base is made by debootstrap, and knows the certificates of this machine.
Everything lies in one folder, and goes with it.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.conftest import ROOT

PROGRAMS = ("buildah", "debootstrap", "unshare", "nsenter", "setpriv", "tar")
IMAGE = "localhost/wavestitch:test"
_BASE = "localhost/wavestitch-base:test"
_INCLUDED = "python3-minimal,python3-venv,ca-certificates"
_CERTIFICATES = Path("/etc/ssl/certs/ca-certificates.crt")
_SECONDS = 1800

Say = Callable[[str], None]


def what_is_missing() -> list[str]:
    """What this machine lacks to build and start the image; each as a sentence."""
    found = [f"{name} is not on PATH (Debian's package has it)" for name in PROGRAMS if shutil.which(name) is None]
    if os.geteuid() != 0:
        found.append("mounting and changing users needs root")
    return found


@dataclass(frozen=True, slots=True)
class Images:
    """Images and containers below one folder, apart from all others of this machine."""

    folder: Path

    def buildah(self, *words: str | Path, log: Path | None = None) -> str:
        """What it prints; with `log`, it prints there."""
        store: list[str | Path] = [
            "--storage-driver",
            "vfs",
            "--root",
            self.folder / "images",
            "--runroot",
            self.folder / "run",
        ]
        return _run(["buildah", *store, *words], log=log)

    def build(self, base: str, *, log: Path) -> None:
        """The image of docker/Dockerfile on this base."""
        isolated = ["--isolation", "chroot", "--network", "host", "--layers=false"]
        ignore: list[str | Path] = ["--ignorefile", ROOT / "docker" / "Dockerfile.dockerignore"]
        what: list[str | Path] = [
            "--build-arg",
            f"BASE={base}",
            "--tag",
            IMAGE,
            "--file",
            ROOT / "docker" / "Dockerfile",
            ROOT,
        ]
        self.buildah("rm", "--all")  # of an image that was built here before
        self.buildah("bud", *isolated, *ignore, *what, log=log)

    def make_base(self, *, mirror: str | None, log: Path) -> str:
        """A Debian 12 with its own Python 3.11; its name."""
        root = self.folder / "debian"
        argv: list[str | Path] = ["debootstrap", "--variant=minbase", f"--include={_INCLUDED}", "bookworm", root]
        _run([*argv, mirror] if mirror else argv, log=log)
        # What answers for package registries here is trusted in the image of tests, as it is outside.
        shutil.copyfile(_CERTIFICATES, root / _CERTIFICATES.relative_to("/"))
        for folder in ("var/cache/apt/archives", "var/lib/apt/lists"):
            shutil.rmtree(root / folder, ignore_errors=True)
        container = self.buildah("from", "scratch").strip()
        self.buildah("copy", container, root, "/")
        for name in ("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE"):
            self.buildah("config", "--env", f"{name}={_CERTIFICATES}", container)
        self.buildah("commit", "--quiet", "--rm", container, _BASE)
        shutil.rmtree(root)
        return _BASE

    def mounted(self) -> Path:
        """The file system of a container of the image. Nobody writes to it."""
        made = self.buildah("containers", "--quiet").split() or self.buildah("from", "--pull-never", IMAGE).split()
        return Path(self.buildah("mount", made[0]).strip())

    def config(self) -> Mapping[str, Any]:
        """What the image says of itself: Env, User, WorkingDir, …"""
        found: dict[str, Any] = json.loads(self.buildah("inspect", "--type", "image", IMAGE))["OCIv1"]
        return {**found["config"], "history": found.get("history", [])}

    def bytes(self) -> int:
        """Of the image, unpacked and uncompressed."""
        return int(json.loads(self.buildah("images", "--json", IMAGE))[0].get("size_bytes", 0))


def _run(argv: Sequence[str | Path], *, log: Path | None) -> str:
    words = [str(word) for word in argv]
    if log is None:
        done = subprocess.run(words, capture_output=True, text=True, timeout=_SECONDS, check=False)
        said = done.stderr
    else:
        with log.open("ab") as out:
            done = subprocess.run(words, stdout=out, stderr=out, timeout=_SECONDS, check=False)  # type: ignore[assignment]
        said = log.read_text(errors="replace")
    if done.returncode:
        raise RuntimeError(f"{' '.join(words)} ended with {done.returncode}:\n{said[-4000:]}")
    return done.stdout if log is None else ""
