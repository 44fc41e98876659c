"""The classes that Spark's JVM loads at every start, archived once: a local start then takes about 40 % less CPU.

Java's own class data sharing: it checks the archive against its classes and does without one that does not fit. Only
for Spark in this machine; made before it is needed, because making it takes longer than a start. An archive is code:
its name carries the digest of its bytes, which is compared before it is used, and nobody else may come to its folder.
"""

from __future__ import annotations

import hashlib
import os
import stat
import subprocess
import tempfile
import time
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path

from spark_apps.submit import (
    JVM_OPTIONS,
    LOCAL_JVM_OPTIONS,
    properties_file,
    spark_conf,
    spark_environment,
    spark_submit,
)
from wavestitch.contracts.errors import BadInput
from wavestitch.folder_lock import folder_lock
from wavestitch.modes import OWN_FOLDER, make_folder

APPLICATION = Path(__file__).with_name("warm_up.py")
FOLDER = "spark-classes"
_DEADLINE_SECONDS = 300.0
_HEARTBEAT_SECONDS = 5.0


def archived_start(*, cache: Path, java_home: Path, say: Callable[[str], None]) -> dict[str, str]:
    """Spark's settings that use the archive; it is made in `cache` where it is missing (once, under a minute).

    Where it cannot be made, that is said, and Spark starts without one: no settings. Raises `BadInput` where the
    archive's folder is somebody else's.
    """
    if not _has_base_archive(java_home):
        # The runtime that comes with the Python packages: an archive is made on top of Java's own, which it lacks.
        return {}
    # Resolved: of a path with a link in it, the link may be moved after the look.
    folder = (cache / FOLDER).resolve()
    _make_private(folder)
    name = f"spark-{version('pyspark')}-{_start_digest(java_home)}"
    with folder_lock(folder):
        archive = _proven(folder, name)
        if archive is None:
            say("archiving the classes that Spark loads at each start (once, 20 to 60 s)")
            problem = _make(folder, name, java_home, say)
            if problem:
                say(f"Spark starts without an archive of its classes: {problem}")
                return {}
            archive = _proven(folder, name)
    return {JVM_OPTIONS: f"{LOCAL_JVM_OPTIONS} -XX:SharedArchiveFile={archive}"} if archive else {}


def _has_base_archive(java_home: Path) -> bool:
    return any((java_home / "lib" / "server").glob("classes*.jsa"))


def _make_private(folder: Path) -> None:
    make_folder(folder, OWN_FOLDER)
    found = folder.stat()
    if found.st_uid != os.geteuid():
        raise BadInput(
            f"{folder} belongs to user {found.st_uid}, and what Spark loads from there runs as us; take it away, or "
            "name another cache"
        )
    if stat.S_IMODE(found.st_mode) != 0o700:
        folder.chmod(0o700)


def _proven(folder: Path, name: str) -> Path | None:
    """The archive whose bytes are those that its name says; one that others have altered goes."""
    for path in sorted(folder.glob(f"{name}.*.jsa")):
        if path.name == f"{name}.{_digest(path)}.jsa":
            return path
        path.unlink()
    return None


def _make(folder: Path, name: str, java_home: Path, say: Callable[[str], None]) -> str | None:
    """Run Spark once and let its JVM write down what it loaded; what went wrong, if anything did."""
    with tempfile.TemporaryDirectory(prefix=".spark-archive-", dir=folder) as scratch:
        made, log = Path(scratch) / "made.jsa", Path(scratch) / "log"
        options = f"{LOCAL_JVM_OPTIONS} -XX:ArchiveClassesAtExit={made} -Xlog:cds=off -Xlog:cds+dynamic=off"
        conf = spark_conf("local[2]", {JVM_OPTIONS: options})
        with log.open("wb") as out, properties_file(conf) as properties:
            child = subprocess.Popen(
                [str(spark_submit()), "--master", "local[2]", "--properties-file", properties.name, str(APPLICATION)],
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                env=spark_environment(java_home),
                pass_fds=properties.handles,
            )
            try:
                code = _wait(child, say)
            finally:
                child.kill()
                child.wait()
        if code != 0 or not made.exists():
            lines = log.read_text(errors="replace").split("\n")
            return f"Spark ended with {code}: {next((x for x in reversed(lines) if x.strip()), 'no output')[:300]}"
        made.chmod(0o400)
        # Nobody may find half of it.
        os.replace(made, folder / f"{name}.{_digest(made)}.jsa")
    return None


def _wait(child: subprocess.Popen[bytes], say: Callable[[str], None]) -> int:
    began = time.monotonic()
    while time.monotonic() - began < _DEADLINE_SECONDS:
        try:
            return child.wait(_HEARTBEAT_SECONDS)
        except subprocess.TimeoutExpired:
            say(f"  after {time.monotonic() - began:.0f} s: still archiving")
    return -1


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _start_digest(java_home: Path) -> str:
    """Of which Java, by what it says of itself and where it is, and where Spark is: an archive fits one class path."""
    release = java_home / "release"
    about = release.read_bytes() if release.exists() else b""
    places = f"{java_home.resolve()}\n{spark_submit().resolve()}"
    return hashlib.sha256(about + places.encode()).hexdigest()[:16]
