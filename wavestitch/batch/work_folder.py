"""A batch's own folder: write-once files that its steps hand to each other. What is there is never replaced.

`LANDING/STREAM/PLAN/`: plan.json, slices and receipts, the stitch job, its results, the verdict, history rows. A file's
name carries the digest of its content, so that two executions of a step cannot disagree about a name.
"""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

from wavestitch.contracts.batch_row import BatchRow, batch_row_from_json
from wavestitch.contracts.errors import Altered, BadInput, Transient
from wavestitch.contracts.plan import Plan, plan_from_json
from wavestitch.write_once import write_first

_PLAN_ID = re.compile(r"^[0-9a-f]{32}$")
_PAYLOAD = ("slice-*.arrow", "held-*.arrow")


class WorkFolder:
    """One plan's folder under the landing."""

    def __init__(self, landing: Path, stream: str, plan_id: str) -> None:
        if not _PLAN_ID.match(plan_id):
            raise BadInput(f"{plan_id!r} is not a plan id (32 hex digits); `wavestitch batches` lists them")
        self.path = landing / stream / plan_id

    def create(self, plan: Plan) -> None:
        """Make the folder and write the plan."""
        try:
            self.path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise Transient(f"cannot make {self.path}: {error.strerror}; free or mount that disk") from None
        self.write("plan.json", plan.to_json())

    def plan(self) -> Plan:
        try:
            return plan_from_json((self.path / "plan.json").read_text())
        except FileNotFoundError:
            raise BadInput(f"no plan in {self.path}; its batch was finished and cleaned, or never made") from None

    def write(self, name: str, text: str) -> Path:
        """A write-once file under a fixed name; the same content again is fine, other content is `Altered`."""
        path = self.path / name
        try:
            write_first(path, text)
        except OSError as error:
            raise Transient(f"cannot write {path}: {error.strerror}; free disk space and try again") from None
        if path.read_text() != text:
            raise Altered(f"{path} is there with other content; a file of a batch is never replaced")
        return path

    def write_digested(self, stem: str, text: str) -> Path:
        """A write-once file whose name carries its content's digest."""
        return self.write(f"{stem}-{hashlib.sha256(text.encode()).hexdigest()[:16]}.json", text)

    def keep(self, row: BatchRow) -> None:
        self.write_digested(f"decision-{row.decision}", row.to_json())

    def drop_payload(self) -> int:
        """Remove the landed payload once the offsets stand; returns bytes freed. Plan, receipts and results stay."""
        freed = 0
        for pattern in _PAYLOAD:
            for path in self.path.glob(pattern):
                freed += path.stat().st_size
                path.unlink()
        return freed


def kept_row(landing: Path, stream: str, decision: str) -> BatchRow | None:
    """The history row that a batch kept for a decision, found by the decision's digest."""
    if not decision:
        return None
    for path in sorted((landing / stream).glob(f"*/decision-{decision}-*.json")):
        return batch_row_from_json(path.read_text())
    return None
