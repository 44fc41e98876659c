"""Where the group's own tags and the catalog contradict each other: which of the two is not what it was?

A tag of ours names table, generation and sequence. It proves that this head was committed once. A catalog that does not
have it was lost, set back, forked, or is not the one that the group belongs to: then neither side is believed before
somebody says so by name. Pure; keeps I1 and I7. `tests/model/rules.py` has the same rules.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from wavestitch.contracts.errors import Refused
from wavestitch.contracts.position import FURTHEST, GroupOffset, Head, Tag, is_believable, is_ours, parse_tag
from wavestitch.contracts.quantities import NONE_YET, Generation, Offset, Partition, following

SETTLING = frozenset({"start-over", "group", "head", "rebuilt"})
"""Targets of a rewind that settle a disagreement; every other one is refused while it stands."""
_HEADS_BETWEEN = 1000


class Doubt(StrEnum):
    """What a tag of ours says against the catalog."""

    LOST = "lost"
    EXPIRED = "expired"
    ANOTHER = "another table"
    RESTORED = "restored"
    FORKED = "forked"
    UNREADABLE = "unreadable"


@dataclass(frozen=True, slots=True)
class Disagreement:
    """The first partition whose tag contradicts the head; `tag` None where it is of another version of wavestitch."""

    doubt: Doubt
    partition: Partition
    offset: Offset
    tag: Tag | None


def find_disagreement(
    head: Head | None, group: Mapping[Partition, GroupOffset | None], *, table: str | None
) -> Disagreement | None:
    """`table`: the UUID of the published table, None where there is none; `head`: its newest."""
    for p in sorted(group):
        found = group[p]
        if found is None or not is_ours(found.metadata):
            continue
        tag = parse_tag(found.metadata)
        doubt = (
            Doubt.UNREADABLE if tag is None else _doubt(head, partition=p, offset=found.offset, tag=tag, table=table)
        )
        if doubt is not None:
            return Disagreement(doubt, p, found.offset, tag)
    return None


def _doubt(head: Head | None, *, partition: Partition, offset: Offset, tag: Tag, table: str | None) -> Doubt | None:
    if head is None:
        return Doubt.EXPIRED if tag.table == table else Doubt.LOST
    if tag.table != table:
        return Doubt.ANOTHER
    if not is_believable(tag, head):
        return Doubt.UNREADABLE
    if tag.version > head.version:
        return Doubt.RESTORED
    position = head.positions.get(partition)
    if tag.generation != head.generation:
        return None
    # Within a generation positions only grow, in number, too, and one head has one set of them.
    if position is None:
        return Doubt.FORKED
    same = tag.version == head.version and offset != position.next_offset
    return Doubt.FORKED if same or offset > position.next_offset else None


def next_generation(
    head: Head | None, group: Mapping[Partition, GroupOffset | None], *, table: str | None
) -> Generation:
    """Beyond the head's and beyond every tag of this table that one of its heads can have, so that whatever a set back
    catalog once had is older."""
    tags = [parse_tag(found.metadata) for found in group.values() if found is not None]
    # A little further than others believe: what is not followed stays unbelievable beside the head that comes next.
    within = FURTHEST + _HEADS_BETWEEN
    known = [t.generation for t in tags if t is not None and t.table == table and is_believable(t, head, within=within)]
    return following(max([NONE_YET if head is None else head.generation, *known]))


def refuse_disagreement(found: Disagreement, *, stream: str, group: str, head: Head | None) -> Refused:
    """The refusal, with every way out."""
    tag = found.tag
    shown = (
        "carries a tag of another version of wavestitch"
        if tag is None
        else f"shows head {tag.sequence} of generation {tag.generation} of table {tag.table}"
    )
    here = "no head" if head is None else f"head {head.sequence} of generation {head.generation}"
    rewind = f"`wavestitch rewind {stream}"
    over = f"begin anew from the log with {rewind} --to start-over --apply` (what is published here is recognised)"
    on = f"go on where the group stands with {rewind} --to group --apply`, which says first what is not read then"
    anew = "register the tables again from their newest metadata files (docs/operations.md, A catalog that is gone)"
    stay = f"go on where this table stands with {rewind} --to head --apply` (what it has not seen is read again)"
    said = {
        Doubt.LOST: "the catalog was lost, is another one than before, or another deployment uses this group: set "
        f"`tables` right, or give the stream a group of its own; if the catalog is gone for good, {anew}; or "
        f"{over}, or {on}",
        Doubt.EXPIRED: "the snapshot that carried it was expired by somebody else's tool: look at what is left with "
        f"{rewind} --to rebuilt`, then add --apply; or {over}, or {on}",
        Doubt.ANOTHER: "two deployments share the group, or the catalog is another one than before: set `tables` "
        f"right, or give one of them a group of its own; if the other table is no more, {anew}, or "
        f"{stay}, {over}, or {on}",
        Doubt.RESTORED: "the catalog was set back (a restored backup?), so what was published since is not in it: "
        f"bring the newer one back, or {anew}; or {stay}, {over}, or {on}",
        Doubt.FORKED: "two copies of this table are written to: stop the one that is not meant, then "
        f"{stay}, {over}, or {on}",
        Doubt.UNREADABLE: "if another version of wavestitch wrote it, use that one; if nobody did, look who may commit "
        f"offsets of the group; then {stay}, {over}, or {on}",
    }[found.doubt]
    return Refused(
        f"stream {stream}: partition {found.partition} of group {group} {shown} (offset {found.offset}), the catalog "
        f"has {here}: {said}",
        doubt=found.doubt.value,
        partition=found.partition,
        seen=found.offset,
    )
