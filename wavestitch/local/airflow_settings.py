"""What the local Airflow is told: the environment it is started with.

Decides every setting that differs from Airflow's own. A pure function of its arguments: it neither reads nor writes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from wavestitch.local.loopback_port import LOOPBACK

# One user for each role, named after it.
USERS = ("admin", "op", "user", "viewer")

RUNS_LOOKED_AT = 500
"""More than are under way at once: of each stream an ingest, and what was asked for."""
LOCK_SECONDS = 120
"""So long may each of Airflow's processes wait for another one to be done with its file."""
# Ours, or nobody's: what a person's shell says about another Airflow must not reach this one.
_FOREIGN_PREFIX = "AIRFLOW_"
# Where the first is set, every command of Airflow's takes two seconds longer. The others would change what is imported.
_FOREIGN_NAMES = frozenset({"PYTHONDONTWRITEBYTECODE", "PYTHONPATH", "PYTHONHOME", "PYTEST_CURRENT_TEST"})


@dataclass(frozen=True, slots=True)
class AirflowFolders:
    """Where the local Airflow's parts are. `home` holds its database, logs and passwords; `commands` goes on PATH."""

    home: Path
    commands: Path
    environment_bin: Path
    dags: Path
    plugins: Path
    passwords: Path


def airflow_environment(
    *, inherited: Mapping[str, str], folders: AirflowFolders, port: int, extra: Mapping[str, str]
) -> dict[str, str]:
    """The environment of all of Airflow's processes and of the tasks. `extra` is laid over everything else."""
    kept = {
        name: value
        for name, value in inherited.items()
        if not name.startswith(_FOREIGN_PREFIX) and name not in _FOREIGN_NAMES
    }
    url = f"http://{LOOPBACK}:{port}"
    return {
        **kept,
        **_reach_loopback_directly(inherited),
        "PATH": f"{folders.commands}:{folders.environment_bin}:{inherited.get('PATH', '')}",
        "NO_COLOR": "1",
        "AIRFLOW_HOME": str(folders.home),
        # All of Airflow's processes write to one SQLite file. On a busy machine one of them waits longer than the five
        # seconds that are allowed by default, and the scheduler dies of it: whatever was queued stays so for ever.
        "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": f"sqlite:///{folders.home / 'airflow.db'}?timeout={LOCK_SECONDS}",
        "AIRFLOW__CORE__DAGS_FOLDER": str(folders.dags),
        "AIRFLOW__CORE__PLUGINS_FOLDER": str(folders.plugins),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "AIRFLOW__CORE__DAGS_ARE_PAUSED_AT_CREATION": "False",
        "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_USERS": ",".join(f"{user}:{user}" for user in USERS),
        "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_PASSWORDS_FILE": str(folders.passwords),
        "AIRFLOW__CORE__EXECUTION_API_SERVER_URL": f"{url}/execution/",
        "AIRFLOW__API__HOST": LOOPBACK,
        "AIRFLOW__API__PORT": str(port),
        "AIRFLOW__API__BASE_URL": url,
        "AIRFLOW__API__WORKERS": "1",
        # By default 32 idle workers are forked, and a step waits a second for the one before it to be noticed.
        "AIRFLOW__CORE__PARALLELISM": "8",
        "AIRFLOW__SCHEDULER__SCHEDULER_IDLE_SLEEP_TIME": "0.1",
        # What supervises a task sees its files close, perhaps a moment before its end, and looks again after so long:
        # by default five seconds, which each step may then take.
        "AIRFLOW__WORKERS__MIN_HEARTBEAT_INTERVAL": "1",
        # By default 20 runs are looked at in a turn, backfills behind all others: while so many ingests are under way,
        # no task of a backfill ever begins.
        "AIRFLOW__SCHEDULER__MAX_DAGRUNS_PER_LOOP_TO_SCHEDULE": str(RUNS_LOOKED_AT),
        # By default a changed DAG file is seen after minutes. One that is as it was is read anew for what streams say:
        # eight files each five seconds would take a processor.
        "AIRFLOW__DAG_PROCESSOR__REFRESH_INTERVAL": "5",
        "AIRFLOW__DAG_PROCESSOR__MIN_FILE_PROCESS_INTERVAL": "30",
        "AIRFLOW__CORE__MIN_SERIALIZED_DAG_UPDATE_INTERVAL": "1",
        "AIRFLOW__USAGE_DATA_COLLECTION__ENABLED": "False",
        **extra,
    }


def _reach_loopback_directly(inherited: Mapping[str, str]) -> dict[str, str]:
    """Tasks talk to the API server over HTTP: a company's proxy must not get in between."""
    given = inherited.get("NO_PROXY") or inherited.get("no_proxy") or ""
    names = ",".join(name for name in (given, LOOPBACK, "localhost") if name)
    return {"NO_PROXY": names, "no_proxy": names}
