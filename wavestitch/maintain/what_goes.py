"""What may go: snapshots, batch folders, held rows, files. Pure; never looks at a disk, a table or a clock.

Each function errs on the side of keeping. What it is told is what counts: the edges gather the facts in the order that
makes them safe (see `maintain_stream`). Keeps I1 (held rows), I3 (published files) and I7 (the newest head stays).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePath

from wavestitch.contracts.held import HeldKey, PublishedWaveform
from wavestitch.contracts.held_mark import JUNK, HeldFile
from wavestitch.contracts.maintenance import BatchFolder, BatchState, DataFileFacts, HeldPlace, StoredFile, TableState
from wavestitch.contracts.plan import Plan
from wavestitch.contracts.quantities import EpochMs, Milliseconds, before, elapsed

REMOVABLE = (".parquet", ".avro", ".metadata.json", ".tmp", ".crc")
STAGED_PREFIX = 16
"""So many characters of a plan's id begin the names of its staged files."""


@dataclass(frozen=True, slots=True)
class SnapshotLimits:
    """`most` and `least`: how many snapshots of main are kept at most (`age` aside) and at least."""

    age: Milliseconds
    most: int
    least: int
    pinned: Milliseconds


def snapshots_to_expire(
    table: TableState,
    *,
    limits: SnapshotLimits,
    now: EpochMs,
    recorded: Collection[tuple[int, str]] = (),
    under_way: Iterable[Plan] = (),
    closed: Collection[str] = (),
) -> tuple[list[int], list[str]]:
    """Which snapshots go, oldest last, and a sentence for each reason that keeps more than the limits ask for.

    Always an end of main's ancestry: a gap would hide the heads behind it. `recorded`: (sequence, decision) of the
    history's rows. `under_way`: plans that may still commit; one older than `limits.pinned` loses its head, and ends
    fenced; not one of `closed`, which stands at a closed gate until somebody decides.
    """
    wanted = 0
    kept: list[str] = []
    for n, snapshot in enumerate(table.main):
        # A snapshot was the table until its successor came: that is when its age begins.
        retired = table.main[n - 1].timestamp_ms if n else now
        if n < limits.least or (n < limits.most and retired > before(now, limits.age)):
            wanted = n
        if snapshot.head is not None and (snapshot.head.sequence, snapshot.head.decision) not in recorded:
            wanted = n
            kept.append(f"head {snapshot.head.sequence} does not stand in the history yet")
    newest = next((n for n, s in enumerate(table.main) if s.head is not None), 0)
    oldest = before(now, limits.pinned)
    stays = [p for p in under_way if p.plan_id in closed or p.clock_ms > oldest]
    pinned = {(p.base_sequence, p.base_snapshot): p for p in stays}
    last = max(wanted, newest)
    for n, snapshot in enumerate(table.main):
        plan = pinned.get((snapshot.head.sequence, snapshot.snapshot_id)) if snapshot.head else None
        if plan is not None and n > last:
            last = n
            kept.append(f"batch {plan.plan_id[:16]}, under way, stands on head {plan.base_sequence}")
    going = [s.snapshot_id for s in table.main[last + 1 :] if s.snapshot_id not in table.protected]
    return going, kept


def junk_to_expire(
    files: Mapping[str, tuple[HeldFile, EpochMs | None]], *, held_before: EpochMs
) -> dict[str, HeldFile]:
    """Those of nothing but records that are no chunks, all held since before this moment. `files`: by path, with the
    moment since when the newest row of each is held, None where that is not known. Never a chunk of a waveform."""
    return {
        path: file
        for path, (file, newest) in files.items()
        if file.reason in JUNK and newest is not None and newest < held_before
    }


SUPERSEDED = Milliseconds(2 * 24 * 3_600_000)


@dataclass(frozen=True, slots=True)
class FolderLimits:
    """Ages. `finished`: of committed batches; `given_up`: of those that can never commit; `superseded`: of those that
    another one has tried again since, longer than any run takes."""

    finished: Milliseconds
    given_up: Milliseconds
    superseded: Milliseconds = SUPERSEDED


def folders_to_clear(
    folders: Iterable[tuple[BatchFolder, BatchState]],
    *,
    limits: FolderLimits,
    now: EpochMs,
    in_history: Collection[str],
    projected: Collection[str],
    closed: Collection[str] = (),
) -> tuple[list[BatchFolder], list[BatchFolder]]:
    """The batches whose landed payload goes, and those whose whole folder does.

    `in_history`: plans whose row stands in `batches`; until then only the folder has the full record. `projected`:
    committed plans whose offsets stand in the group. `closed`: plans at a closed gate. An ingest that failed and was
    planned anew on the same head has landed the same offsets once more: the newest keeps them, and who takes up an
    older one reads them again.
    """
    payload, whole = [], []
    folders = list(folders)
    newest = _newest_tries(folders)
    for folder, state in folders:
        age = elapsed(since=folder.newest_ms, until=now)
        if state is BatchState.COMMITTED:
            if folder.plan_id in projected and folder.plan_id in in_history and age >= limits.finished:
                whole.append(folder)
            elif folder.plan_id in projected and folder.payload_bytes:
                payload.append(folder)
        elif state in (BatchState.ABANDONED, BatchState.FENCED) and age >= limits.given_up:
            whole.append(folder)
        elif state is BatchState.UNDER_WAY and _is_superseded(folder, newest) and folder.plan_id not in closed:
            payload += [folder] * (age >= limits.superseded and folder.payload_bytes > 0)
    return payload, whole


def _newest_tries(folders: Sequence[tuple[BatchFolder, BatchState]]) -> dict[tuple[int, int], EpochMs]:
    """By head, when the newest ingest was planned that may still commit."""
    newest: dict[tuple[int, int], EpochMs] = {}
    for folder, state in folders:
        if (plan := folder.plan) is not None and plan.moves_positions and state is BatchState.UNDER_WAY:
            base = plan.base_sequence, plan.base_snapshot
            newest[base] = max(newest.get(base, plan.clock_ms), plan.clock_ms)
    return newest


def _is_superseded(folder: BatchFolder, newest: Mapping[tuple[int, int], EpochMs]) -> bool:
    plan = folder.plan
    if plan is None or not plan.moves_positions:
        return False
    return plan.clock_ms < newest[plan.base_sequence, plan.base_snapshot]


def held_to_delete(
    places: Iterable[HeldPlace], *, published: Sequence[Mapping[str, PublishedWaveform]], under_way: Collection[str]
) -> dict[str, set[int]]:
    """Row numbers per file of the held rows that nobody can need any more.

    `published`: what each snapshot that a reader may still choose has of these waveforms. All rows of a place and
    piece go together, and only if every one of them is a piece of a waveform that all of those have, byte for byte: a
    row that stayed alone would count again. Rows of batches under way stay, and their neighbours.
    """
    by_key: dict[HeldKey, list[HeldPlace]] = defaultdict(list)
    for place in places:
        by_key[place.held.key].append(place)
    going: dict[str, set[int]] = defaultdict(set)
    for rows in by_key.values():
        if all(p.plan_id not in under_way and _released_everywhere(p, published) for p in rows):
            for p in rows:
                going[p.file].add(p.row)
    return dict(going)


def _released_everywhere(place: HeldPlace, published: Sequence[Mapping[str, PublishedWaveform]]) -> bool:
    chunk = place.held.chunk
    if chunk.reason is not None or chunk.waveform_id is None or not published:
        return False
    return all((w := at.get(chunk.waveform_id)) is not None and w.has(chunk) for at in published)


def unreferenced(
    files: Iterable[StoredFile], *, named: Collection[str], under_way: Collection[str], modified_before: EpochMs
) -> list[StoredFile]:
    """The files that no snapshot names and no batch in the landing has staged, old enough not to be in the making.

    `named`: paths and other marks. `under_way`: ids of plans whose folder is still there and that are not committed.
    What has an ending that no part of ours writes is somebody else's, and stays.
    """
    prefixes = {plan_id[:STAGED_PREFIX] for plan_id in under_way}
    found = []
    for f in files:
        name = PurePath(f.path).name
        if not name.endswith(REMOVABLE) or f.modified_ms > modified_before:
            continue
        if not is_named(f, named) and name.lstrip(".")[:STAGED_PREFIX] not in prefixes:
            found.append(f)
    return found


def is_named(file: StoredFile, named: Collection[str]) -> bool:
    """Whether any name or mark of it, or of the file that it is a checksum of, is among these."""
    return any(mark in named for mark in (file.path, file.covers, *file.marks))


def unlisted(live: Mapping[str, Collection[str]], files: Iterable[StoredFile]) -> list[str]:
    """Names of live files that are not among `files`. `live`: the marks of each, by its name."""
    listed = {mark for f in files for mark in (f.path, *f.marks)}
    return sorted(name for name, marks in live.items() if listed.isdisjoint(marks))


def long_unreferenced(
    found: Iterable[StoredFile], *, first_seen: Mapping[str, EpochMs], now: EpochMs, age: Milliseconds
) -> tuple[list[StoredFile], dict[str, EpochMs]]:
    """Which of these go now, and since when each of the others is known to be unreferenced.

    A reader may still be at a file that maintenance has just let go of, however old it is: so a file must have been
    found unreferenced for the whole of `age`.
    """
    going: list[StoredFile] = []
    waiting: dict[str, EpochMs] = {}
    for f in found:
        since = min(first_seen.get(f.path, now), now)
        if elapsed(since=since, until=now) >= age:
            going.append(f)
        else:
            waiting[f.path] = since
    return going, waiting


def files_to_compact(
    files: Iterable[DataFileFacts], *, target_bytes: int, at_least: int
) -> dict[str, list[DataFileFacts]]:
    """Small files by partition, of partitions that have `at_least` of them. A file near the target is left alone."""
    small: dict[str, list[DataFileFacts]] = defaultdict(list)
    for f in files:
        if f.bytes < smallest_good(target_bytes):
            small[f.partition].append(f)
    return {p: found for p, found in sorted(small.items()) if len(found) >= at_least}


def smallest_good(target_bytes: int) -> int:
    return target_bytes * 3 // 4
