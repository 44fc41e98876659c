"""A stream that is started by its lag: the level decides, and what would only be refused is not started."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from tests.builders.heads import make_row
from tests.builders.plans import make_plan
from tests.builders.webhook import listening_webhook
from tests.domain.maintenance_rig import STREAM, Rig
from tests.fakes.kept_partition import Visibility
from wavestitch.batch.backfill import step_plan_backfill
from wavestitch.batch.commit_offsets import commit_offsets
from wavestitch.batch.deployment_edges import DeploymentEdges
from wavestitch.batch.kept_told import kept_told
from wavestitch.batch.lag_trigger import FIRST_WAIT, Start, start_by_lag, waits
from wavestitch.batch.plan import PlanRequest
from wavestitch.batch.steps import step_plan
from wavestitch.batch.stream_facts import stream_facts
from wavestitch.batch.watch import watch_stream, watch_streams
from wavestitch.contracts.batch_row import batch_row_from_json, describe_head
from wavestitch.contracts.errors import BadInput, WavestitchError
from wavestitch.contracts.headroom import Alarm
from wavestitch.contracts.plan import Plan, Scope
from wavestitch.contracts.position import Head, Position
from wavestitch.contracts.quantities import EpochMs, LeaderEpoch, Milliseconds, Offset, Partition, epoch_ms
from wavestitch.contracts.stream import parse_stream

P0 = Partition(0)


@pytest.fixture
def rig(tmp_path: Path) -> Rig:
    made = Rig(tmp_path)
    made.define("topic: t\ngroup: g\ntrigger: lag\n")
    return made


def looked(rig: Rig) -> Start:
    return start_by_lag(rig.deployment, watch_stream(rig.deployment, STREAM))


def begun(rig: Rig, at: int, *, records: int = 0) -> Head:
    """One batch was published; the stream stands there, and the group shows it."""
    for _ in range(records):
        rig.log.append(P0, timestamp_ms=1, key=None, headers=(), value=b"x")
    head = rig.publish(
        "w0", positions={P0: Position(Offset(at), leader_epoch=LeaderEpoch(0))}, topic_id=rig.log.topic_id
    )
    commit_offsets(rig.deployment.stream(STREAM), log=rig.log, tables=rig.tables)
    return head


def test_it_is_started_where_something_is_unread_and_not_where_nothing_is(rig: Rig) -> None:
    assert looked(rig) == Start(False, f"stream {STREAM}: the head stands at the end of {rig.log.name}")
    rig.log.append(P0, timestamp_ms=1, key=None, headers=(), value=b"x")
    assert looked(rig) == Start(True, "1 offsets are to be read"), "it has not begun"
    begun(rig, 1)
    assert looked(rig) == Start(False, f"stream {STREAM}: the head stands at the end of {rig.log.name}")
    rig.log.append(P0, timestamp_ms=1, key=None, headers=(), value=b"x")
    rig.log.append(P0, timestamp_ms=1, key=None, headers=(), value=b"y", seen=Visibility.OPEN)
    assert looked(rig) == looked(rig) == Start(True, "1 offsets are to be read"), "a look that was lost loses nothing"


def test_it_is_started_for_what_a_reset_gives_back(rig: Rig) -> None:
    begun(rig, 5, records=5)
    rig.log.reset_group(P0, Offset(2))
    assert looked(rig) == Start(True, "3 offsets are to be read")


def test_it_is_not_started_for_what_waits_behind_an_open_transaction(rig: Rig) -> None:
    begun(rig, 0)
    rig.log.append(
        P0, timestamp_ms=epoch_ms(time.time_ns()) - 5_000, key=None, headers=(), value=b"x", seen=Visibility.OPEN
    )
    rig.log.append(P0, timestamp_ms=1, key=None, headers=(), value=b"y")
    now, why, stands = looked(rig)
    assert stands
    assert not now
    assert "lies behind an open transaction" in why


def test_it_is_not_started_at_a_closed_gate_nor_over_what_retention_took(rig: Rig) -> None:
    head = begun(rig, 0, records=3)
    plan = rig.plan(head, clock_ms=0)
    edges = DeploymentEdges(rig.deployment, STREAM)
    edges.close_gate(plan, report=None, verdict="none")
    assert "stands at a closed gate" in looked(rig).why
    rig.log.partitions[P0].log_start = Offset(2)
    assert not looked(rig).now
    rig.log.name = "gone"
    assert looked(rig) == Start(False, "it cannot be looked at")


def other_catalog(rig: Rig) -> None:
    rig.log.group = {p: g._replace(metadata=g.metadata.replace(" s1", " s9")) for p, g in rig.log.group.items()}


def cut_off(rig: Rig) -> None:
    rig.log.truncate(P0, Offset(3))
    for _ in range(9):
        rig.log.append(P0, timestamp_ms=1, key=None, headers=(), value=b"y")


def consumers(rig: Rig) -> None:
    rig.log.live_members = ["c at h"]


def compacted(rig: Rig) -> None:
    rig.log.compacted = True


def made_anew(rig: Rig) -> None:
    rig.log.recreate(1)
    for _ in range(8):
        rig.log.append(P0, timestamp_ms=1, key=None, headers=(), value=b"new")


def lost_catalog(rig: Rig) -> None:
    (rig.folder / "catalog.db").rename(rig.folder / "catalog.db.lost")
    rig.read_settings({"WAVESTITCH_CONFIG": str(rig.folder / "wavestitch.toml")})


@pytest.mark.parametrize(
    ("accident", "said"),
    [
        (lambda rig: rig.log.reset_group(P0, Offset(9)), "the group"),
        (consumers, "has live members"),
        (compacted, "cleanup.policy compact"),
        (cut_off, "was cut off"),
        (lambda rig: rig.log.truncate(P0, Offset(3)), "was cut"),
        (made_anew, "was recreated"),
        (other_catalog, "the catalog"),
        (lost_catalog, "the group"),
    ],
    ids=["set forward", "members", "compacted", "cut off", "cut back", "made anew", "set back", "lost catalog"],
)
def test_what_its_plan_would_be_refused_for_is_told_and_starts_nothing(
    rig: Rig, accident: Callable[[Rig], None], said: str
) -> None:
    """Else offsets of another log, or of another table, would be counted as read: green, while retention takes them."""
    begun(rig, 5, records=10)
    assert looked(rig).now
    accident(rig)
    first, second = (watch_stream(rig.deployment, STREAM) for _ in range(2))
    assert not start_by_lag(rig.deployment, first).now
    assert said in first.problem
    assert first.worrying
    assert (first.told, second.told) == (False, True), "a broker that starts again is not told of"
    with pytest.raises(WavestitchError) as refused:
        step_plan(DeploymentEdges(rig.deployment, STREAM), PlanRequest(), apply=False)
    assert refused.value.message == first.problem
    shown = stream_facts(rig.deployment, STREAM)
    assert (shown.problem, shown.room) == (first.problem, None)


def test_a_schedule_and_a_lag_are_not_both_what_starts_it() -> None:
    with pytest.raises(BadInput, match="trigger: lag is for a stream without a schedule"):
        parse_stream("topic: t\ngroup: g\ntrigger: lag\nschedule: '0 * * * *'\n", name="ecg")


def test_what_keeps_it_at_its_gate_is_told_until_it_is_delivered_and_when_it_goes_on(rig: Rig) -> None:
    head = begun(rig, 0, records=3)
    plan = rig.plan(head, clock_ms=0)
    DeploymentEdges(rig.deployment, STREAM).close_gate(plan, report=None, verdict="none")
    config = rig.folder / "wavestitch.toml"
    with listening_webhook() as hook:
        config.write_text(f'{config.read_text()}[notify]\nwebhook = "{hook.address}"\n')
        rig.read_settings({"WAVESTITCH_CONFIG": str(config)})
        hook.status = 503
        first, second = (watch_stream(rig.deployment, STREAM) for _ in range(2))
        assert (first.told, second.told, second.delivered) == (False, True, False)
        assert "stands at a closed gate" in first.stands
        assert first.worrying
        hook.status = 204
        assert [watch_stream(rig.deployment, STREAM).told for _ in range(2)] == [True, False]
        rig.deployment.folder(STREAM, plan.plan_id).abandon(who="a test", why="it was looked at", at_ms=EpochMs(1))
        assert watch_stream(rig.deployment, STREAM).start.now
    assert hook.subjects[1:] == [
        f"{STREAM}: stands still, though its lag should start it",
        f"{STREAM}: nothing keeps it from being started any more",
    ]


def test_one_stream_whose_telling_cannot_be_kept_ends_nobody_elses_look(rig: Rig) -> None:
    (rig.folder / "streams" / "bad.yaml").write_text("topic: gone\ngroup: b\n")
    rig.log.append(P0, timestamp_ms=1, key=None, headers=(), value=b"x")
    told = rig.deployment.settings.landing / ".told"
    told.mkdir(parents=True)
    (told / "bad").write_text("a file in the place of its folder")
    for _ in range(3):
        bad, good = watch_streams(rig.deployment, ["bad", STREAM])
        assert good.start.now
        assert (bad.problem != "", bad.delivered) == (True, False)


@pytest.mark.parametrize(
    "odd",
    [
        {"reading": {"0": [1.0, 2.0]}},
        {"reading": {"0": [1.0]}, "partitions": {"0": {"planned": 1}}},
        {"partitions": {"x": {"planned": 1}}},
        {"starts": {"x": [[0, 10, 0, 1]]}},
        {"starts": {"0": [[0]]}},
        {"starts": {"0": [[5, 4]]}},
        {"ranges": [[0, 4]]},
        {"without_bytes": {"0": [1]}},
    ],
    ids=str,
)
def test_an_odd_row_of_the_history_is_a_damaged_row_that_says_so(odd: dict[str, Any]) -> None:
    with pytest.raises(BadInput, match=r"a row of the history .*; it is for people alone: delete it"):
        batch_row_from_json(make_row(**odd).to_json())


def test_a_row_of_a_partition_that_the_topic_has_not_keeps_nobody_from_planning(rig: Rig) -> None:
    head = begun(rig, 1, records=3)
    far: dict[str, Any] = {"starts": {"7": [[0, 10, 0, 1]]}, "epochs": {"7": 3}}
    rig.tables.append_batches([replace(describe_head(head, stream=STREAM), decision="odd", **far)])
    edges = DeploymentEdges(rig.deployment, STREAM)
    now = time.time_ns()
    step_plan_backfill(edges, Scope(now - 3600 * 10**9, now), apply=False)
    assert looked(rig).now


def test_one_that_fails_again_and_again_is_waited_for_longer_each_time() -> None:
    """Each lands what it reads anew, on the disk that all streams share."""
    minute, tries = 60_000, list[Plan]()
    for look in range(0, 7 * 24 * 60, 5):
        if not tries or waits(tries, now=EpochMs(look * minute)) <= 0:
            tries.append(make_plan(clock_ms=look * minute))
    planned = [plan.clock_ms // minute for plan in tries]
    assert planned[:8] == [0, 10, 30, 70, 150, 310, 630, 1270]
    assert {b - a for a, b in pairwise(planned[8:])} == {24 * 60}


def test_one_that_a_clock_planned_which_was_ahead_is_not_waited_for_until_then() -> None:
    year, minute = 365 * 86_400_000, 60_000
    ahead, failed = make_plan(clock_ms=10**12 + year), make_plan(clock_ms=10**12)
    assert waits([ahead], now=EpochMs(10**12 + minute)) <= 0
    assert waits([ahead, failed], now=EpochMs(10**12 + minute)) == 19 * minute, "it has failed, too"


def test_it_is_not_started_again_right_after_a_batch_that_did_not_get_through(rig: Rig) -> None:
    head = begun(rig, 0, records=3)
    assert looked(rig).now
    rig.plan(head, clock_ms=epoch_ms(time.time_ns()))
    now, why, stands = looked(rig)
    assert (now, stands) == (False, False)
    assert "1 batches were planned where it stands and have not got through" in why


def test_who_is_near_retention_is_seen_to_be_where_nobody_can_be_told_and_told_once_somebody_can(rig: Rig) -> None:
    begun(rig, 0)
    hour = Milliseconds(3_600_000)
    rig.log.retention_ms = hour
    rig.log.append(P0, timestamp_ms=hour, key=None, headers=(), value=b"x")
    config, landing = rig.folder / "wavestitch.toml", rig.deployment.settings.landing
    with listening_webhook() as hook:
        config.write_text(f'{config.read_text()}[notify]\nwebhook = "{hook.address}"\n')
        rig.read_settings({"WAVESTITCH_CONFIG": str(config)})

        def look(minute: int, answer: int) -> tuple[Alarm, Alarm, bool]:
            """The colour that is kept as seen, the one that is kept as told, and whether anything was to be told."""
            hook.status = answer
            seen = watch_stream(rig.deployment, STREAM, now=EpochMs(hour + minute * 60_000))
            kept = kept_told(landing, STREAM)
            return kept.seen, kept.alarm, seen.told

        assert look(58, 503) == (Alarm.RED, Alarm.GREEN, True)
        assert look(40, 503) == (Alarm.AMBER, Alarm.GREEN, True)
        assert look(59, 204) == (Alarm.RED, Alarm.RED, True)
        assert look(59, 503) == (Alarm.RED, Alarm.RED, False)
        assert look(1, 503) == (Alarm.GREEN, Alarm.RED, True)
        assert look(1, 204) == (Alarm.GREEN, Alarm.GREEN, True)


def test_one_more_is_started_when_the_wait_is_over_and_not_a_millisecond_before(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    planned = epoch_ms(time.time_ns())
    rig.plan(begun(rig, 0, records=3), clock_ms=planned)
    for early, now in ((2, False), (1, False), (0, True)):
        clock_ns = (planned + FIRST_WAIT - early) * 1_000_000
        monkeypatch.setattr(time, "time_ns", lambda clock_ns=clock_ns: clock_ns)
        assert looked(rig).now is now
