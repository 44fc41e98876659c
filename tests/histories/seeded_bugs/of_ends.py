"""Seeded bugs. Runs end: in time, and by a reason that is known."""

from __future__ import annotations

from typing import Any

from tests.fakes.batch import FakeEdges
from tests.fakes.faults import under_way
from tests.histories.anomaly import Kind
from tests.histories.seeded_bugs.registry import Patch, shows
from wavestitch.batch import plan, publish, reassemble, reconciled_head
from wavestitch.contracts.position import is_ours
from wavestitch.contracts.stop_rule import StopRule


@shows(Kind.UNBOUNDED_END, since=5)
def an_open_transaction_is_waited_for(patch: Patch) -> None:
    """The end of a range is asked of all readers, and the stop rule takes silence for nothing."""
    real = plan.find_backlog

    def wrong(stream: Any, head: Any, request: Any, topic: Any, ends: Any, *rest: Any) -> Any:
        highest = {p: e._replace(stable_end=e.high_watermark) for p, e in ends.items()}
        return real(stream, head, request, topic, highest, *rest)

    patch.setattr(plan, "find_backlog", wrong)
    judge = StopRule.judge
    patch.setattr(StopRule, "judge", lambda self, *, position, now: judge(self, position=position, now=0))


@shows(Kind.UNBOUNDED_END, since=50)
def a_lost_race_is_run_again_for_ever_without_looking(patch: Patch) -> None:
    real = publish.load_for_batch
    seen: dict[tuple[int, str], Any] = {}

    def wrong(tables: Any, *what: Any) -> Any:
        key = id(tables), under_way()
        seen.setdefault(key, (tables, real(tables, *what)))
        return seen[key][1]

    patch.setattr(publish, "load_for_batch", wrong)
    patch.setattr(publish, "_TRIES", 10**6)
    for module in (publish, reassemble):
        patch.setattr(module, "check_fence", lambda *_, **__: None)


@shows(Kind.UNBOUNDED_END, since=7)
def a_lost_race_is_an_error_of_its_own(patch: Patch) -> None:
    class Nobody(Exception):
        pass

    patch.setattr(publish, "CommitConflict", Nobody)


@shows(Kind.LOST, since=59)
def what_a_reader_saw_that_stopped_at_its_budget_teaches_nobody(patch: Patch) -> None:
    """So that the stream stands where the estimate was off."""
    patch.setattr(FakeEdges, "reader_stops", lambda _: [])


@shows(Kind.UNBOUNDED_END, act="a_reset_beside_what_retention_overtook")
def a_reset_is_taken_over_only_where_every_partition_is_sound(patch: Patch) -> None:
    """So that the way out of one that retention overtook, to read the others, is refused as well."""
    real = reconciled_head._refuse_nowhere

    def wrong(stream: Any, head: Any, group: Any, topic: Any, *, log: Any, tables: Any) -> None:
        real(stream, head, group, topic, log=log, tables=tables)
        if any(at is not None and not is_ours(at.metadata) for at in group.values()):
            ends = log.ends(topic.name, topic.partitions)
            starts = {p: at.next_offset for p, at in head.positions.items() if p in ends}
            reconciled_head.refuse_overtaken(stream, starts, ends)

    patch.setattr(reconciled_head, "_refuse_nowhere", wrong)
