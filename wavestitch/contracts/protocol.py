"""The rules that keep head, group and runs in step: reconciling before a plan, and whether a run may still commit.

The same rules as the exhaustive model in `tests/model/rules.py`. Pure; keeps I4 and I7.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from wavestitch.contracts.accepted_skip import accepting
from wavestitch.contracts.disagreement import find_disagreement
from wavestitch.contracts.errors import Fenced, Refused
from wavestitch.contracts.offset_range import OffsetRange
from wavestitch.contracts.plan import Plan
from wavestitch.contracts.ports import PartitionEnds
from wavestitch.contracts.position import GroupOffset, Head, HeadKind, Position, is_believable, is_ours, parse_tag
from wavestitch.contracts.quantities import Offset, Partition, following


@dataclass(frozen=True, slots=True)
class Reconciliation:
    """What a plan does about the group before it pins its inputs.

    `adopt`: a new head to commit first (somebody reset the group with Kafka's tools), or None. `project`: whether the
    group's offsets are to be written again. `why`: per partition, one sentence where anything was done.
    """

    adopt: Head | None
    project: bool
    why: Mapping[Partition, str]


def reconcile(
    head: Head, group: Mapping[Partition, GroupOffset | None], *, on_reset: Literal["adopt", "refuse"], stream: str
) -> Reconciliation:
    """Compare the group's offsets with the head, partition by partition. Raises `Refused` with the way out.

    `group`: of all partitions of the topic, its tags free of disagreement (`find_disagreement` comes first). A
    partition that the head does not know yet begins at 0, for a reset, too.
    """
    why: dict[Partition, str] = {}
    moved: dict[Partition, Position] = {}
    project = False
    known = {p: head.positions.get(p, Position(Offset(0))).next_offset for p in head.positions.keys() | group.keys()}
    for p, position in sorted(known.items()):
        found = group.get(p)
        if p not in head.positions and (found is None or is_ours(found.metadata)):
            continue
        if found is None:
            project = True
            why[p] = "the group's offset had expired or was never written; written again from the head"
        elif (tag := parse_tag(found.metadata)) is not None:
            if tag.version != head.version or found.offset != position:
                project = True
                why[p] = "the group's offset was an older projection; written again from the head"
        else:
            moved[p] = Position(found.offset)
            why[p] = f"the group was reset to {found.offset} with Kafka's tools; taken over as a rewind"
    _refuse_forward({p: (known[p], at.next_offset) for p, at in moved.items()}, everything=known, stream=stream)
    if on_reset == "refuse":
        # Set to where the head stands already: nothing to ask anybody about.
        _refuse_reset({p: (known[p], at.next_offset) for p, at in moved.items()}, everything=known, stream=stream)
    if not moved:
        return Reconciliation(None, project, why)
    adopted = head.next(
        kind=HeadKind.ADOPTED,
        generation=following(head.generation),
        positions={**head.positions, **moved},
        note="adopted a reset of the consumer group",
    )
    return Reconciliation(adopted, True, why)


def moved_position(to: Offset, *, was: Position | None, here: PartitionEnds) -> Position:
    """A position that somebody set, with the leader epoch by which a log that is cut off below it is found out.

    Forward, and at the log's beginning, before which nothing that was written anew can lie, it is the epoch of now.
    Back it is the one that was: the log may have been cut off below already, and nothing else shows that.
    """
    epoch = here.leader_epoch
    if was is not None and was.leader_epoch is not None and here.log_start < to <= was.next_offset:
        epoch = was.leader_epoch
    return Position(to, leader_epoch=epoch)


def still_skipped(skipped: Iterable[OffsetRange], moved: Mapping[Partition, Offset]) -> tuple[OffsetRange, ...]:
    """What stays given up where these partitions go there: what lies behind is read again, and has to be kept again."""
    kept = (r._replace(end=min(r.end, moved.get(r.partition, r.end))) for r in skipped)
    return tuple(r for r in kept if r.size > 0)


def named(partitions: Collection[Partition], word: str, *, everything: Collection[Partition]) -> str:
    """`word`, as the target of a rewind of these partitions alone: `2:earliest`."""
    return word if set(partitions) >= set(everything) else ",".join(f"{p}:{word}" for p in sorted(partitions))


def _refuse_forward(
    moved: Mapping[Partition, tuple[Offset, Offset]], *, everything: Collection[Partition], stream: str
) -> None:
    ahead = {p: move for p, move in moved.items() if move[1] > move[0]}
    if not ahead:
        return
    p, (position, to) = min(ahead.items())
    skipped = [OffsetRange(partition, *move) for partition, move in sorted(ahead.items())]
    raise Refused(
        f"stream {stream}: the group was set forward to {to} on partition {p}, the head stands at {position}; offsets "
        f"{position} to {to} would be skipped{_others(ahead)}: accept that by name with `wavestitch rewind {stream} "
        f"--to {named(ahead, 'group', everything=everything)}{accepting(skipped)} --apply`, or go back with "
        f"`wavestitch rewind {stream} --to {named(ahead, 'head', everything=everything)} --apply`",
        partition=p,
        seen=to,
        head=position,
    )


def _refuse_reset(
    moved: Mapping[Partition, tuple[Offset, Offset]], *, everything: Collection[Partition], stream: str
) -> None:
    elsewhere = {p: move for p, move in moved.items() if move[1] != move[0]}
    if not elsewhere:
        return
    p, (position, to) = min(elsewhere.items())
    raise Refused(
        f"stream {stream}: somebody reset the group to {to} on partition {p}, the head stands at {position}"
        f"{_others(elsewhere)}, and the stream says on_reset: refuse; take it over with `wavestitch rewind {stream} "
        f"--to {named(elsewhere, 'group', everything=everything)} --apply`, or undo it with `wavestitch rewind "
        f"{stream} --to {named(elsewhere, 'head', everything=everything)} --apply`",
        partition=p,
        seen=to,
        head=position,
    )


def _others(partitions: Mapping[Partition, object]) -> str:
    more = sorted(partitions)[1:]
    return f" (and likewise on {', '.join(map(str, more))})" if more else ""


def is_in_history(plan: Plan, heads: Sequence[Head]) -> bool:
    """Whether the head that it was planned on still is one of these, the table's."""
    return any(h.sequence == plan.base_sequence and h.snapshot_id == plan.base_snapshot for h in heads)


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


def may_project(head: Head, group: Mapping[Partition, GroupOffset | None], *, table: str | None) -> bool:
    """Whether a batch may write the group's offsets: never over a foreign tag (the next plan adopts that), nor over one
    of another table or of a newer head."""
    foreign = any(found is not None and not is_ours(found.metadata) for found in group.values())
    return bool(head.positions) and not foreign and find_disagreement(head, group, table=table) is None


def left_alone(
    head: Head,
    group: Mapping[Partition, GroupOffset | None],
    *,
    table: str | None,
    answered: Mapping[Partition, GroupOffset | None],
) -> set[Partition]:
    """The partitions that this head is not written over, as the group stands right before: all of them where it shows
    a newer head, or what a copy of this table has made beside this one, and otherwise those that somebody has reset, or
    another table has written, unless that is what this head is the answer to."""
    tags = {p: parse_tag(found.metadata) for p, found in group.items() if found is not None}
    mine = {p for p, tag in tags.items() if tag is not None and tag.table == table and is_believable(tag, head)}
    if find_disagreement(head, {p: group[p] for p in mine}, table=table) is not None:
        return set(head.positions)
    others = {p for p, found in group.items() if found is not None and not _is_of(found.metadata, table)}
    return {p for p in others if p not in answered or group[p] != answered[p]}


def _is_of(metadata: str, table: str | None) -> bool:
    tag = parse_tag(metadata)
    return is_ours(metadata) and (tag is None or tag.table == table)
