"""A reader process that kills itself at a record: `broker_faults_killed_reader.py RECORDS`, in place of the product's.

The point is outside the product: where it tells its progress, and right before it would tell its receipt.
"""

from __future__ import annotations

import itertools
import os
import signal
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from consumers import unit_process, unit_processes
from consumers.unit_reader import read_units
from tests.faults.narrow_fetches import narrow_fetches
from wavestitch.contracts.chunk_proof import ChunkProof
from wavestitch.contracts.payload_apart import PayloadPlace
from wavestitch.contracts.plan import Plan
from wavestitch.contracts.receipt import Receipt
from wavestitch.kafka.client_settings import KafkaSettings


def read_in_children(
    *,
    plan: Plan,
    kafka: KafkaSettings,
    folder: Path,
    units: Sequence[int],
    progress: Callable[[int, int], None],
    proof: ChunkProof,
    payload: PayloadPlace | None,
    kill_at: int,
) -> list[Receipt]:
    """As the product reads, in child processes; each kills itself when it has read `kill_at` records of its unit."""
    before = unit_processes._ARGV
    unit_processes._ARGV = (sys.executable, "-m", __name__, str(kill_at))  # type: ignore[assignment]
    try:
        return read_units(
            plan=plan, kafka=kafka, folder=folder, units=units, progress=progress, proof=proof, payload=payload
        )
    finally:
        unit_processes._ARGV = before


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def main(kill_at: int) -> None:
    read_unit = unit_process.read_unit
    calls = itertools.count()

    def killed(*, progress: Callable[[int, int], None], **job: Any) -> Receipt:
        def tell(records: int, size: int) -> None:
            progress(records, size)
            if records >= kill_at:
                die()

        receipt = read_unit(progress=tell, clock=lambda: float(next(calls)), **job)
        die()
        return receipt

    unit_process.read_unit = killed  # type: ignore[assignment]
    with narrow_fetches():
        sys.exit(unit_process.main())


if __name__ == "__main__":
    main(int(sys.argv[1]))
