"""A whole batch from the command line over SASL_SSL, watched while it runs and searched afterwards (checks 7, 9, 10).

No secret leaves the processes that need it, nothing listens beyond this machine, Spark is as closed as it can be, and
nothing that holds data is for everybody to read.
"""

from __future__ import annotations

import json
import os
import resource
import stat
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.builders.recordings import cut, recordings
from tests.deployment_rig import STREAM
from tests.security.canaries import KINDS_OF_KEYS, Canaries
from tests.security.own_processes import Sight, family, watch_to_its_end
from tests.security.secure_broker import SecureBroker
from tests.security.secure_deployment import GRANTS, SecureDeployment, make_secure_site
from wavestitch.producers.sender import send_chunks

SENT = recordings(4, seed=3, prefix="visible-id")
USER = "carrier"
HIDDEN = "*********(redacted)"
NEEDS = sorted({*GRANTS["planner"], *GRANTS["reader"], *GRANTS["committer"]})
SETTINGS = """
landing = "{folder}/landing"
docs = "{folder}/docs"
cache = "{folder}/cache"
streams = "{folder}/streams"
[kafka]
bootstrap = "{bootstrap}"
[kafka.options]
"security.protocol" = "SASL_SSL"
"sasl.mechanism" = "SCRAM-SHA-512"
"sasl.username" = "{user}"
"sasl.password" = "env:CANARY_KAFKA"
"ssl.ca.location" = "{ca}"
[tables]
uri = "sqlite:///{folder}/catalog.db"
warehouse = "file://{folder}/warehouse"
[tables.properties]
"s3.secret-access-key" = "env:CANARY_TABLES"
[spark]
master = "local[2]"
java_home = "{java_home}"
[spark.conf]
"spark.authenticate.secret" = "file:{secret}"
"spark.eventLog.enabled" = "true"
"spark.eventLog.dir" = "file://{events}"
"spark.eventLog.compress" = "false"
"spark.decoy.of.no.kind" = "env:CANARY_TABLES"
{decoys}
"""
EXPECTED = """
expectations:
  - type: expect_column_values_to_be_in_set
    kwargs: {column: units, value_set: [mV]}
"""


@dataclass(frozen=True)
class Aftermath:
    """What a run left. `said`: all that it printed; `sight`: what was seen of its processes."""

    secure: SecureDeployment
    canaries: Canaries
    code: int
    said: str
    sight: Sight

    @property
    def folder(self) -> Path:
        return self.secure.whole.folder

    def files(self) -> list[Path]:
        return [p for p in self.folder.rglob("*") if p.is_file()]


def _settings(secure: SecureDeployment, *, secret: Path, events: Path) -> str:
    return SETTINGS.format(
        folder=secure.whole.folder,
        bootstrap=secure.broker.broker.bootstrap,
        user=USER,
        ca=secure.broker.certificates.ca,
        java_home=secure.whole.deployment.settings.spark.java_home,
        secret=secret,
        events=events,
        decoys="\n".join(f'"{key}" = "env:CANARY_TABLES"' for key in KINDS_OF_KEYS),
    )


@pytest.fixture(scope="module")
def aftermath(secure_broker: SecureBroker, java_home: Path, tmp_path_factory: pytest.TempPathFactory) -> Aftermath:
    secure = make_secure_site(
        tmp_path_factory.mktemp("canary") / "deployment", secure_broker, java_home=java_home, stream=EXPECTED
    )
    canaries, folder = Canaries(), secure.whole.folder
    secure_broker.add_user(USER, canaries.kafka)
    secure_broker.grant({USER: NEEDS}, topic=secure.whole.topic, group=secure.whole.group)
    owner = secure.enter("owner")
    send_chunks(cut(SENT), topic=secure.whole.topic, settings=owner.kafka)
    secret = tmp_path_factory.mktemp("secret") / "spark"
    secret.write_text(canaries.spark + "\n")
    (folder / "events").mkdir(mode=0o700)
    own = tmp_path_factory.mktemp("settings") / "wavestitch.toml"
    own.write_text(_settings(secure, secret=secret, events=folder / "events"))
    env = {
        **os.environ,
        "WAVESTITCH_CONFIG": str(own),
        "CANARY_KAFKA": canaries.kafka,
        "CANARY_TABLES": canaries.tables,
        # What a task of Airflow's has beside it.
        "AIRFLOW__CORE__FERNET_KEY": canaries.airflow,
        "AIRFLOW_CONN_KAFKA_DEFAULT": f"kafka://u:{canaries.airflow}@h",
        "SECRET_OF_ANOTHER_PROGRAM": canaries.airflow,
    }
    said = tmp_path_factory.mktemp("said") / "output"
    code, sight = 0, Sight()
    # Who may write its memory to a disk hands that on to its children.
    _, most = resource.getrlimit(resource.RLIMIT_CORE)
    resource.setrlimit(resource.RLIMIT_CORE, (most, most))
    for command in (["check"], ["run", STREAM, "--json"], ["status"]):
        with said.open("ab") as output:
            # A careless umask: what is closed must be closed by whoever makes it.
            process = subprocess.Popen(
                [sys.executable, "-m", "wavestitch", *command], stdout=output, stderr=output, env=env, umask=0
            )
        seen = watch_to_its_end(process, seconds=240)
        code = code or process.returncode
        sight.commands |= seen.commands
        sight.listening |= seen.listening
        sight.environments |= seen.environments
        sight.may_dump |= seen.may_dump
    return Aftermath(secure, canaries, code, said.read_text(), sight)


def test_the_batch_went_through(aftermath: Aftermath) -> None:
    assert aftermath.code == 0, aftermath.said
    assert aftermath.secure.whole.published() == {r.waveform_id: bytes(r.samples) for r in SENT}
    head, group = aftermath.secure.stands()
    assert {p: at.offset for p, at in group.items()} == {p: at.next_offset for p, at in head.positions.items()}


def test_no_secret_is_in_anything_that_the_run_left(aftermath: Aftermath) -> None:
    files = aftermath.files()
    names = " ".join(str(p.relative_to(aftermath.folder)) for p in files)
    for part in (
        "plan.json",
        "receipt-",
        "verdict-",
        ".arrow",
        ".parquet",
        ".metadata.json",
        ".html",
        ".log",
        "events/",
    ):
        assert part in names, f"nothing with {part} was searched"
    assert aftermath.canaries.in_files(files) == []
    broker = [p for p in aftermath.secure.broker.broker.folder.rglob("*") if p.name != "server.properties"]
    assert aftermath.canaries.in_files(broker) == []


def test_no_secret_is_in_the_tables(aftermath: Aftermath) -> None:
    """What is compressed in the files, and what the tables say of themselves."""
    shown = ""
    for path in aftermath.files():
        if path.suffix == ".parquet":
            shown += str(pq.read_table(path).to_pylist()) + str(pq.read_metadata(path).metadata)
        if path.suffix == ".arrow":
            with pa.memory_map(str(path)) as source:
                shown += str(pa.ipc.open_file(source).read_all().to_pylist())
    table = aftermath.secure.whole.deployment.tables(STREAM).waveforms()
    assert table is not None
    shown += table.metadata.model_dump_json() + str(table.inspect.files().to_pylist())
    assert "visible-id-0000" in shown, "the search is blind"
    assert aftermath.canaries.in_text(shown) == []


def test_no_secret_is_printed_or_shown_in_a_command_line(aftermath: Aftermath) -> None:
    assert '"plan_id"' in aftermath.said
    assert aftermath.canaries.in_text(aftermath.said) == []
    commands = "\n".join(aftermath.sight.commands)
    for part in ("wavestitch run", "consumers.unit_process", "SparkSubmit", "pyspark.daemon"):
        assert part in commands, f"{part} was never seen running"
    assert aftermath.canaries.in_text(commands) == []
    assert USER not in commands


def test_no_child_has_a_secret_in_its_environment(aftermath: Aftermath) -> None:
    seen = aftermath.sight.environments
    for part in ("consumers.unit_process", "SparkSubmit", "pyspark.daemon", "reassemble.py"):
        assert any(part in command for command in seen), f"{part} was never looked at"
    assert [command for command, found in seen.items() if aftermath.canaries.in_text(found)] == []


def test_no_crash_writes_samples_to_a_disk(aftermath: Aftermath) -> None:
    assert {c for c in aftermath.sight.may_dump if "java" in c or "python" in c} == set()


def test_nothing_listens_beyond_this_machine(aftermath: Aftermath) -> None:
    assert aftermath.sight.listening, "the Spark driver was never seen listening"
    assert all(address.is_loopback for address in aftermath.sight.listening), aftermath.sight.listening
    broker = Sight()
    broker.look(family(aftermath.secure.broker.broker.pid))
    assert broker.listening
    assert all(address.is_loopback for address in broker.listening), broker.listening


def _effective_conf(events: Path) -> dict[str, str]:
    """Spark's properties as the app really had them, from its own event log."""
    for path in events.rglob("events_*"):
        for line in path.read_text().splitlines():
            event = json.loads(line)
            if event["Event"] == "SparkListenerEnvironmentUpdate":
                return dict(event["Spark Properties"])
    raise AssertionError(f"no event log in {events}")


def test_spark_ran_with_its_doors_closed(aftermath: Aftermath) -> None:
    conf = _effective_conf(aftermath.folder / "events")
    wanted = {
        "spark.authenticate": "true",
        "spark.network.crypto.enabled": "true",
        "spark.network.crypto.cipher": "AES/GCM/NoPadding",
        "spark.network.crypto.authEngineVersion": "2",
        "spark.ui.enabled": "false",
        "spark.master.rest.enabled": "false",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.authenticate.secret": HIDDEN,
    }
    assert {key: conf.get(key) for key in wanted} == wanted
    decoys = {key: conf.get(key) for key in (*KINDS_OF_KEYS, "spark.decoy.of.no.kind")}
    assert decoys == dict.fromkeys(decoys, HIDDEN)


def test_nothing_that_holds_data_is_for_everybody_to_read(aftermath: Aftermath) -> None:
    """Neither by its own mode, nor by those of the folders above it."""
    ours = ("streams", "wavestitch.toml", "events")  # what the test itself has put there
    seen = [p for p in aftermath.files() if p.relative_to(aftermath.folder).parts[0] not in ours]
    assert len(seen) > 20
    open_to_all = [str(p.relative_to(aftermath.folder)) for p in seen if _world_readable(p, aftermath.folder)]
    assert open_to_all == []
    made = {
        p
        for each in seen
        for p in (each, *each.parents)
        if p != aftermath.folder and p.is_relative_to(aftermath.folder)
    }
    assert [str(p) for p in made if p.stat().st_mode & 0o027] == []
    assert not stat.S_IMODE(aftermath.secure.broker.broker.folder.stat().st_mode) & 0o077


def _world_readable(path: Path, root: Path) -> bool:
    above = [p for p in path.parents if p.is_relative_to(root) and p != root]
    return bool(path.stat().st_mode & stat.S_IROTH) and all(p.stat().st_mode & stat.S_IXOTH for p in above)
