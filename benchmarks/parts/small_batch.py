"""A batch of 1 MB in a fresh process, from its start to the moved offsets, part by part, beside an empty Spark app."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from benchmarks.children import ROOT, Json
from benchmarks.figures import Cost, Run, median_costs, ratio, summarise
from benchmarks.meter import Meter
from benchmarks.options import Options
from benchmarks.test_bed import Say, TestBed, make_topic, send, waveforms
from spark_apps.submit import spark_conf, spark_environment, spark_properties

EMPTY_APP = Path(__file__).resolve().parents[1] / "contenders" / "empty_app.py"
PARTITIONS = 4
BYTES = 1_000_000
EMPTY = "an empty Spark app"
_WAVEFORMS = 4
_DEADLINE_S = 300


def measure(bed: TestBed, options: Options, say: Say) -> Json:
    topic = make_topic(bed, partitions=PARTITIONS, prefix="small")
    bed.declare("small", topic)
    runs: dict[str, list[Run]] = {}
    steps = []
    for round_ in range(options.rounds + 1):
        send_small(bed, topic, round_)
        job = json.dumps({"config": bed.config(), "stream": "small"})
        run = run_process([sys.executable, "-m", "benchmarks.contenders.cold_run", job])
        answer = json.loads(str(run.facts["out"]).splitlines()[-1])
        if answer["waveforms"]["published"] != _WAVEFORMS:
            raise RuntimeError(f"{_WAVEFORMS} waveforms were sent, and this came of them: {answer}")
        found = {name: Cost(*spent) for name, spent in answer["steps"].items()}
        rest = run.cost - Cost(*(sum(getattr(c, k) for n, c in found.items() if n != "Spark") for k in ("wall", "cpu")))
        rows = {"a batch of 1 MB": run, **(empty_apps(bed) if round_ else {})}
        say("; ".join(f"{name} {r.cost.wall:.1f} s" for name, r in rows.items()))
        if round_ > 0:  # the first batch of the stream makes its tables
            steps.append({**found, "interpreter and imports": rest})
            for name, mine in rows.items():
                runs.setdefault(name, []).append(mine)
    found_rows = {name: summarise(mine) for name, mine in runs.items()}
    parts = median_costs(steps)
    walls = {name: row["wall_s"] for name, row in found_rows.items()}
    head = ["part", "wall s", "CPU s"]
    lines = [
        [f"· {n}" if n != "Spark" else "· of reassemble: spark-submit", p["wall_s"], p["cpu_s"]]
        for n, p in parts.items()
    ]
    totals = [[name, row["wall_s"], row["cpu_s"]] for name, row in found_rows.items()]
    return {
        "rows": found_rows,
        "steps": parts,
        "of_spark_floor": ratio(walls["a batch of 1 MB"], walls[EMPTY]),
        "of_spark_floor_same_settings": ratio(walls["a batch of 1 MB"], walls["an empty Spark app, our settings"]),
        "table": [head, totals[0], *lines, *totals[1:]],
    }


def send_small(bed: TestBed, topic: str, round_: int) -> None:
    part = waveforms(_WAVEFORMS, size=BYTES // _WAVEFORMS, prefix=f"small-{round_}", seed=round_)
    send(bed, topic, [part], chunk=64 << 10)


def empty_apps(bed: TestBed) -> dict[str, Run]:
    ours = spark_conf("local[2]", {})
    return {
        EMPTY: submit_empty(bed, {}, []),
        "an empty Spark app, our settings": submit_empty(bed, ours, []),
        "a Spark app of one Python task, our settings": submit_empty(bed, ours, ["--python"]),
    }


def submit_empty(bed: TestBed, conf: Mapping[str, str], arguments: Sequence[str]) -> Run:
    env = spark_environment(bed.java_home)
    with tempfile.TemporaryDirectory(dir=bed.folder) as private:
        properties = Path(private) / "spark.properties"
        properties.write_text(spark_properties(conf), encoding="latin-1")
        argv = [f"{env['SPARK_HOME']}/bin/spark-submit", "--master", "local[2]", "--properties-file", str(properties)]
        return run_process([*argv, str(EMPTY_APP), *arguments], env=env)


def run_process(argv: Sequence[str], *, env: Mapping[str, str] | None = None) -> Run:
    """From its start to its end; raises `RuntimeError` with its last words where it fails."""
    given = {**(os.environ if env is None else env), "PYTHONPATH": str(ROOT)}
    with Meter([os.getpid()]) as meter:
        done = subprocess.run(
            list(argv), cwd=ROOT, env=given, capture_output=True, text=True, timeout=_DEADLINE_S, check=False
        )
    if done.returncode:
        raise RuntimeError(f"{argv[-1][:80]} ended with exit code {done.returncode}: {done.stderr[-800:]}")
    return Run(meter.cost, BYTES, meter.peak_mib, {"out": done.stdout})
