"""Iceberg in memory, as far as batches can tell: snapshots by compare-and-set, held and published rows, history."""

from __future__ import annotations

import itertools
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from copy import copy
from dataclasses import replace
from zlib import crc32

from tests.fakes.fake_id_index import FakeIdIndex
from tests.fakes.fake_rows import FakeFiles, PublishedRow, Staged, StoredHeld
from tests.fakes.faults import Fault, may_land_late
from tests.fakes.table_accidents import TableAccidents
from wavestitch.contracts.batch_row import BatchRow, batch_row_from_json, rows_of
from wavestitch.contracts.errors import Altered, Refused, StateUnknown, Transient
from wavestitch.contracts.held import HeldChunk, HeldKey, HeldLook, IdsLook, PublishedWaveform
from wavestitch.contracts.held_left import HeldLeft, LeftSnapshot
from wavestitch.contracts.held_mark import HeldFile, HeldMark, check_mark, mark_of
from wavestitch.contracts.ports import CommitConflict, HeldRow, HeldStaging, Remains, ShownBatches, StagedFile
from wavestitch.contracts.position import Head, HeadKind, head_from_properties
from wavestitch.contracts.reasons import Reason

_LOOKS = 3


class FakeTables(TableAccidents):
    """The tables of one stream. Implements `wavestitch.contracts.ports.Tables`.

    `snapshots`: all heads that were ever committed, oldest first; `expired`: how many of them maintenance has dropped.
    """

    def __init__(self, files: FakeFiles, *, uuid: str = "6d0f4f0e-0000-4000-8000-000000000001") -> None:
        """`uuid`: the table's own. It is there from the first commit on; a catalog that was lost gets another one."""
        self.files = files
        self.uuid = uuid
        self.snapshots: list[Head] = []
        self.expired = 0
        self.headless = 0
        """The snapshot that another engine put in place of all of ours; 0 where there is none."""
        self.left: Head | None = None
        """Of the heads that it expired the one that is in the metadata still, out of main's reach."""
        # Of no two tables are they the same.
        first = 10_000 * int(uuid[-4:], 16)
        self._snapshot_ids, self._held_ids = itertools.count(first + 1000), itertools.count(first + 5000)
        self.rows: list[tuple[int, PublishedRow]] = []
        self.replaced: list[tuple[int, int, PublishedRow]] = []
        """Rows that are there no more: the head that took them out, the one that published them."""
        self.held_snapshots: dict[int, tuple[StoredHeld, ...]] = {}
        self.held_of: dict[int, Staged] = {}
        self.branches: dict[tuple[str, int | None], tuple[int, int]] = {}
        """By decision and base: the snapshot, and the number of the head that it was staged for."""
        self.held_main: int | None = None
        self.taken_out: dict[int, tuple[StoredHeld, ...]] = {}
        """By the snapshot that maintenance made without them."""
        self.history: list[BatchRow] = []
        self.index: FakeIdIndex | None = None
        """Of this host; None: all rows are looked through."""
        self.on_disk: set[int] = set()
        """Heads and held snapshots whose files are there, while the catalog may be an older one."""
        self.removed: set[int] = set()
        """Those whose files maintenance has taken for orphans."""
        self.properties: dict[str, str] = {}
        """Of the waveforms table, as somebody else may edit them; a commit asks none of them."""

    # the port

    def table_uuid(self) -> str | None:
        with self.act("tables.table_uuid", error=Transient):
            return self.uuid if self.snapshots else None

    def head(self) -> Head | None:
        with self.act("tables.head", error=Transient):
            self._refuse_headless()
            self.tell("looked", what="head")
            return self.snapshots[-1] if self.snapshots else None

    def remains(self) -> Remains | None:
        with self.act("tables.remains", error=Transient):
            if not self.snapshots or not self.headless:
                return None
            return Remains(self.uuid, self.headless, self.headless - self.made_at, len(self.rows), self.left)

    def held_left(self) -> HeldLeft:
        with self.act("tables.held_left", error=Transient):
            main = self._below(self.held_main)
            beside = {i for tip, _ in self.branches.values() for i in self._below(tip)} - set(main)
            return HeldLeft(*(tuple(map(self._left, some)) for some in (main, sorted(beside), self.held_of)))

    def _below(self, tip: int | None) -> list[int]:
        """The snapshot and those that it stands on, newest first."""
        found = []
        while tip is not None and tip in self.held_of:
            found.append(tip)
            tip = self.held_of[tip].parent
        return found

    def _left(self, snapshot_id: int) -> LeftSnapshot:
        said, rows = self.held_of[snapshot_id], len(self.held_snapshots[snapshot_id])
        return LeftSnapshot(snapshot_id, said.decision, said.generation, said.sequence, rows)

    def held_at(self, snapshot_id: int) -> HeldMark | None:
        with self.act("tables.held_at", error=Transient):
            rows = self.held_snapshots.get(snapshot_id)
            if rows is None:
                raise Altered(f"held snapshot {snapshot_id} is not there")
            counts = Counter(r.held.reason.value for r in rows)
            return mark_of(snapshot_id, held_files(rows), counts, 0) if rows else None

    def published_by_plan(self) -> dict[str, int]:
        with self.act("tables.published_by_plan", error=Transient):
            plans = {h.sequence: h.plan_id for h in self.snapshots}
            return dict(Counter(plans[sequence] for sequence, _ in self.rows))

    def days_added(self, snapshot_id: int) -> list[str]:
        """None: what is published here lies in no files by day."""
        return []

    @may_land_late
    def commit_rebuilt(self, remains: Remains, new: Head) -> Head:
        lost = CommitConflict("a lost race")
        with self.act("tables.commit_rebuilt", error=StateUnknown, conflict=lambda: lost) as fault:
            if remains.snapshot_id != self.headless:
                raise CommitConflict("the table is not as it was looked at")
            self.headless = 0
            return self._answered(self._snapshot(new, []), fault)

    def heads(self) -> Sequence[Head]:
        with self.act("tables.heads", error=Transient):
            self._refuse_headless()
            return self.snapshots[self.expired :][::-1]

    def published(self, ids: Collection[str], *, of: int | None = None) -> dict[str, PublishedWaveform]:
        with self.act("tables.published", error=Transient):
            if of is not None:
                rows = self.rows_at(of)
            else:
                rows = [r for _, r in self.rows] if self.index is None else self._indexed(self.index, ids)
            return {r.waveform_id: PublishedWaveform(r.waveform_id, r.chunks) for r in rows if r.waveform_id in ids}

    def _indexed(self, index: FakeIdIndex, ids: Collection[str]) -> list[PublishedRow]:
        """Of the files that the index of ids names: those of one commit are one, written anew where rows leave it."""
        snapshots = {h.sequence: h.snapshot_id for h in self.snapshots}
        of_commit: dict[int, list[PublishedRow]] = defaultdict(list)
        for sequence, row in self.rows:
            of_commit[snapshots[sequence]].append(row)
        files = {_file_of(snapshot, rows): rows for snapshot, rows in of_commit.items()}
        ids_in = {name: {row.waveform_id for row in rows} for name, rows in files.items()}
        found = index.files_of(self.uuid, ids_in, ids)
        self.tell("opened", idle=sorted(name for name in found if ids_in[name].isdisjoint(ids)))
        return [row for name, rows in files.items() if name in found for row in rows]

    # `held` is the port's: what the head names. See `held_rows` for what the oracle sees.

    def held(self, mark: HeldMark | None, look: HeldLook) -> list[HeldChunk]:
        with self.act("tables.held", error=Transient):
            found = self._found([row.held for row in self._vouched_for(mark)], look)
            self.tell("loaded", strange=[h.chunk.coordinate for h in found if h.chunk.reason is not None])
            return found

    @staticmethod
    def _found(rows: list[HeldChunk], look: HeldLook) -> list[HeldChunk]:
        if look.everything or look.chunks:
            return [r for r in rows if look.everything or r.chunk.reason is None]
        ids = set(look.ids)
        if look.open_since is not None:
            ids |= {
                r.chunk.waveform_id
                for r in rows
                if r.reason is Reason.OPEN
                and r.chunk.timestamp_ms >= look.open_since
                and r.chunk.waveform_id is not None
            }
        return [
            r
            for r in rows
            if (r.chunk.reason is None and r.chunk.waveform_id in ids) or r.chunk.coordinate in look.coordinates
        ]

    def held_ids(self, mark: HeldMark | None, look: IdsLook) -> dict[str, int]:
        with self.act("tables.held_ids", error=Transient):
            rows = [r.held for r in self._vouched_for(mark) if not look.reasons or r.held.reason in look.reasons]
            since = [h for h in rows if look.since_ms is None or h.chunk.timestamp_ms >= look.since_ms]
            ids = (h.chunk.waveform_id for h in since if h.chunk.reason is None and h.chunk.waveform_id)
            found = Counter(i for i in ids if i > look.after and (not look.ids or i in look.ids))
            return dict(sorted(found.items())[: look.most])

    def held_files(self, mark: HeldMark | None) -> list[HeldFile]:
        with self.act("tables.held_files", error=Transient):
            return held_files(self._vouched_for(mark))

    @may_land_late
    def stage_held(self, base: HeldMark | None, rows: Sequence[HeldRow], *, staging: HeldStaging) -> HeldMark | None:
        with self.act("tables.stage_held", error=Transient):
            if not rows:
                return staging.on(base)
            on = None if base is None else base.snapshot_id
            found = self.branches.get((staging.decision, on))
            if found is None:
                found = self._stage(on, rows, staging), staging.sequence
                self.branches[staging.decision, on] = found
            return staging.mark(found[0], held_files(self.held_snapshots[found[0]]))

    def settle_held(self) -> None:
        """As the product does it: look at the table, then at the heads, then change it if it is as it was."""
        for look in range(_LOOKS):
            with self.act("tables.held_main", error=Transient):
                seen, there = self.held_main, set(self.held_snapshots)
            heads = self.heads()
            if not heads:
                return
            target = heads[0].held.snapshot_id if heads[0].held is not None else None
            if target is None or target in there or look == _LOOKS - 1:
                self._vouched_for(heads[0].held)
                self._follow(seen, target, heads)
                return

    @may_land_late
    def _follow(self, seen: int | None, target: int | None, heads: Sequence[Head]) -> None:
        named = {h.held.snapshot_id for h in heads if h.held is not None}
        with suppress(Transient), self.act("tables.settle_held", error=Transient):
            ahead = max((self._left(i).version for i in self._below(seen)), default=(0, 0)) > heads[0].version
            if self.held_main == seen:  # otherwise somebody was faster
                self.held_main = seen if ahead else target
                on_main = set() if ahead else set(self._below(target))
                self.branches = {
                    name: (tip, sequence)
                    for name, (tip, sequence) in self.branches.items()
                    if self._left(tip).version > heads[0].version or (tip in named and tip not in on_main)
                }

    def _stage(self, base: int | None, rows: Sequence[HeldRow], staging: HeldStaging) -> int:
        kept = list(self.held_snapshots[base]) if base is not None else []
        for row in rows:
            payload = self.files.landings[row.landing][row.row] if row.landing is not None else None
            clean = row.held.chunk._replace(file=-1, row=-1)
            held, has_it = replace(row.held, chunk=clean), row.landing is not None
            stored = StoredHeld(staging.plan_id, held, payload, has_it, staging.clock_ms)
            kept.append(stored)
            self.tell("held", row=stored)
        number = next(self._held_ids)
        self.held_snapshots[number] = tuple(kept)
        self.held_of[number] = Staged(staging.decision, staging.generation, staging.sequence, base)
        return number

    def _vouched_for(self, mark: HeldMark | None) -> Sequence[StoredHeld]:
        if mark is None:
            return ()
        rows = self.held_snapshots.get(mark.snapshot_id)
        if rows is None:
            newest = self.snapshots[-1].held if self.snapshots else mark
            if newest is None or newest.snapshot_id != mark.snapshot_id:
                raise Transient("a newer head names something else as held: look again")
            raise Altered(f"the head names held snapshot {mark.snapshot_id}, which is not there")
        check_mark(mark, held_files(rows), table="waves.held")
        return rows

    @may_land_late
    def commit(
        self, base: Head | None, new: Head, files: Sequence[StagedFile], *, instead_of: Collection[str] = ()
    ) -> Head:
        lost = CommitConflict("a race that was lost")
        with self.act("tables.commit", error=StateUnknown, conflict=lambda: lost) as fault:
            newest = self.snapshots[-1] if self.snapshots else None
            self._refuse_headless()
            if (base and base.snapshot_id) != (newest and newest.snapshot_id):
                raise CommitConflict("the newest head is another one")
            rows = [row for file in files for row in self.files.staged[file.path]]
            made = self._snapshot(new, rows, instead_of=instead_of)
            return self._answered(made, fault)

    @may_land_late
    def put_back(
        self, base: Head | None, new: Head, *, of: int, ids: Collection[str], instead_of: Collection[str]
    ) -> Head:
        lost = CommitConflict("a race that was lost")
        with self.act("tables.commit", error=StateUnknown, conflict=lambda: lost) as fault:
            if (base and base.snapshot_id) != self.snapshots[-1].snapshot_id:
                raise CommitConflict("the newest head is another one")
            back = [row for row in self.rows_at(of) if row.waveform_id in ids]
            if {row.waveform_id for row in back} != set(ids):
                raise Altered("the snapshot does not have all of these rows")
            return self._answered(self._snapshot(new, back, instead_of=instead_of), fault)

    def rows_at(self, snapshot_id: int) -> list[PublishedRow]:
        at = [h.sequence for h in self.snapshots[self.expired :] if h.snapshot_id == snapshot_id]
        if not at:
            raise Transient(f"snapshot {snapshot_id} was let go since it was looked at")
        return [row for _, row in self.rows_as_of(at[0])]

    def _answered(self, made: Head, fault: Fault | None) -> Head:
        """What a commit returns. Sent twice, it is told of a conflict with itself: it is there, and that is looked up
        before anything is believed or deleted, as `OneCommit` does (tests/domain/test_one_commit.py)."""
        return self._looked_up(made) if fault is Fault.RESENT else made

    def _looked_up(self, made: Head) -> Head:
        return next(h for h in self.snapshots if h.snapshot_id == made.snapshot_id)

    def _snapshot(self, new: Head, rows: list[PublishedRow], *, instead_of: Collection[str] = ()) -> Head:
        made = head_from_properties(new.to_properties(), next(self._snapshot_ids))
        assert made is not None
        self.snapshots.append(made)
        self.replaced += [(made.sequence, *one) for one in self.rows if one[1].waveform_id in instead_of]
        self.rows = [one for one in self.rows if one[1].waveform_id not in instead_of]
        self.rows += [(made.sequence, row) for row in rows]
        self.tell("committed", head=made, rows=rows)
        return made

    def _refuse_headless(self) -> None:
        if self.headless:
            raise Refused("the head has been expired; look at `wavestitch rewind waves --to rebuilt`")

    # maintenance

    def held_places(self, mark: HeldMark) -> Sequence[StoredHeld]:
        with self.act("tables.held_files", error=Transient):
            return self._vouched_for(mark)

    def published_in_every_snapshot(self, ids: Collection[str]) -> list[dict[str, PublishedWaveform]]:
        """What the oldest snapshot that is left has of these waveforms, and each since that took rows out."""
        with self.act("tables.published", error=Transient):
            oldest = self.snapshots[min(self.expired, len(self.snapshots) - 1)].sequence
            looked = sorted({oldest, *(went for went, _, _ in self.replaced if went > oldest)})
            rows = [[r for _, r in self.rows_as_of(at) if r.waveform_id in ids] for at in looked]
            return [{r.waveform_id: PublishedWaveform(r.waveform_id, r.chunks) for r in some} for some in rows]

    def rewrite_held(
        self, base: Head, rows: Collection[int], *, note: str, counts: Mapping[str, int] | None = None
    ) -> Head:
        """A head that names the held table without these rows, by their numbers. `counts`: other ones."""
        assert base.held is not None
        on = base.held.snapshot_id
        with self.act("tables.stage_held", error=Transient):
            now = self.held_snapshots[on]
            number, staged = next(self._held_ids), Staged(f"without {sorted(rows)}", *base.version, on)
            self.held_snapshots[number] = tuple(row for n, row in enumerate(now) if n not in rows)
            self.held_of[number] = staged._replace(sequence=base.sequence + 1)
            self.branches[staged.decision, on] = number, base.sequence + 1
            mark = mark_of(
                number, held_files(self.held_snapshots[number]), counts or base.held.counts, base.held.chunk_bytes
            )
        self.taken_out |= {number: tuple(row for n, row in enumerate(now) if n in rows)}
        head = self.commit(base, base.next(kind=HeadKind.MAINTENANCE, held=mark, note=note), [])
        self.settle_held()
        return head

    def drop_snapshots(self, numbers: Collection[int]) -> None:
        """The oldest ones, as far as they are among these; never the newest."""
        with self.act("tables.expire", error=Transient):
            while self.expired < len(self.snapshots) - 1 and self.snapshots[self.expired].snapshot_id in numbers:
                self.expired += 1
                self.tell("forgotten", head=self.snapshots[self.expired - 1])

    def remove_orphans(self) -> None:
        """Files in the tables' folders that nothing names."""
        with self.act("tables.orphans", error=Transient):
            self.removed |= self.on_disk - {h.sequence for h in self.snapshots} - set(self._below(self.held_main))

    def batches(self, *, since: int = 0, plan_id: str | None = None, every_table: bool = False) -> list[BatchRow]:
        with self.act("tables.batches", error=Transient):
            rows = [b for b in self.history[::-1] if b.sequence >= since and plan_id in (None, b.plan_id)]
            return rows if every_table else rows_of(self.uuid if self.snapshots else None, rows)

    def shown_batches(self, *, since: int = 0, plan_id: str | None = None) -> ShownBatches:
        return ShownBatches(self.batches(since=since, plan_id=plan_id, every_table=True), ())

    def recorded(self, *, since: int = 0) -> set[tuple[int, str]]:
        with self.act("tables.recorded", error=Transient):
            return {(b.sequence, b.decision) for b in self.history if b.sequence >= since}

    @may_land_late
    def append_batches(self, rows: Iterable[BatchRow]) -> None:
        with self.act("tables.append_batches", error=Transient):
            there = {(b.sequence, b.decision) for b in self.history}
            absent = [b for b in rows if (b.sequence, b.decision) not in there]
            beside = self.uuid if self.snapshots else ""
            new = [batch_row_from_json(replace(b, table=b.table or beside).to_json()) for b in absent]
            self.history += new
            for row in new:
                self.tell("recorded", row=row)

    def copied(self, files: FakeFiles) -> FakeTables:
        """A copy of the catalog: the same table by its own word. What is written to one of them from here on is in no
        other, and has names of its own."""
        made = copy(self)
        made.files, made.index = files, None
        for name in ("held_snapshots", "held_of", "branches", "taken_out", "properties"):
            setattr(made, name, dict(getattr(self, name)))
        for name in ("snapshots", "rows", "replaced", "history"):
            setattr(made, name, list(getattr(self, name)))
        made._snapshot_ids, made._held_ids = itertools.count(1_000_000), itertools.count(5_000_000)
        return made

    # for readers and the oracle

    def held_rows(self) -> Sequence[StoredHeld]:
        """The rows of the snapshot that the newest head names, whether they count or not."""
        mark = self.snapshots[-1].held if self.snapshots else None
        return self.held_snapshots[mark.snapshot_id] if mark is not None else ()

    def bytes_of_held(self, mark: HeldMark | None) -> dict[HeldKey, bytes | None]:
        """Of what this names the bytes. Of several stored rows the first one's."""
        return {r.held.key: r.payload for r in reversed(self._vouched_for(mark)) if r.stored}


def _file_of(snapshot_id: int, rows: Sequence[PublishedRow]) -> str:
    return f"data-{snapshot_id}-{crc32(' '.join(row.waveform_id for row in rows).encode()):08x}"


def held_files(rows: Sequence[StoredHeld]) -> list[HeldFile]:
    return [row.file for row in rows]
