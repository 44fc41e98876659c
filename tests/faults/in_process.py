"""A whole batch in this process: the platform's own steps, read and stitched without child processes and without Spark.

Kafka, Iceberg and the gate are the real ones. Spark only deals out the names of assignments; its task is called here
as Spark calls it. What makes hundreds of faults affordable, and lets a fault strike at an exact record.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from consumers.unit_reader import read_unit
from spark_apps.in_process import stitch_here
from wavestitch.batch.deployment import Deployment
from wavestitch.batch.deployment_edges import DeploymentEdges
from wavestitch.batch.run import RunOptions, Silent, done_to_json, run_batch
from wavestitch.contracts.chunk_proof import ChunkProof
from wavestitch.contracts.payload_apart import PayloadPlace
from wavestitch.contracts.plan import Plan
from wavestitch.contracts.receipt import Receipt
from wavestitch.kafka.client_settings import KafkaSettings

AtRecord = Callable[[int], None]
"""Called while reading with the records that the batch has read so far."""


def run_here(
    deployment: Deployment, stream: str, options: RunOptions, *, at_record: AtRecord = lambda _: None, read: Any = None
) -> dict[str, Any]:
    """One batch; as `run_batch`. `read` replaces the reading in this process."""
    read = read or partial(read_here, at_record=at_record)
    edges = DeploymentEdges(deployment, stream, read=read, submit=stitch_here)
    return done_to_json(run_batch(edges, options, watcher=Silent()))


def read_here(
    *,
    plan: Plan,
    kafka: KafkaSettings,
    folder: Path,
    units: Sequence[int],
    progress: Callable[[int, int], None],
    proof: ChunkProof,
    payload: PayloadPlace | None = None,
    at_record: AtRecord = lambda _: None,
) -> list[Receipt]:
    """These units, one after another, in this process."""
    receipts: list[Receipt] = []
    for unit in units:
        before = sum(s.records for r in receipts for s in r.slices)

        def tell(records: int, size: int, before: int = before) -> None:
            progress(before + records, size)
            at_record(before + records)

        # A clock that jumps: nothing of the progress is left out because it comes too soon after the last.
        ticks = itertools.count()
        receipts.append(
            read_unit(
                plan=plan,
                unit=unit,
                kafka=kafka,
                folder=folder,
                progress=tell,
                proof=proof,
                payload=payload,
                clock=lambda t=ticks: float(next(t)),  # type: ignore[misc]
            )
        )
    return receipts
