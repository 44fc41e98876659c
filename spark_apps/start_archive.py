"""The classes that Spark's JVM loads at every start, archived once: a local start then takes about 40 % less CPU.

Java's own class data sharing: it checks the archive against its classes and does without one that does not fit. Only
for Spark in this machine; made before it is needed, because making it takes longer than a start.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import tempfile
import time
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path

from spark_apps.submit import (
    JVM_OPTIONS,
    LOCAL_JVM_OPTIONS,
    spark_conf,
    spark_environment,
    spark_properties,
    spark_submit,
)

APPLICATION = Path(__file__).with_name("warm_up.py")
_DEADLINE_SECONDS = 300.0
_HEARTBEAT_SECONDS = 5.0


def archived_start(*, cache: Path, java_home: Path, say: Callable[[str], None]) -> dict[str, str]:
    """Spark's settings that use the archive; it is made in `cache` where it is missing (once, under a minute).

    Where it cannot be made, that is said, and Spark starts without one: no settings.
    """
    archive = cache / f"spark-{version('pyspark')}-{_java_digest(java_home)}.jsa"
    if not archive.exists():
        say("archiving the classes that Spark loads at each start (once, 20 to 60 s)")
        problem = _make(archive, java_home, say)
        if problem:
            say(f"Spark starts without an archive of its classes: {problem}")
            return {}
    return {JVM_OPTIONS: f"{LOCAL_JVM_OPTIONS} -XX:SharedArchiveFile={archive}"}


def _make(archive: Path, java_home: Path, say: Callable[[str], None]) -> str | None:
    """Run Spark once and let its JVM write down what it loaded; what went wrong, if anything did."""
    archive.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".spark-archive-", dir=archive.parent) as scratch:
        made, log = Path(scratch) / archive.name, Path(scratch) / "log"
        options = f"{LOCAL_JVM_OPTIONS} -XX:ArchiveClassesAtExit={made} -Xlog:cds=off -Xlog:cds+dynamic=off"
        properties = Path(scratch) / "spark.properties"
        properties.write_text(spark_properties(spark_conf("local[2]", {JVM_OPTIONS: options})), encoding="latin-1")
        with log.open("wb") as out:
            child = subprocess.Popen(
                [str(spark_submit()), "--master", "local[2]", "--properties-file", str(properties), str(APPLICATION)],
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                env=spark_environment(java_home),
            )
            try:
                code = _wait(child, say)
            finally:
                child.kill()
                child.wait()
        if code != 0 or not made.exists():
            lines = log.read_text(errors="replace").split("\n")
            return f"Spark ended with {code}: {next((x for x in reversed(lines) if x.strip()), 'no output')[:300]}"
        # Nobody may find half of it.
        os.replace(made, archive)
    return None


def _wait(child: subprocess.Popen[bytes], say: Callable[[str], None]) -> int:
    began = time.monotonic()
    while time.monotonic() - began < _DEADLINE_SECONDS:
        try:
            return child.wait(_HEARTBEAT_SECONDS)
        except subprocess.TimeoutExpired:
            say(f"  after {time.monotonic() - began:.0f} s: still archiving")
    return -1


def _java_digest(java_home: Path) -> str:
    """Which Java it is: what it says of itself, and where it is."""
    release = java_home / "release"
    about = release.read_bytes() if release.exists() else b""
    return hashlib.sha256(about + str(java_home.resolve()).encode()).hexdigest()[:16]
