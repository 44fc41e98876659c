"""The archive of the classes that Spark loads: Java takes it, and without it Spark starts all the same."""

from __future__ import annotations

import stat
import subprocess
from pathlib import Path

import pytest

from spark_apps import start_archive
from spark_apps.start_archive import APPLICATION, FOLDER, archived_start
from spark_apps.submit import JVM_OPTIONS, spark_conf, spark_environment, spark_properties, spark_submit
from tests.conftest import CACHE
from wavestitch.contracts.errors import BadInput
from wavestitch.local.java import find_java


def run_spark(conf: dict[str, str], java_home: Path, folder: Path) -> subprocess.CompletedProcess[str]:
    properties = folder / "spark.properties"
    properties.write_text(spark_properties(spark_conf("local[2]", conf)), encoding="latin-1")
    argv = [str(spark_submit()), "--master", "local[2]", "--properties-file", str(properties), str(APPLICATION)]
    env = spark_environment(java_home)
    return subprocess.run(argv, capture_output=True, text=True, env=env, timeout=180, check=False)


def no_java(folder: Path) -> Path:
    """A Java that has what an archive is built on, and ends with an error."""
    (folder / "lib" / "server").mkdir(parents=True)
    (folder / "lib" / "server" / "classes.jsa").touch()
    (folder / "bin").mkdir()
    (folder / "bin" / "java").write_text("#!/bin/sh\necho this is no Java\nexit 3\n")
    (folder / "bin" / "java").chmod(0o755)
    return folder


def test_java_starts_from_the_archive_and_would_say_if_it_could_not(java_home: Path, tmp_path: Path) -> None:
    conf = archived_start(cache=CACHE, java_home=java_home, say=print)
    # Java then ends with an error where the archive does not fit, instead of doing without.
    strict = {JVM_OPTIONS: f"{conf[JVM_OPTIONS]} -Xshare:on -Xlog:class+load"}
    done = run_spark(strict, java_home, tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    spark = [line for line in done.stdout.splitlines() if " org.apache.spark." in line and "Lambda" not in line]
    shared = [line for line in spark if "shared objects file" in line]
    assert len(shared) > len(spark) / 2


def test_an_archive_that_is_gone_is_done_without(java_home: Path, tmp_path: Path) -> None:
    conf = archived_start(cache=CACHE, java_home=java_home, say=print)
    elsewhere = {JVM_OPTIONS: conf[JVM_OPTIONS].replace(str(CACHE.resolve()), str(tmp_path))}
    assert elsewhere != conf
    assert run_spark(elsewhere, java_home, tmp_path).returncode == 0


def test_where_it_cannot_be_made_that_is_said_and_spark_keeps_its_settings(tmp_path: Path) -> None:
    said: list[str] = []
    assert archived_start(cache=tmp_path / "cache", java_home=no_java(tmp_path / "java"), say=said.append) == {}
    assert "without an archive" in said[-1]
    assert [p.name for p in (tmp_path / "cache" / FOLDER).iterdir()] == [".lock"]


def test_the_packaged_java_which_has_nothing_to_build_on_is_not_asked_for_one(tmp_path: Path) -> None:
    said: list[str] = []
    java = find_java(tmp_path / "cache", environ={"PATH": ""})
    assert archived_start(cache=tmp_path / "cache", java_home=java, say=said.append) == {}
    assert said == []


def test_an_altered_archive_is_never_loaded(tmp_path: Path) -> None:
    folder, java = tmp_path / "cache" / FOLDER, no_java(tmp_path / "java")
    folder.mkdir(parents=True)
    name = f"spark-{start_archive.version('pyspark')}-{start_archive._start_digest(java)}"
    (folder / f"{name}.{'0' * 64}.jsa").write_text("code of somebody's")
    assert archived_start(cache=tmp_path / "cache", java_home=java, say=print) == {}
    assert list(folder.glob("*.jsa")) == []


def test_its_folder_is_for_its_owner_whatever_it_was(tmp_path: Path) -> None:
    folder = tmp_path / "cache" / FOLDER
    folder.mkdir(parents=True)
    folder.chmod(0o777)
    archived_start(cache=tmp_path / "cache", java_home=no_java(tmp_path / "java"), say=print)
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700


def test_a_folder_of_somebody_else_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 12345)
    with pytest.raises(BadInput, match="belongs to user"):
        archived_start(cache=tmp_path / "cache", java_home=no_java(tmp_path / "java"), say=print)
