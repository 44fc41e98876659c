"""Fetch the jars as they are named in `wavestitch/local/jars.py` and write their digests to the committed list.

For whoever raises a version: run it, then read the difference before committing it.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from wavestitch.local.jars import ALL, PIN_FILE, digest_jars, fetch_jars
from wavestitch.local.java import find_java


def pin_jars() -> str:
    lines = []
    with tempfile.TemporaryDirectory() as scratch:
        java_home = find_java(Path(scratch))
        for jar_set in ALL:
            into = Path(scratch) / jar_set.name
            into.mkdir()
            fetch_jars(jar_set, into=into, java_home=java_home, say=lambda text: print(text, file=sys.stderr))
            lines += [f"{digest}  {jar_set.name}/{name}\n" for name, digest in digest_jars(into).items()]
    return "".join(lines)


if __name__ == "__main__":
    PIN_FILE.write_text(pin_jars())
