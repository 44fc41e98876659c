"""One batch from plan to moved offsets in this process tree: the same steps that Airflow runs, one after another."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Protocol

from consumers.unit_processes import UnitProcesses
from consumers.unit_reader import read_units, write_receipt
from spark_apps.submit import submit_reassembly
from wavestitch.batch.deployment import Deployment
from wavestitch.batch.plan import PlanRequest
from wavestitch.batch.request import Gate
from wavestitch.batch.steps import (
    Submit,
    describe_plan,
    step_commit_offsets,
    step_plan,
    step_publish,
    step_reassemble,
    step_validate,
)
from wavestitch.contracts.plan import Plan
from wavestitch.contracts.receipt import Receipt
from wavestitch.kafka.client_settings import KafkaSettings
from wavestitch.validation.gate import load_gate


class Watcher(Protocol):
    """Somebody who waits: told what begins, what happens and how far the reading is."""

    def begin(self, step: str, total: int | None = None) -> None: ...

    def say(self, text: str) -> None: ...

    def progress(self, records: int, size: int) -> None: ...


class Silent:
    """Nobody waits."""

    def begin(self, step: str, total: int | None = None) -> None: ...

    def say(self, text: str) -> None: ...

    def progress(self, records: int, size: int) -> None: ...


class Read(Protocol):
    """Reads all units of a plan into `folder`; receipts in their order, not written."""

    def __call__(
        self, *, plan: Plan, kafka: KafkaSettings, folder: Path, progress: Callable[[int, int], None]
    ) -> list[Receipt]: ...


STEPS = ("plan", "read", "reassemble", "validate", "publish", "commit_offsets")


@dataclass(frozen=True, slots=True)
class RunOptions:
    """`plan_id`: carry an earlier plan through (again). `after_step` is called after each step: a test's kill point."""

    request: PlanRequest = field(default_factory=PlanRequest)
    plan_id: str | None = None
    gate: Gate = "stop"
    why: str = ""
    after_step: Callable[[str], None] = lambda _: None


def run_batch(
    deployment: Deployment,
    stream: str,
    options: RunOptions,
    *,
    watcher: Watcher,
    read: Read = read_units,
    submit: Submit | None = None,
) -> dict[str, Any]:
    """Carry one batch through. Returns what was planned, published and committed; `{"nothing": why}` where idle.

    `read` reads all units of a plan, `submit` has the waveforms stitched: in child processes and through spark-submit
    unless given.
    """
    watcher.begin("plan")
    if options.plan_id is None:
        planned = step_plan(deployment, stream, options.request)
        if "nothing" in planned:
            return planned
    else:
        planned = describe_plan(deployment.folder(stream, options.plan_id).plan())
    plan_id = planned["plan_id"]
    watcher.say(f"plan {plan_id[:16]}: {planned['records']} offsets in {len(planned['units'])} units")
    options.after_step("plan")

    watcher.begin("read", total=planned["records"])
    folder = deployment.folder(stream, plan_id)
    plan = folder.plan()
    receipts = read(plan=plan, kafka=deployment.kafka, folder=folder.path, progress=watcher.progress)
    names = [write_receipt(folder.path, r).name for r in receipts]
    options.after_step("read")

    watcher.begin("reassemble")
    # Spark takes longer to start than the gate to import, and leaves a processor free meanwhile.
    loading = threading.Thread(target=load_gate if plan.stream.expectations else lambda: None)
    loading.start()
    reassembled = step_reassemble(
        deployment, stream, plan_id, names, submit=submit or submit_locally(deployment, watcher.say), say=watcher.say
    )
    options.after_step("reassemble")

    watcher.begin("validate")
    loading.join()  # Great Expectations' modules import each other: half loaded they cannot be used
    validated = step_validate(deployment, stream, plan_id, reassembled, gate=options.gate, why=options.why)
    options.after_step("validate")

    watcher.begin("publish")
    published = step_publish(deployment, stream, plan_id, reassembled, validated, say=watcher.say)
    options.after_step("publish")

    watcher.begin("commit offsets")
    committed = step_commit_offsets(deployment, stream, plan_id)
    options.after_step("commit_offsets")
    return {"plan": planned, "published": published, **committed}


def catch_up(deployment: Deployment, stream: str, options: RunOptions, *, watcher: Watcher) -> Iterator[dict[str, Any]]:
    """Batch after batch, until one of them takes all there is to its planning's end of the log, or nothing is left."""
    with UnitProcesses() as children:
        while True:
            found = run_batch(deployment, stream, options, watcher=watcher, read=partial(read_units, children=children))
            yield found
            if "nothing" in found or not found["plan"]["left"]:
                return


def submit_locally(deployment: Deployment, say: Callable[[str], None]) -> Callable[[Path, Path], None]:
    """The stitching app through spark-submit, on the master of the settings."""
    spark = deployment.settings.spark

    def submit(job: Path, result: Path) -> None:
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
