"""Holds what requirements/*.txt pin against known advisories: those of a dated export, kept there. Asks nobody.

`take EXPORT` keeps of an export what is about pinned packages: a folder or a zip of records of the OSV schema, JSON or
YAML (OSV's `all.zip` of PyPI, a checkout of PyPA's advisory database). Without an argument it checks: each pinned
version that an advisory affects, and that no line of accepted-advisories.toml accepts with a reason, fails.
"""

from __future__ import annotations

import json
import sys
import tomllib
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import yaml
from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

REQUIREMENTS = Path(__file__).resolve().parent.parent / "requirements"
KEPT, ACCEPTED = "advisories.json", "accepted-advisories.toml"
_RECORDS = (".json", ".yaml")
_EVENTS = ("introduced", "fixed", "last_affected")


def pinned(folder: Path) -> dict[str, set[str]]:
    """The versions of each package; a lock may have one for each Python."""
    found: dict[str, set[str]] = {}
    for lock in sorted(folder.glob("*.txt")):
        for line in lock.read_text().splitlines():
            if line[:1].isalnum() and "==" in line:
                try:
                    wanted = Requirement(line.rstrip("\\ "))
                except InvalidRequirement:
                    raise SystemExit(f"{lock.name}: {line[:80]!r} is no pin; run `make lock`") from None
                found.setdefault(canonicalize_name(wanted.name), set()).update(s.version for s in wanted.specifier)
    return found


def records(export: Path) -> Iterator[Any]:
    """What an export says, record by record."""
    if export.is_dir():
        for path in sorted(p for p in export.rglob("*") if p.suffix in _RECORDS):
            yield _record(path.name, path.read_text())
        return
    with zipfile.ZipFile(export) as archive:
        for name in sorted(n for n in archive.namelist() if n.endswith(_RECORDS)):
            yield _record(name, archive.read(name).decode())


def _record(name: str, text: str) -> Any:
    return json.loads(text) if name.endswith(".json") else yaml.load(text, yaml.BaseLoader)  # noqa: S506 - texts alone


def keep(found: Iterable[Any], pins: Mapping[str, set[str]], *, source: str) -> dict[str, Any]:
    """What is kept of an export: of the packages that are pinned, without words. `newest`: the last change in all of
    it, so how old it is."""
    kept, newest, count = [], "", 0
    for record in found:
        count += 1
        newest = max(newest, str(record.get("modified", "")))
        for affected in record.get("affected", ()):
            package = affected.get("package", {})
            name = canonicalize_name(str(package.get("name", "")))
            if package.get("ecosystem") != "PyPI" or name not in pins or record.get("withdrawn"):
                continue
            ranges = [r["events"] for r in affected.get("ranges", ()) if r.get("type") == "ECOSYSTEM"]
            about = {"id": record["id"], "aliases": sorted(record.get("aliases", ())), "package": name}
            kept.append({**about, "ranges": ranges, "versions": sorted(affected.get("versions", ()))})
    if not count:
        raise SystemExit(f"{source} has no records of the OSV schema; give the folder or the zip of an export")
    ordered = sorted(kept, key=lambda one: (one["package"], one["id"]))
    return {"source": source, "records": count, "newest": newest, "asked": sorted(pins), "advisories": ordered}


def is_affected(version: str, advisory: Mapping[str, Any]) -> bool:
    """What cannot be compared counts as affected: somebody has to look."""
    try:
        own = Version(version)
        if own in map(Version, advisory["versions"]):  # each is spelt as it was uploaded
            return True
        return any(_inside(own, events) for events in advisory["ranges"])
    except InvalidVersion:
        return True


def _inside(own: Version, events: Iterable[Mapping[str, str]]) -> bool:
    inside = False
    steps = sorted(
        (Version(at), -_EVENTS.index(kind), kind) for e in events for kind, at in e.items() if kind in _EVENTS
    )
    for at, _, kind in steps:
        if kind == "introduced":
            inside = inside or own >= at
        elif own > at or (kind == "fixed" and own == at):
            inside = False
    return inside


def check(folder: Path, *, today: date) -> list[str]:
    """Says how old the export is; returns what is wrong, a sentence each."""
    kept, pins = folder / KEPT, pinned(folder)
    if not kept.exists():
        print(f"advisories: no export is kept in requirements/{KEPT}, so no pinned version was looked up")
        return []
    export = json.loads(kept.read_text())
    accepted = tomllib.loads((folder / ACCEPTED).read_text()) if (folder / ACCEPTED).exists() else {}
    age = (today - date.fromisoformat(export["newest"][:10])).days
    unasked = sorted(set(pins) - set(export["asked"]))
    print(
        f"advisories: {len(export['advisories'])} of {len(pins)} pinned packages, by {export['source']}, whose newest "
        f"change is {age} days old; {len(unasked)} pinned since were not asked for"
    )
    hits = [
        (advisory, version)
        for advisory in export["advisories"]
        for version in sorted(pins.get(advisory["package"], ()))
        if is_affected(version, advisory)
    ]
    said = [
        f"{a['package']} {version} is affected by {a['id']} ({', '.join(a['aliases']) or 'no other name'}); pin "
        f'another version (make lock), or accept it in requirements/{ACCEPTED}: {a["id"]} = "why it is no harm here"'
        for a, version in hits
        if not accepted.get(a["id"])
    ]
    stale = sorted(set(accepted) - {a["id"] for a, _ in hits})
    return said + [
        f"requirements/{ACCEPTED} accepts {i}, which affects nothing that is pinned; take it out" for i in stale
    ]


def main(argv: list[str]) -> int:
    if argv[:1] == ["take"] and len(argv) == 2:
        export = Path(argv[1])
        kept = keep(records(export), pinned(REQUIREMENTS), source=export.name)
        (REQUIREMENTS / KEPT).write_text(json.dumps(kept, indent=1) + "\n")
    elif argv:
        raise SystemExit("say `take EXPORT`, or nothing")
    problems = check(REQUIREMENTS, today=datetime.now(UTC).date())
    print("\n".join(problems), file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
