"""A definition that speaks no more of what guarded the table: a file that was written in part is such a one."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.builders.heads import make_row
from tests.builders.ranges import span
from tests.domain.backfill_rig import ARCHIVE, START_MS, send
from tests.domain.held_world import ONE, World
from tests.fakes.batch import Bench, Carrying, FakeEdges, carry_through, run_batch
from tests.fakes.fake_comparing import FakeComparing
from tests.fakes.fake_log import FakeLog
from wavestitch.batch.carry import Silent
from wavestitch.batch.held_approval import begin_approved, preview_held
from wavestitch.batch.held_waveforms import Selection
from wavestitch.batch.plan import PlanRequest
from wavestitch.batch.promote import preview_promotion
from wavestitch.batch.results import BatchDone, Planned
from wavestitch.batch.rewind_preview import apply_preview, preview_rewind
from wavestitch.batch.steps import step_plan
from wavestitch.batch.verify_request import VerifyRequest
from wavestitch.contracts.definition_since import GIVEN_UP_BY, refuse_guards_unsaid, said_of_definition
from wavestitch.contracts.errors import Refused
from wavestitch.contracts.held_choice import HeldAction
from wavestitch.contracts.plan import PlanKind
from wavestitch.contracts.position import HeadKind
from wavestitch.contracts.quantities import Offset, Partition
from wavestitch.contracts.stream import Stream, parse_stream, spoken_definition

PLAIN = f"topic: {ARCHIVE.topic}\ngroup: {ARCHIVE.group}\nallowed_lateness: 7 d\n"
GUARDS = {
    "id_partitions": "id_partitions:\n  pattern: '(\\d+)-.*'\n  partition: '{1}'\n",
    "on_reset": "on_reset: refuse\n",
    "rewind_approval": "rewind_approval: other\n",
    "expectations": "expectations:\n"
    "  - type: expect_column_values_to_be_between\n"
    "    kwargs: {column: sampling_rate_hz, min_value: 1, max_value: 100000}\n",
}


def carried(bench: Bench, stream: Stream) -> BatchDone:
    send(bench, f"w{len(bench.plans)}", day=1)
    done = run_batch(bench, stream, PlanRequest(), clock_ms=START_MS)
    assert isinstance(done, BatchDone)
    return done


def remarks(bench: Bench) -> str:
    return " ".join(list(bench.plans.values())[-1].remarks)


@pytest.mark.parametrize("key", ["on_reset", "rewind_approval", "expectations"])
def test_a_guard_is_given_up_by_name_and_never_by_silence(key: str) -> None:
    bench = Bench(FakeLog("waves", 1))
    with_it, without = (parse_stream(t, name=ARCHIVE.name) for t in (PLAIN + GUARDS[key], PLAIN))
    carried(bench, without)
    carried(bench, with_it)
    assert f"{key}: nothing -> " in remarks(bench)
    assert "ATTENTION" not in remarks(bench)
    with pytest.raises(Refused, match=rf"says nothing any more of {key}, .* write `{key}: ") as refused:
        carried(bench, without)
    assert GIVEN_UP_BY[key] in refused.value.message
    meant = parse_stream(f"{PLAIN}{GIVEN_UP_BY[key]}\n", name=ARCHIVE.name)
    carried(bench, meant)
    assert f"asks for less than that of the last batch did ({key})" in remarks(bench)
    carried(bench, without)
    assert "definition" not in remarks(bench), "whoever gave it up need not say so for ever"


def test_a_digest_that_anybody_can_make_is_less_than_a_seal() -> None:
    sealed = f"{PLAIN}proof: mac\nproof_key: env:WAVESTITCH_PROOF_TEST\n"
    by_seal, by_digest, by_none = (
        spoken_definition(parse_stream(text, name=ARCHIVE.name)) for text in (sealed, f"{PLAIN}proof: sha256\n", PLAIN)
    )
    loosened = [(by_seal, by_digest), (by_seal, by_none), (by_digest, by_none)]
    for before, now in [*loosened, *((b, a) for a, b in loosened)]:
        rows = [make_row(definition=before)]
        stream = Stream.model_validate({**now, "name": ARCHIVE.name})
        said = " ".join(said_of_definition(stream, rows))
        assert ("asks for less than that of the last batch did (proof)" in said) == ((before, now) in loosened)


def test_one_expectation_less_is_less_and_one_more_is_not() -> None:
    one = f"{PLAIN}{GUARDS['expectations']}"
    two = f"{one}  - type: expect_column_values_to_not_be_null\n    kwargs: {{column: units}}\n"
    for before, now, less in (
        *((two, one, True), (one, two, False), (one, one, False)),
        *((one, f"{PLAIN}expectations: []\n", True), (PLAIN, one, False), (one, PLAIN, True)),
    ):
        was, stream = (parse_stream(text, name=ARCHIVE.name) for text in (before, now))
        said = " ".join(said_of_definition(stream, [make_row(definition=spoken_definition(was))]))
        assert ("asks for less than that of the last batch did (expectations)" in said) == less
        assert bool(said) == (before != now)


def test_rows_from_before_definitions_were_kept_hide_none_of_those_behind_them() -> None:
    with_it, without = (parse_stream(t, name=ARCHIVE.name) for t in (PLAIN + GUARDS["on_reset"], PLAIN))
    rows = [make_row(definition={}), make_row(definition=spoken_definition(with_it))]
    with pytest.raises(Refused, match="says nothing any more of on_reset"):
        refuse_guards_unsaid(without, rows)
    assert said_of_definition(without, rows) == said_of_definition(without, rows[1:]) != ()


def test_what_gives_a_guard_up_is_a_definition(tmp_path: Path) -> None:
    for said in GIVEN_UP_BY.values():
        parse_stream(f"{PLAIN}{said}\n", name=ARCHIVE.name)


def test_a_stream_that_asks_for_a_mac_goes_on_with_none_only_where_that_is_written_out() -> None:
    bench = Bench(FakeLog("waves", 1))
    carried(bench, parse_stream(PLAIN, name=ARCHIVE.name))
    (row,) = [row for row in bench.tables.history if row.definition]
    row.definition.update(proof="mac", proof_key="env:WAVESTITCH_PROOF_ECG")
    with pytest.raises(Refused, match="write `proof: none`"):
        carried(bench, parse_stream(PLAIN, name=ARCHIVE.name))
    carried(bench, parse_stream(f"{PLAIN}proof: none\n", name=ARCHIVE.name))


@pytest.fixture
def torn() -> World:
    """It went by an expectation, and its file has lost the end; `bad` is held for the expectation, `late` for a chunk
    that is missing."""
    world = World()
    whole, plain = (parse_stream(t, name=world.stream.name) for t in (PLAIN + GUARDS["expectations"], PLAIN))
    world.stream = whole
    world.send("bad", 0, ONE, count=1)
    world.send("late", 0, ONE)
    world.ingest(failing={"bad"})
    world.stream = plain
    return world


@pytest.mark.parametrize("action", [HeldAction.REDRIVE, HeldAction.DISCARD, HeldAction.ACCEPT])
def test_a_decision_about_what_is_held_goes_no_more_by_a_torn_definition_than_an_ingest_does(
    torn: World, action: HeldAction
) -> None:
    for one in ("bad", "late"):
        with pytest.raises(Refused, match="says nothing any more of expectations"):
            torn.decide(action, one)
    assert not torn.published()
    with pytest.raises(Refused, match="says nothing any more of expectations"):
        torn.ingest()


def test_nor_does_a_promotion(torn: World) -> None:
    here = torn.bench, torn.stream, torn.now_ms, Carrying()
    request = VerifyRequest(ranges=(span(0, 0, 1),))
    with pytest.raises(Refused, match="says nothing any more of expectations"):
        preview_promotion(FakeEdges(*here), FakeComparing(*here), request, who="ops", why="to see", watcher=Silent())


def test_a_decision_that_was_shown_before_the_guard_is_not_approved_of_by_a_definition_that_lost_it(
    torn: World,
) -> None:
    """Shown by a definition that gave it up by name; then it was asked for again."""
    world, plain = torn, torn.stream
    world.stream = parse_stream(f"{PLAIN}expectations: []\n", name=plain.name)
    edges = FakeEdges(world.bench, world.stream, world.now_ms, Carrying())
    shown = preview_held(edges, HeldAction.REDRIVE, Selection(ids=("bad",)), who="ops", why="to see")
    assert "ATTENTION" in shown.plan.remarks[0], "whoever is asked reads what the definition asks for no more"
    edges = FakeEdges(world.bench, plain, world.now_ms, Carrying())
    with pytest.raises(Refused, match="says nothing any more of expectations"):
        begin_approved(edges, shown.plan.plan_id, by="somebody else")
    assert not world.published()


def test_a_backfill_from_before_the_guard_that_is_committed_late_does_not_give_it_up() -> None:
    bench = Bench(FakeLog("waves", 1))
    with_it, without = (parse_stream(t, name=ARCHIVE.name) for t in (PLAIN + GUARDS["expectations"], PLAIN))
    carried(bench, without)
    request = PlanRequest(PlanKind.MANUAL, ranges=(span(0, 0, 1),))
    early = step_plan(FakeEdges(bench, without, START_MS, Carrying()), request)
    assert isinstance(early, Planned)
    carried(bench, with_it)
    carry_through(bench, bench.plans[early.plan_id], Carrying())
    assert bench.tables.snapshots[-1].kind is HeadKind.MANUAL
    with pytest.raises(Refused, match="says nothing any more of expectations"):
        carried(bench, without)


def test_a_reset_is_not_taken_over_by_a_definition_that_lost_what_it_said_of_resets() -> None:
    bench = Bench(FakeLog("waves", 1))
    with_it, without = (parse_stream(t, name=ARCHIVE.name) for t in (PLAIN + GUARDS["on_reset"], PLAIN))
    carried(bench, with_it)
    bench.log.reset_group(Partition(0), Offset(0))
    heads = len(bench.tables.snapshots)
    with pytest.raises(Refused, match="says nothing any more of on_reset"):
        carried(bench, without)
    assert len(bench.tables.snapshots) == heads


def test_a_rewind_is_not_approved_of_by_who_asked_where_the_definition_lost_who_may() -> None:
    bench = Bench(FakeLog("waves", 1))
    with_it, without = (parse_stream(t, name=ARCHIVE.name) for t in (PLAIN + GUARDS["rewind_approval"], PLAIN))
    carried(bench, with_it)
    edges = FakeEdges(bench, without, START_MS, Carrying())
    shown = preview_rewind(edges, "earliest", None, who="ops", why="to see")
    with pytest.raises(Refused, match="says nothing any more of rewind_approval"):
        apply_preview(edges, shown, by="ops")
