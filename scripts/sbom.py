"""Writes the software bill of materials (CycloneDX 1.6, JSON) of what the platform runs on, from the locks alone.

Says what would be installed, with the digests that installing checks: Python packages from `requirements/runtime.txt`,
jars from the lock of jars, and what the pages bring with them from its list. Never looks at what is installed, never
asks anybody. Same locks, same bytes.
"""

from __future__ import annotations

import hashlib
import json
import re
import sys
import tomllib
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
LOCK = ROOT / "requirements" / "runtime.txt"
JARS = ROOT / "wavestitch" / "local" / "jars.sha256"
VENDORED = ROOT / "wavestitch" / "ui" / "vendored" / "files.sha256"
_PIN = re.compile(r"^([A-Za-z0-9][A-Za-z0-9._-]*)(?:\[[^\]]*\])?==([^\s;\\]+)\s*(?:;\s*([^\\]+?))?\s*\\?$")
_HASH = re.compile(r"--hash=sha256:([0-9a-f]{64})")


def packages(lock: str) -> Iterator[dict[str, Any]]:
    """One component a pinned line; a line that is neither a pin, a digest nor a comment is an error."""
    found: dict[str, Any] | None = None
    for number, line in enumerate(lock.splitlines(), 1):
        text = line.strip()
        if pin := _PIN.match(text):
            if found:
                yield found
            name, version, marker = pin[1], pin[2], pin[3]
            url = f"pkg:pypi/{re.sub(r'[-_.]+', '-', name).lower()}@{version}"
            found = {"type": "library", "bom-ref": url, "name": name, "version": version, "purl": url}
            # One of these files is installed: which one depends on the machine.
            digests: list[dict[str, str]] = []
            found["externalReferences"] = [{"type": "distribution", "url": url, "hashes": digests}]
            if marker:
                found["properties"] = [{"name": "wavestitch:marker", "value": marker.strip()}]
        elif found is not None and (digest := _HASH.search(text)):
            digests.append({"alg": "SHA-256", "content": digest[1]})
        elif text and not text.startswith("#"):
            raise SystemExit(f"{LOCK.name}, line {number}: neither a pin nor a digest: {text[:80]}")
    if found:
        yield found


def jars(lock: str) -> Iterator[dict[str, Any]]:
    """One component a jar, by its file name: the lock has no group names. The same jar may be in several sets."""
    named = {}
    for line in lock.splitlines():
        if line.strip() and not line.startswith("#"):
            digest, path = line.split()
            named[digest] = path.rpartition("/")[2]
    for digest, name in named.items():
        hashes = [{"alg": "SHA-256", "content": digest}]
        yield {"type": "file", "bom-ref": f"sha256:{digest}", "name": name, "hashes": hashes}


def vendored(files: str) -> Iterator[dict[str, Any]]:
    """One component a file of scripts that others wrote; its folder is named for package and version."""
    for line in files.splitlines():
        if line.strip() and not line.startswith("#"):
            digest, path = line.split()
            package, _, version = path.split("/")[0].rpartition("-")
            url = f"pkg:npm/{package}@{version}"
            hashes = [{"alg": "SHA-256", "content": digest}]
            yield {"type": "file", "bom-ref": f"sha256:{digest}", "name": path, "hashes": hashes, "purl": url}


def bill(lock: str, jar_lock: str, files: str, project: dict[str, Any]) -> dict[str, Any]:
    components = sorted(
        [*packages(lock), *jars(jar_lock), *vendored(files)], key=lambda c: (str(c["name"]).lower(), str(c["bom-ref"]))
    )
    seen: dict[str, int] = {}
    for c in components:
        # The same version under two markers.
        seen[c["bom-ref"]] = seen.get(c["bom-ref"], 0) + 1
        if seen[c["bom-ref"]] > 1:
            c["bom-ref"] = f"{c['bom-ref']}#{seen[c['bom-ref']]}"
    digest = hashlib.sha256((lock + jar_lock + files).encode()).hexdigest()
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": f"urn:uuid:{uuid.UUID(digest[:32])}",
        "version": 1,
        "metadata": {
            "component": {
                "type": "application",
                "bom-ref": "wavestitch",
                "name": project["name"],
                "version": project["version"],
                "description": project["description"],
            },
            "properties": [{"name": "wavestitch:lock-sha256", "value": digest}],
        },
        "components": components,
        "dependencies": [{"ref": "wavestitch", "dependsOn": [c["bom-ref"] for c in components]}],
    }


def main() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    json.dump(
        bill(LOCK.read_text(), JARS.read_text(), VENDORED.read_text(), project), sys.stdout, indent=1, sort_keys=True
    )
    print()


if __name__ == "__main__":
    main()
