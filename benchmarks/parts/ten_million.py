"""One batch of ten million chunks of 512 bytes, all plain; and one of fewer of which each came twice, so that none is.

Beside broker and Spark, each in a process of its own (`benchmarks.small_records`): what the one process that carries a
batch takes for each chunk, memory first.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys

from benchmarks.children import ROOT, Json
from benchmarks.options import Options
from benchmarks.test_bed import Say, TestBed

_CHUNK = 512
_LANDING_AND_TABLE = 3
_DEADLINE_S = 3600
_READ, _STITCH = "land", "stitch"


def measure(bed: TestBed, options: Options, say: Say) -> Json:
    bed.need(options.many_chunks * _CHUNK * _LANDING_AND_TABLE, "ten-million")
    plain = _batch(bed, options.many_chunks, ())
    say(f"{plain['records']:,} plain chunks: {plain['wall_s']:.0f} s, {plain['bytes_a_chunk']} B a chunk")
    odd = _batch(bed, options.odd_chunks, ("--again",))
    say(f"{odd['records']:,} odd chunks: {odd['wall_s']:.0f} s, {odd['bytes_a_chunk']} B a chunk")
    head = ["batch", "chunks", "wall s", "CPU s", "read", "stitch", "the rest", "index, B a chunk", "process, MiB"]
    return {
        "plain": plain,
        "odd": odd,
        "table": [head, _row("each chunk once", plain), _row("each chunk twice", odd)],
    }


def _batch(bed: TestBed, records: int, more: tuple[str, ...]) -> Json:
    into = bed.folder / "small-records.json"
    argv = [sys.executable, "-m", "benchmarks.small_records", "--records", str(records), "--bytes", str(_CHUNK)]
    done = subprocess.run(
        [*argv, "--folder", str(bed.folder), "--into", str(into), *more],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=_DEADLINE_S,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(f"{records} chunks: exit code {done.returncode}: {done.stderr[-800:]}")
    found = json.loads(into.read_text())
    steps = found["steps"]
    rest = [cost["cpu_s"] for name, cost in steps.items() if name not in (_READ, _STITCH)]
    return {
        "records": found["records"],
        "wall_s": round(sum(cost["wall_s"] for cost in steps.values()), 2),
        "cpu_s": round(sum(cost["cpu_s"] for cost in steps.values()), 2),
        "read_cpu_s": steps[_READ]["cpu_s"],
        "stitch_cpu_s": steps[_STITCH]["cpu_s"],
        "rest_cpu_s": round(sum(rest), 2),
        "bytes_a_chunk": found["bytes_a_chunk"]["index and assembly"],
        "peak_mib": round(found["peak_mib"]),
    }


def _row(name: str, found: Json) -> list[object]:
    keys = ("records", "wall_s", "cpu_s", "read_cpu_s", "stitch_cpu_s", "rest_cpu_s", "bytes_a_chunk", "peak_mib")
    return [name, *(found[key] for key in keys)]
