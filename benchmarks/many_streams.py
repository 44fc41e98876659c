"""What the DAGs of many streams cost Airflow's DAG processor: `python -m benchmarks.many_streams`, half a minute.

Each file of `dags/` is parsed as the processor does it: by its own function, in a process forked for it, serialised.
What the processor does with the result (one comparison a DAG with its database) is not in it. `--into FILE` writes
the figures down, of as many streams as `--streams` says.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from benchmarks.results_file import machine, write_figures

DAGS = Path(__file__).resolve().parents[1] / "dags"
INTERVAL_S = 30
"""Airflow's own `[dag_processor] min_file_process_interval`; docker/config/airflow names the same."""


def main() -> None:
    ask = argparse.ArgumentParser(description=__doc__)
    ask.add_argument("--streams", type=int, default=200)
    ask.add_argument("--rounds", type=int, default=3)
    ask.add_argument("--into", type=Path)
    given = ask.parse_args()
    with tempfile.TemporaryDirectory(prefix="wavestitch-streams-") as folder:
        _declare(Path(folder), given.streams)
        found = summary(given.streams, [_parse_all(Path(folder)) for _ in range(given.rounds)])
    found |= {"when": datetime.now(UTC).isoformat(timespec="seconds"), "machine": machine()}
    print(json.dumps(found, indent=1))
    if given.into:
        write_figures(given.into, found)


def summary(streams: int, rounds: list[dict[str, dict[str, float]]]) -> dict[str, Any]:
    """Of each file the round that took least CPU: what else the machine does only adds to it. Seconds."""
    files = {name: min((r[name] for r in rounds), key=lambda cost: cost["cpu_s"]) for name in rounds[0]}
    cpu = sum(cost["cpu_s"] for cost in files.values())
    return {
        "streams": streams,
        "dags": int(sum(cost["dags"] for cost in files.values())),
        "files": files,
        "cpu_s": round(cpu, 3),
        "slowest_file_s": max(cost["wall_s"] for cost in files.values()),
        "interval_s": INTERVAL_S,
        "share_of_a_core": round(cpu / INTERVAL_S, 3),
    }


def _declare(folder: Path, streams: int) -> None:
    (folder / "streams").mkdir()
    for n in range(streams):
        text = f"topic: s{n:03d}\ngroup: s{n:03d}\nschedule: '*/5 * * * *'\n"
        (folder / "streams" / f"s{n:03d}.yaml").write_text(text)
    config = folder / "wavestitch.toml"
    config.write_text(
        f"landing = {json.dumps(str(folder / 'landing'))}\nstreams = {json.dumps(str(folder / 'streams'))}\n"
        f"cache = {json.dumps(str(folder / 'cache'))}\ndocs = {json.dumps(str(folder / 'docs'))}\n"
        f"most_streams = {streams}\n[kafka]\nbootstrap = '127.0.0.1:9'\n"
        f"[tables]\nuri = {json.dumps(f'sqlite:///{folder}/catalog.db')}\n"
        f"warehouse = {json.dumps(f'file://{folder}/warehouse')}\n"
    )
    os.environ.update(
        WAVESTITCH_CONFIG=str(config),
        AIRFLOW_HOME=str(folder / "airflow"),
        AIRFLOW__CORE__LOAD_EXAMPLES="False",
        AIRFLOW__DATABASE__SQL_ALCHEMY_CONN=f"sqlite:///{folder}/airflow.db",
        AIRFLOW__LOGGING__LOGGING_LEVEL="ERROR",
    )


def _parse_all(folder: Path) -> dict[str, dict[str, float]]:
    from airflow.dag_processing import processor  # noqa: PLC0415, F401 - loaded before the fork, as the processor does

    return {path.name: _parsed(path, folder / "parsed.json") for path in sorted(DAGS.glob("*.py"))}


def _parsed(path: Path, told: Path) -> dict[str, float]:
    """One file in a process of its own. Raises `RuntimeError` where it is not parsed."""
    began = time.perf_counter()
    child = os.fork()
    if child == 0:
        status = 1
        try:
            told.write_text(json.dumps(_parse(path)))
            status = 0
        finally:
            os._exit(status)
    _, ended, used = os.wait4(child, 0)
    wall = time.perf_counter() - began
    if ended:
        raise RuntimeError(f"{path.name} was not parsed; what it says is above")
    return {
        "dags": json.loads(told.read_text()),
        "wall_s": round(wall, 3),
        "cpu_s": round(used.ru_utime + used.ru_stime, 3),
    }


def _parse(path: Path) -> int:
    """How many DAGs came of it."""
    from airflow.dag_processing.processor import DagFileParseRequest, _parse_file  # noqa: PLC0415

    request = DagFileParseRequest(
        file=str(path), bundle_path=path.parent, bundle_name="benchmark", callback_requests=[]
    )
    result = _parse_file(request, logging.getLogger(__name__))
    if result is None or result.import_errors:
        raise RuntimeError(f"{path.name}: {result and result.import_errors}")
    return len(result.serialized_dags)


if __name__ == "__main__":
    main()
