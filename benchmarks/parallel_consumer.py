"""The Parallel Consumer's small program, compiled where a compiler is, and started."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from benchmarks.children import Child
from benchmarks.test_bed import Say
from wavestitch.local.folders import CACHE
from wavestitch.local.jars import PARALLEL_CONSUMER, cached_jars

SOURCE = Path(__file__).with_name("contenders") / "ParallelToDisk.java"


def start_parallel_consumer(folder: Path, java_home: Path, *, say: Say) -> Child:
    """Raises `RuntimeError` where this machine has no Java compiler, or the program does not compile."""
    jars = cached_jars(PARALLEL_CONSUMER, cache_dir=CACHE, java_home=java_home, say=say)
    java = [str(java_home / "bin" / "java"), "-Xmx2g", "-cp"]
    compiler = _compiler(java_home)
    if compiler is None:
        modules = subprocess.run([java[0], "--list-modules"], capture_output=True, text=True, check=False).stdout
        if "jdk.compiler" not in modules:
            raise RuntimeError("there is no Java compiler on this machine; with a JDK 17 or 21 this row is measured")
        return Child([*java, f"{jars}/*", str(SOURCE)], log=folder / "parallel.log")
    classes = folder / "classes"
    done = subprocess.run(
        [compiler, "-nowarn", "-cp", f"{jars}/*", "-d", str(classes), str(SOURCE)],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(f"{SOURCE.name} does not compile: {done.stderr[-600:]}")
    return Child([*java, f"{classes}:{jars}/*", SOURCE.stem], log=folder / "parallel.log")


def _compiler(java_home: Path) -> str | None:
    own = java_home / "bin" / "javac"
    return str(own) if own.exists() else shutil.which("javac")
