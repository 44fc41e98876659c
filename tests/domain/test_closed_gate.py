"""A batch at a closed gate: no ingest of its stream goes past it before somebody has decided."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.builders.ranges import span
from tests.builders.sending import send_chunk
from tests.builders.streams import make_stream
from tests.fakes.batch import Bench, Carrying, FakeEdges, carry_through, run_batch
from tests.fakes.fake_log import FakeLog
from wavestitch.batch.closed_gate import given_up_by_a_rewind
from wavestitch.batch.held_decision import carry_out, plan_held
from wavestitch.batch.held_waveforms import Selection
from wavestitch.batch.landing_facts import GATE_CLOSED, READER_STOPPED, closed_gates, gates_of, reader_stops
from wavestitch.batch.plan import PlanRequest
from wavestitch.batch.request import rewind_target
from wavestitch.batch.rewind import Rewind, Target, apply_rewind, plan_rewind
from wavestitch.batch.rewind_preview import apply_preview, preview_rewind
from wavestitch.batch.steps import step_plan, step_publish, step_read, step_reassemble, step_validate
from wavestitch.batch.undo import committed_stages, plan_undo
from wavestitch.batch.work_folder import WorkFolder
from wavestitch.contracts.batch_size import READER_STOP, ReaderStop
from wavestitch.contracts.errors import Fenced, GateClosed, NewerFormat, Refused
from wavestitch.contracts.held_choice import HeldAction
from wavestitch.contracts.plan import Plan, PlanKind, Scope
from wavestitch.contracts.quantities import EpochMs, Offset, Partition
from wavestitch.contracts.stream import Stream
from wavestitch.contracts.verdict import CLOSED_GATES, ClosedGate

START_MS = 1_767_614_400_000
STREAM = make_stream()
SPOILED = Carrying(spoiled={"bad"})


@pytest.fixture
def bench() -> Bench:
    """A batch of one spoiled waveform stands at the gate; since then ten good ones have come."""
    made = Bench(FakeLog("waves", 2))
    send(made, "bad")
    with pytest.raises(GateClosed, match="Until then no ingest of the stream goes past it"):
        ingest(made)
    for n in range(10):
        send(made, f"good-{n}", partition=n % 2)
    return made


def send(bench: Bench, waveform_id: str, partition: int = 0) -> None:
    send_chunk(bench.log, waveform_id, at_ms=START_MS, partition=partition)


def ingest(bench: Bench, request: PlanRequest | None = None, stream: Stream = STREAM) -> Any:
    return run_batch(bench, stream, request or PlanRequest(), clock_ms=START_MS, how=SPOILED)


def published(bench: Bench) -> set[str]:
    return {row.waveform_id for _, row in bench.tables.rows}


def plan_of(bench: Bench) -> Plan:
    return next(iter(bench.gates.values()))


@pytest.mark.parametrize(
    "request_",
    [PlanRequest(), PlanRequest(only=frozenset({Partition(1)})), PlanRequest(until={Partition(0): Offset(3)})],
)
def test_the_next_ingest_is_refused_and_names_every_way_out(bench: Bench, request_: PlanRequest) -> None:
    """It would cover ten good ones too, and a gate that looks at shares would open."""
    with pytest.raises(Refused, match=r"--gate accept --why.*--gate park --why.*wavestitch abandon ecg --plan"):
        ingest(bench, request_)
    assert published(bench) == set()


def test_accepted_it_is_published_and_the_stream_goes_on(bench: Bench) -> None:
    carry_through(bench, plan_of(bench), Carrying(spoiled={"bad"}, gate="accept"))
    assert published(bench) == {"bad"}
    ingest(bench)
    assert len(published(bench)) == 11


def test_parked_it_is_held_and_the_stream_goes_on(bench: Bench) -> None:
    carry_through(bench, plan_of(bench), Carrying(spoiled={"bad"}, park=True))
    ingest(bench)
    assert published(bench) == {f"good-{n}" for n in range(10)}
    assert {r.held.reason.value for r in bench.tables.held_rows()} == {"parked"}


def test_abandoned_its_offsets_are_read_by_the_next(bench: Bench) -> None:
    bench.abandoned.add(plan_of(bench).plan_id)
    ingest(bench)
    assert len(published(bench)) == 11


def test_fenced_by_a_rewind_it_no_longer_stands_in_the_way(bench: Bench) -> None:
    rewind(bench, Target("latest"))
    send(bench, "since")
    ingest(bench)
    assert published(bench) == {"since"}


def rewind(bench: Bench, to: Target) -> Rewind:
    found = plan_rewind(STREAM, to, log=bench.log, tables=bench.tables, who="a test", why="to see")
    apply_rewind(STREAM, found, accept_skip=True, log=bench.log, tables=bench.tables)
    return found


@pytest.mark.parametrize("to", ["head", "earliest", "0:head,1:0", "before:PLAN"])
def test_a_rewind_that_moves_nothing_is_refused_and_nothing_falls_by_it(bench: Bench, to: str) -> None:
    """It would be a generation of its own, which fences every batch under way."""
    partitions = None
    if to == "before:PLAN":
        carry_through(bench, plan_of(bench), Carrying(spoiled={"bad"}, gate="accept"))
        to, partitions = f"before:{plan_of(bench).plan_id[:12]}", "1"
    before = bench.tables.heads()[0]
    with pytest.raises(Refused, match=r"nothing would move.*fences every batch under way.*wavestitch abandon"):
        rewind(bench, rewind_target(to, partitions))
    assert bench.tables.heads()[0] == before


def test_to_stay_is_an_answer_to_a_group_that_somebody_has_reset(bench: Bench) -> None:
    bench.log.reset_group(Partition(0), Offset(3))
    assert rewind(bench, Target("head")).moves == {0: (0, 0), 1: (0, 0)}


def test_a_rewind_that_gives_up_a_closed_gate_says_so_and_asks_why(bench: Bench) -> None:
    edges = FakeEdges(bench, STREAM, START_MS, SPOILED)
    stopped = plan_of(bench).plan_id[:16]
    shown = preview_rewind(edges, "0:latest", None, who="ada", why="")
    assert any(f"batch {stopped}, which stands at a closed gate" in said for said in shown.remarks)
    with pytest.raises(Refused, match=f"batch {stopped}.*is given up by this.*Say that with --why"):
        apply_preview(edges, shown, by="ada", accept_skip=True)
    said = preview_rewind(edges, "0:latest", None, who="ada", why="the sensor was off")
    apply_preview(edges, said, by="ada", accept_skip=True)
    assert "the sensor was off" in bench.tables.heads()[0].note
    assert given_up_by_a_rewind(edges, bench.tables.head()) == ()


def test_that_its_base_was_expired_does_not_open_it(bench: Bench) -> None:
    """A batch beside it commits, and what maintenance expires after `pinned_heads` is the head it was planned on."""
    beside = PlanRequest(PlanKind.MANUAL, ranges=(span(1, 0, 5),))
    run_batch(bench, STREAM, beside, clock_ms=START_MS, how=Carrying(failing={"bad"}))
    bench.tables.expire_snapshots(1)
    with pytest.raises(Refused, match=r"has left the table's history.*give it up with `wavestitch abandon") as refused:
        ingest(bench)
    assert "--gate" not in refused.value.message, "a way out that cannot be taken any more"
    with pytest.raises(Fenced):
        carry_through(bench, plan_of(bench), Carrying(spoiled={"bad"}, gate="accept"))
    bench.abandoned.add(plan_of(bench).plan_id)
    ingest(bench)
    assert len(published(bench)) == 11


ALL_OF_IT = Scope(START_MS * 1_000_000, (START_MS + 1) * 1_000_000)


@pytest.mark.parametrize(
    "request_",
    [PlanRequest(PlanKind.BACKFILL, ALL_OF_IT), PlanRequest(PlanKind.MANUAL, ranges=(span(0, 0, 6),))],
)
def test_no_other_batch_publishes_what_was_stopped(bench: Bench, request_: PlanRequest) -> None:
    with pytest.raises(Refused, match="no batch that would publish what it stopped goes past it"):
        run_batch(bench, STREAM, request_, clock_ms=START_MS, how=SPOILED)
    assert published(bench) == set()
    run_batch(bench, STREAM, request_, clock_ms=START_MS, how=Carrying(failing={"bad"}))
    assert "bad" not in published(bench)
    assert published(bench), "what it would not publish bars nothing"
    carry_through(bench, plan_of(bench), Carrying(spoiled={"bad"}, gate="accept"))
    assert "bad" in published(bench)


def test_nor_does_one_that_reads_a_second_copy_of_it(bench: Bench) -> None:
    """A producer's retry: what was stopped is in the log once more, behind what the stopped batch covers."""
    send(bench, "bad")
    behind = PlanRequest(PlanKind.MANUAL, ranges=(span(0, 1, 7),))
    with pytest.raises(Refused, match="no batch that would publish what it stopped goes past it"):
        run_batch(bench, STREAM, behind, clock_ms=START_MS, how=SPOILED)
    assert published(bench) == set()


def test_where_nobody_can_say_what_it_stopped_nothing_is_published_past_it(bench: Bench) -> None:
    bench.at_gates.clear()
    beside = PlanRequest(PlanKind.MANUAL, ranges=(span(1, 0, 5),))
    with pytest.raises(Refused, match="no batch that would publish what it stopped goes past it"):
        run_batch(bench, STREAM, beside, clock_ms=START_MS, how=SPOILED)


def test_that_its_own_gate_closed_once_lets_no_batch_past_another_ones() -> None:
    """What could not be judged in time is judged when the same plan is carried again, by nobody's word."""
    bench = Bench(FakeLog("waves", 1))
    for name in ("bad", "good-1", "good-2"):
        send(bench, name)
    with pytest.raises(GateClosed):
        run_batch(bench, STREAM, PlanRequest(until={Partition(0): Offset(1)}), clock_ms=START_MS, how=SPOILED)
    named = PlanRequest(PlanKind.MANUAL, ranges=(span(0, 0, 3),))
    unsure = Carrying(spoiled={"bad"}, unsure=True)
    with pytest.raises(GateClosed, match="could not be judged in time") as closed:
        run_batch(bench, STREAM, named, clock_ms=START_MS, how=unsure)
    own = bench.plans[closed.value.facts["plan_id"]]
    with pytest.raises(Refused, match="no batch that would publish what it stopped goes past it"):
        carry_through(bench, own, SPOILED)
    assert published(bench) == set()
    carry_through(bench, own, Carrying(spoiled={"bad"}, gate="accept"))
    assert len(published(bench)) == 3, "somebody has accepted this very plan"
    assert bench.tables.history[-1].note == "gate: accept; accept"


def test_a_batch_that_could_not_be_judged_goes_on_where_it_can_be() -> None:
    bench = Bench(FakeLog("waves", 1))
    send(bench, "good")
    with pytest.raises(GateClosed, match="could not be judged in time"):
        run_batch(bench, STREAM, PlanRequest(), clock_ms=START_MS, how=Carrying(unsure=True))
    carry_through(bench, plan_of(bench), SPOILED)
    assert published(bench) == {"good"}


def test_beside_it_a_batch_of_other_offsets_goes_on(bench: Bench) -> None:
    beside = PlanRequest(PlanKind.MANUAL, ranges=(span(0, 1, 6), span(1, 0, 5)))
    run_batch(bench, STREAM, beside, clock_ms=START_MS, how=SPOILED)
    assert len(published(bench)) == 10


def test_a_backfill_at_a_closed_gate_does_not_stop_an_ingest() -> None:
    scope = ALL_OF_IT
    other = Bench(FakeLog("waves", 1))
    send(other, "bad")
    with pytest.raises(GateClosed):
        run_batch(other, STREAM, PlanRequest(PlanKind.BACKFILL, scope), clock_ms=START_MS, how=SPOILED)
    send(other, "good-1")
    send(other, "good-2")
    ingest(other)
    assert len(published(other)) == 3


def test_an_ingest_that_was_planned_before_does_not_publish_past_it() -> None:
    """Two runs plan at the same place; one is stopped at the gate, the other one covers more and passes."""
    bench = Bench(FakeLog("waves", 1))
    edges = FakeEdges(bench, STREAM, START_MS, SPOILED)
    send(bench, "bad")
    narrow = step_plan(edges, PlanRequest())
    for n in range(10):
        send(bench, f"good-{n}")
    wide = step_plan(edges, PlanRequest())
    gates = []
    for planned in (narrow, wide):
        read = step_read(edges, planned.plan_id)  # type: ignore[union-attr]
        made = step_reassemble(edges, planned.plan_id, read)  # type: ignore[union-attr]
        gates.append((planned, made))
    with pytest.raises(GateClosed):
        step_validate(edges, narrow.plan_id, gates[0][1])  # type: ignore[union-attr]
    checked = step_validate(edges, wide.plan_id, gates[1][1])  # type: ignore[union-attr]
    with pytest.raises(Refused, match="stands at a closed gate"):
        step_publish(edges, wide.plan_id, gates[1][1], checked)  # type: ignore[union-attr]
    assert published(bench) == set()
    carry_through(bench, plan_of(bench), Carrying(spoiled={"bad"}, park=True))
    with pytest.raises(Fenced):
        step_publish(edges, wide.plan_id, gates[1][1], checked)  # type: ignore[union-attr]


def test_a_gate_that_closes_while_another_batch_is_staging_is_asked_once_more_before_the_commit() -> None:
    """Two redrives of one waveform; the wide one has asked, and stages, when the narrow one is stopped."""
    bench = Bench(FakeLog("waves", 1))
    names = ("bad", "u", "v")
    for name in names:
        send(bench, name)
    run_batch(bench, STREAM, PlanRequest(), clock_ms=START_MS, how=Carrying(failing=names))
    edges = FakeEdges(bench, STREAM, START_MS, SPOILED)
    wide, narrow = (
        plan_held(edges, HeldAction.REDRIVE, Selection(ids=ids), who="ops", why="again").plan
        for ids in (names, ("bad",))
    )
    staging, stage = iter([narrow]), bench.tables.stage_held

    def stopped_meanwhile(*what: Any, **more: Any) -> Any:
        for other in staging:
            with pytest.raises(GateClosed):
                carry_out(edges, other)
        return stage(*what, **more)

    bench.tables.stage_held = stopped_meanwhile  # type: ignore[method-assign]
    with pytest.raises(Refused, match="no batch that would publish what it stopped goes past it"):
        carry_out(edges, wide)
    assert published(bench) == set()


def test_so_is_whether_somebody_abandoned_it(bench: Bench) -> None:
    plan, stage = plan_of(bench), bench.tables.stage_held

    def abandoned_meanwhile(*what: Any, **more: Any) -> Any:
        bench.abandoned.add(plan.plan_id)
        return stage(*what, **more)

    bench.tables.stage_held = abandoned_meanwhile  # type: ignore[method-assign]
    with pytest.raises(Fenced, match="was abandoned"):
        carry_through(bench, plan, Carrying(spoiled={"bad"}, gate="accept"))
    assert published(bench) == set()


def test_what_was_abandoned_in_the_moment_of_its_commit_can_be_undone(bench: Bench) -> None:
    plan = plan_of(bench)
    carry_through(bench, plan, Carrying(spoiled={"bad"}, gate="accept"))
    bench.abandoned.add(plan.plan_id)
    edges = FakeEdges(bench, STREAM, START_MS, SPOILED)
    found = plan_undo(edges, committed_stages(edges, plan.plan_id), who="ops", why="back")
    assert isinstance(found, Rewind)
    assert found.moves[Partition(0)] == (1, 0)


def test_a_stream_may_choose_to_park_by_itself() -> None:
    stream = STREAM.model_copy(update={"on_closed_gate": "park"})
    bench = Bench(FakeLog("waves", 1))
    send(bench, "bad")
    ingest(bench, stream=stream)
    assert published(bench) == set()
    assert bench.tables.history[-1].note == "gate: park; the stream parks at a closed gate"
    send(bench, "good")
    ingest(bench, stream=stream)
    assert published(bench) == {"good"}


def test_on_disk_a_closed_gate_is_found_until_its_batch_is_abandoned(bench: Bench, tmp_path: Path) -> None:
    plan = plan_of(bench)
    folder = WorkFolder(tmp_path, "ecg", plan.plan_id)
    folder.create(plan)
    assert closed_gates(tmp_path, "ecg") == []
    for verdict in ("too few", "judged again, by newer data"):
        kept = folder.write_digested(GATE_CLOSED, CLOSED_GATES.text(ClosedGate(plan.plan_id, None, verdict)))
    assert closed_gates(tmp_path, "ecg") == [plan]
    assert {gate.verdict for gate in gates_of(folder) or ()} == {"judged again, by newer data", "too few"}
    kept.chmod(0o600)
    kept.write_text("damaged")
    assert gates_of(folder) is None
    assert closed_gates(tmp_path, "ecg") == [plan], "a gate is closed however damaged the file that says so"
    folder.abandon(who="ada", why="the sensor was off", at_ms=EpochMs(0))
    assert closed_gates(tmp_path, "ecg") == []


def test_a_gate_that_a_newer_wavestitch_closed_is_not_passed_over(bench: Bench, tmp_path: Path) -> None:
    plan = plan_of(bench)
    folder = WorkFolder(tmp_path, "ecg", plan.plan_id)
    folder.create(plan)
    folder.write_digested(GATE_CLOSED, json.dumps({"format": 2, "why": "of the future"}))
    with pytest.raises(NewerFormat, match="what is kept of a closed gate was written by a newer Wavestitch"):
        closed_gates(tmp_path, "ecg")


def test_on_disk_what_stopped_readers_saw_is_found_and_what_was_altered_is_not(bench: Bench, tmp_path: Path) -> None:
    plan = plan_of(bench)
    folder = WorkFolder(tmp_path, "ecg", plan.plan_id)
    folder.create(plan)
    stop = ReaderStop(
        plan.plan_id,
        "ingest",
        plan.ranges,
        2048,
        0,
        5,
        10,
        4096,
        10,
        {Partition(0): Offset(0), Partition(1): Offset(0)},
    )
    path = folder.write_digested(READER_STOPPED, READER_STOP.text(stop))
    assert reader_stops(tmp_path, "ecg") == [stop]
    path.chmod(0o600)
    path.write_text(READER_STOP.text(replace(stop, planned=1)))
    assert reader_stops(tmp_path, "ecg") == []
