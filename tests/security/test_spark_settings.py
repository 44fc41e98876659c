"""What Spark is told wherever it runs: closed unless somebody says otherwise in so many words (check 9)."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from spark_apps.submit import properties_file, spark_conf, spark_environment, spark_properties
from wavestitch.contracts.errors import BadInput

MASTERS = ["local[2]", "yarn", "k8s://https://k:6443", "spark://m:7077"]
SECRET = {"spark.authenticate.secret": "hush-1"}


@pytest.mark.parametrize("master", MASTERS)
def test_every_master_is_asked_for_authentication_and_encryption(master: str) -> None:
    conf = spark_conf(master, SECRET)
    assert conf["spark.authenticate"] == conf["spark.network.crypto.enabled"] == "true"
    assert "GCM" in conf["spark.network.crypto.cipher"]
    assert conf["spark.ui.enabled"] == conf["spark.master.rest.enabled"] == "false"


def test_only_a_local_driver_is_tied_to_loopback() -> None:
    assert spark_conf("local[2]", {})["spark.driver.bindAddress"] == "127.0.0.1"
    assert "spark.driver.bindAddress" not in spark_conf("yarn", {})


def test_a_standalone_cluster_without_its_secret_is_refused_until_somebody_says_so() -> None:
    with pytest.raises(BadInput, match=r"no spark\.authenticate\.secret: give the cluster's own .*or say"):
        spark_conf("spark://m:7077", {})
    assert spark_conf("spark://m:7077", {"spark.authenticate": "false"})["spark.authenticate"] == "false"
    assert spark_conf("spark://m:7077", {"spark.authenticate.secret.file": "/run/s"})["spark.authenticate"] == "true"


def test_a_refusal_does_not_repeat_a_secret() -> None:
    with pytest.raises(BadInput) as refused:
        spark_conf("spark://m:7077", {"spark.ssl.keyPassword": "hush-1"})
    assert "hush-1" not in refused.value.message


def test_settings_reach_spark_in_memory_and_leave_nothing_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Even where we are killed: there is no file that somebody would have to remove."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    with properties_file(SECRET) as properties:
        # spark-submit's launcher reads it, and the JVM that it starts reads it again.
        argv = ["sh", "-c", f"cat {properties.name} && cat {properties.name} && test -f {properties.name}"]
        done = subprocess.run(argv, pass_fds=properties.handles, capture_output=True, text=True, check=True)
        assert list(tmp_path.iterdir()) == []
    assert done.stdout == spark_properties(SECRET) * 2
    assert not Path(properties.name).exists()
    assert "hush" not in properties.name


def test_spark_gets_no_variable_that_nobody_named(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AIRFLOW__CORE__FERNET_KEY", "KAFKA_PASSWORD", "AWS_SECRET_ACCESS_KEY", "JAVA_TOOL_OPTIONS"):
        monkeypatch.setenv(name, "hush-1")
    monkeypatch.setenv("LC_ALL", "C.UTF-8")
    assert "hush-1" not in spark_environment(None).values()
    assert spark_environment(None)["LC_ALL"] == "C.UTF-8"
    found = spark_environment(None, also=("AWS_SECRET_ACCESS_KEY",))
    assert [name for name, value in found.items() if value == "hush-1"] == ["AWS_SECRET_ACCESS_KEY"]
