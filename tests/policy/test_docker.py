"""What the image and the composition in docker/ must have: pinned, closed, bounded, without a secret in them.

That they work is shown by `make test-docker`, which builds the image and runs every service of the file.
"""

from __future__ import annotations

import http.server
import ipaddress
import json
import os
import re
import runpy
import shutil
import stat
import subprocess
import sys
import threading
import time
from pathlib import Path

import compose_spec
import pytest
import yaml

from spark_apps.master_page import AT_FIRST_S, Looks
from tests.conftest import ROOT
from tests.docker.composition import COMPOSE, Service, put_in, read_composition, size
from tests.docker.proof import secrets_the_image_tells
from wavestitch import __version__
from wavestitch.contracts.redaction import secret_inside
from wavestitch.contracts.spark_address import read_spark_address
from wavestitch.settings import Settings, load_settings

DOCKER = ROOT / "docker"
DOCKERFILE = (DOCKER / "Dockerfile").read_text()
COMPOSITION = read_composition()
SERVICES = list(COMPOSITION.services.values())
LASTING = [s for s in SERVICES if not s.once]
SCRIPTS = sorted((DOCKER / "bin").iterdir())
MACHINE_BYTES = 32 << 30
SECRETS = "/run/wavestitch"


def named(service: Service) -> str:
    return service.name


def test_the_file_is_a_compose_file() -> None:
    """Of the specification's words and types alone, once variables and merges are resolved."""
    said = yaml.safe_load(put_in(COMPOSE.read_text(), {}))
    compose_spec.PyCompose.from_json(json.dumps(said))
    broken = {**said, "services": {**said["services"], "init": {**said["services"]["init"], "read_onli": True}}}
    with pytest.raises(ValueError, match="read_onli"):
        compose_spec.PyCompose.from_json(json.dumps(broken))


def test_every_variable_has_a_default_that_the_example_names_and_no_other() -> None:
    used = dict(re.findall(r"\$\{([A-Z0-9_]+):-([^}]*)\}", COMPOSE.read_text()))
    assert put_in(COMPOSE.read_text(), {}), "a variable without a default stops `docker compose up`"
    said = dict(re.findall(r"^#([A-Z0-9_]+)=(.*)$", (DOCKER / ".env.example").read_text(), re.MULTILINE))
    assert said == used, "docker/.env.example and compose.yaml name other variables, or other defaults"


@pytest.mark.parametrize("service", SERVICES, ids=named)
class TestEveryService:
    def test_its_image_has_a_version(self, service: Service) -> None:
        _, _, tag = str(service.said["image"]).rpartition(":")
        assert re.fullmatch(r"\d+\.\d+\.\d+", tag), f"{service.said['image']}: name a version, never `latest`"

    def test_it_is_nobody_who_could_change_its_files_or_become_more(self, service: Service) -> None:
        assert service.said["user"] == "10001:10001"
        assert service.said["read_only"] is True
        assert service.said["cap_drop"] == ["ALL"]
        assert "no-new-privileges:true" in service.said["security_opt"]
        assert not {"privileged", "cap_add", "network_mode", "pid", "ipc", "devices"} & service.said.keys()

    def test_what_it_may_take_is_bounded(self, service: Service) -> None:
        limits = service.said["deploy"]["resources"]["limits"]
        assert limits.keys() == {"cpus", "memory", "pids"}
        assert float(limits["cpus"]) <= 2, "an engine refuses more than the machine has, and two are enough for a start"
        assert all("size=" in options for options in service.scratch().values()), "memory without a bound"
        assert service.said["logging"]["options"].keys() == {"max-size", "max-file"}

    def test_its_ports_are_on_loopback(self, service: Service) -> None:
        for said in service.said.get("ports", []):
            address = str(said).rsplit(":", 2)[0]
            assert ipaddress.ip_address(address).is_loopback, f"{service.name}: {said}"

    def test_no_secret_is_written_down_and_each_that_it_uses_is_a_file(self, service: Service) -> None:
        for name, value in [*service.environment.items(), *(("", word) for word in service.command)]:
            assert secret_inside(name, value) is None, f"{service.name}: {name} holds a secret"
            assert not re.search(r"(?i)(password|secret|token|jwt|fernet)$", name), f"{service.name}: {name}"
        for secret, place in service.secrets.items():
            assert COMPOSITION.secrets[secret].parent == DOCKER / "secrets"
            assert place == f"{SECRETS}/{secret}"

    def test_it_sees_no_folder_of_the_machine_but_the_streams(self, service: Service) -> None:
        folders = [m for m in service.mounts() if not m[0].replace("-", "").isalnum()]
        assert folders in ([], [("../streams", "/opt/wavestitch/streams", True)])

    def test_what_it_waits_for_tells_when_it_is_ready(self, service: Service) -> None:
        for name, condition in service.needs.items():
            other = COMPOSITION.services[name]
            assert condition == ("service_completed_successfully" if other.once else "service_healthy")


@pytest.mark.parametrize("service", LASTING, ids=named)
class TestEveryServiceThatLasts:
    def test_it_has_a_health_check_that_comes_to_an_end(self, service: Service) -> None:
        assert service.health
        assert {"interval", "timeout", "retries", "start_period"} <= service.said["healthcheck"].keys()

    def test_it_is_started_again(self, service: Service) -> None:
        assert service.said["restart"] == "unless-stopped"


def test_kafka_loses_nothing_that_was_acknowledged_when_one_of_three_goes() -> None:
    nodes = [s for s in SERVICES if s.name.startswith("kafka-")]
    assert len(nodes) == 3
    assert sorted(s.environment["KAFKA_NODE_ID"] for s in nodes) == ["1", "2", "3"]
    said = dict(re.findall(r"^([a-z.]+)=(.*)$", (DOCKER / "bin" / "kafka-node").read_text(), re.MULTILINE))
    for topic in ("default", "offsets.topic", "transaction.state.log"):
        assert said[f"{topic}.replication.factor"] == "3"
    assert said["min.insync.replicas"] == said["transaction.state.log.min.isr"] == "2"
    assert said["unclean.leader.election.enable"] == said["auto.create.topics.enable"] == "false"


def test_all_that_is_kept_fits_a_machine() -> None:
    assert sum(s.memory for s in LASTING) <= MACHINE_BYTES
    assert size("1.5g") == 3 << 29


def test_the_settings_are_ones_and_their_secrets_are_files() -> None:
    settings: Settings = load_settings({"WAVESTITCH_CONFIG": str(DOCKER / "config" / "wavestitch.toml")})
    assert settings.tables.uri == f"file:{SECRETS}/catalog_address"
    assert settings.spark.token == f"file:{SECRETS}/spark_token"
    for named_file in (settings.tables.uri, settings.spark.token):
        assert Path(named_file).name in COMPOSITION.secrets


def test_steps_and_the_spark_that_stays_mean_the_same_door() -> None:
    settings: Settings = load_settings({"WAVESTITCH_CONFIG": str(DOCKER / "config" / "wavestitch.toml")})
    proxy = (DOCKER / "config" / "haproxy.cfg").read_text()
    address = read_spark_address(str(settings.spark.remote))
    connect, steps = COMPOSITION.services["spark-connect"], COMPOSITION.services["airflow-scheduler"]
    assert (address.host, address.tls) == (connect.name, True)
    assert f'bind "${{SPARK_HOST}}:{address.port}" ssl' in proxy
    assert connect.environment["SPARK_HOST"] == connect.name
    assert connect.health[2] == address.target
    (inside,) = re.findall(r"server here 127\.0\.0\.1:(\d+)$", proxy, re.MULTILINE)
    assert f"_PORT = {inside} " in (DOCKER / "bin" / "spark-connect").read_text()
    trusted = Path(steps.environment["GRPC_DEFAULT_SSL_ROOTS_FILE_PATH"]).name
    assert {trusted, "spark_token"} <= steps.secrets.keys()
    assert {trusted, "spark_token", "spark_connect_tls"} <= connect.secrets.keys()


def test_what_executors_log_leaves_a_worker_most_of_its_memory_for_files() -> None:
    """They say something of each task for as long as the Spark that stays does, into a folder in memory."""
    text = (DOCKER / "bin" / "spark-cluster.sh").read_text()
    said = dict(re.findall(r"^spark\.executor\.logs\.rolling\.(\w+) (\w+)$", text, re.MULTILINE))
    assert said["strategy"] == "size"
    each = 2 * int(said["maxSize"]) * (1 + int(said["maxRetainedFiles"]))  # what it prints, and its errors
    for name in ("spark-worker-1", "spark-worker-2"):
        worker = COMPOSITION.services[name]
        (options,) = worker.scratch().values()
        room = size(re.findall(r"size=(\w+)", options)[0])
        assert each * int(worker.environment["SPARK_CORES"]) <= room / 10, "an executor a core at most"


def test_airflow_reads_every_secret_from_a_file() -> None:
    text = (DOCKER / "config" / "airflow" / "airflow.cfg").read_text()
    read = set(re.findall(rf"^\w+_cmd = cat {SECRETS}/(\w+)$", text, re.MULTILINE))
    assert read == {"airflow_fernet", "airflow_database", "airflow_session", "airflow_jwt"}
    assert not re.search(r"^(sql_alchemy_conn|fernet_key|secret_key|jwt_secret) ?=", text, re.MULTILINE)
    for service in SERVICES:
        if service.command[0] == "airflow" or service.name == "init":
            assert read <= service.secrets.keys(), service.name


def test_whoever_opens_the_tables_has_a_place_for_what_it_learns_of_them() -> None:
    """The index of ids: without a place for it, the pages have only a sentence about a folder that cannot be made.
    Below the volume, whose root may be made to be written by everybody, and is refused then."""
    cache = load_settings({"WAVESTITCH_CONFIG": str(DOCKER / "config" / "wavestitch.toml")}).cache
    for service in SERVICES:
        if "catalog_address" in service.secrets and service.name != "init":  # which asks where the warehouse is
            assert str(cache.parent) in {place for _, place, ro in service.mounts() if not ro}, service.name


def test_whoever_reads_the_files_of_streams_sees_which_of_them_have_run() -> None:
    """Of too many these come first, and who makes DAGs is to decide as the pages do."""
    landing = load_settings({"WAVESTITCH_CONFIG": str(DOCKER / "config" / "wavestitch.toml")}).landing
    for service in LASTING:
        places = {place for _, place, _ in service.mounts()}
        if "/opt/wavestitch/streams" in places:
            assert any(landing.is_relative_to(place) for place in places), service.name
    assert ("data", "/data", True) in COMPOSITION.services["airflow-dag-processor"].mounts(), "to read alone"


class Airflow(http.server.BaseHTTPRequestHandler):
    """An API server whose API for tasks answers so, with everything else in order."""

    task_api = 200

    def do_GET(self) -> None:
        self.send_response(self.task_api if self.path.startswith("/execution/") else 200)
        self.end_headers()
        self.wfile.write(b'{"metadatabase": {"status": "healthy"}}')

    def log_message(self, *_: object) -> None: ...


@pytest.mark.parametrize(("answer", "ends_with"), [(200, 0), (503, 1)])
def test_an_api_server_that_does_not_take_tasks_calls_is_not_healthy(answer: int, ends_with: int) -> None:
    (service,) = [s for s in SERVICES if s.name == "airflow-api"]
    with http.server.HTTPServer(("127.0.0.1", 0), type("Its", (Airflow,), {"task_api": answer})) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        words = [w.replace("http://airflow-api:8080", f"http://127.0.0.1:{server.server_port}") for w in service.health]
        done = subprocess.run(
            [sys.executable, DOCKER / "bin" / words[0], *words[1:]], capture_output=True, text=True, check=False
        )
        server.shutdown()
        thread.join()
    assert done.returncode == ends_with, done.stderr


def test_the_image_runs_as_nobody_else_and_is_pinned() -> None:
    stages = re.findall(r"^FROM (\S+)", DOCKERFILE, re.MULTILINE)
    assert stages == ["${BASE}", "${BASE}"]
    assert re.search(r"^ARG BASE=python:3\.12-slim-\w+$", DOCKERFILE, re.MULTILINE)
    assert re.findall(r"^USER (.+)$", DOCKERFILE, re.MULTILINE) == ["10001:10001"]
    assert "--require-hashes" in DOCKERFILE
    assert f'org.opencontainers.image.version="{__version__}"' in DOCKERFILE
    assert not re.search(r"(?i)latest|curl|wget|^ADD|ARG .*(password|token|secret)", DOCKERFILE, re.MULTILINE)


def test_into_the_image_goes_only_what_is_named() -> None:
    first, *rest = [
        line for line in (DOCKER / "Dockerfile.dockerignore").read_text().splitlines() if not line.startswith("#")
    ]
    assert first == "*"
    taken = {line.removeprefix("!") for line in rest if line.startswith("!")}
    copied = re.findall(r"^COPY (?!--from)(.+) \S+$", DOCKERFILE, re.MULTILINE)
    assert {part for line in copied for part in line.split()} - {"docker/bin/fetch-java-parts"} == taken
    assert all((ROOT / path).exists() for path in taken)


def test_every_program_that_a_service_starts_is_there_and_may_be_run() -> None:
    for service in SERVICES:
        for word in (service.command[0], *service.health[:1]):
            path = DOCKER / "bin" / word
            assert word in ("airflow", "python", "pg_isready") or path.stat().st_mode & stat.S_IXUSR, word


@pytest.mark.parametrize("words", [["hadolint", DOCKER / "Dockerfile"]], ids=["hadolint"])
def test_linters_find_nothing(words: list[str | Path]) -> None:
    program = Path(sys.executable).with_name(str(words[0]))
    done = subprocess.run([program, *words[1:]], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def test_shell_scripts_are_looked_over() -> None:
    shell = [p for p in SCRIPTS if p.read_text().startswith(("#!/bin/sh", "# shellcheck shell"))]
    assert len(shell) > 5
    words: list[str | Path] = [Path(sys.executable).with_name("shellcheck"), "-x", *shell]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def test_secrets_are_made_once_for_their_owner_and_never_shown(tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    program = tmp_path / "bin" / "make-secrets"
    program.write_bytes((DOCKER / "bin" / "make-secrets").read_bytes())
    program.chmod(0o755)
    first = subprocess.run([program], capture_output=True, text=True, check=True)
    made = {p.name: p.read_text() for p in (tmp_path / "secrets").iterdir()}
    assert made.keys() == COMPOSITION.secrets.keys()
    assert not any(value in first.stdout + first.stderr for value in made.values())
    assert (tmp_path / "secrets").stat().st_mode & 0o777 == 0o700
    assert len({v for name, v in made.items() if "passwords" not in name}) == len(made) - 1
    assert made["airflow_database_password"] in made["airflow_database"]
    again = subprocess.run([program], capture_output=True, text=True, check=True)
    assert again.stderr == ""
    assert {p.name: p.read_text() for p in (tmp_path / "secrets").iterdir()} == made


def test_no_secret_is_made_empty_and_one_that_is_empty_is_made_anew(tmp_path: Path) -> None:
    """Without `od`, which reads the random bytes; then with it, over what earlier versions left behind."""
    for folder in ("bin", "path", "secrets"):
        (tmp_path / folder).mkdir()
    program, sh = tmp_path / "bin" / "make-secrets", shutil.which("sh")
    assert sh is not None
    program.write_bytes((DOCKER / "bin" / "make-secrets").read_bytes())
    for tool in ("sh", "dirname", "mkdir", "chmod", "tr", "cat", "mv", "rm", "base64", "head", "openssl"):
        (tmp_path / "path" / tool).symlink_to(str(shutil.which(tool)))
    without = {"PATH": str(tmp_path / "path")}
    failed = subprocess.run([sh, program], env=without, capture_output=True, text=True, check=False)
    assert failed.returncode == 1
    assert "0 characters of 48" in failed.stderr
    assert not list((tmp_path / "secrets").iterdir())
    empty = {
        "spark_token": "",
        "airflow_passwords": '{"admin": "", "op": "", "user": "", "viewer": ""}',
        "airflow_database": "postgresql+psycopg://airflow:@postgres:5432/airflow",
        "catalog_address": "postgresql+psycopg://catalog:@postgres:5432/catalog",
    }
    for name, text in empty.items():
        (tmp_path / "secrets" / name).write_text(text)
    subprocess.run([sh, program], capture_output=True, text=True, check=True)
    made = {p.name: p.read_text() for p in (tmp_path / "secrets").iterdir()}
    assert all(json.loads(made["airflow_passwords"]).values())
    assert len(made["spark_token"]) == 64
    assert made["airflow_database_password"] in made["airflow_database"]
    assert made["catalog_password"] in made["catalog_address"]


def test_a_password_that_is_made_anew_is_in_its_address_and_another_server_s_address_stays(tmp_path: Path) -> None:
    """`init` gives the role the new one, and nobody would be let in with the old one."""
    (tmp_path / "bin").mkdir()
    program, made = tmp_path / "bin" / "make-secrets", tmp_path / "secrets"
    program.write_bytes((DOCKER / "bin" / "make-secrets").read_bytes())
    program.chmod(0o755)
    subprocess.run([program], capture_output=True, check=True)
    for password, address in (
        ("airflow_database_password", "airflow_database"),
        ("catalog_password", "catalog_address"),
    ):
        before = (made / password).read_text()
        (made / password).unlink()
        subprocess.run([program], capture_output=True, check=True)
        assert before not in (made / address).read_text()
        assert (made / password).read_text() in (made / address).read_text()
    (made / "catalog_address").write_text("postgresql+psycopg://me:mine@elsewhere:5432/catalog")
    subprocess.run([program], capture_output=True, check=True)
    assert "mine@elsewhere" in (made / "catalog_address").read_text()


def test_secrets_are_kept_out_of_the_repository() -> None:
    ignored = (ROOT / ".gitignore").read_text().splitlines()
    assert {"docker/secrets/", "docker/.env"} <= set(ignored)
    assert os.fspath(DOCKER / "secrets") == os.fspath(COMPOSITION.secrets["spark_secret"].parent)


def test_a_secret_in_an_image_s_variables_or_in_the_command_of_a_layer_is_found() -> None:
    env, layers = ["PATH=/usr/bin", "LANG=C.UTF-8"], [{"created_by": "/bin/sh -c apt-get update && id=1"}, {}]
    assert secrets_the_image_tells({"Env": env, "history": layers}) == []
    told = secrets_the_image_tells({"Env": [*env, "POSTGRES_PASSWORD=abc"], "history": layers})
    assert told == ["a variable of the image POSTGRES_PASSWORD is a secret itself"]
    layers.append({"created_by": "/bin/sh -c pip install --index-url https://me:pw@index.example/ x"})
    told = secrets_the_image_tells({"Env": env, "history": layers})
    assert told == ["a layer's command of the image is a password itself"]


def test_yaml_s_own_merges_are_what_the_runner_reads() -> None:
    assert yaml.safe_load(COMPOSE.read_text())["services"]["kafka-2"]["read_only"] is True


class MasterPage(http.server.BaseHTTPRequestHandler):
    """Of a living master that knows no application of ours."""

    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b'{"status": "ALIVE", "activeapps": [{"name": "somebody\'s", "state": "RUNNING"}]}')

    def log_message(self, *_said: object) -> None:
        """Nothing."""


def test_a_connect_server_that_its_master_has_forgotten_is_ended_and_so_is_one_whose_door_has_ended(
    capsys: pytest.CaptureFixture[str],
) -> None:
    program = runpy.run_path(str(DOCKER / "bin" / "spark-connect"))
    with http.server.HTTPServer(("127.0.0.1", 0), MasterPage) as server, subprocess.Popen(["sleep", "60"]) as child:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        page, begun = f"http://127.0.0.1:{server.server_port}/json/", time.monotonic()
        program["wait"]([child], page, Looks("wavestitch", since=begun - AT_FIRST_S - 1))
        assert "does not know this server" in capsys.readouterr().out
        assert child.poll() is None, "it is ended by who waits"
        server.shutdown()
        child.kill()
        child.wait(30)
        program["wait"]([child], page, Looks("wavestitch", since=begun))
    assert capsys.readouterr().out == ""
    assert COMPOSITION.services["spark-connect"].environment["SPARK_MASTER_PAGE"] in " ".join(
        COMPOSITION.services["spark-connect"].health
    )
