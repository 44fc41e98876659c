"""Keeps account of effects: what changed at the memory edges, and which stage was being carried out just then.

Every call of an edge is a look or an effect, by name; one that is neither fails. So a stage that does something beside
what it names, or an operation that does something beside its stages, is seen.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, MutableMapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from weakref import WeakKeyDictionary

import pytest
from greenlet import getcurrent, greenlet

from tests.fakes import fake_maintenance
from tests.fakes.batch import FakeEdges
from tests.fakes.fake_staging import FakeStaging
from tests.fakes.faults import Edge, Fault
from wavestitch.batch import carry, walk
from wavestitch.contracts.stages import Effect, Stage

EFFECTS = {
    "tables.commit": Effect.HEAD,
    "tables.commit_rebuilt": Effect.HEAD,
    "tables.stage_held": Effect.HELD_STAGED,
    "tables.settle_held": Effect.HELD_MAIN,
    "tables.append_batches": Effect.HISTORY,
    "tables.expire": Effect.SNAPSHOTS_GONE,
    "tables.orphans": Effect.FILES_GONE,
    "log.commit_group": Effect.GROUP,
    "folder.begin": Effect.FOLDER,
    "folder.parts": Effect.FOLDER,
    "folder.index": Effect.FOLDER,
    "folder.preview": Effect.FOLDER,
    "folder.close_gate": Effect.FOLDER,
    "folder.reader_stopped": Effect.FOLDER,
    "staging.keep": Effect.FOLDER,
    "staging.files_for": Effect.STAGED,
}
"""By the name under which an edge acts."""
UNNAMED: dict[str, tuple[Effect, ...]] = {
    "read": (Effect.FOLDER,),
    "keep_receipt": (Effect.FOLDER,),
    "stitch": (Effect.FOLDER, Effect.STAGED),
    "judge": (Effect.DOCS,),
    "keep_verdict": (Effect.FOLDER,),
    "free": (Effect.PAYLOAD_GONE,),
}
"""Methods of the edges whose effects nothing can come between."""
LOOKS = frozenset(
    {
        "folder.rejection",
        "folder.rejected",
        "folder.decision",  # what somebody was shown is kept, to be approved of: no operation yet
        "folder.closed_gates",
        "log.ends",
        "log.epoch_ends",
        "log.group_offsets",
        "log.members",
        "log.offsets_at",
        "log.probe",
        "log.raw",
        "log.read",
        "log.topic",
        "tables.batches",
        "tables.head",
        "tables.heads",
        "tables.held",
        "tables.held_files",
        "tables.held_at",
        "tables.held_ids",
        "tables.held_left",
        "tables.held_main",
        "tables.published",
        "tables.published_by_plan",
        "tables.recorded",
        "tables.remains",
        "tables.table_uuid",
    }
)


@dataclass
class Account:
    """`stages`: in the order in which they began; `effects`: each with its stage, None where there was none."""

    stages: list[type[Stage]] = field(default_factory=list)
    effects: list[tuple[type[Stage] | None, Effect]] = field(default_factory=list)
    here: MutableMapping[greenlet, type[Stage]] = field(default_factory=WeakKeyDictionary)
    """The stage that each of the runs side by side carries out."""

    def note(self, *effects: Effect) -> None:
        now = self.here.get(getcurrent())
        self.effects += [(now, effect) for effect in effects]

    @property
    def unnamed(self) -> list[str]:
        """Effects that the stage which had them does not name."""
        return [
            f"{effect.name} in {'no stage' if stage is None else stage.name}"
            for stage, effect in self.effects
            if stage is None or effect not in stage.effects
        ]

    def of(self, stage: type[Stage]) -> set[Effect]:
        return {effect for where, effect in self.effects if where is stage}

    @property
    def names(self) -> list[str]:
        return [stage.name for stage in self.stages]

    @contextmanager
    def during(self, stage: type[Stage]) -> Iterator[None]:
        self.stages.append(stage)
        self.here[getcurrent()] = stage
        try:
            yield
        finally:
            self.here.pop(getcurrent(), None)


def keep_account(patch: pytest.MonkeyPatch) -> Account:
    """From here on, until the patch is undone."""
    account = Account()
    act = Edge.act

    @contextmanager
    def watched(self: Edge, name: str, **more: Any) -> Iterator[Fault | None]:
        with act(self, name, **more) as fault:
            yield fault
            # The effect is there, whatever becomes of its caller.
            if name in EFFECTS:
                account.note(EFFECTS[name])
            elif name not in LOOKS:
                raise AssertionError(f"{name}: is it a look, or which effect is it? Say so in {__name__}")

    patch.setattr(Edge, "act", watched)
    for name, effects in UNNAMED.items():
        patch.setattr(FakeEdges, name, _noted(getattr(FakeEdges, name), account, effects))
    tables: list[dict[Any, Any]] = [carry.ACTS, walk.ACTS, fake_maintenance.ACTS]
    for acts in tables:
        for stage, carried_out in list(acts.items()):
            patch.setitem(acts, stage, _accounted(carried_out, account, stage))
    return account


def _noted(method: Callable[..., Any], account: Account, effects: tuple[Effect, ...]) -> Callable[..., Any]:
    def noted(*args: Any, **more: Any) -> Any:
        found = method(*args, **more)
        account.note(*effects)
        return found

    return noted


def _accounted(act: Callable[..., Any], account: Account, stage: type[Stage]) -> Callable[..., Any]:
    def accounted(*args: Any) -> Any:
        with account.during(stage):
            return act(*args)

    return accounted


assert issubclass(FakeStaging, Edge), "an edge whose calls are not seen has effects that nobody keeps account of"
