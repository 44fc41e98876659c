"""Waveforms that a batch of a backfill read chunks of and did not publish: what the other batches of it have to know.

A waveform is decided on all copies that the backfill has read of it, wherever its cuts lie: a batch leaves what it has
whole where an earlier one read a copy that says something else (`say_no_more`), and what several have together is read
together by one at the end. So of a contradiction no copy is taken, save that a batch which has a waveform whole
before the backfill meets another copy publishes it, as ingests do. Pure.

Memory: what is kept of a batch is some 300 bytes for each chunk that it reports; a batch looks at those of one other at
a time, and only whoever reads across the cuts has those of all.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace

from wavestitch.contracts.assembly import ChunkFacts
from wavestitch.contracts.copies import Copy, contradict
from wavestitch.contracts.decided import Decision
from wavestitch.contracts.offset_range import OffsetRange, joined
from wavestitch.contracts.plan import Plan
from wavestitch.contracts.quantities import Offset
from wavestitch.contracts.reasons import Fate, Reason
from wavestitch.contracts.versioned import Versioned


@dataclass(frozen=True, slots=True)
class Part:
    """What a batch has read of a waveform that it owns and does not publish, and why it does not."""

    waveform_id: str
    reasons: tuple[Reason, ...]
    copies: tuple[Copy, ...]


@dataclass(frozen=True, slots=True)
class Parts:
    plan_id: str
    parts: tuple[Part, ...]


PARTS = Versioned(Parts, "what a batch has read of waveforms across its cuts", "backfill the interval again")


def parts_of(plan: Plan, decision: Decision) -> Parts:
    """Of the waveforms in the plan's scope, those that this decision reports. What somebody discarded is no part of
    anything."""
    reasons: dict[str, set[Reason]] = defaultdict(set)
    copies: dict[str, list[Copy]] = defaultdict(list)
    for c, fate, reason, _ in decision.fates.others if plan.scope is not None else ():
        if c.reason is not None or c.waveform_id is None or c.carried or reason is Reason.DISCARDED:
            continue
        if fate is Fate.REPORTED and reason is not None:
            reasons[c.waveform_id].add(reason)
        if fate in (Fate.REPORTED, Fate.DUPLICATE):
            copies[c.waveform_id].append(Copy.made(c))
    found = (Part(i, tuple(sorted(why)), tuple(copies[i])) for i, why in sorted(reasons.items()))
    return Parts(plan.plan_id, tuple(found))


def copies_elsewhere(earlier: Iterable[Parts], ids: Collection[str]) -> dict[str, tuple[Copy, ...]]:
    """What the earlier batches of a backfill have read, of these waveforms."""
    found: dict[str, tuple[Copy, ...]] = {}
    for parts in earlier:
        for part in parts.parts:
            if part.waveform_id in ids:
                found[part.waveform_id] = (*found.get(part.waveform_id, ()), *part.copies)
    return found


@dataclass(frozen=True, slots=True)
class AcrossCuts:
    """What the batches of a backfill have of waveforms that none of them published. `together`: where the chunks lie of
    those that they have whole together; `lacking`: ids of those that lack some; `contradicted`: copies of which say
    different things, of each other or of what is held or published."""

    together: Mapping[str, tuple[OffsetRange, ...]] = field(default_factory=dict)
    lacking: tuple[str, ...] = ()
    contradicted: tuple[str, ...] = ()
    copies: Mapping[str, tuple[Copy, ...]] = field(default_factory=dict)

    def beside(self, held: Iterable[ChunkFacts]) -> AcrossCuts:
        """The same with what is held of those that lack some: whoever reads the rest has that, too."""
        known: dict[str, list[Copy]] = defaultdict(list)
        for c in held:
            known[c.waveform_id or ""].append(Copy.made(c))
        whole = {i: _places(self.copies[i]) for i in self.lacking if _is_whole([*self.copies[i], *known[i]])}
        return replace(
            self,
            together={**self.together, **whole},
            lacking=tuple(i for i in self.lacking if i not in whole),
        )


def across_cuts(parts: Iterable[Parts]) -> AcrossCuts:
    by_id: dict[str, list[Part]] = defaultdict(list)
    for batch in parts:
        for part in batch.parts:
            by_id[part.waveform_id].append(part)
    together, lacking, contradicted, all_copies = {}, [], [], {}
    for waveform_id, mine in sorted(by_id.items()):
        copies = all_copies[waveform_id] = tuple(sorted({c for part in mine for c in part.copies}, key=lambda c: c[:2]))
        why = {reason for part in mine for reason in part.reasons}
        if Reason.CONFLICT in why or contradict(copies):
            contradicted.append(waveform_id)
        elif len(mine) > 1 and _is_whole(copies):
            together[waveform_id] = _places(copies)
        elif Reason.OPEN in why:
            lacking.append(waveform_id)
    return AcrossCuts(together, tuple(lacking), tuple(contradicted), all_copies)


def _places(copies: Iterable[Copy]) -> tuple[OffsetRange, ...]:
    return tuple(joined(OffsetRange(c.partition, c.offset, Offset(c.offset + 1)) for c in copies))


def _is_whole(copies: Collection[Copy]) -> bool:
    return any({c.seq for c in copies} == set(range(of)) for of in {c.of for c in copies if c.of is not None})
