"""While a batch stands at a closed gate, no ingest of its stream goes past it: diluted, what was stopped would pass.

Nor does any other batch (a backfill, one of named offsets, an operator's decision) publish what was stopped, wherever
it has it from; what else it has goes on. An operator's decision whose rows closed the gate stops ingests, too. A batch
stands there until it is committed (accepted, or parked), abandoned, or fenced because the stream stands elsewhere now
(a rewind, which says why where it gives one up). That its base has left the table's history settles nothing: then it
cannot be published any more, and goes on standing there until it is abandoned; nor that its folder is gone: the head
names it (`gate_in_head.py`). Decides that, and nothing about the gate itself.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from wavestitch.batch.edges import Edges
from wavestitch.batch.history import History, find_committed, history_of
from wavestitch.batch.request import HOLDS_NOTHING
from wavestitch.contracts.errors import Altered, BadInput, Fenced, NewerFormat, Refused
from wavestitch.contracts.held_choice import HeldAction
from wavestitch.contracts.plan import Plan, PlanKind
from wavestitch.contracts.position import AtGate, Head
from wavestitch.contracts.protocol import check_fence, is_in_history


def asks_the_gate(plan: Plan) -> bool:
    """Whether a plan that moves no positions asks what was stopped before it publishes. Who accepts has an answer to
    that; who discards or restores publishes nothing."""
    if plan.kind is PlanKind.HELD:
        return plan.held_choice is not None and plan.held_choice.action in (HeldAction.REDRIVE, HeldAction.PICK)
    return not plan.moves_positions


def stands_at_its_gate(plan: Plan) -> bool:
    """Whether a plan of this kind bars ingests where its gate closes. A backfill does not: what it would publish it
    reads by itself, and leaves where it is."""
    return plan.moves_positions or plan.kind is PlanKind.HELD


def ways_out(name: str, plan: Plan) -> str:
    """What somebody may say of a plan whose gate is closed. Only what is held can be parked: of a backfill nothing is,
    and what it would leave so the log's retention takes."""
    accept = f"carry the same plan through with `wavestitch run {name} --plan {plan.plan_id} --gate accept --why …`"
    if plan.holds:
        return f"{accept}, or `--gate park` to hold it all"
    return (
        f"{accept}, or give it up with `wavestitch abandon {name} --plan {plan.plan_id} --why …`. It cannot be parked, "
        f"since {HOLDS_NOTHING}"
    )


def refuse_park(name: str, plan: Plan) -> None:
    """Raises `Refused` where somebody wants to park what cannot be held."""
    if not plan.holds:
        raise Refused(
            f"stream {name}: a {plan.kind} batch is not parked. Look at its gate without `--gate`; where it is closed, "
            f"{ways_out(name, plan)}",
            plan_id=plan.plan_id,
        )


def refuse_past_closed_gate(
    edges: Edges,
    *,
    own: str = "",
    answered: bool = False,
    publishes: Collection[str] | None = None,
) -> None:
    """Raises `Refused` where another batch stands at a closed gate. `own`: the plan that asks. Where its gate closed,
    too, and it was `answered` (somebody accepted or parked this very plan), it goes on. That its gate closed once is no
    answer: what could not be judged in time may be judged, by nobody's word. `publishes`: waveform ids, asked for a
    batch that moves no positions; only one that stopped some of them bars it."""
    named = edges.named_at_gate()  # before the folders: who closes its gate writes there first
    closed = _at_gate(edges, named)
    if not closed or (answered and own in {b.plan_id for b in closed}):
        return
    heads = edges.tables.heads()
    barring = _barring([b for b in closed if b.plan_id != own], heads, history_of(edges))
    if publishes is not None:
        barring = [b for b in barring if _stopped_some(edges, b.plan, publishes)]
    if not barring:
        return
    plan = barring[0].plan
    if plan is None:
        raise _folder_gone(edges, barring[0].plan_id, publishes)
    if not is_in_history(plan, heads):
        raise _base_gone(edges, plan)
    run = f"`wavestitch run {edges.name} --plan {plan.plan_id} --gate"
    raise Refused(
        f"stream {edges.name}: batch {plan.plan_id[:16]} stands at a closed gate (look at "
        f"{edges.findings(plan.plan_id)}), and {_barred(publishes)} goes past it: publish it nevertheless with {run} "
        f"accept --why …`, hold it all with {run} park --why …`, or give it up with `wavestitch abandon {edges.name} "
        f"--plan {plan.plan_id} --why …`, {_afterwards(plan)}",
        plan_id=plan.plan_id,
    )


def given_up_by_a_rewind(edges: Edges, base: Head | None) -> tuple[str, ...]:
    """The batches at a closed gate that any rewind fences, as sentences: what they stopped is read again, beside what
    has come since, or is not read at all. `base`: the head that it moves from."""
    barring = _barring(_at_gate(edges, base.at_gate), [base], history_of(edges)) if base is not None else []
    return tuple(
        f"batch {b.plan_id[:16]}, which stands at a closed gate (look at {edges.findings(b.plan_id)}), is given up by "
        f"this, {_afterwards(b.plan)}"
        for b in barring
    )


def refuse_giving_up_unsaid(edges: Edges, base: Head | None, why: str) -> None:
    """Raises `Refused` where a rewind would let a closed gate fall and nobody says why, as `abandon` asks, too."""
    given_up = given_up_by_a_rewind(edges, base)
    if given_up and not why.strip():
        raise Refused(f"stream {edges.name}: {'; '.join(given_up)}. Say that with --why: it is recorded")


@dataclass(frozen=True, slots=True)
class _AtGate:
    """`plan`: None where the head names a batch whose folder nobody can read."""

    plan_id: str
    plan: Plan | None


def _at_gate(edges: Edges, named: Sequence[AtGate]) -> list[_AtGate]:
    """By the landing, and by the head: what one has lost the other one knows."""
    found = {plan.plan_id: _AtGate(plan.plan_id, plan) for plan in edges.closed_gates()}
    for batch in named:
        if batch.plan_id in found:
            continue
        try:
            found[batch.plan_id] = _AtGate(batch.plan_id, edges.plan(batch.plan_id))
        except NewerFormat:
            raise
        except Fenced:
            continue  # abandoned
        except (Altered, BadInput):
            found[batch.plan_id] = _AtGate(batch.plan_id, None)
    return [found[plan_id] for plan_id in sorted(found)]


def _stopped_some(edges: Edges, plan: Plan | None, publishes: Collection[str]) -> bool:
    stopped = None if plan is None else edges.stopped(plan)
    # Where nobody can say any more what it stopped, it may have been any of these.
    return stopped is None or not stopped.isdisjoint(publishes)


def _barred(publishes: Collection[str] | None) -> str:
    return "no ingest" if publishes is None else "no batch that would publish what it stopped"


def _afterwards(plan: Plan | None) -> str:
    if plan is None:
        return "after which what it is about is read, or decided on, together with what has come since"
    if plan.choice is not None:
        return "after which what it is about stays held as it was"
    return "after which its offsets are read together with what has come since"


def _base_gone(edges: Edges, plan: Plan) -> Refused:
    return Refused(
        f"stream {edges.name}: batch {plan.plan_id[:16]} stands at a closed gate (look at "
        f"{edges.findings(plan.plan_id)}), and no ingest goes past it. The head it was planned on has left the table's "
        f"history, so that it can be neither published nor held: give it up with `wavestitch abandon {edges.name} "
        f"--plan {plan.plan_id} --why …`, {_afterwards(plan)}",
        plan_id=plan.plan_id,
    )


def _folder_gone(edges: Edges, plan_id: str, publishes: Collection[str] | None) -> Refused:
    return Refused(
        f"stream {edges.name}: batch {plan_id[:16]} stands at a closed gate, as the head says; its plan is not in the "
        f"landing, or cannot be read, and {_barred(publishes)} goes past it: put the landing back as it was (or the "
        f"setting `landing`), then accept or park it, or give it up with `wavestitch abandon {edges.name} --plan "
        f"{plan_id} --why …`, {_afterwards(None)}",
        plan_id=plan_id,
    )


def _barring(closed: Sequence[_AtGate], heads: Sequence[Head], history: History) -> list[_AtGate]:
    """Those that bar others and that the stream has not gone on without."""
    if not heads:
        return []
    return [b for b in closed if _bars(b.plan, heads[0]) and find_committed(history, b.plan_id) is None]


def _bars(plan: Plan | None, head: Head) -> bool:
    """By the very rule that would fence it; one that the head alone knows is not fenced, or it would not name it."""
    if plan is None:
        return True
    if not stands_at_its_gate(plan):
        return False
    try:
        check_fence(plan, head, base_in_ancestry=True)
    except Fenced:
        return False
    return True
