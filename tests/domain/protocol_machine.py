"""The whole protocol over memory edges, as a Hypothesis state machine: producers, runs, operators, Kafka's tools, time.

Every run is stopped before each of its effects, so that any two interleave and any one dies or fails anywhere. All
guarantees are checked after every step; at the end two undisturbed ingests must repair everything.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import initialize, invariant, precondition, rule

from tests.builders.streams import make_stream
from tests.domain.oracle import truths
from tests.domain.producing_machine import START_MS, ProducingMachine, pick
from tests.guarantees import (
    Balanced,
    Fenced,
    GivenUp,
    Idempotent,
    NoDuplicates,
    NoInvention,
    NoLoss,
    OffsetsLast,
    Sight,
    furthest,
)
from tests.memory.batch import Bench, Carrying, carry_through, run_batch
from tests.memory.faults import Fault, Killed, Steps
from tests.memory.memory_log import MemoryLog, Visibility
from tests.memory.sight import look_around
from tests.memory.way_out import way_out
from wavestitch.batch import rewind as rewind_step
from wavestitch.batch.plan import PlanRequest
from wavestitch.batch.rewind import Target
from wavestitch.contracts.errors import DataLost, Refused, StateUnknown, Terminal, Transient, WavestitchError
from wavestitch.contracts.errors import Fenced as FencedRun
from wavestitch.contracts.plan import Plan, PlanKind, Scope
from wavestitch.contracts.quantities import EpochMs
from wavestitch.contracts.stream import Limits

LOUD = (FencedRun, Refused, DataLost, Transient, StateUnknown, Killed)
mostly_far = st.sampled_from(
    [
        "end",
        "end",
        "end",
        "tables.stage_held",
        "tables.append_batches",
        "log.commit_group",
        "log.read",
        "tables.head",
        "1",
        "4",
    ]
)


JUNK_BYTES = 12
"""So few bytes of records that are no chunks are kept that most histories come to their end."""


@dataclass
class Run:
    """One run under way. `allowed`: how it may end beside well."""

    what: str
    steps: Steps
    allowed: tuple[type[BaseException], ...]

    @property
    def carries(self) -> bool:
        """Whether it was handed its plan."""
        return self.what.endswith("again")


class ProtocolMachine(ProducingMachine):
    """`resets`: foreign offsets by partition, with the number of heads then, and whether a run had looked before."""

    def __init__(self) -> None:
        super().__init__()
        self.runs: list[Run] = []
        self.resets: dict[int, tuple[int, bool]] = {}
        self.broken = False
        self.guarantees = (NoLoss(), NoDuplicates(), NoInvention(), OffsetsLast(), Fenced(), Balanced())

    @initialize(
        partitions=st.integers(1, 3),
        on_reset=st.sampled_from(["adopt", "adopt", "refuse"]),
        first=st.lists(st.tuples(pick, st.integers(0, 12)), min_size=1, max_size=4),
    )
    def begin(self, partitions: int, on_reset: Any, first: list[tuple[int, int]]) -> None:
        self.bench = Bench(MemoryLog(partitions=partitions))
        self.stream = make_stream(
            "waves", group="waves-batches", allowed_lateness=60, idle=30, search_margin=60, on_reset=on_reset
        )
        for to, odd in first:
            self.produce_sticky(1 + to % 3, to, odd, keyed=bool(to % 2))

    # runs

    def launch(self, what: str, call: Callable[[], Any], until: str, *also: type[BaseException]) -> None:
        self.runs.append(Run(what, Steps(call), LOUD + also))
        self.advance(-1, until)

    @precondition(lambda self: len(self.runs) < 3)
    @rule(most=st.sampled_from([1000, 1000, 1000, 5, 3, 2, 1]), park=st.integers(0, 9), until=mostly_far)
    def ingest(self, most: int, park: int, until: str) -> None:
        stream = self.stream.model_copy(update={"limits": Limits(max_batch_records=most, max_junk_bytes=JUNK_BYTES)})
        how, clock = Carrying(self.failing, park == 9), self.clock_ms
        self.launch("ingest", lambda: run_batch(self.bench, stream, PlanRequest(), clock_ms=clock, how=how), until)

    @precondition(lambda self: len(self.runs) < 3)
    @rule(since=st.sampled_from([0, 0, 21, 101]), span=st.sampled_from([300, 100, 1]), until=mostly_far)
    def backfill(self, since: int, span: int, until: str) -> None:
        scope = Scope((START_MS + since * 1000) * 1_000_000, (START_MS + (since + span) * 1000) * 1_000_000)
        request, how, clock = PlanRequest(PlanKind.BACKFILL, scope), Carrying(self.failing), self.clock_ms
        call = partial(run_batch, self.bench, self.stream, request, clock_ms=clock, how=how)
        # Terminal: what it waits for became whole with chunks that an ingest has held meanwhile; plan again.
        self.launch("backfill", call, until, Terminal)

    @precondition(lambda self: len(self.runs) < 3 and self.bench.plans)
    @rule(which=pick, until=mostly_far)
    def carry_plan_again(self, which: int, until: str) -> None:
        """A step that is tried again, perhaps beside its own zombie: the same plan, carried through once more."""
        plan = list(self.bench.plans.values())[-1 - which % min(len(self.bench.plans), 3)]
        also = () if plan.kind is PlanKind.INGEST else (Terminal,)
        call = partial(carry_through, self.bench, plan, Carrying(self.failing))
        self.launch(f"{plan.kind} again", call, until, *also)

    @precondition(lambda self: self.runs)
    @rule(which=pick, until=mostly_far)
    def advance(self, which: int, until: str) -> None:
        run = self.runs[which % len(self.runs)]
        for n in range(1000):
            if (n and run.steps.at == until) or str(n) == until or not run.steps.advance():
                break
        self.settle_run(run)

    @precondition(lambda self: self.runs)
    @rule(which=pick, fault=st.sampled_from(Fault))
    def disturb(self, which: int, fault: Fault) -> None:
        run = self.runs[which % len(self.runs)]
        run.steps.advance(fault)
        self.settle_run(run)

    def settle_run(self, run: Run) -> None:
        if not run.steps.done:
            return
        self.runs.remove(run)
        error = run.steps.error
        unknown_end = error is not None and not isinstance(error, run.allowed)
        if unknown_end or (type(error) is Terminal and "not stitched" not in str(error)):
            self.broken = True
            raise AssertionError(f"{run.what} ended with {error!r}") from error

    # operators

    @precondition(lambda self: len(self.runs) < 3)
    @rule(
        to=st.one_of(
            st.sampled_from(["earliest", "previous", "head", "group", "latest", "new-topic"]).map(Target),
            st.dictionaries(st.integers(0, 2), st.integers(0, 12), min_size=1).map(lambda o: Target(offsets=o)),
            st.integers(0, 300).map(lambda s: Target(time_ms=EpochMs(START_MS + s * 1000))),
        ),
        accept=st.booleans(),
        until=mostly_far,
    )
    def start_rewind(self, to: Target, accept: bool, until: str) -> None:
        self.launch("rewind", partial(self.rewind, to, accept), until)

    def rewind(self, to: Target, accept: bool) -> Any:
        edges: dict[str, Any] = {"log": self.bench.log, "tables": self.bench.tables}
        found = rewind_step.plan_rewind(self.stream, to, **edges, who="test", why="to see")
        return rewind_step.apply_rewind(self.stream, found, accept_skip=accept, **edges)

    @precondition(lambda self: self.finished_plans() and not self.bench.log.live_members)
    @rule(which=pick)
    def carry_finished_plan_again(self, which: int) -> None:
        plans = self.finished_plans()
        before = self.sight()
        again = Steps(partial(carry_through, self.bench, plans[which % len(plans)], Carrying(self.failing)))
        again.finish()
        self.guard(lambda: Idempotent().check(before, self.sight(), ended=again.error))

    def finished_plans(self) -> list[Plan]:
        return [self.bench.plans[h.plan_id] for h in self.bench.tables.snapshots if h.plan_id]

    # the world

    @rule(seconds=st.sampled_from([100, 45, 20, 1]))
    def time_passes(self, seconds: int) -> None:
        self.clock_ms += seconds * 1000

    @rule(
        what=st.sampled_from(
            ["reset", "reset", "expiry", "retention", "partition", "snapshots", "member", "recreated"]
        ),
        which=pick,
        to=st.integers(0, 12),
    )
    def accident(self, what: str, which: int, to: int) -> None:
        log = self.bench.log
        p = which % len(log.partitions)
        if what == "reset":
            log.reset_group(p, to)
            raced = any(self.has_looked_at_the_group(run) for run in self.runs)
            self.resets[p] = len(self.bench.tables.snapshots), raced
        elif what == "expiry":
            log.expire_group(p)
            self.resets.pop(p, None)
        elif what == "retention":
            log.retain_from(p, to // 2)
        elif what == "partition" and len(log.partitions) < 3:
            log.add_partition()
        elif what == "snapshots":
            self.bench.tables.expire_snapshots(1 + to % 3)
        elif what == "member":
            log.live_members = ["console-consumer@10.0.0.1"] * (to % 4 == 3)
        elif what == "recreated" and log.incarnation < 2 and to % 3 == 0:
            self.topic_recreated(1 + which % 3)

    @staticmethod
    def has_looked_at_the_group(run: Run) -> bool:
        """Whether it may write what it decided on before this moment: that cannot be fenced, by anyone."""
        done = run.steps.trace[:-1]
        looked = [n for n, name in enumerate(done) if name == "log.group_offsets"]
        return bool(looked) and "log.commit_group" not in done[looked[-1] :]

    def topic_recreated(self, partitions: int) -> None:
        for run in list(self.runs):
            # Whoever has looked at the topic and is about to write its group cannot be fenced, by anyone.
            if run.steps.at == "log.commit_group" or (not run.carries and "log.read" not in run.steps.trace):
                run.steps.kill()
                self.settle_run(run)
        self.bench.log.recreate(partitions)
        self.resets.clear()

    # what must hold

    def sight(self) -> Sight:
        lateness_ms = self.stream.allowed_lateness * 1000
        return look_around(self.bench, allowed_lateness_ms=lateness_ms, junk_bytes=JUNK_BYTES)

    def guard(self, check: Callable[[], None]) -> None:
        try:
            check()
        except BaseException:
            self.broken = True
            raise

    @invariant()
    def all_guarantees_hold(self) -> None:
        if hasattr(self, "bench"):
            sight = self.sight()
            for guarantee in self.guarantees:
                self.guard(lambda guarantee=guarantee: guarantee.check(sight))  # type: ignore[misc]

            self.guard(self.resets_are_taken_over)

    def resets_are_taken_over(self) -> None:
        """A reset by Kafka's tools stays until a new head takes it over; only who had looked before may undo it."""
        for p, (heads, raced) in list(self.resets.items()):
            at = self.bench.log.group.get(p)
            if at is None or at.metadata:
                del self.resets[p]
                since = {h.kind for h in self.bench.tables.snapshots[heads:]}
                assert raced or since & {"adopted", "rewind", "first"}, (
                    f"reset: of partition {p}, overwritten by a batch"
                )

    def teardown(self) -> None:
        for run in self.runs:
            run.steps.kill()
        if hasattr(self, "bench") and not self.broken:
            self.two_undisturbed_ingests_repair_everything()

    def two_undisturbed_ingests_repair_everything(self) -> None:
        log, tables = self.bench.log, self.bench.tables
        log.live_members = []
        log.end_transactions(Visibility.COMMITTED, self.clock_ms)
        try:
            self.take_the_named_ways_out()
            for _ in range(2):
                self.ingest_alone()
        except (*LOUD, WavestitchError) as error:
            raise AssertionError(f"live: an undisturbed ingest ended with {error!r}") from error
        head = tables.snapshots[-1]
        ends = {p: at.end for p, at in log.partitions.items()}
        stands = {p: at.next_offset for p, at in head.positions.items()}
        # A partition that was added and never written to is not in the head.
        assert {p: stands.get(p, 0) for p in ends} == ends, f"live: head at {stands}, log ends at {ends}"
        assert {p: log.group[p] for p in stands} == {
            p: (at, head.tag(tables.uuid).encode()) for p, at in stands.items()
        }
        self.all_guarantees_hold()
        self.check_published()

    def ingest_alone(self) -> Any:
        how = Carrying(self.failing)
        return run_batch(self.bench, self.stream, PlanRequest(), clock_ms=self.clock_ms, how=how)

    def take_the_named_ways_out(self) -> None:
        """Where a plan is refused, do what the refusal says."""
        for _ in range(4):
            try:
                self.ingest_alone()
                return
            except DataLost as lost:
                self.follow(str(lost))
            except Refused as refused:
                self.follow(str(refused))
        raise AssertionError("live: the ways out that refusals name do not lead out")

    def follow(self, advice: str) -> None:
        wanted = way_out(advice)
        assert wanted is not None, f"live: no way out in {advice!r}"
        self.rewind(wanted, True)

    def check_published(self) -> None:
        """What the oracle says of all records, against the table; what was given up by name may be missing."""
        sight = self.sight()
        far = {h.topic_id: furthest(sight.heads, h.topic_id) for h in sight.heads}
        gone = GivenUp(sight.heads)
        known = [
            r
            for r in sight.records
            if r.coordinate not in gone and r.offset < far.get(r.topic_id, {}).get(r.partition, 0)
        ]
        parked = {r.id for r in sight.held if r.reason == "parked"}
        published = {row.id: row.samples for row in sight.published}
        of_known = truths(known)
        for waveform_id, truth in truths(sight.records).items():
            seen = of_known.get(waveform_id)
            if (
                waveform_id in self.failing
                or (not truth.whole)
                or (not truth.contradicts_itself and not truth.publishable)
            ):
                # What was given up by name may be all that spoke against it: then what was read decides.
                good = seen is not None and seen.whole and seen.publishable and waveform_id not in self.failing
                by_the_rest = good and seen is not None and published.get(waveform_id) == seen.samples
                assert waveform_id not in published or truth.contradicts_itself or by_the_rest, (
                    f"live: {waveform_id} was published"
                )
            elif not truth.contradicts_itself and seen is not None and seen.whole and waveform_id not in parked:
                assert published.get(waveform_id) == truth.samples, f"live: {waveform_id} is whole and not published"
