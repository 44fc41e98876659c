"""docs/operations.md shows what every operation does: the lists that the code walks, word for word."""

from __future__ import annotations

import pytest

from tests.conftest import ROOT
from wavestitch.batch import carry, walk
from wavestitch.contracts.batch_stages import BATCH, HELD, PLANNING, REWIND, TAKE_BACK
from wavestitch.contracts.maintenance_stages import STAGES
from wavestitch.contracts.operations import operations, stages_page
from wavestitch.contracts.stages import Effect, Stage
from wavestitch.maintain import stages as maintain

TEXT = (ROOT / "docs" / "operations.md").read_text(encoding="utf-8")
BEGIN, END = "<!-- stages: made by wavestitch.contracts.operations -->\n", "\n<!-- end of stages -->"
KINDS = list(dict.fromkeys(s for kinds in operations().values() for s in kinds))


def test_the_page_shows_the_stages_that_the_code_walks() -> None:
    shown = TEXT.partition(BEGIN)[2].partition(END)[0]
    assert shown == stages_page(), f"put this between the marks in docs/operations.md:\n{stages_page()}"


def test_every_stage_is_carried_out_by_one_act_and_every_act_is_of_a_stage() -> None:
    assert carry.ACTS.keys() == {*BATCH, *HELD}
    assert walk.ACTS.keys() == {*PLANNING, *REWIND, *TAKE_BACK}
    assert tuple(maintain.ACTS) == STAGES


@pytest.mark.parametrize("stage", KINDS, ids=[s.name for s in KINDS])
def test_every_stage_says_what_it_does_what_it_leaves_and_how_it_is_undone(stage: type[Stage]) -> None:
    assert stage.does
    assert stage.undo.says
    assert stage.effects


def test_every_effect_is_of_a_stage_and_every_name_is_one_stage_s() -> None:
    assert {effect for stage in KINDS for effect in stage.effects} == set(Effect)
    assert len({stage.name for stage in KINDS}) == len(KINDS)
