"""A cached folder of jars counts only if it holds exactly what the committed list says."""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path

import pytest

from wavestitch.contracts.errors import BadInput
from wavestitch.local.jars import KAFKA, SPARK_TABLES, check_jars, read_pins

PINS = {"a-1.jar": sha256(b"a").hexdigest(), "b-1.jar": sha256(b"b").hexdigest()}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "a-1.jar").write_bytes(b"a")
    (tmp_path / "b-1.jar").write_bytes(b"b")
    return tmp_path


def test_the_listed_files_pass(folder: Path) -> None:
    check_jars(folder, pins=PINS)


def test_a_changed_jar_is_refused_by_name(folder: Path) -> None:
    (folder / "b-1.jar").write_bytes(b"B")
    with pytest.raises(BadInput, match=r"b-1\.jar has SHA-256"):
        check_jars(folder, pins=PINS)


def test_a_missing_jar_is_refused(folder: Path) -> None:
    (folder / "a-1.jar").unlink()
    with pytest.raises(BadInput, match="missing"):
        check_jars(folder, pins=PINS)


def test_a_jar_that_nobody_listed_is_refused(folder: Path) -> None:
    (folder / "c-1.jar").write_bytes(b"c")
    with pytest.raises(BadInput, match="not listed"):
        check_jars(folder, pins=PINS)


def test_every_named_dependency_is_on_the_committed_list() -> None:
    for jar_set in (KAFKA, SPARK_TABLES):
        pins = read_pins(jar_set)
        for each in jar_set.dependencies:
            assert f"{each.artifact}-{each.version}.jar" in pins
