"""Jobs for whoever reads: the measured ranges of a topic, dealt out to processes."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from benchmarks.test_bed import TestBed, Topic
from wavestitch.batch.plan import NothingToDo, Planning, PlanRequest, plan_batch
from wavestitch.batch.walk import Walk
from wavestitch.contracts.offset_range import OffsetRange
from wavestitch.contracts.plan import Plan, PlanKind
from wavestitch.contracts.quantities import Offset, Partition, epoch_ms


def raw_jobs(bed: TestBed, topic: Topic, processes: int) -> list[dict[str, Any]]:
    ranges = topic.ranges()
    return [{"bootstrap": bed.bootstrap, "topic": topic.name, "ranges": ranges[n::processes]} for n in range(processes)]


def landing_jobs(bed: TestBed, topic: Topic, processes: int, folder: Path) -> list[dict[str, Any]]:
    plan = plan_of(bed, topic, processes=processes, ranges=topic.ranges())
    if len(plan.units) != processes:
        raise RuntimeError(f"{len(plan.units)} units were planned for {processes} processes")
    return [
        {"bootstrap": bed.bootstrap, "plan": plan.to_json(), "unit": unit, "folder": str(folder)}
        for unit in range(processes)
    ]


def plan_of(bed: TestBed, topic: Topic, *, processes: int, ranges: list[list[int]]) -> Plan:
    """A plan over these ranges, as planning makes it, without touching anything."""
    name = f"read{processes}"
    bed.declare(name, topic.name, more=f"reading: {{workers: {processes}}}\n")
    deployment = bed.deployment()
    stream = deployment.stream(name)
    plan = plan_batch(
        stream,
        PlanRequest(
            kind=PlanKind.MANUAL, ranges=tuple(OffsetRange(Partition(p), Offset(a), Offset(b)) for p, a, b in ranges)
        ),
        walk=Walk(stream, deployment.log, deployment.tables(name), apply=False),
        by=Planning(epoch_ms(time.time_ns()), "", "benchmarks"),
    )
    if isinstance(plan, NothingToDo):
        raise RuntimeError(plan.why)
    return plan
