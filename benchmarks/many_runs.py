"""What one real Airflow does with many streams at once: `python -m benchmarks.many_runs`, a quarter of an hour.

Each stream has more to read than there is time for, in batches of one small waveform: its DAG triggers its next run by
itself, so that as many ingests are active all the time as there are streams. Meanwhile one more stream is backfilled,
by Airflow's own backfills. Kafka, PostgreSQL (metadata and catalog), a Spark that is there, and as many slots as the
composition has. What is said afterwards is what Airflow wrote down itself. Needs `make dev`; `--into FILE` writes it.
"""

from __future__ import annotations

import argparse
import json
import struct
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from benchmarks.airflow_records import Records, read_records, summary
from benchmarks.meter import tree_cpu
from benchmarks.results_file import machine, write_figures
from benchmarks.test_bed import TestBed, make_topic, open_test_bed, send, waveforms
from spark_apps.server import ConnectServer
from spark_apps.start_archive import archived_start
from wavestitch.batch.deployment import Deployment
from wavestitch.contracts.stream import backfill_dag_id, ingest_dag_id
from wavestitch.local.airflow_settings import RUNS_LOOKED_AT
from wavestitch.local.airflow_stack import Airflow, start_airflow, stop_airflow
from wavestitch.local.folders import CACHE
from wavestitch.local.process import wait_until
from wavestitch.local.spark_server import start_spark_server, stop_spark_server
from wavestitch.local.stack import write_config
from wavestitch.producers.recording import make_recording
from wavestitch.settings import load_settings

ROOT = Path(__file__).resolve().parents[1]
DAGS = ("ingest.py", "backfill.py")
PAST, DAYS, A_DAY = "past", 3, 4
"""The stream that is backfilled: so many days, of so many waveforms each."""
FIRST_DAY = datetime(2020, 1, 1, tzinfo=UTC)
WAITING = 200
"""Batches that wait for each ingest: more than are read meanwhile."""
READY_S = 900.0


@dataclass(frozen=True)
class RunningStack:
    """Everything that runs. `roots`: its processes; `database`: Airflow's, as psycopg takes it."""

    bed: TestBed
    deployment: Deployment
    airflow: Airflow
    database: str
    roots: list[int]


def main() -> None:
    ask = argparse.ArgumentParser(description=__doc__)
    ask.add_argument("--streams", type=int, default=25)
    ask.add_argument("--parallelism", type=int, default=8, help="tasks side by side, as in the composition")
    ask.add_argument(
        "--looked-at", type=int, default=RUNS_LOOKED_AT, help="[scheduler] max_dagruns_per_loop_to_schedule"
    )
    ask.add_argument("--minutes", type=float, default=20, help="the longest that the backfill is waited for")
    ask.add_argument("--into", type=Path)
    ask.add_argument("--name", default="as it is", help="of this measurement, among those that FILE has")
    given = ask.parse_args()
    with tempfile.TemporaryDirectory(prefix="wavestitch-runs-") as folder:
        told = {
            "AIRFLOW__CORE__PARALLELISM": str(given.parallelism),
            "AIRFLOW__SCHEDULER__MAX_DAGRUNS_PER_LOOP_TO_SCHEDULE": str(given.looked_at),
        }
        found = {"streams": given.streams, "parallelism": given.parallelism, "looked_at": given.looked_at}
        found |= measured(Path(folder), given.streams, told, minutes=given.minutes)
    found |= {"when": datetime.now(UTC).isoformat(timespec="seconds"), "machine": machine()}
    print(json.dumps(found, indent=1))
    if given.into:
        kept = json.loads(given.into.read_text()) if given.into.exists() else {}
        write_figures(given.into, {**kept, given.name: found})


def measured(folder: Path, streams: int, told: Mapping[str, str], *, minutes: float) -> dict[str, Any]:
    """`told`: of Airflow's settings, over those of the local stack."""
    names = [f"s{n:03d}" for n in range(streams)]
    with opened(folder, names, told) as stack:
        start_ingests(stack, names)
        began, busy = time.time(), Busy(stack.roots)
        in_time = backfill(stack, seconds=minutes * 60)
        figures = {"backfill_in_time": in_time, **busy.since()}
        records = read_records(stack.database)
        figures |= summary(records, since=began, until=time.time(), backfilled=backfill_dag_id(PAST))
        check(stack, names, records)
    return figures


def start_ingests(stack: RunningStack, names: list[str]) -> None:
    """Returns once a run of each stream is active, and each has ended one."""
    with stack.airflow.login() as api:
        for name in names:
            api.trigger(ingest_dag_id(name))

    def all_there() -> bool:
        return len({r.dag_id for r in read_records(stack.database).runs if r.ended}) >= len(names)

    if not wait_until(all_there, seconds=READY_S, every=5):
        raise RuntimeError(f"not every ingest has ended a run within {READY_S:.0f} s")


def backfill(stack: RunningStack, *, seconds: float) -> bool:
    """Whether all its runs have ended in that time."""
    last = FIRST_DAY + timedelta(days=DAYS - 1)
    asked = {"dag_id": backfill_dag_id(PAST), "from_date": FIRST_DAY.isoformat(), "to_date": last.isoformat()}
    with stack.airflow.login("op") as op:
        op.request("POST", "/api/v2/backfills", json={**asked, "max_active_runs": DAYS})

    def over() -> bool:
        runs = [r for r in read_records(stack.database).runs if r.dag_id == backfill_dag_id(PAST)]
        return len(runs) == DAYS and all(r.ended for r in runs)

    return wait_until(over, seconds=seconds, every=5)


def check(stack: RunningStack, names: list[str], records: Records) -> None:
    """Figures count only of work that was done: what ended well is published, once. Raises `RuntimeError`."""
    failed = [r for r in records.runs if r.state == "failed"]
    if failed:
        raise RuntimeError(f"{len(failed)} runs failed, the first is {failed[0]}")
    for name in [*names, PAST]:
        dag = backfill_dag_id(PAST) if name == PAST else ingest_dag_id(name)
        ended = sum(r.dag_id == dag and r.state == "success" for r in records.runs)
        table = stack.deployment.tables(name).waveforms()
        ids = [] if table is None else table.scan(selected_fields=("waveform_id",)).to_arrow()[0].to_pylist()
        least = ended * (A_DAY if name == PAST else 1)
        if len(set(ids)) != len(ids) or len(ids) < least:
            raise RuntimeError(f"{name}: {len(ids)} waveforms, {len(set(ids))} of them different, at least {least}")


@contextmanager
def opened(folder: Path, names: list[str], told: Mapping[str, str]) -> Iterator[RunningStack]:
    from tests.postgresql import running_postgresql  # noqa: PLC0415 - of `make dev`

    with open_test_bed(folder, print) as bed, running_postgresql() as postgresql:
        catalog, metadata = postgresql.new_database(), postgresql.new_database()
        (folder / "catalog-address").touch(mode=0o600)
        (folder / "catalog-address").write_text(postgresql.address(catalog))
        try:
            conf = archived_start(cache=CACHE, java_home=bed.java_home, say=print)
            spark = start_spark_server(
                folder=folder / "spark", program=ConnectServer(bed.java_home, conf=conf), say=print
            )
            write_config(
                folder, bootstrap=bed.bootstrap, java_home=bed.java_home, streams=folder / "streams", spark=spark
            )
            environment = {**bed.config(), "WAVESTITCH_TABLES__URI": f"file:{folder}/catalog-address"}
            fill(bed, names)
            more = {
                **environment,
                "JAVA_HOME": str(bed.java_home),
                "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": postgresql.address(metadata),
                # What parsing takes is measured by `benchmarks.many_streams`.
                "AIRFLOW__DAG_PROCESSOR__MIN_FILE_PROCESS_INTERVAL": "3600",
                **told,
            }
            airflow = airflow_of(folder, more, names)
            assert postgresql.process is not None
            roots = [airflow.pid, spark.pid, bed.broker_pid, postgresql.process.pid]
            database = postgresql.address(metadata, driver="psycopg").replace("+psycopg", "")
            yield RunningStack(bed, Deployment(load_settings(environment)), airflow, database, roots)
        finally:
            stop_airflow(folder / "airflow")
            stop_spark_server(folder / "spark")


def airflow_of(folder: Path, environment: Mapping[str, str], names: list[str]) -> Airflow:
    """One with the DAGs of ingest and backfill, once it knows all of them."""
    (folder / "dags").mkdir()
    for name in DAGS:
        (folder / "dags" / name).symlink_to(ROOT / "dags" / name)
    (folder / "airflow").mkdir()
    airflow = start_airflow(
        folder=folder / "airflow", project_root=ROOT, dags_folder=folder / "dags", env=environment, say=print
    )
    with airflow.login() as api:
        for dag_id in (*map(ingest_dag_id, names), backfill_dag_id(PAST)):
            api.wait_for_dag(dag_id, seconds=READY_S)
    return airflow


def fill(bed: TestBed, names: list[str]) -> None:
    for name in names:
        topic = make_topic(bed, partitions=1, prefix=name)
        bed.declare(name, topic, most=2)
        send(bed, topic, [waveforms(WAITING, size=2048, prefix=name)], chunk=1024)
    topic = make_topic(bed, partitions=1, prefix=PAST)
    bed.declare(PAST, topic)
    made = [
        make_recording(
            waveform_id=f"day-{day}-{n}",
            source="bench",
            channel="II",
            start_time_ns=int((FIRST_DAY + timedelta(days=day, hours=n)).timestamp()) * 10**9,
            sampling_rate_hz=100,
            sample_format="i16le",
            units="mV",
            adc_gain=200,
            baseline=0,
            samples=struct.pack("<512h", *(i * (n + 1) % 999 for i in range(512))),
        )
        for day in range(DAYS)
        for n in range(A_DAY)
    ]
    send(bed, topic, [made], chunk=512)


class Busy:
    """What the processors did since it was made: for us, and for anybody."""

    def __init__(self, roots: list[int]) -> None:
        self._roots = roots
        self._before = self._now()

    def since(self) -> dict[str, float]:
        """In cores, on average."""
        wall, ours, all_ = (now - then for now, then in zip(self._now(), self._before, strict=True))
        return {"cores_ours": round(ours / wall, 2), "cores_of_others": round((all_ - ours) / wall, 2)}

    def _now(self) -> tuple[float, float, float]:
        user, nice, system, _, _, irq, softirq, *_ = (
            int(word) / 100 for word in Path("/proc/stat").read_text().splitlines()[0].split()[1:]
        )
        return time.monotonic(), tree_cpu(self._roots), user + nice + system + irq + softirq


if __name__ == "__main__":
    main()
