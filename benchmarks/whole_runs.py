"""DeploymentRig batches of ours over a topic, each by a stream of its own whose first batch has been made before."""

from __future__ import annotations

import uuid
from pathlib import Path
from typing import Any

from benchmarks.children import Child, race
from benchmarks.figures import Cost, Run
from benchmarks.test_bed import TestBed, Topic, check_samples


def fresh_stream(bed: TestBed, child: Child, topic: Topic, *, more: str = "") -> str:
    """A stream that stands right before what is measured: its first batch has published the topic's prelude."""
    stream = f"b{uuid.uuid4().hex[:10]}"
    bed.declare(stream, topic.name, most=topic.prelude, more=more)
    child.ask(job_of(bed, stream))
    bed.declare(stream, topic.name, more=more)
    return stream


def job_of(bed: TestBed, stream: str, *, spark: str = "warm") -> dict[str, Any]:
    return {"config": bed.config(), "stream": stream, "spark": spark}


def whole_run(
    bed: TestBed,
    child: Child,
    topic: Topic,
    *,
    spark: str = "warm",
    most: int | None = None,
    more: str = "",
    check: bool = True,
) -> Run:
    """One batch from plan to moved offsets. `most`: offsets of it, else all; only all of them can be checked."""
    stream = fresh_stream(bed, child, topic, more=more)
    size = topic.bytes
    if most is not None:
        bed.declare(stream, topic.name, most=most, more=more)
        size = topic.bytes * most // topic.records
    try:
        run = race([child], [job_of(bed, stream, spark=spark)], size=size)
        found = run.facts["waveforms"]
        expected = topic.waveforms * size // topic.bytes
        if found != {"published": expected, "open": 0, "quarantined": 0}:
            raise RuntimeError(f"{found} waveforms, expected {expected} published; reasons {run.facts['reasons']}")
        if check and most is None:
            check_samples(published_files(bed, stream, run.facts["plan_id"]), topic.digests)
        return run
    finally:
        bed.forget(stream)


def published_files(bed: TestBed, stream: str, plan_id: str) -> list[Path]:
    """The data files that a batch added."""
    folder = bed.deployment().tables(stream).data_folder()
    return sorted(folder.rglob(f"{plan_id[:16]}-*.parquet"))


def steps_of(run: Run) -> dict[str, Cost]:
    return {name: Cost(*spent) for name, spent in run.facts["steps"].items()}
