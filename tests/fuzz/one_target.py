"""Runs targets under atheris, each in a process of its own that is forked off when everything is imported.

Importing with every branch marked takes longer than many a search: it is done once, whatever follows.
"""

from __future__ import annotations

import hashlib
import io
import os
import sys
import traceback
from collections.abc import Sequence
from contextlib import redirect_stderr
from pathlib import Path

_RAISED = 77
_OURS = ["wavestitch", "consumers", "spark_apps.outcome", "yaml"]


def prepare() -> None:
    """Import what parses, with its branches marked: they lead the search."""
    import atheris  # noqa: PLC0415 - only where one fuzzes: there is not a wheel for every machine

    # It names every module on the way, which nobody wants to read.
    with redirect_stderr(io.StringIO()), atheris.instrument_imports(include=_OURS):
        from tests.fuzz.all_targets import TARGETS  # noqa: PLC0415, F401

    atheris.enabled_hooks.add("RegEx")
    atheris.enabled_hooks.add("str")


def run(name: str, flags: Sequence[str], *, log: Path, finds: Path) -> tuple[int, float]:
    """Fuzz one target in a child; its exit code, 0 where nothing was found, and the processor seconds that it took.
    `flags`: libFuzzer's, and folders. What
    the child ends with is kept in `finds`."""
    child = os.fork()
    if child:
        _, status, used = os.wait4(child, 0)
        return os.waitstatus_to_exitcode(status), used.ru_utime + used.ru_stime
    try:
        _fuzz(name, flags, log, finds)
    finally:
        os._exit(2)


def _fuzz(name: str, flags: Sequence[str], log: Path, finds: Path) -> None:
    import atheris  # noqa: PLC0415

    from tests.fuzz.all_targets import TARGETS  # noqa: PLC0415

    file = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    os.dup2(file, 1)
    os.dup2(file, 2)
    target = TARGETS[name].run

    def keeping(data: bytes) -> None:
        try:
            target(data)
        except BaseException:
            # Without a sanitizer libFuzzer keeps what ends by a signal, a hang or too much memory, and no exceptions.
            (finds / f"raised-{hashlib.sha256(data).hexdigest()[:16]}").write_bytes(data)
            traceback.print_exc()
            os._exit(_RAISED)

    atheris.Setup([sys.argv[0], f"-artifact_prefix={finds}/", *flags], keeping)
    atheris.Fuzz()
