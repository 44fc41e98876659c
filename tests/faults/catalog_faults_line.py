"""What happens on the way to the catalog: refused, cut in an answer, lost, in drips (row 32 of the matrix).

It begins with a step and lasts as long as the run; then the line is whole, and the same plan or a new one goes on.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from tests.faults.catalog_line import Kind, Scene, set_scene, wait_for_answers
from tests.faults.fault_class import Bench, Counts, FaultClass, Need
from tests.faults.file_faults_aftermath import settle
from tests.faults.local_faults_batch import Way, end_of_batch, plans_of, quiet
from tests.faults.tcp_proxy import CLEAR, Line

STEPS = ("plan", "read", "reassemble", "validate", "publish", "publish", "commit offsets")
_PASSING = {"done", "nothing", "Transient", "StateUnknown"}

Break = Callable[[Scene], None]


def _played(
    bench: Bench, seed: int, kind: Kind, breaks: Break, *, ends: set[str] = _PASSING, seconds: int = 1
) -> Counts:
    """`seconds`: so long the run waits for an answer."""
    with set_scene(bench, seed, kind) as scene:
        step = STEPS[seed % len(STEPS)]
        wait_for_answers(scene.folder, seconds)
        way = Way(before=lambda begun: breaks(scene) if begun == step else None)
        found = [end_of_batch(scene.folder, way=way)]
        wait_for_answers(scene.folder, 60)
        scene.proxy.set(CLEAR)
        scene.proxy.drop()
        plans = plans_of(scene.folder)
        found.append(end_of_batch(scene.folder, plans[-1] if plans and scene.rng.random() < 0.5 else None))
        assert set(found[:1]) <= ends, f"from {step} on it ended with {found[0]}"
        assert set(found[1:]) <= {"done", "nothing"}, f"on a whole line it ended with {found[1]}"
        quiet(scene.folder)
        return settle(scene.folder, scene.produced, tuple(found))


def refused(bench: Bench, seed: int, kind: Kind) -> Counts:
    """Connections are closed, and new ones refused."""
    return _played(bench, seed, kind, lambda scene: scene.proxy.cut())


def answer_cut(bench: Bench, seed: int, kind: Kind) -> Counts:
    """Of each answer only a part comes, and the connection ends."""

    def breaks(scene: Scene) -> None:
        scene.proxy.set(Line(cut=scene.rng.uniform(0.01, 0.99)))

    return _played(bench, seed, kind, breaks)


def connection_lost(bench: Bench, seed: int, kind: Kind) -> Counts:
    """The server has closed the connection, and its client is not told; new ones are taken, and never answered."""

    def breaks(scene: Scene) -> None:
        scene.proxy.set(Line(up=False, down=False))
        scene.proxy.forget()

    return _played(bench, seed, kind, breaks)


def in_drips(bench: Bench, seed: int, kind: Kind) -> Counts:
    """The last bytes of each request and of each answer come one by one; the run takes longer, and ends well."""

    def breaks(scene: Scene) -> None:
        scene.proxy.set(Line(singly=scene.rng.randint(1, 200), delay=scene.rng.uniform(0, 0.02)))

    return _played(bench, seed, kind, breaks, ends={"done", "nothing"}, seconds=60)


def _class(name: str, kind: Kind, cases: int, quick: tuple[int, ...], run: Callable[..., Counts]) -> FaultClass:
    return FaultClass(f"{kind} catalog, {name}", (32,), Need.BROKER, cases, quick, partial(run, kind=kind))


CLASSES = (
    _class("refused", Kind.REST, 14, (), refused),
    _class("answer cut", Kind.REST, 14, (4,), answer_cut),
    _class("connection lost", Kind.REST, 7, (), connection_lost),
    _class("in drips", Kind.REST, 7, (), in_drips),
    _class("refused", Kind.POSTGRESQL, 14, (), refused),
    _class("answer cut", Kind.POSTGRESQL, 14, (), answer_cut),
    _class("in drips", Kind.POSTGRESQL, 7, (), in_drips),
)
