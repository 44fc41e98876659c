"""The demo on what runs already, as in `docker/`: the same story and the same proof. Starts and stops nothing.

The settings are this process's own, as everywhere. Ends with 0 only if every promise held.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from wavestitch import terminal
from wavestitch.batch.deployment import Deployment
from wavestitch.contracts.errors import WavestitchError
from wavestitch.demo.telling import Stage, tell
from wavestitch.local.airflow_api import AirflowApi


def main(argv: Sequence[str] | None = None) -> int:
    """The exit code."""
    asked = _parser().parse_args(argv)
    began = time.monotonic()

    def say(text: str) -> None:
        terminal.err.print(f"[{time.monotonic() - began:6.1f} s] {text}", markup=False, highlight=False, soft_wrap=True)

    try:
        password = json.loads(asked.passwords.read_text())[asked.user]
        with AirflowApi.login(url=asked.airflow, user=asked.user, password=password) as api:
            report = tell(
                Stage(
                    deployment=Deployment(),
                    api=api,
                    examples=asked.examples,
                    plot=asked.report.with_suffix(".png"),
                    logs=asked.logs,
                    java_home=asked.java_home,
                    kafka_jars=asked.kafka_jars,
                ),
                say=say,
            )
    except WavestitchError as error:
        terminal.err.print(f"{error.kind}: {error.message}", style="red", markup=False)
        return 1
    report["seconds"] = round(time.monotonic() - began, 1)
    asked.report.write_text(json.dumps(report, indent=1, default=str))
    say(f"report {asked.report}")
    say("every promise held" if report["ok"] else f"FAILED: {'; '.join(report['broken'])}")
    return 0 if report["ok"] else 1


def _parser() -> argparse.ArgumentParser:
    home = Path("/opt/wavestitch")
    parser = argparse.ArgumentParser(prog="python -m wavestitch.demo.deployed", description=__doc__)
    parser.add_argument("--airflow", required=True, help="its address, e.g. http://airflow-api:8080")
    parser.add_argument("--user", default="admin")
    parser.add_argument("--passwords", required=True, type=Path, help="a JSON file, user to password")
    parser.add_argument("--report", type=Path, default=Path("/data/demo-report.json"))
    parser.add_argument("--examples", type=Path, default=home / "examples")
    parser.add_argument("--logs", type=Path, default=Path("/logs"))
    parser.add_argument("--java-home", type=Path, default=home / "java")
    parser.add_argument("--kafka-jars", type=Path, default=home / "kafka")
    return parser


if __name__ == "__main__":
    sys.exit(main())
