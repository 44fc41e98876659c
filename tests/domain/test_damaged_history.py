"""A row of the history that somebody damaged, over real tables: it is named, and the others are shown."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.builders.heads import make_row
from tests.domain.maintenance_rig import STREAM, Rig
from wavestitch.batch.brief_facts import BriefFacts
from wavestitch.batch.history import whole_history
from wavestitch.batch.stream_facts import table_facts
from wavestitch.contracts.errors import BadInput
from wavestitch.tables.commit.table_layout import BATCHES
from wavestitch.tables.history.batch_history import history_batches


@pytest.fixture
def rig(tmp_path: Path) -> Rig:
    """Two batches, and a row beside theirs that no writer of ours wrote."""
    rig = Rig(tmp_path)
    for waveform_id in ("w0", "w1"):
        rig.record(rig.publish(waveform_id))
    row = make_row(sequence=rig.tables.head().sequence, decision="f0" * 32, stream=STREAM)
    (good,) = history_batches([row])
    detail = pa.array(['{"format": 1, "plan_id": 7'], pa.string())
    forged = good.set_column(BATCHES.get_field_index("detail"), BATCHES.field("detail"), detail)
    rig.tables._batches.load().append(pa.Table.from_batches([forged]))
    return rig


def test_a_damaged_row_is_named_and_the_others_are_shown(rig: Rig) -> None:
    with pytest.raises(BadInput):
        rig.tables.batches()
    shown = {r.sequence for r in whole_history(rig.deployment.history(STREAM))}
    assert shown == {h.sequence for h in rig.tables.heads()}
    facts = table_facts(rig.deployment, STREAM)
    assert facts.problem == ""
    assert facts.head is not None
    assert len(facts.batches) >= 2
    (remark,) = [r for r in facts.remarks if "damaged" in r]
    assert f"the history's row of head {facts.head.sequence}, decision f0f0" in remark
    assert BriefFacts().of(rig.deployment, STREAM).problem == ""


def test_the_last_rows_of_years_in_one_file_are_few_to_read(rig: Rig) -> None:
    rows = [make_row(sequence=n, decision=f"{n:032x}") for n in range(20_000)]
    stored = rig.tables.stored()[2]
    (path,) = stored.write(stored.ensure(), history_batches(rows))
    file = pq.ParquetFile(path.removeprefix("file://"))
    groups = [file.metadata.row_group(n) for n in range(file.num_row_groups)]
    assert sum(g.num_rows for g in groups) == len(rows)
    assert max(g.total_byte_size for g in groups) <= 1 << 20
