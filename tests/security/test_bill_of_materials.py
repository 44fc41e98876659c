"""The bill of materials says what the locks say, all of it, and the same each time."""

from __future__ import annotations

import hashlib
import json
import re
import subprocess
import sys
from importlib.resources import files
from pathlib import Path
from typing import Any

from jsonschema import Draft7Validator
from referencing import Registry, Resource

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
    pages = (ROOT / "wavestitch" / "ui" / "vendored" / "files.sha256").read_text()
    named = set(re.findall(r"^([0-9a-f]{64})", jars + pages, re.M))
    assert digests == set(re.findall(r"sha256:([0-9a-f]{64})", lock)) | named
    refs = [c["bom-ref"] for c in found["components"]]
    assert len(refs) == len(set(refs))


def test_what_others_wrote_is_in_the_checkout_as_it_was_taken_with_its_licence() -> None:
    folder = ROOT / "wavestitch" / "ui" / "vendored"
    lines = (line.split() for line in (folder / "files.sha256").read_text().splitlines()[1:])
    listed = {name: digest for digest, name in lines}
    there = {str(p.relative_to(folder)): hashlib.sha256(p.read_bytes()).hexdigest() for p in folder.glob("*/*")}
    assert there == listed
    assert {Path(name).parent for name in listed} == {Path(name).parent for name in listed if name.endswith("LICENSE")}


def test_it_is_what_the_official_schema_of_cyclonedx_1_6_wants() -> None:
    """With the formats of its fields; the schema is the one that the makers of CycloneDX publish with their library."""
    folder = files("cyclonedx.schema._res")
    schemas = {
        name: json.loads((folder / f"{name}.SNAPSHOT.schema.json").read_text(encoding="utf-8"))
        for name in ("bom-1.6", "spdx", "jsf-0.82")
    }
    registry = Registry().with_resources((s["$id"], Resource.from_contents(s)) for s in schemas.values())
    schema = Draft7Validator(schemas["bom-1.6"], registry=registry, format_checker=Draft7Validator.FORMAT_CHECKER)
    assert [f"{e.json_path}: {e.message}" for e in schema.iter_errors(bill())] == []
    wrong = {**bill(), "serialNumber": "urn:uuid:none", "components": [{"name": "without a type"}]}
    assert {e.json_path for e in schema.iter_errors(wrong)} == {"$.serialNumber", "$.components[0]"}
