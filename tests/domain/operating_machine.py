"""What people do in the protocol machine: batches, rewinds, decisions about what is held and about closed gates.

All of it by the functions that the command line calls, and most of it stopped anywhere.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule

from tests.domain.producing_machine import START_MS, pick
from tests.domain.running_machine import RunningMachine, mostly_far
from tests.fakes.batch import Carrying, FakeEdges, carry_through, run_batch, run_interval
from tests.fakes.faults import under_way
from tests.fakes.way_out import Take, way_out, ways_out
from wavestitch.batch import rewind as rewind_step
from wavestitch.batch.held_decision import carry_out, plan_held
from wavestitch.batch.held_waveforms import Selection
from wavestitch.batch.history import find_committed, history_of
from wavestitch.batch.plan import PlanRequest
from wavestitch.batch.request import plan_request, rewind_target
from wavestitch.batch.rewind import Target
from wavestitch.contracts.accepted_skip import AcceptedSkip
from wavestitch.contracts.errors import Refused
from wavestitch.contracts.held_choice import HeldAction
from wavestitch.contracts.plan import Plan, PlanKind, Scope
from wavestitch.contracts.quantities import EpochMs, Offset, Partition
from wavestitch.contracts.stream import Stream

WORDS = ("earliest", "previous", "head", "group", "latest", "new-topic", "start-over", "rebuilt")
STOPPED = re.compile(r"--plan (\S+) --gate accept")
GIVEN_UP = re.compile(r"`wavestitch abandon \S+ --plan (\S+)")
OF_ONE = ("earliest", "latest", "head", "group", "previous")


class OperatingMachine(RunningMachine):
    """`stream`: its definition. `mended`: what an expectation refused until the definition was put right. `rewinding`:
    by run, the partitions that its rewind names; None: all."""

    stream: Stream

    def __init__(self) -> None:
        super().__init__()
        self.mended: set[str] = set()
        self.rewinding: dict[str, frozenset[int] | None] = {}

    def edges(self, how: Carrying | None = None) -> FakeEdges:
        return FakeEdges(self.bench, self.stream, self.clock_ms, how or self.how())

    def how(self, **more: Any) -> Carrying:
        return Carrying(self.failing, spoiled=self.spoiled, **more)

    # batches

    def batch(self, stream: Stream, request: PlanRequest, how: Carrying, clock_ms: int) -> Any:
        return run_batch(self.bench, stream, request, clock_ms=clock_ms, how=how)

    @precondition(lambda self: not self.busy)
    @rule(most=st.sampled_from([1000, 1000, 1000, 5, 3, 2, 1]), park=st.integers(0, 9), until=mostly_far)
    def ingest(self, most: int, park: int, until: str) -> None:
        how = self.how(park=park == 9)
        self.launch("ingest", partial(self.batch, self.limited(most), PlanRequest(), how, self.clock_ms), until)

    def limited(self, most: int) -> Stream:
        limits = self.stream.limits.model_copy(update={"max_batch_records": most})
        return self.stream.model_copy(update={"limits": limits})

    @precondition(lambda self: not self.busy)
    @rule(which=pick, to=st.integers(0, 12), only=st.booleans(), until=mostly_far)
    def ingest_a_part(self, which: int, to: int, only: bool, until: str) -> None:
        """Of some partitions, or up to named offsets."""
        p = which % len(self.bench.log.partitions)
        request = plan_request("manual", None, {"partitions": f"{p}"} if only else {"until": f"{p}:{to}"})
        self.launch("ingest", partial(self.batch, self.stream, request, self.how(), self.clock_ms), until)

    @precondition(lambda self: not self.busy and self.bench.plans)
    @rule(
        since=st.sampled_from([0, 0, 21, 101]),
        span=st.sampled_from([300, 100, 1]),
        until=mostly_far,
        most=st.sampled_from([1000, 1000, 3]),
    )
    def backfill(self, since: int, span: int, until: str, most: int = 1000) -> None:
        """In one batch, or in as many as small limits make of it."""
        scope = Scope((START_MS + since * 1000) * 1_000_000, (START_MS + (since + span) * 1000) * 1_000_000)
        call = partial(run_interval, self.bench, self.limited(most), scope, clock_ms=self.clock_ms, how=self.how())
        # What it waits for became whole with chunks that an ingest has held meanwhile; plan again.
        self.launch("backfill", call, until, plans_again=True)

    @precondition(lambda self: not self.busy and self.bench.plans)
    @rule(which=pick, until=mostly_far)
    def carry_plan_again(self, which: int, until: str) -> None:
        """A step that is tried again, perhaps beside its own zombie: the same plan, carried through once more."""
        plan = list(self.bench.plans.values())[-1 - which % min(len(self.bench.plans), 3)]
        again, held = partial(self.carry, plan, self.how()), plan.kind is not PlanKind.INGEST
        self.launch(f"{plan.kind} again", again, until, plans_again=held, carries=True)

    def carry(self, plan: Plan, how: Carrying) -> Any:
        """A plan once more, by whoever carries its kind."""
        if plan.choice is not None:
            return carry_out(FakeEdges(self.bench, plan.stream, plan.clock_ms, how), plan)
        return carry_through(self.bench, plan, how)

    # what is held

    def held_ids(self) -> list[str]:
        rows = [row.held.chunk for row in self.bench.tables.held_rows()]
        return sorted({c.waveform_id for c in rows if c.reason is None and c.waveform_id is not None})

    @precondition(lambda self: not self.busy and self.held_ids())
    @rule(
        action=st.sampled_from([None, None, None, *HeldAction]),
        which=pick,
        copy=st.sampled_from(["first", "last", "place"]),
        until=mostly_far,
    )
    def decide_held(self, action: HeldAction | None, which: int, copy: str, until: str) -> None:
        """About one waveform, mostly: what fits, or whatever is said, also where it would change nothing."""
        ids = self.held_ids()
        wanted = Selection(ids=() if which % 7 == 6 else (ids[which % len(ids)],))
        rows = [row.held for row in self.bench.tables.held_rows() if row.held.chunk.waveform_id in wanted.ids]
        action = action or self.what_fits({row.reason.value for row in rows[-1:]}, which)
        pick = copy if action is HeldAction.PICK else ""
        if pick == "place":
            places = [f"{row.chunk.partition}:{row.chunk.offset}" for row in rows]
            pick = places[which % len(places)] if places else "first"
        self.launch(f"held {action}", partial(self.decide, self.edges(), action, wanted, pick), until, plans_again=True)

    @staticmethod
    def what_fits(reasons: set[str], which: int) -> HeldAction:
        if "discarded" in reasons:
            return HeldAction.RESTORE
        if "conflict" in reasons:
            return HeldAction.PICK if which % 2 else HeldAction.DISCARD
        return [HeldAction.REDRIVE, HeldAction.ACCEPT, HeldAction.DISCARD][which % 3]

    @staticmethod
    def decide(edges: FakeEdges, action: HeldAction, wanted: Selection, pick: str) -> Any:
        found = plan_held(edges, action, wanted, who="test", why="to see", pick=pick)
        return carry_out(edges, found.plan)

    @precondition(lambda self: self.held_ids())
    @rule(which=pick, to=pick)
    def send_again_what_is_held(self, which: int, to: int) -> None:
        ids = self.held_ids()
        wanted = ids[which % len(ids)].encode()
        known = [one for one in self.sent if wanted in (one.key, dict(one.headers).get("ws-id"))]
        if known:
            self.send(known[which % len(known)], to)

    @precondition(lambda self: self.failing and not self.runs)
    @rule()
    def the_definition_is_put_right(self) -> None:
        """What an expectation refused passes from now on, once it is looked at again."""
        self.mended |= self.failing
        self.failing.clear()

    # closed gates

    def stopped(self) -> list[Plan]:
        return [plan for i, plan in sorted(self.bench.gates.items()) if i not in self.bench.abandoned]

    @precondition(lambda self: not self.busy and self.stopped())
    @rule(which=pick, word=st.sampled_from(["accept", "park", "abandon"]), until=mostly_far)
    def decide_at_the_gate(self, which: int, word: str, until: str) -> None:
        plan = self.stopped()[-1 - which % len(self.stopped())]
        said, held = partial(self.say_at_the_gate, plan, word), plan.kind is not PlanKind.INGEST
        self.launch(f"{word} at the gate", said, until, plans_again=held, carries=True)

    def say_at_the_gate(self, plan: Plan, word: str) -> Any:
        if word == "abandon":
            if find_committed(history_of(self.edges()), plan.plan_id) is not None:
                raise Refused(f"batch {plan.plan_id[:16]} is committed: there is nothing left to abandon")
            return self.bench.abandoned.add(plan.plan_id)
        return self.carry(plan, self.how(park=word == "park", gate="accept" if word == "accept" else "stop"))

    # rewinds

    @precondition(lambda self: not self.busy and self.bench.plans)
    @rule(
        to=st.one_of(
            st.sampled_from(WORDS).map(Target),
            st.dictionaries(st.integers(0, 2).map(Partition), st.integers(0, 12).map(Offset), min_size=1).map(
                lambda o: Target(offsets=o)
            ),
            st.integers(0, 300).map(lambda s: Target(time_ms=EpochMs(START_MS + s * 1000))),
            st.tuples(st.sampled_from(OF_ONE), st.integers(0, 2)).map(lambda t: rewind_target(t[0], str(t[1]))),
            st.dictionaries(st.integers(0, 2), st.sampled_from(OF_ONE), min_size=1).map(
                lambda parts: rewind_target(",".join(f"{p}:{word}" for p, word in parts.items()))
            ),
        ),
        accept=st.booleans(),
        until=mostly_far,
    )
    def start_rewind(self, to: Target, accept: bool, until: str) -> None:
        self.launch("rewind", partial(self.rewind, to, accept), until)

    def rewind(self, to: Target, accept: AcceptedSkip) -> Any:
        self.rewinding[under_way()] = to.only or frozenset(to.parts or to.offsets or ()) or None
        edges: dict[str, Any] = {"log": self.bench.log, "tables": self.bench.tables}
        found = rewind_step.plan_rewind(self.stream, to, **edges, who="test", why="to see")
        return rewind_step.apply_rewind(self.stream, found, accept_skip=accept, accept_missing=bool(accept), **edges)

    # what refusals name

    @precondition(lambda self: self.advice and not self.busy)
    @rule(word=st.sampled_from(["accept", "park", "abandon"]), until=mostly_far)
    def follow_advice(self, word: str, until: str) -> None:
        way, self.advice = self.way(self.advice, word), ""
        if way is not None:
            self.launch("as advised", way, until, plans_again=True, carries=True)

    def ingest_alone(self) -> Any:
        return self.batch(self.stream, PlanRequest(), self.how(), self.clock_ms)

    def way(self, advice: str, word: str) -> Callable[[], Any] | None:
        """What the sentence names: `word` about a batch at a closed gate, or a rewind; None where it names neither."""
        stopped, given_up = STOPPED.search(advice), GIVEN_UP.search(advice)
        found = stopped or given_up
        if found is not None and found[1] in self.bench.plans:
            return partial(self.say_at_the_gate, self.bench.plans[found[1]], word if stopped is not None else "abandon")
        wanted = way_out(advice)
        again = "then plan again" in advice or any(isinstance(way, Take) for way in ways_out(advice))
        if wanted is None and again:
            return self.ingest_alone  # plan again; whatever bars that names its own way
        return None if wanted is None else partial(self.rewind, wanted.target, wanted.accepts)
