"""The way of a batch, as six plain functions that a test, the command line and Airflow call the same way.

    step_plan -> step_read (side by side) -> step_reassemble -> step_validate -> step_publish -> step_commit_offsets

Each takes the names of files that the step before it left in the plan's folder, and returns small JSON (paths, ids,
counts: what fits XCom). Each can be carried through again: a committed plan is finished, whatever else is gone.
"""

from __future__ import annotations

import functools
import gc
import secrets
import shutil
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any, ParamSpec, cast

from consumers.unit_reader import read_unit, write_receipt
from wavestitch.batch.commit_offsets import commit_offsets
from wavestitch.batch.deployment import Deployment, code_version
from wavestitch.batch.plan import NothingToDo, PlanRequest, plan_batch, recent_batches
from wavestitch.batch.publish import Audit, find_committed, publish_batch, repair_history
from wavestitch.batch.reassemble import Landed, gather_stitched, load_landed, prepare_reassembly
from wavestitch.batch.request import Gate
from wavestitch.batch.staging import DiskStaging
from wavestitch.batch.work_folder import WorkFolder, kept_row
from wavestitch.contracts.batch_row import BatchRow
from wavestitch.contracts.decision import Evidence, Stitched
from wavestitch.contracts.errors import Altered, GateClosed, Transient
from wavestitch.contracts.past_cost import forecast
from wavestitch.contracts.plan import Plan
from wavestitch.contracts.reasons import Reason
from wavestitch.contracts.receipt import receipt_from_json
from wavestitch.contracts.stitch_job import StitchReport, stitch_job_from_json, stitch_report_from_json
from wavestitch.contracts.verdict import verdict_from_json
from wavestitch.write_once import disk_errors

P = ParamSpec("P")
Json = dict[str, Any]
Say = Callable[[str], None]
Submit = Callable[[Path, Path], None]
"""Runs the stitching app on a job file (first path) so that it leaves its result (second path)."""

_DISK_FACTOR = 2.5  # landing, staged files, and room for what the estimate missed


@contextmanager
def collection_paused() -> Iterator[None]:
    """Around work that makes an object a chunk or a snapshot, and no cycles: looking for some, over and over and
    through all that was imported, takes about as long as the work."""
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()


def gives_way(finished: Json) -> Callable[[Callable[P, Json]], Callable[P, Json]]:
    """Another execution that finishes the same plan takes the landing away: this one is then finished, too, and not
    told that somebody altered its files. `finished`: what the step returns then. Its first arguments are deployment,
    stream and plan id."""

    def around(step: Callable[P, Json]) -> Callable[P, Json]:
        @functools.wraps(step)
        def run(*args: P.args, **more: P.kwargs) -> Json:
            try:
                return step(*args, **more)
            except (Altered, Transient):
                if not _finished(*cast(tuple[Deployment, str, str], args[:3])):
                    raise
                return dict(finished)

        return run

    return around


@disk_errors("planning")
@collection_paused()
def step_plan(deployment: Deployment, stream: str, request: PlanRequest, *, apply: bool = True) -> Json:
    """Pin the inputs of the next batch. `{"nothing": why}` where there is nothing to do."""
    definition = deployment.stream(stream)
    tables = deployment.tables(stream)
    clock_ms = time.time_ns() // 1_000_000
    if apply:
        repair_history(
            tables, stream=stream, kept=lambda d: kept_row(deployment.settings.landing, stream, d), now_ms=clock_ms
        )
    plan = plan_batch(
        definition,
        request,
        log=deployment.log,
        tables=tables,
        clock_ms=clock_ms,
        nonce=secrets.token_hex(8),
        code_version=code_version(),
        apply=apply,
    )
    if isinstance(plan, NothingToDo):
        return {"nothing": plan.why}
    if apply:
        check_disk(deployment.settings.landing, plan)
        deployment.folder(stream, plan.plan_id).create(plan)
    return {**describe_plan(plan), "forecast": asdict(forecast(plan, recent_batches(tables, tables.head())))}


def describe_plan(plan: Plan) -> Json:
    return {
        "plan_id": plan.plan_id,
        "kind": plan.kind.value,
        "stream": plan.stream.name,
        "generation": plan.generation,
        "units": list(range(len(plan.units))),
        "slices": [[str(s) for s in unit] for unit in plan.units],
        "records": plan.records,
        "estimated_bytes": plan.estimated_bytes,
        "ranges": [list(r) for r in plan.ranges],
        "why": {str(p): w for p, w in sorted(plan.why.items())},
        "left": plan.left,
    }


def check_disk(landing: Path, plan: Plan) -> None:
    """Refuse to begin what the disk has no room for."""
    landing.mkdir(parents=True, exist_ok=True)
    free = shutil.disk_usage(landing).free
    need = round(plan.estimated_bytes * _DISK_FACTOR)
    if need > free:
        raise Transient(
            f"the batch needs about {need >> 20} MiB in {landing}, which has {free >> 20} MiB free; free some, or "
            f"lower limits.max_batch_bytes of stream {plan.stream.name}",
            need=need,
            free=free,
        )


@disk_errors("reading")
def step_read(
    deployment: Deployment,
    stream: str,
    plan_id: str,
    unit: int,
    *,
    progress: Callable[[int, int], None] = lambda r, b: None,
) -> Json:
    """Read one unit of work into the landing."""
    if _finished(deployment, stream, plan_id):
        return {"finished": True}
    folder = deployment.folder(stream, plan_id)
    receipt = read_unit(plan=folder.plan(), unit=unit, kafka=deployment.kafka, folder=folder.path, progress=progress)
    path = write_receipt(folder.path, receipt)
    return {
        "receipt": path.name,
        "records": sum(s.records for s in receipt.slices),
        "bytes": sum(s.payload_bytes for s in receipt.slices),
        "seconds": receipt.seconds,
    }


@gives_way({"finished": True})
@disk_errors("reassembling")
@collection_paused()
def step_reassemble(
    deployment: Deployment,
    stream: str,
    plan_id: str,
    receipts: Sequence[str],
    *,
    submit: Submit,
    say: Say = lambda _: None,
) -> Json:
    """Stitch what is whole."""
    if _finished(deployment, stream, plan_id):
        return {"finished": True}
    start = time.monotonic()
    folder = deployment.folder(stream, plan_id)
    plan = folder.plan()
    landed = _landed(folder, plan, receipts)
    job_path = prepare_reassembly(
        plan, landed, tables=deployment.tables(stream), folder=folder, codec=deployment.settings.codec
    )
    job = stitch_job_from_json(job_path.read_text())
    say(f"{len(landed.chunks)} records in {len(landed.files)} files; {len(job.assignments)} stitching tasks")
    name = f"stitched-{job_path.stem}.json" if job.assignments else None
    if name:
        submit(job_path, folder.path / name)
    return {
        "report": name,
        "receipts": list(receipts),
        "waveforms": gather_stitched(folder, _report(folder, name)).num_rows,
        "seconds": round(time.monotonic() - start, 3),
    }


@gives_way({"finished": True})
@disk_errors("validating")
def step_validate(
    deployment: Deployment,
    stream: str,
    plan_id: str,
    reassembled: Mapping[str, Any],
    *,
    gate: Gate = "stop",
    why: str = "",
) -> Json:
    """Ask the gate. A closed gate stops the batch, unless an operator accepts it or parks the batch, with a reason."""
    if reassembled.get("finished") or _finished(deployment, stream, plan_id):
        return {"finished": True}
    from wavestitch.validation.gate import validate_rows  # noqa: PLC0415 - Great Expectations takes seconds to import

    start = time.monotonic()
    folder = deployment.folder(stream, plan_id)
    plan = folder.plan()
    rows = gather_stitched(folder, _report(folder, reassembled["report"]))
    rows = rows.filter(rows.column("reason").is_null())
    verdict = validate_rows(
        rows, plan.stream.expectations, run_name=plan_id, docs_folder=deployment.docs_folder(stream, plan_id)
    )
    path = folder.write_digested("verdict", verdict.to_json())
    if verdict.closed and gate == "stop":
        raise GateClosed(
            f"batch {plan_id[:16]} of stream {stream}: {'; '.join(verdict.closed)}. Nothing was published. Look at "
            f"{deployment.docs_folder(stream, plan_id) / 'index.html'}; then carry the same plan through with "
            f"`wavestitch run {stream} --plan {plan_id} --gate accept --why …`, or `--gate park` to hold it all",
            plan_id=plan_id,
        )
    note = f"gate: {gate}; {why}" if verdict.closed or gate == "park" else ""
    return {
        "verdict": path.name,
        "park": gate == "park",
        "note": note,
        "failed": len(verdict.failed),
        "reported": list(verdict.reported)[:20],
        "seconds": round(time.monotonic() - start, 3),
    }


@gives_way({"again": True})
@disk_errors("publishing")
@collection_paused()
def step_publish(
    deployment: Deployment,
    stream: str,
    plan_id: str,
    reassembled: Mapping[str, Any],
    validated: Mapping[str, Any],
    *,
    say: Say = lambda _: None,
) -> Json:
    """Decide and commit."""
    tables = deployment.tables(stream)
    done = find_committed(tables, plan_id)
    if done is not None:
        return _published(done.row, again=True)
    start = time.monotonic()
    folder = deployment.folder(stream, plan_id)
    plan = folder.plan()
    landed = _landed(folder, plan, reassembled["receipts"])
    report = _report(folder, reassembled["report"])
    rows = gather_stitched(folder, report)
    stitched = {
        wid: Stitched(Reason(reason) if reason else None, evidence or "")
        for wid, reason, evidence in zip(
            *(rows.column(c).to_pylist() for c in ("waveform_id", "reason", "evidence")), strict=True
        )
    }
    verdict = verdict_from_json(folder.read_digested(validated["verdict"]))
    evidence = Evidence(
        chunks=landed.chunks,
        seen_ms=landed.seen_ms,
        stitched=stitched,
        failed=verdict.failed,
        park=bool(validated["park"]),
        note=str(validated["note"]),
    )
    spent = {"read": landed.seconds, "reassemble": reassembled["seconds"], "validate": validated["seconds"]}
    staging = DiskStaging(folder, landed.files, rows, report, data_folder=tables.data_folder())
    audit = Audit(
        holes=landed.holes,
        committed_ms=time.time_ns() // 1_000_000,
        seconds=spent,
        sizes={"read": landed.payload_bytes},
        reading=landed.reading,
        elapsed=lambda: round(time.monotonic() - start, 3),
    )
    published = publish_batch(plan, evidence, tables=tables, staging=staging, audit=audit, say=say)
    return _published(published.row, again=published.row is None)


@disk_errors("committing offsets")
def step_commit_offsets(deployment: Deployment, stream: str, plan_id: str) -> Json:
    """Project the head into the group; the batch's landing goes once that stands."""
    definition = deployment.stream(stream)
    said = commit_offsets(definition, log=deployment.log, tables=deployment.tables(stream))
    freed = deployment.folder(stream, plan_id).drop_payload()
    return {"offsets": said, "freed_bytes": freed}


def _report(folder: WorkFolder, name: str | None) -> StitchReport | None:
    """What the stitching app left; None where nothing was whole."""
    return stitch_report_from_json((folder.path / name).read_text()) if name else None


def _landed(folder: WorkFolder, plan: Plan, receipts: Sequence[str]) -> Landed:
    return load_landed(plan, [receipt_from_json(folder.read_digested(name)) for name in receipts], folder)


def _finished(deployment: Deployment, stream: str, plan_id: str) -> bool:
    return find_committed(deployment.tables(stream), plan_id) is not None


def _published(row: BatchRow | None, *, again: bool) -> Json:
    if row is None:
        return {"again": again}
    return {
        "again": again,
        "plan_id": row.plan_id,
        "sequence": row.sequence,
        "waveforms": row.waveforms,
        "counts": row.counts,
        "reasons": row.reasons,
        "identity_balances": row.identity_balances,
    }
