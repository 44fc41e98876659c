"""One case on a real broker: a topic and deployment of its own, runs that may fail, healing, then the comparison.

A case strikes with its fault between two steps or at a record; every run must end by the deadline, in a way that has a
name. Afterwards quiet batches run, doing what refusals say, until nothing is left; then the oracle judges.
"""

from __future__ import annotations

import itertools
import random
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

from confluent_kafka.admin import AdminClient, NewTopic

from tests.builders.recordings import cut, recordings
from tests.deployment_rig import STREAM, DeploymentRig, eventually, make_deployment_rig
from tests.fakes.way_out import way_out
from tests.faults.broker_faults_ledger import Ledger, Placed
from tests.faults.broker_faults_oracle import judge
from tests.faults.fault_class import Bench, Counts
from tests.faults.in_process import run_here
from tests.faults.narrow_fetches import narrow_fetches
from tests.faults.real_witness import Witness
from tests.histories.tracing import follow
from wavestitch.batch import rewind
from wavestitch.batch.plan import PlanRequest
from wavestitch.batch.rewind import Target
from wavestitch.batch.run import RunOptions
from wavestitch.contracts.accepted_skip import AcceptedSkip
from wavestitch.contracts.errors import DataLost, Fenced, Refused, Transient, WavestitchError
from wavestitch.producers.chunking import ChunkRecord
from wavestitch.producers.recording import Recording

RUN_DEADLINE = 60.0
"""Seconds that any one run may take, whatever the fault."""
BETWEEN = ("plan", "read", "reassemble", "validate", "publish", "commit_offsets")
_QUIET_RUNS = 14
_numbers = itertools.count()

Strike = Callable[[], None]


@dataclass(frozen=True, slots=True)
class Ended:
    """How a run ended. `plan_id` empty where it did not come to a plan."""

    word: str
    error: WavestitchError | None
    plan_id: str
    result: Mapping[str, Any]


@dataclass
class Case:
    """`rng` decides everything that is left open. `ends`: of the runs so far, in words."""

    rng: random.Random
    bench: Bench
    whole: DeploymentRig
    ledger: Ledger
    witness: Witness
    partitions: int
    one_topic: bool = True
    rewritten: bool = False
    versions: dict[str, set[bytes]] = field(default_factory=dict)
    ends: list[str] = field(default_factory=list)
    longest: float = 0.0

    @property
    def admin(self) -> AdminClient:
        """Of the broker itself, whatever lies between the platform and it."""
        return AdminClient({"bootstrap.servers": self.bench.bootstrap, "log_level": 0})

    # producing

    def produce(self, count: int | None = None, *, prefix: str = "w", start_ns: int | None = None) -> list[ChunkRecord]:
        """Send some waveforms, chunk by chunk in a seeded layout; returns their chunks in order."""
        chunks = self.make(count, prefix=prefix, start_ns=start_ns)
        self.ledger.send(self.lay_out(chunks))
        return chunks

    def make(self, count: int | None = None, *, prefix: str = "w", start_ns: int | None = None) -> list[ChunkRecord]:
        rng = self.rng
        more = {} if start_ns is None else {"start_ns": start_ns}
        sent = recordings(
            count or rng.randint(3, 8),
            samples=rng.randint(300, 3000),
            seed=rng.randrange(1 << 30),
            prefix=f"{prefix}{next(_numbers)}",
            **more,
        )
        return self.cut(sent)

    def cut(self, sent: Sequence[Recording], chunk_bytes: int | None = None) -> list[ChunkRecord]:
        """Their chunks, of a seeded size unless given; from now on their samples may be published."""
        for r in sent:
            self.versions.setdefault(r.waveform_id, set()).add(bytes(r.samples))
        return cut(sent, chunk_bytes or self.rng.choice((128, 256, 300, 512)))

    def lay_out(self, chunks: Sequence[ChunkRecord]) -> list[Placed]:
        """DeploymentRig waveforms in one partition, interleaved, spread over all, or out of order."""
        how = self.rng.choice(("sticky", "sticky", "interleaved", "spread", "shuffled"))
        home = {i: self.rng.randrange(self.partitions) for i in sorted({c.waveform_id for c in chunks})}
        order = list(chunks)
        if how in ("interleaved", "shuffled"):
            self.rng.shuffle(order)
        if how == "interleaved":
            order.sort(key=lambda c: int(dict(c.headers)["ws-seq"]))
        scattered = how in ("spread", "shuffled")
        return [(c, self.rng.randrange(self.partitions) if scattered else home[c.waveform_id]) for c in order]

    # running

    def run(
        self,
        *,
        between: Mapping[str, Strike] | None = None,
        at_record: tuple[int, Strike] | None = None,
        plan_id: str | None = None,
        request: PlanRequest | None = None,
        read: Any = None,
    ) -> Ended:
        """One run of the platform; whatever happens to it, it must end by its deadline and by name."""
        struck = False
        away = 0.0
        known = {p.name for p in self.plans_folder()}

        def strike(what: Strike) -> None:
            """What the fault itself takes is not the run's time."""
            nonlocal away
            began = time.monotonic()
            try:
                with self.witness.aside():
                    what()
            except Exception as error:  # not to be taken for something that happened to the platform
                raise AssertionError(f"the fault itself failed: {error!r}") from error
            away += time.monotonic() - began

        def reached(records: int) -> None:
            nonlocal struck
            if at_record is not None and not struck and records >= at_record[0]:
                struck = True
                strike(at_record[1])

        def after(step: str) -> None:
            if between and step in between:
                strike(between[step])
            self.witness.step_ends()

        options = RunOptions(request=request or PlanRequest(), plan_id=plan_id, after_step=after)
        began = time.monotonic()
        result: Mapping[str, Any] = {}
        error: WavestitchError | None = None
        try:
            with self.witness.run("a batch"):
                result = run_here(self.whole.deployment, STREAM, options, at_record=reached, read=read)
            word = "nothing" if "nothing" in result else "done"
        except WavestitchError as raised:
            error, word = raised, "Transient" if isinstance(raised, Transient) else type(raised).__name__
        took = time.monotonic() - began - away
        assert took < RUN_DEADLINE, f"a run that ended with {word} took {took:.0f} s; allowed are {RUN_DEADLINE:.0f}"
        self.longest = max(self.longest, took)
        self.ends.append(word)
        made = [p.name for p in self.plans_folder() if p.name not in known]
        return Ended(word, error, plan_id or (made[0] if made else ""), result)

    def plans_folder(self) -> list[Any]:
        folder = self.whole.deployment.settings.landing / STREAM
        return sorted(folder.iterdir()) if folder.exists() else []

    def run_until_done(self) -> Ended:
        """Runs until one ends well; what is in the way may only be passing."""
        for _ in range(_QUIET_RUNS):
            ended = self.run()
            if not isinstance(ended.error, Transient):
                return ended
        raise AssertionError(f"no run ended well: {ended.error}")

    def again(self, ended: Ended) -> Ended:
        """After an error: the same plan once more, or a new one, as an operator or a retry may do."""
        return self.run(plan_id=ended.plan_id if ended.plan_id and self.rng.random() < 0.5 else None)

    def moment(self, steps: Sequence[str] = BETWEEN) -> str:
        return self.rng.choice(tuple(steps))

    def rewind(self, target: Target, *, accept_skip: AcceptedSkip = True) -> None:
        stream, log, tables = (
            self.whole.deployment.stream(STREAM),
            self.whole.deployment.log,
            self.whole.deployment.tables(STREAM),
        )
        with self.witness.run("a rewind"):
            found = rewind.plan_rewind(stream, target, log=log, tables=tables, who="a test", why="to go on")
            rewind.apply_rewind(stream, found, accept_skip=accept_skip, log=log, tables=tables)

    # healing

    def settle(self) -> None:
        """Quiet batches until nothing is left, taking the ways out that refusals name; then the head stands at the end
        and the group where the head does."""
        last: Ended | None = None
        for _ in range(_QUIET_RUNS):
            last = self.run()
            if last.word == "nothing":
                break
            if isinstance(last.error, (Refused, DataLost)):
                self.follow(last.error)
            elif last.error is not None and not isinstance(last.error, (Transient, Fenced)):
                raise last.error
        assert last is not None, "no quiet run was made"
        assert last.word == "nothing", f"{_QUIET_RUNS} quiet runs did not come to an end: {self.ends}"
        self.stands_at_the_end()

    def follow(self, error: WavestitchError) -> None:
        """Do what the sentence says."""
        way = way_out(error.message)
        if way is not None:
            self.rewind(way.target, accept_skip=way.accepts)

    def stands_at_the_end(self) -> None:
        deployment = self.whole.deployment
        partitions = deployment.log.topic(self.whole.topic).partitions
        ends = deployment.log.ends(self.whole.topic, partitions)
        head = deployment.tables(STREAM).head()
        assert head is not None
        stands = {p: head.positions[p].next_offset if p in head.positions else 0 for p in partitions}
        assert stands == {p: ends[p].stable_end for p in partitions}, (
            f"the head stands at {stands}, the log ends at {ends}"
        )
        group = deployment.log.group_offsets(self.whole.group, self.whole.topic, sorted(head.positions))
        assert {p: g.offset if g else None for p, g in group.items()} == {p: stands[p] for p in head.positions}

    def counted(self) -> Counts:
        """Settle and judge."""
        self.settle()
        counts = judge(
            self.whole,
            self.ledger.records,
            self.ledger.topic_id,
            versions=self.versions,
            events=self.witness.events,
            one_topic=self.one_topic,
            rewritten=self.rewritten,
        )
        return replace(counts, ends=tuple(self.ends), longest_run=round(self.longest, 2), run_deadline=RUN_DEADLINE)


def play(
    bench: Bench,
    seed: int,
    act: Callable[[Case], None],
    *,
    stream: str = "",
    configs: Mapping[str, str] | None = None,
    partitions: int | None = None,
    assignment: Sequence[Sequence[int]] | None = None,
    client_bootstrap: str = "",
    idle_deadline: int = 5,
) -> Counts:
    """A case from its seed: a topic, a deployment, the act, and the judgement.

    `stream`: further lines of its YAML. `client_bootstrap`: what the platform is told instead of the broker's own.
    """
    rng = random.Random(seed)
    count = len(assignment) if assignment else partitions or rng.choice((1, 2, 2, 3))
    topic = f"f-{seed}-{uuid.uuid4().hex[:8]}"
    admin = AdminClient({"bootstrap.servers": bench.bootstrap, "log_level": 0})
    make_topic(admin, topic, count, configs or {}, assignment)
    whole = make_deployment_rig(
        bench.folder / "deployment",
        bootstrap=client_bootstrap or bench.bootstrap,
        topic=topic,
        java_home=bench.java_home,
        stream=stream,
    )
    set_reading(whole, f"min_slice: {rng.choice((4, 16, 1000))}, workers: {rng.choice((1, 2, 3))}", idle_deadline)
    ledger = Ledger(bench.bootstrap, topic, topic_id_of(whole))
    witness = Witness(whole, bench.bootstrap)
    case = Case(rng, bench, whole, ledger, witness, count)
    with narrow_fetches(), witness.listening():
        try:
            act(case)
            return case.counted()
        except AssertionError:
            follow(witness.events)  # where it left the model says more than what came of that
            raise


def topic_id_of(whole: DeploymentRig) -> str:
    """Once whichever node is asked knows of the topic."""
    found: list[str] = []

    def known() -> bool:
        with suppress(Refused):
            found.append(whole.deployment.log.topic(whole.topic).topic_id)
        return bool(found)

    eventually(known)
    return found[0]


def set_reading(whole: DeploymentRig, how: str, idle_deadline: int) -> None:
    """Change how the deployment's stream is read."""
    path = whole.folder / "streams" / f"{STREAM}.yaml"
    lines = [line for line in path.read_text().splitlines() if not line.startswith("reading:")]
    path.write_text("\n".join([*lines, f"reading: {{{how}, idle_deadline: {idle_deadline} s}}"]) + "\n")


def make_topic(
    admin: AdminClient,
    topic: str,
    partitions: int,
    configs: Mapping[str, str],
    assignment: Sequence[Sequence[int]] | None = None,
) -> None:
    """Make it, and wait until every partition has a leader."""
    placed: dict[str, Any] = (
        {"replica_assignment": [list(a) for a in assignment]} if assignment else {"replication_factor": 1}
    )
    made = NewTopic(topic, num_partitions=partitions, config={"retention.ms": "-1", **configs}, **placed)
    admin.create_topics([made], operation_timeout=30)[topic].result(30)
    eventually(lambda: led(admin, topic) == partitions)


def led(admin: AdminClient, topic: str) -> int:
    """How many partitions of the topic have a leader."""
    found = admin.list_topics(topic, timeout=10).topics.get(topic)
    return 0 if found is None else sum(p.leader >= 0 for p in found.partitions.values())
