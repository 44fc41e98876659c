"""What operators of a random history decide: about batches at a closed gate, what is held, and what refusals name.

They follow sentences, as people do; what they try is often refused. Judges nothing.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from tests.builders.streams import make_stream
from tests.fakes.batch import Carrying, FakeEdges, carry_through, run_batch
from tests.fakes.faults import Steps, under_way
from tests.fakes.way_out import Decide, Raise, Take, Way, way_out, ways_out
from tests.histories.accidents import Accidents
from tests.histories.events import JunkLimit, Rewound
from tests.histories.group_events import OnReset
from tests.histories.promotion_events import Spoils
from tests.histories.reading_events import Named
from wavestitch.batch import rewind as rewind_step
from wavestitch.batch.gate_in_head import leave_gate
from wavestitch.batch.held_decision import carry_out, plan_held
from wavestitch.batch.held_waveforms import Selection
from wavestitch.batch.plan import NothingToDo, PlanRequest
from wavestitch.batch.promote import carry_promotion
from wavestitch.batch.rewind import Target
from wavestitch.contracts.accepted_skip import AcceptedSkip
from wavestitch.contracts.held_choice import HeldAction
from wavestitch.contracts.plan import Plan
from wavestitch.contracts.quantities import Partition
from wavestitch.contracts.stream import Limits, Reading, Stream

KEY = "env:WAVESTITCH_PROOF_KEY"


class Deciding(Accidents):
    """`stream`: its definition as it stands, which operators change. `spoiled`: waveforms that close the gate."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.stream = make_stream(
            "waves",
            group="waves-batches",
            on_reset=self.random.choice(["adopt", "adopt", "refuse"]),
            on_closed_gate=self.random.choice(["stop", "stop", "park"]),
            allowed_lateness=60,
            idle=30,
            search_margin=60,
            reading=Reading(min_slice=self.random.choice([1, 2, 256])),
            proof=self.bench.proof.kind,
            proof_key=KEY if self.bench.proof.kind == "mac" else None,
        )
        if self.random.random() < 0.2:
            self.set_limits(max_held_rows=self.random.randint(2, 20))
        if self.random.random() < 0.2:
            self.ops["small junk limit"] += 1
            self.set_limits(max_junk_bytes=self.random.randint(20, 400))
        self.history.append(JunkLimit(self.stream.limits.max_junk_bytes))
        self.history.append(OnReset(self.stream.on_reset == "adopt"))
        self.tried: list[Way] = []
        self.spoiled = {f"w{n}" for n in range(200) if self.random.random() < 0.25}
        self.history.append(Spoils(tuple(sorted(self.spoiled))))

    def set_limits(self, **limits: int) -> None:
        self.stream = self.stream.model_copy(update={"limits": self.stream.limits.model_copy(update=limits)})

    def carrying(self, **how: Any) -> Carrying:
        return Carrying(self.failing, spoiled=self.spoiled, **how)

    def batch(self, stream: Stream, request: PlanRequest, park: bool = False, unsure: bool = False) -> Any:
        how = self.carrying(park=park, unsure=unsure)
        if request.ranges or request.only is not None or request.until:
            self.history.append(self._named_by(stream, request))
        done = run_batch(self.bench, stream, request, clock_ms=self.clock_ms, how=how)
        if request.until and not isinstance(done, NothingToDo):
            self.ops["run until a named offset"] += 1
        return done

    def _named_by(self, stream: Stream, request: PlanRequest) -> Named:
        ranges = tuple((r.partition, r.start, r.end) for r in request.ranges)
        only = None if request.only is None else tuple(sorted(request.only))
        roomy = stream.limits.max_batch_bytes == Limits().max_batch_bytes and not self.bench.stops
        most = stream.limits.max_batch_records if roomy else None
        return Named(under_way(), ranges, only, tuple(sorted(request.until.items())), most)

    # what is held

    def decide(self) -> None:
        """About some waveforms that are held, mostly; the rest of what is said is refused."""
        ids = self.held_ids()
        if ids and not self.busy:
            some = () if self.random.random() < 0.3 else tuple(self.random.sample(ids, min(len(ids), 2)))
            action = self.random.choice(list(HeldAction))
            self.launch_decision(action, Selection(ids=some))
            if action is HeldAction.DISCARD:
                self.sent_again_though_held()

    def held_ids(self) -> list[str]:
        return sorted({i for row in self.bench.tables.held_rows() if (i := row.held.chunk.waveform_id) is not None})

    def launch_decision(
        self, action: HeldAction, wanted: Selection, *, far: bool = False, now: int | None = None, pick: str = ""
    ) -> Steps:
        if action is HeldAction.PICK and not pick:
            pick = self.random.choice(["first", "last", *self._places(wanted)])
        return self.launch(f"held: {action}", partial(self.decided, action, wanted, pick), far=far, now=now)

    def _places(self, wanted: Selection) -> list[str]:
        chunks = [row.held.chunk for row in self.bench.tables.held_rows() if row.held.chunk.waveform_id in wanted.ids]
        return [f"{c.partition}:{c.offset}" for c in chunks[:3]]

    def decided(self, action: HeldAction, wanted: Selection, pick: str) -> Any:
        edges = FakeEdges(self.bench, self.stream, self.clock_ms, self.carrying())
        found = plan_held(edges, action, wanted, who="play", why="to see", pick=pick, everything=True)
        return carry_out(edges, found.plan)

    def sent_again_though_held(self) -> None:
        """A chunk of a waveform that waits for a decision, or that somebody discarded, comes once more."""
        held = {"parked", "conflict", "discarded"}
        ids = {r.held.chunk.waveform_id for r in self.bench.tables.held_rows() if r.held.reason.value in held}
        letters = [one for one in self.sent if self.id_of(one) in ids]
        if letters:
            self.ops["sent again though held"] += 1
            self.send_again(self.id_of(self.random.choice(letters)))

    def send_again(self, waveform_id: str) -> None:
        for one in [one for one in self.sent if self.id_of(one) == waveform_id][: self.random.choice([1, 4])]:
            self.send(one)

    def carry(self, plan: Plan, how: Carrying) -> Any:
        """A plan once more, by whoever carries its kind."""
        if plan.promotion is not None:
            return carry_promotion(FakeEdges(self.bench, plan.stream, plan.clock_ms, how), plan)
        if plan.choice is not None:
            return carry_out(FakeEdges(self.bench, plan.stream, plan.clock_ms, how), plan)
        return carry_through(self.bench, plan, how)

    # what refusals name

    def follow(self, advice: str) -> Steps | None:
        """Take a way out that a refusal names: what decides or takes in first, then the rewind that skips least."""
        ways = ways_out(advice)
        decisions = [way for way in ways if isinstance(way, Decide)]
        if decisions:
            return self.decide_at_the_gate(self.random.choice(decisions))
        raises = [way for way in ways if isinstance(way, Raise)]
        if raises and (self.healing or self.random.random() < 0.5):
            self.raise_limit(raises[0])
            return None
        for way in ways:
            if isinstance(way, Take) and (self.healing or not self.busy) and way not in self.tried:
                taken = self.take(way)
                if not taken.done or taken.error is not None:
                    if self.healing and not way.request.until:
                        self.tried.append(way)  # other partitions may be read before the rewind, and need not
                    return taken  # what is named after it comes after it
        way_on = way_out(advice)
        if way_on is None:
            return None
        self.ops["advice followed"] += 1
        # Who heals has looked at what would be skipped besides.
        return self.start_rewind(way_on.target, self.healing or way_on.accepts, far=self.healing)

    def raise_limit(self, way: Way) -> None:
        assert isinstance(way, Raise)
        self.ops["limit raised"] += 1
        self.set_limits(**{way.limit: 4 * int(getattr(self.stream.limits, way.limit))})

    def take(self, way: Take) -> Steps:
        self.ops["what is good taken in"] += 1
        return self.launch(
            "ingest" if way.request.until else "manual", partial(self.batch, self.stream, way.request), far=self.healing
        )

    def decide_at_the_gate(self, way: Decide) -> Steps | None:
        plan = self.bench.plans.get(way.plan_id)
        if plan is None:
            return self.give_up_by_the_head(way.plan_id) if way.plan_id and way.how == "abandon" else None
        if (self.healing and way in self.tried) or self.random.random() < 0.1:
            way = Decide(way.plan_id, "abandon")  # it is of an older definition, of which no limit can be raised
        self.tried.append(way)
        self.ops["gate: " + way.how] += 1
        if way.how == "abandon":
            self.bench.abandoned.add(way.plan_id)
            self.bench.tell("abandoned", plan_id=way.plan_id)
            return None
        decided = self.carrying(park=way.how == "park", gate="accept" if way.how == "accept" else "stop")
        return self.launch(f"{plan.kind} again", partial(self.carry, plan, decided), far=self.healing)

    def give_up_by_the_head(self, plan_id: str) -> Steps:
        """Its folder is gone with the landing."""
        self.ops["given up by the head"] += 1
        self.bench.tell("abandoned", plan_id=plan_id)
        edges: dict[str, Any] = {"log": lambda: self.bench.log, "tables": self.bench.tables}
        return self.launch("abandon", partial(leave_gate, self.stream, plan_id, note="given up", **edges), far=True)

    # rewinds

    def start_rewind(self, target: Target, accepts: AcceptedSkip, *, far: bool = False) -> Steps:
        word = target.word or ("offsets" if target.offsets else "parts" if target.parts else "a time")
        named = tuple(sorted(_named(target))) or None
        offsets = {p: at for one in (target, *target.parts.values()) for p, at in (one.offsets or {}).items()}
        to, words = sorted(offsets.items()), sorted((p, one.word) for p, one in target.parts.items() if one.word)
        asked = (f"run-{self.launched + 1}", word, bool(accepts), named, tuple(to), tuple(words), target.time_ms)
        self.history.append(Rewound(*asked, by_name(accepts)))
        return self.launch("rewind", partial(self.rewound, target, accepts), far=far)

    def rewound(self, target: Target, accepts: AcceptedSkip) -> Any:
        edges: dict[str, Any] = {"log": self.bench.log, "tables": self.bench.tables}
        found = rewind_step.plan_rewind(self.stream, target, **edges, who="play", why="to see")
        # What is missing for good is accepted with the rest: nothing in this world puts a held table back.
        missing = bool(accepts)
        done = rewind_step.apply_rewind(self.stream, found, accept_skip=accepts, accept_missing=missing, **edges)
        if 0 < len(_named(target)) < len(self.bench.log.partitions):
            self.ops["partial rewind"] += 1
        return done


def by_name(accepts: AcceptedSkip) -> tuple[tuple[int, int, int], ...] | None:
    """As an event has it."""
    return None if isinstance(accepts, bool) else tuple((int(p), int(a), int(b)) for p, a, b in accepts)


def _named(target: Target) -> frozenset[Partition]:
    """The partitions that a rewind names; none where it is about all of them."""
    return target.only or frozenset(target.parts or target.offsets or ())
