"""Step 5: the commit. Decides on the newest head, stages held rows, and makes one atomic snapshot.

Everything before this step can be thrown away; everything after it can be made again. Keeps I1, I2, I6 and I7: a
plan that was committed is finished, a stale one is fenced, a conflict means deciding again from the fresh head.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from wavestitch.batch.history import Committed, History, find_committed, repair_history
from wavestitch.batch.stream_state import load_for_batch
from wavestitch.contracts.batch_row import BatchRow, describe_batch
from wavestitch.contracts.chunk_table import Rows
from wavestitch.contracts.commit_tries import CommitTries
from wavestitch.contracts.decided import Decision
from wavestitch.contracts.decision import Evidence, decide
from wavestitch.contracts.errors import StateUnknown
from wavestitch.contracts.freshness import read_before
from wavestitch.contracts.held import HeldChunk, HeldKey
from wavestitch.contracts.held_quota import check_quota, places_of
from wavestitch.contracts.last_chunks import NOTHING, last_recorded, waited
from wavestitch.contracts.pending_decision import held_back
from wavestitch.contracts.plan import Plan
from wavestitch.contracts.ports import CommitConflict, HeldRow, HeldStaging, StagedFile, Tables
from wavestitch.contracts.promotion import check_promotion
from wavestitch.contracts.protocol import check_fence
from wavestitch.contracts.quantities import EpochMs, Partition
from wavestitch.contracts.row_check import StagedRows, check_rows
from wavestitch.contracts.start_times import index_starts
from wavestitch.contracts.written import Written

_TRIES = 10


class Staging(Protocol):
    """What a batch has on disk: the stitched files and the landing."""

    def files_for(self, publish: Sequence[str]) -> list[StagedFile]:
        """Durable, checked files that hold exactly these waveforms."""

    def rows_in(self, files: Sequence[StagedFile]) -> Iterable[StagedRows]:
        """The rows of these files, bytes aside."""

    def landing_of(self, file: int) -> str:
        """The path of landing file number `file`."""

    def keep(self, row: BatchRow) -> None:
        """Keep the history row of a decision about to be committed, should the process die right after."""


@dataclass(frozen=True, slots=True)
class Audit:
    """What the history says of a batch beside the decision itself; see `describe_batch`. `clock_ms`: the committer's
    clock; `elapsed`: seconds since publishing began; `written`: as in `Landed`."""

    holes: Mapping[Partition, int]
    committed_ms: EpochMs
    clock_ms: Callable[[], EpochMs]
    seconds: Mapping[str, float]
    sizes: Mapping[str, int]
    reading: Mapping[int, tuple[int, float]] = field(default_factory=dict)
    written: Mapping[Partition, Sequence[Written]] = field(default_factory=dict)
    elapsed: Callable[[], float] = lambda: 0.0


def publish_batch(
    plan: Plan,
    evidence: Evidence,
    *,
    tables: Tables,
    history: History,
    staging: Staging,
    audit: Audit,
    ask: Callable[[], None] = lambda: None,
    keep: Callable[[Decision], None] = lambda _: None,
    say: Callable[[str], None] = lambda _: None,
) -> tuple[Committed, bool]:
    """Carry the plan's decision into the table; says whether this execution did. Raises `Fenced` where another run or a
    rewind came first. `ask`: raises where somebody has said meanwhile that the batch is not to be committed; asked
    right before each attempt. What is said later comes after the commit. `keep`: keeps what others have to know of a
    decision about to be committed."""
    tries = CommitTries(_TRIES, f"the head changed while batch {plan.plan_id[:16]} was committed; try again")
    while True:
        now = load_for_batch(tables, plan, evidence.chunks)
        # In this order: a second run of this very plan that commits in between makes the compare-and-set fail.
        done = find_committed(history, plan.plan_id)
        if done is not None:
            return done, False
        check_fence(plan, now.head, base_in_ancestry=_stands_on(plan, tables))
        decision = decide(plan, evidence, head=now.head, held=now.held, published=now.published)
        if plan.promotion is not None:
            others = held_back(now.held, now.replaced)
            check_promotion(plan.promotion, decision, replaced=now.replaced, others=others, stream=plan.stream.name)
        recorded = _first_read(plan, decision, tables)
        bare = check_quota(plan, decision, now.head.held)
        row = describe_batch(
            plan,
            decision,
            holes=audit.holes,
            committed_ms=audit.committed_ms,
            seconds=audit.seconds,
            sizes=audit.sizes,
            reading=audit.reading,
            without_bytes=places_of(bare),
            # Of a promotion only what it was shown is decided: it knows of no offset what lies there.
            starts=index_starts(plan.ranges, decision.fates.plain) if plan.promotion is None else {},
            written=audit.written,
            waits=waited(recorded, until=audit.clock_ms(), declared=plan.stream.freshness),
        )
        files = staging.files_for(decision.publish)
        check_rows(decision, staging.rows_in(files), topic_id=plan.topic_id, planned_on=plan.base_sequence)
        staged = HeldStaging(
            plan.plan_id,
            decision.digest,
            decision.head.generation,
            decision.head.sequence,
            decision.held_counts,
            decision.held_bytes,
            plan.clock_ms,
        )
        mark = tables.stage_held(now.head.held, _held_rows(plan, decision, staging, bare, now.held), staging=staged)
        staging.keep(row)
        keep(decision)
        ask()
        try:
            head = tables.commit(now.head, replace(decision.head, held=mark), files, instead_of=now.replaced)
        except CommitConflict as error:
            tries.failed(error)
            say("somebody else committed first: deciding again from the fresh head")
            continue
        except StateUnknown as error:
            tries.failed(error)
            say("the outcome of the commit is not known: looking at the table")
            continue
        waits = waited(recorded, until=audit.clock_ms(), declared=plan.stream.freshness)
        row = replace(row, seconds={**row.seconds, "publish": audit.elapsed()}, waits=waits)
        if head.sequence > plan.base_sequence + 1:
            repair_history(history, since=plan.base_sequence, own=row)
        else:  # all heads before it were in the history when this was planned
            tables.append_batches([row])
        tables.settle_held()
        return Committed(head, row), True


def _stands_on(plan: Plan, tables: Tables) -> bool:
    return any(h.sequence == plan.base_sequence and h.snapshot_id == plan.base_snapshot for h in tables.heads())


def _first_read(plan: Plan, decision: Decision, tables: Tables) -> Rows:
    """As `last_recorded`. Only an ingest reads what waits; whatever else publishes goes back to it on purpose."""
    if not plan.moves_positions:
        return NOTHING
    return last_recorded(decision.fates, read_before=read_before(tables.heads(), plan.topic_id))


def _held_rows(
    plan: Plan, decision: Decision, staging: Staging, bare: Collection[HeldKey], held: Iterable[HeldChunk]
) -> list[HeldRow]:
    """`bare`: what is held without its bytes. `held`: what was until now."""
    rows = []
    met = {h.key: h.proof for h in held}
    for hold in decision.holds:
        chunk = hold.chunk.in_topic(plan.topic_id)._replace(carried=True)
        # A carried chunk's payload stands in the held table already; only its reason is new.
        stored = not hold.chunk.carried and hold.chunk.key not in bare
        # What was read was judged by the plan's definition; what is carried, when it was read.
        proof = met[hold.chunk.key] if hold.chunk.carried else plan.stream.proof
        sequence = decision.head.sequence
        one = HeldChunk(chunk, hold.reason, hold.evidence, decision.digest, sequence, stored=stored, proof=proof)
        rows.append(HeldRow(one, staging.landing_of(chunk.file) if stored else None, chunk.row))
    return rows
