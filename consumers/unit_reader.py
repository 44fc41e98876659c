"""A unit of work: the slices that one consumer run reads one after another, and the receipt for them.

`read_unit` reads in this process, `read_units` several units side by side in processes of their own. Progress is told
at most about ten times a second.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path

from consumers.byte_budget import ByteBudget, budget_of
from consumers.failed_reading import check_topic
from consumers.log_view import KafkaLog
from consumers.range_scan import Source
from consumers.record_sink import NeedsCare
from consumers.slice_reader import read_slice
from consumers.unit_processes import UnitProcesses
from wavestitch.contracts.batch_size import worth_starting
from wavestitch.contracts.chunk_proof import ChunkProof
from wavestitch.contracts.errors import BadInput
from wavestitch.contracts.id_partitions import IdBinding
from wavestitch.contracts.offset_range import OffsetRange
from wavestitch.contracts.payload_apart import PayloadPlace
from wavestitch.contracts.plan import Plan
from wavestitch.contracts.quantities import LeaderEpoch
from wavestitch.contracts.receipt import Receipt
from wavestitch.kafka.client_settings import KafkaSettings
from wavestitch.modes import make_folder
from wavestitch.payload_store import PayloadStore
from wavestitch.secret_reference import proof_of
from wavestitch.write_once import disk_errors, write_digested

Progress = Callable[[int, int], None]
"""Called with the records and the payload bytes that were read so far."""
_PROGRESS_SECONDS = 0.1
_SMALL_BYTES = 8 << 10
"""Of a mean record: what is smaller costs steps, and is read in columns, from raw batches; larger ones cost bytes."""
_AHEAD_BYTES = 64 << 20
"""More than the client fetches of what it has still to hand out: its queue, and a fetch that is on its way."""


class ProgressMeter:
    """Sums up and tells, not too often."""

    def __init__(self, tell: Progress | None, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._tell = tell
        self._clock = clock
        self._told = float("-inf")
        self._records = 0
        self._bytes = 0

    def add(self, records: int, size: int) -> None:
        self._records += records
        self._bytes += size
        if self._tell is not None and self._clock() - self._told >= _PROGRESS_SECONDS:
            self.close()

    def close(self) -> None:
        """Tell the final sums."""
        if self._tell is not None:
            self._told = self._clock()
            self._tell(self._records, self._bytes)


@disk_errors("reading")
def read_unit(
    *,
    plan: Plan,
    unit: int,
    kafka: KafkaSettings,
    folder: Path,
    progress: Progress | None = None,
    proof: ChunkProof | None = None,
    payload: PayloadPlace | None = None,
    clock: Callable[[], float] = time.monotonic,
    careful: bool = False,
    budget: ByteBudget | None = None,
) -> Receipt:
    """Read and land the slices of one unit into `folder` (made where missing). The receipt is not written.

    `proof`: what chunks must carry, where the key is looked up already; else it is looked up here, in no file.
    `payload`: where payload goes, if not into the landing files; with the login itself.
    `careful`: all from raw batches, after an attempt that ended for want of memory; small records are read so, anyway.
    `budget`: else the unit's share.
    """
    if not 0 <= unit < len(plan.units):
        raise BadInput(f"plan {plan.plan_id[:16]} has units 0 to {len(plan.units) - 1}; unit {unit} is not one of them")
    began = clock()
    proof = proof_of(plan.stream) if proof is None else proof
    make_folder(folder)
    budget = budget_of(plan, [unit], folder) if budget is None else budget
    source = Source(
        stream=plan.stream.name,
        topic=plan.stream.topic,
        topic_id=plan.topic_id,
        group=plan.stream.group,
        idle_seconds=plan.stream.reading.idle_deadline,
        kind=plan.kind,
        begins=plan.begins,
    )
    log = KafkaLog(kafka)
    check_topic(log, source)
    meter = ProgressMeter(progress, clock=clock)
    ids = IdBinding(plan.stream.id_partitions)
    careful = careful or plan.mean_record_bytes < _SMALL_BYTES
    slices = []
    for slice_ in plan.units[unit]:
        slice_began = clock()
        read = partial(
            read_slice,
            slice_,
            settings=kafka,
            source=source,
            log=log,
            folder=folder,
            payload=None if payload is None else PayloadStore(payload).of(folder),
            expected_bytes=round(slice_.size * plan.mean_record_bytes),
            start_epoch=_start_epoch(plan, slice_),
            newest_epoch=_newest_epoch(plan, slice_),
            proof=proof,
            ids=ids,
            on_batch=meter.add,
            on_stored=budget.add,
            on_stored_run=budget.add_run,
            on_work=budget.pass_over,
            on_fetched=partial(_check_fetched, budget, budget.stored),
        )
        before = budget.records, budget.stored
        try:
            landed = read(careful=careful)
        except NeedsCare:
            budget.forget(*before)
            landed = read(careful=True)
        slices.append(replace(landed, seconds=round(clock() - slice_began, 3)))
    meter.close()
    return Receipt(plan_id=plan.plan_id, unit=unit, slices=slices, seconds=round(clock() - began, 3))


def _check_fetched(budget: ByteBudget, before: int, fetched: int) -> None:
    """Raises `NeedsCare` where the client fetches much that it hands out to nobody (padding that codecs pass over, what
    transactions aborted): who reads raw batches counts that, or looks at its heads alone."""
    stored = budget.stored - before
    if fetched > _AHEAD_BYTES + 2 * stored:
        raise NeedsCare(f"the client fetched {fetched} bytes for records of {stored}")


def read_here(
    *,
    plan: Plan,
    kafka: KafkaSettings,
    folder: Path,
    units: Sequence[int],
    progress: Progress | None = None,
    proof: ChunkProof | None = None,
    payload: PayloadPlace | None = None,
) -> list[Receipt]:
    """Read several units in this process, one after another. Receipts in their order, not written."""
    return [
        read_unit(plan=plan, unit=unit, kafka=kafka, folder=folder, progress=progress, proof=proof, payload=payload)
        for unit in units
    ]


def read_units(
    *,
    plan: Plan,
    kafka: KafkaSettings,
    folder: Path,
    units: Sequence[int] | None = None,
    processes: int | None = None,
    progress: Progress | None = None,
    proof: ChunkProof | None = None,
    payload: PayloadPlace | None = None,
    children: UnitProcesses | None = None,
) -> list[Receipt]:
    """Read several units (all of the plan unless given), at most `processes` at once (else as many of the stream's
    workers as are worth their start).

    Receipts in the order of `units`, not written. The first error of a child is raised, and the others are ended; all
    end when this process does. `children`: those that read, and then wait for the next plan; else they end, too.
    """
    wanted = list(range(len(plan.units))) if units is None else list(units)
    meter = ProgressMeter(progress)
    told: dict[int, tuple[int, int]] = {}

    def add_up(unit: int, records: int, size: int) -> None:
        before = told.get(unit, (0, 0))
        told[unit] = (records, size)
        meter.add(records - before[0], size - before[1])

    with nullcontext(children) if children is not None else UnitProcesses() as readers:
        receipts = readers.read(
            plan,
            wanted,
            kafka=kafka,
            folder=folder,
            proof=proof_of(plan.stream) if proof is None else proof,
            payload=payload,
            at_once=processes or min(plan.stream.reading.workers, _worth_starting(plan, wanted)),
            on_progress=add_up,
        )
    meter.close()
    return [receipts[unit] for unit in wanted]


def _worth_starting(plan: Plan, units: Sequence[int]) -> int:
    records = sum(slice_.size for unit in units for slice_ in plan.units[unit])
    return worth_starting(records, round(records * plan.mean_record_bytes))


@disk_errors("writing a receipt")
def write_receipt(folder: Path, receipt: Receipt) -> Path:
    """Write the receipt once, under the digest of its content."""
    stem, text = f"receipt-u{receipt.unit:03d}", receipt.to_json().encode()
    name, _, _ = write_digested(folder, lambda digest: f"{stem}-{digest}.json", lambda file: file.write(text))
    return folder / str(name)


def _start_epoch(plan: Plan, slice_: OffsetRange) -> LeaderEpoch | None:
    """Leader epoch of what an ingest's position stands behind; only a slice that begins there can be held against it.

    Who leaves the positions reads what is there now, wherever it begins: held against them it could never read behind a
    cut, until a rewind that is none of its own."""
    position = plan.positions.get(slice_.partition)
    if not plan.moves_positions or position is None or position.next_offset != slice_.start:
        return None
    return position.leader_epoch


def _newest_epoch(plan: Plan, slice_: OffsetRange) -> LeaderEpoch | None:
    """Leader epoch when the slice's end was planned; only the ends of an ingest are the ends of what it reads."""
    end = plan.ends.get(slice_.partition)
    if not plan.moves_positions or end is None or end.next_offset < slice_.end:
        return None
    return end.leader_epoch
