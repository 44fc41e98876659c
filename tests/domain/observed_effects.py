"""What a stage left, seen from outside: a deployment's files, tables and group are looked at before and after it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from wavestitch.batch import carry, walk
from wavestitch.batch.deployment import Deployment
from wavestitch.contracts.position import Head
from wavestitch.contracts.stages import Effect, Stage

PAYLOAD = "slice-"


@dataclass(frozen=True)
class Seen:
    """All of a stream that a stage could touch. Caches aside: the index of ids alone is asked what it could forget."""

    head: Head | None
    held_main: int | None
    held_snapshots: frozenset[int]
    snapshots: frozenset[int]
    live: frozenset[str]
    rows: int
    history: int
    folders: frozenset[str]
    inside: frozenset[str]
    jobs: frozenset[str]
    note: bytes
    docs: frozenset[str]
    warehouse: frozenset[str]
    index: int
    group: str


def look(deployment: Deployment, stream: str, folder: Path, *, group: object = None) -> Seen:
    """`folder`: of the whole deployment. `group`: what is shown there."""
    tables = deployment.tables(stream)
    loaded = [stored.load() for stored in tables.stored()]
    held = loaded[1]
    live = [task.file for t in loaded if t is not None for task in t.scan().plan_files()]
    landing = deployment.settings.landing / stream
    note = landing / ".unreferenced.json"
    return Seen(
        head=tables.head(),
        held_main=None if held is None else held.metadata.current_snapshot_id,
        held_snapshots=frozenset() if held is None else frozenset(s.snapshot_id for s in held.metadata.snapshots),
        snapshots=frozenset(s.snapshot_id for t in loaded if t is not None for s in t.metadata.snapshots),
        live=frozenset(f.file_path for f in live),
        rows=sum(f.record_count for f in live),
        history=len(tables.batches()),
        folders=frozenset(p.name for p in landing.glob("*") if p.is_dir()),
        inside=frozenset(str(p) for p in landing.glob("*/*") if p.is_file()),
        jobs=frozenset(p.name for p in (deployment.settings.cache / "jobs").glob("*")),
        note=note.read_bytes() if note.exists() else b"",
        docs=frozenset(str(p) for p in (deployment.settings.docs / stream).glob("*")),
        warehouse=frozenset(str(p) for p in folder.glob("warehouse/**/*") if p.is_file()),
        index=tables.prune_index(apply=False),
        group=repr(group),
    )


def effects(before: Seen, after: Seen) -> set[Effect]:
    """What is another thing after than it was before."""
    gone, new = before.inside - after.inside, after.inside - before.inside
    kept = {f for f in gone if Path(f).parent.name in after.folders}
    staged = {f for f in after.warehouse - before.warehouse if "/waveforms/data/" in f and not f.endswith(".tmp")}
    replaced = before.live != after.live and before.rows == after.rows
    changes = {
        Effect.HEAD: before.head != after.head,
        Effect.GROUP: before.group != after.group,
        Effect.HELD_MAIN: before.held_main != after.held_main,
        Effect.HELD_STAGED: bool(after.held_snapshots - before.held_snapshots),
        Effect.HELD_GONE: _held_rows(after) < _held_rows(before),
        Effect.HISTORY: before.history != after.history,
        Effect.STAGED: bool(staged) and not replaced,
        Effect.REPLACED: replaced,
        Effect.SNAPSHOTS_GONE: bool(before.snapshots - after.snapshots),
        Effect.FILES_GONE: bool(before.warehouse - after.warehouse),
        Effect.FOLDER: bool(new),
        Effect.PAYLOAD_GONE: any(Path(f).name.startswith(PAYLOAD) for f in kept),
        Effect.FOLDERS_GONE: bool(before.folders - after.folders),
        Effect.LEFTOVERS_GONE: any(f.endswith(".tmp") for f in kept) or bool(before.jobs - after.jobs),
        Effect.SEEN: before.note != after.note,
        Effect.DOCS: bool(after.docs - before.docs),
        Effect.DOCS_GONE: bool(before.docs - after.docs),
        Effect.INDEX: after.index < before.index,
    }
    return {effect for effect, changed in changes.items() if changed}


def _held_rows(seen: Seen) -> int:
    return 0 if seen.head is None or seen.head.held is None else seen.head.held.rows


@dataclass
class Observer:
    """Looks before and after every stage of batches, rewinds and decisions, and at what happens between them."""

    look: Callable[[], Seen]
    left: dict[type[Stage], set[Effect]] = field(default_factory=dict)
    beside: set[Effect] = field(default_factory=set)
    order: list[str] = field(default_factory=list)
    before: Seen | None = None

    def watch(self, patch: pytest.MonkeyPatch) -> None:
        every: list[dict[Any, Any]] = [carry.ACTS, walk.ACTS]
        for acts in every:
            for stage, act in list(acts.items()):
                patch.setitem(acts, stage, self._observed(stage, act))

    def begin(self) -> None:
        """Here, outside all stages."""
        self.order.clear()
        self.before = self.look()

    def end(self) -> None:
        assert self.before is not None
        self.beside |= effects(self.before, self.look())

    def _observed(self, stage: type[Stage], act: Callable[..., Any]) -> Callable[..., Any]:
        def observed(*given: Any) -> Any:
            self.end()
            self.order.append(stage.name)
            before = self.look()
            try:
                return act(*given)
            finally:
                self.before = self.look()
                self.left[stage] = self.left.get(stage, set()) | effects(before, self.before)

        return observed
