"""One random history: producers, runs, operators, Kafka's tools and accidents, all drawn from one seed.

Drives the product's own steps over the memory edges, effect by effect, so that runs interleave, die and fail anywhere.
Then heals everything, lets quiet runs follow what refusals advise, and hands the history over. Judges nothing.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from functools import partial
from typing import Any

from tests.builders.streams import make_stream
from tests.histories.history import Ended, History, Quiet, Rewound, Started
from tests.histories.producing import START_MS, Producing
from tests.histories.witness import Witness
from tests.memory.batch import Carrying, carry_through, run_batch
from tests.memory.faults import Fault, Killed, Steps
from tests.memory.memory_log import Mood, Visibility
from tests.memory.memory_tables import MemoryFiles, MemoryTables
from tests.memory.way_out import way_out
from wavestitch.batch import rewind as rewind_step
from wavestitch.batch.plan import NothingToDo, PlanRequest
from wavestitch.batch.request import Gate, rewind_target
from wavestitch.batch.rewind import Target
from wavestitch.contracts.errors import Altered, BadInput, Terminal, Unbalanced, WavestitchError
from wavestitch.contracts.offset_range import OffsetRange
from wavestitch.contracts.plan import PlanKind, Scope
from wavestitch.contracts.quantities import EpochMs
from wavestitch.contracts.stream import Limits, Reading, Stream

STOPPED = re.compile(r"--plan (\S+) --gate accept")
GIVEN_UP = re.compile(r"`wavestitch abandon \S+ --plan (\S+)")
DEADLINE = 600
"""Effects that one run may take; the longest that any of ours takes is about a third of it."""
WORDS = ("earliest", "previous", "head", "group", "latest", "new-topic")
NEVER = (Altered, BadInput, Unbalanced)
"""Ends that no fault of ours may lead to."""


class Play(Producing):
    """The world of one seed. `ops` counts what was done; `history` is what was seen."""

    def __init__(self, seed: int) -> None:
        super().__init__(random.Random(seed))
        self.witness = Witness(self.bench, self.history)
        self.stream = make_stream(
            "waves",
            group="waves-batches",
            on_reset=self.random.choice(["adopt", "adopt", "refuse"]),
            on_closed_gate=self.random.choice(["stop", "stop", "park"]),
            allowed_lateness=60,
            idle=30,
            search_margin=60,
            reading=Reading(min_slice=self.random.choice([1, 2, 256])),
        )
        self.runs: list[Steps] = []
        self.launched = 0
        self.healing = False
        self.catalogs = 0
        self.spoiled = {f"w{n}" for n in range(200) if self.random.random() < 0.25}

    # running

    def play(self, ops: int) -> History:
        self.produce()
        choices: list[tuple[int, Callable[[], None]]] = [
            (8, self.produce),
            (3, self.send_late),
            (3, self.repeat),
            (2, self.lie),
            (2, self.contradict),
            (3, self.transaction),
            (1, self.markers),
            (9, self.ingest),
            (2, self.backfill),
            (1, self.read_named_ranges),
            (3, self.carry_again),
            (18, self.advance),
            (6, self.disturb),
            (3, self.rewind),
            (4, self.accident),
            (2, self.mood),
            (4, self.time_passes),
        ]
        weights, calls = [w for w, _ in choices], [c for _, c in choices]
        for call in self.random.choices(calls, weights, k=ops):
            call()
        self.heal()
        return self.history

    def launch(self, what: str, call: Callable[[], Any], *, far: bool = False) -> Steps:
        self.ops[what] += 1
        self.launched += 1
        name = f"run-{self.launched}"
        self.history.append(Started(name, what, DEADLINE))
        steps = Steps(call, name)
        self.runs.append(steps)
        self.step(steps, DEADLINE + 1 if far else self.random.choice([0, 3, 8, 15, 22, 30, DEADLINE]))
        return steps

    def step(self, run: Steps, most: int) -> None:
        """Some effects further. A run past its deadline is ended by force, as Airflow would."""
        for _ in range(most):
            if len(run.trace) > DEADLINE and not run.done:
                run.kill()
            if not run.advance():
                break
        self.settle(run)

    def settle(self, run: Steps) -> None:
        if run.done and run in self.runs:
            self.runs.remove(run)
            reason, text = how_it_ended(run)
            self.ops["ended: " + reason] += 1
            self.history.append(Ended(run.name, reason, len(run.trace), text))
            if not self.healing and len(self.runs) < 3 and self.random.random() < 0.25:
                self.follow(text)

    def advance(self) -> None:
        if self.runs:
            self.step(self.random.choice(self.runs), self.random.choice([1, 1, 2, 4, 9, 40]))

    def disturb(self) -> None:
        if self.runs:
            run, fault = self.random.choice(self.runs), self.random.choice(list(Fault))
            self.ops[fault.value] += 1
            run.advance(fault)
            self.settle(run)

    # batches

    def ingest(self) -> None:
        if len(self.runs) < 3:
            most = self.random.choice([1000, 1000, 7, 4, 2, 1])
            stream = self.stream.model_copy(update={"limits": Limits(max_batch_records=most)})
            request = self.random.choice([PlanRequest(), PlanRequest(), self.some_partitions()])
            self.launch("ingest", partial(self.batch, stream, request, self.random.random() < 0.05))

    def some_partitions(self) -> PlanRequest:
        """An ingest of one partition, or one that ends at a named offset."""
        p, at = self.a_partition()
        if self.random.random() < 0.5:
            return PlanRequest(only=frozenset({p}))
        return PlanRequest(until={p: self.random.randint(at.log_start, at.end)})

    def backfill(self) -> None:
        if len(self.runs) < 3:
            since, span = self.random.choice([0, 0, 21, 101]), self.random.choice([300, 100, 1])
            scope = Scope((START_MS + since * 1000) * 10**6, (START_MS + (since + span) * 1000) * 10**6)
            self.launch("backfill", partial(self.batch, self.stream, PlanRequest(PlanKind.BACKFILL, scope)))

    def read_named_ranges(self) -> None:
        """A manual run that names its offsets."""
        if len(self.runs) < 3:
            p, at = self.a_partition()
            start = self.random.randint(at.log_start, at.end)
            named = (OffsetRange(p, start, self.random.randint(start, at.end)),)
            self.launch("manual", partial(self.batch, self.stream, PlanRequest(PlanKind.MANUAL, ranges=named)))

    def carry_again(self) -> None:
        """A step that is tried again, perhaps beside its own zombie."""
        if len(self.runs) < 3 and self.bench.plans:
            plan = self.random.choice(list(self.bench.plans.values())[-4:])
            self.launch(f"{plan.kind} again", partial(carry_through, self.bench, plan, self.carrying()))

    def carrying(self, *, park: bool = False, gate: Gate = "stop") -> Carrying:
        return Carrying(self.failing, park, self.spoiled, gate)

    def batch(self, stream: Stream, request: PlanRequest, park: bool = False) -> Any:
        how = self.carrying(park=park)
        return run_batch(self.bench, stream, request, clock_ms=self.clock_ms, how=how)

    def rewind(self) -> None:
        if len(self.runs) < 3:
            p, at = self.a_partition()
            target = self.random.choice(
                [
                    *map(Target, WORDS),
                    Target(offsets={p: self.random.randint(at.log_start, at.end)}),
                    Target(time_ms=EpochMs(START_MS + self.random.randint(0, 300) * 1000)),
                    rewind_target(self.random.choice(["earliest", "latest", "previous"]), str(p)),
                    rewind_target(f"{p}:{self.random.choice(['earliest', 'latest', 'head', 'group'])}"),
                ]
            )
            self.start_rewind(target, self.random.random() < 0.5)

    def start_rewind(self, target: Target, accepted: bool, *, far: bool = False) -> Steps:
        word = target.word or ("offsets" if target.offsets else "parts" if target.parts else "a time")
        named = target.only or frozenset(target.parts or target.offsets or ())
        self.history.append(Rewound(f"run-{self.launched + 1}", word, accepted, tuple(sorted(named)) or None))
        return self.launch("rewind", partial(self.rewound, target, accepted), far=far)

    def rewound(self, target: Target, accepted: bool) -> Any:
        edges: dict[str, Any] = {"log": self.bench.log, "tables": self.bench.tables}
        found = rewind_step.plan_rewind(self.stream, target, **edges, who="play", why="to see")
        return rewind_step.apply_rewind(self.stream, found, accept_skip=accepted, **edges)

    # the world

    def time_passes(self) -> None:
        """Somebody stops the foreign consumer, too, and sets the cleanup policy right."""
        self.bench.log.live_members, self.bench.log.compacted = [], False
        self.clock_ms += self.random.choice([100, 45, 20, 1]) * 1000

    def mood(self) -> None:
        """What the next readers meet."""
        mood = self.random.choice(list(Mood))
        self.ops["reader: " + mood.value] += 1
        self.bench.log.moods.append(mood)

    def accident(self) -> None:
        log = self.bench.log
        p, at = self.a_partition()
        what = self.random.choice(
            [
                *(
                    "reset",
                    "reset",
                    "expiry",
                    "retention",
                    "partition",
                    "snapshots",
                    "member",
                    "compacted",
                    "recreated",
                ),
                *("catalog lost", "catalog set back", "head expired"),
            ]
        )
        if what == "recreated" and (log.incarnation > 1 or self.random.random() < 0.6):
            return
        if what.startswith(("catalog", "head")) and (self.catalogs > 1 or not self.bench.tables.snapshots):
            return
        if what == "partition" and len(log.partitions) > 3:
            return
        self.ops[what] += 1
        match what:
            case "reset":
                log.reset_group(p, self.random.randint(0, at.end))
            case "expiry":
                log.expire_group(p)
            case "retention":
                log.retain_from(p, self.random.randint(0, at.end))
            case "partition":
                log.add_partition()
            case "snapshots":
                self.bench.tables.expire_snapshots(self.random.randint(1, 3))
            case "member":
                log.live_members = [] if log.live_members else ["console-consumer at 10.0.0.1"]
            case "compacted":
                log.compacted = not log.compacted
            case "catalog lost":
                self.catalog_lost()
            case "catalog set back":
                self.stop_everybody()
                self.catalogs += 1
                heads = self.bench.tables.snapshots
                self.bench.tables.restore(heads[self.random.randrange(len(heads))].sequence)
            case "head expired":
                self.catalogs += 1
                self.bench.tables.expire_head()
            case "recreated":
                log.recreate(self.random.randint(1, 3))

    def catalog_lost(self) -> None:
        """With the host that it was on."""
        self.stop_everybody()
        self.catalogs += 1
        self.bench.files = MemoryFiles()
        self.bench.tables = MemoryTables(self.bench.files, uuid=f"6d0f4f0e-0000-4000-8000-{self.catalogs + 1:012d}")
        self.witness.catalog_lost(self.bench.tables)
        self.bench.gates.clear()

    def stop_everybody(self) -> None:
        """Nobody is at work on a catalog that is put back (docs/operations.md), or on one that is gone."""
        for run in list(self.runs):
            run.kill()
            self.settle(run)

    # healing

    def heal(self) -> None:
        """End what is under way, put the world in order, and let quiet runs finish the work."""
        log = self.bench.log
        self.healing = True
        for run in list(self.runs):
            if self.random.random() < 0.5:
                run.kill()
            self.step(run, DEADLINE + 1)
        log.live_members, log.compacted = [], False
        log.moods.clear()
        log.end_transactions(Visibility.COMMITTED, self.clock_ms)
        if self.bench.gates.keys() - self.bench.abandoned:
            self.a_month_passes()
        for _ in range(12):
            last = self.launch("quiet ingest", partial(self.batch, self.stream, PlanRequest()), far=True)
            if isinstance(last.result, NothingToDo):
                break
            way: Steps | None = last
            for _ in range(3):  # a way out may itself be refused, and name another
                way = self.follow(str(way.error)) if way is not None else None
        self.history.append(Quiet())

    def a_month_passes(self) -> None:
        """Beside a closed gate: a batch that leaves the positions, then maintenance, which expires all but its head."""
        self.ops["a month at a closed gate"] += 1
        p, at = self.a_partition()
        named = (OffsetRange(p, at.log_start, at.end),)
        self.launch("manual", partial(self.batch, self.stream, PlanRequest(PlanKind.MANUAL, ranges=named)), far=True)
        self.bench.tables.expire_snapshots(1)

    def follow(self, advice: str) -> Steps | None:
        """Take the way out that a refusal names."""
        stopped = STOPPED.search(advice)
        if stopped is not None:
            return self.decide_at_the_gate(stopped[1], self.random.choice(["accept", "park", "abandon"]))
        given_up = GIVEN_UP.search(advice)
        if given_up is not None:
            return self.decide_at_the_gate(given_up[1], "abandon")
        target = way_out(advice)
        if target is None:
            return None
        self.ops["advice followed"] += 1
        return self.start_rewind(target, True, far=self.healing)

    def decide_at_the_gate(self, plan_id: str, how: str) -> Steps | None:
        plan = self.bench.plans.get(plan_id)
        if plan is None:
            return None
        self.ops["gate: " + how] += 1
        if how == "abandon":
            self.bench.abandoned.add(plan_id)
            self.bench.tell("abandoned", plan_id=plan_id)
            return None
        decided = self.carrying(park=how == "park", gate="accept" if how == "accept" else "stop")
        return self.launch(f"{plan.kind} again", partial(carry_through, self.bench, plan, decided), far=self.healing)


def how_it_ended(run: Steps) -> tuple[str, str]:
    """The machine-readable end of a run, and the sentence. What no fault of ours may lead to is not among the ends."""
    error = run.error
    if error is None:
        return ("nothing to do" if isinstance(run.result, NothingToDo) else "done"), ""
    if isinstance(error, Killed):
        return "killed", ""
    known = isinstance(error, WavestitchError) and not isinstance(error, NEVER)
    if type(error) is Terminal and "was not stitched" not in str(error):
        known = False
    return (type(error).__name__ if known else f"unexpected {type(error).__name__}"), str(error)
