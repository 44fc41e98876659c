"""What a head in place of a lost one is to name of the held table, what is missing in it, and what nobody can prove.

Looks, and changes nothing. What is missing is said with its coordinates where they are known, and by number where only
the history or a head knows how many there were: an operator accepts it by name, or takes an older snapshot. Keeps I1.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from wavestitch.contracts.batch_row import BatchRow
from wavestitch.contracts.errors import Refused
from wavestitch.contracts.held import HeldChunk, HeldLook, effective_held
from wavestitch.contracts.held_left import Choice, LeftSnapshot, choose_held
from wavestitch.contracts.held_mark import HeldMark, held_bytes
from wavestitch.contracts.ports import Tables
from wavestitch.contracts.position import Head
from wavestitch.contracts.reasons import OF_RECORDS, Reason

_SHOWN = 20
_JUNK = frozenset(r.value for r in OF_RECORDS)


@dataclass(frozen=True, slots=True)
class Missing:
    """Something that was there, and that nobody has any more. `what`: a few words for the head's note. `said`: a
    sentence."""

    what: str
    said: str


@dataclass(frozen=True, slots=True)
class FoundHeld:
    """`mark`: for the new head; its counts are of what is held in truth. `settled`: nothing is staged beside it that a
    lost head may have named. `last_sequence`: of all decisions that staged something, so that a new head is beyond."""

    mark: HeldMark | None
    settled: bool
    last_sequence: int
    missing: tuple[Missing, ...]
    remarks: tuple[str, ...]


def refuse_left_over(stream: str, tables: Tables) -> None:
    """Raises `Refused` where a stream without a head has a held table with something in it: a first head that does not
    name it would forget it."""
    if not any(s.rows for s in tables.held_left().all):
        return
    found = find_held(tables, tables.batches(), last=None)
    if found.mark is not None:
        raise Refused(
            f"stream {stream} has no head, and its held table has {found.mark.chunks} chunks and records: the table of "
            "waveforms was dropped or is another one than before. Put it back; or begin anew, with what is held taken "
            f"up, with `wavestitch rewind {stream} --to start-over --apply`; or move the held table away",
            held=found.mark.chunks,
        )


def find_held(
    tables: Tables, history: Sequence[BatchRow], *, last: Head | None, wanted: int | None = None
) -> FoundHeld:
    """`history`: newest first. `last`: the newest head that is known. `wanted`: the snapshot that an operator names."""
    named = last.held.snapshot_id if last is not None and last.held is not None else None
    recorded = {(b.sequence, b.decision) for b in history}
    chosen = choose_held(tables.held_left(), recorded=recorded, named=named, wanted=wanted)
    mark, held = _counted(tables, chosen.taken)
    before, had = _counted(tables, chosen.instead_of)
    missing = _missing(chosen, (mark, held), (before, had)) + _unaccounted(
        _expected(chosen, history, last), (mark, held), (before, had)
    )
    return FoundHeld(mark, not chosen.unproven, chosen.last_sequence, missing, _remarks(tables, chosen, held))


def _counted(tables: Tables, snapshot: LeftSnapshot | None) -> tuple[HeldMark | None, list[HeldChunk]]:
    """The mark, counted by what is held in truth, and the chunks that are."""
    mark = tables.held_at(snapshot.snapshot_id) if snapshot is not None else None
    if mark is None:
        return None, []
    rows = tables.held(mark, HeldLook(chunks=True))
    ids = {r.chunk.waveform_id for r in rows if r.chunk.waveform_id is not None}
    held = effective_held(rows, published=tables.published(ids))
    counts = Counter({reason: n for reason, n in mark.counts.items() if reason in _JUNK})
    counts.update(h.reason.value for h in held)
    size = sum(held_bytes(h.chunk, h.reason) for h in held)
    return replace(mark, counts=dict(sorted(counts.items())), chunk_bytes=size), held


Counted = tuple[HeldMark | None, list[HeldChunk]]


def _missing(chosen: Choice, now: Counted, before: Counted) -> tuple[Missing, ...]:
    """What the snapshot that main had before has, and the one that is taken has not."""
    if chosen.instead_of is None:
        return ()
    there = {h.key: h.reason for h in now[1]}
    gone = [h for h in before[1] if h.key not in there]
    # An older snapshot, or one that somebody else's tool made, has an older word on what it has.
    older = chosen.taken is None or chosen.taken.version < chosen.instead_of.version
    undone = [h for h in before[1] if older and there.get(h.key, h.reason) is not h.reason]
    junk = _junk(before[0]) - _junk(now[0])
    found: list[Missing] = []
    back = f"; take them back with `--held {chosen.instead_of.snapshot_id}`"
    if gone:
        said = f"{len(gone)} held chunks that {chosen.instead_of} of the held table has: {_places(gone)}{back}"
        found.append(Missing(f"{len(gone)} held chunks", said))
    if undone:
        said = (
            f"the last word on {len(undone)} held chunks, which {chosen.instead_of} of the held table has "
            f"({_words(h.reason for h in undone)}): {_places(undone)}{back}"
        )
        found.append(Missing(f"the last word on {len(undone)} held chunks", said))
    if junk > 0:
        said = f"{junk} records that are no chunks, which {chosen.instead_of} of the held table has{back}"
        found.append(Missing(f"{junk} held records that are no chunks", said))
    return tuple(found)


def _unaccounted(expected: Mapping[str, int] | None, now: Counted, before: Counted) -> tuple[Missing, ...]:
    """What was held by the last word on it, and is in no snapshot that is there."""
    if expected is None:
        return ()
    known = {h.key: h.reason for h in (*now[1], *before[1])}
    chunks = sum(n for reason, n in expected.items() if reason not in _JUNK) - len(known)
    there = Counter(reason.value for reason in known.values())
    short = {r: n - there[r] for r, n in expected.items() if r not in _JUNK and n > there[r]}
    undone = sum(short.values()) - max(chunks, 0)
    junk = sum(n for reason, n in expected.items() if reason in _JUNK) - max(_junk(now[0]), _junk(before[0]))
    found: list[Missing] = []
    for n, what in ((chunks, "held chunks"), (junk, "held records that are no chunks")):
        if n > 0:
            said = f"{n} {what} that were counted are in no snapshot of the held table that is left; nobody knows which"
            found.append(Missing(f"{n} {what}, not known which", said))
    if undone > 0:
        counted = ", ".join(f"{n} {reason}" for reason, n in sorted(short.items()))
        said = (
            f"the last word on {undone} held chunks is in no snapshot of the held table that is left; nobody knows "
            f"which: counted were {counted} more than are found"
        )
        found.append(Missing(f"the last word on {undone} held chunks, not known which", said))
    return tuple(found)


def _expected(chosen: Choice, history: Sequence[BatchRow], last: Head | None) -> Mapping[str, int] | None:
    """How much was held, by the last head or history row that says so; None where the snapshot is newer than those."""
    words = [(b.generation, b.sequence, b.held) for b in history if b.held is not None]
    if last is not None and last.held is not None:
        words.append((last.generation, last.sequence, dict(last.held.counts)))
    if not words:
        return None
    generation, sequence, held = max(words, key=lambda word: word[:2])
    taken = chosen.taken.version if chosen.taken is not None else (0, 0)
    return held if (generation, sequence) >= taken else None


def _junk(mark: HeldMark | None) -> int:
    return sum(n for reason, n in mark.counts.items() if reason in _JUNK) if mark is not None else 0


def _places(chunks: Sequence[HeldChunk]) -> str:
    more = f" and {len(chunks) - _SHOWN} more" if len(chunks) > _SHOWN else ""
    return "; ".join(f"{h.chunk.waveform_id} chunk {h.chunk.seq} at {h.chunk.place}" for h in chunks[:_SHOWN]) + more


def _words(reasons: Iterable[Reason]) -> str:
    return ", ".join(f"{n} {reason}" for reason, n in sorted(Counter(r.value for r in reasons).items()))


def _remarks(tables: Tables, chosen: Choice, held: Sequence[HeldChunk]) -> tuple[str, ...]:
    said = []
    if chosen.taken is not None and (held or chosen.taken.rows):
        said.append(f"held: {len(held)} chunks, by {chosen.taken} of the held table")
    there = {h.key for h in held}
    for one in chosen.unproven:
        _, more = _counted(tables, one)
        more = [h for h in more if h.key not in there]
        said.append(
            f"not taken, since nobody knows whether its decision was committed: {one}, {len(more)} chunks more: "
            f"{_places(more)}; if it was, take it with `--held {one.snapshot_id}`"
        )
    return tuple(said)
