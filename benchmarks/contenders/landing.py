"""Ours, the reading half: the units of a plan, one process each, read and landed durably."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from benchmarks.children import serve
from consumers.unit_reader import read_unit
from wavestitch.contracts.plan import plan_from_json
from wavestitch.kafka.client_settings import KafkaSettings


def land(job: dict[str, Any]) -> dict[str, Any]:
    folder = Path(job["folder"])
    receipt = read_unit(
        plan=plan_from_json(job["plan"]), unit=job["unit"], kafka=KafkaSettings(job["bootstrap"]), folder=folder
    )
    return {
        "bytes": sum(s.payload_bytes for s in receipt.slices),
        "records": sum(s.records for s in receipt.slices),
        "files": [str(folder / s.file) for s in receipt.slices if s.file is not None],
    }


if __name__ == "__main__":
    serve(land)
