"""The whole protocol over memory edges, as a Hypothesis state machine: producers, runs, operators, Kafka's tools, time.

Every run is stopped before each of its effects, so that any two interleave and any one dies or fails anywhere. All
guarantees are checked after every step; at the end undisturbed ingests, which follow what refusals say, must repair
everything.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import initialize, invariant, precondition, rule

from tests.builders.streams import make_stream
from tests.domain.accident_machine import AccidentMachine
from tests.domain.oracle import truths
from tests.domain.producing_machine import pick
from tests.fakes.batch import Bench
from tests.fakes.fake_log import FakeLog
from tests.fakes.faults import Killed, Steps, under_way
from tests.fakes.kept_partition import Visibility
from tests.fakes.sight import look_around
from tests.guarantees import Balanced, NoDuplicates, NoInvention, NoLoss, Passed, Sight
from tests.guarantees_of_runs import Fenced, Idempotent, OffsetsLast
from tests.held_guarantees import Decided
from wavestitch.batch.plan import PlanRequest
from wavestitch.contracts.errors import DataLost, GateClosed, Refused, WavestitchError
from wavestitch.contracts.held_choice import HeldAction
from wavestitch.contracts.plan import Plan
from wavestitch.contracts.position import Head
from wavestitch.contracts.quantities import Partition
from wavestitch.contracts.stream import Limits

JUNK_BYTES = 12
"""So few bytes of records that are no chunks are kept that most histories come to their end."""
TAG = re.compile(r"wavestitch/2 (\S+) g(\d+) s(\d+)")


class ProtocolMachine(AccidentMachine):
    """`gates_seen`: by run, the batches that stood at a closed gate when it read last. `doubts`: by run, how group and
    catalog contradicted each other when it looked last. `on_a_way`: in the end, whether a way out that a refusal named
    is being taken. `wrong`: what was seen that no later look can tell."""

    def __init__(self) -> None:
        super().__init__()
        self.fenced = Fenced()
        self.catalog_changed()
        self.gates_seen: dict[str, set[str]] = {}
        self.doubts: dict[str, str] = {}
        self.on_a_way = False
        self.wrong = ""

    @initialize(
        partitions=st.integers(1, 3),
        on_reset=st.sampled_from(["adopt", "adopt", "refuse"]),
        first=st.lists(st.tuples(pick, st.integers(0, 12)), min_size=1, max_size=4),
        held=st.sampled_from(["", "", "held", "parked", "spoiled"]),
        on_closed_gate=st.sampled_from(["stop", "stop", "park"]),
        retries=st.booleans(),
    )
    def begin(
        self,
        partitions: int,
        on_reset: Any,
        first: list[tuple[int, int]],
        held: str = "",
        on_closed_gate: str = "stop",
        retries: bool = False,
    ) -> None:
        """`retries`: the table's owner has edited its properties, so that a library would try a commit that lost again,
        on top of what won."""
        self.bench = Bench(FakeLog(partitions=partitions))
        self.bench.tables.properties |= {"commit.retry.num-retries": "4"} if retries else {}
        self.bench.tell = self.bench.tables.tell = self.bench.log.tell = self.saw  # type: ignore[method-assign]
        self.stream = make_stream(
            "waves",
            group="waves-batches",
            allowed_lateness=60,
            idle=30,
            search_margin=60,
            on_reset=on_reset,
            on_closed_gate=on_closed_gate,
            limits=Limits(max_junk_bytes=JUNK_BYTES),
        )
        if held == "spoiled":
            self.produce_sticky(1, 0, 7, keyed=True)
            return
        for to, odd in first:
            self.produce_sticky(1 + to % 3, to, odd, keyed=bool(to % 2))
        if held:
            self.begin_with_what_is_held(park=held == "parked")

    def begin_with_what_is_held(self, *, park: bool) -> None:
        """A batch has been there, and has left one that is refused, one that contradicts itself, and an open one."""
        self.produce_sticky(2, 0, 1, keyed=True)
        self.produce_sticky(1, 1, 0, keyed=True)
        self.contradict(self.waveforms - 1, 0, 0)
        for to, one in enumerate(self.new_waveform(3, 0)[1:]):
            self.send(one, to)
        how = self.how(park=park)
        self.launch("ingest", partial(self.batch, self.stream, PlanRequest(), how, self.clock_ms), "end")

    def catalog_changed(self) -> None:
        """What was looked at is in no table any more; the head that settles it passes every generation that was."""
        self.guarantees = (NoLoss(), NoDuplicates(), NoInvention(), Balanced(), Decided())
        self.fenced.settles = self.catalogs > 0

    @precondition(
        lambda self: self.finished_plans() and not (self.bench.log.live_members or self.bench.tables.headless)
    )
    @rule(which=pick)
    def carry_finished_plan_again(self, which: int) -> None:
        plans = self.finished_plans()
        before = self.sight()
        again = Steps(partial(self.carry, plans[which % len(plans)], self.how()))
        again.finish()
        # Where group and catalog contradict each other nothing is shown before somebody said which is right.
        doubted = isinstance(again.error, Refused) and "doubt" in again.error.facts
        ended = None if doubted else again.error
        self.guard(lambda: Idempotent().check(before, self.sight(), ended=ended))

    def finished_plans(self) -> list[Plan]:
        """Where another engine has expired the head and the history row is gone, too, nobody knows that it is one."""
        tables = self.bench.tables
        recorded = {b.plan_id for b in tables.history}
        heads = enumerate(tables.snapshots)
        known = [h.plan_id for n, h in heads if h.plan_id and (n >= tables.expired or h.plan_id in recorded)]
        return [self.bench.plans[plan_id] for plan_id in known]

    # what must hold

    def saw(self, what: str, /, **facts: Any) -> None:
        super().saw(what, **facts)
        run = under_way()
        if what == "read":
            self.gates_seen[run] = {plan.plan_id for plan in self.stopped()}
        elif what == "looked" and facts["what"] == "group":
            self.doubts[run] = self.contradiction(next(reversed(self.bench.tables.snapshots), None))
        elif what == "projected" and self.doubts.get(run) and run not in self.rewinding:
            self.wrong = f"doubt: a batch writes the group; {self.doubts[run]}"
        elif what == "committed":
            self.committed(facts["head"], self.bench.tables.snapshots[:-1])

    def committed(self, head: Head, before: list[Head]) -> None:
        self.wrong = self.not_as_shown(head, before[-1] if before else None) or self.wrong
        if head.kind == "ingest":
            self.went_past(head.plan_id, before[-1])
        if head.kind in ("rewind", "first", "rebuilt"):
            self.is_newer_than_the_group(head)
        if under_way() in self.undoing and head.kind in ("rewind", "held"):
            self.wrong = self.taken_back(head, before) or self.wrong
        if head.kind in ("ingest", "adopted", "first") and not self.settles_or_carries():
            doubt = self.contradiction(before[-1] if before else None)
            if doubt:
                self.wrong = f"doubt: head {head.sequence} ({head.kind}) is committed; {doubt}"

    def settles_or_carries(self) -> bool:
        """A rewind is how a contradiction is settled, and a plan that is carried again was made before it."""
        run = under_way()
        if not run:
            return self.on_a_way
        return run in self.rewinding or any(r.carries for r in self.runs if r.steps.name == run)

    def went_past(self, plan_id: str, before: Head) -> None:
        """Whoever read while a batch stood at a closed gate commits no ingest past it."""
        standing = {
            plan.plan_id
            for plan in self.stopped()
            if plan.kind in ("ingest", "held")
            and plan.plan_id in self.gates_seen.get(under_way(), self.bench.gates.keys())
            and plan.plan_id not in {h.plan_id for h in self.bench.tables.snapshots[:-1]}
            and plan.generation == before.generation
            and (plan.kind == "held" or offsets_of(plan.positions) == offsets_of(before.positions))
        }
        if standing and plan_id not in standing:
            self.wrong = f"gate: {plan_id[:16]} goes past {sorted(standing)}, which stand at a closed gate"

    def is_newer_than_the_group(self, head: Head) -> None:
        """So that whoever still writes to a catalog that was set back, or to a copy, is refused in turn."""
        shown = [tag for tag in self.tags().values() if tag[1] == self.bench.tables.uuid]
        if any(generation >= head.generation for _, _, generation, _ in shown):
            self.wrong = f"doubt: a rewind makes generation {head.generation}, the group shows {shown}"

    def contradiction(self, newest: Head | None) -> str:
        """What the group shows of ours that the catalog does not have (docs/operations.md); empty where they agree."""
        for p, (offset, table, generation, sequence) in self.tags().items():
            if newest is None or table != self.bench.tables.uuid:
                return f"partition {p} shows table {table}"
            version, ours = (generation, sequence), (newest.generation, newest.sequence)
            stands = newest.positions[Partition(p)].next_offset if p in newest.positions else offset
            forked = generation == ours[0] and (offset > stands or (version == ours and offset != stands))
            if version > ours or forked:
                return f"partition {p} shows {offset} of head {version}, the newest is {ours} at {stands}"
        return ""

    def tags(self) -> dict[int, tuple[int, str, int, int]]:
        """By partition what the group shows of ours: offset, table, generation and sequence of the head."""
        found = {p: (at.offset, TAG.fullmatch(at.metadata)) for p, at in self.bench.log.group.items()}
        return {p: (offset, tag[1], int(tag[2]), int(tag[3])) for p, (offset, tag) in found.items() if tag}

    def sight(self) -> Sight:
        lateness_ms = self.stream.allowed_lateness * 1000
        return look_around(self.bench, allowed_lateness_ms=lateness_ms, junk_bytes=JUNK_BYTES)

    @invariant()
    def all_guarantees_hold(self) -> None:
        if hasattr(self, "bench"):
            sight = self.sight()
            for guarantee in (*self.guarantees, self.fenced):
                self.guard(partial(guarantee.check, sight))
            self.guard(partial(OffsetsLast().check, replace(sight, heads=tuple(self.ever))))
            self.guard(self.resets_are_taken_over)
            self.guard(self.nothing_was_seen_to_go_wrong)

    def nothing_was_seen_to_go_wrong(self) -> None:
        assert not self.wrong, self.wrong

    def resets_are_taken_over(self) -> None:
        """A reset by Kafka's tools stays until a new head takes it over; only who had looked before may undo it."""
        for p, (heads, raced) in list(self.resets.items()):
            at = self.bench.log.group.get(Partition(p))
            if at is None or at.metadata:
                del self.resets[p]
                since = zip(self.ever[heads:], self.named[heads:], strict=True)
                answered = [
                    h
                    for h, named in since
                    if h.kind in ("adopted", "first", "rebuilt")
                    or (h.kind == "rewind" and (named is None or p in named))
                ]
                assert raced or answered, f"reset: of partition {p}, overwritten by a batch or a rewind of another one"

    def teardown(self) -> None:
        for run in self.runs:
            run.steps.kill()
        if hasattr(self, "bench") and not self.broken:
            self.undisturbed_ingests_repair_everything()

    def undisturbed_ingests_repair_everything(self) -> None:
        log = self.bench.log
        log.live_members = []
        log.end_transactions(Visibility.COMMITTED, self.clock_ms)
        try:
            self.take_the_named_ways_out()
            for _ in range(2):
                self.ingest_alone()
        except (WavestitchError, Killed) as error:
            raise AssertionError(f"live: an undisturbed ingest ended with {error!r}") from error
        head = self.bench.tables.snapshots[-1]
        ends = {p: at.end for p, at in log.partitions.items()}
        stands = offsets_of(head.positions)
        # A partition that was added and never written to is not in the head.
        assert {p: stands.get(p, 0) for p in ends} == ends, f"live: head at {stands}, log ends at {ends}"
        tag = head.tag(self.bench.tables.uuid).encode()
        assert {p: log.group[Partition(p)][:2] for p in stands} == {p: (at, tag) for p, at in stands.items()}
        self.all_guarantees_hold()
        self.what_lies_there_was_read()
        self.check_published()

    def take_the_named_ways_out(self) -> None:
        """Where a plan is refused, do what the refusal says; a way out may itself be refused, and name another."""
        wanted = self.ingest_alone
        for n in range(12):
            self.on_a_way = wanted != self.ingest_alone
            try:
                wanted()
            except (DataLost, GateClosed, Refused) as error:
                word = ("accept", "park", "abandon")[(len(self.ever) + n) % 3] if n < 6 else "accept"
                wanted = self.the_way(str(error), word)
            else:
                if wanted == self.ingest_alone:
                    return
                wanted = self.ingest_alone
        raise AssertionError("live: the ways out that refusals name do not lead out")

    def the_way(self, advice: str, word: str) -> Callable[[], Any]:
        way = self.way(advice, word)
        assert way is not None, f"live: no way out in {advice!r}"
        return way

    def what_lies_there_was_read(self) -> None:
        """Where an election cut the log off, what is there now, and not only what was there before it."""
        sight, log = self.sight(), self.bench.log
        head = sight.heads[-1]
        given_up = {(r.partition, o) for r in head.skipped for o in range(r.start, r.end)}
        there = [
            r
            for p, at in log.partitions.items()
            for r, seen in zip(at.records[at.log_start :], at.seen[at.log_start :], strict=True)
            if seen is Visibility.COMMITTED and (p, r.offset) not in given_up
        ]
        NoLoss().check(replace(sight, records=there, lives={}))

    def check_published(self) -> None:
        """What the oracle says of the records that batches of this catalog have read, against the table.

        Whole and clean, refused by nothing and decided about by nobody: published. Not whole, not what it says, or
        refused by the gate: not published, but where somebody accepted it.
        """
        sight = self.sight()
        plans = {h.plan_id: self.bench.plans[h.plan_id] for h in sight.heads if h.plan_id}
        ingested = read_by([plan for plan in plans.values() if plan.kind == "ingest"])
        read = read_by(list(plans.values()))
        choices = [plan.held_choice for plan in plans.values() if plan.held_choice is not None]
        decided = {i for choice in choices for i in choice.ids}
        vouched_for = {i for choice in choices if choice.action is HeldAction.ACCEPT for i in choice.ids}
        decided |= {r.id for r in sight.held if r.reason == "parked" and r.id is not None}
        used_again = {c for c, n in Counter(r.coordinate for r in sight.records).items() if n > 1}
        ambiguous = truths(r for r in sight.records if r.coordinate in used_again)
        if any(head.kind == "rebuilt" for head in sight.heads):
            # What was held under a head that is gone, and retention took meanwhile: accepted as missing, by name.
            starts = {(self.bench.log.topic_id, p): at.log_start for p, at in self.bench.log.partitions.items()}
            ambiguous |= truths(r for r in sight.records if r.offset < starts.get(r.coordinate[:2], r.offset + 1))
        published = {row.id: row.samples for row in sight.published}
        passed = Passed(sight.heads)
        there = [r for r in sight.records if passed.there(r, sight.lives.get(r))]
        taken_in = truths(r for r in there if r.coordinate in ingested)
        for waveform_id, truth in taken_in.items():
            free = waveform_id not in self.failing | self.mended | decided | ambiguous.keys()
            if free and truth.publishable:
                assert published.get(waveform_id) == truth.samples, f"live: {waveform_id} is whole and not published"
        known = truths(r for r in sight.records if r.coordinate in read)
        for waveform_id, samples in published.items():
            truth = known[waveform_id]
            accepted = waveform_id in vouched_for
            assert truth.whole, f"live: {waveform_id} was published and is not whole"
            if not truth.contradicts_itself:
                assert truth.samples == samples, f"live: {waveform_id} was published with other bytes"
                assert truth.keeps_its_word or accepted, f"live: {waveform_id} was published and breaks its word"
            assert waveform_id not in self.failing or accepted, (
                f"live: {waveform_id} was published, the gate refused it"
            )


def offsets_of(positions: Any) -> dict[int, int]:
    return {p: at.next_offset for p, at in positions.items()}


def read_by(plans: list[Plan]) -> set[tuple[str, int, int]]:
    return {(plan.topic_id, r.partition, o) for plan in plans for r in plan.ranges for o in range(r.start, r.end)}
