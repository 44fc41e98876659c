"""The real edges of a stream's batches: Kafka readers, Iceberg, the landing, Spark, Great Expectations. Decide nothing.

How units are read and how stitching is submitted are given: in child processes and through spark-submit from the
command line, in the task itself and through a connection under Airflow.
"""

from __future__ import annotations

import secrets
import shutil
import threading
import time
from collections.abc import Callable, Mapping, Sequence, Set
from functools import cached_property, partial
from pathlib import Path
from typing import Protocol

import pyarrow as pa

from consumers.unit_reader import read_units, write_receipt
from spark_apps import loaded_code  # noqa: F401 - with the rest, not when the stitching begins: an update may lie between
from spark_apps.submit import submit_reassembly
from wavestitch.batch.closed_gate import stands_at_its_gate
from wavestitch.batch.deployment import Deployment, code_version, plain_name
from wavestitch.batch.edges import Progress, Say, Stitching
from wavestitch.batch.gate_in_head import stand_at_gate
from wavestitch.batch.kept_previews import (
    keep_decision,
    keep_preview,
    keep_rejection,
    kept_decision,
    kept_preview,
    kept_rejection,
)
from wavestitch.batch.landing_facts import GATE_CLOSED, closed_gates, gates_of, reader_stops
from wavestitch.batch.metrics import tell_metrics
from wavestitch.batch.reassemble import Landed, ToStitch, gather_stitched, load_landed, prepare_reassembly
from wavestitch.batch.staging import DiskStaging
from wavestitch.batch.work_folder import WorkFolder, kept_row
from wavestitch.contracts.batch_row import BatchRow
from wavestitch.contracts.batch_size import ReaderStop
from wavestitch.contracts.chunk_proof import ChunkProof
from wavestitch.contracts.decision import Stitched
from wavestitch.contracts.errors import Altered, BadInput, NewerFormat, Refused, Transient
from wavestitch.contracts.parts_index import PARTS_INDEX, PartsIndex, merged
from wavestitch.contracts.payload_apart import PayloadPlace
from wavestitch.contracts.plain_text import harmless
from wavestitch.contracts.plan import Plan
from wavestitch.contracts.ports import Log
from wavestitch.contracts.position import AtGate
from wavestitch.contracts.preview_answer import Rejected
from wavestitch.contracts.quantities import EpochMs, Seconds, epoch_ms
from wavestitch.contracts.receipt import Receipt, receipt_from_json
from wavestitch.contracts.rewind_preview import RewindPreview
from wavestitch.contracts.sample_kinds import WIDER, SampleType, promoted
from wavestitch.contracts.seams import PARTS, Parts
from wavestitch.contracts.stitch_job import StitchReport, stitch_job_from_json, stitch_report_from_json
from wavestitch.contracts.stitched_waveforms import StitchedWaveforms
from wavestitch.contracts.stream import Stream, shared_groups
from wavestitch.contracts.verdict import CLOSED_GATES, ClosedGate, Verdict, verdict_from_json, would_publish
from wavestitch.kafka.client_settings import KafkaSettings
from wavestitch.modes import make_folder
from wavestitch.plain_files import plain_text
from wavestitch.tables.stream_tables import StreamTables

Submit = Callable[[Path, Path], None]
"""Runs the stitching app on a job file (first path) so that it leaves its result (second path)."""

PARTS_STEM = "parts"
INDEX_STEM = "index"
_DISK_FACTOR = 2.5  # landing, staged files, and room for what the estimate missed


class ReadUnits(Protocol):
    """Reads units of a plan into `folder`; receipts in their order, not written. `proof`: what chunks must carry.
    `payload`: where their payload goes, if not there; with the login itself."""

    def __call__(
        self,
        *,
        plan: Plan,
        kafka: KafkaSettings,
        folder: Path,
        units: Sequence[int],
        progress: Progress,
        proof: ChunkProof,
        payload: PayloadPlace | None,
    ) -> list[Receipt]: ...


class StagedRows:
    """The `Stitching` of a real batch: the slim rows that Spark left, one a waveform."""

    def __init__(self, folder: WorkFolder, report: StitchReport | None, data_folder: Callable[[], Path]) -> None:
        self._folder, self._report, self._data_folder = folder, report, data_folder
        self._rows = gather_stitched(folder, report)

    @cached_property
    def outcomes(self) -> Mapping[str, Stitched]:
        return StitchedWaveforms.of(self._rows)

    @property
    def good(self) -> pa.Table:
        """What was stitched."""
        return self._rows.filter(self._rows.column("reason").is_null())

    def staging(self, landed: Landed) -> DiskStaging:
        return DiskStaging(self._folder, landed.files, self._rows, self._report, data_folder=self._data_folder())


class DeploymentEdges:
    """`Edges` of one stream of a deployment.

    `gate_ahead`: load the gate while readers and Spark work, for a process that will ask it. `findings`: where people
    see what the gate found of a plan id; without it, where that lies on this machine.
    """

    def __init__(
        self,
        deployment: Deployment,
        stream: str,
        *,
        read: ReadUnits = read_units,
        submit: Submit | None = None,
        gate_ahead: bool = False,
        findings: Callable[[str], str] | None = None,
    ) -> None:
        self.deployment = deployment
        self.name = plain_name(stream)
        self._read = read
        self._submit = submit
        self._gate_ahead = gate_ahead
        self._findings = findings
        self._loading: threading.Thread | None = None

    @cached_property
    def stream(self) -> Stream:
        found = self.deployment.settled_stream(self.name)
        check_group(found, self.deployment.group_users(found.group), began=lambda: self.tables.head() is not None)
        return found

    @property
    def log(self) -> Log:
        return self.deployment.log

    @cached_property
    def tables(self) -> StreamTables:
        return self.deployment.tables(self.name)

    @property
    def code_version(self) -> str:
        return code_version()

    def clock_ms(self) -> EpochMs:
        return epoch_ms(time.time_ns())

    def seconds(self) -> float:
        return time.monotonic()

    def nonce(self) -> str:
        return secrets.token_hex(8)

    def kept(self, decision: str) -> BatchRow | None:
        return kept_row(self.deployment.settings.landing, self.name, decision)

    def begin(self, plan: Plan) -> None:
        check_disk(self.deployment.settings.landing, plan, apart=self.deployment.settings.payload.at is not None)
        check_samples(plan.stream, self.tables.sample_type())
        self._folder(plan.plan_id).create(plan)

    def plan(self, plan_id: str, *, committed: bool = False) -> Plan:
        return self._folder(plan_id).plan(committed=committed)

    def keep_receipt(self, receipt: Receipt) -> str:
        return write_receipt(self._folder(receipt.plan_id).path, receipt).name

    def landed(self, plan: Plan, receipts: Sequence[str]) -> Landed:
        folder = self._folder(plan.plan_id)
        return load_landed(
            plan, [receipt_from_json(folder.read_digested(name, kind="receipt")) for name in receipts], folder
        )

    def stitching(self, plan: Plan, report: str | None) -> StagedRows:
        folder = self._folder(plan.plan_id)
        found = None
        if report is not None:
            found = stitch_report_from_json(folder.read_digested(report, kind="report"))
            if found.plan_id != plan.plan_id:
                raise BadInput(
                    f"the stitch report is of plan {harmless(found.plan_id[:16])}, the batch's plan is "
                    f"{plan.plan_id[:16]}; run the batch's reassemble step again"
                )
        return StagedRows(folder, found, partial(self.tables.data_folder, folder.path))

    def keep_verdict(self, plan: Plan, verdict: Verdict) -> str:
        return self._folder(plan.plan_id).write_digested("verdict", verdict.to_json()).name

    def verdict(self, plan: Plan, name: str) -> Verdict:
        return verdict_from_json(self._folder(plan.plan_id).read_digested(name, kind="verdict"))

    def close_gate(self, plan: Plan, *, report: str | None, verdict: str) -> None:
        gate = ClosedGate(plan.plan_id, report, verdict)
        self._folder(plan.plan_id).write_digested(GATE_CLOSED, CLOSED_GATES.text(gate))
        if stands_at_its_gate(plan):
            stand_at_gate(plan, log=self.log, tables=self.tables)

    def closed_gates(self) -> list[Plan]:
        return closed_gates(self.deployment.settings.landing, self.name)

    def named_at_gate(self) -> tuple[AtGate, ...]:
        head = self.tables.head()
        return () if head is None else head.at_gate

    def stopped(self, plan: Plan) -> Set[str] | None:
        gates = gates_of(self._folder(plan.plan_id))
        try:
            return None if gates is None else set[str]().union(*(self._stopped_at(plan, gate) for gate in gates))
        except NewerFormat:
            raise
        except (Altered, BadInput):
            return None  # its files were damaged, or taken away

    def reader_stops(self) -> list[ReaderStop]:
        return reader_stops(self.deployment.settings.landing, self.name)

    def keep_parts(self, parts: Parts, index: PartsIndex) -> None:
        folder = self._folder(parts.plan_id)
        folder.write_digested(PARTS_STEM, PARTS.text(parts))
        folder.write_digested(INDEX_STEM, PARTS_INDEX.text(index))

    def parts(self, plan_id: str) -> Parts:
        found = [PARTS.read(text) for text in self._kept_of_cuts(plan_id, PARTS_STEM)]
        return Parts(plan_id, tuple(part for parts in found for part in parts.parts))

    def parts_index(self, plan_id: str) -> PartsIndex:
        return merged(PARTS_INDEX.read(text) for text in self._kept_of_cuts(plan_id, INDEX_STEM))

    def _kept_of_cuts(self, plan_id: str, stem: str) -> list[str]:
        """What each execution of the batch kept under this stem."""
        folder = self._folder(plan_id)
        names = sorted(path.name for path in folder.path.glob(f"{stem}-*.json"))
        if not names:
            raise BadInput(
                f"{folder.path} does not say what its batch read of waveforms across its cuts: it was not carried "
                "through, or maintenance took its folder; backfill the interval again"
            )
        return [folder.read_digested(name, kind=stem) for name in names]

    def free(self, plan_id: str) -> int:
        return self._folder(plan_id).free_payload()

    def tell_metrics(self) -> None:
        tell_metrics(self.deployment, self.name)

    def keep_preview(self, preview: RewindPreview) -> None:
        keep_preview(self.deployment.settings.landing, preview)

    def preview(self, preview_id: str) -> RewindPreview:
        return kept_preview(self.deployment.settings.landing, self.name, preview_id)

    def keep_decision(self, plan: Plan) -> None:
        keep_decision(self.deployment.settings.landing, plan)

    def decision(self, plan_id: str) -> Plan:
        return kept_decision(self.deployment.settings.landing, self.name, plan_id)

    @property
    def previews_hold(self) -> Seconds:
        return self.deployment.settings.maintain.of(self.name).previews

    def reject(self, preview_id: str, said: Rejected) -> None:
        keep_rejection(self.deployment.settings.landing, self.name, preview_id, said)

    def rejected(self, preview_id: str) -> Rejected | None:
        return kept_rejection(self.deployment.settings.landing, self.name, preview_id)

    def read(self, plan: Plan, units: Sequence[int], *, progress: Progress) -> list[Receipt]:
        self._load_gate(plan)
        folder = self._folder(plan.plan_id).path
        kafka, proof = self.deployment.kafka, self.deployment.proof(plan.stream)
        store = self.deployment.payload_store
        payload = None if store is None else store.place
        return self._read(
            plan=plan, kafka=kafka, folder=folder, units=units, progress=progress, proof=proof, payload=payload
        )

    def stitch(self, plan: Plan, landed: Landed, what: ToStitch, *, say: Say) -> str | None:
        folder = self._folder(plan.plan_id)
        payload = self.deployment.settings.payload.at
        job_path = prepare_reassembly(plan, landed, what, tables=self.tables, folder=folder, payload=payload)
        job = stitch_job_from_json(plain_text(job_path))
        say(f"{len(job.assignments)} stitching tasks")
        self._load_gate(plan)
        if not job.assignments:
            return None
        result = folder.path / f"stitched-{job_path.stem}.json"
        (self._submit or submit_by_settings(self.deployment, say))(job_path, result)
        # Under the digest of what it says, as all that steps hand to each other: a name alone can be led astray.
        return folder.write_digested("report", plain_text(result)).name

    def judge(self, plan: Plan, stitching: Stitching) -> Verdict:
        if self._loading is not None:
            self._loading.join()  # Great Expectations' modules import each other: half loaded they cannot be used
        from wavestitch.validation.gate import validate_rows  # noqa: PLC0415 - takes seconds to import

        if not isinstance(stitching, StagedRows):
            raise TypeError(f"the gate judges rows on disk, not {type(stitching).__name__}")
        docs = self.deployment.docs_folder(self.name, plan.plan_id)
        return validate_rows(stitching.good, plan.stream.expectations, run_name=plan.plan_id, docs_folder=docs)

    def findings(self, plan_id: str) -> str:
        if self._findings is not None:
            return self._findings(plan_id)
        return str(self.deployment.docs_folder(self.name, plan_id) / "index.html")

    def _folder(self, plan_id: str) -> WorkFolder:
        return self.deployment.folder(self.name, plan_id)

    def _stopped_at(self, plan: Plan, gate: ClosedGate) -> set[str]:
        return would_publish(self.stitching(plan, gate.report).outcomes, self.verdict(plan, gate.verdict).failed)

    def _load_gate(self, plan: Plan) -> None:
        """Readers and Spark are processes of their own, and importing takes longer than a small batch."""
        if self._gate_ahead and plan.stream.expectations and self._loading is None:
            from wavestitch.validation.gate import load_gate  # noqa: PLC0415

            self._loading = threading.Thread(target=load_gate)
            self._loading.start()


def check_disk(landing: Path, plan: Plan, *, apart: bool = False) -> None:
    """Refuse to begin what the disk has no room for. `apart`: what is read lies elsewhere."""
    make_folder(landing)
    free = shutil.disk_usage(landing).free
    need = round(plan.estimated_bytes * (_DISK_FACTOR - apart))
    if need > free:
        raise Transient(
            f"the batch needs about {-(-need >> 20)} MiB in {landing}, which has {free >> 20} MiB free; free some, or "
            f"lower limits.max_batch_bytes of stream {plan.stream.name}",
            need=need,
            free=free,
        )


def check_group(stream: Stream, users: Sequence[Stream], *, began: Callable[[], bool]) -> None:
    """Refuse to begin a stream in the consumer group of another one, which would find its offsets there: one that has
    begun goes on, whoever names its group now."""
    for sentence in shared_groups([stream, *(s for s in users if s.name != stream.name)]):
        if not began():
            raise Refused(f"stream {stream.name} has not begun, and {sentence}", group=stream.group)


def check_samples(stream: Stream, table: SampleType | None) -> None:
    """Refuse to begin what the table could not take: a type of samples that it has not and cannot be promoted to."""
    if table is not None and promoted(table, stream.samples) is None:
        wider = WIDER.get(table)
        raise BadInput(
            f"stream {stream.name} declares samples: {stream.samples}, its table has {table}"
            + (f", which can only become {wider}" if wider else "")
            + f"; declare {table}{f' or {wider}' if wider else ''} here. For recordings of {stream.samples} declare "
            f"another stream, with a group of its own, on topic {stream.topic}, samples: {stream.samples}: its first "
            f"batch begins at the earliest offset, and `wavestitch held {stream.name} discard --reason misfit --why …` "
            "lets go of what is held here"
        )


def submit_by_settings(
    deployment: Deployment, say: Say, *, on_start: Callable[[Callable[[], None]], None] = lambda _: None
) -> Submit:
    """The stitching on the Spark that is there, where the settings name one; through spark-submit otherwise.

    `on_start` gets what ends a job on the Spark that is there: that one does not end with us.
    """
    spark, remote = deployment.settings.spark, deployment.remote_spark()

    def submit(job: Path, result: Path) -> None:
        if remote is not None:
            from spark_apps.remote import stitch_remotely  # noqa: PLC0415 - loads what stitches

            stitch_remotely(remote, job_path=job, result_path=result, say=say, on_start=on_start)
            return
        submit_reassembly(
            job_path=job,
            result_path=result,
            master=spark.master,
            conf=deployment.spark_conf,
            java_home=spark.java_home,
            environment=spark.environment,
            say=say,
        )

    return submit
