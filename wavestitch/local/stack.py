"""The embedded stack: Kafka, Spark, Airflow, their settings. Starts what is missing, stops exactly what it started.

Everything lies in one folder: two stacks in two folders do not meet. Loopback only. The settings file that it writes
is the one truth that both the command line and Airflow's connections are made from.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from wavestitch.contracts.errors import Refused
from wavestitch.kafka.client_settings import KafkaSettings
from wavestitch.local.airflow_stack import STOP_SECONDS, Airflow, start_airflow, stop_airflow
from wavestitch.local.broker import Broker, start_broker, stop_broker
from wavestitch.local.folders import CACHE, ROOT, STATE
from wavestitch.local.jars import KAFKA, cached_jars
from wavestitch.local.java import find_java
from wavestitch.local.spark_server import Program, SparkServer, start_spark_server, stop_spark_server
from wavestitch.local.topics import make_topics
from wavestitch.modes import OWN_FOLDER, make_folder
from wavestitch.sqlite_address import sqlite_address
from wavestitch.stream_files import MOST_STREAMS, find_streams

Say = Callable[[str], None]


CONFIG = "wavestitch.toml"
KEEP_RUNS = "14 d"
SLOTS_OF_A_SPARK_THAT_IS_THERE = 4
"""It has two tasks at work at a time; the steps that wait for it cost little."""


@dataclass(frozen=True, slots=True)
class Stack:
    """A running stack. `config`: its settings file."""

    folder: Path
    config: Path
    broker: Broker
    airflow: Airflow
    spark: SparkServer | None
    java_home: Path
    kafka_jars: Path


def start_stack(
    *,
    say: Say,
    folder: Path = STATE,
    streams: Path = ROOT / "streams",
    spark_conf: Mapping[str, str] = MappingProxyType({}),
    spark: Program | None = None,
) -> Stack:
    """Start what is not running, and say where it is. `spark_conf`: for the settings' Spark section. `spark`: what
    stays and stitches all batches; without it each batch starts a Spark. Raises `Refused` for a folder in which Airflow
    cannot live."""
    if "%" in str(folder):
        raise Refused(
            f"{folder} has a % in it, which Airflow's configuration takes for a reference of its own: a home in there "
            "it does not find; start from a folder without one (an Airflow of your own may read settings from "
            "anywhere)",
            for_guests=False,
        )
    make_folder(folder, OWN_FOLDER).chmod(OWN_FOLDER)
    java_home = find_java(CACHE)
    jars = cached_jars(KAFKA, cache_dir=CACHE, java_home=java_home, say=say)
    broker = start_broker(folder=folder / "kafka", java_home=java_home, jars=jars, say=say)
    server = None if spark is None else start_spark_server(folder=folder / "spark", program=spark, say=say)
    config = write_config(
        folder,
        bootstrap=broker.bootstrap,
        java_home=java_home,
        streams=streams,
        spark_conf=spark_conf,
        spark=server,
    )
    found = find_streams(streams, most=MOST_STREAMS, landing=folder / "landing")
    make_topics(found, KafkaSettings(broker.bootstrap), say=say)
    airflow = start_airflow(
        folder=folder / "airflow",
        project_root=ROOT,
        env={
            "WAVESTITCH_CONFIG": str(config),
            "JAVA_HOME": str(java_home),
            "AIRFLOW_CONN_SPARK_DEFAULT": json.dumps(
                {"conn_type": "spark", "host": "local[2]", "extra": {"spark-binary": "spark-submit"}}
            ),
        },
        say=say,
    )
    say(f"Kafka    {broker.bootstrap}")
    if server is not None:
        say(f"Spark    {server.remote}  its token in {server.token.removeprefix('file:')}")
    say(f"Airflow  {airflow.url}  user {airflow.user}, password in {airflow.password_file}")
    say(f"settings {config}  (stop with `make down`)")
    return Stack(folder, config, broker, airflow, server, java_home, jars)


def stop_stack(*, say: Say, folder: Path = STATE) -> None:
    """Stop Airflow, then what its tasks use; data stay."""
    say(f"stopping Airflow, Spark and Kafka; tasks at work after {STOP_SECONDS:.0f} s are killed, and nothing is lost")
    say("Airflow stopped" if stop_airflow(folder / "airflow") else "Airflow was not running")
    say("Spark stopped" if stop_spark_server(folder / "spark") else "Spark was not running")
    say("Kafka stopped" if stop_broker(folder / "kafka") else "Kafka was not running")


def write_config(
    folder: Path,
    *,
    bootstrap: str,
    java_home: Path,
    streams: Path,
    spark_conf: Mapping[str, str] = MappingProxyType({}),
    spark: SparkServer | None = None,
) -> Path:
    """The settings of a stack in `folder`; made anew at each start, since ports may change."""
    there: dict[str, str | int] = {}
    if spark is not None:
        there = {"remote": spark.remote, "token": spark.token, "pool_slots": SLOTS_OF_A_SPARK_THAT_IS_THERE}
    path = folder / CONFIG
    values: dict[str, dict[str, str | int]] = {
        "": {
            "landing": str(folder / "landing"),
            "docs": str(folder / "data-docs"),
            "streams": str(streams),
            "cache": str(folder / "cache"),
        },
        "kafka": {"bootstrap": bootstrap},
        "tables": {"uri": sqlite_address(folder / "catalog.db"), "warehouse": f"file://{folder / 'warehouse'}"},
        "spark": {"master": "local[2]", "java_home": str(java_home), **there},
        "airflow": {"keep_runs": KEEP_RUNS},
        "spark.conf": {json.dumps(name): value for name, value in spark_conf.items()},
    }
    lines = ["# Written by `wavestitch up` at each start."]
    for section, entries in values.items():
        lines += [f"\n[{section}]"] if section else []
        lines += [f"{key} = {json.dumps(value)}" for key, value in entries.items()]
    path.write_text("\n".join(lines) + "\n")
    return path
