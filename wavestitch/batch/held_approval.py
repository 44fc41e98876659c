"""A decision about what is held in three acts: previewed and kept, approved of by somebody, carried through.

What is carried through is the very plan that was previewed, these chunks of these waveforms and no others, under the
names of whoever asked and whoever approved. It holds after an ingest in between that leaves those as they were; where
one was added to, decided on or published, where the stream's definition changed, after a rewind, where it was rejected
or is too old, it is void.
"""

from __future__ import annotations

from dataclasses import replace

from wavestitch.batch.closed_gate import asks_the_gate, refuse_past_closed_gate
from wavestitch.batch.edges import Edges
from wavestitch.batch.held_decision import HeldPreview, plan_held, refuse_others
from wavestitch.batch.held_waveforms import Selection
from wavestitch.batch.last_definition import refuse_torn
from wavestitch.batch.preview_answer import refuse_dead_preview
from wavestitch.batch.promote import refuse_changed, refuse_taken_back
from wavestitch.batch.steps import finished
from wavestitch.batch.walk import Walk
from wavestitch.contracts.batch_stages import KeepPlan
from wavestitch.contracts.errors import Fenced, Refused
from wavestitch.contracts.held_choice import HeldAction, HeldChoice
from wavestitch.contracts.plain_text import name_of_person
from wavestitch.contracts.plan import Plan
from wavestitch.contracts.promotion import Promotion
from wavestitch.contracts.quantities import NONE_YET


def preview_held(
    edges: Edges, action: HeldAction, wanted: Selection, *, who: str, why: str, pick: str = "", everything: bool = False
) -> HeldPreview:
    """What the decision would do, its plan kept under its id; changes nothing."""
    found = plan_held(edges, action, wanted, who=who, why=why, pick=pick, everything=everything)
    edges.keep_decision(found.plan)
    return found


def begin_approved(edges: Edges, plan_id: str, *, by: str) -> Plan:
    """The plan that was previewed, begun as a batch. `by`: who approved of it; done again it is the same batch. Raises
    `Refused` or `Fenced` where it is void, and `Refused` where it was done, and what it did stands no more."""
    kept = edges.decision(plan_id)
    plan = replace(kept, choice=_approved(kept, by)).sealed()
    done = finished(edges, plan.plan_id)
    if done is None:
        _refuse_void(edges, kept)
        if plan.choice is not None and asks_the_gate(plan):
            refuse_past_closed_gate(edges, publishes=plan.choice.ids)
    elif plan.promotion is not None:
        refuse_taken_back(edges, plan.promotion, done.published.sequence)
    Walk(edges.stream, edges.log, edges.tables, begin=edges.begin)(KeepPlan(plan))
    return plan


def _refuse_void(edges: Edges, kept: Plan) -> None:
    refuse_dead_preview(edges, kept.plan_id, made_ms=kept.clock_ms)
    head = edges.tables.head()
    now = NONE_YET if head is None else head.generation
    if now != kept.generation:
        raise Fenced(
            f"stream {edges.name}: somebody rewound since this decision was previewed (generation {kept.generation} is "
            f"{now} now). Nothing was changed; preview it again"
        )
    _refuse_other_definition(edges, kept)
    refuse_torn(edges.stream, edges.tables)
    if kept.promotion is not None:
        refuse_changed(edges, kept, kept.promotion)
    if kept.held_choice is not None:
        refuse_others(edges, kept.held_choice)


def _refuse_other_definition(edges: Edges, kept: Plan) -> None:
    shown, said = kept.stream, edges.stream
    others = sorted(f for f in type(said).model_fields if getattr(shown, f) != getattr(said, f))
    if others:
        raise Refused(
            f"stream {edges.name}: its definition says otherwise of {', '.join(others)} than when this decision was "
            "previewed, and a decision is made by the one that was shown. Nothing was changed; preview it again"
        )


def _approved(kept: Plan, by: str) -> HeldChoice | Promotion:
    choice = kept.choice
    assert choice is not None, "a kept decision decides something"
    approver = name_of_person(by)
    return choice if approver == choice.who else replace(choice, who=f"{choice.who}, approved by {approver}")
