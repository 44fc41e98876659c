"""What an operator does to a stream beside its batches: undoes one, and decides about what is held (row 33)."""

from __future__ import annotations

from contextlib import suppress

from spark_apps.in_process import stitch_here
from tests.deployment_rig import STREAM
from tests.faults.broker_faults_case import BETWEEN, Case, play
from tests.faults.fault_class import Bench, Counts, FaultClass, Need
from tests.faults.in_process import read_here
from wavestitch.batch.deployment_edges import DeploymentEdges
from wavestitch.batch.held_decision import HeldPreview, carry_out, plan_held
from wavestitch.batch.held_waveforms import Selection
from wavestitch.batch.rewind import apply_rewind
from wavestitch.batch.take_back import TakingBack
from wavestitch.batch.undo import committed_stages, plan_undo
from wavestitch.contracts.errors import Fenced, Refused, Terminal
from wavestitch.contracts.held_choice import HeldAction

_BEHIND_THE_COMMIT = ("publish", "commit_offsets")


def undone_under_a_run(bench: Bench, seed: int) -> Counts:
    """The newest batch is undone at every boundary of another one: that one is fenced, or is what is undone; nothing
    that was published comes twice, and what was undone is read again."""

    def act(case: Case) -> None:
        case.produce()
        case.run()
        case.produce()
        step = BETWEEN[seed % len(BETWEEN)]
        ended = case.run(between={step: lambda: _undo(case)})
        if step in _BEHIND_THE_COMMIT:
            assert ended.word == "done", ended
        else:
            assert isinstance(ended.error, Fenced), ended
        again = case.run(plan_id=ended.plan_id)
        assert isinstance(again.error, Fenced) or again.result["published"]["again"], again
        if case.rng.random() < 0.5:
            _undo(case)  # of the undo, where no batch went on since

    return play(bench, seed, act)


def decided_under_a_run(bench: Bench, seed: int) -> Counts:
    """What lacks a chunk is discarded at every boundary of the batch that brings it, and restored after that: then it
    is whole, and a redrive publishes it once."""

    def act(case: Case) -> None:
        chunks = case.make()
        withheld = [c for c in chunks if case.rng.random() < 0.3] or chunks[:1]
        case.ledger.send(case.lay_out([c for c in chunks if c not in withheld]))
        case.run()
        case.ledger.send(case.lay_out(withheld))
        open_ones = tuple(sorted({c.waveform_id for c in withheld}))
        step = BETWEEN[seed % len(BETWEEN)]
        ended = case.run(between={step: lambda: _decide(case, HeldAction.DISCARD, open_ones)})
        assert ended.word == "done" or isinstance(ended.error, (Fenced, Terminal)), ended
        case.settle()
        for action in (HeldAction.RESTORE, HeldAction.REDRIVE):
            _decide(case, action, open_ones)
        missing = {c.waveform_id for c in chunks} - case.whole.published().keys()
        assert not missing, f"whole in the log, restored, and not published: {sorted(missing)}"

    return play(bench, seed, act)


def _undo(case: Case) -> None:
    """What the newest head came from."""
    edges = _edges(case)
    with case.witness.run("an undo"):
        found = plan_undo(edges, committed_stages(edges), who="a test", why="to go on")
        assert not isinstance(found, (HeldPreview, TakingBack)), found
        apply_rewind(edges.stream, found, accept_skip=True, log=edges.log, tables=edges.tables)


def _decide(case: Case, action: HeldAction, ids: tuple[str, ...]) -> None:
    """Of these what is held; where nothing is, or nothing that this would change, it is refused."""
    edges = _edges(case)
    with case.witness.run(f"a {action}"), suppress(Refused):
        carry_out(edges, plan_held(edges, action, Selection(ids=ids), who="a test", why="it came late").plan)


def _edges(case: Case) -> DeploymentEdges:
    return DeploymentEdges(case.whole.deployment, STREAM, read=read_here, submit=stitch_here)


CLASSES = (
    FaultClass("undone under a run", (33,), Need.BROKER, 12, (4,), undone_under_a_run),
    FaultClass("decided under a run", (33,), Need.BROKER, 12, (3,), decided_under_a_run),
)
