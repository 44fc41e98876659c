"""Waveforms of 1,024 to 4,096 chunks of 64 KiB: is stitching linear in them, what does a worker need, and is one over
the limit refused by the index, before Spark is asked for anything?
"""

from __future__ import annotations

import json

from benchmarks.children import Child, Json, race, start
from benchmarks.figures import Run, ratio, summarise
from benchmarks.options import Options
from benchmarks.test_bed import Say, TestBed, Topic
from benchmarks.whole_runs import fresh_stream, job_of, steps_of, whole_run

_MIB = (64, 128, 256)
_LIMIT_MIB = 255


def measure(bed: TestBed, options: Options, say: Say) -> Json:
    topics = {mib: bed.topic(mib=mib, layout="sticky", partitions=1, waveform_kib=mib << 10, say=say) for mib in _MIB}
    runs: dict[int, list[Run]] = {mib: [] for mib in _MIB}
    workers: dict[int, float] = {}
    with start("benchmarks.contenders.whole", folder=bed.folder, env={"JAVA_HOME": str(bed.java_home)}) as child:
        for round_ in range(options.rounds + 1):
            for mib, topic in topics.items():
                run = whole_run(bed, child, topic)
                spark = steps_of(run)["Spark"]
                say(f"{mib} MiB: stitched in {spark.wall:.2f} s, {spark.cpu:.2f} CPU s")
                if round_ == 0:
                    # The smallest first: a worker that is used again keeps memory of what it did before.
                    workers[mib] = run.peak_mib.get("spark worker", 0.0)
                else:
                    runs[mib].append(Run(spark, run.size))
        refused = _over_the_limit(bed, child, topics[max(_MIB)])
        say(f"over the limit: {refused}")
    rows = {mib: summarise(mine) for mib, mine in runs.items()}
    per_chunk = {mib: row["wall_s"] / (mib * 16) for mib, row in rows.items()}
    head: list[object] = [
        "one waveform of",
        "chunks",
        "stitched in s",
        "CPU s",
        "ms per chunk",
        "Spark worker private MiB",
    ]
    table: list[list[object]] = [head]
    for mib, row in rows.items():
        table.append([f"{mib} MiB", mib * 16, row["wall_s"], row["cpu_s"], per_chunk[mib] * 1000, round(workers[mib])])
    table.append([f"256 MiB where {_LIMIT_MIB} are allowed", 4096, refused["what"], "", "", ""])
    return {
        "rows": {str(mib): row for mib, row in rows.items()},
        "worker_private_mib": {str(mib): round(peak, 1) for mib, peak in workers.items()},
        "over_the_limit": refused,
        "time_per_chunk_largest_of_smallest": ratio(per_chunk[max(_MIB)], per_chunk[min(_MIB)]),
        "table": table,
    }


def _over_the_limit(bed: TestBed, child: Child, topic: Topic) -> Json:
    """A batch with a waveform that is too large: it is held, and no stitching task is made."""
    stream = fresh_stream(bed, child, topic)
    bed.declare(stream, topic.name, limits=f", max_waveform_bytes: {_LIMIT_MIB} MiB")
    try:
        run = race([child], [job_of(bed, stream)], size=topic.bytes)
        work = bed.deployment().folder(stream, run.facts["plan_id"]).path
        jobs = [json.loads(p.read_text()) for p in work.glob("job-*.json")]
        tasks = sum(len(j["assignments"]) for j in jobs)
        held = run.facts["reasons"].get("too_large", 0)
        if tasks or run.facts["waveforms"]["quarantined"] != 1 or held != topic.records:
            raise RuntimeError(f"{tasks} tasks were made, {held} of {topic.records} chunks held: {run.facts}")
        what = f"held as too_large, {tasks} stitching tasks"
        return {"what": what, "tasks": tasks, "held_chunks": held}
    finally:
        bed.forget(stream)
