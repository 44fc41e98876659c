"""Which Java is taken."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from wavestitch.local.java import find_java

FAKE = '#!/bin/sh\nprintf "    java.home = %s\\n    java.specification.version = %s\\n" {home} {version} >&2\n'


def fake_java(folder: Path, version: str) -> Path:
    java = folder / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text(FAKE.format(home=folder, version=version))
    java.chmod(0o755)
    return folder


@pytest.mark.parametrize("version", ["17", "21"])
def test_java_home_is_taken_if_its_version_is_supported(tmp_path: Path, version: str) -> None:
    home = fake_java(tmp_path / "jdk", version)
    assert find_java(tmp_path / "cache", environ={"JAVA_HOME": str(home), "PATH": ""}) == home


def test_a_java_that_spark_cannot_run_on_is_passed_over(tmp_path: Path) -> None:
    new, old = fake_java(tmp_path / "new", "25"), fake_java(tmp_path / "old", "17")
    environ = {"JAVA_HOME": str(new), "PATH": f"{old / 'bin'}:/usr/bin:/bin"}
    assert find_java(tmp_path / "cache", environ=environ) == old


def test_without_any_the_packaged_runtime_serves_without_the_module_it_lacks(tmp_path: Path) -> None:
    home = find_java(tmp_path / "cache", environ={"PATH": ""})
    argv = [str(home / "bin" / "java"), "--add-modules=jdk.incubator.vector", "-version"]
    done = subprocess.run(argv, capture_output=True, text=True, check=True)
    assert "21" in done.stderr
    assert find_java(tmp_path / "cache", environ={"PATH": ""}) == home
