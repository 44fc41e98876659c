"""What a batch of small records costs beside broker and Spark: `python -m benchmarks.small_records`, without either.

Records are made in memory and go through the product's own functions, from a reader's loop to the commit: parsing and
landing, the index, deciding, assignments, stitching (in this process), the gate's rows, the decision and the commit.
CPU seconds a step, and the memory that the index takes. Ratios of two trees hold where they took turns on one machine.
With `--again` each record comes twice, as a producer that is not sure sends it: then no waveform is plain.
"""

from __future__ import annotations

import argparse
import resource
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from benchmarks.results_file import machine, write_figures
from benchmarks.test_bed import waveforms
from consumers.batch_scan import Delivery
from consumers.landing import LandingWriter
from consumers.range_scan import Source
from consumers.record_sink import RecordSink
from consumers.unit_reader import write_receipt
from spark_apps.stitching import stitch_assignment
from wavestitch.batch.deployment_edges import StagedRows
from wavestitch.batch.history import History
from wavestitch.batch.publish import Audit, publish_batch
from wavestitch.batch.reassemble import decide_whole, load_landed, prepare_reassembly
from wavestitch.batch.work_folder import WorkFolder
from wavestitch.contracts.chunk_proof import NO_PROOF
from wavestitch.contracts.decision import Evidence
from wavestitch.contracts.offset_range import OffsetRange
from wavestitch.contracts.plan import Plan, PlanKind
from wavestitch.contracts.position import Head, HeadKind, Position
from wavestitch.contracts.quantities import EpochMs, Generation, Offset, Partition, epoch_ms
from wavestitch.contracts.receipt import Receipt
from wavestitch.contracts.stitch_job import StitchReport, stitch_job_from_json
from wavestitch.contracts.stream import Stream, parse_stream
from wavestitch.garbage_collection import collection_paused
from wavestitch.kafka.raw_batches import RawBatch
from wavestitch.producers.chunking import cut_recording
from wavestitch.tables.catalog import CatalogSettings
from wavestitch.tables.lookup.id_index import IdIndex
from wavestitch.tables.stream_tables import StreamTables

_STREAM = "small"
_TOPIC = "0" * 22
_BATCH_BYTES, _BATCHES_A_FETCH = 1 << 20, 4
_HEAD_BYTES = 61
"""Of a record batch, before its records."""


class Costs:
    """CPU seconds (user and system, of all threads) and wall seconds by name."""

    def __init__(self) -> None:
        self.found: dict[str, tuple[float, float]] = {}
        self.bytes_a_chunk: dict[str, int] = {}
        self.peak_mib = 0.0

    @contextmanager
    def of(self, name: str) -> Iterator[None]:
        wall, cpu = time.perf_counter(), time.process_time()
        yield
        before = self.found.get(name, (0.0, 0.0))
        self.found[name] = (before[0] + time.perf_counter() - wall, before[1] + time.process_time() - cpu)


def batches(first: int, count: int, *, chunk: int, chunks: int, times: int = 1) -> list[RawBatch]:
    """What a broker has of `count` waveforms of `chunks` chunks of `chunk` bytes, one behind the other, each `times`
    times: record batches of about a mebibyte, not compressed."""
    whole: list[Any] = []
    for recording in waveforms(count, size=chunk * chunks, prefix="wave", first=first, seed=1):
        at = recording.metadata.start_time_ns // 1_000_000
        whole += [(at, record) for record in cut_recording(recording, chunk) for _ in range(times)]
    step = max(1, _BATCH_BYTES // chunk)
    return [_batch(first * chunks * times + n, whole[n : n + step]) for n in range(0, len(whole), step)]


def _batch(offset: int, records: Sequence[Any]) -> RawBatch:
    body = b"".join(_record(n, at - records[0][0], record) for n, (at, record) in enumerate(records))
    newest = max(at for at, _ in records)
    return RawBatch(
        Offset(offset),
        leader_epoch=0,
        attributes=0,
        last_offset_delta=len(records) - 1,
        first_timestamp=records[0][0],
        max_timestamp=newest,
        producer_id=-1,
        records=len(records),
        data=memoryview(bytes(_HEAD_BYTES) + body),
    )


def _record(delta: int, since: int, record: Any) -> bytes:
    headers = b"".join(_part(name.encode()) + _part(content) for name, content in record.headers)
    parts = (b"\0", _number(since), _number(delta), _part(record.key), _part(bytes(record.value)))
    body = b"".join((*parts, _number(len(record.headers)), headers))
    return _number(len(body)) + body


def _part(content: bytes) -> bytes:
    return _number(len(content)) + content


def _number(value: int) -> bytes:
    """As records write theirs."""
    left, out = (value << 1) ^ (value >> 63), bytearray()
    while left > 0x7F:
        out.append(left & 0x7F | 0x80)
        left >>= 7
    return bytes((*out, left))


def declared() -> Stream:
    return parse_stream(
        f"topic: t\ngroup: g\nlimits: {{max_clock_skew: 36500 d, max_batch_records: {1 << 30}}}\n",
        name=_STREAM,
    )


def land(folder: Path, records: int, *, chunk: int, chunks: int, times: int, costs: Costs) -> Receipt:
    """One slice of partition 0. What makes the records is not counted."""
    at_once = max(1, (1 << 16) // chunks // times)
    count = records // chunks // times
    slice_ = OffsetRange(Partition(0), Offset(0), Offset(records))
    with LandingWriter(folder, slice_) as writer:
        sink = RecordSink(
            writer, NO_PROOF, lambda _: None, careful=True, partition=Partition(0), on_stored_run=lambda *_: True
        )
        source = Source(_STREAM, _TOPIC, _TOPIC, "g", 60.0)
        delivery = Delivery(slice_, source, sink.land, sink.land_columns, lambda *_: None, lambda _: None)
        for first in range(0, count, at_once):
            some = batches(first, min(at_once, count - first), chunk=chunk, chunks=chunks, times=times)
            with costs.of("land"):
                for at in range(0, len(some), _BATCHES_A_FETCH):
                    for batch in some[at : at + _BATCHES_A_FETCH]:
                        delivery.add(batch)
                    delivery.flush()
        with costs.of("land"):
            landed = writer.finish([])
    return Receipt("", 0, [landed], 1.0)


def measure(folder: Path, records: int, *, chunk: int, chunks: int, times: int = 1) -> Costs:
    costs = Costs()
    tables = StreamTables(
        CatalogSettings("wavestitch", f"sqlite:///{folder}/catalog.db", f"file://{folder}/warehouse"),
        _STREAM,
        id_index=IdIndex(folder / "ids"),
    )
    head = tables.commit(None, Head(1, Generation(1), HeadKind.FIRST, _TOPIC, {Partition(0): Position(Offset(0))}), [])
    whole = OffsetRange(Partition(0), Offset(0), Offset(records))
    plan = Plan(
        plan_id="",
        kind=PlanKind.INGEST,
        stream=declared(),
        topic_id=_TOPIC,
        partitions=1,
        ranges=(whole,),
        units=((whole,),),
        positions=dict(head.positions),
        ends={Partition(0): Position(Offset(records))},
        generation=head.generation,
        base_sequence=head.sequence,
        base_snapshot=head.snapshot_id or 0,
        held_snapshot=None,
        watermark_ms=EpochMs(0),
        clock_ms=epoch_ms(time.time_ns()),
        scope=None,
        why={},
        mean_record_bytes=float(chunk),
        code_version="benchmark",
        nonce="0",
    ).sealed()
    work = WorkFolder(folder / "landing", _STREAM, plan.plan_id)
    work.create(plan)
    receipt = replace(
        land(work.path, records, chunk=chunk, chunks=chunks, times=times, costs=costs), plan_id=plan.plan_id
    )
    write_receipt(work.path, receipt)
    with collection_paused():
        before = _resident()
        with costs.of("index"):
            landed = load_landed(plan, [receipt], work)
        costs.bytes_a_chunk["index"] = round((_resident() - before) / records)
        with costs.of("decide what is whole"):
            found = decide_whole(plan, landed, tables=tables)
        costs.bytes_a_chunk["index and assembly"] = round((_resident() - before) / records)
        with costs.of("assign"):
            path = prepare_reassembly(plan, landed, found, tables=tables, folder=work)
        job = stitch_job_from_json(path.read_text())
        with costs.of("stitch"):
            results = tuple(stitch_assignment(job, name) for name in job.assignments)
        report = StitchReport(plan.plan_id, results)
        del found
        with costs.of("publish: index"):
            landed = load_landed(plan, [receipt], work)
        with costs.of("publish: outcomes"):
            staged = StagedRows(work, report, tables.data_folder)
            outcomes = staged.outcomes
        evidence = Evidence(chunks=landed.chunks, seen_ms=landed.seen_ms, stitched=outcomes)
        with costs.of("publish: decide, check, commit"):
            done, _ = publish_batch(
                plan,
                evidence,
                tables=tables,
                history=History(tables, _STREAM, lambda _: None),
                staging=staged.staging(landed),
                audit=Audit(holes={}, committed_ms=plan.clock_ms, clock_ms=lambda: plan.clock_ms, seconds={}, sizes={}),
            )
    if done.row.counts["published"] != records // times or done.row.counts["read"] != records:
        raise RuntimeError(f"{done.row.counts}")
    costs.peak_mib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"decision {done.row.decision}")
    return costs


def _resident() -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("RssAnon"):
            return int(line.split()[1]) << 10
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10


def main() -> None:
    ask = argparse.ArgumentParser(description=__doc__)
    ask.add_argument("--records", type=int, default=131_072)
    ask.add_argument("--bytes", type=int, default=512, help="of a chunk")
    ask.add_argument("--chunks", type=int, default=32, help="of a waveform")
    ask.add_argument("--again", action="store_true", help="each record twice; --records counts both")
    ask.add_argument("--folder", type=Path, help="where the data go; a temporary folder where not given")
    ask.add_argument("--into", type=Path, help="a file for the figures, as JSON")
    given = ask.parse_args()
    times = 2 if given.again else 1
    records = given.records - given.records % (given.chunks * times)
    with tempfile.TemporaryDirectory(prefix="wavestitch-small-", dir=given.folder) as folder:
        costs = measure(Path(folder), records, chunk=given.bytes, chunks=given.chunks, times=times)
    print(f"{records:,} chunks of {given.bytes} B, {given.chunks} a waveform{', each twice' if given.again else ''}")
    print(f"{'step':36}{'wall s':>8}{'CPU s':>8}{'µs a chunk':>12}")
    for name, (wall, cpu) in costs.found.items():
        print(f"{name:36}{wall:8.2f}{cpu:8.2f}{cpu / records * 1e6:12.2f}")
    for name, size in costs.bytes_a_chunk.items():
        print(f"{name}: {size} B a chunk")
    print(f"the largest that the process was: {costs.peak_mib:.0f} MiB")
    if given.into:
        steps = {name: {"wall_s": round(wall, 3), "cpu_s": round(cpu, 3)} for name, (wall, cpu) in costs.found.items()}
        asked = {"records": records, "chunk_bytes": given.bytes, "chunks_a_waveform": given.chunks}
        about = {"when": datetime.now(UTC).isoformat(timespec="seconds"), "machine": machine()}
        write_figures(
            given.into,
            {**asked, "steps": steps, "bytes_a_chunk": costs.bytes_a_chunk, "peak_mib": costs.peak_mib, **about},
        )


if __name__ == "__main__":
    main()
