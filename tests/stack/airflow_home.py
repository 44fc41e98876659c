"""An Airflow of its own for tests in this process: must be prepared before the first import of `airflow`.

Airflow reads its environment while it is imported, so that it can have one home a process; which streams its DAGs are
made for is read anew with each DagBag, from `WAVESTITCH_CONFIG`.
"""

from __future__ import annotations

import functools
import json
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
SPARK = json.dumps({"conn_type": "spark", "host": "local[2]"})
"""The connection to one in this machine."""


@functools.cache
def prepare_airflow() -> Path:
    """Set the environment up and return the home. Nothing but variables and an empty folder until Airflow is used."""
    if "airflow" in sys.modules:
        raise RuntimeError("airflow was imported before its home was prepared; import it inside a test or a fixture")
    home = Path(tempfile.mkdtemp(prefix="wavestitch-airflow-"))
    os.environ.update(
        {
            "AIRFLOW_HOME": str(home),
            "AIRFLOW__CORE__DAGS_FOLDER": str(ROOT / "dags"),
            "AIRFLOW__CORE__PLUGINS_FOLDER": str(ROOT / "plugins"),
            "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
            "AIRFLOW__CORE__UNIT_TEST_MODE": "True",
            "AIRFLOW__API_AUTH__JWT_SECRET": "not a secret, but as long as a secret has to be: sixty-four bytes",
            "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_USERS": "admin:admin,viewer:viewer",
            "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": f"sqlite:///{home}/airflow.db",
            "AIRFLOW__LOGGING__LOGGING_LEVEL": "WARNING",
            "AIRFLOW__LOGGING__BASE_LOG_FOLDER": str(home / "logs"),
            "AIRFLOW_CONN_SPARK_DEFAULT": SPARK,
        }
    )
    return home


@functools.cache
def make_database() -> None:
    """Airflow's own tables, once a process."""
    prepare_airflow()
    from airflow.utils.db import initdb  # noqa: PLC0415

    initdb()


def write_settings(
    folder: Path, *, streams: Path, bootstrap: str = "127.0.0.1:1", java_home: Path | None = None
) -> Path:
    """A `wavestitch.toml` whose data all lie in `folder`."""
    java = f"java_home = {json.dumps(str(java_home))}\n" if java_home else ""
    path = folder / "wavestitch.toml"
    path.write_text(
        f"landing = {json.dumps(str(folder / 'landing'))}\n"
        f"cache = {json.dumps(str(folder / 'cache'))}\n"
        f"docs = {json.dumps(str(folder / 'docs'))}\n"
        f"streams = {json.dumps(str(streams))}\n"
        f"[kafka]\nbootstrap = {json.dumps(bootstrap)}\n"
        f"[tables]\nuri = {json.dumps(f'sqlite:///{folder}/catalog.db')}\n"
        f"warehouse = {json.dumps(f'file://{folder}/warehouse')}\n"
        f"[spark]\n{java}"
    )
    return path


def load_dags() -> Any:
    """The project's DAGs, as Airflow collects them from the folder."""
    prepare_airflow()
    from airflow.dag_processing.dagbag import DagBag  # noqa: PLC0415

    return DagBag(dag_folder=str(ROOT / "dags"))
