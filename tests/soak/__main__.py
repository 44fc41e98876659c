"""`python -m tests.soak --hours 1`: the platform under everything at once, for hours; ends by itself, with a verdict.

A real broker of its own in a temporary folder, real tables, batches in this process and now and then through Spark,
backfills, rewinds, killed batches, damaged and late chunks, maintenance. Exit code 0 only if nothing was lost,
published twice, altered or invented, nothing grows without bound, and nothing ended as it should not.
"""

from __future__ import annotations

import argparse
import random
import shutil
import sys
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

from tests.conftest import CACHE, ROOT, _create_topic
from tests.deployment_rig import STREAM, make_deployment_rig
from tests.soak.account import keep_soak
from tests.soak.endurance import Endurance
from tests.soak.report import markdown, trends_json, write_report
from tests.soak.verdict import judge_data, judge_growth
from wavestitch.local.broker import start_broker, stop_broker
from wavestitch.local.jars import KAFKA, cached_jars
from wavestitch.local.java import find_java

PARTITIONS = 3


def main() -> int:
    ask = argparse.ArgumentParser(prog="python -m tests.soak", description=__doc__.splitlines()[0])
    ask.add_argument("--hours", type=float, default=1.0)
    ask.add_argument("--seed", type=int, default=None, help="of everything that is drawn; printed")
    ask.add_argument("--sample-seconds", type=float, default=None, help="60, or less where the soak is short")
    ask.add_argument("--spark-rounds", type=int, default=40, help="each so many rounds a batch goes through Spark")
    ask.add_argument("--report", type=Path, default=ROOT / ".wavestitch", help="folder of the report")
    options = ask.parse_args()
    warnings.simplefilter("error")
    seed = random.SystemRandom().getrandbits(32) if options.seed is None else options.seed
    say(f"soak of {options.hours:g} h, seed {seed}")
    folder = Path(tempfile.mkdtemp(prefix="wavestitch-soak-"))
    try:
        report = soak(folder, options, seed)
    finally:
        stop_broker(folder / "deployment" / "kafka")
        shutil.rmtree(folder, ignore_errors=True)
    say(markdown(report))
    return 0 if report["passed"] else 1


def soak(folder: Path, options: argparse.Namespace, seed: int) -> dict[str, Any]:
    java_home = find_java(CACHE)
    jars = cached_jars(KAFKA, cache_dir=CACHE, java_home=java_home, say=say)
    broker = start_broker(folder=folder / "deployment" / "kafka", java_home=java_home, jars=jars, say=say)
    _create_topic(broker.bootstrap, "soak", PARTITIONS, {})
    whole = make_deployment_rig(folder / "deployment", bootstrap=broker.bootstrap, topic="soak", java_home=java_home)
    seconds = options.hours * 3600
    run = Endurance(
        whole=whole,
        broker_pid=broker.pid,
        seconds=seconds,
        sample_seconds=options.sample_seconds or min(60.0, seconds / 40),
        spark_rounds=options.spark_rounds,
        rng=random.Random(seed),
        say=say,
    )
    began = time.monotonic()
    run.run()
    rows = [b for b in whole.deployment.tables(STREAM).batches() if b.partitions]
    data = judge_data(run.production.truth, run.published(), sum(not b.identity_balances for b in rows))
    problems = list(run.problems)
    try:
        trends = judge_growth(run.samples)
    except ValueError as error:
        trends, problems = [], [*problems, str(error)]
    problems += [f"{t.figure} grows beyond its limit" for t in trends if not t.bounded]
    report = {
        "passed": not problems and not any(data.values()),
        "hours": (time.monotonic() - began) / 3600,
        "seed": seed,
        "waveforms": len(run.production.truth),
        "sent_bytes": run.production.bytes,
        "events": {**run.events, "late chunks left": len(run.production.withheld)},
        "disturbed": {"duplicates": run.production.duplicates, "corrupt": run.production.corrupt},
        "data": data,
        "trends": trends_json(trends),
        "problems": problems,
    }
    say(f"report: {write_report(options.report, report, run.samples)}")
    keep_soak(report)
    return report


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    raise SystemExit(main())
