"""What Spark is told wherever it runs: closed unless somebody says otherwise in so many words (check 9)."""

from __future__ import annotations

import pytest

from spark_apps.submit import spark_conf
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
