"""What is pinned is held against a kept export of advisories, offline: each affected version is found, and no other."""

from __future__ import annotations

import json
import zipfile
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from scripts.advisories import check, is_affected, keep, pinned, records
from tests.conftest import ROOT

TODAY = date(2026, 11, 23)
LOCK = """\
# by the lock
aiohttp==3.9.1 \\
    --hash=sha256:00
Some.Thing[extra]==2.0 ; python_full_version < '3.12' \\
    --hash=sha256:00
some-thing==2.1 ; python_full_version >= '3.12' \\
    --hash=sha256:00
"""


def record(name: str, *events: dict[str, str], **more: Any) -> dict[str, Any]:
    ranges = [
        {"type": "GIT", "events": [{"introduced": "0"}]},
        {"type": "ECOSYSTEM", "events": list(events)},
    ]
    affected = {"package": {"ecosystem": "PyPI", "name": name}, "ranges": ranges, "versions": more.pop("versions", [])}
    return {"id": f"X-{name}", "modified": "2026-11-01T00:00:00Z", "aliases": ["CVE-1"], "affected": [affected], **more}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "runtime.txt").write_text(LOCK)
    return tmp_path


@pytest.mark.parametrize(
    ("version", "events", "versions", "affected"),
    [
        ("3.9.1", [{"introduced": "0"}, {"fixed": "3.9.2"}], [], True),
        ("3.9.2", [{"introduced": "0"}, {"fixed": "3.9.2"}], [], False),
        ("3.9.2rc1", [{"introduced": "0"}, {"fixed": "3.9.2"}], [], True),
        ("3.10", [{"introduced": "0"}, {"fixed": "3.9.2"}], [], False),
        ("1.0", [{"introduced": "1.1"}, {"fixed": "2"}], [], False),
        ("2.5", [{"introduced": "0"}, {"fixed": "2"}, {"introduced": "2.4"}], [], True),
        ("2.4", [{"introduced": "0"}, {"last_affected": "2.4"}], [], True),
        ("2.4.1", [{"introduced": "0"}, {"last_affected": "2.4"}], [], False),
        ("1.0", [], ["1.0"], True),
        ("1.0", [], ["1.0.0"], True),
        ("1.0b1", [], ["1.0.0-beta1"], True),
        ("2.0.post1", [], ["2.0-1"], True),
        ("1.0", [], ["1.1", "0.9"], False),
        ("1.0", [], ["of no kind", "0.9"], True),
        ("1.0", [{"introduced": "0"}, {"fixed": "of no kind"}], [], True),
    ],
)
def test_a_version_is_affected_as_the_schema_says(
    version: str, events: list[dict[str, str]], versions: list[str], affected: bool
) -> None:
    assert is_affected(version, {"ranges": [events], "versions": versions}) is affected


def test_each_affected_pin_is_named_with_its_way_out_and_one_that_is_accepted_is_not(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = [
        record("AioHTTP", {"introduced": "0"}, {"fixed": "3.9.2"}),
        record("some_thing", {"introduced": "2.1"}),
        record("not-here", {"introduced": "0"}),
        record("aiohttp", {"introduced": "0"}, withdrawn="2026-01-01T00:00:00Z", id="X-withdrawn"),
    ]
    with zipfile.ZipFile(folder / "all.zip", "w") as archive:
        for n, one in enumerate(found):
            archive.writestr(f"{n}.json", json.dumps(one))
    kept = keep(records(folder / "all.zip"), pinned(folder), source="all.zip")
    (folder / "advisories.json").write_text(json.dumps(kept))
    said = check(folder, today=TODAY)
    assert [line.partition(" is affected by ")[0] for line in said] == ["aiohttp 3.9.1", "some-thing 2.1"]
    assert all("make lock" in line and "accepted-advisories.toml" in line for line in said)
    assert "22 days old; 0 pinned since" in capsys.readouterr().out
    (folder / "accepted-advisories.toml").write_text('X-AioHTTP = "we are no server"\nX-gone = "was"\n')
    affected, stale = check(folder, today=TODAY)
    assert affected.startswith("some-thing 2.1 is affected")
    assert "accepts X-gone" in stale


def test_an_export_of_files_in_yaml_is_read_too(folder: Path) -> None:
    (folder / "vulns").mkdir()
    (folder / "vulns" / "one.yaml").write_text(
        "id: PYSEC-1\nmodified: 2024-02-06T20:20:18Z\naffected:\n- package:\n    ecosystem: PyPI\n    name: aiohttp\n"
        '  ranges:\n  - type: ECOSYSTEM\n    events:\n    - introduced: "0"\n    - fixed: 3.10\n'
    )
    kept = keep(records(folder / "vulns"), pinned(folder), source="vulns")
    assert kept["newest"] == "2024-02-06T20:20:18Z"
    assert kept["advisories"][0]["ranges"] == [[{"introduced": "0"}, {"fixed": "3.10"}]], "3.10 is no number"


def test_every_line_of_the_locks_is_a_pin_that_is_asked_for() -> None:
    pins = pinned(ROOT / "requirements")
    assert {"apache-airflow", "pyspark", "confluent-kafka", "pytest", "uv"} <= set(pins)
    assert all(pins.values())
