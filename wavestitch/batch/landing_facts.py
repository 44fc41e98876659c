"""What batches that did not end well left in their folders for the next plan: closed gates, and readers that stopped.

Only looks. A file that cannot be read says nothing: its batch cannot be carried through either.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from wavestitch.batch.work_folder import WorkFolder
from wavestitch.contracts.batch_size import READER_STOP, ReaderStop
from wavestitch.contracts.errors import Altered, BadInput, Fenced
from wavestitch.contracts.plan import Plan

GATE_CLOSED = "gate-closed"
READER_STOPPED = "reader-stopped"


def closed_gates(landing: Path, stream: str) -> list[Plan]:
    """The plans whose gate closed, those aside that were abandoned."""
    found = {}
    for folder, _ in _left(landing, stream, GATE_CLOSED):
        with suppress(Altered, BadInput, Fenced):
            plan = folder.plan()
            found[plan.plan_id] = plan
    return [found[i] for i in sorted(found)]


def reader_stops(landing: Path, stream: str) -> list[ReaderStop]:
    """What readers had seen that stopped at their budget."""
    found = []
    for folder, name in _left(landing, stream, READER_STOPPED):
        with suppress(Altered, BadInput):
            found.append(READER_STOP.read(folder.read_digested(name)))
    return found


def _left(landing: Path, stream: str, stem: str) -> Iterator[tuple[WorkFolder, str]]:
    for path in sorted((landing / stream).glob(f"*/{stem}-*.json")):
        with suppress(BadInput):
            yield WorkFolder(landing, stream, path.parent.name), path.name
