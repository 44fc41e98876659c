"""A batch's own folder: write-once files that its steps hand to each other. What is there is never replaced.

`LANDING/STREAM/PLAN/`: plan.json, slices and receipts, the stitch job, its results, the verdict, history rows. A file's
name carries the digest of its content, so that two executions of a step cannot disagree about a name.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from wavestitch.contracts.batch_row import BatchRow, batch_row_from_json
from wavestitch.contracts.errors import Altered, BadInput, Fenced, Transient
from wavestitch.contracts.plain_text import harmless, name_of_person, said_by_person
from wavestitch.contracts.plan import Plan, plan_from_json
from wavestitch.contracts.plan_id import is_plan_id
from wavestitch.contracts.quantities import EpochMs
from wavestitch.contracts.versioned import Versioned
from wavestitch.modes import make_folder
from wavestitch.payload_store import PayloadStore
from wavestitch.plain_files import below, plain_text
from wavestitch.write_once import digest_bytes, digest_file, write_first

_DIGESTED = re.compile(r"[a-z][a-z0-9-]*-[0-9a-f]{32}\.(json|arrow)")
PAYLOAD = ("slice-*.arrow", "held-*.arrow", "staged/*.parquet")
"""What only a batch under way needs; `staged`: on the way to an object store."""
ABANDONED = "abandoned.json"
VERIFYING = ".verify-"
"""Begins the name of a folder beside those of the batches, where a verification has all that it leaves."""
LOCK = ".lock"
"""Held there by the process that verifies."""


class WorkFolder:
    """One plan's folder under the landing. `payload`: has what its landing files do not have; asked where that is to
    go, since who only looks may have no login."""

    def __init__(
        self, landing: Path, stream: str, plan_id: str, *, payload: Callable[[], PayloadStore | None] = lambda: None
    ) -> None:
        if not is_plan_id(plan_id):
            raise BadInput(f"{plan_id!r} is not a plan id (32 hex digits); `wavestitch batches {stream}` lists them")
        self.path = below(landing, stream, plan_id)
        self._payload = payload

    def create(self, plan: Plan) -> None:
        """Make the folder and write the plan."""
        try:
            for folder in (self.path.parent.parent, self.path.parent, self.path):
                make_folder(folder)
        except OSError as error:
            raise Transient(f"cannot make {self.path}: {error.strerror}; free or mount that disk") from None
        self.write("plan.json", plan.to_json())

    def abandon(self, *, who: str, why: str, at_ms: EpochMs) -> None:
        """Give the batch up on purpose: nobody carries it through any more, and maintenance may remove what it has."""
        reason = said_by_person(why, "the reason (why)")
        self.plan()
        self.write(ABANDONED, _ABANDONED.text(Abandoned(name_of_person(who), reason, at_ms)))

    def plan(self, *, committed: bool = False) -> Plan:
        """The plan as it was made. Raises `Fenced` where the batch was abandoned on purpose, and not `committed` in
        that very moment."""
        given_up = self.path / ABANDONED
        if os.path.lexists(given_up) and not committed:
            about = _ABANDONED.read(plain_text(given_up))
            by = f"{harmless(about.who)} ({harmless(about.why)})"
            raise Fenced(
                f"batch {self.path.name[:16]} was abandoned by {by}; plan again",
                plan_id=self.path.name,
            )
        try:
            plan = plan_from_json(plain_text(self.path / "plan.json"))
        except FileNotFoundError:
            raise BadInput(
                f"no plan in {self.path}; its batch was finished and cleaned, or never made: look with `wavestitch "
                f"batches {self.path.parent.name}`, or leave the plan out for a new one"
            ) from None
        if plan.plan_id != self.path.name:
            raise Altered(
                f"the plan in {self.path} is plan {plan.plan_id}; it was put there by somebody else: plan again"
            )
        return plan

    def read_digested(self, name: str, *, kind: str = "") -> str:
        """The text of a file whose name carries its content's digest, and begins with `kind`; see `intact`."""
        return plain_text(self.intact(name, kind=kind))

    def intact(self, name: str, *, kind: str = "") -> Path:
        """The path of a file whose name carries its content's digest; raises `Altered` where that is not so.

        Names come out of XComs and of other files, where people may have been at them: this is where all of them are
        checked, by a closed pattern, before anything is opened.
        """
        if not isinstance(name, str) or not _DIGESTED.fullmatch(name) or not name.startswith(kind):
            raise BadInput(
                f"{ascii(name)[:120]} is not the name of a {kind or 'file'} that a step leaves; run the step before it "
                "again"
            )
        path = self.path / name
        try:
            text = path.suffix == ".json"
            seen = digest_bytes(plain_text(path).encode()) if text else digest_file(path)[1]
        except FileNotFoundError:
            raise Altered(f"{path} is gone; run its step again", file=str(path)) from None
        if seen != path.stem.rpartition("-")[2]:
            raise Altered(f"{path} is not as it was written; delete it and run its step again", file=str(path))
        return path

    def write(self, name: str, text: str) -> Path:
        """A write-once file under a fixed name; the same content again is fine, other content is `Altered`."""
        path = self.path / name
        try:
            write_first(path, text)
        except OSError as error:
            raise Transient(f"cannot write {path}: {error.strerror}; free disk space and try again") from None
        if plain_text(path) != text:
            raise Altered(f"{path} is there with other content; a file of a batch is never replaced")
        return path

    def write_digested(self, stem: str, text: str) -> Path:
        """A write-once file whose name carries its content's digest."""
        return self.write(f"{stem}-{digest_bytes(text.encode())}.json", text)

    def keep(self, row: BatchRow) -> None:
        self.write_digested(f"decision-{row.decision}", row.to_json())

    def drop_payload(self) -> int:
        """Remove the landed payload of a committed batch; returns bytes freed. Plan, receipts and results stay. What is
        in a store goes first: as long as the files are there that name it, it is known."""
        self._drop_apart()
        return self._drop_files()

    def free_payload(self) -> int:
        """The same, where nobody may wait for it: nothing goes where a store does not let go of its part. Maintenance
        tries again, and says why not."""
        try:
            self._drop_apart()
        except (BadInput, Transient):
            return 0
        return self._drop_files()

    def _drop_apart(self) -> None:
        store = self._payload()
        if store is not None:
            store.of(self.path).remove()

    def _drop_files(self) -> int:
        freed = 0
        for pattern in PAYLOAD:
            folder, _, names = pattern.rpartition("/")
            for path in below(self.path, folder).glob(names):
                with suppress(FileNotFoundError):  # somebody else removes it, too
                    freed += path.lstat().st_size
                    path.unlink()
        return freed


@dataclass(frozen=True, slots=True)
class Abandoned:
    """Who gave a batch up, and why."""

    who: str
    why: str
    at_ms: EpochMs


_ABANDONED = Versioned(Abandoned, f"the file {ABANDONED}", "delete it, and abandon the batch again")


def work_folders(landing: Path, stream: str) -> list[WorkFolder]:
    """Of all batches that have one, in order of their plans' ids. Raises `BadInput` where a link is among them: what
    a batch left there would be believed, or, passed over, be missing."""
    root = below(landing, stream)
    names = sorted(p.name for p in root.iterdir() if is_plan_id(p.name)) if root.is_dir() else []
    return [WorkFolder(landing, stream, name) for name in names]


def kept_row(landing: Path, stream: str, decision: str) -> BatchRow | None:
    """The history row that a batch kept for a decision, found by the decision's digest. One whose bytes are not those
    that were kept is none: the head still tells the little that it knows."""
    return kept_rows(landing, stream, f"decision-{decision}-*.json")(decision) if decision else None


def kept_rows(landing: Path, stream: str, pattern: str = "decision-*-*.json") -> Callable[[str], BatchRow | None]:
    """The same, of the files that are there now: one look, for whoever asks about many decisions."""
    found: dict[str, list[tuple[WorkFolder, str]]] = {}
    for folder in work_folders(landing, stream):
        for path in sorted(folder.path.glob(pattern)):
            found.setdefault(path.name.split("-")[1], []).append((folder, path.name))

    def row(decision: str) -> BatchRow | None:
        for folder, name in found.get(decision, ()):
            with suppress(Altered, BadInput):
                return batch_row_from_json(folder.read_digested(name))
        return None

    return row
