"""What a head in place of a lost one is to name of the held table, what is missing in it, and what nobody can prove.

Looks, and changes nothing. What is missing is said with its coordinates where they are known, and by number where only
the history or a head knows how many there were: an operator accepts it by name, or takes an older snapshot. Keeps I1.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from wavestitch.contracts.batch_row import BatchRow
from wavestitch.contracts.errors import Refused
from wavestitch.contracts.harmless import in_shell
from wavestitch.contracts.held import HeldChunk, HeldKey, HeldLook, effective_held
from wavestitch.contracts.held_left import Choice, LeftSnapshot, choose_held
from wavestitch.contracts.held_mark import JUNK, HeldMark, held_bytes
from wavestitch.contracts.ports import Tables
from wavestitch.contracts.position import Head
from wavestitch.contracts.reasons import Reason

_SHOWN = 20


@dataclass(frozen=True, slots=True)
class Missing:
    """Something that was there, and that nobody has any more. `what`: a few words for the head's note. `said`: a
    sentence."""

    what: str
    said: str


@dataclass(frozen=True, slots=True)
class FoundHeld:
    """`mark`: for the new head; its counts are of what is held in truth. `settled`: nothing is staged beside it that a
    lost head may have named. `last_sequence`: of all decisions that staged something, so that a new head is beyond.
    `left_out`: what is staged there, in a few words for the head's note."""

    mark: HeldMark | None
    settled: bool
    last_sequence: int
    missing: tuple[Missing, ...]
    left_out: tuple[str, ...]
    remarks: tuple[str, ...]


def refuse_left_over(stream: str, tables: Tables) -> None:
    """Raises `Refused` where a stream without a head has a held table with something in it: a first head that does not
    name it would forget it."""
    if not any(s.rows for s in tables.held_left().all):
        return
    found = find_held(tables, tables.batches(every_table=True), last=None)
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
    now, before = _counted(tables, chosen.taken), _counted(tables, chosen.instead_of)
    beside = [_counted(tables, one) for one in chosen.unproven]
    missing = (
        *_missing(chosen, now, before),
        *_unaccounted(tables, _last_word(chosen, history, last), (now, before), history),
        *_bare(chosen, now.held, before.held),
    )
    remarks = _remarks(chosen, now, beside)
    return FoundHeld(now.mark, not chosen.unproven, chosen.last_sequence, missing, _left_out(now, beside), remarks)


class _Counted(NamedTuple):
    """What a snapshot has. `held`: the chunks that count; `released`: of those that do not, being published."""

    mark: HeldMark | None
    held: list[HeldChunk]
    released: frozenset[HeldKey]

    @property
    def keys(self) -> set[HeldKey]:
        return {h.key for h in self.held}


def _counted(tables: Tables, snapshot: LeftSnapshot | None) -> _Counted:
    """With the mark, counted by what is held in truth."""
    mark = tables.held_at(snapshot.snapshot_id) if snapshot is not None else None
    if mark is None:
        return _Counted(None, [], frozenset())
    rows = tables.held(mark, HeldLook(chunks=True))
    ids = {r.chunk.waveform_id for r in rows if r.chunk.waveform_id is not None}
    held = effective_held(rows, published=tables.published(ids))
    counts = Counter({reason: n for reason, n in mark.counts.items() if reason in JUNK})
    counts.update(h.counted_as for h in held)
    released = frozenset(r.key for r in rows) - {h.key for h in held}
    size = sum(held_bytes(h.chunk, h.counted_as) for h in held)
    return _Counted(replace(mark, counts=dict(sorted(counts.items())), chunk_bytes=size), held, released)


def _missing(chosen: Choice, now: _Counted, before: _Counted) -> tuple[Missing, ...]:
    """What the snapshot that main had before has, and the one that is taken has not."""
    if chosen.instead_of is None:
        return ()
    there = {h.key: h.reason for h in now.held}
    gone = [h for h in before.held if h.key not in there]
    # An older snapshot, or one that somebody else's tool made, has an older word on what it has.
    older = chosen.taken is None or chosen.taken.version < chosen.instead_of.version
    undone = [h for h in before.held if older and there.get(h.key, h.reason) is not h.reason]
    junk = _junk(before.mark) - _junk(now.mark)
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


def _unaccounted(
    tables: Tables, word: _Word | None, looked: tuple[_Counted, _Counted], history: Sequence[BatchRow]
) -> tuple[Missing, ...]:
    """What was held by the last word on it, and is in no snapshot that is there. What was published since is not
    missing; where batches have published that the history does not know, that cannot be told for certain."""
    if word is None:
        return ()
    now, before = looked
    known = {h.key: h.reason for h in (*now.held, *before.held)}
    chunks = sum(n for reason, n in word.held.items() if reason not in JUNK) - len(known)
    there = Counter(reason.value for reason in known.values())
    short = {r: n - there[r] for r, n in word.held.items() if r not in JUNK and n > there[r]}
    undone = sum(short.values()) - max(chunks, 0)
    junk = sum(n for reason, n in word.held.items() if reason in JUNK) - max(_junk(now.mark), _junk(before.mark))
    since = 0
    if chunks > 0 and tables.published_by_plan().keys() - _published_up_to(word, history):
        since = min(chunks, len(now.released | before.released))
    where = "in no snapshot of the held table that is left"
    unless = ", or were published since, by batches that the history does not know"
    counted = ", ".join(f"{n} {reason}" for reason, n in sorted(short.items()))
    found = [
        (chunks - since, "held chunks, not known which", f"that were counted are {where}; nobody knows which"),
        (
            since,
            "held chunks, not known whether published",
            f"that were counted are {where}{unless}; nobody knows which",
        ),
        (
            junk,
            "held records that are no chunks, not known which",
            f"that were counted are {where}; nobody knows which",
        ),
    ]
    missing = [Missing(f"{n} {what}", f"{n} {what.partition(',')[0]} {said}") for n, what, said in found if n > 0]
    if undone > 0:
        what = f"the last word on {undone} held chunks"
        said = f"{what} is {where}; nobody knows which: counted were {counted} more than are found"
        missing.append(Missing(f"{what}, not known which", said))
    return tuple(missing)


def _bare(chosen: Choice, now: Sequence[HeldChunk], before: Sequence[HeldChunk]) -> tuple[Missing, ...]:
    """Chunks that are held, and whose bytes are in no row of the snapshot that is taken."""
    found: list[Missing] = []
    there = {h.key for h in before if h.stored}
    bare = [h for h in now if not h.stored and h.chunk.reason is None]
    back = [h for h in bare if h.key in there]
    gone = [h for h in bare if h.key not in there]
    if back and chosen.instead_of is not None:
        said = (
            f"the bytes of {len(back)} held chunks, which {chosen.instead_of} of the held table has: {_places(back)}; "
            f"take them back with `--held {chosen.instead_of.snapshot_id}`"
        )
        found.append(Missing(f"the bytes of {len(back)} held chunks", said))
    if gone:
        said = (
            f"the bytes of {len(gone)} held chunks are in no row of the held table that is left: {_places(gone)}; what "
            "the log still has is held with its bytes again once it is read again"
        )
        found.append(Missing(f"the bytes of {len(gone)} held chunks, in no snapshot", said))
    return tuple(found)


def _published_up_to(word: _Word, history: Sequence[BatchRow]) -> set[str]:
    """The plans of the batches that this word knew of."""
    return {b.plan_id for b in history if (b.generation, b.sequence) <= word.version}


class _Word(NamedTuple):
    """How much was held by a head, or by its row of the history."""

    version: tuple[int, int]
    held: Mapping[str, int]


def _last_word(chosen: Choice, history: Sequence[BatchRow], last: Head | None) -> _Word | None:
    """By the last head or history row that says so; None where the snapshot is newer than those."""
    words = [_Word((b.generation, b.sequence), b.held) for b in history if b.held is not None]
    if last is not None and last.held is not None:
        words.append(_Word(last.version, dict(last.held.counts)))
    if not words:
        return None
    word = max(words, key=lambda w: w.version)
    return word if chosen.taken is None or word.version >= chosen.taken.version else None


def _junk(mark: HeldMark | None) -> int:
    return sum(n for reason, n in mark.counts.items() if reason in JUNK) if mark is not None else 0


def _places(chunks: Sequence[HeldChunk]) -> str:
    more = f" and {len(chunks) - _SHOWN} more" if len(chunks) > _SHOWN else ""
    some = ((in_shell(h.chunk.waveform_id or ""), h.chunk) for h in chunks[:_SHOWN])
    return "; ".join(f"{waveform_id} chunk {c.seq} at {c.place}" for waveform_id, c in some) + more


def _words(reasons: Iterable[Reason]) -> str:
    return ", ".join(f"{n} {reason}" for reason, n in sorted(Counter(r.value for r in reasons).items()))


def _left_out(now: _Counted, beside: Sequence[_Counted]) -> tuple[str, ...]:
    """What is staged and not taken, in all: the log may not have it any more."""
    chunks = {h.key for one in beside for h in one.held} - now.keys
    junk = max((_junk(one.mark) for one in beside), default=0) - _junk(now.mark)
    found = ((len(chunks), "held chunks, staged"), (junk, "held records that are no chunks, staged"))
    return tuple(f"{n} {what}" for n, what in found if n > 0)


def _remarks(chosen: Choice, now: _Counted, beside: Sequence[_Counted]) -> tuple[str, ...]:
    said = []
    if chosen.taken is not None and (now.held or chosen.taken.rows):
        said.append(f"held: {len(now.held)} chunks, by {chosen.taken} of the held table")
    for snapshot, one in zip(chosen.unproven, beside, strict=True):
        more = [h for h in one.held if h.key not in now.keys]
        said.append(
            f"not taken, since nobody knows whether its decision was committed: {snapshot}, {len(more)} chunks more: "
            f"{_places(more)}; if it was, take it with `--held {snapshot.snapshot_id}`"
        )
    return tuple(said)
