"""What must hold, asked of every commit and of every state. Shares no rule with what it judges.

- I1: what lies below the head's positions is published, a repeat of what is or is held, held, or was given up by name;
  and no head says that it gave up what it has not gone past;
- I2: no waveform is published twice, nor changed once it is; I3: never of copies that contradict each other unpicked;
- I4: the group never stands further than a head ever did, unless somebody else put it there;
- I7: a run moves the positions only from where it began, and commits only in the generation it was planned in;
- held: nothing held is lost without a decision; what was parked, is in conflict or was discarded changes only by an
  operator's decision about it; discarded bytes are never published; restoring undoes a discard; a decision changes what
  the operator saw, and a pick publishes that;
- undo: puts the partitions of what it takes back to where they were, and no other one, in a generation of its own; or
  changes the very chunks that a decision changed, to what they were;
- doubt: what moves no position takes no number of a head that the group has shown;
- gate: no ingest goes past a batch that stands at a closed gate, and what that was stopped with is published by no
  other batch, but by who accepts it.
"""

from __future__ import annotations

from collections.abc import Iterable

from tests.model.world import Head, Held, Made, Place, Record, Run, State, World

DECIDED_BY_PEOPLE = frozenset({"conflict", "parked", "discarded"})


class Violation(Exception):
    """An invariant that does not hold."""


def check_commit(world: World, before: Head, after: Head, run: Run) -> None:
    """Of one commit, from the head before to the head after."""
    if run.moves and run.starts != before.positions:
        raise Violation(f"I7: moves the positions from {before.positions} to {run.ends}, read from {run.starts}")
    if not run.moves and after.positions != before.positions:
        raise Violation(f"I7: a {run.kind} moves the positions from {before.positions} to {after.positions}")
    if run.generation != before.generation:
        raise Violation("I7: planned before a rewind, committed after it")
    new = after.published - before.published
    again = before.bytes_of.keys() & dict(run.publish).keys()
    if again or before.published - after.published:
        raise Violation(f"I2: published twice: {sorted(again)}")
    _check_published(world, before, new, run)
    _check_held(world, before, after, run)


def check_number(s: State, new: Head, run: Run) -> None:
    """A head that stands where the one before it stood differs from another one by its number alone."""
    if not run.moves and any(g.tag == new.version for g in s.group):
        raise Violation(
            f"doubt: a {run.kind} takes the number of a head that the group has shown, and hides that it is lost"
        )


def _check_published(world: World, before: Head, new: Iterable[tuple[str, tuple[str, ...]]], run: Run) -> None:
    for waveform, copies in new:
        mine = _rows_of(world, before, waveform)
        pieces = {Record(waveform, seq, copy) for seq, copy in enumerate(copies)}
        standing = {world.at(h.place) for h in mine if h.reason != "discarded"}
        read = {world.at(p) for p in run.places if world.at(p).waveform == waveform}
        if len(copies) != world.chunks[waveform] or not pieces <= standing | read:
            raise Violation(f"I3: {waveform} is published of what is not there: {copies}")
        if pieces & {world.at(h.place) for h in mine if h.reason == "discarded"} and not pieces <= standing:
            raise Violation(f"held: {waveform} was discarded, and came back by a replay")
        if run.choice is None:
            if any(h.reason in DECIDED_BY_PEOPLE - {"discarded"} for h in mine):
                raise Violation(f"held: {waveform} waits for a decision, and was published without one")
            discarded = {world.at(h.place) for h in mine if h.reason == "discarded"}
            if (standing | read) - discarded - pieces:
                raise Violation(f"I3: of copies of {waveform} that contradict each other, one was published")
        elif run.choice.action == "pick" and copies != run.choice.meant:
            raise Violation(f"held: a pick of {run.choice.meant} published {copies}")
        elif run.choice.action != "pick" and standing - pieces:
            raise Violation(f"I3: of copies of {waveform} that contradict each other, one was published")


def _check_held(world: World, before: Head, after: Head, run: Run) -> None:
    rows = {h.place: h for h in after.held}
    bytes_of = after.bytes_of
    for h in before.held:
        r = world.at(h.place)
        published = r.waveform in bytes_of and bytes_of[r.waveform][r.seq : r.seq + 1] == (r.copy,)
        if published and h.reason == "discarded":
            raise Violation(f"held: {r.waveform} was discarded, and is published")
        if h.place not in rows and not published:
            raise Violation(f"held: what was held at {h.place} ({h.reason}) is neither held nor published")
        decided = run.choice is not None and run.choice.waveform == r.waveform
        if h.reason in DECIDED_BY_PEOPLE and not decided and (published or rows[h.place].reason != h.reason):
            raise Violation(f"held: what was held at {h.place} ({h.reason}) changed, and nobody decided that")
    if run.choice is not None and run.choice.undoes is not None:
        _check_taken_back(before, after, run.choice.undoes)
    elif run.choice is not None:
        mine = _rows_of(world, before, run.choice.waveform)
        changed = {h.place for h in mine if h.place not in rows or rows[h.place].reason != h.reason}
        if changed - run.choice.among:
            raise Violation(f"held: a {run.choice.action} changed {changed - run.choice.among}, which nobody was shown")
    if run.choice is not None and run.choice.action == "restore":
        for place, was in before.was:
            if world.at(place).waveform == run.choice.waveform and rows[place].reason != was:
                raise Violation(f"held: restored as {rows[place].reason}, was {was} when it was discarded")


def remember(world: World, before: Head, after: Head, run: Run) -> frozenset[tuple[Place, str]]:
    """Why each place was held that this run's operator discarded, or that was discarded before."""
    if run.choice is None:
        return after.was
    was, mine = dict(after.was), run.choice.waveform
    if run.choice.action == "restore":
        return frozenset((p, reason) for p, reason in was.items() if world.at(p).waveform != mine)
    now = {h.place: h.reason for h in after.held}
    fresh = [h for h in _rows_of(world, before, mine) if h.reason != "discarded" and now.get(h.place) == "discarded"]
    return frozenset({**was, **{h.place: h.reason for h in fresh}}.items())


def check_moved_back(before: Head, after: Head, made: Made) -> None:
    wanted = {**dict(enumerate(before.positions)), **dict(made.back)}
    if dict(enumerate(after.positions)) != wanted:
        raise Violation(f"undo: puts the stream to {after.positions}, and {wanted} was before that")
    if after.generation <= before.generation:
        raise Violation("undo: moves positions, and whoever planned before that is not fenced")


def _check_taken_back(before: Head, after: Head, made: Made) -> None:
    was, now = ({h.place: h.reason for h in head.held} for head in (before, after))
    changed = {place: now.get(place) for place in was if was[place] != now.get(place)}
    wanted = {h.place: h.reason for h in made.prior}
    if changed != wanted:
        raise Violation(f"undo: of {made.action} {made.waveform} leaves {changed}, and {wanted} was before that")


def check_passed(s: State, run: Run, head: Head, *, standing: bool) -> None:
    numbers = sorted(r.number for r in s.stopped)
    if standing:
        raise Violation(f"gate: batch {run.number} goes past {numbers}, which stand at a closed gate")
    if run.moves or (run.choice is not None and run.choice.action == "accept"):
        return
    # A batch stands at its gate as long as nobody has moved the head under it.
    stopped = [r for r in s.stopped if r.generation == head.generation and r.starts == head.positions]
    past = {w for r in stopped if r.catalog == head.catalog for w in r.stopped_with} & dict(run.publish).keys()
    if past:
        raise Violation(f"gate: {run.kind} {run.number} publishes {sorted(past)}, which {numbers} were stopped with")


def check_state(world: World, s: State) -> None:
    kept = {world.at(h.place) for h in s.head.held}
    places = {h.place for h in s.head.held}
    bytes_of = s.head.bytes_of
    ahead = sorted(q for q in s.head.skipped if q[1] >= s.head.positions[q[0]])
    if ahead:
        raise Violation(f"I1: names {ahead} as given up, and has not gone past that")
    for p, position in enumerate(s.head.positions):
        for offset in range(position):
            r = world.at((p, offset))
            published = r.waveform in bytes_of and bytes_of[r.waveform][r.seq : r.seq + 1] == (r.copy,)
            known = (p, offset) in places or r in kept or published
            if not known and (p, offset) not in s.head.skipped:
                raise Violation(f"I1: offset {offset} of partition {p} is lost")
        group = s.group[p]
        if group.tag is not None and (group.offset or 0) > s.furthest[p]:
            raise Violation("I4: the group stands further than any head did")


def check_end(world: World, head: Head, *, ends: tuple[int, ...], mended: bool) -> None:
    """After undisturbed ingests up to the end of the log: what is whole, and waits for nobody, is published."""
    seen: dict[str, list[Place]] = {}
    for p, end in enumerate(ends):
        for offset in range(end):
            seen.setdefault(world.log[p][offset].waveform, []).append((p, offset))
    bytes_of = head.bytes_of
    for waveform, places in seen.items():
        read = [world.at(p) for p in places if p not in head.skipped]
        mine = _rows_of(world, head, waveform)
        whole = len({r.seq for r in read}) == world.chunks[waveform]
        clean = len(set(read)) == len({r.seq for r in read}) and len(set(map(world.at, places))) == len(set(read))
        waits = any(h.reason in DECIDED_BY_PEOPLE for h in mine) or (waveform in world.failing and not mended)
        stale = waveform in world.failing and any(h.reason == "failed" for h in mine)
        if whole and clean and not waits and not stale and waveform not in bytes_of:
            raise Violation(f"live: {waveform} is whole, waits for nobody, and is not published")
        if waveform in bytes_of and len({world.at(p).seq for p in places}) < world.chunks[waveform]:
            raise Violation(f"live: {waveform} was published and never was whole")


def _rows_of(world: World, head: Head, waveform: str) -> list[Held]:
    return [h for h in head.held if world.at(h.place).waveform == waveform]
