"""The rules of the protocol, one pure function each, so that the product's can be held against them.

`dropped` names a rule that is left out: a mutant, which the exploration must find out.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from tests.model.world import Copies, Group, Groups, Head, Held, Made, Place, Run, World

BLOCKED = ("conflict", "parked")
"""What only an operator's decision changes; of what was discarded, see `blocked_by`."""


# The group against the catalog.


def reconciles(head: Head, groups: Groups) -> str:
    """What a plan does about the group: `adopt` a foreign tag, `project` over a lost or stale one, or nothing."""
    if any(g.offset is not None and g.tag is None for g in groups):
        return "adopt"
    stands = zip(groups, head.positions, strict=True)
    return "project" if any(g.offset is None or (g.tag, g.offset) != (head.version, at) for g, at in stands) else ""


def doubted(head: Head, groups: Groups, *, dropped: str = "") -> str:
    """What the first tag of ours that contradicts the catalog says against it; empty where they agree."""
    looked_at = groups[:1] if dropped == "only-the-first-partition-is-asked" else groups
    return next((d for p, g in enumerate(looked_at) if (d := _doubted(head, g, head.positions[p], dropped))), "")


def _doubted(head: Head, group: Group, position: int, dropped: str) -> str:
    if group.tag is None or group.offset is None:
        return ""
    table, generation, sequence = group.tag
    if table != head.table:
        # A catalog that was lost has another table, or none yet.
        return "" if dropped == "any-table-is-ours" else "another table"
    if (generation, sequence) > (head.generation, head.sequence):
        return "" if dropped == "newer-is-older" else "restored"
    if generation != head.generation or dropped == "forks-pass":
        return ""
    same = sequence == head.sequence and group.offset != position
    return "forked" if same or group.offset > position else ""


def next_generation(head: Head, groups: Groups) -> int:
    """Beyond the head's and beyond every tag of this table."""
    known = [g.tag[1] for g in groups if g.tag is not None and g.tag[0] == head.table]
    return max([head.generation, *known]) + 1


def fenced(run: Run, head: Head, *, dropped: str = "") -> bool:
    """Whether a run's head has moved on: another generation, or for an ingest another position."""
    rewound = head.generation != run.generation and dropped != "no-generation"
    elsewhere = run.catalog != head.catalog
    stands = list(zip(head.positions, run.starts, run.ends, strict=True))
    if dropped == "the-fence-asks-what-is-read-only":
        stands = [(at, start, end) for at, start, end in stands if end > start]
    moved = any(at != start for at, start, _ in stands) and dropped != "no-start-check"
    return elsewhere or rewound or (run.moves and moved)


def projects(head: Head, groups: Groups, *, dropped: str = "") -> bool:
    """Whether a batch may write the group: never over a foreign tag, nor one that contradicts the catalog."""
    foreign = any(g.offset is not None and g.tag is None for g in groups)
    return not foreign and not doubted(head, groups, dropped=dropped)


def barred(stopped: Iterable[Run], head: Head, *, own: int = 0) -> bool:
    """Whether a batch stands at a closed gate, so that no ingest but its own goes past it."""
    standing = [run.number for run in stopped if run.moves and not fenced(run, head)]
    return bool(standing) and own not in standing


def asks_the_gate(run: Run) -> bool:
    """Whether a run that moves no positions asks what was stopped before it publishes: who accepts has an answer to
    that, and who discards or restores publishes nothing."""
    return run.choice is None or run.choice.action in ("redrive", "pick")


def stopped_some(stopped: Iterable[Run], head: Head, waveforms: Iterable[str]) -> bool:
    """Whether one of these is among what a batch was stopped with that stands at its gate: then it passes by nobody
    else, wherever that has it from."""
    standing = [run for run in stopped if barred([run], head)]
    return any(run.stopped_with & set(waveforms) for run in standing)


# The log's beginning, which moves on.


def overtaken(starts: Sequence[int], places: Mapping[int, int]) -> dict[int, int]:
    """Of these places, by partition, those that the log has no more: where it begins now."""
    return {p: starts[p] for p, at in places.items() if at < starts[p]}


def reset_to(groups: Groups) -> dict[int, int]:
    """Where somebody has set the group, by partition."""
    return {p: g.offset for p, g in enumerate(groups) if g.offset is not None and g.tag is None}


def behind_the_cut(head: Head, groups: Groups, starts: Sequence[int]) -> dict[int, int]:
    """Where whoever accepts the loss by name goes on: partitions that retention has overtaken, or that somebody has set
    to what it took."""
    return overtaken(starts, dict(enumerate(head.positions))) | overtaken(starts, reset_to(groups))


# What a batch decides.


def blocked_by(mine: Iterable[Held], *, dropped: str = "") -> str:
    """Why nothing but an operator's decision changes this waveform; empty where a batch may decide afresh."""
    reasons = {h.reason for h in mine}
    for reason in BLOCKED:
        if reason in reasons and dropped != f"what-is-{reason}-is-decided-afresh":
            return reason
    return "discarded" if reasons == {"discarded"} else ""


def held_of(world: World, head: Head, waveform: str) -> list[Held]:
    return sorted(h for h in head.held if world.at(h.place).waveform == waveform)


class Deciding:
    """What a run makes of a head: `publish`, and `held`, all the rows that count after it."""

    def __init__(
        self, world: World, run: Run, head: Head, *, found: Iterable[Place] | None = None, dropped: str = ""
    ) -> None:
        """`found`: what it reads; all that it planned unless given."""
        self.world, self.run, self.head, self.dropped = world, run, head, dropped
        self.publish: dict[str, Copies] = {}
        self.held = {h.place: h for h in head.held}
        if run.choice is not None:
            self._choose(run.choice.action, run.choice.waveform)
        read: dict[str, list[Place]] = {}
        for place in run.places if found is None else found:
            read.setdefault(world.at(place).waveform, []).append(place)
        for waveform, places in sorted(read.items()):
            self._take_up(waveform, places, held_of(world, head, waveform))
        self._release()

    def _take_up(self, waveform: str, read: list[Place], mine: list[Held]) -> None:
        known = self.head.bytes_of.get(waveform)
        new = [p for p in read if p not in self.held]
        gone = self._identities(h.place for h in mine if h.reason == "discarded")
        if known is not None and self.dropped != "publish-replays":
            bytes_known = {(waveform, seq, copy) for seq, copy in enumerate(known)}
            self._set_aside([p for p in new if self.world.at(p) not in bytes_known | gone], "conflict")
            self._set_aside([h.place for h in mine if h.reason == "open"], "conflict")
        elif (reason := blocked_by(mine, dropped=self.dropped)) != "":
            there = set() if reason == "conflict" else self._identities(h.place for h in mine)
            if self.dropped == "tombstones-do-not-count" and reason == "discarded":
                self._assemble(waveform, read)
            else:
                self._set_aside([p for p in new if self.world.at(p) not in there], reason)
                self._set_aside([h.place for h in mine if h.reason == "open"], reason)
        else:
            if self.dropped == "tombstones-do-not-count":
                gone = set()
            pool = [h.place for h in mine if h.reason != "discarded"]
            self._assemble(waveform, pool + [p for p in new if self.world.at(p) not in gone])

    def _assemble(self, waveform: str, pool: Sequence[Place], *, accepted: bool = False) -> None:
        """Of equal copies the one that is held already is the piece, then the first by place."""
        best: dict[tuple[str, int, str], Place] = {}
        for place in sorted(pool, key=lambda p: (p not in self.held, p)):
            best.setdefault(self.world.at(place), place)
        if not best:
            return
        # A repeat that is held already stays, beside its piece.
        kept = {*best.values(), *(p for p in pool if p in self.held)}
        copies = {r.seq: r.copy for r in sorted(map(self.world.at, best.values()), reverse=True)}
        takes_first = self.dropped == "of-a-conflict-the-first-is-taken" or (
            self.dropped == "accept-takes-conflicts" and accepted
        )
        if len(copies) < len(best) and not takes_first:
            # Of a conflict every copy is kept, one will be picked.
            self._set_aside(pool, "conflict")
        elif len(copies) < self.world.chunks[waveform]:
            self._set_aside(kept, "open")
        elif waveform in self.world.failing and not (self.run.mended or accepted):
            self._set_aside(kept, "failed")
        elif self.run.gate == "park":
            if self.dropped != "park-holds-nothing":
                self._set_aside(kept, "parked")
        else:
            self.publish[waveform] = tuple(copies[s] for s in sorted(copies))

    def _choose(self, action: str, waveform: str) -> None:
        mine = held_of(self.world, self.head, waveform)
        standing = [h.place for h in mine if h.reason != "discarded"]
        if action == "restore":
            for h in mine:
                if h.reason == "discarded":
                    back = "open" if self.dropped == "restore-means-open" else h.before or "conflict"
                    self.held[h.place] = Held(h.place, back)
        elif action == "discard":
            self._discard(standing)
        elif waveform not in self.head.bytes_of:
            kept = standing
            if action == "pick":
                kept, dropped = picked(self.world, standing)
                self._discard(dropped)
            self._assemble(waveform, kept, accepted=action == "accept")

    def _discard(self, places: Iterable[Place]) -> None:
        for place in places:
            if self.dropped == "discard-deletes":
                del self.held[place]
            else:
                was = self.held[place]
                self.held[place] = Held(place, "discarded", was.reason)

    def _set_aside(self, places: Iterable[Place], reason: str) -> None:
        """A backfill holds nothing, and leaves what is held as it was."""
        if self.run.kind != "backfill":
            self.held |= {place: Held(place, reason) for place in places}

    def _release(self) -> None:
        published = {**self.head.bytes_of, **self.publish}
        for place in list(self.held):
            r = self.world.at(place)
            if published.get(r.waveform, ())[r.seq : r.seq + 1] == (r.copy,):
                del self.held[place]

    def _identities(self, places: Iterable[Place]) -> set[tuple[str, int, str]]:
        return {self.world.at(p) for p in places}


def picked(world: World, standing: Iterable[Place]) -> tuple[list[Place], list[Place]]:
    """`last`: the chunks that belong to the copy of the last place, and those that do not."""
    bytes_of: dict[int, str] = {}
    kept: list[Place] = []
    dropped: list[Place] = []
    for place in sorted(standing, reverse=True):
        r = world.at(place)
        (kept if bytes_of.setdefault(r.seq, r.copy) == r.copy else dropped).append(place)
    return kept, dropped


def offered(world: World, head: Head, waveform: str) -> list[str]:
    """The decisions that would change something about a waveform, as they are offered to an operator."""
    reasons = {h.reason for h in held_of(world, head, waveform)}
    standing = reasons - {"discarded"}
    found = ["restore"] if "discarded" in reasons else []
    if not standing:
        return found
    found.append("discard")
    if waveform in head.bytes_of:
        return found
    found.append("redrive")
    if "conflict" in standing:
        found.append("pick")
    elif "open" not in standing:
        found.append("accept")
    return found


# What undo takes back.

OPPOSITES = {"discard": "restore", "restore": "discard"}
"""Of decisions; what was published stays, and so does who accepted it."""


def began(run: Run) -> tuple[tuple[int, int], ...]:
    """Where a batch began to read, in the partitions whose positions it moves."""
    stands = enumerate(zip(run.starts, run.ends, strict=True))
    return tuple((p, start) for p, (start, end) in stands if run.moves and end > start)


def goes_back(head: Head, made: Made) -> dict[int, int]:
    """Where undo of a batch or of the newest rewind puts which partitions; empty where it moves none, or would skip."""
    mine = made.number or made.sequence == head.sequence
    back = {p: to for p, to in made.back if to != head.positions[p]}
    return back if mine and all(to <= head.positions[p] for p, to in made.back) else {}


def takes_back(world: World, head: Head, made: Made, *, dropped: str = "") -> bool:
    """Whether the opposite of a decision touches what that changed, and nothing else: no more was held since under its
    waveform, and nobody has decided about any of it."""
    if made.action not in OPPOSITES:
        return False
    restores = OPPOSITES[made.action] == "restore"
    touched = [h for h in held_of(world, head, made.waveform) if (h.reason == "discarded") is restores]
    if dropped == "an-undo-takes-back-whatever-is-held":
        return bool(touched)
    return {h.place for h in made.rows} == {h.place for h in touched} and {h.by for h in touched} == {made.number}
