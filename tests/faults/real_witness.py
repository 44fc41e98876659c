"""Keeps the history of a real stream, in the events of `tests.histories`: what its tables, group, landing and log show
that they did not show when it looked last. Believes no return value; judges nothing.

While it listens it looks after every effect of ours in this process, and notes what runs look at; so it does around
whatever is done to the stream from elsewhere. Who looks only once, at the end, has the heads in their order, each plan
before what it became, and the group as it stands: of a stream whose processes were killed, or raced.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest

from consumers.log_view import KafkaLog
from tests.deployment_rig import STREAM, DeploymentRig
from tests.histories.events import (
    Committed,
    Ended,
    Event,
    Looked,
    Planned,
    Projected,
    Read,
    Reset,
    Retained,
    Shared,
    Started,
    TopicMade,
)
from wavestitch.contracts.errors import Refused, Transient, WavestitchError
from wavestitch.contracts.plan import Plan
from wavestitch.contracts.ports import TopicView
from wavestitch.contracts.position import GroupOffset, Head, parse_tag
from wavestitch.contracts.quantities import Offset, Partition
from wavestitch.contracts.receipt import LandedSlice, receipt_from_json
from wavestitch.tables.stream_tables import StreamTables

_ANSWER_SECONDS = 5.0
NOBODY = ""
"""Who did what was found done between two looks, while no run of ours was under way."""


class Witness:
    """Of one stream. `events`: oldest first. `bootstrap`: of the brokers themselves, if the stream's settings name
    something before them."""

    def __init__(self, whole: DeploymentRig, bootstrap: str = "") -> None:
        self.events: list[Event] = []
        self._whole = whole
        self._tables = whole.deployment.tables(STREAM)
        kafka = whole.deployment.kafka
        self._log = KafkaLog(replace(kafka, bootstrap=bootstrap or kafka.bootstrap), deadline=_ANSWER_SECONDS)
        self._running = [NOBODY]
        self._runs = 0
        self._heads = 0
        self._topic_id = ""
        self._plans: dict[str, Plan] = {}
        self._untold: list[Plan] = []
        self._receipts: set[str] = set()
        self._group: dict[Partition, GroupOffset | None] = {}
        self._starts: dict[Partition, Offset] = {}

    # who acts

    @contextmanager
    def run(self, what: str) -> Iterator[None]:
        """A run of ours, from here to its end."""
        self.look()
        self._runs += 1
        name = f"run-{self._runs}"
        self.events.append(Started(name, what, 0))
        ended = "done"
        self._running.append(name)
        try:
            yield
        except WavestitchError as error:
            ended = type(error).__name__
            raise
        finally:
            self.look()
            self._running.pop()
            self.events.append(Ended(name, ended, 0))

    @contextmanager
    def aside(self) -> Iterator[None]:
        """Somebody else acts, between two steps of the run that is under way, or beside one."""
        self.look()
        self._running.append(NOBODY)
        try:
            yield
        finally:
            self.look()
            self._running.pop()

    def step_ends(self) -> None:
        """The next one looks first whether its plan was abandoned."""
        self.look()
        self.events.append(Looked(self._running[-1], "abandoned"))

    @contextmanager
    def listening(self) -> Iterator[None]:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(KafkaLog, "topic", self._noted(KafkaLog.topic, "topic"))
            patch.setattr(KafkaLog, "group_offsets", self._noted(KafkaLog.group_offsets, "group"))
            patch.setattr(StreamTables, "head", self._noted(StreamTables.head, "head"))
            patch.setattr(KafkaLog, "commit_group", self._seen(KafkaLog.commit_group))
            patch.setattr(StreamTables, "commit", self._seen(StreamTables.commit))
            yield

    def _noted(self, real: Callable[..., Any], what: str) -> Callable[..., Any]:
        def look(edge: Any, *args: Any, **more: Any) -> Any:
            if edge is not self._log:
                self.events.append(Looked(self._running[-1], what))
            return real(edge, *args, **more)

        return look

    def _seen(self, real: Callable[..., Any]) -> Callable[..., Any]:
        def act(edge: Any, *args: Any, **more: Any) -> Any:
            try:
                return real(edge, *args, **more)
            finally:
                self.look()

        return act

    # what is there

    def look(self) -> None:
        """Heads come before the group that shows them, and the log's beginning comes last."""
        topic = self._topic()
        if topic is not None and topic.topic_id != self._topic_id:
            self._topic_id, self._group, self._starts = topic.topic_id, {}, {}
            self.events.append(TopicMade(topic.topic_id))
        self._look_at_tables()
        if topic is not None:
            try:
                self._look_at_log(topic)
            except (Refused, Transient):
                return  # nobody answers: the next look has it

    def _topic(self) -> TopicView | None:
        try:
            return self._log.topic(self._whole.topic)
        except (Refused, Transient):
            return None

    def _look_at_tables(self) -> None:
        heads = [h for h in reversed(self._tables.heads()) if h.sequence > self._heads]
        self._look_at_landing()
        for head in heads:
            self._tell_plans(head.sequence - 1)
            self.events.append(_committed(head, self._running[-1]))
            self._heads = head.sequence
        self._tell_plans(self._heads)

    def _look_at_landing(self) -> None:
        folder = self._whole.deployment.settings.landing / STREAM
        for path in sorted(folder.glob("*/plan.json")):
            if path.parent.name not in self._plans:
                plan = self._whole.deployment.folder(STREAM, path.parent.name).plan()
                self._plans[plan.plan_id] = plan
                self._untold.append(plan)
        for plan in self._plans.values():
            if plan not in self._untold:
                self._tell_reads(plan)

    def _tell_plans(self, newest: int) -> None:
        """Those that rest on this head, or on one before it."""
        for plan in [plan for plan in self._untold if plan.base_sequence <= newest]:
            self._untold.remove(plan)
            self.events.append(_planned(plan, self._running[-1]))
            self._tell_reads(plan)

    def _tell_reads(self, plan: Plan) -> None:
        for path in sorted(self._whole.deployment.folder(STREAM, plan.plan_id).path.glob("receipt-*.json")):
            if path.name not in self._receipts:
                self._receipts.add(path.name)
                slices = receipt_from_json(path.read_text()).slices
                self.events += [_read(plan, one, self._running[-1]) for one in slices]

    def _look_at_log(self, topic: TopicView) -> None:
        whole, run = self._whole, self._running[-1]
        table = self._tables.table_uuid()
        for p, found in self._log.group_offsets(whole.group, whole.topic, topic.partitions).items():
            if found != self._group.get(p):
                self._group[p] = found
                self.events.append(_group(topic.topic_id, p, found, run=run, table=table))
        for p, ends in self._log.ends(whole.topic, topic.partitions).items():
            if ends.log_start > self._starts.get(p, 0):
                self._starts[p] = ends.log_start
                self.events.append(Retained(topic.topic_id, p, ends.log_start))


def looked_once(whole: DeploymentRig) -> list[Event]:
    """What a stream has come to, of which nobody saw how."""
    witness = Witness(whole)
    witness.look()
    return witness.events


def _committed(head: Head, run: str) -> Committed:
    stands = {int(p): int(at.next_offset) for p, at in head.positions.items()}
    skipped = tuple((r.partition, r.start, r.end) for r in head.skipped)
    numbers = head.sequence, head.generation
    what = head.kind.value, head.topic_id, head.plan_id, head.decision
    return Committed(run, *numbers, *what, stands, skipped, None, head.note)  # type: ignore[arg-type]


def _planned(plan: Plan, run: str) -> Planned:
    stands = {int(p): int(at.next_offset) for p, at in plan.positions.items()}
    ranges = tuple((int(r.partition), int(r.start), int(r.end)) for r in plan.ranges)
    choice = plan.held_choice
    numbers = plan.generation, plan.base_sequence
    action = "" if choice is None else choice.action.value
    return Planned(run, plan.plan_id, plan.kind.value, *numbers, plan.topic_id, stands, ranges, action)


def _read(plan: Plan, one: LandedSlice, run: str) -> Read:
    empty = {o for hole in one.holes for o in range(hole[0], hole[1])}
    there = tuple(o for o in range(one.start, one.end) if o not in empty)
    return Read(run, plan.plan_id, plan.topic_id, one.partition, one.start, one.end, there)


def _group(topic_id: str, p: int, found: GroupOffset | None, *, run: str, table: str | None) -> Event:
    tag = parse_tag(found.metadata) if found is not None else None
    if found is None or tag is None:
        return Reset(topic_id, p, None if found is None else int(found.offset))
    if tag.table != table:
        return Shared(topic_id, p, found.offset, True, tag.generation, tag.sequence)
    return Projected(run, topic_id, {p: int(found.offset)}, tag.generation, tag.sequence)
