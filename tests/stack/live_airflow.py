"""The whole Airflow that tests share, on the session's broker: streams are declared in it, people act by its REST API.

It stands on PostgreSQL: on SQLite Airflow takes a backfill back that is made while others write, and its scheduler can
end of that. Its Spark connection leads to `tests.stack.stitcher`; the real Spark is for the tests that carry a DAG out
in their own process.
"""

from __future__ import annotations

import json
import os
import shlex
import struct
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient
from sqlalchemy import NullPool, create_engine, text

from tests.builders.webhook import Webhook, listening_webhook
from tests.stack.airflow_home import ROOT, write_settings
from wavestitch.batch.deployment import Deployment
from wavestitch.contracts.errors import Transient
from wavestitch.contracts.stream import Stream
from wavestitch.local.airflow_settings import AirflowFolders, airflow_environment
from wavestitch.local.airflow_stack import Airflow, running_airflow, start_airflow, stop_airflow
from wavestitch.local.broker import Broker
from wavestitch.local.process import wait_until
from wavestitch.producers.chunking import ChunkRecord, cut_recording
from wavestitch.producers.recording import make_recording
from wavestitch.producers.sender import send_chunks
from wavestitch.settings import load_settings

SECONDS = 300
FIRST = "first"
"""A stream that is there from the start: by its DAGs their files are known, and can be read anew."""
STITCHER = "spark3-submit"
"""A name that Airflow lets a Spark connection have for its binary."""
WITHOUT_SPARK = json.dumps({"conn_type": "spark", "host": "local[2]", "extra": {"spark-binary": STITCHER}})
"""The connection that leads to it, once it is on PATH."""
OTHERWISE_HERE = {
    # It is looked when a test says so.
    "watch.py": ('schedule=CronTriggerTimetable("*/5 * * * *", timezone="UTC")', "schedule=None"),
}
"""What of the project's DAGs is not as they are written."""
OTHER_DAGS = {
    "trivial.py": """
import os
from airflow.sdk import DAG, Param, task

with DAG("trivial", schedule=None, params={"name": Param("nobody", type="string")}):

    @task
    def greet(params=None):
        return {"hello": params["name"], "from": os.environ["GIVEN_TO_TASKS"]}

    @task
    def measure(greeting):
        return len(greeting["hello"])

    measure(greet())
""",
    "consumer.py": """
from airflow.sdk import DAG, Asset, get_current_context, task

NEWS = Asset("waveforms_brook")

with DAG("consumer", schedule=NEWS):

    @task
    def read():
        return [event.extra for event in get_current_context()["triggering_asset_events"][NEWS]]

    read()
""",
    "broken.py": "import airflow.sdk  # a DAG file\nraise RuntimeError('on purpose')\n",
}


@dataclass(frozen=True)
class LiveStream:
    """A stream of one test."""

    name: str
    deployment: Deployment
    stream: Stream

    def send(self, *waveforms: Sequence[ChunkRecord]) -> None:
        flat = [c for waveform in waveforms for c in waveform]
        send_chunks(flat, topic=self.stream.topic, settings=self.deployment.kafka)

    def delete_records(self, ends: dict[int, int]) -> None:
        admin = AdminClient({"bootstrap.servers": self.deployment.kafka.bootstrap})
        wanted = [TopicPartition(self.stream.topic, p, offset) for p, offset in ends.items()]
        for answer in admin.delete_records(wanted).values():
            answer.result(30)

    def ends(self) -> dict[int, int]:
        topic = self.deployment.log.topic(self.stream.topic)
        found = self.deployment.log.ends(topic.name, topic.partitions)
        return {p: end.stable_end for p, end in found.items()}

    def positions(self) -> dict[int, int]:
        head = self.deployment.tables(self.name).head()
        assert head is not None
        return {p: at.next_offset for p, at in head.positions.items()}

    def note(self) -> str:
        head = self.deployment.tables(self.name).head()
        assert head is not None
        return head.note

    def newest_folder(self) -> str:
        """The id of the plan that was kept last."""
        plans = self.deployment.settings.landing.glob(f"{self.name}/*/plan.json")
        return max(plans, key=lambda path: path.stat().st_mtime_ns).parent.name

    def published(self) -> list[str]:
        table = self.deployment.tables(self.name).waveforms()
        if table is None:
            return []
        return sorted(table.scan(selected_fields=("waveform_id",)).to_arrow().column(0).to_pylist())


@dataclass
class LiveAirflow:
    """All of it lies in `folder`, but for its database; `environment` is what it is started with. `webhook`: what it
    tells people by."""

    folder: Path
    config: Path
    topics: Callable[..., str]
    environment: dict[str, str]
    webhook: Webhook
    closing: ExitStack = field(default_factory=ExitStack)

    @property
    def home(self) -> Path:
        return self.folder / "airflow"

    @property
    def airflow(self) -> Airflow:
        found = running_airflow(self.home)
        assert found is not None, "it does not run"
        return found

    def start(self) -> Airflow:
        return start_airflow(
            folder=self.home,
            project_root=ROOT,
            dags_folder=self.folder / "dags",
            env=self.environment,
            say=print,
        )

    def surroundings(self) -> dict[str, str]:
        """The environment of whatever of Airflow's is started beside what runs."""
        folders = AirflowFolders(
            home=self.home,
            commands=self.home / "bin",
            environment_bin=Path(sys.executable).parent,
            dags=self.folder / "dags",
            plugins=ROOT / "plugins",
            passwords=self.airflow.password_file,
        )
        port = int(self.airflow.url.rpartition(":")[2])
        return airflow_environment(inherited=os.environ, folders=folders, port=port, extra=self.environment)

    def wait_asked(self, dag_id: str, run_id: str, task_id: str, *, times: int = 1) -> None:
        """Until the scheduler has heard that this task has asked and gone: it fails a task that is answered before."""
        heard = f"executor event with state success for task instance TaskInstanceKey(dag_id='{dag_id}', "
        heard += f"task_id='{task_id}', run_id='{run_id}'"
        log = self.home / "airflow.log"
        assert comes_true(lambda: log.read_text(errors="replace").count(heard) >= times), heard

    @contextmanager
    def nothing_is_scheduled(self) -> Iterator[None]:
        """Airflow's scheduler takes up no task meanwhile. Airflow 3.3.2 on psycopg 3 dies of a pool that is changed at
        the moment when it wants it: it looks for the code of the refused lock under psycopg 2's name."""
        from airflow.utils.db import DBLocks  # noqa: PLC0415

        turn = text("SELECT pg_advisory_xact_lock(:id)").bindparams(id=DBLocks.SCHEDULER_CRITICAL_SECTION.value)
        engine = create_engine(self.environment["AIRFLOW__DATABASE__SQL_ALCHEMY_CONN"], poolclass=NullPool)
        with engine.begin() as asked:
            asked.execute(turn)
            yield

    def told(self, run_id: str) -> list[dict[str, Any]]:
        """What somebody was told of this run."""
        return [said for said in self.webhook.told if said["facts"].get("run") == run_id]

    def stop(self) -> None:
        stop_airflow(self.home)
        self.closing.close()

    def page(self, user: str, url: str) -> str:
        """What this user sees there."""
        said = {"username": user, "password": self.airflow.password(user)}
        with self.airflow.login(user) as api:
            token = api.request("POST", "/auth/token", json=said)["access_token"]
        answer = httpx.get(url, headers={"Authorization": f"Bearer {token}"}, trust_env=False, timeout=30)
        assert answer.status_code == 200, answer.text
        return answer.text

    def declare(self, name: str, declared: dict[str, Any], *, flows: Sequence[str]) -> LiveStream:
        """A stream with a topic of its own, once Airflow knows these of its DAGs: a file of DAGs is dear to read."""
        topic = self.topics(partitions=1, prefix=name)
        (self.folder / "streams" / f"{name}.yaml").write_text(
            json.dumps({"topic": topic, "group": f"{topic}-g", **declared})
        )
        deployment = Deployment(load_settings({**os.environ, "WAVESTITCH_CONFIG": str(self.config)}))
        with self.airflow.login() as api:
            for flow in flows:
                api.wait_for_dag(f"{flow}_{FIRST}", seconds=SECONDS)
                token = api.request("GET", f"/api/v2/dags/{flow}_{FIRST}")["file_token"]
                api.request("PUT", f"/api/v2/parseDagFile/{token}")
            for flow in flows:
                api.wait_for_dag(f"{flow}_{name}", seconds=SECONDS)
        return LiveStream(name, deployment, deployment.stream(name))

    def again(self, dag_id: str, run: Mapping[str, Any]) -> dict[str, Any]:
        """A run that was finished before, once it is finished anew."""
        found: dict[str, Any] = {}
        with self.airflow.login() as api:

            def ended() -> bool:
                nonlocal found
                with suppress(Transient):
                    found = api.request("GET", f"/api/v2/dags/{dag_id}/dagRuns/{quote(run['dag_run_id'])}")
                return found.get("state") in ("success", "failed") and found["end_date"] != run["end_date"]

            assert comes_true(ended), found
        return found

    def wait_backfilled(self, dag_id: str) -> None:
        """Until Airflow has noticed that its backfills are over, which takes a while: it refuses more before that."""
        with self.airflow.login() as api:

            def over() -> bool:
                with suppress(Transient):
                    made = api.request("GET", "/api/v2/backfills", params={"dag_id": dag_id})["backfills"]
                    return all(each["completed_at"] for each in made)
                return False

            assert comes_true(over), dag_id

    def wait_all(self, dag_id: str, count: int, *, seconds: float = SECONDS) -> list[dict[str, Any]]:
        """Until so many runs of a DAG are finished."""
        found: list[dict[str, Any]] = []
        with self.airflow.login() as api:

            def ended() -> bool:
                nonlocal found
                with suppress(Transient):  # a busy machine: the server answers later
                    answer = api.request("GET", f"/api/v2/dags/{dag_id}/dagRuns", params={"order_by": "logical_date"})
                    found = list(answer["dag_runs"])
                return len(found) >= count and all(run["state"] in ("success", "failed") for run in found)

            assert comes_true(ended, seconds=seconds), [(run["dag_run_id"], run["state"]) for run in found]
        return found


def start_live(
    folder: Path,
    broker: Broker,
    *,
    java_home: Path,
    topics: Callable[..., str],
    database: str,
    more: Mapping[str, str] | None = None,
) -> LiveAirflow:
    """`database`: an empty one, as SQLAlchemy names it. `more`: variables of Airflow's on top."""
    for name in ("streams", "dags", "airflow/bin"):
        (folder / name).mkdir(parents=True)
    # Maintenance, which is due as soon as a stream is there, would have the slot that tests wait for.
    for path in set((ROOT / "dags").glob("*.py")) - {ROOT / "dags" / "maintain.py"}:
        (folder / "dags" / path.name).symlink_to(path)
    for name, (written, here) in OTHERWISE_HERE.items():
        source = (ROOT / "dags" / name).read_text()
        assert source.count(written) == 1, f"{name} says no longer {written!r}"
        (folder / "dags" / name).unlink()
        (folder / "dags" / name).write_text(source.replace(written, here))
    for name, source in OTHER_DAGS.items():
        (folder / "dags" / name).write_text(source)
    write_stitcher(folder / "airflow" / "bin" / STITCHER)
    (folder / "streams" / f"{FIRST}.yaml").write_text("topic: none\ngroup: none\n")
    config = write_settings(folder, streams=folder / "streams", bootstrap=broker.bootstrap, java_home=java_home)
    closing = ExitStack()
    webhook = closing.enter_context(listening_webhook())
    told = f'[notify]\nwebhook = "{webhook.address}"\n'
    config.write_text(f"{config.read_text()}{told}")
    environment = {
        "WAVESTITCH_CONFIG": str(config),
        "JAVA_HOME": str(java_home),
        "AIRFLOW_CONN_SPARK_DEFAULT": WITHOUT_SPARK,
        "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": database,
        "GIVEN_TO_TASKS": "the starter",
        # It looks at its database that often when it has nothing to do, which is most of what it takes then.
        "AIRFLOW__SCHEDULER__SCHEDULER_IDLE_SLEEP_TIME": "0.5",
        # Reading five files every five seconds takes a processor; they are read when a test declares a stream.
        "AIRFLOW__DAG_PROCESSOR__MIN_FILE_PROCESS_INTERVAL": "3600",
        **(more or {}),
    }
    live = LiveAirflow(folder, config, topics, environment, webhook, closing)
    live.start()
    return live


def comes_true(condition: Callable[[], bool], *, seconds: float = SECONDS) -> bool:
    """Whether it does in the time that a busy machine may take. A look asks the server: looked at without a pause, that
    would be the most that Airflow has to do."""
    return wait_until(condition, seconds=seconds, every=1)


def write_stitcher(path: Path) -> None:
    """In the place of spark-submit: the Spark app's tasks one after another, in a process that is up in a second. It
    fails where another one is at work: the pool of the settings has one slot, whatever kinds of runs want a Spark."""
    python, root = shlex.quote(sys.executable), shlex.quote(str(ROOT))
    alone = f"exec 9>{shlex.quote(str(path))}.alone\nflock -n 9 || {{ echo two Sparks at once >&2; exit 1; }}\n"
    path.parent.mkdir(exist_ok=True)
    path.write_text(f'#!/bin/sh\n{alone}cd {root} && exec {python} -m tests.stack.stitcher "$@"\n')
    path.chmod(0o755)


def recorded(waveform_id: str, *, start_ns: int, chunks: int = 2, shift: int = 0) -> list[ChunkRecord]:
    """A recording of that many chunks. `shift`: another truth about it, in each chunk."""
    recording = make_recording(
        waveform_id=waveform_id,
        source="bench",
        channel="II",
        start_time_ns=start_ns,
        sampling_rate_hz=100,
        sample_format="i16le",
        units="mV",
        adc_gain=200,
        baseline=0,
        samples=struct.pack(
            f"<{100 * chunks}h", *((i * 37 + len(waveform_id)) % 999 + shift for i in range(100 * chunks))
        ),
    )
    return cut_recording(recording, 200)


@dataclass
class Shared:
    """The one that runs, while tests that use it follow each other."""

    live: LiveAirflow | None = None

    def stop(self) -> None:
        if self.live is not None:
            self.live.stop()
        self.live = None
