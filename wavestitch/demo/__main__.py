"""`make demo`: starts everything, carries real recordings through whole batches by Airflow, proves the result, stops.

Ends with 0 only if every promise held: each published sample equals its source, nothing is missing or there twice,
every audit identity balances, and the rewind published nothing again.
"""

from __future__ import annotations

import json
import shutil
import sys
import time

from spark_apps.server import ConnectServer
from spark_apps.start_archive import archived_start
from wavestitch import terminal
from wavestitch.batch.deployment import Deployment
from wavestitch.contracts.errors import WavestitchError
from wavestitch.demo.telling import Stage, tell
from wavestitch.local.folders import CACHE, ROOT, STATE
from wavestitch.local.java import find_java
from wavestitch.local.stack import Stack, start_stack, stop_stack
from wavestitch.settings import load_settings

FOLDER = STATE / "demo"
REPORT = STATE / "demo-report.json"
PLOT = STATE / "demo-ecg.png"


def main() -> int:
    """Run the demo; the exit code."""
    began = time.monotonic()

    def say(text: str) -> None:
        terminal.err.print(f"[{time.monotonic() - began:6.1f} s] {text}", markup=False, highlight=False, soft_wrap=True)

    stop_stack(say=lambda _: None, folder=FOLDER)
    shutil.rmtree(FOLDER, ignore_errors=True)
    try:
        java_home = find_java(CACHE)
        conf = archived_start(cache=CACHE, java_home=java_home, say=say)
        stack = start_stack(say=say, folder=FOLDER, spark_conf=conf, spark=ConnectServer(java_home, conf=conf))
        report = tell(stage_of(stack), say=say)
    except WavestitchError as error:
        terminal.err.print(f"{error.kind}: {error.message}", style="red", markup=False)
        return 1
    finally:
        stop_stack(say=say, folder=FOLDER)
    report["seconds"] = round(time.monotonic() - began, 1)
    REPORT.write_text(json.dumps(report, indent=1, default=str))
    say(f"report {REPORT.relative_to(ROOT)}, plot {PLOT.relative_to(ROOT)}")
    say("every promise held" if report["ok"] else f"FAILED: {'; '.join(report['broken'])}")
    return 0 if report["ok"] else 1


def stage_of(stack: Stack) -> Stage:
    """The local stack, to be told the story on."""
    return Stage(
        deployment=Deployment(load_settings({"WAVESTITCH_CONFIG": str(stack.config)})),
        api=stack.airflow.login(),
        examples=ROOT / "examples",
        plot=PLOT,
        logs=FOLDER / "airflow" / "logs",
        java_home=stack.java_home,
        kafka_jars=stack.kafka_jars,
    )


if __name__ == "__main__":
    sys.exit(main())
