"""A backfill beside catalogs that were set back, dropped or built anew: no loss is told as held."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from tests.builders.sending import send_chunk
from tests.domain.backfill_rig import (
    ARCHIVE,
    DAY,
    LATEST,
    START_MS,
    backfill,
    days,
    edges,
    ingest,
    positions,
    published,
    send,
)
from tests.fakes.batch import Bench, Carrying, FakeEdges, carry_through
from tests.fakes.fake_log import FakeLog
from tests.fakes.faults import Fault, Steps
from wavestitch.batch.backfill import step_plan_backfill
from wavestitch.batch.held_approval import begin_approved, preview_held
from wavestitch.batch.held_decision import carry_out, plan_held
from wavestitch.batch.held_waveforms import Selection
from wavestitch.batch.plan import PlanRequest
from wavestitch.batch.results import Planned
from wavestitch.batch.rewind import Target, apply_rewind, plan_rewind
from wavestitch.batch.run import RunOptions, Silent
from wavestitch.batch.run import run_batch as carry_batch
from wavestitch.batch.steps import step_plan
from wavestitch.batch.undo import committed_stages, plan_undo
from wavestitch.contracts.errors import DataLost, Fenced, Refused, Transient
from wavestitch.contracts.held_choice import HeldAction
from wavestitch.contracts.quantities import Offset, Partition

HALF = Selection(ids=("half",))


def test_what_was_given_up_by_name_with_a_head_built_anew_is_not_told_as_held() -> None:
    bench = Bench(FakeLog("waves", 1))
    send(bench, "w", day=1, chunks=2)
    send_chunk(bench.log, "open", 0, at_ms=START_MS, start_ms=START_MS - 999 * DAY, count=2)
    ingest(bench)
    bench.tables.delete_held(lambda _: True, expire=True)
    bench.tables.expire_head()
    bench.log.retain_from(Partition(0), Offset(3))
    found = plan_rewind(ARCHIVE, Target("rebuilt"), log=bench.log, tables=bench.tables, who="ops", why="expired")
    assert found.missing
    apply_rewind(ARCHIVE, found, accept_skip=True, accept_missing=True, log=bench.log, tables=bench.tables)
    with pytest.raises(DataLost, match=r"partition 0 \[0, 3\) of waves are gone"):
        backfill(bench, ARCHIVE, days(1, 2))


@pytest.mark.parametrize("batches_since", [0, 1])
@pytest.mark.parametrize("deleted", ["held", "published"])
def test_what_was_accepted_as_missing_is_not_told_as_held_though_the_positions_were_proven(
    deleted: str, batches_since: int
) -> None:
    bench = Bench(FakeLog("waves", 1))
    send(bench, "w", day=1, chunks=2)
    send_chunk(bench.log, "open", 0, at_ms=START_MS, start_ms=START_MS - 999 * DAY, count=2)
    ingest(bench)
    send(bench, "x", day=8)
    ingest(bench)
    ingest(bench)
    if deleted == "held":
        bench.tables.delete_held(lambda _: True, expire=True)
    else:
        bench.tables.delete_published({"w"})
    bench.tables.expire_head()
    found = plan_rewind(ARCHIVE, Target("rebuilt"), log=bench.log, tables=bench.tables, who="ops", why="expired")
    assert (bool(found.missing), found.skipped) == (True, ())
    apply_rewind(ARCHIVE, found, accept_skip=False, accept_missing=True, log=bench.log, tables=bench.tables)
    bench.log.retain_from(Partition(0), Offset(3))
    for n in range(batches_since):
        send(bench, f"later{n}", day=9)
        ingest(bench)
    with pytest.raises(DataLost, match=r"partition 0 \[0, 3\) of waves are gone"):
        backfill(bench, ARCHIVE, days(1, 2))


@pytest.mark.parametrize("held", [False, True])
def test_a_history_beside_a_table_that_was_dropped_is_not_believed(held: bool) -> None:
    bench = Bench(FakeLog("waves", 1))
    for n in range(4):
        send(bench, f"w{n}", day=1)
    if held:
        send_chunk(bench.log, "open", 0, at_ms=START_MS, start_ms=START_MS - 995 * DAY, count=2)
    ingest(bench)
    plan = list(bench.plans.values())[-1]
    bench.tables.snapshots, bench.tables.rows, bench.tables.uuid = [], [], "6d0f4f0e-0000-4000-8000-00000000aaaa"
    bench.log.retain_from(Partition(0), Offset(4))
    send(bench, "later", day=9)
    with pytest.raises(Refused):
        ingest(bench)
    found = plan_rewind(ARCHIVE, Target("start-over"), log=bench.log, tables=bench.tables, who="ops", why="dropped")
    apply_rewind(ARCHIVE, found, accept_skip=True, accept_missing=True, log=bench.log, tables=bench.tables)
    for again in range(2):
        with pytest.raises(DataLost, match=r"partition 0 \[0, 4\) of waves are gone"):
            backfill(bench, ARCHIVE, days(1, 2))
        with pytest.raises((Fenced, DataLost)):
            carry_through(bench, plan, Carrying())
        ingest(bench)
        send(bench, f"more{again}", day=9)


def test_a_history_beside_a_table_that_was_set_back_is_not_believed() -> None:
    """Neither of a batch that is carried through again, nor of what it had read."""
    bench = Bench(FakeLog("waves", 1))
    send(bench, "first", day=0)
    ingest(bench)
    for n in range(4):
        send(bench, f"w{n}", day=1)
    ingest(bench)
    plan, history = list(bench.plans.values())[-1], list(bench.tables.history)
    bench.tables.restore(2)
    bench.tables.history = history
    assert published(bench) == ["first"]
    found = plan_rewind(ARCHIVE, Target("head"), log=bench.log, tables=bench.tables, who="ops", why="set back")
    apply_rewind(ARCHIVE, found, accept_skip=False, log=bench.log, tables=bench.tables)
    with pytest.raises(Fenced, match="plan again"):
        carry_through(bench, plan, Carrying())
    bench.log.retain_from(Partition(0), Offset(5))
    send(bench, "later", day=9)
    found = plan_rewind(ARCHIVE, Target("earliest"), log=bench.log, tables=bench.tables, who="ops", why="retention")
    apply_rewind(ARCHIVE, found, accept_skip=True, log=bench.log, tables=bench.tables)
    ingest(bench)
    with pytest.raises(DataLost, match=r"partition 0 \[1, 5\) of waves are gone"):
        backfill(bench, ARCHIVE, days(1, 2))


def test_a_batch_of_a_table_that_was_set_back_is_not_believed_after_old_heads_have_expired() -> None:
    bench = Bench(FakeLog("waves", 1))
    send(bench, "first", day=0)
    ingest(bench)
    send(bench, "w", day=1)
    ingest(bench)
    plan, history = list(bench.plans.values())[-1], list(bench.tables.history)
    bench.tables.restore(2)
    bench.tables.history = history
    found = plan_rewind(ARCHIVE, Target("head"), log=bench.log, tables=bench.tables, who="ops", why="set back")
    apply_rewind(ARCHIVE, found, accept_skip=False, log=bench.log, tables=bench.tables)
    for n in range(2):
        send(bench, f"more{n}", day=9)
        ingest(bench)
    bench.tables.expire_snapshots(1)
    with pytest.raises(Fenced, match="plan again"):
        carry_through(bench, plan, Carrying())


def set_back_under(days_lost: int) -> tuple[Bench, int]:
    """Backfills of the first days are told as published, then the whole catalog is put back from before them; with
    the sequence that the group shows."""
    bench = Bench(FakeLog("waves", 1))
    for day in range(5):
        send(bench, f"w{day}", day=day)
    ingest(bench, LATEST)
    send(bench, "live", day=9)
    send_chunk(bench.log, "half", 0, at_ms=START_MS, start_ms=START_MS - 991 * DAY, count=2)
    ingest(bench, LATEST)
    before = bench.tables.head()
    for day in range(days_lost):
        backfill(bench, LATEST, days(day, day + 1))
    bench.tables.restore(before.sequence)
    assert published(bench) == ["live"]
    return bench, before.sequence + days_lost


def refused_as_set_back(shown: int) -> pytest.RaisesExc[Refused]:
    return pytest.raises(Refused, match=rf"shows head {shown} of .* the catalog was set back .* what was published")


@pytest.mark.parametrize("days_lost", [1, 2])
def test_a_backfill_takes_no_number_that_a_catalog_lost_when_it_was_set_back(days_lost: int) -> None:
    """It would be taken for the lost head, and nobody would hear of what that had published."""
    bench, shown = set_back_under(days_lost)
    before = bench.tables.head()
    for scope in (days(3, 4), days(4, 5)):
        with refused_as_set_back(shown):
            step_plan_backfill(edges(bench, LATEST), scope, apply=False)
        with refused_as_set_back(shown):
            backfill(bench, LATEST, scope)
    assert bench.tables.head() == before
    with refused_as_set_back(shown):
        ingest(bench, LATEST)
    found = plan_rewind(LATEST, Target("head"), log=bench.log, tables=bench.tables, who="ops", why="set back")
    apply_rewind(LATEST, found, accept_skip=False, log=bench.log, tables=bench.tables)
    for day in range(5):
        backfill(bench, LATEST, days(day, day + 1))
    assert published(bench) == ["live", *(f"w{day}" for day in range(5))]


def test_a_catalog_that_is_set_back_between_the_plan_of_a_backfill_and_its_commit_is_refused_there() -> None:
    bench = Bench(FakeLog("waves", 1))
    for day in range(2):
        send(bench, f"w{day}", day=day)
    ingest(bench, LATEST)
    before = bench.tables.head()
    planned = step_plan_backfill(edges(bench, LATEST), days(1, 2)).plans
    backfill(bench, LATEST, days(0, 1))
    bench.tables.restore(before.sequence)
    with refused_as_set_back(before.sequence + 1):
        carry_batch(edges(bench, LATEST), RunOptions(plan_id=planned[0]), watcher=Silent())
    assert bench.tables.head() == before


def decided_at_once(bench: Bench) -> None:
    here = edges(bench, LATEST)
    carry_out(here, plan_held(here, HeldAction.DISCARD, HALF, who="ops", why="to see").plan)


def kept_and_approved_of(bench: Bench) -> None:
    here = edges(bench, LATEST)
    shown = preview_held(here, HeldAction.DISCARD, HALF, who="ops", why="to see")
    carry_out(here, begin_approved(here, shown.plan.plan_id, by="somebody else"))


@pytest.mark.parametrize("decide", [decided_at_once, kept_and_approved_of])
def test_a_decision_about_what_is_held_takes_no_number_that_a_catalog_lost_when_it_was_set_back(
    decide: Callable[[Bench], None],
) -> None:
    bench, shown = set_back_under(1)
    before = bench.tables.head()
    with refused_as_set_back(shown):
        decide(bench)
    assert bench.tables.head() == before
    with refused_as_set_back(shown):
        ingest(bench, LATEST)
    found = plan_rewind(LATEST, Target("head"), log=bench.log, tables=bench.tables, who="ops", why="set back")
    apply_rewind(LATEST, found, accept_skip=False, log=bench.log, tables=bench.tables)
    decide(bench)


def test_a_decision_about_what_is_held_is_not_undone_on_a_catalog_that_was_set_back() -> None:
    bench, _ = set_back_under(0)
    decided_at_once(bench)
    before = bench.tables.head()
    backfill(bench, LATEST, days(0, 1))
    bench.tables.restore(before.sequence)
    here = edges(bench, LATEST)
    with refused_as_set_back(before.sequence + 1):
        plan_undo(here, committed_stages(here), who="ops", why="not so")


def test_a_catalog_that_is_set_back_between_plan_and_commit_of_a_decision_is_refused_there() -> None:
    bench, _ = set_back_under(0)
    before, here = bench.tables.head(), edges(bench, LATEST)
    shown = preview_held(here, HeldAction.DISCARD, HALF, who="ops", why="to see")
    backfill(bench, LATEST, days(0, 1))
    bench.tables.restore(before.sequence)
    with refused_as_set_back(before.sequence + 1):
        carry_out(here, begin_approved(here, shown.plan.plan_id, by="somebody else"))
    assert bench.tables.head() == before


def test_an_ingest_that_moves_no_position_takes_no_number_that_a_catalog_lost_since_it_was_planned() -> None:
    """Of one that moves some the group says so at the latest when it comes to the offsets."""
    bench, _ = set_back_under(0)
    late = START_MS + 10 * DAY
    before, here = bench.tables.head(), FakeEdges(bench, LATEST, late, Carrying())
    planned = step_plan(here, PlanRequest())
    assert isinstance(planned, Planned)
    assert not bench.plans[planned.plan_id].ranges, "it lets go of what has waited too long, and reads nothing"
    backfill(bench, LATEST, days(0, 1))
    bench.tables.restore(before.sequence)
    with refused_as_set_back(before.sequence + 1):
        carry_batch(here, RunOptions(plan_id=planned.plan_id), watcher=Silent())
    assert bench.tables.head() == before


@pytest.mark.parametrize("when", ["planned", "committed"])
def test_a_decision_is_tried_again_where_no_broker_says_whose_the_catalog_is(when: str) -> None:
    bench, _ = set_back_under(0)
    here = edges(bench, LATEST)
    before, plan = bench.tables.head(), plan_held(here, HeldAction.DISCARD, HALF, who="ops", why="to see").plan
    run = Steps(
        lambda: (
            plan_held(here, HeldAction.DISCARD, HALF, who="ops", why="to see")
            if when == "planned"
            else carry_out(here, plan)
        )
    )
    while run.at != "log.group_offsets":
        assert run.advance()
    run.advance(Fault.FAIL_BEFORE)
    run.finish()
    assert isinstance(run.error, Transient)
    assert re.search("group .* could not be asked .* do the same again once a broker answers", run.error.message)
    assert bench.tables.head() == before
    carry_out(here, plan)
    assert bench.tables.head() != before


@pytest.mark.parametrize("gone", ["its records", "its topic", "its offsets"])
def test_a_decision_needs_nothing_of_what_the_log_has_lost(gone: str) -> None:
    bench, _ = set_back_under(0)
    if gone == "its records":
        bench.log.retain_from(Partition(0), Offset(bench.log.partitions[Partition(0)].end))
    elif gone == "its topic":
        bench.log.recreate(1)
    else:
        bench.log.group = {}
    decided_at_once(bench)
    counts = bench.tables.head().held.counts
    assert counts == {"discarded": 1}


@pytest.mark.parametrize("shown", ["nothing", "an older head", "somebody's reset"])
def test_a_group_that_is_behind_or_was_reset_is_no_reason_to_refuse_a_backfill(shown: str) -> None:
    """A crash came before the offsets, they expired, or somebody has reset them, which the next ingest takes over."""
    bench = Bench(FakeLog("waves", 1))
    for day in range(2):
        send(bench, f"w{day}", day=day)
    ingest(bench)
    old = dict(bench.log.group)
    send(bench, "live", day=9)
    ingest(bench)
    bench.log.group = old if shown == "an older head" else {}
    if shown == "somebody's reset":
        bench.log.reset_group(Partition(0), Offset(1))
    group, head = dict(bench.log.group), bench.tables.head()
    planned = step_plan_backfill(edges(bench, ARCHIVE), days(0, 1))
    assert bench.log.group == group, "planning a backfill shows nothing in the group"
    assert bench.tables.head() == head
    for plan_id in planned.plans:
        carry_batch(edges(bench, ARCHIVE), RunOptions(plan_id=plan_id), watcher=Silent())
    assert published(bench) == ["live", "w0", "w1"]
    assert positions(bench) == {0: 3}
    if shown == "somebody's reset":
        assert bench.log.group == group
    else:
        assert bench.log.group[Partition(0)].offset == 3
