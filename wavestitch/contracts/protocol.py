"""The rules that keep head, group and runs in step: reconciling before a plan, and whether a run may still commit.

The same rules as the exhaustive model in `tests/model/protocol.py`. Pure; keeps I4 and I7.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from wavestitch.contracts.errors import Fenced, Refused
from wavestitch.contracts.plan import Plan
from wavestitch.contracts.position import GroupOffset, Head, HeadKind, Position, parse_tag


@dataclass(frozen=True, slots=True)
class Reconciliation:
    """What a plan does about the group before it pins its inputs.

    `adopt`: a new head to commit first (somebody reset the group with Kafka's tools), or None. `project`: whether the
    group's offsets are to be written again. `why`: per partition, one sentence where anything was done.
    """

    adopt: Head | None
    project: bool
    why: Mapping[int, str]


def reconcile(
    head: Head, group: Mapping[int, GroupOffset | None], *, on_reset: Literal["adopt", "refuse"], stream: str
) -> Reconciliation:
    """Compare the group's offsets with the head, partition by partition. Raises `Refused` with the way out.

    `group`: of all partitions of the topic. One that the head does not know yet begins at 0, for a reset, too.
    """
    why: dict[int, str] = {}
    moved: dict[int, Position] = {}
    project = False
    for p in sorted(head.positions.keys() | group.keys()):
        position, found = head.positions.get(p, Position(0)), group.get(p)
        if p not in head.positions and (found is None or parse_tag(found.metadata) is not None):
            continue
        if found is None:
            project = True
            why[p] = "the group's offset had expired or was never written; written again from the head"
        elif (tag := parse_tag(found.metadata)) is not None:
            if tag != head.tag.version or found.offset != position.next_offset:
                project = True
                why[p] = "the group's offset was an older projection; written again from the head"
        elif found.offset > position.next_offset:
            raise Refused(
                f"stream {stream}: the group was set forward to {found.offset} on partition {p}, the head stands at "
                f"{position.next_offset}; offsets {position.next_offset} to {found.offset} would be skipped: accept "
                f"that by name with `wavestitch rewind {stream} --to group --accept-skip --apply`, or go back with "
                f"`wavestitch rewind {stream} --to head --apply`",
                partition=p,
                seen=found.offset,
                head=position.next_offset,
            )
        elif on_reset == "refuse" and found.offset != position.next_offset:
            raise Refused(
                f"stream {stream}: somebody reset the group to {found.offset} on partition {p}, the head stands at "
                f"{position.next_offset}, and the stream says on_reset: refuse; take it over with `wavestitch rewind "
                f"{stream} --to group --apply`, or undo it with `wavestitch rewind {stream} --to head --apply`",
                partition=p,
                seen=found.offset,
                head=position.next_offset,
            )
        else:
            moved[p] = Position(found.offset)
            why[p] = f"the group was reset to {found.offset} with Kafka's tools; taken over as a rewind"
    if not moved:
        return Reconciliation(None, project, why)
    adopted = head.next(
        kind=HeadKind.ADOPTED,
        generation=head.generation + 1,
        positions={**head.positions, **moved},
        note="adopted a reset of the consumer group",
    )
    return Reconciliation(adopted, True, why)


def check_fence(plan: Plan, head: Head, *, base_in_ancestry: bool) -> None:
    """Raises `Fenced` where the head has moved on since the plan; otherwise the run may decide and commit on it."""
    where = f"batch {plan.plan_id[:16]} of stream {plan.stream.name}"
    if not base_in_ancestry:
        raise Fenced(f"{where}: the head it was planned on has left the table's history; plan again")
    if head.generation != plan.generation:
        raise Fenced(
            f"{where}: planned in generation {plan.generation}, the head is in {head.generation} (somebody rewound); "
            "nothing was published, plan again",
            planned=plan.generation,
            head=head.generation,
        )
    if plan.moves_positions:
        planned = {p: at.next_offset for p, at in plan.positions.items()}
        now = {p: at.next_offset for p, at in head.positions.items()}
        if planned != now:
            p = min(p for p in planned.keys() | now.keys() if planned.get(p) != now.get(p))
            raise Fenced(
                f"{where}: partition {p} was planned from {planned.get(p, 'its beginning')}, the head now stands at "
                f"{now.get(p)}; another batch took this range, plan again",
                partition=p,
            )


def may_project(head: Head, group: Mapping[int, GroupOffset | None]) -> bool:
    """Whether a batch may write the group's offsets: never over a tag that is not ours (the next plan adopts that)."""
    return all(found is None or parse_tag(found.metadata) is not None for found in group.values()) and bool(
        head.positions
    )
