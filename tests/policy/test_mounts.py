"""What is mounted in docker/ and kubernetes/: nothing within another's place, and no index of ids that two hosts share.

A runtime cannot make a place inside a mount that is read only, and the later of two hides the earlier one.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable
from itertools import permutations
from pathlib import PurePosixPath
from typing import Any

import pytest

from tests.docker.composition import Service
from tests.kubernetes_manifests import KUBERNETES, OVERLAYS, of_kind, rendered
from tests.policy.test_docker import SERVICES
from tests.policy.test_kubernetes import AIRFLOW, PODS, VALUES
from tests.policy.test_kubernetes_spark_submit import HERE, MORE, TEMPLATE
from wavestitch.settings import load_settings

LINKS = {
    "/var/run": "/run",
    "/var/lock": "/run/lock",
    **{f"/{n}": f"/usr/{n}" for n in ("bin", "sbin", "lib", "lib64")},
}
"""Of the image, which is a Debian's: place to where it leads."""
TOKEN = "/var/run/secrets/kubernetes.io/serviceaccount"
"""Where Kubernetes puts the token of a pod's account, if it gets one."""


def resolved(place: str) -> PurePosixPath:
    """Where this is in the image."""
    for link, leads_to in LINKS.items():
        if PurePosixPath(place).is_relative_to(link):
            return PurePosixPath(leads_to) / PurePosixPath(place).relative_to(link)
    return PurePosixPath(place)


def nested(places: Iterable[str]) -> list[str]:
    pairs = permutations(list(places), 2)
    return [f"{one} lies in {other}" for one, other in pairs if resolved(one).is_relative_to(resolved(other))]


def places_of(mounts: list[dict[str, Any]]) -> list[str]:
    return [str(mount["mountPath"]) for mount in mounts]


PLACES = {
    **{pod.name: places_of(pod.container["volumeMounts"]) for pod in PODS.values()},
    **{name: places_of(VALUES[part]["extraVolumeMounts"]) for name, part in AIRFLOW.items()},
    "airflow-scheduler that submits": places_of([*VALUES["scheduler"]["extraVolumeMounts"], *MORE["volumeMounts"]]),
    "spark-executor": places_of(TEMPLATE["spec"]["containers"][0]["volumeMounts"]),
}


def test_a_place_within_another_s_is_found_through_the_links_of_the_image() -> None:
    assert nested(["/run/secrets", TOKEN]) == [f"{TOKEN} lies in /run/secrets"]
    assert nested(["/run/a", "/run/ab", "/lib/x", "/usr/lib/y"]) == []
    assert nested(["/data", "/data"])


@pytest.mark.parametrize("service", SERVICES, ids=lambda service: service.name)
def test_no_mount_of_a_service_lies_in_another_one(service: Service) -> None:
    kept = [place for _, place, _ in service.mounts()]
    assert nested([*kept, *service.scratch(), *service.secrets.values()]) == []


@pytest.mark.parametrize("name", PLACES)
def test_no_mount_of_a_pod_lies_in_another_one_or_in_the_way_of_its_account_s_token(name: str) -> None:
    assert nested([*PLACES[name], TOKEN]) == []


def test_what_the_readme_has_the_scheduler_mount_for_kafka_is_in_nobody_s_way() -> None:
    text = (KUBERNETES / "README.md").read_text()
    ((place, file),) = re.findall(
        r"path: token\}\}\]\}`, at `([^`]+)`, and `WAVESTITCH_KAFKA__TOKEN=file:([^`]+)`", text
    )
    assert file == f"{place}/token"
    assert nested([*PLACES["airflow-scheduler that submits"], TOKEN, place]) == []


def test_spark_is_told_of_the_token_where_kubernetes_puts_it() -> None:
    conf = tomllib.loads((HERE / "wavestitch.toml").read_text())["spark"]["conf"]
    named = [value for key, value in conf.items() if key.startswith("spark.kubernetes.authenticate.") and "File" in key]
    assert sorted(named) == [f"{TOKEN}/ca.crt", f"{TOKEN}/token"]


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_an_index_of_ids_is_on_a_disk_of_one_pod_alone(overlay: str) -> None:
    """SQLite on a file system that hosts share may not lock."""
    cache = load_settings({"WAVESTITCH_CONFIG": str(HERE / "wavestitch.toml")}).cache
    claims = of_kind(rendered(KUBERNETES / "overlays" / overlay), "PersistentVolumeClaim")
    found = []
    for values in [VALUES[part] for part in AIRFLOW.values()]:
        volumes = {volume["name"]: volume for volume in values["extraVolumes"]}
        for mount in values["extraVolumeMounts"]:
            if cache.is_relative_to(mount["mountPath"]):
                assert values["strategy"]["type"] == "Recreate", "two of it would want the disk at once"
                found.append(volumes[mount["name"]]["persistentVolumeClaim"]["claimName"])
    assert len(found) == len(set(found)) == 2
    for name in found:
        assert claims[name]["spec"]["accessModes"] == ["ReadWriteOnce"]
        assert "storageClassName" not in claims[name]["spec"], "what is shared has a class of its own"
