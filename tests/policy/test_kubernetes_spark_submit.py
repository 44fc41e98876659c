"""What kubernetes/spark-submit adds: executors that one account may make, as closed as every pod; and nothing else.

Runs nothing: `tests/domain/executors_on_kubernetes.py` does, with `make test-cluster`.
"""

from __future__ import annotations

import tomllib
from typing import Any

import yaml

from tests.conftest import ROOT
from tests.kubernetes_manifests import KUBERNETES, Doc, of_kind, pods, rendered
from tests.policy.test_kubernetes import (
    AIRFLOW,
    ANY_PORT,
    BASE,
    CONTAINED,
    RESTRICTED,
    VALUES,
    VERSION,
    claimed,
    reached,
)
from tests.stack.airflow_home import prepare_airflow
from wavestitch.batch.deployment import Deployment
from wavestitch.contracts.redaction import secret_inside
from wavestitch.settings import load_settings

prepare_airflow()

HERE = KUBERNETES / "spark-submit"
DOCS = rendered(HERE)
TEMPLATE: Doc = yaml.safe_load((HERE / "executor-pod.yaml").read_text())
MORE: Doc = yaml.safe_load((HERE / "airflow-values.yaml").read_text())
SETTINGS: Doc = tomllib.loads((HERE / "wavestitch.toml").read_text())
MOUNT = "/opt/wavestitch/spark-submit"
WORKER = next(pod for pod in pods(rendered(BASE)) if pod.name == "spark-worker-1")


def test_every_resource_and_the_executors_template_are_of_the_pinned_version_word_by_word() -> None:
    import kubernetes_validate  # noqa: PLC0415 - all other tests do without

    # Whoever makes a pod of it names the image.
    whole = {**TEMPLATE, "metadata": {**TEMPLATE["metadata"], "name": "x"}}
    for doc in (*DOCS, whole):
        kubernetes_validate.validate(doc, VERSION, strict=True)


def test_an_executor_is_as_closed_as_a_worker_and_sees_what_a_worker_sees() -> None:
    spec, (container,) = TEMPLATE["spec"], TEMPLATE["spec"]["containers"]
    assert spec["securityContext"] == RESTRICTED
    assert container["securityContext"] == CONTAINED
    assert (spec["serviceAccountName"], spec["automountServiceAccountToken"]) == ("spark-executor", False)
    assert spec["enableServiceLinks"] is False
    assert TEMPLATE["metadata"]["labels"]["wavestitch/role"] == "spark-executor"
    worker = claimed(WORKER.spec["volumes"], WORKER.container["volumeMounts"])
    kept, scratch, secrets = claimed(spec["volumes"], container["volumeMounts"])
    assert (kept, secrets) == (worker[0], worker[2])
    assert scratch.keys() == {"/tmp", "/var/spark"}
    assert (ROOT / "docker" / "bin" / container["command"][0]).stat().st_mode & 0o111, "it is a program of the image"


def test_one_account_may_make_executors_and_none_has_another_right() -> None:
    assert {(d["kind"], d["metadata"]["name"]) for d in DOCS if d["kind"] != "NetworkPolicy"} == {
        ("ServiceAccount", "spark-executor"),
        ("Role", "makes-executors"),
        ("RoleBinding", "makes-executors"),
    }
    assert of_kind(DOCS, "ServiceAccount")["spark-executor"]["automountServiceAccountToken"] is False
    (rule,) = of_kind(DOCS, "Role")["makes-executors"]["rules"]
    assert (rule["apiGroups"], rule["resources"]) == ([""], ["pods"])
    binding = of_kind(DOCS, "RoleBinding")["makes-executors"]
    assert binding["roleRef"]["name"] == "makes-executors"
    assert [s["name"] for s in binding["subjects"]] == ["airflow-scheduler"]


def test_driver_and_executors_reach_each_other_and_nobody_else() -> None:
    pairs = {
        ("airflow-scheduler", "spark-executor"): {ANY_PORT},
        ("spark-executor", "spark-executor"): {ANY_PORT},
        ("spark-executor", "airflow-scheduler"): {ANY_PORT},
    }
    assert reached("ingress", DOCS) == reached("egress", DOCS) == pairs


def test_the_scheduler_s_values_are_those_of_all_and_what_submitting_takes() -> None:
    assert MORE.keys() == {"env", "volumes", "volumeMounts", "scheduler"}
    assert MORE["env"] == [{"name": "WAVESTITCH_CONFIG", "value": f"{MOUNT}/wavestitch.toml"}]
    assert MORE["volumes"] == [{"name": "spark-submit", "configMap": {"name": "spark-submit"}}]
    assert MORE["volumeMounts"] == [{"name": "spark-submit", "mountPath": MOUNT, "readOnly": True}]
    more, before = MORE["scheduler"], VALUES["scheduler"]
    assert more["serviceAccount"] == {**before["serviceAccount"], "automountServiceAccountToken": True}
    secrets = next(v for v in more["extraVolumes"] if v["name"] == "secrets")["secret"]["items"]
    assert secrets.pop() == {"key": "spark_secret", "path": "spark_secret"}
    assert more["extraVolumes"] == before["extraVolumes"]
    assert more.keys() == {"serviceAccount", "extraVolumes"}


def test_whichever_part_of_airflow_starts_first_makes_a_pool_of_one_spark_that_nobody_else_made() -> None:
    """A pool that is there keeps its slots, and the one of the Spark that stays may be."""
    image = load_settings({"WAVESTITCH_CONFIG": str(ROOT / "docker" / "config" / "wavestitch.toml")}).pools
    own = load_settings({"WAVESTITCH_CONFIG": str(HERE / "wavestitch.toml")}).pools
    assert own.keys() - image.keys() == {"spark-submit"}
    assert own["spark-submit"] == 1
    for part in AIRFLOW.values():  # all of them by what is said for all
        said = [*VALUES[part].get("env", []), *MORE.get(part, {}).get("env", [])]
        assert "WAVESTITCH_CONFIG" not in {variable["name"] for variable in said}


def test_its_settings_are_the_image_s_but_for_spark_and_say_what_the_manifests_do() -> None:
    image: dict[str, Any] = tomllib.loads((ROOT / "docker" / "config" / "wavestitch.toml").read_text())
    assert {k: v for k, v in SETTINGS.items() if k != "spark"} == {k: v for k, v in image.items() if k != "spark"}
    spark = Deployment(load_settings({"WAVESTITCH_CONFIG": str(HERE / "wavestitch.toml")})).settings.spark
    assert (spark.remote, spark.connection, spark.pool_slots) == (None, "", 1)
    conf = spark.conf
    assert conf["spark.kubernetes.namespace"] == "wavestitch"
    assert conf["spark.kubernetes.executor.podTemplateFile"] == f"{MOUNT}/executor-pod.yaml"
    assert conf["spark.kubernetes.executor.container.image"] == WORKER.container["image"]
    assert conf["spark.kubernetes.authenticate.executor.serviceAccountName"] == TEMPLATE["spec"]["serviceAccountName"]
    assert conf["spark.kubernetes.executor.podTemplateContainerName"] == TEMPLATE["spec"]["containers"][0]["name"]
    assert conf["spark.driver.host"] == "airflow-scheduler"
    assert not [key for key, value in conf.items() if secret_inside(key, value)]


def test_airflow_s_tasks_submit_to_the_settings_own_master_where_these_name_no_connection() -> None:
    from wavestitch.flows import batch_tasks  # noqa: PLC0415 - loads Airflow

    deployment = Deployment(load_settings({"WAVESTITCH_CONFIG": str(HERE / "wavestitch.toml")}))
    assert batch_tasks._submits(deployment).__module__ == "wavestitch.batch.deployment_edges"
