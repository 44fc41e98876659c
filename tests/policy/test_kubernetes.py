"""What kubernetes/ must have: what the composition proved, closed, bounded, valid, without a secret. Runs nothing."""

from __future__ import annotations

import configparser
import copy
import re
from collections.abc import Sequence
from typing import Any

import pytest
import yaml

from tests.conftest import ROOT
from tests.docker.composition import Service, read_composition, size
from tests.kubernetes_manifests import BASE, KUBERNETES, OVERLAYS, Doc, Pod, differences, named, of_kind, pods, rendered
from tests.policy.test_docker import SECRETS
from wavestitch.contracts.redaction import secret_inside

VERSION = "1.34"
COMPOSITION = read_composition()
DOCS = rendered(BASE)
PODS = {pod.name: pod for pod in pods(DOCS)}
VALUES: Doc = yaml.safe_load((KUBERNETES / "airflow-values.yaml").read_text())
AIRFLOW = {
    "airflow-api": "apiServer",
    "airflow-scheduler": "scheduler",
    "airflow-dag-processor": "dagProcessor",
    "airflow-triggerer": "triggerer",
}
"""Services that the official chart brings, and what its values call them."""
JOBS = {"dagProcessor": "DagProcessorJob", "triggerer": "TriggererJob"}
"""What Airflow calls the parts whose liveness is their own heartbeat, and not what the API server says of them: for
Kubernetes ends what does not live, where an engine only says so."""
ONLY_COMPOSED = {"demo"}
POSTGRES = dict(re.findall(r"^(data)=(.+)$", (ROOT / "docker" / "bin" / "postgres-server").read_text(), re.MULTILINE))
STOPS: dict[str, Doc] = {
    "SIGTERM": {},
    # PostgreSQL's fast shutdown.
    "SIGINT": {
        "preStop": {"exec": {"command": ["pg_ctl", "stop", "--mode", "fast", "--pgdata", POSTGRES["data"]]}},
    },
}
"""How a pod is stopped as the composition stops its service: Kubernetes knows no other signal than the first."""
RESTRICTED = {
    "runAsNonRoot": True,
    "runAsUser": 10001,
    "runAsGroup": 10001,
    "fsGroup": 10001,
    "fsGroupChangePolicy": "OnRootMismatch",
    "seccompProfile": {"type": "RuntimeDefault"},
}
CONTAINED = {"allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True, "capabilities": {"drop": ["ALL"]}}
ANY_PORT = (1024, 65535)
REACH = {
    ("kafka", "kafka"): {9092, 9093},
    ("init", "kafka"): {9092},
    ("airflow-api", "kafka"): {9092},
    ("airflow-scheduler", "kafka"): {9092},
    ("producer", "kafka"): {9092},
    ("init", "postgres"): {5432},
    ("airflow-api", "postgres"): {5432},
    ("airflow-scheduler", "postgres"): {5432},
    ("airflow-dag-processor", "postgres"): {5432},
    ("airflow-triggerer", "postgres"): {5432},
    ("init", "store"): {9000},
    ("airflow-api", "store"): {9000},
    ("airflow-scheduler", "store"): {9000},
    ("spark-worker", "spark-master"): {7077, 8081},
    ("spark-connect", "spark-master"): {7077, 8081},
    ("spark-worker", "spark-worker"): {ANY_PORT},
    ("spark-master", "spark-worker"): {ANY_PORT},
    ("spark-connect", "spark-worker"): {ANY_PORT},
    ("spark-worker", "spark-connect"): {ANY_PORT},
    ("airflow-scheduler", "spark-connect"): {15003},
    ("airflow-scheduler", "airflow-api"): {8080},
    ("airflow-dag-processor", "airflow-api"): {8080},
    ("airflow-triggerer", "airflow-api"): {8080},
    ("door", "airflow-api"): {8080},
}
"""Who may reach whom, and where: all of it."""
OUTSIDE = {"door"}
"""Whoever lets people in: its own network policies are its owner's."""
MAY_DIFFER = {
    "one-node": [r"PersistentVolumeClaim (data|logs): /spec/accessModes/0"],
    "cluster": [
        r"PersistentVolumeClaim (data|logs): /spec/storageClassName",
        r"PersistentVolumeClaim (data|kafka-\d): /spec/resources/requests/storage",
        r"StatefulSet (kafka|spark-worker)-\d: /spec/template/spec/topologySpreadConstraints",
        r"StatefulSet kafka-\d: /spec/template/spec/containers/0/resources/(limits|requests)/(cpu|memory)",
        r"StatefulSet kafka-\d: /spec/template/spec/containers/0/env/KAFKA_HEAP",
    ],
}
"""What an overlay may change: all of it."""


def by_name(env: list[Doc]) -> dict[str, str]:
    return {e["name"]: e["value"] for e in env}


def in_bytes(text: str) -> int:
    return size(text.removesuffix("i").lower())


def seconds(said: str) -> int:
    return int(said.removesuffix("s"))


def claimed(volumes: list[Doc], mounts: list[Doc]) -> tuple[set[tuple[str, str, bool]], dict[str, int], set[str]]:
    """Volumes by claim or ConfigMap, with place and whether read only; file systems in memory; secrets, all files."""
    found = {v["name"]: v for v in volumes}
    kept, scratch, secrets = set(), {}, set()
    assert found.keys() == {m["name"] for m in mounts}
    for mount in mounts:
        match found[mount["name"]]:
            case {"persistentVolumeClaim": {"claimName": claim}}:
                kept.add((claim, mount["mountPath"], mount.get("readOnly", False)))
            case {"configMap": {"name": name}}:
                kept.add((f"../{name}", mount["mountPath"], mount.get("readOnly", False)))
            case {"emptyDir": {"medium": "Memory", "sizeLimit": limit}}:
                scratch[mount["mountPath"]] = in_bytes(limit)
            case {"secret": {"secretName": "wavestitch", "defaultMode": 0o440, "items": items}}:
                assert (mount["mountPath"], mount["readOnly"]) == (SECRETS, True)
                assert all(item["key"] == item["path"] for item in items)
                secrets = {item["key"] for item in items}
            case other:
                pytest.fail(f"{mount['mountPath']} is {other}")
    return kept, scratch, secrets


def kept_by(service: Service) -> set[tuple[str, str, bool]]:
    """What its pod has of the composition's volumes: a cache is of one host, and so each pod has its own."""
    own = {"cache": f"cache-{service.name}"}
    return {(own.get(source, source), place, read_only) for source, place, read_only in service.mounts()}


def in_memory(service: Service) -> dict[str, int]:
    sizes = {place: size(re.findall(r"size=(\w+)", options)[0]) for place, options in service.scratch().items()}
    return sizes | ({"/dev/shm": size(service.said["shm_size"])} if "shm_size" in service.said else {})


def limits_of(service: Service) -> tuple[float, int]:
    return float(service.said["deploy"]["resources"]["limits"]["cpus"]), service.memory


class TestWhatComposeProved:
    def test_every_service_is_a_pod_a_part_of_the_chart_or_named_as_neither(self) -> None:
        assert PODS.keys() | AIRFLOW.keys() | ONLY_COMPOSED == COMPOSITION.services.keys()

    @pytest.mark.parametrize("pod", PODS.values(), ids=lambda pod: pod.name)
    def test_a_pod_runs_its_service_s_own_command_and_check_in_the_same_surroundings(self, pod: Pod) -> None:
        service, about = COMPOSITION.services[pod.name], pod.container
        assert about["command"] == service.command
        assert "args" not in about
        assert about["image"] == service.said["image"]
        assert by_name(about.get("env", [])) == service.environment
        for probe in ("startupProbe", "readinessProbe"):
            assert about.get(probe, {}).get("exec", {}).get("command", []) == service.health
        assert claimed(pod.spec["volumes"], about["volumeMounts"]) == (
            kept_by(service),
            in_memory(service),
            set(service.secrets),
        )
        assert about.get("lifecycle", {}) == STOPS[service.stop_signal]
        limits = about["resources"]["limits"]
        assert (float(limits["cpu"]), in_bytes(limits["memory"])) == limits_of(service)
        assert pod.spec["terminationGracePeriodSeconds"] == seconds(service.said["stop_grace_period"])

    @pytest.mark.parametrize(("name", "part"), AIRFLOW.items())
    def test_the_chart_s_parts_run_theirs_too(self, name: str, part: str) -> None:
        service, about = COMPOSITION.services[name], VALUES[part]
        assert (about["command"], about["args"]) == (None, service.command)
        asked = {probe: about[probe] for probe in ("startupProbe", "livenessProbe") if probe in about}
        if part == "apiServer":  # the chart takes no command here
            assert not any("command" in probe for probe in asked.values())
        elif part in JOBS:
            assert asked.keys() == {"livenessProbe"}
            assert asked["livenessProbe"]["command"] == [
                "airflow",
                "jobs",
                "check",
                "--local",
                "--job-type",
                JOBS[part],
            ]
        else:
            assert {tuple(probe["command"]) for probe in asked.values()} == {tuple(service.health)}
        expected = {**service.environment, **({"AIRFLOW_API_HOST": "0.0.0.0"} if part == "apiServer" else {})}
        assert by_name(about.get("env", [])) == expected
        assert claimed(about["extraVolumes"], about["extraVolumeMounts"]) == (
            kept_by(service),
            in_memory(service),
            set(service.secrets),
        )
        limits = about["resources"]["limits"]
        assert (float(limits["cpu"]), in_bytes(limits["memory"])) == limits_of(service)

    def test_airflow_is_told_what_it_is_told_in_the_image(self) -> None:
        told = configparser.ConfigParser(interpolation=None)
        told.read(ROOT / "docker" / "config" / "airflow" / "airflow.cfg")
        assert VALUES["config"] == {name: dict(told[name]) for name in told.sections()}

    def test_every_name_that_a_command_or_a_setting_reaches_is_a_service(self) -> None:
        services = of_kind(DOCS, "Service")
        assert services.keys() == PODS.keys() - {"init"} | {"airflow-api", "airflow-scheduler"}
        for name, service in services.items():
            assert service["spec"]["clusterIP"] == "None", f"{name}: services listen on the address of their own name"
            assert service["spec"]["publishNotReadyAddresses"] is True
            chosen = service["spec"]["selector"]
            labels = [p.labels for p in PODS.values()] + [VALUES[p]["labels"] for p in AIRFLOW.values()]
            assert sum(chosen.items() <= found.items() for found in labels) == 1, name


@pytest.mark.parametrize("pod", PODS.values(), ids=lambda pod: pod.name)
class TestEveryPod:
    def test_it_is_nobody_who_could_change_its_files_or_become_more(self, pod: Pod) -> None:
        assert pod.spec["securityContext"] == RESTRICTED
        assert pod.container["securityContext"] == CONTAINED
        assert not {"hostNetwork", "hostPID", "hostIPC", "hostAliases"} & pod.spec.keys()
        assert not any("hostPort" in port for port in pod.container.get("ports", []))

    def test_it_has_an_account_of_its_role_and_no_way_into_kubernetes(self, pod: Pod) -> None:
        assert pod.spec["serviceAccountName"] == pod.role
        assert pod.spec["automountServiceAccountToken"] is False
        assert pod.spec["enableServiceLinks"] is False

    def test_what_it_may_take_is_bounded_and_what_it_needs_is_said(self, pod: Pod) -> None:
        for kind in ("requests", "limits"):
            assert pod.container["resources"][kind].keys() == {"cpu", "memory"}

    def test_a_pod_that_lasts_is_asked_whether_it_lives(self, pod: Pod) -> None:
        service = COMPOSITION.services[pod.name]
        if service.once:
            assert pod.spec["restartPolicy"] == "Never"
            return
        for probe in ("startupProbe", "readinessProbe", "livenessProbe"):
            assert {"periodSeconds", "timeoutSeconds", "failureThreshold"} <= pod.container[probe].keys()
        ports = {port["containerPort"] for port in pod.container["ports"]}
        assert pod.container["livenessProbe"]["tcpSocket"]["port"] in ports


def test_airflow_s_parts_are_as_closed_as_the_others() -> None:
    assert VALUES["securityContexts"] == {"pod": RESTRICTED, "containers": CONTAINED}
    assert not any(VALUES["enableBuiltInSecretEnvVars"].values())
    assert VALUES["rbac"] == {"create": False}
    for name, part in AIRFLOW.items():
        assert VALUES[part]["serviceAccount"] == {"create": False, "name": name, "automountServiceAccountToken": False}
        assert VALUES[part]["labels"] == {"wavestitch/role": name}
        assert VALUES[part]["resources"]["requests"].keys() == {"cpu", "memory"}


def test_no_secret_stands_in_any_file_and_none_is_a_variable() -> None:
    assert not of_kind(DOCS, "Secret")
    variables = [e for pod in PODS.values() for e in pod.container.get("env", [])]
    variables += [e for part in AIRFLOW.values() for e in VALUES[part].get("env", [])]
    assert len(variables) > 30
    for said in variables:
        assert said.keys() == {"name", "value"}, f"{said['name']} is taken from elsewhere"
        assert secret_inside(said["name"], said["value"]) is None
    known = {item for pod in PODS.values() for item in claimed(pod.spec["volumes"], pod.container["volumeMounts"])[2]}
    assert known <= COMPOSITION.secrets.keys()


def test_no_role_has_a_right_in_kubernetes() -> None:
    accounts = of_kind(DOCS, "ServiceAccount")
    assert accounts.keys() == {pod.role for pod in PODS.values()} | AIRFLOW.keys()
    assert all(account["automountServiceAccountToken"] is False for account in accounts.values())
    assert not {d["kind"] for d in DOCS} & {"Role", "ClusterRole", "RoleBinding", "ClusterRoleBinding"}
    assert of_kind(DOCS, "Namespace")["wavestitch"]["metadata"]["labels"] == {
        "pod-security.kubernetes.io/enforce": "restricted"
    }


def reached(direction: str, docs: Sequence[Doc] = DOCS) -> dict[tuple[str, str], set[Any]]:
    """From whom to whom at which ports, as the policies of one direction (`ingress`, `egress`) say."""
    found: dict[tuple[str, str], set[Any]] = {}
    for name, policy in of_kind(docs, "NetworkPolicy").items():
        if name in ("nobody", "names") or policy["spec"]["policyTypes"] != [direction.capitalize()]:
            continue
        own = policy["spec"]["podSelector"]["matchLabels"]["wavestitch/role"]
        for rule in policy["spec"][direction]:
            (peer,) = rule["from" if direction == "ingress" else "to"]
            (wanted,) = peer["podSelector"]["matchExpressions"]
            assert (wanted["key"], wanted["operator"]) == ("wavestitch/role", "In")
            ports = {(p["port"], p["endPort"]) if "endPort" in p else p["port"] for p in rule["ports"]}
            for other in wanted["values"]:
                pair = (other, own) if direction == "ingress" else (own, other)
                found.setdefault(pair, set()).update(ports)
    return found


def test_nobody_reaches_anybody_but_those_who_must() -> None:
    nobody = of_kind(DOCS, "NetworkPolicy")["nobody"]["spec"]
    assert nobody == {"podSelector": {}, "policyTypes": ["Ingress", "Egress"]}
    assert reached("ingress") == REACH
    assert reached("egress") == {pair: ports for pair, ports in REACH.items() if pair[0] not in OUTSIDE}
    roles = {pod.role for pod in PODS.values()} | AIRFLOW.keys() | OUTSIDE | {"producer"}
    assert {role for pair in REACH for role in pair} <= roles


def test_of_three_brokers_and_of_two_workers_one_may_be_away() -> None:
    budgets = of_kind(DOCS, "PodDisruptionBudget")
    assert {name: b["spec"]["maxUnavailable"] for name, b in budgets.items()} == {"kafka": 1, "spark-worker": 1}
    for name, budget in budgets.items():
        chosen = budget["spec"]["selector"]["matchLabels"]
        assert chosen == {"wavestitch/role": name}
        assert sum(chosen.items() <= pod.labels.items() for pod in PODS.values()) > 1


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_an_overlay_changes_what_is_listed_and_all_of_that(overlay: str) -> None:
    def env_by_name(doc: Doc) -> Doc:
        found = copy.deepcopy(doc)
        for pod in pods([found]):
            about = pod.spec["containers"][0]
            about["env"] = by_name(about.get("env", []))
        return found

    before = {named(d): env_by_name(d) for d in DOCS}
    after = {named(d): env_by_name(d) for d in rendered(KUBERNETES / "overlays" / overlay)}
    assert before.keys() == after.keys()
    changed = {f"{name}: {place}" for name in before for place in differences(before[name], after[name])}
    allowed = MAY_DIFFER[overlay]
    assert [place for place in sorted(changed) if not any(re.fullmatch(rule, place) for rule in allowed)] == []
    assert [rule for rule in allowed if not any(re.fullmatch(rule, place) for place in changed)] == []
    for pod in pods(list(after.values())):
        resources = pod.spec["containers"][0]["resources"]
        assert in_bytes(resources["requests"]["memory"]) <= in_bytes(resources["limits"]["memory"]), pod.name


def test_every_resource_is_one_of_the_pinned_version_word_by_word() -> None:
    import kubernetes_validate  # noqa: PLC0415 - all other tests do without

    seen = list(DOCS)
    for name in OVERLAYS:
        seen += [doc for doc in rendered(KUBERNETES / "overlays" / name) if doc not in seen]
    assert len(seen) > len(DOCS) + 10
    for doc in seen:
        kubernetes_validate.validate(doc, VERSION, strict=True)


def test_a_word_that_kubernetes_does_not_know_is_found() -> None:
    import kubernetes_validate  # noqa: PLC0415

    broken = copy.deepcopy(of_kind(DOCS, "StatefulSet")["postgres"])
    broken["spec"]["template"]["spec"]["containers"][0]["readOnlyRootFilesystem"] = True
    with pytest.raises(kubernetes_validate.ValidationError, match="readOnlyRootFilesystem"):
        kubernetes_validate.validate(broken, VERSION, strict=True)
