"""The archive of the classes that Spark loads: Java takes it, and without it Spark starts all the same."""

from __future__ import annotations

import subprocess
from pathlib import Path

from spark_apps.start_archive import APPLICATION, archived_start
from spark_apps.submit import JVM_OPTIONS, spark_conf, spark_environment, spark_properties, spark_submit
from tests.conftest import CACHE


def run_spark(conf: dict[str, str], java_home: Path, folder: Path) -> subprocess.CompletedProcess[str]:
    properties = folder / "spark.properties"
    properties.write_text(spark_properties(spark_conf("local[2]", conf)), encoding="latin-1")
    argv = [str(spark_submit()), "--master", "local[2]", "--properties-file", str(properties), str(APPLICATION)]
    env = spark_environment(java_home)
    return subprocess.run(argv, capture_output=True, text=True, env=env, timeout=180, check=False)


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
    elsewhere = {JVM_OPTIONS: conf[JVM_OPTIONS].replace(str(CACHE), str(tmp_path))}
    assert run_spark(elsewhere, java_home, tmp_path).returncode == 0


def test_where_it_cannot_be_made_that_is_said_and_spark_keeps_its_settings(tmp_path: Path) -> None:
    said: list[str] = []
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "java").write_text("#!/bin/sh\necho this is no Java\nexit 3\n")
    (tmp_path / "bin" / "java").chmod(0o755)
    assert archived_start(cache=tmp_path / "cache", java_home=tmp_path, say=said.append) == {}
    assert "without an archive" in said[-1]
    assert list((tmp_path / "cache").iterdir()) == []
