"""A batch of its own Spark on Kubernetes, as far as that goes without a cluster: real spark-submit, real executors.

Kubernetes' API is one of ours, which runs what it is asked for as processes of this machine. So what Spark asks for is
held against the Role and the schemas, and what its executors stitch against what one process does. By
`make test-cluster`: a Spark of three JVMs.
"""

from __future__ import annotations

import os
import random
import subprocess
from collections.abc import Iterator
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path
from types import ModuleType
from typing import Any

import kubernetes_validate
import pytest
import yaml

from spark_apps.stitching import stitch_assignment
from spark_apps.submit import spark_submit, submit_reassembly
from tests.conftest import ROOT
from tests.domain.landed_corpus import LAYOUTS, random_waveform
from tests.domain.stitch_rig import land_corpus, make_job
from tests.kubernetes_api import Doc, KubernetesApi, kubernetes_api
from tests.policy.test_kubernetes import CONTAINED, RESTRICTED, VERSION
from wavestitch.batch.deployment import Deployment
from wavestitch.local.loopback_port import LOOPBACK
from wavestitch.settings import load_settings

HERE = ROOT / "kubernetes" / "spark-submit"
SECRET = "not a secret, but as long as one"


@pytest.fixture(scope="module")
def program() -> ModuleType:
    loader = SourceFileLoader("spark_executor", str(ROOT / "docker" / "bin" / "spark-executor"))
    spec = spec_from_loader(loader.name, loader)
    assert spec is not None
    made = module_from_spec(spec)
    loader.exec_module(made)
    return made


@pytest.fixture
def api(program: ModuleType, java_home: Path, tmp_path: Path) -> Iterator[KubernetesApi]:
    """Executors that it is asked for run here, by the image's own program, until the test ends."""
    running: list[subprocess.Popen[bytes]] = []

    def start(pod: Doc) -> None:
        (container,) = pod["spec"]["containers"]
        assert (container["command"], container["args"]) == (["spark-executor"], ["executor"])
        fields = {"status.podIP": LOOPBACK, "metadata.name": pod["metadata"]["name"]}
        said = {
            e["name"]: e["value"] if "value" in e else fields[e["valueFrom"]["fieldRef"]["fieldPath"]]
            for e in container["env"]
        }
        spark = spark_submit().parents[1]
        said |= {"JAVA_HOME": str(java_home), "SPARK_LOCAL_DIRS": str(tmp_path), "PATH": os.environ["PATH"]}
        argv = program.executor_argv(said, spark_home=spark)
        more = {"SPARK_HOME": str(spark), "_SPARK_AUTH_SECRET": program.executor_secret(SECRET.encode())}
        log = (tmp_path / f"{pod['metadata']['name']}.log").open("wb")
        with log:
            running.append(subprocess.Popen(argv, env={**said, **more}, stdout=log, stderr=log))

    with kubernetes_api(start) as found:
        try:
            yield found
        finally:
            for process in running:
                process.kill()
                process.wait(30)


def test_a_batch_has_executors_of_its_own_that_stitch_what_one_process_does_within_what_the_manifests_allow(
    api: KubernetesApi, java_home: Path, tmp_path: Path
) -> None:
    rng = random.Random(7)
    corpora = [
        land_corpus(
            tmp_path / str(n),
            rng,
            [random_waveform(rng, f"{n}/{w}") for w in range(10)],
            layout=LAYOUTS[n % 3],
            files=3,
        )
        for n in range(4)
    ]
    job = make_job(tmp_path, corpora, tasks=8)
    (tmp_path / "job.json").write_text(job.to_json())
    (tmp_path / "secret").write_text(SECRET)
    (tmp_path / "token").write_text("of an account")
    report = submit_reassembly(
        job_path=tmp_path / "job.json",
        result_path=tmp_path / "report.json",
        master=f"k8s://{api.address}",
        conf={**declared(), **here(tmp_path)},
        java_home=java_home,
        say=print,
        deadline_s=300,
    )
    assert report.results == tuple(stitch_assignment(job, a) for a in job.assignments)
    assert len(api.made) == 2
    for pod in api.made:
        check_pod(pod)
    assert api.asked <= allowed(), "Spark asks for more than the Role has"
    assert not api.pods, "executors go with their batch"


def declared() -> dict[str, str]:
    """Spark's settings as the scheduler on Kubernetes has them."""
    found = Deployment(load_settings({"WAVESTITCH_CONFIG": str(HERE / "wavestitch.toml")}))
    return dict(found.spark_conf)


def here(folder: Path) -> dict[str, str]:
    """What is at another place on this machine."""
    return {
        "spark.kubernetes.authenticate.oauthTokenFile": str(folder / "token"),
        "spark.kubernetes.authenticate.caCertFile": "",
        "spark.kubernetes.executor.podTemplateFile": str(HERE / "executor-pod.yaml"),
        "spark.authenticate.secret.file": str(folder / "secret"),
        "spark.driver.host": LOOPBACK,
    }


def check_pod(pod: Doc) -> None:
    kubernetes_validate.validate(pod, VERSION, strict=True)
    template = yaml.safe_load((HERE / "executor-pod.yaml").read_text())
    (container,), (asked,) = pod["spec"]["containers"], template["spec"]["containers"]
    assert pod["spec"]["securityContext"] == RESTRICTED
    assert container["securityContext"] == CONTAINED
    assert container["resources"] == {
        "requests": {"cpu": "2", "memory": "3072Mi"},
        "limits": {"cpu": "2", "memory": "3072Mi"},
    }
    assert container["image"] == "wavestitch:0.1.0"
    assert (pod["spec"]["serviceAccountName"], pod["spec"]["automountServiceAccountToken"]) == ("spark-executor", False)
    assert pod["spec"]["volumes"] == template["spec"]["volumes"]
    assert container["volumeMounts"] == asked["volumeMounts"]
    assert pod["metadata"]["labels"].items() >= template["metadata"]["labels"].items()
    assert SECRET not in str(pod)


def allowed() -> set[tuple[str, str]]:
    docs: list[Any] = list(yaml.safe_load_all((HERE / "accounts.yaml").read_text()))
    (role,) = [doc for doc in docs if doc["kind"] == "Role"]
    return {(verb, kind) for rule in role["rules"] for kind in rule["resources"] for verb in rule["verbs"]}
