"""What becomes of the tables in memory by nobody of ours: other tools, people, backups. Part of `FakeTables`."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager

from tests.fakes.fake_rows import PublishedRow, Staged, StoredHeld
from tests.fakes.faults import Edge
from wavestitch.contracts.batch_row import BatchRow
from wavestitch.contracts.errors import Refused
from wavestitch.contracts.position import Head


class TableAccidents(Edge):
    """The fields are those of `FakeTables`."""

    uuid: str
    snapshots: list[Head]
    expired: int
    headless: int
    left: Head | None
    rows: list[tuple[int, PublishedRow]]
    replaced: list[tuple[int, int, PublishedRow]]
    held_snapshots: dict[int, tuple[StoredHeld, ...]]
    held_of: dict[int, Staged]
    branches: dict[tuple[str, int | None], tuple[int, int]]
    held_main: int | None
    taken_out: dict[int, tuple[StoredHeld, ...]]
    history: list[BatchRow]
    on_disk: set[int]
    removed: set[int]
    _snapshot_ids: Iterator[int]
    made_at = 999
    """The snapshot before the first of the table: its own count begins with 1."""
    _held_ids: Iterator[int]
    others_column = False
    """Whether somebody has added one to the table of waveforms."""

    def refuse_fixed_rows(self) -> None:
        if self.others_column:
            raise Refused("column quality of table waves.waveforms is none of Wavestitch's; nothing was changed")

    def expire_snapshots(self, keep: int) -> None:
        """Drop old snapshots, but none before its row stands in the history."""
        recorded = {(b.sequence, b.decision) for b in self.history}
        while self.expired < len(self.snapshots) - keep:
            oldest = self.snapshots[self.expired]
            if (oldest.sequence, oldest.decision) not in recorded:
                break
            self.expired += 1
            self.tell("forgotten", head=oldest)

    def lose_history(self, numbers: Collection[int]) -> None:
        """Somebody deletes rows of the history (a filter too wide, a restored file)."""
        gone = [b for b in self.history if b.sequence in numbers]
        self.history = [b for b in self.history if b.sequence not in numbers]
        self.tell("history lost", sequences=[b.sequence for b in gone])

    def expire_head(self, left: Head | None = None) -> None:
        """As another engine does it: a snapshot of its own (a compaction) is newest, and all older ones go, but for
        one that a tag of its own keeps."""
        if self.snapshots:
            self.headless, self.left = next(self._snapshot_ids), left
            gone, self.expired = self.snapshots[self.expired :], len(self.snapshots)
            for head in gone:
                self.tell("forgotten", head=head)

    def delete_published(self, ids: Collection[str]) -> bool:
        """Somebody deletes rows of the waveforms table, with any tool."""
        gone = sorted({row.waveform_id for _, row in self.rows if row.waveform_id in ids})
        self.rows = [(sequence, row) for sequence, row in self.rows if row.waveform_id not in ids]
        self.tell("deleted", ids=gone)
        return bool(gone)

    def delete_held(self, goes: Callable[[StoredHeld], bool], *, expire: bool) -> bool:
        """Another tool deletes rows of what main of the held table shows; `expire`: and every snapshot before its."""
        on = self.held_main
        if on is None or not any(map(goes, self.held_snapshots[on])):
            return False
        number, rows = next(self._held_ids), self.held_snapshots[on]
        if expire:
            self.held_snapshots, self.held_of, self.branches = {}, {}, {}
        self.held_snapshots[number] = tuple(row for row in rows if not goes(row))
        self.held_of[number] = Staged("", 0, 0, on)
        self.held_main = number
        self.taken_out[number] = tuple(filter(goes, rows))
        return True

    @contextmanager
    def set_back_for_a_while(self, sequence: int) -> Iterator[None]:
        """A backup of the catalog is in place, from right after this head; then the newer one again. Files that
        somebody removes meanwhile are gone."""
        names = ("snapshots", "rows", "replaced", "history", "expired", "held_main", "branches", "tell")
        newer = {name: getattr(self, name) for name in names}
        self.snapshots = [h for h in self.snapshots if h.sequence <= sequence]
        self._go_back(sequence)
        self.on_disk = {h.sequence for h in newer["snapshots"]} | set(self.held_of)
        self.expired, self.branches = min(self.expired, len(self.snapshots) - 1), {}
        held = self.snapshots[-1].held
        self.held_main = held.snapshot_id if held is not None else None
        self.tell = lambda _what, /, **_facts: None  # type: ignore[method-assign]
        yield
        for name, was in newer.items():
            setattr(self, name, was)
        self.on_disk = set()
        self.rows = [(s, row) for s, row in self.rows if s not in self.removed]
        self.held_snapshots = {i: rows for i, rows in self.held_snapshots.items() if i not in self.removed}

    def drop(self, uuid: str) -> None:
        """Somebody drops the waveforms table, and no other; whoever commits next makes it anew, with this UUID."""
        self.uuid, self.snapshots, self.expired, self.headless = uuid, [], 0, 0
        self.rows, self.replaced, self.left = [], [], None
        self.made_at = next(self._snapshot_ids)

    def restore(self, sequence: int) -> None:
        """Put back a copy of the catalog from right after this head: what was committed since is in no table."""
        kept = [h for h in self.snapshots if h.sequence <= sequence]
        self.snapshots, self.expired, self.headless = kept, max(0, min(self.expired, len(kept) - 1)), 0
        self._go_back(sequence)
        newest = kept[-1].held if kept else None
        self.held_main = newest.snapshot_id if newest is not None else None
        self.tell("restored", sequence=sequence)

    def rows_as_of(self, sequence: int) -> list[tuple[int, PublishedRow]]:
        """What was published right after this head, by the head that published it."""
        there = [(s, row) for s, row in self.rows if s <= sequence]
        return there + [(s, row) for went, s, row in self.replaced if s <= sequence < went]

    def _go_back(self, sequence: int) -> None:
        self.rows = self.rows_as_of(sequence)
        self.replaced = [one for one in self.replaced if one[0] <= sequence]
        self.history = [b for b in self.history if b.sequence <= sequence]
