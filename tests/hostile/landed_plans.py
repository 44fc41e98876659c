"""Two landed plans to be damaged, and loading one of them as the steps after reading do it."""

from __future__ import annotations

import shutil
from pathlib import Path

from consumers.landed_file import open_landing
from tests.deployment_rig import STREAM, plan_on
from tests.hostile.file_kinds import Bed
from tests.hostile.kind import chunked
from tests.hostile.landed_deployment import FakeDeployment, landed_edges, make_landed_deployment
from wavestitch.batch.reassemble import Landed, load_landed
from wavestitch.batch.steps import step_read
from wavestitch.batch.work_folder import WorkFolder
from wavestitch.contracts.landed_payload import take_proven
from wavestitch.contracts.plan import plan_from_json
from wavestitch.contracts.quantities import Partition
from wavestitch.contracts.receipt import receipt_from_json

STREAM_YAML = "reading: {min_slice: 4, workers: 2}\nlimits: {max_clock_skew: 19000 d}\n"


def land_two_plans(folder: Path) -> Path:
    """Two plans, both landed, the second of some records more; returns the deployment's landing folder."""
    whole = make_landed_deployment(folder, stream_yaml=STREAM_YAML, partitions=2)
    assert isinstance(whole.deployment, FakeDeployment)
    for waveform_id, count in (("damaged", 40), ("another", 8)):
        for n, record in enumerate(chunked(waveform_id, count)):
            whole.deployment.memory.append(
                Partition(n % 2), 1_767_225_600_000 + n, record.key, record.headers, record.value
            )
        edges = landed_edges(whole.deployment)
        step_read(edges, plan_on(edges).plan_id)
    return whole.deployment.settings.landing


def make_bed(landing: Path, to: Path) -> Bed:
    """A copy of what was landed, to be damaged."""
    shutil.copytree(landing, to)
    folders = [p.parent for p in (to / STREAM).glob("*/plan.json")]
    one, other = sorted(folders, key=lambda f: plan_from_json((f / "plan.json").read_text()).records)
    return Bed(one, _receipts(one), other, _receipts(other))


def load_bed(bed: Bed) -> Landed:
    """Load what was landed, and look at each payload as those do who take it."""
    folder = WorkFolder(bed.folder.parents[1], STREAM, bed.folder.name)
    plan = folder.plan()
    landed = load_landed(plan, [receipt_from_json(folder.read_digested(name)) for name in bed.receipts], folder)
    for name in landed.files:
        for batch in open_landing(folder.path / name).to_batches():
            take_proven(name, batch, range(batch.num_rows))
    return landed


def _receipts(folder: Path) -> list[str]:
    return sorted(p.name for p in folder.glob("receipt-*.json"))
