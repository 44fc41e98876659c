"""What readers may store of a batch, counted while they read: value, key and headers of every record (I5).

And how much work it may be: what has to be inflated is counted apart, at a small part of its bytes, or what was fetched
of it where that is more, and may be as much. So a topic of records that blow up is read in batches that end, too. One
record batch of the broker's always fits.

A reader that stops leaves what it had seen in the plan's folder, so that the next plan covers less; nothing of its
batch is published. One record always fits: else a stream with a large one would never get on.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from wavestitch.contracts.batch_size import OVER_BUDGET, READER_STOP, ReaderStop, needed_bytes
from wavestitch.contracts.errors import Refused
from wavestitch.contracts.plan import Plan
from wavestitch.write_once import write_digested

RECORD_OVERHEAD = 64
"""Of a record's row in the landing and in the index, beside what the record brings."""


@dataclass(slots=True)
class ByteBudget:
    """Of some units of a plan, read side by side or one after another. `allowed`: bytes for all of them together."""

    plan: Plan
    units: Sequence[int]
    folder: Path
    allowed: int
    records: int = 0
    stored: int = 0
    work: int = 0
    inflated_batches: int = 0

    def add(self, stored: int) -> None:
        """A record that is stored. Raises `Refused` where the budget is spent."""
        self.records += 1
        self.stored += stored + RECORD_OVERHEAD
        if self.stored > self.allowed and self.records > 1:
            raise self._spent()

    def add_run(self, records: int, stored: int) -> bool:
        """Records that are stored, `stored` bytes of all. Whether the budget has room for them; where not, nothing was
        counted: `add` says at which one it is spent."""
        together = self.stored + stored + records * RECORD_OVERHEAD
        if together > self.allowed:
            return False
        self.records += records
        self.stored = together
        return True

    def pass_over(self, work: int) -> None:
        """A record batch that was inflated, and what that took. Raises `Refused` where the budget is spent."""
        self.inflated_batches += 1
        self.work += work
        self._keep_work()

    @property
    def counts(self) -> tuple[int, ...]:
        """All that was counted, for whoever adds several readers up."""
        return self.records, self.stored, self.work, self.inflated_batches

    def see(self, by_unit: Mapping[int, Sequence[int]]) -> None:
        """The `counts` of each unit, as their readers say. Raises `Refused` where the budget is spent."""
        self.records, self.stored, self.work, self.inflated_batches = map(sum, zip(*by_unit.values(), strict=True))
        if self.stored > self.allowed and self.records > 1:
            raise self._spent()
        self._keep_work()

    def _keep_work(self) -> None:
        if self.work > self.allowed and self.inflated_batches > 1:
            raise self._spent()

    def forget(self, records: int, stored: int) -> None:
        """Go back to these counts: a slice is read anew."""
        self.records, self.stored = records, stored

    def keep(self, seen: ReaderStop) -> None:
        """Where the next plan finds it."""
        text = READER_STOP.text(seen).encode()
        write_digested(self.folder, lambda digest: f"reader-stopped-{digest}.json", lambda file: file.write(text))

    def _spent(self) -> Refused:
        plan = self.plan
        offsets = sum(s.size for unit in self.units for s in plan.units[unit])
        positions = {p: at.next_offset for p, at in plan.positions.items()}
        seen = ReaderStop(
            plan.plan_id,
            plan.kind.value,
            plan.ranges,
            plan.stream.limits.max_batch_bytes,
            self.units[0],
            self.records,
            offsets,
            max(self.stored, self.work),
            plan.records,
            positions,
        )
        self.keep(seen)
        return Refused(
            f"batch {plan.plan_id[:16]} of stream {plan.stream.name}: after {self.records} of {offsets} offsets "
            f"{self._taken()} {seen.bytes} bytes, allowed are {self.allowed} (limits.max_batch_bytes; an average of "
            f"{plan.mean_record_bytes:.0f} bytes a record was expected, and {seen.mean:.0f} came). Nothing was "
            f"published; {_way_on(plan, seen.mean)}",
            plan_id=plan.plan_id,
            over=OVER_BUDGET,
            bytes=seen.bytes,
            allowed=self.allowed,
        )

    def _taken(self) -> str:
        if self.stored >= self.work:
            return "its records take"
        return f"fetching and inflating its {self.inflated_batches} record batches was as much work as storing"


def _way_on(plan: Plan, mean: float) -> str:
    if plan.moves_positions:
        return "plan again: the next batch covers less by itself"
    return (
        f"plan the {plan.kind} again over less, or raise limits.max_batch_bytes of the stream, at this mean to "
        f"{needed_bytes(plan.records, mean=mean)} bytes"
    )


def budget_of(plan: Plan, units: Sequence[int], folder: Path) -> ByteBudget:
    """The whole batch's where all its units are read together; else the shares of those that are."""
    whole = set(units) == set(range(len(plan.units)))
    allowed = plan.stream.limits.max_batch_bytes if whole else sum(plan.budget(unit) for unit in units)
    return ByteBudget(plan, tuple(units), folder, allowed)
