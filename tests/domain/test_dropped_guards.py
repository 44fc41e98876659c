"""A definition that speaks no more of what guarded the table: a file that was written in part is such a one."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.domain.backfill_rig import ARCHIVE, START_MS, send
from tests.fakes.batch import Bench, run_batch
from tests.fakes.fake_log import FakeLog
from wavestitch.batch.plan import PlanRequest
from wavestitch.batch.results import BatchDone
from wavestitch.contracts.definition_since import GIVEN_UP_BY
from wavestitch.contracts.errors import Refused
from wavestitch.contracts.stream import Stream, parse_stream

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
