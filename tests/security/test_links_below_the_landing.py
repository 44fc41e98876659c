"""Whoever may write in the landing or among the Data Docs leads nobody elsewhere by a link.

Each thing there is one in turn, to where the very same things lie, and none of all that works with them opens, lists or
changes what is outside.
"""

from __future__ import annotations

import ast
import os
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, ClassVar

import pytest

from tests.builders.heads import make_row
from tests.builders.plans import make_plan
from tests.stack.airflow_home import write_settings
from wavestitch.batch.deployment import Deployment
from wavestitch.batch.kept_previews import keep_decision, keep_preview, kept_decision, kept_preview
from wavestitch.batch.kept_told import (
    counted_folder,
    keep_counted,
    keep_failures,
    keep_told,
    kept_counted,
    kept_failures,
    kept_told,
)
from wavestitch.batch.landing_facts import GATE_CLOSED, READER_STOPPED, closed_gates, gates_of, reader_stops
from wavestitch.batch.work_folder import WorkFolder, kept_row
from wavestitch.contracts.batch_size import READER_STOP, ReaderStop
from wavestitch.contracts.errors import WavestitchError
from wavestitch.contracts.failures_told import FailuresTold
from wavestitch.contracts.headroom_told import Told
from wavestitch.contracts.held_choice import HeldAction, HeldChoice
from wavestitch.contracts.metrics import Counted
from wavestitch.contracts.quantities import EpochMs, Generation, Offset, Partition
from wavestitch.contracts.rewind_preview import RewindPreview
from wavestitch.contracts.verdict import CLOSED_GATES, ClosedGate
from wavestitch.folder_lock import folder_lock
from wavestitch.maintain.landing_folders import (
    batch_folders,
    old_docs,
    read_first_seen,
    remove_folder,
    tree_size,
    write_first_seen,
)
from wavestitch.maintain.leftovers import clear_leftovers
from wavestitch.maintain.maintenance_run import MaintenanceRun
from wavestitch.settings import load_settings
from wavestitch.settings_sections import MaintainLimits
from wavestitch.ui.docs_files import find_page

ECG, DAG = "ecg", "ingest_ecg"
PLAN = make_plan()
DECISION = make_plan(choice=HeldChoice(HeldAction.REDRIVE, ("a",), "me", "it is right"))
TARGETS = {Partition(0): Offset(5)}
PREVIEW = RewindPreview(
    stream=ECG,
    to="latest",
    partitions="all",
    asked_by="me",
    why="it was wrong",
    made_ms=EpochMs(1),
    generation=Generation(1),
    sequence=1,
    targets=TARGETS,
    whole=True,
    skipped=(),
    missing=(),
    settles="",
    remarks=(),
    rows=(),
    waveforms=0,
    batches=0,
    seconds=None,
)
STOP = ReaderStop(PLAN.plan_id, "ingest", PLAN.ranges, 1, 0, 1, 1, 1, 1, TARGETS)
LATER = EpochMs(1 << 50)
KINDS = ("landing", "docs")
ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def deployment(tmp_path: Path) -> Deployment:
    (tmp_path / "streams").mkdir()
    (tmp_path / "streams" / f"{ECG}.yaml").write_text("topic: t\ngroup: g\n")
    config = write_settings(tmp_path, streams=tmp_path / "streams")
    return Deployment(load_settings({"WAVESTITCH_CONFIG": str(config)}))


def _folder(deployment: Deployment) -> WorkFolder:
    return deployment.folder(ECG, PLAN.plan_id)


def _keep_row(deployment: Deployment, _: Path) -> None:
    _folder(deployment).keep(make_row(decision="d1"))


ACTS: dict[str, Callable[[Deployment, Path], Any]] = {
    "plan": lambda d, _: _folder(d).plan(),
    "write": lambda d, _: _folder(d).write_digested("later", "{}"),
    "gates": lambda _, at: closed_gates(at, ECG),
    "gates of": lambda d, _: gates_of(_folder(d)),
    "stops": lambda _, at: reader_stops(at, ECG),
    "row": lambda _, at: kept_row(at, ECG, "d1"),
    "keep row": _keep_row,
    "preview": lambda _, at: kept_preview(at, ECG, PREVIEW.preview_id),
    "keep preview": lambda _, at: keep_preview(at, PREVIEW),
    "decision": lambda _, at: kept_decision(at, ECG, DECISION.plan_id),
    "keep decision": lambda _, at: keep_decision(at, DECISION),
    "told": lambda _, at: kept_told(at, ECG),
    "keep told": lambda _, at: keep_told(at, ECG, Told()),
    "failures": lambda _, at: kept_failures(at, DAG),
    "keep failures": lambda _, at: keep_failures(at, DAG, FailuresTold({"x": EpochMs(1)})),
    "counted": lambda _, at: kept_counted(at, ECG),
    "keep counted": lambda _, at: keep_counted(at, ECG, Counted(3)),
    "count": lambda _, at: _locked(counted_folder(at, ECG)),
    "first seen": lambda _, at: read_first_seen(at, ECG),
    "keep first seen": lambda _, at: write_first_seen(at, ECG, {"/x": EpochMs(3)}),
    "folders": lambda _, at: batch_folders(at, ECG),
    "size": lambda _, at: tree_size(at / ECG),
    "old docs": lambda d, _: list(map(shutil.rmtree, old_docs(d.settings.docs, ECG, changed_before=LATER))),
    "docs": lambda d, _: find_page(d.settings.docs, ECG, PLAN.plan_id, "index.html"),
    "docs folder": lambda d, _: list(d.docs_folder(ECG, PLAN.plan_id).rglob("*.html")),
    "leftovers": lambda d, _: clear_leftovers(
        MaintenanceRun(d, ECG, MaintainLimits.model_construct(orphan_age=0), LATER, apply=True)
    ),
    "payload": lambda d, _: _folder(d).drop_payload(),
    "remove": lambda _, at: remove_folder(at, ECG, PLAN.plan_id),
}
"""All that works with files below the landing and the Data Docs; what removes comes last."""


def _locked(folder: Path) -> bool:
    with folder_lock(folder):
        return True


def _fill(deployment: Deployment) -> None:
    """One of each thing that lies there."""
    landing = deployment.settings.landing
    folder = _folder(deployment)
    folder.create(PLAN)
    folder.write_digested(GATE_CLOSED, CLOSED_GATES.text(ClosedGate(PLAN.plan_id, None, "verdict")))
    folder.write_digested(READER_STOPPED, READER_STOP.text(STOP))
    for name, act in ACTS.items():
        if name.startswith(("keep", "count")):
            act(deployment, landing)
    for payload in ("slice-p0-5-9.arrow", "staged/x.parquet", f".{'0' * 32}.tmp"):
        (folder.path / payload).parent.mkdir(exist_ok=True)
        (folder.path / payload).write_bytes(b"x")
    (landing / ECG / f".unreferenced.json.{os.getpid()}.tmp").write_text("{}")
    dead = landing / ECG / f".verify-{'0' * 16}"
    dead.mkdir()
    (dead / ".lock").touch()
    page = deployment.settings.docs / ECG / PLAN.plan_id / "index.html"
    page.parent.mkdir(parents=True)
    page.write_text("a page")


class _Outside:
    """What of a folder was opened, listed or changed, in this thread's calls: as Python's own audit tells."""

    folder: str = ""
    seen: ClassVar[list[str]] = []

    @classmethod
    def told(cls, event: str, args: tuple[Any, ...]) -> None:
        folder = cls.folder
        if not folder or not event.startswith(("open", "os.", "shutil.")):
            return
        cls.folder = ""  # what is done here is not told
        follows = event in ("open", "os.listdir", "os.scandir", "os.chmod", "os.truncate", "os.utime")
        if event == "open" and isinstance(args[2], int) and args[2] & (os.O_NOFOLLOW | os.O_EXCL):
            follows = False
        for path in args:
            if isinstance(path, str) and path.startswith("/"):
                real = os.path.realpath(path)
                if not follows:
                    real = os.path.join(os.path.realpath(os.path.dirname(path)), os.path.basename(path))
                if real.startswith(folder):
                    cls.seen.append(f"{event} {real}")
        cls.folder = folder

    @classmethod
    @contextmanager
    def watched(cls, folder: Path) -> Iterator[list[str]]:
        cls.folder, cls.seen = f"{folder}/", []
        try:
            yield cls.seen
        finally:
            cls.folder = ""


sys.addaudithook(_Outside.told)


def _tree(folder: Path) -> dict[str, bytes | None]:
    return {str(p): p.read_bytes() if p.is_file() else None for p in sorted(folder.rglob("*"))}


def test_nothing_below_the_landing_or_the_docs_is_reached_by_a_link(deployment: Deployment, tmp_path: Path) -> None:
    _fill(deployment)
    whole = tmp_path / "whole"
    whole.mkdir()
    for kind in KINDS:
        (tmp_path / kind).rename(whole / kind)
    places = [p.relative_to(whole) for p in sorted(whole.rglob("*")) if p.parent != whole]
    assert len(places) > 20
    wrong = []
    for place in places:
        for name, act in ACTS.items():
            outside = _lead_out(whole, tmp_path, place)
            before = _tree(outside)
            with _Outside.watched(outside) as seen, suppress(WavestitchError):
                act(deployment, deployment.settings.landing)
            if seen or _tree(outside) != before:
                wrong.append(f"{place}: {name}: {seen[:1]}")
    assert not wrong, "\n".join(wrong)


def _lead_out(whole: Path, folder: Path, place: Path) -> Path:
    """Everything as it was, but that `place` is a link to where it lies now."""
    outside = folder / "outside"
    if not (folder / place).is_symlink():
        for each in (*KINDS, "outside"):
            shutil.rmtree(folder / each, ignore_errors=True)
        for kind in KINDS:
            shutil.copytree(whole / kind, folder / kind)
        outside.mkdir()
        (folder / place).rename(outside / "there")
        (folder / place).symlink_to(outside / "there")
    return outside


def test_whoever_reads_below_the_landing_or_the_docs_opens_plain_files_alone() -> None:
    """By `wavestitch/plain_files.py`, or names it here with what it opens instead."""
    elsewhere = {
        "wavestitch/batch/comparing_edges.py": "a lock in a folder that it has just made",
        "wavestitch/validation/docs.py": "a page that it writes, by a descriptor that follows no link",
        "wavestitch/ui/answer.py": "the package's own scripts",
        "spark_apps/loaded_code.py": "the package's own code",
        "spark_apps/start_archive.py": "the cache, which is its owner's alone",
    }
    folders = ("wavestitch/batch", "wavestitch/maintain", "wavestitch/validation", "wavestitch/ui", "consumers")
    found = {
        str(path.relative_to(ROOT))
        for folder in (*folders, "spark_apps", "wavestitch/flows")
        for path in (ROOT / folder).rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call) and _opens(node.func)
    }
    assert found == set(elsewhere)


def _opens(called: ast.expr) -> bool:
    if isinstance(called, ast.Name):
        return called.id == "open"
    return isinstance(called, ast.Attribute) and called.attr in ("open", "read_text", "read_bytes", "memory_map")
