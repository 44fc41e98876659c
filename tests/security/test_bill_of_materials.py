"""The bill of materials says what the locks say, all of it, and the same each time."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from typing import Any

from tests.conftest import ROOT


def bill() -> Any:
    script = str(ROOT / "scripts" / "sbom.py")
    return json.loads(subprocess.run([sys.executable, script], capture_output=True, text=True, check=True).stdout)


def test_every_pinned_package_and_jar_is_in_it_with_its_digests() -> None:
    found = bill()
    assert found == bill()
    assert (found["bomFormat"], found["specVersion"]) == ("CycloneDX", "1.6")
    lock = (ROOT / "requirements" / "runtime.txt").read_text()
    pins = re.findall(r"^([A-Za-z0-9._-]+)(?:\[.*?\])?==([^\s;]+)", lock, re.MULTILINE)
    packages = {(c["name"], c["version"]) for c in found["components"] if c["type"] == "library"}
    assert packages == set(pins)
    digests = {
        h["content"] for c in found["components"] for h in (c.get("hashes") or c["externalReferences"][0]["hashes"])
    }
    jars = (ROOT / "wavestitch" / "local" / "jars.sha256").read_text()
    assert digests == set(re.findall(r"sha256:([0-9a-f]{64})", lock)) | set(re.findall(r"^([0-9a-f]{64})", jars, re.M))
    refs = [c["bom-ref"] for c in found["components"]]
    assert len(refs) == len(set(refs))
