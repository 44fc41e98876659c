"""A commit that reaches the catalog after whoever sent it has gone, or has given it up (row 31 of the matrix).

What a table's commit is by then: a request of another head. It is refused, or is the batch that the next run finds
finished; the next run is at a step of its own, or has its own commit on the way, when it lands.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

from tests.clean_processes import clean_processes
from tests.deployment_rig import eventually
from tests.faults.catalog_line import Kind, Scene, set_scene, wait_for_answers
from tests.faults.fault_class import Bench, Counts, FaultClass, Need
from tests.faults.file_faults_aftermath import settle
from tests.faults.local_faults_batch import Way, carry, end_of_batch, plans_of, quiet
from tests.faults.tcp_proxy import Kept

MOMENTS = (
    *("plan", "read", "reassemble", "validate", "publish", "commit offsets", "after offsets"),
    *("beside", "before the next run", "after the next run", "after all runs", "never"),
)
"""When it lands: as the next run begins a step, or while that one's own commit to the table is on its way."""
_EARLY = ("plan", "read", "reassemble", "validate", "publish", "beside", "before the next run")
_ENDS = {"done", "nothing", "Transient", "StateUnknown", "Fenced"}
_SECONDS = 60


def comes_late(bench: Bench, seed: int, kind: Kind) -> Counts:
    moment = MOMENTS[seed % len(MOMENTS)]
    with set_scene(bench, seed, kind) as scene:
        # PostgreSQL ends a transaction that stands still for as long: what is to come late to it has to be earlier.
        wait_for_answers(scene.folder, 10 if kind is Kind.POSTGRESQL and moment in _EARLY else 1)
        scene.proxy.keep(scene.commit, most=scene.rng.choice((1, 2)))
        # Nothing of a client's bounds how long PostgreSQL may take to answer a COMMIT: there it is killed.
        ends = [_killed(scene) if kind is Kind.POSTGRESQL or scene.rng.random() < 0.5 else end_of_batch(scene.folder)]
        wait_for_answers(scene.folder, _SECONDS)
        scene.proxy.pass_on()
        late = list(scene.proxy.kept)
        assert late, f"nothing was committed to {scene.table}: {ends}"
        ends += _next_run(scene, late, moment)
        if moment in ("after all runs", "never"):
            quiet(scene.folder)
        for each in late:
            each.lose() if moment == "never" else each.land()
        quiet(scene.folder)
        return settle(scene.folder, scene.produced, tuple(ends))


def _killed(scene: Scene) -> str:
    """A process that commits, killed once its request is on its way."""
    child = clean_processes().Process(target=carry, args=(scene.folder,))
    child.start()
    eventually(lambda: bool(scene.proxy.kept) or not child.is_alive(), seconds=_SECONDS)
    assert child.is_alive(), f"it ended with {child.exitcode} before it was to be killed"
    child.kill()
    child.join(_SECONDS)
    eventually(lambda: all(each.sender_gone for each in scene.proxy.kept))
    return "killed"


def _next_run(scene: Scene, late: list[Kept], moment: str) -> list[str]:
    """One or two runs, of the same plan or of a new one; the first of them meets what comes late."""
    times = scene.rng.choice((1, 1, 2)) if scene.kind is Kind.REST else 1
    plans = plans_of(scene.folder)
    plan_id = plans[-1] if plans and scene.rng.random() < 0.7 else None

    def land() -> None:
        for each in late:
            each.land(times)

    if moment == "before the next run":
        land()
    struck = Way(plan_id, before=lambda step: land() if step == moment else None)
    with _beside(scene, late) if moment == "beside" else _nobody():
        ends = [end_of_batch(scene.folder, way=struck)]
    if moment == "after the next run":
        land()
    assert set(ends) <= _ENDS, f"beside a late commit a run ended with {ends}"
    return ends


@contextmanager
def _nobody() -> Iterator[None]:
    yield


@contextmanager
def _beside(scene: Scene, late: list[Kept]) -> Iterator[None]:
    """What comes late and the next run's own commit are on their way at once; which lands first is drawn."""
    first = scene.rng.random() < 0.5
    over = threading.Event()
    if scene.kind is Kind.REST:
        scene.proxy.keep(scene.commit)

    def meet() -> None:
        while not over.wait(0.01):
            own = [each for each in scene.proxy.kept if each not in late]
            if own or scene.waits():
                for each in [*late, *own] if first else [*own, *late]:
                    each.land()
                return

    meeting = threading.Thread(target=meet)
    meeting.start()
    try:
        yield
    finally:
        scene.proxy.pass_on()
        over.set()
        meeting.join(_SECONDS)
        for each in scene.proxy.kept:
            each.land()


CLASSES = (
    FaultClass(
        "commit comes late to a REST catalog", (31,), Need.BROKER, 48, (7,), partial(comes_late, kind=Kind.REST)
    ),
    FaultClass(
        "COMMIT comes late to PostgreSQL", (31,), Need.BROKER, 24, (11,), partial(comes_late, kind=Kind.POSTGRESQL)
    ),
)
