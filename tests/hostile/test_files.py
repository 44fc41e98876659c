"""Damaged, exchanged and lying files between the steps: each is refused by name, in bounded time (I3, I8)."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.hostile.file_kinds import Bed, FileKind, file_kinds
from tests.hostile.landed_plans import land_two_plans, load_bed, make_bed


@pytest.fixture(scope="module")
def landing(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return land_two_plans(tmp_path_factory.mktemp("files") / "deployment")


@pytest.fixture
def bed(landing: Path, tmp_path: Path) -> Bed:
    return make_bed(landing, tmp_path / "landing")


def test_an_undamaged_batch_loads(bed: Bed) -> None:
    assert len(load_bed(bed).chunks) == 40
    assert len(bed.receipts) == 2


@pytest.mark.parametrize("kind", file_kinds(), ids=lambda k: k.name)
def test_a_hostile_file_is_refused_by_name(kind: FileKind, bed: Bed) -> None:
    kind.do(bed)
    with pytest.raises(kind.error) as refused:
        load_bed(bed)
    assert kind.says in refused.value.message
    assert len(refused.value.message) < 1000
    assert "again" in refused.value.message, "it names no way out"
