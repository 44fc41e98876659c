"""A process without room for what it was to do says so, and loses nothing (I5)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest

from tests.domain.test_batch_steps import CLOCK_MS, STREAM, bench_with_a_waveform
from tests.fakes.batch import Carrying, FakeEdges, run_batch
from wavestitch import cli
from wavestitch.batch.carry import Carried, How, carry_out
from wavestitch.batch.plan import PlanRequest
from wavestitch.batch.results import Planned
from wavestitch.batch.steps import step_plan
from wavestitch.contracts.batch_stages import ReadUnits
from wavestitch.contracts.errors import Transient


@dataclass(frozen=True)
class WithoutRoom(FakeEdges):
    """Edges in a process that has no memory left."""

    asked: list[str] = field(default_factory=list)

    def read(self, *_: Any, **__: Any) -> Any:
        raise MemoryError


def test_a_stage_without_room_names_what_makes_room_and_the_batch_goes_through_later() -> None:
    bench = bench_with_a_waveform()
    edges = WithoutRoom(bench, STREAM, CLOCK_MS, Carrying())
    planned = step_plan(edges, PlanRequest())
    assert isinstance(planned, Planned)
    with pytest.raises(Transient, match=r"read: batch .* found no room in memory. Give the process more") as short:
        carry_out(ReadUnits, edges, Carried(planned.plan_id), How())
    assert "limits.max_batch_records and limits.max_batch_bytes" in short.value.message
    run_batch(bench, STREAM, PlanRequest(), clock_ms=CLOCK_MS)
    assert [*bench.tables.published(["w1"])] == ["w1"]


def test_a_command_without_room_is_a_sentence_and_may_be_tried_again(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def app() -> None:
        raise MemoryError

    monkeypatch.setattr(cli, "app", app)
    with pytest.raises(SystemExit) as ended:
        cli.main()
    assert ended.value.code == 75
    assert "not enough memory for this command" in " ".join(capsys.readouterr().err.split())
