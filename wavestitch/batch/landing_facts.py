"""What batches that did not end well left in their folders for the next plan: closed gates, and readers that stopped.

Only looks. A gate counts as closed however damaged the file that says so. A plan that cannot be read says nothing: its
batch cannot be carried through either. What a newer Wavestitch wrote is refused by that sentence: it counts.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from wavestitch.batch.work_folder import WorkFolder, work_folders
from wavestitch.contracts.batch_size import READER_STOP, ReaderStop
from wavestitch.contracts.errors import Altered, BadInput, Fenced, NewerFormat, WavestitchError
from wavestitch.contracts.plan import Plan
from wavestitch.contracts.position import Head
from wavestitch.contracts.verdict import CLOSED_GATES, ClosedGate

GATE_CLOSED = "gate-closed"
READER_STOPPED = "reader-stopped"


def closed_gates(landing: Path, stream: str) -> list[Plan]:
    """The plans whose gate closed, those aside that were abandoned."""
    found = {}
    for folder, name in _left(landing, stream, GATE_CLOSED):
        with _but_newer(Altered, BadInput):
            CLOSED_GATES.read(folder.read_digested(name))
        with _but_newer(Altered, BadInput, Fenced):
            plan = folder.plan()
            found[plan.plan_id] = plan
    return [found[i] for i in sorted(found)]


def gates_of(folder: WorkFolder) -> list[ClosedGate] | None:
    """Each time that this batch's gate closed; None where one of the files that say so is damaged."""
    try:
        names = sorted(path.name for path in folder.path.glob(f"{GATE_CLOSED}-*.json"))
        return [CLOSED_GATES.read(folder.read_digested(name)) for name in names]
    except NewerFormat:
        raise
    except (Altered, BadInput):
        return None


def tries_on(landing: Path, stream: str, head: Head) -> list[Plan]:
    """The ingests that were planned on this head, those aside that were abandoned; while it is the newest, none of them
    has got through."""
    found = []
    for folder in work_folders(landing, stream):
        with _but_newer(Altered, BadInput, Fenced):
            plan = folder.plan()
            base = plan.base_sequence, plan.base_snapshot
            found += [plan] * (plan.moves_positions and base == (head.sequence, head.snapshot_id or 0))
    return found


def reader_stops(landing: Path, stream: str) -> list[ReaderStop]:
    """What readers had seen that stopped at their budget."""
    found = []
    for folder, name in _left(landing, stream, READER_STOPPED):
        with _but_newer(Altered, BadInput):
            found.append(READER_STOP.read(folder.read_digested(name)))
    return found


@contextmanager
def _but_newer(*passed_over: type[WavestitchError]) -> Iterator[None]:
    try:
        yield
    except NewerFormat:
        raise
    except passed_over:
        pass


def _left(landing: Path, stream: str, stem: str) -> Iterator[tuple[WorkFolder, str]]:
    for folder in work_folders(landing, stream):
        for path in sorted(folder.path.glob(f"{stem}-*.json")):
            yield folder, path.name
